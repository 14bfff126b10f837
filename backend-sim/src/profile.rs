//! Profiles: what a transport promises beyond the specification's text. The one place where they live.
//!
//! A profile is data: a row of [`ROWS`] with its [`Promises`]. The machine and the race detector ask for a promise, never for a
//! profile. The README's table is printed from the same rows.

use std::fmt;
use std::str::FromStr;

/// Which promises a run makes. A set of outcomes is always labelled with its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[expect(clippy::exhaustive_enums, reason = "who describes what profiles promise must describe each")]
pub enum Profile {
    /// Only what the specification promises: latest delivery, latest source reads, any arrival order.
    #[default]
    Spec,
    /// The adversary within `spec`: the run in order and random ones (those of [`Strategy::Plain`](crate::Strategy::Plain)) deliver as late
    /// as possible, and the last issued transfer first. So a few runs are enough to see what goes wrong. A search of all schedules visits those of `spec`.
    UnorderedNic,
    /// Nodes with a fabric of their own, and another fabric between them. What has arrived is visible only to its destination, until that PE
    /// synchronizes with others.
    MixedFabric,
    /// A NIC that GPUs drive themselves: a fence is a quiet, and nothing else is promised.
    Ibgda,
    /// NVSHMEM's proxy and UCX over TCP: one connection to each PE, which keeps its order.
    Network,
    /// Loads and stores over NVLink: a fence is a quiet, a blocking put has arrived when it returns, transfers to the
    /// same target arrive in order.
    Nvlink,
}

/// What a profile promises beyond the text. Each promise is independent of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "who compares profiles must know each promise")]
pub struct Promises {
    /// A blocking put has arrived when it returns.
    pub put_arrives: bool,
    /// A fence completes what its scope has issued, as a quiet does.
    pub fence_completes: bool,
    /// Transfers of one scope to one PE arrive in the order of issue, non-blocking ones excepted.
    pub in_order: bool,
    /// What has arrived at a PE is visible to all PEs. Without this promise, data that came from the PE's own node may be invisible to PEs of other nodes,
    /// and the other way round. They may see the old value until the PE has seen the new one and synchronizes with them.
    pub one_fabric: bool,
    /// If a kernel's own load reads what a transfer has brought, and the kernel then fences, it sees what had arrived before. Without this promise, only
    /// NVSHMEM's waits, tests and fetches show that, because a network does not write in the GPU's memory order.
    pub loads_suffice: bool,
    /// A kernel's vector access loads or stores all its elements in one aligned word of 8 bytes at once, such as data and its flag. Without this promise, the elements
    /// are accessed in any order.
    pub whole_words: bool,
}

/// What there is to say of a profile.
#[derive(Debug)]
struct Row {
    name: &'static str,
    promises: Promises,
    /// Whether runs are drawn to do harm.
    adversary: bool,
    /// What it is like, in a few words.
    about: &'static str,
}

/// Only what every transport keeps.
const NOTHING: Promises = Promises {
    put_arrives: false,
    fence_completes: false,
    in_order: false,
    one_fabric: false,
    loads_suffice: false,
    whole_words: false,
};

/// The rows of [`Profile::ALL`].
const ROWS: [Row; 6] = [
    Row {
        name: "spec",
        promises: Promises { one_fabric: true, ..NOTHING },
        adversary: false,
        about: "the specification's text, and no more",
    },
    Row {
        name: "unordered-nic",
        promises: Promises { one_fabric: true, ..NOTHING },
        adversary: true,
        about: "the adversary within spec: in order and at random, what was issued last arrives first, and late",
    },
    Row {
        name: "mixed-fabric",
        promises: NOTHING,
        adversary: false,
        about: "NVLink in a node and a network between nodes, by the text: a put is promised to its destination only",
    },
    Row {
        name: "ibgda",
        promises: Promises { fence_completes: true, one_fabric: true, ..NOTHING },
        adversary: false,
        about: "an InfiniBand NIC that GPUs drive themselves (not measured)",
    },
    Row {
        name: "network",
        promises: Promises { in_order: true, one_fabric: true, ..NOTHING },
        adversary: false,
        about: "NVSHMEM's proxy and UCX over TCP (measured)",
    },
    Row {
        name: "nvlink",
        promises: Promises {
            put_arrives: true,
            fence_completes: true,
            in_order: true,
            one_fabric: true,
            loads_suffice: true,
            whole_words: true,
        },
        adversary: false,
        about: "loads and stores over NVLink (measured)",
    },
];

impl Profile {
    /// Every profile: `spec` first, then those that promise less before those that promise more.
    pub const ALL: [Profile; 6] =
        [Profile::Spec, Profile::UnorderedNic, Profile::MixedFabric, Profile::Ibgda, Profile::Network, Profile::Nvlink];

    fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }

    /// What it promises beyond the text.
    pub fn promises(self) -> Promises {
        self.row().promises
    }

    /// Whether its runs in order and at random are the adversary's.
    pub(crate) fn is_adversary(self) -> bool {
        self.row().adversary
    }

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// What it is like, in a few words.
    pub fn about(self) -> &'static str {
        self.row().about
    }

    /// The profiles as a table in Markdown: what each promises.
    pub fn table() -> String {
        let mut text =
            "| profile | a blocking put | a fence | arrival at one PE | seen | a kernel's own poll | 8 bytes of a vector | what it is like |\n".to_string();
        text += "|---|---|---|---|---|---|---|---|\n";
        for profile in Profile::ALL {
            let Promises { put_arrives, fence_completes, in_order, one_fabric, loads_suffice, whole_words } =
                profile.promises();
            let put = if put_arrives { "has arrived when it returns" } else { "arrives later" };
            let fence = if fence_completes { "completes, as a quiet" } else { "orders" };
            let order = if in_order { "in the order of issue, but for `_nbi`" } else { "in any order" };
            let seen = if one_fabric { "by everybody" } else { "by that PE" };
            let poll = if loads_suffice { "shows what came before" } else { "shows that word" };
            let vector = if whole_words { "at once" } else { "by element" };
            let about = profile.about();
            text += &format!("| `{profile}` | {put} | {fence} | {order} | {seen} | {poll} | {vector} | {about} |\n");
        }
        text
    }
}

impl Promises {
    /// Whether everything that `other` promises is promised here too. Then every outcome under these promises is also one under `other`.
    pub fn include(&self, other: &Promises) -> bool {
        let Promises { put_arrives, fence_completes, in_order, one_fabric, loads_suffice, whole_words } = *other;
        self.put_arrives >= put_arrives
            && self.fence_completes >= fence_completes
            && self.in_order >= in_order
            && self.one_fabric >= one_fabric
            && self.loads_suffice >= loads_suffice
            && self.whole_words >= whole_words
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(name: &str) -> Result<Profile, String> {
        let known = || Profile::ALL.map(Profile::name).join(", ");
        Profile::ALL
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| format!("{name:?} is not a profile; there are {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profile_has_its_row() {
        for (profile, row) in Profile::ALL.into_iter().zip(&ROWS) {
            assert_eq!(profile.name(), row.name);
            assert_eq!(profile.name().parse(), Ok(profile));
        }
        let names = ["spec", "unordered-nic", "mixed-fabric", "ibgda", "network", "nvlink"];
        let kinds = [Profile::Spec, Profile::UnorderedNic, Profile::MixedFabric, Profile::Ibgda, Profile::Network];
        assert_eq!(kinds.map(Profile::name), names[..5]);
    }

    #[test]
    fn the_readme_has_the_table() {
        assert!(
            include_str!("../README.md").contains(&Profile::table()),
            "put this into README.md:\n{}",
            Profile::table()
        );
    }

    #[test]
    fn a_mixed_fabric_promises_least_and_nvlink_most() {
        for profile in Profile::ALL {
            let is_stronger = profile.promises().include(&Profile::Spec.promises());
            assert_eq!(is_stronger, profile != Profile::MixedFabric, "{profile}");
            assert!(profile.promises().include(&Profile::MixedFabric.promises()), "{profile}");
            assert!(Profile::Nvlink.promises().include(&profile.promises()), "{profile}");
        }
        let [ibgda, network] = [Profile::Ibgda, Profile::Network].map(Profile::promises);
        assert!(!ibgda.include(&network) && !network.include(&ibgda));
    }
}
