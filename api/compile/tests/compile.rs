//! With the genuine NVRTC: the one that is found, or the one that `ci/wheels nvrtc` fetched. Without it, each test prints why it was
//! not run; with `ONESIDED_REQUIRE_NVRTC` set, that is a failure (`ci/ptx`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use onesided_compile::{Cached, CompileError, Options, Ptx, Source, compile, find};

const SCALE: &str = "\
#include <nvshmemx.h>
template <typename T, int N> __global__ void scale(T *values) { values[threadIdx.x] *= N; }
__global__ void ring(int *values, int pe) { nvshmem_int_p(values, pe, pe + 1); nvshmemx_barrier_all_block(); }
";

/// What `ci/wheels nvrtc` fetched, unless the environment names another one.
fn nvrtc_file() -> Option<PathBuf> {
    let fetched = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/wheels/nvidia-cuda-nvrtc-13.0.88/nvidia/cu13/lib");
    let is_named = std::env::var_os("ONESIDED_NVRTC").is_some();
    (!is_named && Path::new(fetched).is_dir()).then(|| PathBuf::from(fetched))
}

/// Options with the NVRTC of this machine, without a cache. `None` if there is none.
fn nvrtc() -> Option<Options> {
    match find(nvrtc_file().as_deref()) {
        Ok(nvrtc) => Some(Options::new().nvrtc(nvrtc.file()).without_cache()),
        Err(why) if std::env::var_os("ONESIDED_REQUIRE_NVRTC").is_some() => panic!("{why}"),
        Err(why) => {
            println!("not run: {why}");
            None
        }
    }
}

fn compiled(text: &str, options: &Options) -> Ptx {
    compile(&Source::new("kernel.cu", text), options).unwrap_or_else(|why| panic!("{why}"))
}

fn refused(text: &str, options: &Options) -> String {
    compile(&Source::new("kernel.cu", text), options).unwrap_err().to_string()
}

#[test]
fn templates_are_found_by_their_names_and_calls_stay_symbolic() {
    let Some(options) = nvrtc() else { return };
    let ptx = compiled(SCALE, &options.name("scale<float, 32>").name("ring"));
    let names: Vec<_> = ptx.names().collect();
    assert_eq!(names, [("ring", "_Z4ringPii"), ("scale<float, 32>", "_Z5scaleIfLi32EEvPT_")]);
    for (_, name) in names {
        assert!(ptx.text().contains(&format!(".entry {name}(")), "{}", ptx.text());
    }
    for line in [".target sm_90", ".extern .func nvshmemx_barrier_all_block", "\t.file\t1 \"kernel.cu\"", ".loc"] {
        assert!(ptx.text().contains(line), "no {line}: {}", ptx.text());
    }
    assert!(ptx.nvrtc_version() >= (12, 0) && ptx.warnings().is_empty());
    assert_eq!(ptx.name("scale<int, 32>"), None);
}

#[test]
fn names_that_are_macros_and_constants_in_nvshmems_headers_are_so_here() {
    let Some(options) = nvrtc() else { return };
    let text = "#include <nvshmemx.h>\n\
                static_assert(NVSHMEM_PE_INVALID == -1 && NVSHMEMX_PE_ANY == 32768 && NVSHMEMX_PE_ALL == 32768, \"\");\n\
                __global__ void k(nvshmemx_qp_handle_t *pairs) {\n    nvshmem_sync(NVSHMEM_TEAM_WORLD);\n    \
                nvshmemx_qp_quiet(NVSHMEMX_PE_ANY, pairs, 1);\n}\n";
    let ptx = compiled(text, &options);
    assert!(ptx.text().contains("nvshmem_team_sync") && !ptx.text().contains("nvshmem_sync"), "{}", ptx.text());
}

/// A wait for any of several words returns `SIZE_MAX` where it waits for none. CUDA's headers define the limits, too, before or behind those of NVSHMEM.
#[test]
fn the_limits_of_numbers_have_their_names() {
    let Some(options) = nvrtc() else { return };
    let nvshmem = "#include <nvshmem.h>\n";
    let asserts = "static_assert(SIZE_MAX == ~size_t(0) && UINT64_MAX == ~0ull && INT64_MAX == ~0ull >> 1, \"\");\n\
                   static_assert(INT_MIN == INT32_MIN && INT32_MIN == -2147483648ll && UINT32_MAX == ~0u, \"\");\n\
                   __global__ void k(size_t *none) { *none = SIZE_MAX; }\n";
    assert!(compiled(&format!("{nvshmem}{asserts}"), &options).warnings().is_empty());
    let wheels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/wheels");
    let headers = wheels.join("nvidia-cuda-cccl-13.0.85/nvidia/cu13/include/cccl");
    let runtime = wheels.join("nvidia-cuda-runtime-13.0.96/nvidia/cu13/include");
    if !headers.is_dir() || !runtime.is_dir() {
        return println!("not run: no headers of CUDA (ci/wheels cuda)");
    }
    let (options, cuda) =
        (options.include(headers).include(runtime), "#include <cuda/std/limits>\n#include <cuda/std/cstdint>\n");
    for headers in [format!("{nvshmem}{cuda}"), format!("{cuda}{nvshmem}")] {
        let ptx = compiled(&format!("{headers}#include <cuda/std/climits>\n{asserts}"), &options);
        assert!(ptx.warnings().is_empty(), "{headers}: {:?}", ptx.warnings());
    }
}

/// Set in a process that [`run_alone`] has started.
const ALONE: &str = "ONESIDED_TEST_ALONE";

fn is_alone() -> bool {
    std::env::var_os(ALONE).is_some()
}

/// Runs one test of this file in a process of its own, for what a process has only one of: a current folder, libraries.
fn run_alone(test: &str, change: impl FnOnce(&mut Command)) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--exact", "--nocapture"]).env(ALONE, "1");
    change(&mut command);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{command:?}: {said}");
}

#[test]
fn the_ptx_names_the_source_as_it_was_named_in_every_folder() {
    let Some(options) = nvrtc() else { return };
    if !is_alone() {
        let folders = tempfile::tempdir().unwrap();
        for folder in ["/", "plain", "f\u{fc}r", "back\\slash", "a b"] {
            let folder = folders.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            run_alone("the_ptx_names_the_source_as_it_was_named_in_every_folder", |command| {
                command.current_dir(folder);
            });
        }
        return;
    }
    for (name, expected) in [("own.cu", "own.cu"), ("./own.cu", "./own.cu"), ("\u{e4}.cu", "\\303\\244.cu")] {
        let ptx = compile(&Source::new(name, SCALE), &options.clone().name("ring")).unwrap();
        assert!(ptx.text().contains(&format!("\t.file\t1 \"{expected}\"\n")), "{name}: {}", ptx.text());
    }
}

/// The PTX that is checked in, which `compile.py` made.
#[test]
fn the_ptx_is_that_of_the_checked_in_kernels() {
    let Some(options) = nvrtc() else { return };
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../backend-sim/ptx/kernels");
    let mut compared = 0;
    for name in ["axpy", "ring_put", "ring_reduce"] {
        let text = fs::read_to_string(kernels.join(format!("{name}.cu"))).unwrap();
        let ptx = compile(&Source::new(format!("{name}.cu"), text), &options).unwrap();
        if ptx.nvrtc_version() != (13, 0) {
            return println!("not run: the PTX is that of NVRTC 13.0, this is {:?}", ptx.nvrtc_version());
        }
        let lines = |text: &str| text.trim_end().lines().map(|line| line.trim_end().to_string()).collect::<Vec<_>>();
        let expected = fs::read_to_string(kernels.join(format!("{name}.ptx"))).unwrap();
        assert_eq!(lines(ptx.text()), lines(&expected), "{name}");
        compared += 1;
    }
    assert_eq!(compared, 3);
}

#[test]
fn folders_macros_and_architectures_have_their_effect() {
    let Some(options) = nvrtc() else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("own.h"), "#define WIDE 7\n").unwrap();
    let options = options.include(folder.path()).define("TALL", "35").define("EMPTY", "").architecture("compute_80");
    let ptx = compiled("#include \"own.h\"\n__global__ void k(int *x) { EMPTY *x = WIDE * TALL; }", &options);
    assert!(ptx.text().contains("245") && ptx.text().contains(".target sm_80"), "{}", ptx.text());
}

#[test]
fn functions_are_the_devices_if_that_is_said() {
    let Some(options) = nvrtc() else { return };
    let text = "int twice(int x) { return 2 * x; }\n__global__ void k(int *x) { *x = twice(*x); }\n";
    assert!(compiled(text, &options.clone().default_device()).text().contains("_Z1kPi("));
    let why = refused(text, &options);
    assert!(why.contains("kernel.cu:1: error: A function without execution space annotations"), "{why}");
}

/// Each with NVRTC's line and, where it is a known mistake, with what helps.
#[test]
fn what_does_not_compile_is_told_with_the_users_lines() {
    let Some(options) = nvrtc() else { return };
    if compiled(SCALE, &options).nvrtc_version() != (13, 0) {
        return println!("not run: the words are those of NVRTC 13.0");
    }
    let kernel = |body: &str| format!("#include <nvshmem.h>\n\n__global__ void k(int *x) {{\n    {body}\n}}\n");
    let texts = [
        kernel("*x = y;"),
        kernel("*x = __builtin_clz(*x);"),
        kernel("x = (int *)nvshmem_malloc(4);"),
        "#include <cstdint>\n__global__ void k() {}".to_string(),
        "#include <stdio.h>\n__global__ void k() {}".to_string(),
        "#include <vector>\n__global__ void k() {}".to_string(),
        "#include <cooperative_groups.h>\n__global__ void k() {}".to_string(),
        "#include <cub/cub.cuh>\n__global__ void k() {}".to_string(),
        "#include <cuda/std/cstdint>\n__global__ void k() {}".to_string(),
        "int half(int x) { return x / 2; }\n".to_string(),
        "__host__ int half(int x) { return x / 2; }\n__global__ void k(int *x) {\n*x = half(*x);\n}\n".to_string(),
        format!("typedef unsigned long uint64_t;\n{}", kernel("")),
    ];
    let said: Vec<_> = texts.iter().map(|text| refused(text, &options)).collect();
    let name = refused(SCALE, &options.clone().name("scale<float>"));
    let architecture = refused(SCALE, &options.architecture("compute_61"));
    insta::assert_snapshot!(said.into_iter().chain([name, architecture]).collect::<Vec<_>>().join("\n----\n"));
}

#[test]
fn warnings_do_not_end_a_compilation_and_are_cached_too() {
    let Some(options) = nvrtc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = options.cache(folder.path());
    for _ in 0..2 {
        let ptx = compiled("__global__ void k() {\n    int unused;\n}\n", &options);
        assert!(ptx.warnings().starts_with("kernel.cu:2: warning #177-D: variable \"unused\""), "{}", ptx.warnings());
    }
}

#[test]
fn what_was_compiled_is_read_from_the_cache_until_something_changes() {
    let Some(options) = nvrtc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (cache, includes) = (folder.path().join("cache"), folder.path().join("includes"));
    fs::create_dir(&includes).unwrap();
    fs::write(includes.join("own.h"), "#define N 1111\n").unwrap();
    let options = options.cache(&cache).include(&includes);
    let text = "#include \"own.h\"\n__global__ void k(int *x) { *x = N; }\n";
    let first = compiled(text, &options);
    let Cached::Written(file) = first.cached().clone() else { panic!("{:?}", first.cached()) };
    let second = compiled(text, &options);
    assert_eq!((second.text(), second.cached()), (first.text(), &Cached::Read(file.clone())));

    fs::write(includes.join("own.h"), "#define N 2222\n").unwrap();
    let third = compiled(text, &options);
    assert!(third.text().contains("2222") && matches!(third.cached(), Cached::Written(_)), "{third:?}");
    fs::write(includes.join("own.h"), "#define N 1111\n").unwrap();

    fs::write(&file, &fs::read(&file).unwrap()[..100]).unwrap();
    let fourth = compiled(text, &options);
    assert_eq!((fourth.text(), fourth.cached()), (first.text(), &Cached::Written(file)));

    let computed = compiled("#define OWN \"own.h\"\n#include OWN\n__global__ void k(int *x) { *x = N; }\n", &options);
    let Cached::No(why) = computed.cached() else { panic!("{computed:?}") };
    assert_eq!(why, "kernel.cu:2: what is included is not known before it is compiled");
}

#[test]
fn a_header_that_is_only_asked_for_counts_once_it_is_there() {
    let Some(options) = nvrtc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = options.cache(folder.path().join("cache")).include(folder.path());
    let text = "#if __has_include(<tuned.h>)\n#define N 1111\n#else\n#define N 2222\n#endif\n\
                __global__ void k(int *x) { *x = N; }\n";
    assert!(compiled(text, &options).text().contains("2222"));
    fs::write(folder.path().join("tuned.h"), "").unwrap();
    assert!(compiled(text, &options).text().contains("1111"));
}

/// Else the cache would have the PTX of one header under the name of another.
#[test]
fn what_a_header_changed_under_is_not_cached() {
    let Some(options) = nvrtc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let header = folder.path().join("own.h");
    let write = |n: u64| {
        fs::write(folder.path().join("next"), format!("#define N {n}\n")).unwrap();
        fs::rename(folder.path().join("next"), &header).unwrap(); // whoever reads it sees all of it
    };
    write(0);
    let options = options.cache(folder.path().join("cache")).include(folder.path());
    let text = "#include <own.h>\n__global__ void k(int *x) { *x = N; }\n";
    let is_done = AtomicBool::new(false);
    let attempts: Vec<_> = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            for n in (1..).take_while(|_| !is_done.load(Ordering::Relaxed)) {
                write(n);
            }
        });
        let attempts = (0..5).map(|_| compile(&Source::new("kernel.cu", text), &options)).collect();
        is_done.store(true, Ordering::Relaxed);
        writing.join().unwrap();
        attempts
    });
    // On a machine that is busy a compilation may come between two changes.
    let changed = Cached::No("a file that may be included was changed while it was compiled".to_string());
    let attempts: Vec<_> = attempts.into_iter().map(|ptx| ptx.unwrap().cached().clone()).collect();
    assert!(attempts.contains(&changed), "{attempts:?}");
    assert!(matches!(compiled(text, &options).cached(), Cached::Written(_)));
}

/// CUB computes names of headers by macros. What `ci/wheels cuda` fetched has its headers.
#[test]
fn a_kernel_with_cub_and_cooperative_groups_is_cached_too() {
    let Some(options) = nvrtc() else { return };
    let wheels = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/wheels");
    let folder = tempfile::tempdir().unwrap();
    let mut options = options.cache(folder.path());
    for include in [
        "nvidia-cuda-runtime-13.0.96/nvidia/cu13/include",
        "nvidia-cuda-crt-13.0.88/nvidia/cu13/include",
        "nvidia-cuda-cccl-13.0.85/nvidia/cu13/include/cccl",
    ] {
        if !wheels.join(include).is_dir() {
            return println!("not run: no headers of CUDA (ci/wheels cuda)");
        }
        options = options.include(wheels.join(include));
    }
    let text = "#include <nvshmem.h>\n#include <cooperative_groups.h>\n#include <cub/block/block_scan.cuh>\n\
                __global__ void k(int *x) {\n    using Scan = cub::BlockScan<int, 64>;\n    \
                __shared__ typename Scan::TempStorage room;\n    int sum;\n    \
                Scan(room).ExclusiveSum(x[threadIdx.x], sum);\n    cooperative_groups::this_grid().sync();\n    \
                nvshmem_int_p(x, sum, 0);\n}\n";
    let first = compiled(text, &options);
    assert!(first.text().contains("nvshmem_int_p"), "{}", first.text());
    let second = compiled(text, &options);
    assert!(matches!(second.cached(), Cached::Read(_)), "{:?}", (first.cached(), second.cached()));
    assert_eq!(first.text(), second.text());
}

#[test]
fn without_a_cache_nothing_is_written_and_the_ptx_is_there() {
    let Some(options) = nvrtc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "no folder").unwrap();
    let ptx = compiled(SCALE, &options.clone().cache(file.join("cache")));
    assert!(matches!(ptx.cached(), Cached::No(why) if why.contains("cannot be written")), "{:?}", ptx.cached());
    assert_eq!(compiled(SCALE, &options).cached(), &Cached::No("the cache is switched off".to_string()));
}

#[test]
fn several_threads_compile_at_once_into_one_cache() {
    let Some(options) = nvrtc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = options.cache(folder.path());
    let texts: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| compiled(SCALE, &options).into_text())).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(texts.iter().all(|text| *text == texts[0]));
}

/// Prints how long it takes; the README has the figure. No time is a failure.
#[test]
fn a_kernel_of_100_lines_comes_from_the_cache_at_once() {
    let Some(options) = nvrtc() else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = options.cache(folder.path());
    let lines: String = (0..100).map(|n| format!("    x[{n}] = nvshmem_int_g(x + {n}, pe) + {n};\n")).collect();
    let text = format!("#include <nvshmemx.h>\n__global__ void k(int *x, int pe) {{\n{lines}}}\n");
    let mut times = (0..20).map(|_| {
        let started = Instant::now();
        let ptx = compiled(&text, &options);
        (started.elapsed(), matches!(ptx.cached(), Cached::Read(_)))
    });
    let (first, was_cached) = times.next().unwrap();
    assert!(!was_cached);
    let mut later: Vec<Duration> = times.map(|(time, was_cached)| was_cached.then_some(time).unwrap()).collect();
    later.sort();
    println!("compiled in {first:?}; from the cache in {:?} (median of {})", later[later.len() / 2], later.len());
}

#[cfg(unix)]
#[test]
fn a_link_to_nvrtc_is_enough_and_a_copy_of_one_of_its_libraries_is_not() {
    let Some(options) = nvrtc() else { return };
    if is_alone() {
        let is_link = std::env::var("ONESIDED_NVRTC").unwrap().ends_with("link.so");
        return match compile(&Source::new("kernel.cu", SCALE), &options.name("ring")) {
            Ok(_) if is_link => {}
            Ok(_) => println!("not run: the system's loader has libnvrtc-builtins"),
            Err(why) => {
                let why = why.to_string();
                assert!(
                    !is_link && why.contains("copy.so: libnvrtc-builtins.so.") && why.contains("; remedy: "),
                    "{why}"
                );
            }
        };
    }
    let file = find(nvrtc_file().as_deref()).unwrap().file().canonicalize();
    let Ok(file) = file else { return println!("not run: only the system's loader knows where NVRTC is") };
    let folder = tempfile::tempdir().unwrap();
    let [link, copy] = ["link.so", "copy.so"].map(|name| folder.path().join(name));
    std::os::unix::fs::symlink(&file, &link).unwrap();
    fs::hard_link(&file, &copy).or_else(|_| fs::copy(&file, &copy).map(drop)).unwrap();
    for named in [link, copy] {
        run_alone("a_link_to_nvrtc_is_enough_and_a_copy_of_one_of_its_libraries_is_not", |command| {
            command.env("ONESIDED_NVRTC", named).env_remove("LD_LIBRARY_PATH");
        });
    }
}

#[test]
fn without_nvrtc_the_error_says_in_one_line_how_to_get_it() {
    let why = find(Some(Path::new("/no/such/libnvrtc.so.13"))).unwrap_err();
    assert!(matches!(&why, CompileError::Unusable { .. }), "{why:?}");
    let why = why.to_string();
    assert!(why.contains("/no/such/libnvrtc.so.13: the path given names it: no such file"), "{why}");
    assert!(why.contains("pip install nvidia-cuda-nvrtc") && !why.contains('\n'), "{why}");
    let absent = CompileError::NotFound { looked: vec!["ONESIDED_NVRTC is not set".into(), "no python3".into()] };
    insta::assert_snapshot!(absent);
}
