//! With the genuine NVRTC, nvJitLink and NVSHMEM: those that `ci/wheels` fetched. No GPU is needed. Without them, each test prints why it
//! was not run; with `ONESIDED_REQUIRE_NVRTC` set, that is a failure (`ci/ptx`).

use std::path::{Path, PathBuf};
use std::time::Instant;

use onesided_compile::gpu::{
    Installation, LinkError, LinkOptions, externals, find_linker, inlined, link, missing, provide,
};
use onesided_compile::{Cached, Options, Source, compile};

/// What most kernels call: it takes no longer than one such function.
const QUICK: &str = "\
#include <nvshmemx.h>
extern \"C\" __global__ void k(int *x, float *f, uint64_t *s, int pe) {
    nvshmem_int_p(x, nvshmem_my_pe() + nvshmem_team_my_pe(0), pe);
    f[0] = nvshmem_float_g(f, pe);
    nvshmemx_float_put_block(f, f + 8, 3, pe);
    nvshmem_fence();
    nvshmemx_signal_op(s, 1, NVSHMEM_SIGNAL_ADD, pe);
    nvshmem_signal_wait_until(s, NVSHMEM_CMP_GE, 1);
    nvshmem_int_wait_until(x, NVSHMEM_CMP_EQ, 3);
    s[1] = nvshmem_uint64_atomic_fetch_add(s + 2, 1, pe);
    nvshmem_int_atomic_inc(x + 1, pe);
    nvshmem_float_atomic_set(f + 1, 1.5f, pe);
    nvshmem_short_p((short *)x, nvshmem_uchar_g((unsigned char *)x, pe), pe); // PTX widens what has less than 32 bits
    *(int *)nvshmem_ptr(x, pe) = 1;
    nvshmem_quiet();
    nvshmemx_barrier_all_block();
    printf(\"%d\\n\", x[0]);
}
";

const SLOW: &str = "\
#include <nvshmemx.h>
extern \"C\" __global__ void k(int *x, float *f) {
    nvshmem_int_p(x, 1, 0);
    nvshmemx_float_sum_reduce_block(NVSHMEM_TEAM_WORLD, f, f + 8, 8);
    nvshmemx_fcollectmem_block(NVSHMEM_TEAM_WORLD, f, f + 8, 8);
}
";

fn wheels() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/wheels")
}

/// What was fetched: the versions of NVSHMEM that are there, and options with the other parts. `None` if there is none.
fn fetched() -> Option<(Vec<Installation>, LinkOptions)> {
    let installations = [[3, 4, 5], [3, 8, 0]].map(|version| {
        let [major, minor, patch] = version;
        let folder = format!("nvidia-nvshmem-cu13-{major}.{minor}.{patch}/nvidia/nvshmem/lib/libnvshmem_host.so.3");
        Installation::of(&wheels().join(folder), version).map_err(|why| why.to_string())
    });
    let parts = ["nvidia-cuda-nvrtc-13.0.88", "nvidia-nvjitlink-13.0.88"]
        .map(|part| wheels().join(part).join("nvidia/cu13/lib"));
    let headers = ["nvidia-cuda-runtime-13.0.96", "nvidia-cuda-crt-13.0.88", "nvidia-cuda-cccl-13.0.85"];
    let headers = headers.map(|part| wheels().join(part).join("nvidia/cu13/include"));
    let missing = installations.iter().find_map(|found| found.clone().err()).or_else(|| {
        let absent = parts.iter().chain(&headers).find(|folder| !folder.is_dir())?;
        Some(format!("no {}", absent.display()))
    });
    if let Some(why) = missing {
        assert!(std::env::var_os("ONESIDED_REQUIRE_NVRTC").is_none(), "{why}");
        println!("not run: {why} (ci/wheels, ci/wheels nvrtc, nvjitlink, cuda)");
        return None;
    }
    let [nvrtc, nvjitlink] = parts;
    let options = LinkOptions::new("sm_90").nvrtc(nvrtc).nvjitlink(nvjitlink).without_cache();
    let options = headers.into_iter().fold(options, LinkOptions::cuda);
    Some((installations.into_iter().flatten().collect(), options))
}

fn ptx(text: &str) -> String {
    let nvrtc = wheels().join("nvidia-cuda-nvrtc-13.0.88/nvidia/cu13/lib");
    let options = Options::new().nvrtc(nvrtc).without_cache();
    compile(&Source::new("kernel.cu", text), &options).unwrap_or_else(|why| panic!("{why}")).into_text()
}

/// A cubin is an ELF file, with the kernel's code in a section of its own.
fn has_kernel(bytes: &[u8]) -> bool {
    let section = b".text.k\0";
    bytes.starts_with(b"\x7fELF") && bytes.windows(section.len()).any(|window| window == section)
}

#[test]
fn what_kernels_call_most_is_linked_with_both_versions_and_cached() {
    let Some((installations, options)) = fetched() else { return };
    let ptx = ptx(QUICK);
    let called: Vec<_> = externals(&ptx).unwrap().into_iter().filter(|function| function.is_nvshmem()).collect();
    assert_eq!(called.len(), 17, "{called:?}");
    for installation in installations {
        let folder = tempfile::tempdir().unwrap();
        let options = options.clone().cache(folder.path());
        let first = link(&ptx, "kernel.ptx", &installation, &options).unwrap_or_else(|why| panic!("{why}"));
        assert!(has_kernel(first.bytes()) && first.has_nvshmem());
        assert_eq!(first.functions(), called.iter().map(|function| function.name.clone()).collect::<Vec<_>>());
        assert!(matches!(first.cached(), Cached::Written(_)));
        let begun = Instant::now();
        let second = link(&ptx, "kernel.ptx", &installation, &options).unwrap();
        println!("{installation:?} from the cache in {:?}, {} bytes", begun.elapsed(), second.bytes().len());
        assert!(matches!(second.cached(), Cached::Read(_)));
        assert_eq!(second.bytes(), first.bytes());
        // Another kernel that calls the same is only linked.
        let other = link(&ptx.replace("kernel.cu", "other.cu"), "other.ptx", &installation, &options).unwrap();
        assert!(has_kernel(other.bytes()) && matches!(other.cached(), Cached::Written(_)));
        let providers = std::fs::read_dir(folder.path()).unwrap().flatten();
        let providers = providers.filter(|entry| entry.file_name().to_string_lossy().starts_with("provider-"));
        assert_eq!(providers.filter(|entry| !entry.path().ends_with(".lock")).count(), 2, "one, and its lock");
    }
}

/// The sources of all examples as one text: what they call is compiled once. Both ways: as the simulator runs them, and with NVSHMEM's own
/// headers.
#[test]
fn the_kernels_of_the_examples_are_linked_with_both_versions() {
    let Some((installations, options)) = fetched() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/src/kernels");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|file| file.extension().is_some_and(|end| end == "cu")).collect();
    files.sort();
    assert!(files.len() >= 9);
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    let ptx = ptx(&text);
    for installation in &installations {
        let linked = link(&ptx, "examples.ptx", installation, &options).unwrap_or_else(|why| panic!("{why}"));
        assert!(linked.functions().len() >= 15, "{:?}", linked.functions());
        let own = inlined(&Source::new("examples.cu", &text), &Options::new(), installation, &options);
        assert!(own.unwrap_or_else(|why| panic!("{why}")).bytes().starts_with(b"\x7fELF"));
    }
}

/// Each takes NVRTC 10 to 40 s, so only the last version is asked, unless `ONESIDED_SLOW` is set.
#[test]
fn collectives_are_linked_from_units_of_their_own() {
    let Some((installations, options)) = fetched() else { return };
    let ptx = ptx(SLOW);
    let all = std::env::var_os("ONESIDED_SLOW").is_some();
    for installation in installations.iter().rev().take(if all { 2 } else { 1 }) {
        let linked = link(&ptx, "kernel.ptx", installation, &options).unwrap_or_else(|why| panic!("{why}"));
        assert!(has_kernel(linked.bytes()));
        assert_eq!(linked.functions().len(), 3);
    }
}

#[test]
fn several_threads_compile_the_same_functions_once() {
    let Some((installations, options)) = fetched() else { return };
    let folder = tempfile::tempdir().unwrap();
    static COMPILED: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let options =
        options.cache(folder.path()).notice(|_| _ = COMPILED.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let text = "#include <nvshmem.h>\nextern \"C\" __global__ void k(int *x) { *x = nvshmem_my_pe(); }\n";
    let ptx = ptx(text);
    let linked = || link(&ptx, "kernel.ptx", &installations[1], &options).unwrap();
    let begun = Instant::now();
    linked();
    let alone = begun.elapsed();
    std::fs::remove_dir_all(folder.path()).unwrap();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(linked)).collect();
        let cubins: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(cubins.iter().all(|cubin| cubin.bytes() == cubins[0].bytes()));
    });
    println!("one in {alone:?}, four at once in {:?}", begun.elapsed());
    assert_eq!(COMPILED.load(std::sync::atomic::Ordering::Relaxed), 2, "one, and one for the four");
}

#[test]
fn functions_are_compiled_ahead_and_serve_a_copy_of_the_installation() {
    let Some((installations, options)) = fetched() else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = options.cache(folder.path().join("cache"));
    let ptx = ptx("#include <nvshmem.h>\nextern \"C\" __global__ void k(int *x) { *x = nvshmem_my_pe(); }\n");
    let missing = |installation| missing(&ptx, "kernel.ptx", installation, &options).unwrap();
    assert_eq!(missing(&installations[1]), [0]);
    provide(&ptx, "kernel.ptx", &installations[1], &options, 1).unwrap();
    assert_eq!(missing(&installations[1]), [0], "there is no such text");
    provide(&ptx, "kernel.ptx", &installations[1], &options, 0).unwrap();
    assert_eq!((missing(&installations[1]), missing(&installations[0])), (vec![], vec![0]), "of the version");

    let silent = options.clone().notice(|line| panic!("nothing is compiled: {line}"));
    let first = link(&ptx, "kernel.ptx", &installations[1], &silent).unwrap();
    let cache = std::fs::read_dir(folder.path().join("cache")).unwrap().flatten();
    for provider in cache.filter(|entry| entry.file_name().to_string_lossy().starts_with("provider-")) {
        std::fs::remove_file(provider.path()).unwrap();
    }
    assert!(missing(&installations[1]).is_empty(), "it is linked");
    let own = installations[1].library().parent().unwrap();
    let (lib, include) = (folder.path().join("lib"), folder.path().join("include"));
    std::fs::create_dir_all(&lib).unwrap();
    std::fs::copy(installations[1].library(), lib.join("libnvshmem_device.a")).unwrap();
    std::os::unix::fs::symlink(own.parent().unwrap().join("include"), include).unwrap();
    let copy = Installation::of(&lib.join("libnvshmem_host.so.3"), [3, 8, 0]).unwrap();
    let second = link(&ptx, "kernel.ptx", &copy, &silent).unwrap();
    assert!(matches!(second.cached(), Cached::Read(_)) && second.bytes() == first.bytes());
}

#[test]
fn ptx_without_nvshmem_needs_no_nvrtc() {
    let Some((installations, options)) = fetched() else { return };
    let ptx = ptx("extern \"C\" __global__ void k(int *x) { *x = 1; }\n");
    let linked = link(&ptx, "kernel.ptx", &installations[1], &options.nvrtc("/no/such/file")).unwrap();
    assert!(has_kernel(linked.bytes()) && !linked.has_nvshmem());
}

/// In either way to machine code, and no code comes of it.
#[test]
fn a_mark_of_a_race_is_passed_over() {
    let Some((installations, options)) = fetched() else { return };
    let marked = "#include <onesided.h>\nextern \"C\" __global__ void k(int *x) {\n    \
                  ONESIDED_INTENDED_RACE(\"any value\");\n    *x = 1;\n}\n";
    let plain = marked.replace("    ONESIDED_INTENDED_RACE(\"any value\");\n", "\n");
    assert!(ptx(marked).contains("\t.pragma \"onesided.intended_race: any value\";"), "{}", ptx(marked));
    let code = |bytes: &[u8]| {
        use object::{Object as _, ObjectSection as _};
        let file = object::read::elf::ElfFile64::<object::Endianness>::parse(bytes).unwrap();
        file.section_by_name(".text.k").unwrap().data().unwrap().to_vec()
    };
    let linked = [marked, &plain].map(|text| link(&ptx(text), "kernel.ptx", &installations[1], &options).unwrap());
    assert_eq!(code(linked[0].bytes()), code(linked[1].bytes()));
    for installation in &installations {
        let compiled = [marked, &plain].map(|text| {
            inlined(&Source::new("kernel.cu", text), &Options::new(), installation, &options)
                .unwrap_or_else(|why| panic!("{why}"))
        });
        assert_eq!(code(compiled[0].bytes()), code(compiled[1].bytes()));
    }
}

#[test]
fn source_is_compiled_with_nvshmems_headers_on_its_own_lines() {
    let Some((installations, options)) = fetched() else { return };
    let text = "\n#include <nvshmemx.h>\ntemplate <int N> __global__ void k(int *x, int pe) {\n    \
                nvshmem_int_p(x, N, pe);\n}\n";
    for installation in &installations {
        let folder = tempfile::tempdir().unwrap();
        let options = options.clone().cache(folder.path());
        let names = Options::new().name("k<3>");
        let both = [(); 2].map(|()| inlined(&Source::new("own.cu", text), &names, installation, &options));
        let [first, second] = both.map(|linked| linked.unwrap_or_else(|why| panic!("{why}")));
        assert_eq!((first.name("k<3>"), second.name("k<3>")), (Some("_Z1kILi3EEvPii"), Some("_Z1kILi3EEvPii")));
        assert!(matches!(second.cached(), Cached::Read(_)) && second.bytes() == first.bytes());
    }
    let wrong = text.replace("N, pe", "N, qe");
    let why =
        inlined(&Source::new("own.cu", wrong), &Options::new().name("k<3>"), &installations[1], &options).unwrap_err();
    assert!(why.to_string().contains("own.cu:4: error: identifier \"qe\" is undefined"), "{why}");
}

/// Both folders have a header of that name: the first decides.
#[test]
fn source_in_other_folders_is_not_taken_from_the_cache() {
    let Some((installations, options)) = fetched() else { return };
    let folder = tempfile::tempdir().unwrap();
    let folders = [("one", 111_111), ("other", 222_222)].map(|(name, value)| {
        let own = folder.path().join(name);
        std::fs::create_dir(&own).unwrap();
        std::fs::write(own.join("own.h"), format!("#define VALUE {value}\n")).unwrap();
        own
    });
    let options = options.cache(folder.path().join("cache"));
    let source = Source::new("own.cu", "#include <own.h>\nextern \"C\" __global__ void k(int *x) { *x = VALUE; }\n");
    let linked = |folders: [&PathBuf; 2]| {
        let source_options = folders.into_iter().fold(Options::new(), Options::include);
        inlined(&source, &source_options, &installations[1], &options).unwrap_or_else(|why| panic!("{why}"))
    };
    let [one, other] = &folders;
    let (first, second) = (linked([one, other]), linked([other, one]));
    assert!(matches!(second.cached(), Cached::Written(_)) && second.bytes() != first.bytes());
}

#[test]
fn what_cannot_be_linked_is_told_with_its_reason() {
    let Some((installations, options)) = fetched() else { return };
    let text = "#include <nvshmem.h>\nextern \"C\" __device__ int own(int);\n\
                extern \"C\" __global__ void k(int *x) { *x = own(*x); }\n";
    let plain = ptx("extern \"C\" __global__ void k(int *x) { *x = 1; }\n");
    let refused = |ptx: &str, options: &LinkOptions| match link(ptx, "kernel.ptx", &installations[1], options) {
        Ok(_) => panic!("it is linked"),
        Err(why) => why,
    };
    let why = refused(&ptx(text), &options).to_string();
    assert_eq!(why, "kernel.ptx: it calls own, which neither NVSHMEM nor the driver has");
    let signed = "#include <nvshmem.h>\nextern \"C\" __global__ void k(signed char *x) { nvshmem_schar_p(x, 1, 0); }\n";
    let why = refused(&ptx(signed), &options).to_string();
    assert!(
        why.contains("declared for a type that the library does not have: it lacks _Z23nvshmemi_transfer_rma_p"),
        "{why}"
    );
    let why = refused(&plain.replace("st.global", "no.such"), &options).to_string();
    assert!(why.starts_with("kernel.ptx: line ") && why.contains("instruction: 'no'"), "{why}");
    let why = refused(&plain[..plain.len() * 3 / 4], &options).to_string();
    assert!(why.starts_with("kernel.ptx: line "), "{why}");
    let why = refused(&plain, &options.clone().nvjitlink("/no/such/file")).to_string();
    assert!(why.contains("the path given names it: no such file; remedy: pip install nvidia-nvjitlink"), "{why}");

    let declared =
        |function: &str| format!(".version 9.0\n.target sm_90\n.address_size 64\n.extern .func {function};\n");
    let why = refused(&declared("nvshmem_no_such_thing ()"), &options);
    let missing = LinkError::Missing { function: "nvshmem_no_such_thing".to_string(), version: [3, 8, 0] };
    assert_eq!(why, missing);
    let why = refused(&declared("nvshmem_int_p (.param .b64 a, .param .b32 b)"), &options).to_string();
    let expected = "nvshmem_int_p is called with 2 arguments of 8 and 4 bytes, and no result, which is not how NVSHMEM 3.8.0 declares it";
    assert!(why.contains(expected), "{why}");
    for wrong in [
        "(.param .b32 r) nvshmem_int_p (.param .b64 r, .param .b64 a, .param .b64 b, .param .b32 c)",
        "nvshmem_float_p (.param .b64 a, .param .b64 b, .param .b32 c)",
        "_Z13nvshmem_int_p_nbst (.param .b64 a, .param .b32 b, .param .b32 c)",
    ] {
        let why = refused(&declared(wrong), &options).to_string();
        assert!(why.contains(" which is not how NVSHMEM 3.8.0 declares it"), "{wrong}: {why}");
    }
}

/// The headers declare the end of the job, and the library has it.
#[test]
fn what_only_the_library_has_is_linked_from_there() {
    let Some((installations, options)) = fetched() else { return };
    let text = "#include <nvshmem.h>\nextern \"C\" __global__ void k(int *x) { if (*x) nvshmem_global_exit(*x); nvshmem_int_p(x, 1, 0); }\n";
    let plain = ptx(text);
    // NVSHMEM4Py's form of it is made of the same function
    let mangled = ".extern .func (.param .b32 r) _Z19nvshmem_global_exit_nbst (.param .b64 a, .param .b64 b);";
    let both = plain.replacen(".extern .func", &format!("{mangled}\n.extern .func"), 1);
    let numba = plain.replace("nvshmem_global_exit\n(\n", "nvshmem_global_exit\n(\n\t.param .b64 r,\n");
    assert!(both != plain && numba != plain);
    for installation in &installations {
        for ptx in [&plain, &both] {
            let cubin = link(ptx, "kernel.ptx", installation, &options).unwrap_or_else(|why| panic!("{why}"));
            assert!(has_kernel(cubin.bytes()) && cubin.functions().contains(&"nvshmem_global_exit".to_string()));
        }
        let own = inlined(&Source::new("own.cu", text), &Options::new(), installation, &options);
        assert!(has_kernel(own.unwrap_or_else(|why| panic!("{why}")).bytes()));
        let why = link(&numba, "kernel.ptx", installation, &options).unwrap_err().to_string();
        assert!(
            why.contains("nvshmem_global_exit is called with 2 arguments of 8 and 4 bytes, and no result"),
            "{why}"
        );
    }
}

/// What 3.8 has and 3.4.5 has not: shared memory for the library, a barrier by four warps, and regions.
#[test]
fn what_only_a_newer_version_has_is_linked_with_that() {
    let Some((installations, options)) = fetched() else { return };
    let text = "#include <nvshmemx.h>\nextern \"C\" __global__ void k(int *x) {\n    extern __shared__ char room[];\n\
                nvshmemx_give_smem(room, nvshmemx_ask_smem(NVSHMEMX_SMEM_MINIMUM));\n\
                nvshmem_int_p(x, nvshmemx_barrier_warpgroup(NVSHMEM_TEAM_WORLD) == NVSHMEMX_SUCCESS, 0);\n\
                nvshmemx_release_smem();\n\
                nvshmemx_region_handle_t region;\n\
                nvshmemx_region_attrs_t attrs = NVSHMEMX_REGION_ATTRS_INITIALIZER;\n\
                nvshmemx_region_start_block(&region, &attrs);\n\
                nvshmemx_region_is_active(NVSHMEMX_REGION_HINT_BATCH_RMA, x + 1);\n\
                nvshmemx_region_stop_block(region);\n}\n";
    let ptx = ptx(text);
    let [old, new] = &installations[..] else { panic!("two versions") };
    let cubin = link(&ptx, "kernel.ptx", new, &options).unwrap_or_else(|why| panic!("{why}"));
    assert!(has_kernel(cubin.bytes()) && cubin.has_nvshmem());
    match link(&ptx, "kernel.ptx", old, &options) {
        Err(LinkError::Missing { version: [3, 4, 5], .. }) => {}
        other => panic!("{other:?}"),
    }
}

/// What Numba, NVSHMEM4Py, Triton and CuTe DSL give: each calls NVSHMEM in its own way. The rings with 3.4.5, the exchanges with 3.8.0.
#[test]
fn the_kernels_of_other_front_ends_are_linked() {
    let Some((installations, options)) = fetched() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/src/kernels/python");
    for front in ["numba", "nvshmem4py", "triton", "cute"] {
        for (kernel, installation) in ["ring", "exchange"].into_iter().zip(&installations) {
            let name = format!("{front}.{kernel}.ptx");
            let ptx = std::fs::read_to_string(folder.join(&name)).unwrap();
            let linked = link(&ptx, &name, installation, &options).unwrap_or_else(|why| panic!("{why}"));
            assert!(linked.functions().len() >= 3, "{name}: {:?}", linked.functions());
        }
    }
}

#[test]
fn ptx_of_a_newer_version_is_tried_as_an_older_one() {
    let Some((installations, options)) = fetched() else { return };
    let plain = ptx("extern \"C\" __global__ void k(int *x) { *x = 1; }\n").replace(".version 9.0", ".version 9.9");
    let linked = link(&plain, "kernel.ptx", &installations[1], &options).unwrap();
    assert!(has_kernel(linked.bytes()));
    let why = link(&plain.replace("st.global", "no.such"), "kernel.ptx", &installations[1], &options).unwrap_err();
    let expected = "kernel.ptx: it is PTX of version 9.9; nvJitLink 13.0 understands 9.0, and as that it does not assemble; remedy";
    assert!(why.to_string().starts_with(expected), "{why}");
}

#[test]
fn without_nvjitlink_the_error_says_in_one_line_how_to_get_it() {
    let why = find_linker(Some(Path::new("/no/such/libnvJitLink.so.13"))).unwrap_err().to_string();
    assert!(why.contains("/no/such/libnvJitLink.so.13: the path given names it: no such file"), "{why}");
    assert!(why.contains("pip install nvidia-nvjitlink") && !why.contains('\n'), "{why}");
}
