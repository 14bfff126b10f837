//! Profiles: what a transport guarantees beyond the specification's text. The one place where they live.

use std::fmt;
use std::str::FromStr;

/// Which promises a run makes. A set of outcomes is always labelled with its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[expect(clippy::exhaustive_enums, reason = "who describes what profiles promise must describe each")]
pub enum Profile {
    /// Only what the specification promises: latest delivery, latest source reads, any arrival order.
    #[default]
    Spec,
    /// Loads and stores over NVLink: a fence is a quiet, a blocking put has arrived when it returns, transfers to the
    /// same target arrive in order.
    Nvlink,
}

/// The rules that profiles switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A fence completes, as quiet does.
    pub(crate) fence_is_quiet: bool,
    /// A blocking put returns when it has been delivered.
    pub(crate) put_returns_delivered: bool,
    /// Transfers of one scope to the same PE are delivered in the order of issue.
    pub(crate) same_target_in_order: bool,
}

impl Profile {
    /// Every profile, weakest first.
    pub const ALL: [Profile; 2] = [Profile::Spec, Profile::Nvlink];

    pub(crate) fn rules(self) -> Rules {
        match self {
            Profile::Spec => Rules { fence_is_quiet: false, put_returns_delivered: false, same_target_in_order: false },
            Profile::Nvlink => Rules { fence_is_quiet: true, put_returns_delivered: true, same_target_in_order: true },
        }
    }

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Spec => "spec",
            Profile::Nvlink => "nvlink",
        }
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
