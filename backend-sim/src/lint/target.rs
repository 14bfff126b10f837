//! A fence between data and a flag that go to different PEs: a fence orders what goes to one PE.

use std::collections::{BTreeMap, BTreeSet};

use onesided::backend::{Moves, Until};

use super::report::{Found, LintKind, LintSite};
use super::{Known, Notice, Ordering, Rule};
use crate::machine::PeId;
use crate::race::Ticket;

#[derive(Debug, Default)]
pub(super) struct WrongTarget {
    /// By PE, and whether it is its host.
    scopes: BTreeMap<(PeId, bool), Fenced>,
}

#[derive(Debug, Default)]
struct Fenced {
    /// Data that no quiet has completed: the last call to each PE.
    data: BTreeMap<PeId, (LintSite, Ticket)>,
    /// PEs to which anything has gone since the last fence, including signals and atomics. Operations that were complete when their call returned do not count.
    sent: BTreeSet<PeId>,
    fence: Option<Fence>,
}

/// A fence, until something that it orders follows.
#[derive(Debug)]
struct Fence {
    site: LintSite,
    covers: BTreeMap<PeId, (LintSite, Ticket)>,
    /// PEs to which something goes that the fence orders.
    orders: BTreeSet<PeId>,
    /// Data, and a flag that goes to a PE for which the fence orders nothing.
    astray: Option<[LintSite; 2]>,
}

impl Rule for WrongTarget {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        match *notice {
            Notice::Issued { transfer, ticket } => {
                let (site, peer) = (known.races.site_of(ticket), PeId(transfer.peer));
                let fenced = self.scopes.entry((PeId(site.pe as u32), site.stream.is_none())).or_default();
                let is_flag = matches!(transfer.moves, Moves::Nothing | Moves::Amo { .. });
                if let Some(fence) = &mut fenced.fence {
                    match fence.covers.contains_key(&peer) || fence.orders.contains(&peer) {
                        true => fenced.fence = None, // it orders something
                        false if is_flag && fence.astray.is_none() => {
                            // data that its PE has acknowledged is there
                            let is_there = |(to, data): (&PeId, &Ticket)| known.races.is_known_there(data, ticket, *to);
                            let missing = fence.covers.iter().find(|(to, (_, data))| !is_there((to, data)));
                            fence.astray = missing.map(|(_, (data, _))| [*data, site]);
                        }
                        false => {}
                    }
                }
                if transfer.until != Until::Delivered {
                    fenced.sent.insert(peer);
                }
                if matches!(transfer.moves, Moves::Put { .. } | Moves::Value(_)) && transfer.shape.count > 0 {
                    fenced.data.insert(peer, (site, ticket.clone()));
                }
            }
            Notice::Orders { agent, order, asked } => {
                let site = known.races.site(agent, asked);
                let fenced = self.scopes.entry((PeId(site.pe as u32), site.stream.is_none())).or_default();
                match order {
                    Ordering::Fence => {
                        fenced.judge(known.found);
                        let (covers, orders) = (fenced.data.clone(), std::mem::take(&mut fenced.sent));
                        fenced.fence = (!covers.is_empty()).then_some(Fence { site, covers, orders, astray: None });
                    }
                    Ordering::Quiet | Ordering::Barrier => {
                        fenced.judge(known.found);
                        fenced.data.clear();
                        fenced.sent.clear();
                    }
                    Ordering::Sync => {}
                }
            }
            _ => {}
        }
    }

    fn settle(&mut self, found: &mut Found) {
        self.scopes.values_mut().for_each(|fenced| fenced.judge(found));
        self.scopes.clear();
    }
}

impl Fenced {
    /// Nothing more follows the fence.
    fn judge(&mut self, found: &mut Found) {
        if let Some(Fence { site, astray: Some([data, flag]), .. }) = self.fence.take() {
            found.note(LintKind::FenceToAnotherPe, data, flag, Some(site));
        }
    }
}
