#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]
//!
//! # Module map
//!
//! | file | what it holds |
//! |---|---|
//! | `simulation.rs` | [`Simulation`]: run, explore, replay, reproduce; for programs that initialize themselves too |
//! | `testing.rs`, `testing/` | [`prove`], [`check_random`], [`check_schedule`] and [`refute`], for ordinary tests |
//! | `search.rs`, `limits.rs` | what a search visits ([`Explore`]) and has shown ([`Explored`]); what bounds it ([`Budget`]) |
//! | `config.rs`, `profile.rs` | the cluster and the limits of a run; what its transport guarantees |
//! | `visit.rs` | the loops of a search: random, and of all schedules |
//! | `cores.rs`, `crew/` | [`Cores`]: the same search on several cores; threads that run schedules ahead |
//! | `schedule.rs` | [`Schedule`]: a run's choices as a value, and as a short line |
//! | `exception.rs` | [`Exception`]: a step that comes later than in order |
//! | `verdict.rs` | [`Verdict`]: how a run ended, and what everybody was doing |
//! | `trace/` | [`Event`]: what happened, in one log, with the values that moved |
//! | `pe.rs`, `request.rs` | a PE's end of the simulator; its calls and their replies |
//! | `execution.rs` | one program, one schedule |
//! | `determinism.rs` | a program that does something else the second time: the first call that differs |
//! | `robust.rs` | whether every outcome is sequentially consistent |
//! | `panics.rs` | the source line of a PE's panic |
//! | `last_words.rs` | which PE it was that ended the process, by an exit or by a full stack |
//! | `explore/` | who picks when several steps are possible: nobody, a seed, a search, a recorded list |
//! | `explain/` | why a run failed: the simplest run that fails alike, whether a race changes a result, what would repair it |
//! | `race/` | data races: who knows of which access, and what would order two that nobody orders |
//! | `lint/` | what works in a run, but is not promised |
//! | `machine/` | the semantics: all state, and what each step does to it; its `mod.rs` has a map of its own |
//! | `kernel/` | what kernels ask of NVSHMEM: names of device functions and their arguments |
//! | `heap.rs`, `reduce.rs` | symmetric memory; arithmetic of reductions |
//! | `coroutine.rs` | PEs as coroutines: how they start, wait and end ([`Ending`]); [`Pulse`] |
//! | `mappings.rs` | how many stacks a process can have |
//! | `example.rs` | runs the examples in the API's documentation |

mod config;
mod cores;
#[expect(unsafe_code, reason = "switches stacks; every block says why it is sound")]
mod coroutine;
mod crew;
mod determinism;
mod example;
mod exception;
mod execution;
mod explain;
mod explore;
mod heap;
mod kernel;
#[cfg(unix)]
#[expect(unsafe_code, reason = "handles signals and exits; every block says why it is sound")]
mod last_words;
#[cfg(not(unix))]
mod last_words {
    pub(crate) fn listen() {}
}
mod limits;
mod lint;
mod machine;
mod mappings;
mod mix;
mod panics;
mod pe;
mod profile;
mod race;
mod reduce;
mod request;
mod robust;
mod schedule;
mod search;
mod simulation;
mod testing;
mod trace;
mod verdict;
mod visit;

pub use config::{Config, Loads, Quiet, Races, Reduce};
pub use cores::Cores;
pub use coroutine::{Beat, Ending, Pulse};
#[doc(hidden)]
pub use example::{FILL_TILE_PTX, RING_PTX, example};
pub use exception::{Exception, StepName};
pub use explain::{
    Critical, Difference, Edit, Effort, Enough, Fix, Fixes, Minimized, NoWayBack, OddRun, Ordering, Shown, Weaker,
    Witness,
};
pub use kernel::kernel_text;
pub use limits::{Bound, Budget};
pub use lint::{Lint, LintKind, LintSite};
pub use onesided_ptx::{Beside, Change as KernelChange, DeviceCall, Who as KernelThread};
pub use pe::{Sim, SimEvent, SimModule, SimProcess, SimStream};
pub use profile::{Profile, Promises};
pub use race::{
    Access, IneffectiveOrder, IneffectiveReason, IntendedRace, IntendedRaces, MissingEdge, Part, Race, Reach, Side,
};
pub use robust::{Odd, Robustness, robustness};
pub use schedule::{Choices, Schedule};
pub use search::{Explore, Explored, Outlook, Searched, Strategy};
pub use simulation::{Run, Simulation};
pub use testing::{check_random, check_schedule, prove, refute};
pub use trace::{Event, EventKind, LastRead, Moved, ReadPart, Unwritten, Writer};
pub use verdict::{AgentState, Entered, Repeated, Standing, Undelivered, Verdict, VerdictKind};
