//! A wait for one value that the word can have passed before the wait looks: then the wait never ends.
//!
//! An update that changes the value must come after the wait, or before the update that ends it. Additions are harmless if all of them have arrived
//! when the wait ends, because their sum is the same in every order.

use std::collections::BTreeMap;

use onesided::Cmp;
use onesided::backend::Against;

use super::report::{Found, LintKind, LintSite};
use super::{Known, Notice, Rule, Update, key, keys};
use crate::machine::{AgentId, Word};
use crate::race::Ticket;

/// How many updates of a word are kept, and how many waits. Later ones are ignored.
const MOST: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Equalities(BTreeMap<Word, Passed>);

#[derive(Debug, Default)]
struct Passed {
    updates: Vec<(Ticket, Update)>,
    waits: Vec<Ended>,
}

/// A wait that has ended.
#[derive(Debug)]
struct Ended {
    agent: AgentId,
    time: u64,
    site: LintSite,
    value: u64,
}

impl Rule for Equalities {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        match *notice {
            Notice::Updated { ticket, pe, word, update, before } => {
                let passed = self.0.entry(key(pe, word)).or_default();
                for wait in &passed.waits {
                    let changes = update.apply(before) != Some(wait.value);
                    if changes && !known.races.is_told(ticket, wait.agent, wait.time) {
                        let site = known.races.site_of(ticket);
                        known.found.note(LintKind::EqualityPassed, site, wait.site, None);
                    }
                }
                if passed.updates.len() == MOST {
                    passed.updates.remove(0); // the last one is what ends a wait
                }
                passed.updates.push((ticket.clone(), update));
            }
            Notice::Written { pe, span } => {
                let words: Vec<Word> = self.0.range(keys(pe, span)).map(|(word, _)| *word).collect();
                words.iter().for_each(|word| drop(self.0.remove(word)));
            }
            Notice::Ends { agent, word } => {
                let Some(waiting) = known.waits.get(&agent).filter(|waiting| waiting.cmp == Cmp::Eq) else { return };
                let Against::One(value) = waiting.against else { return };
                let passed = self.0.entry(key(waiting.pe, word)).or_default();
                let site = known.races.site(agent, waiting.asked);
                if let Some(((last, ended_by), others)) = passed.updates.split_last() {
                    let may_come_between = |(ticket, update): &&(Ticket, Update)| {
                        !update.commutes(*ended_by) && !known.races.orders(ticket, last, waiting.pe)
                    };
                    if let Some((ticket, _)) = others.iter().find(may_come_between) {
                        let other = known.races.site_of(ticket);
                        known.found.note(LintKind::EqualityPassed, other, site, None);
                    }
                }
                if passed.waits.len() < MOST {
                    passed.waits.push(Ended { agent, time: waiting.time, site, value });
                }
            }
            _ => {}
        }
    }

    fn settle(&mut self, _: &mut Found) {
        self.0.clear();
    }
}
