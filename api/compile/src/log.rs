//! What NVRTC says, as people read it: the places as `FILE:LINE`, and what helps against known mistakes.

/// Begins the place of an error in a name expression: NVRTC puts them into a file of its own.
const NAME_MAP: &str = "__nv_name_map";

/// NVRTC's log with its places, `axpy.cu(3): error: …`, in the form that editors understand: `axpy.cu:3: error: …`.
pub(crate) fn readable(log: &str) -> String {
    let lines: Vec<String> = log
        .lines()
        .filter(|line| !line.starts_with("Remark: The warnings can be suppressed"))
        .map(|line| place(line).unwrap_or_else(|| line.to_string()))
        .collect();
    let mut text = lines.join("\n");
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text.trim().to_string()
}

/// The line with its place rewritten, if it begins with one. Lines of the text are indented.
fn place(line: &str) -> Option<String> {
    if line.starts_with([' ', '\t']) {
        return None;
    }
    let (place, message) = line.split_once("): ")?;
    let (file, number) = place.rsplit_once('(')?;
    let number: u32 = number.parse().ok()?;
    Some(match file {
        NAME_MAP => format!("name expression: {message}"),
        _ => format!("{file}:{number}: {message}"),
    })
}

const CCCL: &str = "cuda/… and cub/… are headers of CCCL: pip install nvidia-cuda-cccl, and add its folder \
                    nvidia/cu13/include/cccl to the include folders";
const RUNTIME: &str = "this is a header of CUDA's runtime: pip install nvidia-cuda-runtime nvidia-cuda-crt, and add their folders \
                       nvidia/cu13/include to the include folders";

const INTEGERS: &str = "uint64_t and its kin are declared by nvshmem.h, as CCCL declares them (uint64_t is unsigned long long): leave \
                        your own declaration out";

const INSIDE: &str = "this is inside of NVIDIA's library, which differs from version to version and is not here: call public functions instead, \
                      such as nvshmem_ptr, nvshmemx_putmem_nbi_warp or nvshmemx_qp_…";
const LIMITS: &str = "the limits of types need a header of CCCL, such as <cuda/std/climits> for UINT_MAX: pip install nvidia-cuda-cccl, and \
                      add its folder nvidia/cu13/include/cccl to the include folders";
const STD: &str = "if std is meant: it is not here, and CCCL has it as cuda::std, in <cuda/std/…> (pip install nvidia-cuda-cccl, include \
                   folder nvidia/cu13/include/cccl)";

/// Frequent mistakes. Each has words that the log has on one line, and a hint.
const MISTAKES: [(&[&str], &str); 24] = [
    (
        &["host function"],
        "only device code can be compiled here: mark functions with __device__, or all of them by `default_device` of the source \
         (--default-device), and keep host code in another file or between #ifndef __CUDACC_RTC__ and #endif",
    ),
    (
        &["__host__ function"],
        "only device code can be compiled here: keep host code in another file or between #ifndef __CUDACC_RTC__ and #endif",
    ),
    (&["open source file \"non_abi/"], INSIDE),
    (&["open source file \"device_host"], INSIDE),
    (&["open source file \"device/nvshmem"], INSIDE),
    (&["open source file \"host/nvshmem"], INSIDE),
    (&["open source file \"internal/"], INSIDE),
    (&["identifier \"nvshmemi_"], INSIDE),
    (&["open source file \"cuda/"], CCCL),
    (&["open source file \"cub/"], CCCL),
    (&["open source file \"cuda_"], RUNTIME),
    (&["open source file \"cooperative_groups"], RUNTIME),
    (
        &["open source file"],
        "the standard libraries of C and C++ are not here: nvshmem.h declares int32_t and its kin, printf and assert need no header, \
         and <cuda/std/…> of CCCL has the rest (pip install nvidia-cuda-cccl, include folder nvidia/cu13/include/cccl); a header of \
         your own needs its folder among the include folders",
    ),
    (&["identifier \"", "_MAX\" is undefined"], LIMITS),
    (&["name followed by \"::\" must be a class or namespace name"], STD),
    (&["identifier \"__builtin_"], "GCC's builtins are not here: CUDA has __clz, __popc, __ffs and their kin"),
    (&["redeclaration of type name \"", "int8_t\""], INTEGERS),
    (&["redeclaration of type name \"", "int16_t\""], INTEGERS),
    (&["redeclaration of type name \"", "int32_t\""], INTEGERS),
    (&["redeclaration of type name \"", "int64_t\""], INTEGERS),
    (&["redeclaration of type name \"", "intptr_t\""], INTEGERS),
    (&["redeclaration of type name \"", "ptrdiff_t\""], INTEGERS),
    (
        &["name expression:"],
        "a name expression names a kernel of the text with all its template arguments: scale<float, 32>",
    ),
    (
        &["identifier \"nvshmem"],
        "nvshmem.h and nvshmemx.h declare NVSHMEM's device functions; include them, and call host functions such as nvshmem_init \
         and nvshmem_malloc from the host program",
    ),
];

/// The hints for the mistakes in a log, each hint once. A line counts for the first mistake that fits it.
pub(crate) fn hints(log: &str) -> Vec<&'static str> {
    let mut hints = Vec::new();
    for line in log.lines().filter(|line| line.contains("error:")) {
        let known = MISTAKES.iter().find(|(words, _)| words.iter().all(|word| line.contains(word)));
        if let Some((_, hint)) = known
            && !hints.contains(hint)
        {
            hints.push(*hint);
        }
    }
    hints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_file_and_line_and_the_text_stays_as_it_is() {
        let log =
            "sub dir/a.cu(12): error: identifier \"y\" is undefined\n  f(3): x;\n    ^\n\n\n1 error detected.\n\n";
        let expected = "sub dir/a.cu:12: error: identifier \"y\" is undefined\n  f(3): x;\n    ^\n\n1 error detected.";
        assert_eq!(readable(log), expected);
    }

    #[test]
    fn a_header_that_is_not_found_has_the_same_hint_with_include_folders_and_without() {
        for (header, begins) in [("stdio.h", "the standard"), ("cuda/atomic", "cuda/…"), ("cuda_fp16.h", "this is")] {
            let without =
                format!("a.cu:1: catastrophic error: could not open source file \"{header}\" (no directories)");
            let with = format!("a.cu:1: catastrophic error: cannot open source file \"{header}\"");
            let [hint] = hints(&without)[..] else { panic!("{header}") };
            assert!(hint.starts_with(begins), "{hint}");
            assert_eq!(hints(&with), [hint], "{header}");
        }
    }

    #[test]
    fn each_hint_is_given_once_and_only_for_errors() {
        let line = "a.cu:1: error: identifier \"__builtin_clz\" is undefined\n";
        assert_eq!(
            hints(&line.repeat(2)),
            ["GCC's builtins are not here: CUDA has __clz, __popc, __ffs and their kin"]
        );
        assert!(hints(&line.replace("error", "warning")).is_empty());
    }

    #[test]
    fn what_is_inside_of_the_library_has_a_hint_of_its_own() {
        let of = |message: &str| hints(&format!("a.cu:3: error: {message}\n"));
        for header in ["non_abi/device/pt-to-pt/ibgda_device.cuh", "device_host_transport/nvshmem_common_ibgda.h"] {
            assert_eq!(of(&format!("cannot open source file \"{header}\"")), [INSIDE], "{header}");
        }
        assert_eq!(of("identifier \"nvshmemi_device_state_d\" is undefined"), [INSIDE]);
        assert_ne!(of("identifier \"nvshmem_init\" is undefined"), [INSIDE]);
    }

    #[test]
    fn what_the_standard_library_has_is_said_to_be_in_cccl() {
        let of = |message: &str| hints(&format!("a.cu:3: error: {message}\n"));
        for name in ["UINT_MAX", "INT_MAX", "FLT_MAX"] {
            assert_eq!(of(&format!("identifier \"{name}\" is undefined")), [LIMITS], "{name}");
        }
        assert_eq!(of("name followed by \"::\" must be a class or namespace name"), [STD]);
        assert!(of("identifier \"MAXIMUM\" is undefined").is_empty());
    }

    #[test]
    fn only_the_integers_of_the_header_have_the_hint_about_them() {
        let of = |name: &str| {
            hints(&format!("a.cu:2: error: invalid redeclaration of type name \"{name}\" (declared at line 1)"))
        };
        for name in ["int8_t", "uint16_t", "int32_t", "uint64_t", "uintptr_t", "ptrdiff_t"] {
            assert_eq!(of(name), [INTEGERS], "{name}");
        }
        for name in ["point", "Interval", "print_t"] {
            assert!(of(name).is_empty(), "{name}");
        }
    }
}
