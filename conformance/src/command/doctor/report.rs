//! [`Report`]: what was found on this machine, and its table.

use std::fmt;
use std::path::PathBuf;

use onesided_nvshmem::{Driver, HostLibrary, Placement, Problem};
use serde_json::{Value, json};

use super::network::Network;

/// What the doctor found. Its `Display` is a table for people, which ends with what would work.
#[derive(Clone, Debug)]
pub(super) struct Report {
    /// The version of the loaded NVIDIA kernel module. Without it there is no driver.
    pub(super) kernel_module: Option<String>,
    /// NVIDIA's driver library and the GPUs behind it.
    pub(super) driver: Result<Driver, Problem>,
    /// NVSHMEM's host library.
    pub(super) nvshmem: Result<HostLibrary, Problem>,
    /// MPI's launcher, `mpirun`.
    pub(super) mpirun: Result<Tool, Problem>,
    /// Open MPI's library, which NVSHMEM's bootstrap through MPI loads.
    pub(super) libmpi: Result<Tool, Problem>,
    /// The control program of CUDA's multi-process service.
    pub(super) mps: Result<Tool, Problem>,
    /// NVRTC: its version, and its file with what led to it; or why it cannot be used, and what would help.
    pub(super) nvrtc: Result<(String, String), String>,
    /// nvJitLink: the same.
    pub(super) nvjitlink: Result<(String, String), String>,
    /// What NVSHMEM has for kernels: its library, and its headers.
    pub(super) device_library: Result<(String, String), String>,
    /// UCX, which NVSHMEM's network transport links, in a few words; or why it cannot be used, and what would help.
    pub(super) ucx: Result<String, String>,
    /// The same of that transport.
    pub(super) transport: Result<String, String>,
    /// The same of GDRCopy, or of the stand-in for it.
    pub(super) gdrcopy: Result<String, String>,
    /// The same of the right to make nodes of namespaces.
    pub(super) nodes: Result<String, String>,
    /// The ways for PEs of this host to find each other.
    pub(super) network: Result<Network, Problem>,
    /// Who this process is according to its launcher, if one started it; an error if the launcher contradicts itself.
    pub(super) launcher: Result<Option<Placement>, Problem>,
    /// How many PEs met just now, if a launcher started several and says where they meet. `Ok(None)` if there was nothing to
    /// try. An error says which PE did not come, or which came twice.
    pub(super) met: Result<Option<usize>, Problem>,
}

/// A program or a library. Only its presence and its version matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tool {
    /// Its version, in its own words.
    pub(super) version: String,
    /// The file.
    pub(super) file: PathBuf,
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The part's name.
    pub(super) what: &'static str,
    /// Whether it can be used.
    pub(super) found: bool,
    /// Its version, or why it cannot be used.
    pub(super) says: String,
    /// Where it is, or what would help.
    pub(super) then: String,
}

impl Report {
    /// The table's rows, in the order in which the backend needs the parts.
    pub(super) fn rows(&self) -> [Row; 14] {
        let module = match &self.kernel_module {
            Some(version) => format!("kernel module {version}"),
            None => "no kernel module".to_string(),
        };
        let mut driver = row("NVIDIA driver", &self.driver, |driver| describe_driver(driver, &module), Driver::remedy);
        if !driver.found {
            driver.says += &format!(" ({module})");
        }
        let describe = |placement: &Option<Placement>| describe(placement.as_ref(), self.met.as_ref());
        let mut launcher = row("launcher", &self.launcher, describe, |_| LAUNCHER_REMEDY);
        if let (true, Err(problem)) = (launcher.found, &self.met) {
            launcher.found = false; // PEs that cannot meet are of no use
            launcher.says += &format!(", but {problem}");
            let is_setting = matches!(problem, Problem::Variable { .. });
            launcher.then = format!("remedy: {}", if is_setting { LAUNCHER_REMEDY } else { MEETING_REMEDY });
        }
        [
            driver,
            row("NVSHMEM", &self.nvshmem, describe_library, HostLibrary::remedy),
            row("mpirun", &self.mpirun, describe_tool, |_| MPI_REMEDY),
            row("libmpi", &self.libmpi, describe_tool, |_| MPI_REMEDY),
            row("CUDA MPS", &self.mps, describe_tool, |_| MPS_REMEDY),
            of_kernels("NVRTC", &self.nvrtc, NVRTC),
            of_kernels("nvJitLink", &self.nvjitlink, LINKED),
            of_kernels("device library", &self.device_library, LINKED),
            of_a_fabric("UCX", &self.ucx),
            of_a_fabric("UCX transport", &self.transport),
            of_a_fabric("GDRCopy", &self.gdrcopy),
            of_a_fabric("nodes", &self.nodes),
            row("network", &self.network, describe_network, |_| NETWORK_REMEDY),
            launcher,
        ]
    }
}

impl Report {
    /// The report for programs: schema `onesided-doctor/1`.
    pub(super) fn to_json(&self) -> Value {
        let (driver, library) = (self.driver.as_ref().ok(), self.nvshmem.as_ref().ok());
        let row = |Row { what, found, says, then }| json!({ "what": what, "found": found, "says": says, "then": then });
        json!({
            "schema": "onesided-doctor/1",
            "driver": self.kernel_module,
            "cuda": driver.map(|driver| format!("{}.{}", driver.cuda.0, driver.cuda.1)),
            "gpus": driver.map_or(&[][..], |driver| &driver.gpus),
            "library": library.map(HostLibrary::release),
            "parts": self.rows().map(row),
            "fabrics": self.possible_fabrics(),
            "obstacles": self.obstacles(),
            "notes": self.notes(),
        })
    }
}

const MPI_REMEDY: &str = "only for launching by MPI: install Open MPI 4 or 5";
const LINKED: &str = "only for kernels, and atomics of the host, on GPUs";
const NVRTC: &str = "only for kernels in CUDA C++: it needs no GPU";
const MPS_REMEDY: &str = "only for several PEs on one GPU: it comes with NVIDIA's driver";
const NETWORK_REMEDY: &str =
    "PEs meet over TCP: bring up the loopback interface, and see NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME";
const FABRIC: &str = "only for a network between the PEs of one machine: --fabric network and --fabric mixed";
const NODES: &str = "only for several nodes on one machine: --fabric mixed, --nodes";
const LAUNCHER_REMEDY: &str = "set this variable as it says; `onesided launch` sets its own";
const MEETING_REMEDY: &str = "start the doctor in the same way as the program, once for each PE: \
                              `onesided launch -n N -- onesided doctor`, `srun onesided doctor`";

/// A part that only a network between PEs needs. What is wrong with it ends in what would help.
fn of_a_fabric(what: &'static str, part: &Result<String, String>) -> Row {
    let needed_for = if what == "nodes" { NODES } else { FABRIC };
    let says = part.as_ref().unwrap_or_else(|why| why).clone();
    Row { what, found: part.is_ok(), says, then: needed_for.to_string() }
}

/// What compiles kernels. What is wrong with it ends in what would help.
fn of_kernels(what: &'static str, part: &Result<(String, String), String>, otherwise: &str) -> Row {
    let found = part.is_ok();
    let (says, then) = part.clone().unwrap_or_else(|why| (why, otherwise.to_string()));
    Row { what, found, says, then }
}

fn row<T>(
    what: &'static str,
    part: &Result<T, Problem>,
    describe: impl Fn(&T) -> (String, String),
    remedy: impl Fn(&Problem) -> &'static str,
) -> Row {
    match part {
        Ok(part) => {
            let (says, then) = describe(part);
            Row { what, found: true, says, then }
        }
        Err(problem) => {
            Row { what, found: false, says: problem.to_string(), then: format!("remedy: {}", remedy(problem)) }
        }
    }
}

fn describe_driver(driver: &Driver, module: &str) -> (String, String) {
    let (major, minor) = driver.cuda;
    let gpus = match driver.gpus.as_slice() {
        [] => "no GPU".to_string(),
        [first, rest @ ..] if rest.iter().all(|gpu| gpu == first) => format!("{} x {first}", driver.gpus.len()),
        several => several.join(", "),
    };
    (format!("CUDA {major}.{minor}, {module}, {gpus}"), driver.file.display().to_string())
}

fn describe_library(library: &HostLibrary) -> (String, String) {
    let have = library.needed - library.missing.len();
    let mut says = format!("{}, {}", library.release(), library.status.name());
    says += &format!(", {have} of the {} functions that the backend needs", library.needed);
    if !library.missing.is_empty() {
        says += &format!("; missing: {}", library.missing.join(", "));
    }
    (says, format!("{} (found through {})", library.file.display(), library.origin))
}

fn describe_network(network: &Network) -> (String, String) {
    let interfaces = match network.interfaces.as_slice() {
        [] => "which network interfaces there are is not known here".to_string(),
        names => names.join(", "),
    };
    ("PEs of this host can meet".to_string(), interfaces)
}

fn describe_tool(tool: &Tool) -> (String, String) {
    (tool.version.clone(), tool.file.display().to_string())
}

/// Who this process is, and what that means for it.
fn describe(placement: Option<&Placement>, met: Result<&Option<usize>, &Problem>) -> (String, String) {
    let Some(Placement { rank, n_pes, from, meeting, .. }) = placement else {
        return ("none started this process".to_string(), "`onesided launch -n N -- PROGRAM` starts PEs".to_string());
    };
    let meeting = match (meeting, met) {
        (None, _) => "no place to meet is known".to_string(),
        (Some(at), Ok(Some(pes))) => format!("all {pes} PEs met at {at} just now"),
        (Some(at), _) => format!("they meet at {at}"),
    };
    (format!("{from} started this process as PE {rank} of {n_pes}"), meeting)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { what, found, says, then } in self.rows() {
            let found = if found { "found" } else { "not found" };
            let (says, remedy) =
                says.split_once("; remedy: ").map_or((&*says, None), |(says, rest)| (says, Some(rest)));
            writeln!(f, "{what:<14} {found:<10} {says}")?;
            if let Some(remedy) = remedy {
                writeln!(f, "{:<25} remedy: {remedy}", "")?;
            }
            writeln!(f, "{:<25} {then}", "")?;
        }
        writeln!(f)?;
        writeln!(f, "The simulator works here: it needs none of these.")?;
        writeln!(f, "Programs on GPUs: {}", self.verdict())?;
        writeln!(f, "Fabrics: {}", self.fabrics())?;
        self.notes().iter().try_for_each(|note| writeln!(f, "Note: {note}."))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use onesided::InitStatus;
    use onesided_nvshmem::{Launcher, Origin};

    use super::*;

    pub(in super::super) fn laptop() -> Report {
        let not_found = |what| Problem::NotFound { what, looked: vec!["not on PATH".to_string()] };
        Report {
            kernel_module: None,
            driver: Err(Problem::Refused { file: "libcuda.so.1".into(), why: "libcuda.so.1: no such file".into() }),
            nvshmem: Err(Problem::Damaged { file: "/opt/lib.so".into(), why: "it is cut off".into() }),
            mpirun: Err(not_found("mpirun")),
            libmpi: Err(Problem::NoAnswer { call: "libmpi.so.40".into(), limit: Duration::from_secs(20) }),
            mps: Err(not_found("nvidia-cuda-mps-control")),
            nvrtc: Err("NVRTC is not here; remedy: pip install nvidia-cuda-nvrtc".to_string()),
            nvjitlink: Err("nvJitLink is not here; remedy: pip install nvidia-nvjitlink".to_string()),
            device_library: Err("no library to look beside".to_string()),
            ucx: Err("UCX is not found: install it".to_string()),
            transport: Err("no library to look beside".to_string()),
            gdrcopy: Ok("the stand-in, for heaps in host memory: /opt/libgdrapi.so".to_string()),
            nodes: Err("nodes of namespaces cannot be made: it takes root".to_string()),
            network: Ok(Network { interfaces: vec!["lo".to_string()] }),
            launcher: Ok(None),
            met: Ok(None),
        }
    }

    pub(in super::super) fn server() -> Report {
        let tool = |version: &str, file: &str| Ok(Tool { version: version.to_string(), file: file.into() });
        Report {
            kernel_module: Some("580.95.05".to_string()),
            driver: Ok(Driver {
                cuda: (13, 0),
                gpus: vec!["NVIDIA H200".to_string(); 2],
                architectures: vec![90; 2],
                file: "/lib/cuda".into(),
            }),
            nvshmem: Ok(HostLibrary {
                version: [3, 4, 5],
                status: InitStatus::NotInitialized,
                missing: vec![],
                needed: 39,
                file: "/opt/nvshmem/lib/libnvshmem_host.so.3".into(),
                origin: Origin::Home,
            }),
            mpirun: tool("mpirun (Open MPI) 4.1.6", "/usr/bin/mpirun"),
            libmpi: tool("libmpi.so.40", "/lib/libmpi.so.40.30.6"),
            mps: tool("nvidia-cuda-mps-control", "/usr/bin/nvidia-cuda-mps-control"),
            nvrtc: Ok(("NVRTC 13.0, which compiles kernels".to_string(), "/opt/libnvrtc.so.13".to_string())),
            nvjitlink: Ok(("nvJitLink 13.0, which links kernels".to_string(), "/opt/libnvJitLink.so.13".to_string())),
            device_library: Ok(("NVSHMEM's library and headers".to_string(), "/opt/libnvshmem_device.a".to_string())),
            ucx: Ok("/opt/ucx/lib, modules in /opt/ucx/lib/ucx".to_string()),
            transport: Ok("beside the library".to_string()),
            gdrcopy: Ok("GDRCopy, with its driver /dev/gdrdrv".to_string()),
            nodes: Ok("can be made of namespaces".to_string()),
            network: Ok(Network { interfaces: vec!["eth0".to_string(), "lo".to_string()] }),
            launcher: Ok(Some(Placement {
                rank: 1,
                n_pes: 2,
                local_rank: 1,
                local_size: Some(2),
                meeting: Some("127.0.0.1:20000/7".to_string()),
                key: None,
                from: Launcher::OpenMpi,
            })),
            met: Ok(Some(2)),
        }
    }

    #[test]
    fn a_laptop_is_told_what_is_missing_and_what_would_help() {
        let expected = "\
NVIDIA driver  not found  libcuda.so.1: no such file (no kernel module)
                          remedy: install NVIDIA's driver; a container must be started with access to the GPUs
NVSHMEM        not found  /opt/lib.so is not a usable library: it is cut off
                          remedy: install the library again, or set ONESIDED_NVSHMEM_LIB to another one
mpirun         not found  no mpirun: not on PATH
                          remedy: only for launching by MPI: install Open MPI 4 or 5
libmpi         not found  libmpi.so.40: no answer within 20 s
                          remedy: only for launching by MPI: install Open MPI 4 or 5
CUDA MPS       not found  no nvidia-cuda-mps-control: not on PATH
                          remedy: only for several PEs on one GPU: it comes with NVIDIA's driver
NVRTC          not found  NVRTC is not here
                          remedy: pip install nvidia-cuda-nvrtc
                          only for kernels in CUDA C++: it needs no GPU
nvJitLink      not found  nvJitLink is not here
                          remedy: pip install nvidia-nvjitlink
                          only for kernels, and atomics of the host, on GPUs
device library not found  no library to look beside
                          only for kernels, and atomics of the host, on GPUs
UCX            not found  UCX is not found: install it
                          only for a network between the PEs of one machine: --fabric network and --fabric mixed
UCX transport  not found  no library to look beside
                          only for a network between the PEs of one machine: --fabric network and --fabric mixed
GDRCopy        found      the stand-in, for heaps in host memory: /opt/libgdrapi.so
                          only for a network between the PEs of one machine: --fabric network and --fabric mixed
nodes          not found  nodes of namespaces cannot be made: it takes root
                          only for several nodes on one machine: --fabric mixed, --nodes
network        found      PEs of this host can meet
                          lo
launcher       found      none started this process
                          `onesided launch -n N -- PROGRAM` starts PEs

The simulator works here: it needs none of these.
Programs on GPUs: no, because NVIDIA's driver cannot be used, and libnvshmem_host cannot be used.
Fabrics: none; for network lacks UCX, UCX transport; for mixed lacks UCX, UCX transport, nodes.
";
        assert_eq!(laptop().to_string(), expected);
    }

    #[test]
    fn a_server_is_told_versions_and_places() {
        let expected = "\
NVIDIA driver  found      CUDA 13.0, kernel module 580.95.05, 2 x NVIDIA H200
                          /lib/cuda
NVSHMEM        found      3.4.5, not initialized, 39 of the 39 functions that the backend needs
                          /opt/nvshmem/lib/libnvshmem_host.so.3 (found through NVSHMEM_HOME)
mpirun         found      mpirun (Open MPI) 4.1.6
                          /usr/bin/mpirun
libmpi         found      libmpi.so.40
                          /lib/libmpi.so.40.30.6
CUDA MPS       found      nvidia-cuda-mps-control
                          /usr/bin/nvidia-cuda-mps-control
NVRTC          found      NVRTC 13.0, which compiles kernels
                          /opt/libnvrtc.so.13
nvJitLink      found      nvJitLink 13.0, which links kernels
                          /opt/libnvJitLink.so.13
device library found      NVSHMEM's library and headers
                          /opt/libnvshmem_device.a
UCX            found      /opt/ucx/lib, modules in /opt/ucx/lib/ucx
                          only for a network between the PEs of one machine: --fabric network and --fabric mixed
UCX transport  found      beside the library
                          only for a network between the PEs of one machine: --fabric network and --fabric mixed
GDRCopy        found      GDRCopy, with its driver /dev/gdrdrv
                          only for a network between the PEs of one machine: --fabric network and --fabric mixed
nodes          found      can be made of namespaces
                          only for several nodes on one machine: --fabric mixed, --nodes
network        found      PEs of this host can meet
                          eth0, lo
launcher       found      Open MPI's mpirun started this process as PE 1 of 2
                          all 2 PEs met at 127.0.0.1:20000/7 just now

The simulator works here: it needs none of these.
Programs on GPUs: yes, up to 2 PEs on this host, each with a GPU of its own; more share GPUs with `onesided launch --mps`.
Fabrics: p2p, network, mixed.
";
        assert_eq!(server().to_string(), expected);
    }

    #[test]
    fn pes_that_did_not_meet_are_told_with_who_this_one_is_and_what_would_help() {
        let mut report = server();
        report.met = Err(Problem::Missing { at: "127.0.0.1:20000".into(), why: "PE 0 is not there".into() });
        let expected = "
launcher       not found  Open MPI's mpirun started this process as PE 1 of 2, but the PEs did not meet at \
127.0.0.1:20000: PE 0 is not there
                          remedy: start the doctor in the same way as the program, once for each PE: `onesided launch \
-n N -- onesided doctor`, `srun onesided doctor`
";
        assert!(report.to_string().contains(expected), "{report}");

        // The problem itself says what to set.
        report.met = Err(Problem::Variable { variable: "ONESIDED_KEY".into(), why: "not set".into() });
        let [.., launcher] = report.rows();
        assert!(launcher.says.ends_with("as PE 1 of 2, but ONESIDED_KEY: not set"), "{launcher:?}");
        assert_eq!(launcher.then, "remedy: set this variable as it says; `onesided launch` sets its own");

        // If it was not tried, only the place is told.
        report.met = Ok(None);
        let [.., launcher] = report.rows();
        assert_eq!((launcher.found, launcher.then.as_str()), (true, "they meet at 127.0.0.1:20000/7"));
        // One contradiction at a time.
        report.launcher = Err(Problem::Variable { variable: "PMI_RANK=1".into(), why: "no size".into() });
        let [.., launcher] = report.rows();
        assert_eq!((launcher.found, launcher.says.as_str()), (false, "PMI_RANK=1: no size"));
    }

    #[test]
    fn programs_are_told_the_same() {
        let json = server().to_json();
        assert_eq!([&json["library"], &json["driver"], &json["cuda"]], ["3.4.5", "580.95.05", "13.0"]);
        assert_eq!(json["gpus"], json!(["NVIDIA H200", "NVIDIA H200"]));
        assert_eq!((&json["parts"][1]["what"], &json["parts"][1]["found"]), (&json!("NVSHMEM"), &json!(true)));
        assert_eq!([&json["obstacles"], &json["notes"]], [&json!([]), &json!([])]);
        let json = laptop().to_json();
        assert_eq!((&json["library"], &json["cuda"], &json["gpus"]), (&Value::Null, &Value::Null, &json!([])));
        assert_eq!(json["obstacles"].as_array().unwrap().len(), 2);
        assert_eq!(
            [&json["fabrics"], &server().to_json()["fabrics"]],
            [&json!([]), &json!(["p2p", "network", "mixed"])]
        );
    }

    #[test]
    fn remedies_fit_the_problem() {
        let mut report = server();
        report.driver = Err(Problem::Failed { call: "cuInit".into(), why: "error 100, no device".into() });
        report.nvshmem = Err(Problem::Absent { file: "/x.so".into(), named_by: "the path given" });
        let [driver, nvshmem, ..] = report.rows();
        assert_eq!(driver.says, "cuInit: error 100, no device (kernel module 580.95.05)");
        assert!(driver.then.contains("CUDA_VISIBLE_DEVICES"), "{driver:?}");
        assert!(nvshmem.then.contains("name the file"), "{nvshmem:?}");

        let mut report = server();
        report.nvshmem.as_mut().unwrap().missing.push("nvshmemx_team_init");
        let missing = "38 of the 39 functions that the backend needs; missing: nvshmemx_team_init";
        assert!(report.to_string().contains(missing));
    }
}
