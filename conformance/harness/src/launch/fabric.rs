//! [`Fabric`]: how the PEs of a job reach each other; and [`Rig`], what this machine needs for it.
//!
//! NVSHMEM uses a network only between nodes, and only if it finds one. With these settings it uses one on any machine: its UCX
//! transport over TCP. UCX comes with libraries of its own, and the transport needs GDRCopy.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use clap::ValueEnum;

use super::flush;
use super::gdrcopy::{self, Gdrcopy, Installed};
use super::nodes::Node;
use super::ucx::{Ucx, has_plugin};

/// How PEs reach each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(clippy::exhaustive_enums, reason = "who sets a fabric up must know every one")]
pub enum Fabric {
    /// Loads and stores: NVLink, PCIe, or one GPU's own memory
    #[default]
    P2p,
    /// NVSHMEM's UCX transport over TCP, also between the PEs of a node
    Network,
    /// Loads and stores within a node, UCX over TCP between nodes
    Mixed,
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fabric::P2p => "p2p",
            Fabric::Network => "network",
            Fabric::Mixed => "mixed",
        })
    }
}

/// The options about a fabric, which several commands have.
#[derive(Clone, Debug, Default, clap::Args)]
#[group(skip)]
#[expect(clippy::exhaustive_structs, reason = "a command line is taken apart where it is used")]
pub struct FabricOptions {
    /// How PEs reach each other [default: p2p; with several nodes: mixed]
    #[arg(long, value_enum, value_name = "FABRIC")]
    pub fabric: Option<Fabric>,
    /// UCX with its CUDA modules: the folder with libucp.so.0, or one above it [default: $ONESIDED_UCX, a folder `ucx` beside
    /// this program, the Python package libucx, the loader's folders]
    #[arg(long, value_name = "DIR", overrides_with = "ucx")]
    pub ucx: Option<PathBuf>,
    /// The stand-in for GDRCopy, or GDRCopy's own library [default: $ONESIDED_GDRCOPY, the machine's where its driver is,
    /// libgdrapi.so beside this program]
    #[arg(long, value_name = "FILE", overrides_with = "gdrcopy")]
    pub gdrcopy: Option<PathBuf>,
    /// NVSHMEM's library, if PEs will open another one than this process would: a file, or its folder.
    #[arg(skip)]
    pub library: Option<PathBuf>,
}

impl FabricOptions {
    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let FabricOptions { fabric, ucx, gdrcopy, library: _ } = self;
        let given = [("--fabric", fabric.is_some()), ("--ucx", ucx.is_some()), ("--gdrcopy", gdrcopy.is_some())];
        given.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
    }

    /// The options as words of a command line. Paths are absolute.
    pub fn words(&self) -> Vec<OsString> {
        let FabricOptions { fabric, ucx, gdrcopy, library: _ } = self;
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).into_os_string();
        let fabric = fabric.map(|fabric| ["--fabric".into(), fabric.to_string().into()]);
        let ucx = ucx.as_ref().map(|ucx| ["--ucx".into(), absolute(ucx)]);
        let gdrcopy = gdrcopy.as_ref().map(|file| ["--gdrcopy".into(), absolute(file)]);
        [fabric, ucx, gdrcopy].into_iter().flatten().flatten().collect()
    }

    /// The fabric and the number of nodes, if so many nodes were asked for.
    ///
    /// # Errors
    /// They contradict each other, or an option is about a network that is not asked for.
    pub fn shape(&self, nodes: Option<usize>) -> Result<(Fabric, usize), String> {
        let fabric = self.fabric.unwrap_or(if nodes > Some(1) { Fabric::Mixed } else { Fabric::P2p });
        let nodes = nodes.unwrap_or(if fabric == Fabric::Mixed { 2 } else { 1 });
        match (fabric, nodes, self.given()) {
            (Fabric::P2p, 2.., _) => Err(format!(
                "--fabric p2p is about one node: PEs of {nodes} nodes reach each other by network or mixed"
            )),
            (Fabric::Mixed, 1, _) => Err("--fabric mixed needs --nodes 2 or more".to_string()),
            (Fabric::P2p, _, Some(option @ ("--ucx" | "--gdrcopy"))) => {
                Err(format!("{option} is about a network: it needs --fabric network or --fabric mixed"))
            }
            _ => Ok((fabric, nodes)),
        }
    }
}

/// What the PEs of a job need for a fabric. Dropping it removes what was made for them.
#[derive(Debug, Default)]
pub struct Rig {
    fabric: Fabric,
    nodes: Vec<Node>,
    environment: Vec<(String, OsString)>,
    notes: Vec<String>,
    /// Whether the user, or the fabric, has switched loads and stores between PEs off.
    no_p2p: bool,
    /// The stand-in under the name that is looked for.
    _installed: Option<Installed>,
}

impl Rig {
    /// Finds the libraries, and makes the nodes. [`Fabric::P2p`] needs neither.
    ///
    /// # Errors
    /// What is missing, and what would help. Nothing is left behind then.
    pub fn prepare(options: &FabricOptions, nodes: Option<usize>) -> Result<Rig, String> {
        let (fabric, nodes) = options.shape(nodes)?;
        let user = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
        let no_p2p = fabric == Fabric::Network || user(NO_P2P).is_some_and(|value| value != "0");
        if fabric == Fabric::P2p {
            let is_chosen = user(TRANSPORT).is_some() || !has_driver_without_device(Path::new(INFINIBAND));
            let environment = if is_chosen { Vec::new() } else { vec![(TRANSPORT.to_string(), "none".into())] };
            return Ok(Rig { no_p2p, environment, ..Rig::default() });
        }
        let ucx = Ucx::find(options.ucx.as_deref())?;
        match &options.library {
            Some(path) => has_plugin(&onesided_nvshmem::library_at(path))?,
            // Where there is no library, PEs say so better.
            None => onesided_nvshmem::host_library(None).map_or(Ok(()), |library| has_plugin(&library.file))?,
        }
        let gdrcopy = Gdrcopy::find(options.gdrcopy.as_deref())?;
        check_heap(&gdrcopy, &user)?;
        let installed = gdrcopy.install()?;
        let (mut environment, mut notes) = environment(fabric, &ucx, installed.as_ref().map(Installed::folder), &user);
        let library = flush::beside_this_program();
        match flush::environment(library.as_deref(), flush::preloaded_by_the_user().as_deref()) {
            Ok(preload) => environment.push(preload),
            Err(why) => notes.push(why),
        }
        if nodes == 1 {
            notes.extend(room().and_then(too_small)); // a node has a /dev/shm of its own, of half of the memory
        }
        let nodes = if nodes > 1 { Node::make(nodes)? } else { Vec::new() };
        Ok(Rig { fabric, nodes, environment, notes, no_p2p, _installed: installed })
    }

    /// The fabric.
    pub fn fabric(&self) -> Fabric {
        self.fabric
    }

    /// Why the PEs of a node cannot reach each other's memory by loads and stores; `None` if they can, where the hardware can.
    pub fn no_peer_access(&self) -> Option<&'static str> {
        match self.fabric {
            Fabric::Network => Some("over --fabric network there is none"),
            _ => self.no_p2p.then_some("NVSHMEM_DISABLE_P2P is set"),
        }
    }

    /// The nodes; empty if this host is the only one.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What each PE needs in its environment.
    pub fn environment(&self) -> &[(String, OsString)] {
        &self.environment
    }

    /// Where the user's own settings contradict the fabric.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }
}

/// NVSHMEM's variable for where the symmetric heap lies, and the value that the stand-in needs.
const HEAP_KIND: &str = "NVSHMEM_HEAP_KIND";
const HOST_MEMORY: &str = "SYSMEM";
/// NVSHMEM's variable for the network, which is InfiniBand where it is not set.
const TRANSPORT: &str = "NVSHMEM_REMOTE_TRANSPORT";
/// Where Linux lists the devices of InfiniBand. The folder is there if the driver is.
const INFINIBAND: &str = "/sys/class/infiniband";
const LOADER: &str = "LD_LIBRARY_PATH";
const NO_P2P: &str = "NVSHMEM_DISABLE_P2P";
/// No InfiniBand is needed. CUDA's memory goes through copies.
const TRANSPORTS: &str = "tcp,self,cuda_copy";

/// What is set unless the user has set it. The flag says whether another value contradicts the fabric.
const SETTINGS: [(&str, &str, bool); 8] = [
    (TRANSPORT, "ucx", true),
    ("NVSHMEM_UCX_TLS", TRANSPORTS, true),
    ("UCX_TLS", TRANSPORTS, true),
    ("UCX_WARN_UNUSED_ENV_VARS", "n", false),
    ("UCX_LOG_LEVEL", "error", false), // the library asks for InfiniBand too, and UCX warns that there is none
    ("NVSHMEM_DISABLE_NCCL", "1", false), // NCCL would go its own ways
    (HEAP_KIND, HOST_MEMORY, true),
    ("NVSHMEM_SYMMETRIC_SIZE", "64M", false), // host memory of this size is pinned for each PE
];

/// Whether InfiniBand's driver is loaded and has no device. NVSHMEM 3.4.5 does not start there ("nvshmem detect topo failed"),
/// although its PEs need no network.
fn has_driver_without_device(devices: &Path) -> bool {
    fs::read_dir(devices).is_ok_and(|mut devices| devices.next().is_none())
}

/// The stand-in cannot reach a heap on the GPU.
fn check_heap(gdrcopy: &Gdrcopy, user: &dyn Fn(&str) -> Option<OsString>) -> Result<(), String> {
    match user(HEAP_KIND) {
        Some(kind) if gdrcopy.is_stand_in() && !kind.eq_ignore_ascii_case(HOST_MEMORY) => Err(format!(
            "{HEAP_KIND}={} is set, and the stand-in for GDRCopy reaches a heap in host memory only: unset it (then it is \
             {HOST_MEMORY}), or install GDRCopy with its driver",
            kind.display()
        )),
        _ => Ok(()),
    }
}

/// Less room than this in `/dev/shm` is worth a note: the heaps of a few PEs, each somewhat larger than was asked for.
const ROOM: u64 = 512 << 20;

/// The room in `/dev/shm`, in bytes, if the system tells it.
#[cfg(unix)]
fn room() -> Option<u64> {
    rustix::fs::statvfs("/dev/shm").ok().map(|shared| shared.f_bavail.saturating_mul(shared.f_frsize))
}

#[cfg(not(unix))]
fn room() -> Option<u64> {
    None
}

/// A PE that touches a part of its heap that has no room there is killed by SIGBUS, without a word.
fn too_small(room: u64) -> Option<String> {
    let mib = room >> 20;
    (room < ROOM).then(|| {
        format!(
            "/dev/shm has room for {mib} MiB, and the symmetric heap of each PE lies there (NVSHMEM_SYMMETRIC_SIZE): if a PE is \
             killed by SIGBUS, make it larger (in a container: --shm-size=2g)"
        )
    })
}

/// The environment of a PE, and notes about what the user has set otherwise. `first` stands first where libraries are
/// looked for.
fn environment(
    fabric: Fabric,
    ucx: &Ucx,
    first: Option<&Path>,
    user: &dyn Fn(&str) -> Option<OsString>,
) -> (Vec<(String, OsString)>, Vec<String>) {
    let (mut environment, mut notes) = (Vec::new(), Vec::new());
    let mut settings: Vec<(&str, &OsStr, bool)> =
        SETTINGS.iter().map(|&(name, value, contradicts)| (name, OsStr::new(value), contradicts)).collect();
    settings.push(("UCX_MODULE_DIR", ucx.modules.as_os_str(), false));
    if fabric == Fabric::Network {
        settings.push((NO_P2P, OsStr::new("1"), true));
    }
    for (name, value, contradicts) in settings {
        match user(name) {
            None => environment.push((name.to_string(), value.to_os_string())),
            Some(other) if contradicts && !other.eq_ignore_ascii_case(value) => notes.push(format!(
                "{name}={} is set and stays; --fabric {fabric} would set {}",
                other.display(),
                value.display()
            )),
            Some(_) => {}
        }
    }
    if let (Fabric::Mixed, Some(value)) = (fabric, user(NO_P2P).filter(|value| value != "0")) {
        let value = value.display();
        notes.push(format!("{NO_P2P}={value} is set and stays: the PEs of a node have no P2P either"));
    }
    let users = user(LOADER);
    let folders = first.into_iter().map(Path::to_path_buf).chain(ucx.folders());
    let folders = folders.chain(users.iter().flat_map(env::split_paths));
    // A folder with a colon in its name cannot be on this list. Then the rest of it still can.
    let plain = folders.filter(|folder| !folder.as_os_str().as_encoded_bytes().contains(&b':'));
    if let Ok(list) = env::join_paths(plain) {
        environment.push((LOADER.to_string(), list));
    }
    (environment, notes)
}

/// The transport of GDRCopy that a job would use, in a few words, or why there is none.
#[doc(hidden)]
pub fn gdrcopy_in_words(file: Option<&Path>) -> Result<String, String> {
    gdrcopy::Gdrcopy::find(file).map(|found| found.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ucx() -> Ucx {
        Ucx { libraries: "/u/lib".into(), modules: "/u/lib/ucx".into(), bundled: vec!["/u/x.libs".into()] }
    }

    fn set(fabric: Fabric, user: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let user = |name: &str| user.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value));
        let (environment, notes) = environment(fabric, &ucx(), Some(Path::new("/tmp/first")), &user);
        (environment.iter().map(|(name, value)| format!("{name}={}", value.display())).collect(), notes)
    }

    #[test]
    fn a_network_is_set_up_by_variables() {
        let (environment, notes) = set(Fabric::Network, &[]);
        assert_eq!(
            environment,
            [
                "NVSHMEM_REMOTE_TRANSPORT=ucx",
                "NVSHMEM_UCX_TLS=tcp,self,cuda_copy",
                "UCX_TLS=tcp,self,cuda_copy",
                "UCX_WARN_UNUSED_ENV_VARS=n",
                "UCX_LOG_LEVEL=error",
                "NVSHMEM_DISABLE_NCCL=1",
                "NVSHMEM_HEAP_KIND=SYSMEM",
                "NVSHMEM_SYMMETRIC_SIZE=64M",
                "UCX_MODULE_DIR=/u/lib/ucx",
                "NVSHMEM_DISABLE_P2P=1",
                "LD_LIBRARY_PATH=/tmp/first:/u/lib:/u/x.libs",
            ]
        );
        assert!(notes.is_empty());
        let (mixed, _) = set(Fabric::Mixed, &[]);
        let same = environment.into_iter().filter(|setting| setting != "NVSHMEM_DISABLE_P2P=1");
        assert_eq!(mixed, same.collect::<Vec<_>>());
    }

    #[test]
    fn what_the_user_has_set_stays_with_a_note_where_it_contradicts() {
        let user = [
            ("NVSHMEM_REMOTE_TRANSPORT", "UCX"),
            ("UCX_TLS", "rc"),
            ("NVSHMEM_SYMMETRIC_SIZE", "1G"),
            ("NVSHMEM_DISABLE_P2P", "1"),
            ("LD_LIBRARY_PATH", "/mine:/other"),
        ];
        let (environment, notes) = set(Fabric::Network, &user);
        assert_eq!(notes, ["UCX_TLS=rc is set and stays; --fabric network would set tcp,self,cuda_copy"]);
        assert!(environment.iter().all(|set| !set.starts_with("UCX_TLS") && !set.contains("SYMMETRIC")));
        assert_eq!(environment.last().unwrap(), "LD_LIBRARY_PATH=/tmp/first:/u/lib:/u/x.libs:/mine:/other");
        let (_, notes) = set(Fabric::Mixed, &user);
        assert_eq!(notes[1], "NVSHMEM_DISABLE_P2P=1 is set and stays: the PEs of a node have no P2P either");
    }

    #[test]
    fn a_driver_without_a_device_is_told_from_none_and_from_one_with() {
        let folder = tempfile::tempdir().unwrap();
        assert!(has_driver_without_device(folder.path()));
        fs::write(folder.path().join("mlx5_0"), "").unwrap();
        assert!(!has_driver_without_device(folder.path()));
        assert!(!has_driver_without_device(&folder.path().join("absent")));
    }

    #[test]
    fn little_room_for_heaps_is_noted() {
        assert!(too_small(64 << 20).unwrap().starts_with("/dev/shm has room for 64 MiB"));
        assert_eq!(too_small(ROOM), None);
        assert!(!cfg!(target_os = "linux") || room().is_some());
    }

    #[test]
    fn a_fabric_and_a_number_of_nodes_fit_together() {
        let shape = |fabric, nodes| FabricOptions { fabric, ..FabricOptions::default() }.shape(nodes);
        assert_eq!(shape(None, None), Ok((Fabric::P2p, 1)));
        assert_eq!(shape(None, Some(3)), Ok((Fabric::Mixed, 3)));
        assert_eq!(shape(Some(Fabric::Network), None), Ok((Fabric::Network, 1)));
        assert_eq!(shape(Some(Fabric::Network), Some(2)), Ok((Fabric::Network, 2)));
        assert_eq!(shape(Some(Fabric::Mixed), None), Ok((Fabric::Mixed, 2)));
        assert!(shape(Some(Fabric::P2p), Some(2)).unwrap_err().contains("one node"));
        assert!(shape(Some(Fabric::Mixed), Some(1)).unwrap_err().contains("--nodes 2"));
        let lost = FabricOptions { ucx: Some("/u".into()), ..FabricOptions::default() };
        assert!(lost.shape(None).unwrap_err().starts_with("--ucx is about a network"));
    }

    #[test]
    fn a_heap_on_the_gpu_is_out_of_the_stand_ins_reach() {
        let device = |name: &str| (name == HEAP_KIND).then(|| OsString::from("VIDMEM"));
        let why = check_heap(&Gdrcopy::StandIn("/x/libgdrapi.so".into()), &device).unwrap_err();
        assert!(why.starts_with("NVSHMEM_HEAP_KIND=VIDMEM is set") && why.contains("unset it"), "{why}");
        assert_eq!(check_heap(&Gdrcopy::OfTheMachine, &device), Ok(()));
        assert_eq!(check_heap(&Gdrcopy::StandIn("/x".into()), &|_| None), Ok(()));
    }
}
