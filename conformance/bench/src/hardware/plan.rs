//! What is measured, and how often: the parent decides, and hands it to both programs in the same words.

use std::fmt;
use std::str::FromStr;

use onesided_harness::launch::Fabric;

/// The calls of one measurement, all on one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// PE 0 puts to PE 1; done when a quiet on the stream is. A put of nothing is no call of the library: what it takes
    /// is what the API itself does for a call.
    Put,
    /// PE 0 gets from PE 1.
    Get,
    /// The same by the host, which has the data when a call returns: behind a network after a quiet, in both programs.
    HostGet,
    /// A put with signal and a wait for one on each of two PEs: there and back.
    PingPong,
    /// A barrier of all PEs.
    Barrier,
    /// A sum of `f32` over all PEs.
    Reduce,
    /// PE 0 launches a kernel that does nothing.
    Launch,
    /// The same, whose blocks must run at the same time.
    Cooperative,
    /// One thread of a kernel of PE 0 makes so many calls to PE 1: the call is what is measured.
    DeviceP,
    DeviceG,
    DevicePut,
    DeviceSignal,
    DeviceFence,
    DeviceQuiet,
}

/// What calls are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// Nothing: no call of the library is made.
    Nothing,
    /// C++ that makes the same calls.
    Cpp,
    /// The same kernel, compiled with NVSHMEM's own headers, which inline what is short.
    Headers,
}

impl Kind {
    const ALL: [Kind; 14] = [
        Kind::Put,
        Kind::Get,
        Kind::HostGet,
        Kind::PingPong,
        Kind::Barrier,
        Kind::Reduce,
        Kind::Launch,
        Kind::Cooperative,
        Kind::DeviceP,
        Kind::DeviceG,
        Kind::DevicePut,
        Kind::DeviceSignal,
        Kind::DeviceFence,
        Kind::DeviceQuiet,
    ];

    fn name(self) -> &'static str {
        match self {
            Kind::Put => "put",
            Kind::Get => "get",
            Kind::HostGet => "host_get",
            Kind::PingPong => "ping_pong",
            Kind::Barrier => "barrier",
            Kind::Reduce => "reduce",
            Kind::Launch => "launch",
            Kind::Cooperative => "cooperative",
            Kind::DeviceP => "device_p",
            Kind::DeviceG => "device_g",
            Kind::DevicePut => "device_put",
            Kind::DeviceSignal => "device_signal",
            Kind::DeviceFence => "device_fence",
            Kind::DeviceQuiet => "device_quiet",
        }
    }

    /// The kernel of `kernels/calls.cu` that it measures.
    pub(super) fn kernel(self) -> Option<&'static str> {
        match self {
            Kind::Put | Kind::Get | Kind::HostGet | Kind::PingPong | Kind::Barrier | Kind::Reduce => None,
            Kind::Launch | Kind::Cooperative => None,
            Kind::DeviceP => Some("p"),
            Kind::DeviceG => Some("g"),
            Kind::DevicePut => Some("put"),
            Kind::DeviceSignal => Some("signal_op"),
            Kind::DeviceFence => Some("fence"),
            Kind::DeviceQuiet => Some("quiet"),
        }
    }
}

/// One measurement; its text is `KIND:BYTES:OPERATIONS:SAMPLES`.
///
/// A sample is the mean time of so many operations, twice: until they are enqueued, which is what a call costs, and
/// until they are done. One sample more is taken before the others, and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Measurement {
    pub(super) kind: Kind,
    pub(super) bytes: usize,
    /// Of the host: few enough to fit into a stream's queue. A full queue makes the host wait, and hides what a call costs.
    pub(super) operations: u32,
    pub(super) samples: u32,
}

/// The measurements in the order of the table.
///
/// Together they take about a second on a GPU, and twice that with the pair of each. Small operations have many short samples.
/// A disturbance then hits a sample of both sides, and the median leaves it out. Over a network an operation takes ten times as
/// long or more, so there are fewer samples.
pub(super) fn plan(quick: bool, fabric: Fabric) -> Vec<Measurement> {
    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;
    let plan = [
        (Kind::Put, 0, 200, 200),
        (Kind::Put, 8, 100, 200),
        (Kind::Put, KIB, 100, 200),
        (Kind::Put, 64 * KIB, 100, 200),
        (Kind::Put, MIB, 100, 200),
        (Kind::Put, 16 * MIB, 8, 30),
        (Kind::Put, 64 * MIB, 4, 20),
        (Kind::Put, 256 * MIB, 2, 20),
        (Kind::Get, 8, 100, 200),
        (Kind::Get, 64 * KIB, 100, 200),
        (Kind::HostGet, 8, 50, 200),
        (Kind::PingPong, 8, 50, 100),
        (Kind::Barrier, 0, 50, 200),
        (Kind::Reduce, 4, 50, 200),
        (Kind::Reduce, 4 * KIB, 50, 200),
        (Kind::Reduce, MIB, 10, 30),
        (Kind::Reduce, 16 * MIB, 1, 20),
        (Kind::Launch, 0, 100, 200),
        (Kind::Cooperative, 0, 100, 200),
        (Kind::DeviceP, 8, 1000, 50),
        (Kind::DeviceG, 8, 1000, 50),
        (Kind::DevicePut, 64, 1000, 50),
        (Kind::DeviceSignal, 8, 1000, 50),
        (Kind::DeviceFence, 0, 1000, 50),
        (Kind::DeviceQuiet, 0, 1000, 50),
    ];
    let measurement = |(kind, bytes, operations, samples): (Kind, usize, u32, u32)| Measurement {
        kind,
        bytes,
        operations,
        samples: match fabric {
            _ if quick => 2,
            Fabric::P2p => samples,
            Fabric::Network | Fabric::Mixed => samples / 10,
        },
    };
    plan.map(measurement).into()
}

impl Measurement {
    /// What it is compared with.
    pub(super) fn beside(self) -> Beside {
        match self.kind {
            Kind::Put if self.bytes == 0 => Beside::Nothing,
            Kind::Put | Kind::Get | Kind::HostGet | Kind::PingPong | Kind::Barrier | Kind::Reduce => Beside::Cpp,
            Kind::Launch | Kind::Cooperative => Beside::Cpp,
            _ => Beside::Headers,
        }
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}:{}", self.kind.name(), self.bytes, self.operations, self.samples)
    }
}

impl FromStr for Measurement {
    type Err = String;

    fn from_str(text: &str) -> Result<Measurement, String> {
        let parse = || {
            let mut fields = text.split(':');
            let kind = fields.next()?;
            let kind = Kind::ALL.into_iter().find(|candidate| candidate.name() == kind)?;
            let bytes = fields.next()?.parse().ok()?;
            let operations = fields.next()?.parse().ok()?;
            let samples = fields.next()?.parse().ok()?;
            fields.next().is_none().then_some(Measurement { kind, bytes, operations, samples })
        };
        parse().ok_or_else(|| format!("'{text}' is no measurement: it is KIND:BYTES:OPERATIONS:SAMPLES"))
    }
}

/// `8 B`, `64 KiB`, `256 MiB`.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..0x10_0000 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_written_and_read() {
        for measurement in plan(false, Fabric::P2p).into_iter().chain(plan(true, Fabric::Network)) {
            assert_eq!(measurement.to_string().parse(), Ok(measurement));
        }
        for wrong in ["", "put", "put:8:1", "put:8:1:1:1", "push:8:1:1", "put:-8:1:1"] {
            assert!(wrong.parse::<Measurement>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_measurement_fills_a_stream_and_none_stands_there_twice() {
        let plan = plan(false, Fabric::P2p);
        let fits = |m: &Measurement| m.operations <= 200 || m.beside() == Beside::Headers;
        assert!(plan.iter().all(|m| fits(m) && m.samples >= 20), "{plan:?}");
        let mut names: Vec<_> = plan.iter().map(|m| (m.kind, m.bytes)).collect();
        names.dedup();
        assert_eq!(names.len(), plan.len());
    }

    #[test]
    fn sizes_are_named_as_people_do() {
        assert_eq!(
            [0, 8, 1024, 64 << 10, 1 << 20, 256 << 20].map(size),
            ["0 B", "8 B", "1 KiB", "64 KiB", "1 MiB", "256 MiB"]
        );
    }
}
