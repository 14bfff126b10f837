//! C++ that calls NVSHMEM directly, compiled against the headers beside the library that our side uses: as a program, and
//! as a shared object for processes of ours.

use std::cell::Cell;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use onesided_harness::launch::on_path;
use tempfile::TempDir;

use crate::process;

/// The program; its first comment says how it is called.
const SOURCE: &str = include_str!("nvshmem.cpp");

/// What the program includes, and the shared object consists of: the loops of calls.
const LOOPS: &str = include_str!("nvshmem_loops.cpp");

/// The compiler. Not nvcc: there is no code for GPUs, and nvcc would only call this one.
const COMPILER: &str = "g++";

/// How long compiling may take; it takes seconds.
const LIMIT: Duration = Duration::from_secs(120);

/// The compiled program, and what is needed to compile its loops once more.
#[derive(Debug)]
pub(crate) struct Nvshmem {
    folder: TempDir,
    library: PathBuf,
    /// Folders of header files: NVSHMEM's and CUDA's.
    includes: [PathBuf; 2],
    compiler: String,
    /// Files for unique ids that were given away.
    ids: Cell<u32>,
}

/// CUDA's header files and its runtime library.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cuda {
    include: PathBuf,
    runtime: PathBuf,
}

impl Nvshmem {
    /// Compiles the program for this library, or says what is missing here.
    pub(crate) fn compile(library: &Path) -> Result<Nvshmem, String> {
        Nvshmem::compile_with(library, &toolkits(library), COMPILER)
    }

    fn compile_with(library: &Path, toolkits: &[PathBuf], compiler: &str) -> Result<Nvshmem, String> {
        let include = headers(library)?;
        let cuda = Cuda::find(toolkits)?;
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let nvshmem = Nvshmem {
            folder,
            library: library.to_path_buf(),
            includes: [include, cuda.include],
            compiler: compiler.to_string(),
            ids: Cell::new(0),
        };
        nvshmem.write("nvshmem_loops.cpp", LOOPS)?;
        let source = nvshmem.write("nvshmem.cpp", SOURCE)?;
        let mut command = nvshmem.command(&nvshmem.program());
        command.arg(source).arg(library).arg(&cuda.runtime).args(["-ldl", "-lrt", "-lpthread"]);
        process::run(&mut command, LIMIT).map_err(|why| format!("the C++ peer cannot be compiled: {why}"))?;
        Ok(nvshmem)
    }

    /// Compiles the loops alone, as a shared object that a process with the same library can open. A missing function is an
    /// error here. All functions are looked up when the object is opened, and not while it is measured.
    pub(crate) fn compile_loops(&self) -> Result<PathBuf, String> {
        let source = self.folder.path().join("nvshmem_loops.cpp");
        let object = self.folder.path().join("nvshmem_loops.so");
        let mut command = self.command(&object);
        command.args(["-shared", "-fPIC", "-Wl,-z,defs", "-Wl,-z,now"]).arg(source).arg(&self.library).arg("-ldl");
        process::run(&mut command, LIMIT).map_err(|why| format!("the C++ loops cannot be compiled: {why}"))?;
        Ok(object)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        let file = self.folder.path().join(name);
        fs::write(&file, text).map_err(|error| format!("{} cannot be written: {error}", file.display()))?;
        Ok(file)
    }

    /// The compiler with what both outputs need.
    fn command(&self, output: &Path) -> Command {
        let mut command = Command::new(&self.compiler);
        command.args(["-std=c++17", "-O2"]);
        for include in &self.includes {
            command.arg("-I").arg(include);
        }
        if let Some(folder) = self.library.parent() {
            // The same file at run time, wherever the loader would look.
            command.arg([OsString::from("-Wl,-rpath,"), folder.into()].into_iter().collect::<OsString>());
        }
        command.arg("-o").arg(output);
        command
    }

    /// The program's file.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder.path().join("nvshmem")
    }

    /// A path for one job's unique id: no file is there.
    pub(crate) fn id_file(&self) -> PathBuf {
        self.ids.set(self.ids.get() + 1);
        self.folder.path().join(format!("id-{}", self.ids.get()))
    }
}

/// The folder with NVSHMEM's header files, which lies beside the one with its libraries.
fn headers(library: &Path) -> Result<PathBuf, String> {
    let include = library.parent().and_then(Path::parent).map(|home| home.join("include"));
    let include = include.ok_or_else(|| format!("{} lies in no folder lib", library.display()))?;
    let header = include.join("nvshmem_host.h");
    if header.is_file() {
        Ok(include)
    } else {
        Err(format!("no header files for the C++ peer: no {}", header.display()))
    }
}

/// Where CUDA may be installed: as the environment says, where nvcc is, in the usual place, in the Python package
/// beside NVSHMEM's.
fn toolkits(library: &Path) -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let nvcc = on_path("nvcc", &[]).filter_map(|nvcc| fs::canonicalize(nvcc).ok());
    let nvcc = nvcc.filter_map(|nvcc| Some(nvcc.parent()?.parent()?.to_path_buf()));
    let packages = library.ancestors().nth(3);
    let python = packages.into_iter().flat_map(|nvidia| ["cu13", "cuda_runtime"].map(|name| nvidia.join(name)));
    named.chain(nvcc).chain([PathBuf::from("/usr/local/cuda"), PathBuf::from("/usr")]).chain(python).collect()
}

impl Cuda {
    /// The first folder with both. The runtime is linked statically, as nvcc does it, where that is there.
    fn find(toolkits: &[PathBuf]) -> Result<Cuda, String> {
        const INCLUDES: [&str; 2] = ["include", "targets/x86_64-linux/include"];
        const LIBRARIES: [&str; 4] = ["lib64", "lib", "targets/x86_64-linux/lib", "lib/x86_64-linux-gnu"];
        const RUNTIMES: [&str; 2] = ["libcudart_static.a", "libcudart.so"];
        let complete = |toolkit: &PathBuf| {
            let include = INCLUDES.map(|name| toolkit.join(name)).into_iter();
            let include = include.into_iter().find(|include| include.join("cuda_runtime.h").is_file())?;
            let files = RUNTIMES.into_iter().flat_map(|file| LIBRARIES.map(|folder| toolkit.join(folder).join(file)));
            let runtime = files.into_iter().find(|file| file.is_file())?;
            Some(Cuda { include, runtime })
        };
        toolkits.iter().find_map(complete).ok_or_else(|| {
            let looked: Vec<String> = toolkits.iter().map(|folder| folder.display().to_string()).collect();
            format!(
                "no cuda_runtime.h with libcudart for the C++ peer in {}; CUDA_HOME may name them",
                looked.join(", ")
            )
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use onesided_nvshmem::HostLibrary;

    use super::*;

    /// Makes empty files in a fresh folder.
    fn folder(files: &[&str]) -> TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let file = folder.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        folder
    }

    const LIBRARY: &str = "nvidia/nvshmem/lib/libnvshmem_host.so.3";

    #[test]
    fn the_headers_lie_beside_the_library() {
        let whole = folder(&[LIBRARY, "nvidia/nvshmem/include/nvshmem_host.h"]);
        assert_eq!(headers(&whole.path().join(LIBRARY)), Ok(whole.path().join("nvidia/nvshmem/include")));
        let part = folder(&[LIBRARY]);
        let why = headers(&part.path().join(LIBRARY)).unwrap_err();
        assert!(why.starts_with("no header files for the C++ peer: no ") && why.ends_with("nvshmem_host.h"), "{why}");
        assert!(headers(Path::new("libnvshmem_host.so.3")).is_err());
    }

    #[test]
    fn cuda_is_found_where_it_is_complete() {
        let files = ["a/include/cuda_runtime.h", "b/include/cuda_runtime.h", "b/lib/libcudart.so"];
        let (debian, parts) =
            (folder(&["include/cuda_runtime.h", "lib/x86_64-linux-gnu/libcudart_static.a"]), folder(&files));
        let [a, b] = ["a", "b"].map(|name| parts.path().join(name));
        let cuda = Cuda { include: b.join("include"), runtime: b.join("lib/libcudart.so") };
        assert_eq!(Cuda::find(&[a.clone(), b]), Ok(cuda));
        assert!(Cuda::find(&[debian.path().to_path_buf()]).is_ok());
        let why = Cuda::find(&[a]).unwrap_err();
        assert!(why.starts_with("no cuda_runtime.h with libcudart for the C++ peer in "), "{why}");
    }

    #[test]
    fn the_python_package_beside_the_library_counts() {
        let library = Path::new("/site/nvidia/nvshmem/lib/libnvshmem_host.so.3");
        assert!(toolkits(library).contains(&PathBuf::from("/site/nvidia/cu13")), "{:?}", toolkits(library));
    }

    #[test]
    fn a_compiler_that_fails_or_is_missing_says_so() {
        let machine = folder(&[
            LIBRARY,
            "nvidia/nvshmem/include/nvshmem_host.h",
            "nvidia/cu13/include/cuda_runtime.h",
            "nvidia/cu13/lib/libcudart_static.a",
        ]);
        let compiler = machine.path().join("compiler");
        fs::write(&compiler, "#!/bin/sh\necho 'nvshmem.cpp:9: error: no such type' >&2\nexit 1\n").unwrap();
        fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).unwrap();
        let library = machine.path().join(LIBRARY);
        let toolkits = [machine.path().join("nvidia/cu13")];
        let compile = |compiler: &str| Nvshmem::compile_with(&library, &toolkits, compiler).unwrap_err();
        let why = compile(compiler.to_str().unwrap());
        assert!(why.starts_with("the C++ peer cannot be compiled: "), "{why}");
        assert!(why.ends_with("ended with exit status: 1: nvshmem.cpp:9: error: no such type"), "{why}");
        assert!(compile("no-such-compiler").contains("no-such-compiler cannot be started"));
    }

    /// Where the library lies with its headers, and CUDA with its own, both are compiled for real. The program then says
    /// what is wrong with its arguments before it touches a GPU.
    #[test]
    fn the_program_and_the_loops_compile() {
        let Ok(HostLibrary { file: library, .. }) = onesided_nvshmem::host_library(None) else {
            println!("not run: no library");
            return;
        };
        let missing = headers(&library).err().or(Cuda::find(&toolkits(&library)).err());
        if let Some(why) = missing.or(process::run(Command::new(COMPILER).arg("--version"), LIMIT).err()) {
            println!("not run: {why}");
            return;
        }
        let nvshmem = Nvshmem::compile(&library).unwrap();
        let mut command = Command::new(nvshmem.program());
        command.arg(nvshmem.id_file()).arg("put:8").env("ONESIDED_RANK", "1").env("ONESIDED_PES", "2");
        let why = process::run(&mut command, LIMIT).unwrap_err();
        assert!(why.ends_with("exit status: 2: the C++ peer, PE 1: put:8 is no measurement"), "{why}");
        assert!(nvshmem.compile_loops().unwrap().is_file());
    }

    #[test]
    fn every_job_has_its_own_id() {
        let (folder, compiler) = (tempfile::tempdir().unwrap(), COMPILER.to_string());
        let nvshmem =
            Nvshmem { folder, library: LIBRARY.into(), includes: Default::default(), compiler, ids: Cell::new(0) };
        assert_ne!(nvshmem.id_file(), nvshmem.id_file());
    }
}
