//! What will work on this machine and what will not.

use onesided::count;
use onesided_harness::launch::Fabric;
use onesided_nvshmem::{HostLibrary, Problem};

use super::report::Report;

impl Report {
    /// Why no program can run on GPUs here; empty if programs can. MPI and MPS are not needed: without MPI, PEs find each
    /// other by a unique id; without MPS, each PE needs a GPU of its own.
    pub(super) fn obstacles(&self) -> Vec<String> {
        let mut obstacles = Vec::new();
        match &self.driver {
            Err(_) => obstacles.push("NVIDIA's driver cannot be used".to_string()),
            Ok(driver) if driver.gpus.is_empty() => obstacles.push("the driver shows no GPU".to_string()),
            Ok(_) => {}
        }
        match &self.nvshmem {
            Err(_) => obstacles.push("libnvshmem_host cannot be used".to_string()),
            Ok(library) => obstacles.extend(library.misfit()),
        }
        if self.network.is_err() {
            obstacles.push("PEs cannot find each other".to_string());
        }
        if self.launcher.is_err() {
            obstacles.push("what the launcher left in the environment contradicts itself".to_string());
        }
        obstacles.extend(self.met.as_ref().err().map(|problem| {
            let why = match problem {
                Problem::Missing { .. } => "not all PEs came to where they meet",
                Problem::Disagreement { .. } => "the PEs that met do not fit together",
                _ => "the PEs cannot meet where they should",
            };
            why.to_string()
        }));
        obstacles
    }

    /// What will go wrong later, a sentence each.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.nvshmem.iter().filter_map(HostLibrary::untested));
        let gpus = self.driver.as_ref().map_or(0, |driver| driver.gpus.len());
        if let Ok(Some(placement)) = &self.launcher {
            notes.extend(placement.local_size.filter(|&pes| gpus > 0 && pes > gpus).map(|pes| {
                format!(
                    "{} started {} on this host, more than its {}: they need a CUDA multi-process service",
                    placement.from,
                    count(pes, "PE"),
                    count(gpus, "GPU")
                )
            }));
            if placement.n_pes > 1 {
                notes.extend(placement.meeting().err().map(|problem| problem.to_string()));
            }
        }
        if let Ok(mpirun) = &self.mpirun {
            if !is_open_mpi(&mpirun.version) {
                notes.push(format!(
                    "{} is not Open MPI's: a bootstrap through MPI needs Open MPI 4 or 5; without MPI, PEs that it \
                     starts can meet at ONESIDED_RENDEZVOUS=host:port",
                    mpirun.file.display()
                ));
            } else if self.libmpi.is_err() {
                notes.push(
                    "mpirun is there without its library libmpi.so.40, which a bootstrap through MPI needs: add its \
                     folder to LD_LIBRARY_PATH"
                        .to_string(),
                );
            }
        }
        notes
    }

    /// What is missing for each fabric, by the names of the rows.
    fn missing_for(&self) -> [(Fabric, Vec<&'static str>); 3] {
        let parts = [("UCX", &self.ucx), ("UCX transport", &self.transport), ("GDRCopy", &self.gdrcopy)];
        let missing: Vec<_> = parts.into_iter().filter(|(_, part)| part.is_err()).map(|(name, _)| name).collect();
        let nodes = self.nodes.is_err().then_some("nodes");
        let mixed = missing.iter().copied().chain(nodes).collect();
        [(Fabric::P2p, Vec::new()), (Fabric::Network, missing), (Fabric::Mixed, mixed)]
    }

    /// The fabrics that work here, if programs work at all.
    pub(super) fn possible_fabrics(&self) -> Vec<String> {
        let works = self.obstacles().is_empty();
        let possible = self.missing_for().into_iter().filter(|(_, missing)| works && missing.is_empty());
        possible.map(|(fabric, _)| fabric.to_string()).collect()
    }

    /// The sentence on fabrics.
    pub(super) fn fabrics(&self) -> String {
        let possible = self.possible_fabrics().join(", ");
        let mut text = if possible.is_empty() { "none".to_string() } else { possible };
        for (fabric, missing) in self.missing_for().iter().filter(|(_, missing)| !missing.is_empty()) {
            text += &format!("; for {fabric} lacks {}", missing.join(", "));
        }
        text + "."
    }

    /// The sentence on GPUs.
    pub(super) fn verdict(&self) -> String {
        let obstacles = self.obstacles();
        match &self.driver {
            Ok(driver) if obstacles.is_empty() => {
                let pes = count(driver.gpus.len(), "PE");
                let more = if self.mps.is_ok() {
                    "more share GPUs with `onesided launch --mps`"
                } else {
                    "more would have to share GPUs, for which CUDA MPS is missing"
                };
                format!("yes, up to {pes} on this host, each with a GPU of its own; {more}.")
            }
            _ => format!("no, because {}.", obstacles.join(", and ")),
        }
    }
}

/// Whether these are the words of Open MPI's mpirun. MPICH's begins with "HYDRA", Intel's with its own name.
fn is_open_mpi(version: &str) -> bool {
    ["Open MPI", "OpenRTE", "OpenMPI"].iter().any(|name| version.contains(name))
}

#[cfg(test)]
mod tests {
    use onesided_nvshmem::{Launcher, Placement};

    use super::super::report::tests::{laptop, server};
    use super::*;

    #[test]
    fn a_server_runs_programs_and_a_laptop_is_told_why_it_does_not() {
        let verdict = server().verdict();
        assert_eq!(
            verdict,
            "yes, up to 2 PEs on this host, each with a GPU of its own; more share GPUs with `onesided launch --mps`."
        );
        assert!(server().notes().is_empty());
        let verdict = laptop().verdict();
        assert_eq!(verdict, "no, because NVIDIA's driver cannot be used, and libnvshmem_host cannot be used.");
    }

    #[test]
    fn what_a_fabric_lacks_is_named() {
        let mut report = server();
        report.nodes = Err("no right".to_string());
        assert_eq!(report.fabrics(), "p2p, network; for mixed lacks nodes.");
        report.gdrcopy = Err("not here".to_string());
        assert_eq!(report.fabrics(), "p2p; for network lacks GDRCopy; for mixed lacks GDRCopy, nodes.");
        report.driver.as_mut().unwrap().gpus.clear();
        assert!(report.fabrics().starts_with("none; for network"));
    }

    #[test]
    fn a_driver_without_gpus_or_an_incomplete_library_is_not_enough() {
        let mut report = server();
        report.driver.as_mut().unwrap().gpus.clear();
        report.nvshmem.as_mut().unwrap().missing.push("nvshmemx_team_init");
        let lacks = "libnvshmem_host lacks 1 function that the backend needs; remedy: install the library again, \
                     or set ONESIDED_NVSHMEM_LIB to another one";
        assert_eq!(report.obstacles(), ["the driver shows no GPU", lacks]);
    }

    #[test]
    fn the_librarys_version_decides() {
        let with = |version| {
            let mut report = server();
            report.nvshmem.as_mut().unwrap().version = version;
            (report.obstacles().len(), report.notes().len())
        };
        assert_eq!([with([3, 8, 0]), with([3, 9, 0]), with([4, 0, 1])], [(0, 0), (0, 1), (1, 0)]);
    }

    #[test]
    fn pes_that_cannot_meet_or_contradict_themselves_are_obstacles() {
        let mut report = server();
        report.network = Err(Problem::NotFound { what: "network interface", looked: vec![] });
        report.launcher = Err(Problem::Variable { variable: "PMI_RANK=1".into(), why: "no size".into() });
        let contradiction = "what the launcher left in the environment contradicts itself";
        assert_eq!(report.obstacles(), ["PEs cannot find each other", contradiction]);
    }

    #[test]
    fn a_pe_that_does_not_come_and_two_of_one_rank_are_obstacles() {
        let mut report = server();
        for (problem, obstacle) in [
            (Problem::Missing { at: "here".into(), why: "PE 1".into() }, "not all PEs came to where they meet"),
            (Problem::Disagreement { at: "here".into(), why: "two".into() }, "the PEs that met do not fit together"),
            (Problem::Failed { call: "PE 0".into(), why: "taken".into() }, "the PEs cannot meet where they should"),
        ] {
            report.met = Err(problem);
            assert_eq!(report.verdict(), format!("no, because {obstacle}."));
        }
    }

    #[test]
    fn more_pes_than_gpus_are_foreseen() {
        let mut report = server();
        report.mps = Err(Problem::NotFound { what: "nvidia-cuda-mps-control", looked: vec![] });
        assert!(report.verdict().ends_with("more would have to share GPUs, for which CUDA MPS is missing."));
        let placement = Placement { n_pes: 4, local_size: Some(3), from: Launcher::OpenMpi, ..Placement::alone() };
        report.launcher = Ok(Some(placement));
        let [too_many, nowhere] = report.notes().try_into().unwrap();
        assert!(
            too_many.starts_with("Open MPI's mpirun started 3 PEs on this host, more than its 2 GPUs"),
            "{too_many}"
        );
        assert!(nowhere.starts_with("ONESIDED_RENDEZVOUS: not set"), "{nowhere}");
    }

    #[test]
    fn a_wrong_mpi_is_foreseen() {
        let mut report = server();
        report.libmpi = Err(Problem::Refused { file: "libmpi.so.40".into(), why: "no such file".into() });
        assert!(report.notes()[0].starts_with("mpirun is there without its library libmpi.so.40"));
        for other in ["HYDRA build details:", "Intel(R) MPI Library for Linux* OS, Version 2021.11"] {
            report.mpirun.as_mut().unwrap().version = other.to_string();
            assert!(report.notes()[0].contains("is not Open MPI's"), "{other}");
        }
        report.mpirun = Err(Problem::NotFound { what: "mpirun", looked: vec![] });
        assert!(report.notes().is_empty()); // without MPI nothing is wrong
    }
}
