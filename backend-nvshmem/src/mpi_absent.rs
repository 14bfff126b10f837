//! [`World`] of a program that was built without MPI: there is none.

use std::ffi::c_void;
use std::time::Duration;

use crate::problem::Problem;

/// MPI's world, which a program without MPI never joins.
#[derive(Debug)]
pub(crate) enum World {}

impl World {
    /// Always fails, and says what to do.
    pub(crate) fn join(_limit: Duration) -> Result<World, Problem> {
        Err(Problem::Failed {
            call: "initialization by MPI".to_string(),
            why: "this program was built without MPI; build it with --features mpi (needs mpicc and libclang), or let \
                  PEs find each other by unique id"
                .to_string(),
        })
    }

    pub(crate) fn rank(&self) -> usize {
        match *self {}
    }

    pub(crate) fn n_pes(&self) -> usize {
        match *self {}
    }

    pub(crate) fn local_rank(&self) -> usize {
        match *self {}
    }

    pub(crate) fn broadcast(&self, _id: &mut [u8; 128]) -> Result<(), Problem> {
        match *self {}
    }

    pub(crate) fn takes_calls_of_any_thread(&self) -> bool {
        match *self {}
    }

    pub(crate) fn communicator(&self) -> *mut c_void {
        match *self {}
    }

    pub(crate) fn abandon(&self) {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_mpi_the_message_says_what_to_do() {
        let problem = World::join(Duration::from_secs(1)).unwrap_err().to_string();
        assert!(problem.contains("--features mpi") && problem.contains("unique id"), "{problem}");
    }
}
