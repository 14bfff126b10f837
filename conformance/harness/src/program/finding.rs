//! What `--finding`, `--report` and `--events` write: everything that is known of the recorded run.

use onesided_show::{Cluster, Finding};
use onesided_sim::{Config, Run};

use super::Facts;
use super::explain::Explained;
use super::plan::Plan;
use super::report::replay;
use super::sources;
use crate::tool::finding::of_verdict;
use crate::tool::terminal::events_of;

/// All that is known of a recorded run.
pub(super) fn finding(facts: &Facts, plan: &Plan, explained: Option<&Explained>, run: &Run<String>) -> Finding {
    let Config { pes, nodes, gpus, pieces, profile, .. } = plan.config;
    let mut finding = Finding {
        program: facts.name.to_string(),
        checks: facts.checks.to_string(),
        arguments: plan.own.given.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        cluster: Cluster { pes, nodes, gpus, pieces },
        profile: profile.to_string(),
        schedule: run.schedule.to_string(),
        replay: replay(plan, run),
        events: events_of(run.trace.as_deref().unwrap_or_default()),
        ..of_verdict(&run.verdict)
    };
    if let Some(explained) = explained {
        explained.add_to(plan, &mut finding);
    }
    finding.sources = sources::of(&finding.files());
    finding
}
