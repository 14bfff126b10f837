//! Tests with the genuine libnvshmem and without a GPU: opening it, unique ids, and the bootstrap of several processes.

mod processes;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use onesided::{Bootstrap, ErrorKind, InitMethod, InitStatus, UniqueId};
use onesided_nvshmem::{Process, SONAME, Settings, host_library};

use processes::{Job, Outcome, Role, SLACK};

/// The library of this machine. If there is none, the test prints that it is not run, or fails if it is required.
fn library() -> Option<Process> {
    match Process::open(Settings::default()) {
        Ok(process) => Some(process),
        Err(error) if std::env::var_os("ONESIDED_REQUIRE_LIBRARY").is_none() => {
            println!("not run: no library ({error})");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// What helps against a library that is damaged or lacks something.
const ANOTHER: &str = "; remedy: install the library again, or set ONESIDED_NVSHMEM_LIB to another one";

fn open(file: &Path) -> onesided::Result<Process> {
    let mut settings = Settings::default();
    settings.library = Some(file.to_path_buf());
    Process::open(settings)
}

/// The message of the error with which a library is refused.
fn refusal(file: &Path) -> String {
    let error = open(file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Initialization, "{error}");
    error.message().to_string()
}

#[test]
fn versions_are_those_that_the_library_reports() {
    let Some(process) = library() else { return };
    let found = host_library(None).unwrap();
    let [major, minor, patch] = found.version;
    let version = process.version();
    assert_eq!(version.library, format!("libnvshmem {major}.{minor}.{patch}"));
    assert_eq!((version.openshmem_spec, version.onesided), ((1, 3), onesided::VERSION));
    assert!(found.missing.is_empty(), "{:?}", found.missing);
    assert_eq!(process.library(), found.file);
    assert_eq!(process.init_status(), InitStatus::NotInitialized);
}

#[test]
fn unique_ids_are_128_bytes_and_never_the_same() {
    let Some(process) = library() else { return };
    let ids = [process.unique_id().unwrap(), process.unique_id().unwrap()];
    assert_ne!(ids[0], ids[1]);
    for id in ids {
        assert_eq!(id.0[..4], 0x10080_u32.to_ne_bytes(), "the version word: layout 1, 128 bytes");
        assert_eq!(id.to_string().parse::<UniqueId>().unwrap(), id);
    }
}

#[test]
fn what_cannot_be_right_is_refused_before_the_library_is_asked() {
    let Some(process) = library() else { return };
    let id = process.unique_id().unwrap();
    let bootstrap = |id, rank, n_pes| process.init(InitMethod::UniqueId { id, rank, n_pes }).map(drop).unwrap_err();
    let rank = bootstrap(id, 2, 2);
    assert_eq!((rank.kind(), rank.message().contains("rank 2 of 2")), (ErrorKind::InvalidArgument, true), "{rank}");
    let many = bootstrap(id, 0, 1 << 32); // 0 for the library, which counts in 32 bits
    assert_eq!((many.kind(), many.message().contains("1048576 at most")), (ErrorKind::InvalidArgument, true), "{many}");
    let empty = bootstrap(UniqueId::EMPTY, 0, 1);
    assert_eq!((empty.kind(), empty.message().contains("unique_id")), (ErrorKind::InvalidArgument, true), "{empty}");
    assert_eq!(process.init_status(), InitStatus::NotInitialized);
}

/// Every PE met the others, and says that it has no GPU and what to do.
fn assert_met_without_gpu(outcomes: &[Outcome]) {
    for outcome in outcomes {
        assert!(outcome.ended_well(), "{outcome:#?}");
        assert!(["initialization", "device"].contains(&&*outcome.kind), "{outcome:#?}");
        assert_eq!(outcome.init_status, InitStatus::Bootstrapped.name(), "{outcome:#?}");
        assert!(outcome.message.contains("the PEs met") && outcome.message.contains("no GPU"), "{outcome:#?}");
        let remedies = ["remedy: install NVIDIA's driver", "CUDA_VISIBLE_DEVICES"];
        assert!(remedies.iter().any(|remedy| outcome.message.contains(remedy)), "{outcome:#?}");
    }
}

#[test]
fn one_pe_says_that_it_has_no_gpu() {
    let Some(_) = library() else { return };
    let test = "one_pe_says_that_it_has_no_gpu";
    assert_met_without_gpu(&Job { test, roles: vec![Role::Pe(0, 1)], limit: Duration::from_secs(60) }.run());
}

/// The library would end the process by a signal. Either thread may come first: one fails because there is no GPU, and the
/// other is refused, at that time or after it.
#[test]
fn two_threads_cannot_both_become_the_pe() {
    let Some(_) = library() else { return };
    let test = "two_threads_cannot_both_become_the_pe";
    for outcome in (Job { test, roles: vec![Role::TwoThreads], limit: Duration::from_secs(60) }).run() {
        assert!(outcome.ended_well(), "{outcome:#?}");
        let refused = ["is becoming one in another thread", "the library allows no second one"];
        assert!(refused.iter().any(|refused| outcome.message.contains(refused)), "{outcome:#?}");
    }
}

#[test]
fn two_pes_meet_and_say_that_they_have_no_gpu() {
    let Some(_) = library() else { return };
    let test = "two_pes_meet_and_say_that_they_have_no_gpu";
    let roles = vec![Role::Pe(0, 2), Role::Pe(1, 2)];
    assert_met_without_gpu(&Job { test, roles, limit: Duration::from_secs(60) }.run());
}

#[test]
fn three_pes_meet_whichever_of_them_made_the_id() {
    let Some(_) = library() else { return };
    let test = "three_pes_meet_whichever_of_them_made_the_id";
    let roles = vec![Role::Pe(2, 3), Role::Pe(0, 3), Role::Pe(1, 3)];
    assert_met_without_gpu(&Job { test, roles, limit: Duration::from_secs(60) }.run());
}

/// No process became a PE, and each ended by itself within its limit, with an error of one of these kinds.
fn assert_gave_up(outcomes: &[Outcome], kinds: &[&str], limit: Duration) {
    for outcome in outcomes {
        assert!(outcome.ended_well(), "{outcome:#?}");
        assert!(kinds.contains(&&*outcome.kind), "{outcome:#?}");
        assert!(outcome.took < limit + SLACK / 4, "{outcome:#?}");
    }
}

const SHORT: Duration = Duration::from_secs(3);

#[test]
fn a_pe_that_never_arrives_is_a_timeout() {
    let Some(_) = library() else { return };
    let test = "a_pe_that_never_arrives_is_a_timeout";
    let outcomes = Job { test, roles: vec![Role::Pe(0, 3), Role::Pe(2, 3)], limit: SHORT }.run();
    assert_gave_up(&outcomes, &["timeout"], SHORT);
    for outcome in &outcomes {
        assert!(outcome.took >= SHORT && outcome.message.contains("a PE may be missing"), "{outcome:#?}");
        assert!(
            outcome.message.ends_with("see whether every PE was started, once and with its own rank"),
            "{outcome:#?}"
        );
        assert!(outcome.message.contains("of 3: ") && outcome.message.contains("within 3 s"), "{outcome:#?}");
    }
}

#[test]
fn two_pes_with_the_same_rank_are_told() {
    let Some(_) = library() else { return };
    let test = "two_pes_with_the_same_rank_are_told";
    let outcomes = Job { test, roles: vec![Role::Pe(0, 2), Role::Pe(0, 2)], limit: SHORT }.run();
    assert_gave_up(&outcomes, &["timeout", "initialization"], SHORT);
    for outcome in outcomes.iter().filter(|outcome| outcome.kind == "timeout") {
        let (cause, remedy) = ("two may have the same rank", "once and with its own rank");
        assert!(outcome.message.contains(cause) && outcome.message.ends_with(remedy), "{outcome:#?}");
    }
}

#[test]
fn the_death_of_the_process_that_made_the_id_is_told() {
    let Some(_) = library() else { return };
    let test = "the_death_of_the_process_that_made_the_id_is_told";
    let outcomes = Job { test, roles: vec![Role::MakesIdOnly, Role::Pe(0, 1)], limit: SHORT }.run();
    assert!(outcomes[0].ended_well(), "{outcomes:#?}");
    assert_gave_up(&outcomes[1..], &["timeout", "initialization"], SHORT);
}

#[test]
fn an_absent_library_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    for file in [folder.path().join("libabsent.so"), folder.path().join(SONAME)] {
        let message = refusal(&file);
        assert!(message.contains(&*file.to_string_lossy()), "{message}");
        assert!(
            message.ends_with("; remedy: name the file libnvshmem_host.so.3, or the folder that holds it"),
            "{message}"
        );
    }
    assert!(refusal(folder.path()).contains(SONAME), "a folder without it");
}

#[test]
fn a_library_that_was_cut_off_is_an_error_that_names_it() {
    let Some(process) = library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join(SONAME);
    let bytes = std::fs::read(process.library()).unwrap();
    for end in [0, 10, 1000, bytes.len() / 2, bytes.len() / 10 * 9] {
        std::fs::write(&cut, &bytes[..end]).unwrap();
        let message = refusal(folder.path());
        assert!(message.contains(&*cut.to_string_lossy()), "cut off at {end}: {message}");
        assert!(message.ends_with(ANOTHER), "cut off at {end}: {message}");
    }
}

/// 3.4 to 3.6 end the process when they are asked for an id without it.
#[test]
fn a_library_without_its_plugin_is_an_error_when_it_is_needed() {
    let Some(process) = library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join(SONAME);
    std::fs::copy(process.library(), &alone).unwrap();
    let error = open(&alone).unwrap().unique_id().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Initialization, "{error}");
    for part in
        ["nvshmem_bootstrap_uid.so.3", &folder.path().to_string_lossy(), "comes with it: install the library again"]
    {
        assert!(error.message().contains(part), "{part} in {error}");
    }
}

/// A library that has nothing but a version.
fn with_version(folder: &Path, version: [i32; 3]) -> PathBuf {
    let [major, minor, patch] = version;
    let file = folder.join(SONAME);
    let source = folder.join("version.c");
    let code = format!(
        "void nvshmemx_vendor_get_version_info(int *a, int *b, int *c) {{ *a = {major}; *b = {minor}; *c = {patch}; }}\n"
    );
    std::fs::write(&source, code).unwrap();
    let made = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&file).arg(&source).status().unwrap();
    assert!(made.success());
    file
}

#[test]
fn a_library_of_another_version_is_refused_with_the_versions_that_fit() {
    for version in [[2, 11, 0], [3, 3, 24], [4, 0, 0]] {
        let folder = tempfile::tempdir().unwrap();
        let file = with_version(folder.path(), version);
        let message = refusal(&file);
        let [major, minor, patch] = version;
        assert!(message.contains(&format!("{major}.{minor}.{patch}")) && message.contains("3.4"), "{message}");
        assert!(message.contains(&*file.to_string_lossy()), "{message}");
        assert!(message.contains("; remedy: pip install nvidia-nvshmem-cu13"), "{message}");
    }
}

#[test]
fn a_function_that_a_library_lacks_is_an_error_when_it_is_needed() {
    let folder = tempfile::tempdir().unwrap();
    let file = with_version(folder.path(), [3, 9, 0]);
    let process = open(&file).unwrap();
    assert_eq!(process.version().library, "libnvshmem 3.9.0");
    assert_eq!(process.init_status(), InitStatus::NotInitialized);
    let unique_id = (process.unique_id().unwrap_err(), "nvshmemx_get_uniqueid");
    let init = (process.init(InitMethod::Launcher).map(drop).unwrap_err(), "nvshmemx_init_status");
    for (error, symbol) in [unique_id, init] {
        assert_eq!(error.kind(), ErrorKind::Initialization);
        for part in [symbol, "does not export it", &file.to_string_lossy(), ANOTHER] {
            assert!(error.message().contains(part), "{part} in {error}");
        }
    }
}

#[test]
fn a_library_that_is_something_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(SONAME);
    std::fs::copy(std::env::current_exe().unwrap(), &file).unwrap();
    let message = refusal(&file);
    assert!(message.contains(&*file.to_string_lossy()) && message.ends_with(ANOTHER), "{message}");
}
