//! A quiet or fence of the host where a stream has issued the operations, or the other way round. Its own scope has nothing to cover,
//! and it promises nothing for the other scope.

use std::collections::BTreeMap;

use onesided::backend::Moves;

use super::report::{Found, LintKind, LintSite};
use super::{Known, Notice, Ordering, Rule};
use crate::machine::PeId;

/// A PE, and whether it is its host.
type Scope = (PeId, bool);

#[derive(Debug, Default)]
pub(super) struct WrongScope(BTreeMap<Scope, Issued>);

#[derive(Debug, Default)]
struct Issued {
    /// Data that no quiet of the scope has completed, and that comes without a signal: the last call to each PE.
    outstanding: BTreeMap<PeId, LintSite>,
    /// Whether a quiet of the scope has anything to complete.
    has_more: bool,
    /// A quiet or fence that covered nothing, though the other scope has something outstanding.
    covers_nothing: Option<LintSite>,
}

impl Rule for WrongScope {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        match *notice {
            Notice::Issued { transfer, ticket } => {
                let (site, peer) = (known.races.site_of(ticket), PeId(transfer.peer));
                let scope = scope(&site);
                if transfer.signal.is_some() || matches!(transfer.moves, Moves::Amo { .. }) {
                    self.relies(scope, Some(peer), site, known.found);
                }
                let issued = self.0.entry(scope).or_default();
                issued.has_more = true;
                let is_put = matches!(transfer.moves, Moves::Put { .. } | Moves::Value(_));
                if is_put && transfer.signal.is_none() && transfer.shape.count > 0 {
                    issued.outstanding.insert(peer, site);
                }
            }
            Notice::Orders { agent, order, asked } => {
                let site = known.races.site(agent, asked);
                let scope = scope(&site);
                match order {
                    Ordering::Fence | Ordering::Quiet => self.covers(scope, order, site),
                    Ordering::Barrier | Ordering::Sync => self.relies(scope, None, site, known.found),
                }
                if matches!(order, Ordering::Quiet | Ordering::Barrier) {
                    self.completes(scope);
                }
            }
            _ => {}
        }
    }

    fn settle(&mut self, _: &mut Found) {
        self.0.clear();
    }
}

fn scope(site: &LintSite) -> Scope {
    (PeId(site.pe as u32), site.stream.is_none())
}

impl WrongScope {
    /// A quiet or fence.
    fn covers(&mut self, (pe, is_host): Scope, order: Ordering, site: LintSite) {
        let other_waits = self.0.get(&(pe, !is_host)).is_some_and(|other| !other.outstanding.is_empty());
        let issued = self.0.entry((pe, is_host)).or_default();
        let nothing = !issued.has_more && other_waits;
        // the last one counts, except that a fence does not replace a quiet
        if nothing || order == Ordering::Quiet {
            issued.covers_nothing = nothing.then_some(site);
        }
    }

    /// Everything of the scope is complete. So a quiet of the other scope that covered nothing is harmless now.
    fn completes(&mut self, (pe, is_host): Scope) {
        let issued = self.0.entry((pe, is_host)).or_default();
        issued.outstanding.clear();
        issued.has_more = false;
        self.0.entry((pe, !is_host)).or_default().covers_nothing = None;
    }

    /// A signal to a PE, or a meeting. Its receivers take it to mean that earlier data is there.
    fn relies(&mut self, (pe, is_host): Scope, to: Option<PeId>, site: LintSite, found: &mut Found) {
        let Some(between) = self.0.get(&(pe, is_host)).and_then(|issued| issued.covers_nothing) else { return };
        let Some(other) = self.0.get(&(pe, !is_host)) else { return };
        let first = match to {
            Some(to) => other.outstanding.get(&to),
            None => other.outstanding.values().next(),
        };
        if let Some(&first) = first {
            found.note(LintKind::WrongScope, first, site, Some(between));
            self.0.entry((pe, is_host)).or_default().covers_nothing = None;
        }
    }
}
