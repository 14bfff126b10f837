//! [`Mode`]: how a run is performed, and what whoever chooses its steps needs to know of them.

use onesided::At;

/// How a run is performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mode {
    /// What is chosen, and kept of steps.
    pub(crate) needs: Needs,
    /// Whether the run is recorded.
    pub(crate) tracing: bool,
    /// Whether races are looked for.
    pub(crate) races: bool,
    /// Whether lints are looked for. That needs races.
    pub(crate) lints: bool,
    /// Where every process became a PE, if each is one from the start.
    pub(crate) initialized: Option<At>,
}

/// What a chooser needs of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// Steps that wait to be chosen. Otherwise every step happens at once.
    pub(crate) relaxed: bool,
    /// What each step touched.
    pub(crate) noting: bool,
    /// What each step touched, and what comes before it.
    pub(crate) tracking: bool,
    /// What steps are going to touch.
    pub(crate) aiming: bool,
}

impl Needs {
    /// Nothing.
    pub(crate) const NOTHING: Needs = Needs { relaxed: false, noting: false, tracking: false, aiming: false };
    /// Steps to choose from, and nothing that is known of them.
    pub(crate) const CHOICES: Needs = Needs { relaxed: true, ..Needs::NOTHING };
    /// Choices, and all that is known of the steps taken.
    pub(crate) const PASTS: Needs = Needs { noting: true, tracking: true, ..Needs::CHOICES };
}
