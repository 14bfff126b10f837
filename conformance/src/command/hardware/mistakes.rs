//! Which mistakes the part `mistakes` makes: each must end in a message that names its cause.

use std::process::Command;

use onesided_harness::launch::Fabric;

use super::parts::Rig;
use super::step::{Expected, Launcher, Step, Task};

impl Rig {
    /// What must end in a message. `port` returns a free port, another one each time.
    ///
    /// # Errors
    /// No port is free.
    pub(super) fn mistakes(&self, port: &mut dyn FnMut() -> Result<u16, String>) -> Result<Vec<Task>, String> {
        if self.fabric != Fabric::P2p {
            return Ok(self.mistakes_on_a_network().into_iter().map(Task::Run).collect());
        }
        let wrong = |name: &str, says, commands: Vec<Command>| {
            let key = Launcher::Foreign { pes_per_gpu: 1 };
            Task::Run(Step { status: Expected::Error, says, launcher: key, ..Step::new(name, 60, commands) })
        };
        let mut absent = self.alone("ring");
        absent.args(["--pes", "2"]).env("ONESIDED_NVSHMEM_LIB", self.binaries.join("absent.so"));
        let mut too_many = self.alone("ring");
        too_many.args(["--pes", &(self.gpus + 1).to_string()]);
        let on = |gpus: &str| {
            let mut launch = self.onesided(&["launch", "-n", "2", "--gpus", gpus, "--timeout", "40", "--"]);
            launch.arg(self.program("ring")).args(["--backend", "nvshmem"]);
            launch
        };
        let pe_0 = |port: u16| {
            let mut ring = self.alone("ring");
            ring.env("ONESIDED_RANK", "0").env("ONESIDED_PES", "2").env("ONESIDED_LOCAL_RANK", "0");
            ring.env("ONESIDED_DEVICE", "0").env("ONESIDED_TIMEOUT", "5");
            ring.env("ONESIDED_RENDEZVOUS", format!("127.0.0.1:{port}"));
            ring
        };
        let (alone, twice) = (port()?, port()?);
        let mut early = self.onesided(&["launch", "-n", "2", "--timeout", "40", "--"]);
        early.args(["sh", "-c", "[ \"$ONESIDED_RANK\" = 0 ] && exit 3; sleep 600"]);
        let early = Step {
            status: Expected::One(&[3]),
            says: &["PE 0 ended with status 3"],
            ..Step::new("a PE that ends early ends the job", 60, [early])
        };
        Ok(vec![
            wrong("a library that is absent", &["no such file"], vec![absent]),
            wrong("more PEs than GPUs, no MPS", &["--mps"], vec![too_many]),
            wrong("PEs that share a GPU without MPS", &["several PEs share a GPU without MPS"], vec![on("0,")]),
            wrong("a GPU that is not there", &["99"], vec![on("0,99")]),
            wrong("a PE that never comes", &["PE 1", "rank 1"], vec![pe_0(alone)]),
            wrong("two PEs of the same rank", &["PE 0", "rank 0"], vec![pe_0(twice), pe_0(twice)]),
            Task::Run(early),
        ])
    }

    /// What must end in a message where PEs reach each other over a network.
    fn mistakes_on_a_network(&self) -> Vec<Step> {
        let ring = |options: &[&str]| {
            let mut launch = self.onesided(&["launch", "-n", "2", "--timeout", "40"]);
            launch.args(&self.words).args(options).arg("--");
            launch.arg(self.program("ring")).args(["--backend", "nvshmem"]);
            launch
        };
        let refused = |name: &str, says, command: Command| Step {
            status: Expected::One(&[2]),
            says,
            ..Step::new(name, 60, [command])
        };
        let nowhere = self.binaries.join("absent");
        let nowhere = nowhere.to_string_lossy();
        let stand_in = self.binaries.join("libgdrapi.so");
        let mut on_gpu = ring(&["--gdrcopy", &stand_in.to_string_lossy()]);
        on_gpu.env("NVSHMEM_HEAP_KIND", "VIDMEM");
        // PE 1 is killed while it exchanges data with PE 0. The library ends PE 0 then, or lets it wait.
        let mut dies = self.launch(2, 60);
        dies.args(["sh", "-c", "\"$@\" & [ $ONESIDED_RANK = 1 ] && sleep 6 && kill -KILL $! && exit 3; wait $!", "sh"]);
        dies.arg(self.program("onesided")).args(["worker", "--runs", "100000000"]);
        // Each takes two seconds.
        dies.args(["sb", "lb", "mp", "coww", "s", "sb_fenced", "mp_fenced"].map(|case| format!("litmus/{case}")));
        let dies = Step {
            status: Expected::One(&[3, 134, 255]),
            says: &["PE 1 ended with status 3", "PE 1 failed too"],
            ..Step::new("a PE that dies in mid-transfer", 90, [dies])
        };
        vec![
            refused("no UCX", &["no libucp.so.0"], ring(&["--ucx", &nowhere])),
            refused("no GDRCopy", &["which is not there"], ring(&["--gdrcopy", &nowhere])),
            refused("a heap on the GPU without GDRCopy", &["NVSHMEM_HEAP_KIND=VIDMEM is set"], on_gpu),
            dies,
        ]
    }
}
