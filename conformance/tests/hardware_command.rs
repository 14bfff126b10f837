//! `onesided hardware` and `ci/hardware`, with scripts in the place of the programs that need a GPU.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(60);

/// Writes down how it was called, and does what the test wants of it: see `FAKE_…`.
const FAKE: &str = r#"#!/bin/sh
name=${0##*/}
key=${ONESIDED_KEY:+has a key}
echo "$name $*|${key:-no key}|$CUDA_MPS_ACTIVE_THREAD_PERCENTAGE|${ONESIDED_NVSHMEM_LIB##*/}" >>"$FAKE_FOLDER/calls"
[ -z "$ONESIDED_KEY" ] || echo "$ONESIDED_KEY" >>"$FAKE_FOLDER/keys"
fail() { echo "$1"; exit "${2:-2}"; }
case "$name $*" in
    $FAKE_FAILS) echo first; echo "${FAKE_SAYS:-last}"; exit 5 ;;
    $FAKE_HANGS) : >"$FAKE_FOLDER/hangs"; sleep 300 ;;
    "onesided doctor --json"*)
        version=3.4.5
        [ "${ONESIDED_NVSHMEM_LIB##*/}" != other ] || version=3.8.0
        echo "{\"driver\":\"580.1\",\"cuda\":\"13.0\",\"gpus\":[$FAKE_GPUS],\"library\":\"$version\"}" >"$3" ;;
    "onesided suite"* | "onesided bench"*)
        while [ "$1" != --json ]; do shift; done
        echo '{}' >"$2"
        for line in 1 2 3 4 5 6; do echo "$name says $line"; done ;;
    "onesided launch"*" --gpus 0, "*) fail 'several PEs share a GPU without MPS' ;;
    "onesided launch"*" --gpus 0,99 "*) fail 'there is no GPU 99' ;;
    "onesided launch"*" exit 3; sleep 600") fail 'PE 0 ended with status 3' 3 ;;
    "onesided bootstrap --method mpi") fail 'this program was built without MPI' ;;
    mpirun*) while [ "${1#/}" = "$1" ]; do shift; done; exec "$@" ;;
    with-slurm*) echo 'every PE checked that all is well' ;;
    "ring --backend nvshmem --pes 3") fail '3 PEs on 2 GPUs: use --mps' ;;
    "ring --backend nvshmem --pes 2")
        case $ONESIDED_NVSHMEM_LIB in *absent*) fail 'no such file' ;; *) echo ring ;; esac ;;
    "ring --backend nvshmem") [ "$ONESIDED_TIMEOUT" != 5 ] || fail 'PE 0: PE 1 did not come'; echo ring ;;
    missing_fence*) fail 'a bug' 1 ;;
    *) echo "$name says something" ;;
esac
"#;

/// A folder with programs, sources, and what the programs write down.
struct Rig {
    folder: TempDir,
}

impl Rig {
    fn new() -> Rig {
        let rig = Rig { folder: tempfile::tempdir().unwrap() };
        for folder in ["bin", "path", "examples/src/bin", "ci", "conformance/expected"] {
            fs::create_dir_all(rig.path(folder)).unwrap();
        }
        for name in ["onesided", "ring", "hello", "missing_fence", "kernel", "hardware"] {
            script(&rig.path("bin").join(name), FAKE);
        }
        script(&rig.path("path/mpirun"), FAKE);
        script(&rig.path("ci/with-slurm"), FAKE);
        for name in ["ring.rs", "hello.rs", "missing_fence.rs", "kernel.rs", "notes.txt"] {
            fs::write(rig.path("examples/src/bin").join(name), "").unwrap();
        }
        rig
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command, on a machine with two GPUs, which Slurm would not know.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onesided"));
        command.current_dir(self.folder.path()).args(["hardware", "--binaries", "bin", "--reports", "reports"]);
        command
            .args(arguments)
            .env("FAKE_FOLDER", self.folder.path())
            .env("FAKE_GPUS", "\"NVIDIA H200\",\"NVIDIA H200\"");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path("path").display())).env("CUDA_VISIBLE_DEVICES", "0,1");
        command.env("FAKE_FAILS", "-").env("FAKE_HANGS", "-");
        for name in ["ONESIDED_KEY", "ONESIDED_NVSHMEM_LIB", "ONESIDED_TIMEOUT", "ONESIDED_BINARIES"] {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        output(&mut self.command(arguments))
    }

    /// The reports' names, without their date.
    fn reports(&self) -> Vec<String> {
        let Ok(files) = fs::read_dir(self.path("reports")) else { return vec![] };
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.map(|name| name[..name.len() - "-2026-11-21.json".len()].to_string()).collect();
        names.sort();
        names
    }

    /// The report of this name, without its date.
    fn report(&self, name: &str) -> Value {
        let mut files = fs::read_dir(self.path("reports")).unwrap().map(|file| file.unwrap().path());
        let is_it = |file: &PathBuf| file.file_name().unwrap().to_str().unwrap().starts_with(&format!("{name}-20"));
        serde_json::from_str(&fs::read_to_string(files.find(is_it).unwrap()).unwrap()).unwrap()
    }

    /// How the programs were called: name, arguments; whether there was a key; the part of a GPU; the library.
    fn calls(&self) -> String {
        fs::read_to_string(self.path("calls")).unwrap().replace(&*self.folder.path().to_string_lossy(), "FOLDER")
    }
}

fn script(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

/// The exit status, and both outputs.
fn output(command: &mut Command) -> (i32, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap(), String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap())
}

/// What was printed, with the same seconds on every machine.
fn timeless(said: &str) -> String {
    let is_step = |line: &str| ["ok  ", "FAILED", "not run"].iter().any(|result| line.starts_with(result));
    let line = |line: &str| match is_step(line) {
        true => format!("{}   N{}", &line[..59], &line[63..]),
        false => line.to_string(),
    };
    said.lines().map(|text| line(text) + "\n").collect()
}

/// Waits until a process has ended, for a while; a zombie of somebody else has.
fn has_ended(process: &str) -> bool {
    let runs = || {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, state)| !state.trim_start().starts_with('Z'))
    };
    let deadline = Instant::now() + LONG;
    while runs() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    !runs()
}

#[test]
fn a_whole_run_does_everything_and_says_how_it_went() {
    let rig = Rig::new();
    let (status, said) = rig.run(&[]);
    assert_eq!(status, 0, "{said}");
    insta::assert_snapshot!("hardware_whole", timeless(&said).replace(&*rig.folder.path().to_string_lossy(), "FOLDER"));
    assert_eq!(rig.reports(), ["bench-3.4.5-2xH200", "steps-3.4.5-2xH200", "suite-3.4.5-2xH200"]);
    let report = rig.report("steps-3.4.5-2xH200");
    assert_eq!([&report["schema"], &report["library"]], ["onesided-hardware/1", "3.4.5"]);
    assert_eq!([&report["device"], &report["driver"], &report["cuda"]], ["2xH200", "580.1", "13.0"]);
    let steps = report["steps"].as_array().unwrap();
    assert_eq!(steps[0], serde_json::json!({ "name": "doctor", "result": "ok", "seconds": steps[0]["seconds"] }));
    let results: Vec<&str> = steps.iter().map(|step| step["result"].as_str().unwrap()).collect();
    assert!(results.contains(&"not run") && !results.contains(&"FAILED"), "{report}");

    // PEs that something else starts have one key, which is shown nowhere; those of our launcher get one from it.
    let calls = rig.calls();
    let keys = fs::read_to_string(rig.path("keys")).unwrap();
    let key = keys.lines().next().unwrap();
    assert!(key.len() == 64 && keys.lines().all(|other| other == key) && !(said + &calls).contains(key), "{keys}");
    let foreign = calls.lines().filter(|call| *call == "ring --backend nvshmem|has a key||").count();
    assert_eq!(foreign, 2 + 2 + 1 + 1 + 2, "{calls}");
    assert!(
        calls.contains("onesided launch -n 2 --timeout 60 -- FOLDER/bin/ring --backend nvshmem|no key||\n"),
        "{calls}"
    );
    assert!(calls.contains("hello --backend nvshmem --pes 4 --mps|no key||\n"), "{calls}");
}

#[test]
fn a_step_that_fails_is_shown_and_the_others_run() {
    let rig = Rig::new();
    let (status, said) = output(rig.command(&["--only", "examples"]).env("FAKE_FAILS", "hello*--pes 2"));
    assert_eq!(status, 1);
    let shown = "/bin/hello --backend nvshmem --pes 2\nfirst\nlast\n-----\nFAILED  3.4.5     hello, 2 PEs";
    assert!(said.contains(shown), "{said}");
    assert!(said.contains("s  status 5\n") && said.ends_with("\n7 passed, 1 failed, 0 not run\n"), "{said}");
    assert_eq!(rig.reports(), ["steps-examples-3.4.5-2xH200"]);
    let report = rig.report("steps-examples-3.4.5-2xH200");
    let failed = &report["steps"][0];
    assert_eq!((&failed["name"], &failed["result"]), (&"hello, 2 PEs".into(), &"FAILED".into()));
    assert_eq!((&failed["why"], &failed["printed"]), (&"status 5".into(), &"first\nlast".into()));
}

/// Its summary says why cases were not run: that is no reason for the suite.
#[test]
fn a_suite_that_fails_fails_the_run() {
    let rig = Rig::new();
    let summary = "12 not run: needs symmetric registration: the heap is memory of the host (NVSHMEM_HEAP_KIND=SYSMEM), which \
                   no memory of the GPU can join";
    let mut command = rig.command(&["--only", "suite"]);
    let (status, said) = output(command.env("FAKE_FAILS", "onesided suite*").env("FAKE_SAYS", summary));
    assert_eq!(status, 1, "{said}");
    assert!(said.ends_with("\n0 passed, 1 failed, 0 not run\n"), "{said}");
}

#[test]
fn without_a_gpu_nothing_is_run() {
    let rig = Rig::new();
    let none = |arguments: &[&str]| output(rig.command(arguments).env("FAKE_GPUS", ""));
    assert_eq!(none(&[]), (0, "not run: no GPU\n".to_string()));
    assert_eq!(none(&["--require-hardware"]), (1, "not run: no GPU\n".to_string()));
    assert!(rig.reports().is_empty());
}

#[test]
fn parts_cases_and_libraries_are_chosen() {
    let rig = Rig::new();
    for library in ["one", "other"] {
        fs::create_dir(rig.path(library)).unwrap();
    }
    let arguments = ["--only", "suite", "--only", "doctor", "--library", "one", "--library", "other"];
    let (status, said) = rig.run(&[&arguments[..], &["--", "order", "litmus/sb"]].concat());
    assert_eq!(status, 0, "{said}");
    assert!(
        said.contains("\n=== NVSHMEM 3.4.5, 2xH200\n\n--- suite\n") && said.contains("\n=== NVSHMEM 3.8.0, 2xH200\n")
    );
    assert!(said.ends_with("\n4 passed, 0 failed, 0 not run\n"), "{said}");
    let expected = [
        "steps-suite-doctor-order-litmus-sb-3.4.5-2xH200",
        "steps-suite-doctor-order-litmus-sb-3.8.0-2xH200",
        "suite-order-litmus-sb-3.4.5-2xH200",
        "suite-order-litmus-sb-3.8.0-2xH200",
    ];
    assert_eq!(rig.reports(), expected);
    let calls = rig.calls();
    assert!(
        calls.contains(" order litmus/sb|no key||one\n") && calls.contains(" order litmus/sb|no key||other\n"),
        "{calls}"
    );
    // What the suite says of a file gets into its report: no path of this machine.
    assert!(calls.contains(" --expected ./conformance/expected --json "), "{calls}");
}

/// With one GPU, PEs that something else starts share it, by a service of the run's own.
#[test]
fn on_one_gpu_pes_of_other_launchers_share_it() {
    let rig = Rig::new();
    script(&rig.path("path/slurmctld"), FAKE);
    // A daemon that only waits, ended by `quit`.
    let control = "#!/bin/sh\nfile=$CUDA_MPS_PIPE_DIRECTORY/nvidia-cuda-mps-control.pid\n\
                   if [ \"$1\" = -d ]; then mkfifo $file.never; (read -r _ <>$file.never) & echo $! >$file; \
                   echo $! >>$FAKE_FOLDER/daemons; exit; fi\n\
                   read -r word; [ \"$word\" != quit ] || kill $(cat $file)\n";
    script(&rig.path("path/nvidia-cuda-mps-control"), control);
    let mut command = rig.command(&["--only", "bootstraps"]);
    let (status, said) = output(command.env("FAKE_GPUS", "\"A\"").env_remove("CUDA_VISIBLE_DEVICES"));
    assert_eq!(status, 0, "{said}");
    let calls = rig.calls();
    assert_eq!(
        calls.lines().filter(|call| *call == "ring --backend nvshmem|has a key|50|").count(),
        2 + 2 + 1,
        "{calls}"
    );
    assert!(calls.contains("with-slurm --batch --ntasks-per-node=2 --gpus-per-node=1 "), "{calls}");
    assert!(
        calls.contains("onesided launch -n 2 --timeout 60 --mps -- FOLDER/bin/ring --backend nvshmem|no key||"),
        "{calls}"
    );
    let daemons = fs::read_to_string(rig.path("daemons")).unwrap();
    assert_eq!(daemons.lines().count(), 1, "{daemons}");
    assert!(has_ended(daemons.trim()), "the service is still there");
}

#[test]
fn what_was_done_before_an_end_is_reported() {
    let rig = Rig::new();
    let mut command = rig.command(&["--only", "doctor", "--only", "examples"]);
    command.env("FAKE_HANGS", "onesided launch*kernel");
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + LONG;
    while !rig.path("hangs").exists() {
        assert!(Instant::now() < deadline, "nothing hangs");
        thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(143), "{said}");
    let rest = said.lines().last().unwrap();
    assert!(rest.starts_with("not run 3.4.5     the rest ") && rest.ends_with("the user ended the run"), "{said}");
    assert_eq!(rig.reports(), ["steps-doctor-examples-interrupted-3.4.5-2xH200"]);
    let report = rig.report("steps-doctor-examples-interrupted-3.4.5-2xH200");
    let names: Vec<&str> =
        report["steps"].as_array().unwrap().iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["doctor", "hello, 2 PEs", "hello, 4 PEs", "the rest"]);
}

#[test]
fn what_cannot_run_is_an_error() {
    let rig = Rig::new();
    for (arguments, why) in [
        (&["--only", "nothing"][..], "invalid value 'nothing' for '--only <PART>'"),
        (&["--library", "absent"], "absent: No such file or directory"),
        (&["--example", "nothing", "--only", "examples"], "--example nothing: there is none; there are "),
        (&["--sources", "bin", "--only", "examples"], "examples/src/bin: No such file or directory"),
        (&["--reports", "bin/ring"], "cannot be used multiple times"),
    ] {
        let (status, said) = rig.run(arguments);
        assert!(status == 2 && said.contains(why), "{arguments:?}: {said}");
    }
    fs::remove_dir_all(rig.path("reports")).unwrap();
    fs::write(rig.path("reports"), "a file").unwrap();
    let (status, said) = rig.run(&[]);
    assert!(status == 2 && said.contains("cannot make the folder reports"), "{said}");
    let (status, said) = output(rig.command(&[]).env("FAKE_FAILS", "onesided doctor*"));
    assert!(status == 2 && said.contains("the doctor ended with status 5, and its report cannot be read"), "{said}");
    fs::remove_file(rig.path("bin/onesided")).unwrap();
    let (status, said) = rig.run(&[]);
    assert!(status == 2 && said.contains("/bin/onesided: name the folder with --binaries, or build it"), "{said}");
}

/// `ci/hardware` finds the programs, and leaves the rest to them.
#[test]
fn the_script_calls_the_command() {
    let script_file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ci/hardware");
    let rig = Rig::new();
    let says = "#!/bin/sh\necho \"$ONESIDED_BINARIES: $*\"; pwd; exit 7\n";
    script(&rig.path("bin/onesided"), says);
    let bin = rig.path("bin");
    let bin = bin.to_str().unwrap();
    let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("..")).unwrap();
    for (arguments, given) in [
        (vec!["--require-hardware", "--binaries", bin, "--library", "l", "--", "order"], None),
        (vec![&*format!("--binaries={bin}"), "--only", "suite"], None),
        (vec!["--only", "doctor", "--", "--binaries", "/no/such/folder"], Some(bin)),
    ] {
        let mut command = Command::new(&script_file);
        command
            .args(&arguments)
            .env_remove("ONESIDED_BINARIES")
            .envs(given.map(|folder| ("ONESIDED_BINARIES", folder)));
        let (status, said) = output(&mut command);
        assert_eq!((status, said), (7, format!("{bin}: hardware {}\n{}\n", arguments.join(" "), root.display())));
    }
    let (status, said) = output(Command::new(&script_file).args(["--binaries", "/no/such/folder"]));
    assert!(status == 2 && said.contains("no program /no/such/folder/onesided"), "{said}");
}
