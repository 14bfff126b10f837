//! `onesided launch --fabric` and `--nodes`, with shells as PEs, and files in the place of UCX and GDRCopy.
#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{sorted, stderr};
use onesided_harness::launch::no_nodes;
use tempfile::TempDir;

/// A folder that looks like UCX with its CUDA modules, and one like the stand-in for GDRCopy.
fn libraries() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in ["ucx/lib/libucp.so.0", "ucx/lib/ucx/libuct_cuda.so.0", "ucx/libucx_cu13.libs/libx.so", "libgdrapi.so"]
    {
        let file = folder.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "").unwrap();
    }
    folder
}

/// `onesided launch` without any setting of this machine.
fn launch(libraries: &Path, arguments: &[&str], script: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    command.arg("launch").args(arguments);
    command.arg("--ucx").arg(libraries.join("ucx")).arg("--gdrcopy").arg(libraries.join("libgdrapi.so"));
    command.args(["--", "sh", "-c", script]);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if ["NVSHMEM_", "UCX_", "ONESIDED_", "LD_LIBRARY_PATH"].iter().any(|begin| name.starts_with(begin)) {
            command.env_remove(name);
        }
    }
    command.env("ONESIDED_NVSHMEM_LIB", libraries.join("absent")); // this machine may have one, without its transport
    command
}

/// The processes in other mount namespaces than this one, whose command line has these words.
fn elsewhere(words: &str) -> Vec<String> {
    let here = fs::read_link("/proc/self/ns/mnt").unwrap();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let is_elsewhere = |path: &Path| {
        let said = fs::read(path.join("cmdline")).unwrap_or_default();
        let space = fs::read_link(path.join("ns/mnt"));
        space.is_ok_and(|space| space != here) && String::from_utf8_lossy(&said).contains(words)
    };
    entries.map(|entry| entry.path()).filter(|path| is_elsewhere(path)).map(|path| path.display().to_string()).collect()
}

/// Whether a line of the launcher says that the library is missing that keeps quiets from hanging: these tests may run without it.
fn is_note(line: &str) -> bool {
    line.contains("libonesided_ucx.so")
}

fn is_soon(is_so: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !is_so() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    is_so()
}

#[test]
fn a_network_is_in_the_environment_of_every_pe() {
    let libraries = libraries();
    let folder = libraries.path();
    let script = "echo $NVSHMEM_REMOTE_TRANSPORT $NVSHMEM_DISABLE_P2P $NVSHMEM_HEAP_KIND $UCX_TLS $UCX_MODULE_DIR; \
                  echo $LD_LIBRARY_PATH; d=${LD_LIBRARY_PATH%%:*}; ls $d; readlink $d/libgdrapi.so.2";
    let output = launch(folder, &["-n", "1", "--fabric", "network"], script).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().map(|line| &line[4..]).collect();
    let ucx = folder.join("ucx");
    let ucx = ucx.display();
    assert_eq!(lines[0], format!("ucx 1 SYSMEM tcp,self,cuda_copy {ucx}/lib/ucx"));
    let (first, rest) = lines[1].split_once(':').unwrap();
    assert_eq!(rest, format!("{ucx}/lib:{ucx}/libucx_cu13.libs"));
    assert_eq!((lines[2], lines[3]), ("libgdrapi.so.2", &*folder.join("libgdrapi.so").to_string_lossy()));
    assert!(!Path::new(first).exists(), "{first} is left behind");
}

#[test]
fn what_is_missing_or_contradicts_is_one_message_with_a_remedy() {
    let libraries = libraries();
    let folder = libraries.path();
    let refused = |change: &dyn Fn(&mut Command), arguments: &[&str]| {
        let mut command = launch(folder, arguments, "echo started");
        change(&mut command);
        let output = command.output().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]), "{}", stderr(&output));
        stderr(&output)
    };
    let network = ["-n", "2", "--fabric", "network"];
    let why = refused(&|command| _ = command.env("NVSHMEM_HEAP_KIND", "VIDMEM"), &network);
    assert!(why.starts_with("error: NVSHMEM_HEAP_KIND=VIDMEM is set, and the stand-in for GDRCopy reaches"), "{why}");
    let why = refused(&|_| (), &["-n", "2", "--fabric", "p2p", "--nodes", "2"]);
    assert!(why.contains("--fabric p2p is about one node"), "{why}");
    let why = refused(
        &|command| _ = command.env("OMPI_COMM_WORLD_RANK", "0").env("OMPI_COMM_WORLD_SIZE", "1"),
        &["--nodes", "1"],
    );
    assert!(why.contains("--nodes is for PEs that are started here"), "{why}");
    fs::remove_file(folder.join("libgdrapi.so")).unwrap();
    let why = refused(&|_| (), &network);
    assert!(why.contains("--gdrcopy names ") && why.contains("not there"), "{why}");
    fs::remove_file(folder.join("ucx/lib/ucx/libuct_cuda.so.0")).unwrap();
    let why = refused(&|_| (), &network);
    assert!(why.contains("has no module for CUDA") && why.contains("libucx-cu13"), "{why}");
    fs::remove_file(folder.join("ucx/lib/libucp.so.0")).unwrap();
    let why = refused(&|_| (), &network);
    assert!(why.contains("there is no libucp.so.0"), "{why}");
}

#[test]
fn a_setting_of_the_user_stays_with_a_note() {
    let libraries = libraries();
    let mut command = launch(libraries.path(), &["-n", "1", "--fabric", "network"], "echo $UCX_TLS");
    let output = command.env("UCX_TLS", "rc,cuda").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[0] rc,cuda\n");
    assert!(stderr(&output).contains("UCX_TLS=rc,cuda is set and stays"), "{}", stderr(&output));
}

#[test]
fn pes_are_spread_over_nodes_in_blocks() {
    if let Some(why) = no_nodes() {
        return println!("not run: {why}");
    }
    let libraries = libraries();
    let mark = "pes_are_spread_over_nodes_in_blocks";
    let script = format!(
        "echo $ONESIDED_RANK $ONESIDED_LOCAL_RANK $(uname -n) $ONESIDED_DEVICE; pwd >&2; touch /dev/shm/$ONESIDED_RANK; \
         while [ $(ls /dev/shm | wc -l) -lt 2 ]; do sleep 0.01; done; ls /dev/shm | tr '\\n' ' '; : {mark}"
    );
    let output = launch(libraries.path(), &["-n", "4", "--nodes", "2", "--gpus", "4"], &script).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let expected = [
        "[0] 0 0 node0 0",
        "[0] 0 1 ",
        "[1] 0 1 ",
        "[1] 1 1 node0 1",
        "[2] 2 0 node1 2",
        "[2] 2 3 ",
        "[3] 2 3 ",
        "[3] 3 1 node1 3",
    ];
    assert_eq!(sorted(&output.stdout), expected);
    let here = std::env::current_dir().unwrap();
    let of_pes = |line: &&str| !is_note(line);
    let ends_here = |line: &str| line.ends_with(&*here.to_string_lossy());
    assert!(stderr(&output).lines().filter(of_pes).all(ends_here), "{}", stderr(&output));
    assert_eq!(elsewhere(mark), [""; 0]);

    let output = launch(libraries.path(), &["-n", "3", "--nodes", "2"], "exit").output().unwrap();
    assert!(stderr(&output).contains("3 PEs cannot be spread evenly over 2 nodes"), "{}", stderr(&output));
    let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
    command.args(["launch", "-n", "2", "--nodes", "2", "--ucx"]).arg(libraries.path().join("ucx"));
    command.arg("--gdrcopy").arg(libraries.path().join("libgdrapi.so")).args(["--", "no-such-program"]);
    let output = command.output().unwrap();
    assert!(stderr(&output).contains("no-such-program cannot be started"), "{}", stderr(&output));
}

#[test]
fn a_pe_that_fails_ends_the_others_on_all_nodes() {
    if let Some(why) = no_nodes() {
        return println!("not run: {why}");
    }
    let libraries = libraries();
    let mark = "a_pe_that_fails_ends_the_others_on_all_nodes";
    let script = format!("[ $ONESIDED_RANK = 3 ] && exit 7; sleep 300 & wait; : {mark}");
    let output = launch(libraries.path(), &["-n", "4", "--nodes", "2"], &script).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
    assert_eq!(elsewhere(mark), [""; 0]);
}

#[test]
fn nothing_is_left_of_nodes_when_the_launcher_is_killed() {
    if let Some(why) = no_nodes() {
        return println!("not run: {why}");
    }
    let libraries = libraries();
    let mark = "nothing_is_left_of_nodes_when_the_launcher_is_killed";
    let script = format!("readlink /proc/self/ns/mnt; echo ${{LD_LIBRARY_PATH%%:*}} >&2; sleep 300 & wait; : {mark}");
    let mut launcher = launch(libraries.path(), &["-n", "2", "--nodes", "2"], &script);
    let mut launcher = launcher.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(launcher.stderr.take().unwrap()).lines().map(Result::unwrap);
    let folder = lines.find(|line| !is_note(line)).unwrap()[4..].to_string();
    assert!(Path::new(&folder).join("libgdrapi.so.2").is_symlink(), "{folder}");
    let spaces: Vec<String> = BufReader::new(launcher.stdout.take().unwrap())
        .lines()
        .take(2)
        .map(|line| line.unwrap()[4..].to_string())
        .collect();
    let members = |space: &str| -> Vec<PathBuf> {
        let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("ns/mnt"));
        entries.filter(|path| fs::read_link(path).is_ok_and(|it| *it == *Path::new(space))).collect()
    };
    assert_ne!(spaces[0], spaces[1]);
    // Linux gives the number of a namespace that is gone to the next one, of another test too. An open one stays.
    let open: Vec<fs::File> =
        spaces.iter().map(|space| members(space).iter().find_map(|path| fs::File::open(path).ok()).unwrap()).collect();
    launcher.kill().unwrap();
    launcher.wait().unwrap();
    assert!(is_soon(|| spaces.iter().all(|space| members(space).is_empty())), "somebody is left in {spaces:?}");
    drop(open);
    assert!(is_soon(|| !Path::new(&folder).exists()), "{folder} is left");
}

#[test]
fn a_peer_that_dies_in_mid_transfer_is_named_within_the_time() {
    let libraries = libraries();
    let script = "if [ $ONESIDED_RANK = 1 ]; then sleep 0.2; kill -9 $$; fi; sleep 0.5; \
                  echo '[vm:9 :0] ucp_ep.c:1 UCX  ERROR Connection reset by remote peer' >&2; exec sleep 300";
    let begin = Instant::now();
    let output = launch(libraries.path(), &["-n", "2", "--fabric", "network"], script).output().unwrap();
    assert_eq!(output.status.code(), Some(137), "{}", stderr(&output));
    assert!(begin.elapsed() < Duration::from_secs(30));
    let said = stderr(&output);
    let last = said.lines().last().unwrap();
    assert!(last.contains("PE 1 was killed by signal 9; PE 0 had to be ended"), "{said}");
    assert!(last.contains("what PE 0 wrote means: a PE that this one talked to over the network is gone"), "{said}");
}

#[test]
fn two_nodes_of_one_name_are_explained() {
    let libraries = libraries();
    let script = "echo 'mem_heap.cpp:60: NULL value Failed to create shared memory slab' >&2; exit 255";
    let output = launch(libraries.path(), &["-n", "2", "--fabric", "network"], script).output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    assert!(stderr(&output).contains("give each node a host name and a /dev/shm of its own"), "{}", stderr(&output));
}
