//! Profiles: the rules that differ between them, said once more, because the model is to be independent.

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
    /// A host's put or get waits until its streams have come to what they put to the same PE. The library does so; no text promises it, so it
    /// orders nothing.
    pub(crate) awaits_starts: bool,
    /// A loop around plain reads goes on only when it has found what it looks for. It tells nothing, so it orders nothing either.
    pub(crate) plain_polls_wait: bool,
    /// What has arrived is seen by everybody.
    pub(crate) one_fabric: bool,
}

impl Rules {
    pub(crate) fn of(profile: Profile) -> Rules {
        let [fence_is_quiet, put_returns_delivered, same_target_in_order] = match profile {
            Profile::Spec | Profile::UnorderedNic | Profile::MixedFabric => [false, false, false],
            Profile::Ibgda => [true, false, false],
            Profile::Network => [false, false, true],
            Profile::Nvlink => [true, true, true],
        };
        let one_fabric = profile != Profile::MixedFabric;
        let [awaits_starts, plain_polls_wait] = [true; 2];
        Rules {
            fence_is_quiet,
            put_returns_delivered,
            same_target_in_order,
            awaits_starts,
            plain_polls_wait,
            one_fabric,
        }
    }
}
