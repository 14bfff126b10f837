//! One counter for transfers that may overtake each other: an addition of a later one can end the wait for an earlier one.
//!
//! A wait for `>=` is right if it can end only after all transfers that may come before it, as in an all-to-all that waits for
//! n-1 arrivals. It is wrong if what may come before it adds up to more: then some transfer can be missing.

use std::collections::{BTreeMap, BTreeSet};

use onesided::Cmp;
use onesided::backend::Against;

use super::report::{Found, LintKind, LintSite};
use super::{Known, Notice, Rule, Update, key, keys};
use crate::machine::{AgentId, Word};
use crate::race::Ticket;
use crate::race::call::puts_and_signals;

/// How many additions to a word are kept.
const MOST: usize = 128;

#[derive(Debug, Default)]
pub(super) struct Counters(BTreeMap<Word, Counter>);

/// A word since it was set, or since everybody knew it.
#[derive(Debug, Default)]
struct Counter {
    /// What it held then.
    start: u64,
    adds: Vec<Add>,
    waits: Vec<Wait>,
    /// Additions of transfers with data that nothing orders.
    unordered: Vec<(usize, usize)>,
}

#[derive(Debug)]
struct Add {
    ticket: Ticket,
    site: LintSite,
    value: u64,
}

#[derive(Debug)]
struct Wait {
    agent: AgentId,
    time: u64,
    site: LintSite,
    least: u64,
    /// Whether it waits for this word alone.
    alone: bool,
    /// Additions that come after it.
    later: BTreeSet<usize>,
}

impl Rule for Counters {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        match *notice {
            Notice::Updated { ticket, pe, word, update: Update::Add(value), before } => {
                let counter = self.0.entry(key(pe, word)).or_default();
                if counter.adds.len() == MOST {
                    counter.judge(known.found);
                    *counter = Counter::default();
                }
                if counter.adds.is_empty() {
                    counter.start = before;
                }
                let (number, site) = (counter.adds.len(), known.races.site_of(ticket));
                let overtakes =
                    |add: &Add| puts_and_signals(add.site.call) && !known.races.orders(&add.ticket, ticket, pe);
                if puts_and_signals(site.call) {
                    let others = counter.adds.iter().enumerate().filter(|(_, add)| overtakes(add));
                    counter.unordered.extend(others.map(|(other, _)| (other, number)));
                }
                for wait in &mut counter.waits {
                    if known.races.is_told(ticket, wait.agent, wait.time) {
                        wait.later.insert(number);
                    }
                }
                counter.adds.push(Add { ticket: ticket.clone(), site, value });
            }
            Notice::Updated { pe, word, .. } => self.forget(pe, word, known.found),
            Notice::Written { pe, span } => self.forget(pe, span, known.found),
            Notice::Waits { agent, ref waiting, words } => {
                let (Cmp::Ge | Cmp::Gt, Against::One(value)) = (waiting.cmp, waiting.against) else { return };
                let least = value.saturating_add(u64::from(waiting.cmp == Cmp::Gt));
                let site = known.races.site(agent, waiting.asked);
                for word in words {
                    let counter = self.0.entry(key(waiting.pe, *word)).or_default();
                    if counter.waits.len() < MOST {
                        let (time, alone) = (waiting.time, words.len() == 1);
                        let wait = Wait { agent, time, site, least, alone, later: BTreeSet::new() };
                        counter.waits.push(wait);
                    }
                }
            }
            _ => {}
        }
    }

    fn settle(&mut self, found: &mut Found) {
        self.0.values().for_each(|counter| counter.judge(found));
        self.0.clear();
    }
}

impl Counters {
    /// The word gets a value of its own.
    fn forget(&mut self, pe: crate::machine::PeId, span: onesided::backend::Span, found: &mut Found) {
        let words: Vec<Word> = self.0.range(keys(pe, span)).map(|(word, _)| *word).collect();
        for word in words {
            self.0.remove(&word).into_iter().for_each(|counter| counter.judge(found));
        }
    }
}

impl Counter {
    fn judge(&self, found: &mut Found) {
        // for each agent, the additions that its earlier waits have proved to be there
        let mut there: BTreeMap<AgentId, BTreeSet<usize>> = BTreeMap::new();
        for wait in &self.waits {
            let before = |number: &usize| !wait.later.contains(number);
            let sum =
                (0..self.adds.len()).filter(before).fold(self.start, |sum, i| sum.wrapping_add(self.adds[i].value));
            let Some(surplus) = sum.checked_sub(wait.least) else { continue };
            let there = there.entry(wait.agent).or_default();
            // the wait ends without `one`, because other additions make up for it
            let can_miss = |one: &usize| surplus >= self.adds[*one].value && !there.contains(one);
            let missed = self
                .unordered
                .iter()
                .find(|(one, other)| before(one) && before(other) && (can_miss(one) || can_miss(other)));
            if let Some((one, _)) = missed {
                found.note(LintKind::CounterOvertaken, self.adds[*one].site, wait.site, None);
            }
            if !wait.alone {
                continue;
            }
            there.extend((0..self.adds.len()).filter(|add| before(add) && surplus < self.adds[*add].value));
        }
    }
}
