//! A program that a launcher started as a PE sees to it that CUDA loads kernels early, whichever launcher it was.
#![cfg(target_os = "linux")]

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Of `open`: fail where it would have to wait.
const O_NONBLOCK: i32 = 0o4000;

/// What `ring`, started as a PE, has in its environment when it opens NVSHMEM's library. Instead of a library it gets a
/// pipe, which holds it there.
fn when_the_library_is_opened(set: Option<&str>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libnvshmem_host.so.3");
    assert!(Command::new("mkfifo").arg(&library).status().unwrap().success());
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring"));
    command.args(["--backend", "nvshmem"]).env("ONESIDED_NVSHMEM_LIB", &library).env_remove("CUDA_MODULE_LOADING");
    command.env("OMPI_COMM_WORLD_RANK", "0").env("OMPI_COMM_WORLD_SIZE", "1");
    command.env("OMPI_COMM_WORLD_LOCAL_RANK", "0").env("OMPI_COMM_WORLD_LOCAL_SIZE", "1");
    command.envs(set.map(|value| ("CUDA_MODULE_LOADING", value))).stdout(Stdio::null()).stderr(Stdio::null());
    let mut ring = command.spawn().unwrap();

    let deadline = Instant::now() + Duration::from_secs(30);
    // Whoever opens a pipe to write fails until somebody has opened it to read.
    let held = loop {
        match OpenOptions::new().write(true).custom_flags(O_NONBLOCK).open(&library) {
            Ok(pipe) => break pipe,
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
        assert!(Instant::now() < deadline && ring.try_wait().unwrap().is_none(), "the library was never opened");
    };
    let environment = fs::read(format!("/proc/{}/environ", ring.id())).unwrap();
    ring.kill().unwrap();
    ring.wait().unwrap();
    drop(held);
    let all = String::from_utf8(environment).unwrap();
    all.split('\0').filter(|variable| variable.starts_with("CUDA_MODULE_LOADING")).map(String::from).collect()
}

#[test]
fn kernels_are_loaded_early() {
    assert_eq!(when_the_library_is_opened(None), ["CUDA_MODULE_LOADING=EAGER"]);
}

#[test]
fn what_the_user_has_set_stays() {
    assert_eq!(when_the_library_is_opened(Some("LAZY")), ["CUDA_MODULE_LOADING=LAZY"]);
}
