//! A program that a launcher started as a PE sees to it that CUDA loads kernels early, whichever launcher it was.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// What `ring`, started as a PE, has in its environment when it looks for NVSHMEM's library. It asks `python3` for its
/// packages, and this one writes down what it was started with.
fn when_the_library_is_looked_for(set: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (python, seen) = (folder.path().join("python3"), folder.path().join("seen"));
    fs::write(&python, format!("#!/bin/sh\necho \"$CUDA_MODULE_LOADING\" >'{}'\n", seen.display())).unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ring"));
    command.args(["--backend", "nvshmem"]).env("PATH", folder.path());
    for variable in ["CUDA_MODULE_LOADING", "ONESIDED_NVSHMEM_LIB", "NVSHMEM_HOME", "LD_LIBRARY_PATH"] {
        command.env_remove(variable);
    }
    command.env("OMPI_COMM_WORLD_RANK", "0").env("OMPI_COMM_WORLD_SIZE", "1");
    command.env("OMPI_COMM_WORLD_LOCAL_RANK", "0").env("OMPI_COMM_WORLD_LOCAL_SIZE", "1");
    command.envs(set.map(|value| ("CUDA_MODULE_LOADING", value)));
    let output = command.output().unwrap();
    fs::read_to_string(seen).unwrap_or_else(|why| panic!("python3 was not asked: {why}; {output:?}"))
}

#[test]
fn kernels_are_loaded_early_unless_the_user_says_otherwise() {
    assert_eq!(when_the_library_is_looked_for(None), "EAGER\n");
    assert_eq!(when_the_library_is_looked_for(Some("LAZY")), "LAZY\n");
}
