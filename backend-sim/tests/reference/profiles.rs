//! Profiles: the rules that differ between them.

use onesided_sim::Profile;

/// What a profile promises beyond the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A fence completes, and claims, as a quiet does.
    pub(crate) fence_is_quiet: bool,
    /// The call of a blocking put ends when the put has been delivered.
    pub(crate) put_returns_delivered: bool,
    /// Transfers of one scope to the same PE are delivered in the order of issue; non-blocking ones excepted.
    pub(crate) same_target_in_order: bool,
}

impl Rules {
    pub(crate) fn of(profile: Profile) -> Rules {
        let nvlink = match profile {
            Profile::Spec => false,
            Profile::Nvlink => true,
        };
        Rules { fence_is_quiet: nvlink, put_returns_delivered: nvlink, same_target_in_order: nvlink }
    }
}
