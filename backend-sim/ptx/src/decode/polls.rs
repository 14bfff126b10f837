//! Loops that only look at a word until it compares true, such as `while (load_acquire(flag) != 1);`, or take it then: `while (atomicCAS(lock, 0, 1) != 0);`.
//!
//! A round of such a loop that goes on leaves nothing behind: the next computes the same from what it looks at itself. So the loop is a wait
//! for the word, and whoever explores schedules need not try each look in vain.
//!
//! Behind the look, a comparison [decides](super::decides). With one of its results, all ways must lead to the look again: see [`rounds`](super::rounds).
//! What the look is at must be the same [again](super::again). Threads may [vote](super::votes) about going on.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use super::again::Way;
use super::anew::Anew;
use super::besides::Beside;
use super::decides::{Decides, is_same_end};
use super::rounds::{AtVotes, Walk, lead_to_one};
use super::simpler::Part;
use super::text::{Known, Name, Text};
use super::together::Calls;
use super::twice;
use crate::syntax::{Instruction, Operand};
use crate::world::Until;

/// Of each function of a module, the looks of such loops, and what ends the loops. A loop may begin with a look before it.
pub(super) fn of_all<'a>(texts: &[Text<'a>]) -> Vec<BTreeMap<Part, Poll<'a>>> {
    let mut all: Vec<BTreeMap<usize, Poll<'a>>> = texts.iter().map(of_one).collect();
    with_votes_among_them(texts, &mut all);
    let by_parts = |(text, polls): (&Text<'a>, BTreeMap<usize, Poll<'a>>)| {
        polls.into_iter().map(|(at, poll)| (text.parts[at], poll)).collect()
    };
    texts.iter().zip(all).map(by_parts).collect()
}

fn of_one<'a>(text: &Text<'a>) -> BTreeMap<usize, Poll<'a>> {
    let looks: Vec<usize> = (0..text.body.len()).filter(|&at| is_look(text.body[at].1)).collect();
    let (in_loops, before): (Vec<usize>, Vec<usize>) = looks.iter().partition(|&&at| text.is_in_loop(at));
    let begins = |&at: &usize| in_loops.iter().any(|&look| look > at && is_alike(text, at, look));
    let before: Vec<usize> = before.into_iter().filter(begins).collect();
    in_loops.into_iter().chain(before).filter_map(|at| Some((at, poll(text, at)?))).collect()
}

/// Leaves out the loops in whose votes other threads may take part that do something else after a vote in vain.
fn with_votes_among_them<'a>(texts: &[Text<'a>], all: &mut [BTreeMap<usize, Poll<'a>>]) {
    if all.iter().flat_map(BTreeMap::values).all(|poll| poll.votes.is_empty()) {
        return;
    }
    let calls = Calls::of(texts);
    loop {
        let votes_of = |(number, polls): (usize, &BTreeMap<usize, Poll<'a>>)| {
            polls.values().flat_map(|poll| &poll.votes).map(|&at| (number, at)).collect::<Vec<_>>()
        };
        let voted: BTreeSet<(usize, usize)> = all.iter().enumerate().flat_map(votes_of).collect();
        let is_among = |number: usize, votes: &BTreeSet<usize>| {
            calls.votes_with(texts, number, votes).is_some_and(|all| all.is_subset(&voted))
        };
        let before: usize = all.iter().map(BTreeMap::len).sum();
        for (number, polls) in all.iter_mut().enumerate() {
            polls.retain(|_, poll| poll.votes.is_empty() || is_among(number, &poll.votes));
        }
        if all.iter().map(BTreeMap::len).sum::<usize>() == before {
            return;
        }
    }
}

/// Whether an instruction looks at a word, and may leave it as it was.
fn is_look(instruction: &Instruction<'_>) -> bool {
    let may_leave = || instruction.modifiers.iter().any(|word| matches!(*word, "cas" | "exch" | "add" | "or" | "xor"));
    (instruction.opcode == "ld" || instruction.opcode == "atom" && may_leave()) && instruction.guard.is_none()
}

/// Whether two looks are at the same, for the same.
fn is_alike<'a>(text: &Text<'a>, one: usize, other: usize) -> bool {
    let [(scope, one), (other_scope, other)] = [one, other].map(|at| text.body[at]);
    let is_same =
        |(one, other): (&Operand<'a>, &Operand<'a>)| match (text.known(scope, one), text.known(other_scope, other)) {
            (Operand::Name { name, offset: 0 }, Operand::Name { name: other, offset: 0 }) => {
                text.name(scope, name) == text.name(other_scope, other)
            }
            (one, other) => one == other,
        };
    match (&one.operands[..], &other.operands[..]) {
        (
            [_, Operand::Address { base: Some(base), offset }, swapped @ ..],
            [_, Operand::Address { base: Some(other_base), offset: other_offset }, other_swapped @ ..],
        ) => {
            (one.opcode, offset, &one.modifiers) == (other.opcode, other_offset, &other.modifiers)
                && text.name(scope, base) == text.name(other_scope, other_base)
                && swapped.iter().zip(other_swapped).all(is_same)
        }
        _ => false,
    }
}

/// A loop that only looks.
pub(super) struct Poll<'a> {
    /// What ends it.
    pub(super) until: Until<Operand<'a>>,
    /// What each round looks at besides, and the first one only behind the look.
    pub(super) besides: Vec<Beside<'a>>,
    /// The votes about going on.
    votes: BTreeSet<usize>,
}

/// The loop of a look, if it does nothing else, for itself or with others.
fn poll<'a>(text: &Text<'a>, first: usize) -> Option<Poll<'a>> {
    ends(text, first, AtVotes::Fails).or_else(|| ends(text, first, AtVotes::Decides))
}

/// The loop of a look. If both results of the comparison lead to looks, one of them looks once more for what the other one looks for.
fn ends<'a>(text: &Text<'a>, first: usize, at_votes: AtVotes) -> Option<Poll<'a>> {
    let is_another = |at: usize, instruction: &Instruction<'a>| is_look(instruction) && is_alike(text, first, at);
    let mut walk = Walk::new(&is_another, None);
    (walk.at_votes, walk.way) = (at_votes, text.way_to(first));
    let results = |decides: Decides<'a>| {
        let results: Vec<_> = in_vain(text, first, &decides, &walk).into_iter().map(|vain| vain.result).collect();
        results.into_iter().map(move |result| decides.until(result))
    };
    twice::all(text, first).into_iter().flat_map(results).find_map(|until| {
        ends_when(text, first, &until, (at_votes, true)).or_else(|| ends_when(text, first, &until, (at_votes, false)))
    })
}

/// The loop of a look, if `until` ends it. Looks in vain must lead to looks at the same and leave nothing behind, and what ends one look must end all
/// of them. `again`: whether a look that is not in vain may lead to another look.
fn ends_when<'a>(
    text: &Text<'a>,
    first: usize,
    until: &Until<Operand<'a>>,
    (at_votes, again): (AtVotes, bool),
) -> Option<Poll<'a>> {
    let is_another = |at: usize, instruction: &Instruction<'a>| is_look(instruction) && is_alike(text, first, at);
    let mut walk = Walk::new(&is_another, None);
    let (mut looks, mut todo) = (Looks::new(), vec![first]);
    let has_votes = at_votes == AtVotes::Decides;
    while let Some(load) = todo.pop() {
        if let Entry::Vacant(look) = looks.entry(load) {
            let way = text.way_to(load);
            (walk.at_votes, walk.way) = (at_votes, way.clone());
            let all = twice::all(text, load).into_iter();
            let (decides, vain) =
                all.filter(|decides| decides.branches.is_empty() || !has_votes).find_map(|decides| {
                    let mut ways = in_vain(text, load, &decides, &walk).into_iter();
                    let vain = ways.find(|vain| is_same_end(&decides.until(vain.result), until))?;
                    Some((decides, vain))
                })?;
            walk = vain.walk;
            todo.extend(vain.looks);
            look.insert((decides, vain.result, way));
        }
        if todo.is_empty() {
            let all: Vec<usize> = looks.keys().copied().collect();
            if has_votes {
                todo = text.others_go_round(&all, &mut walk)?;
            } else if again {
                let leads = lead_to(text, &looks, &mut walk)?;
                todo.extend(leads.values().filter_map(|&(end, _)| text.next_look(end, |at| walk.is_look(at, text))));
                todo.retain(|&look| may_end(text, look, until));
            }
            todo.retain(|look| !looks.contains_key(look));
        }
    }
    // what is computed from the word alone on the way to the comparison, the last look computes as well
    let of_word =
        looks.iter().map(|(&load, (decides, ..))| text.computed_from(load, decides.computes_to(), &walk.written));
    let mut of_word = of_word.reduce(|all, one| all.intersection(&one).copied().collect())?;
    let (end, known) = if has_votes {
        let computing = looks.iter().flat_map(|(&load, (decides, ..))| load..=decides.at).collect();
        of_word = text.only_of_looks(of_word, &computing, &walk);
        lead_to_one(text.votes_lead_to(&walk))?
    } else {
        let leads = lead_to(text, &looks, &mut walk)?;
        lead_to_one(text.behind_looks_again(&leads, &mut walk)?.into_iter().map(Some))?
    };
    let is_same = |name: &Name<'a>| looks.values().all(|(.., way)| text.is_always_same(*name, way, &walk));
    let mut anew = Anew::new(text, &walk, looks.keys().copied().collect());
    let mut written: BTreeSet<Name<'a>> = walk.written.clone();
    written.extend(looks.keys().flat_map(|&load| text.names_of(load)));
    let ends_alike = if has_votes {
        anew.votes_anew()
    } else {
        let is_told = |name: &&Name<'a>| known.contains_key(*name) || of_word.contains(*name) || is_same(name);
        let left = written.iter().filter(|name| !is_told(name) && !anew.is_behind_look(**name, end));
        let left = left.copied().collect();
        anew.goes_on_alike(end, left)
    };
    // what a thread has loaded on its way, it may have loaded in the last round as well
    let mut is_of_round = |name: &Name<'a>| {
        looks.values().all(|(.., way)| text.is_of_its_round(*name, way, &walk))
            || !has_votes && looks.keys().all(|&look| anew.is_at_look(*name, look))
    };
    let changes = |name: &Name<'a>| {
        text.is_read_beyond(name, &walk.passed)
            && !known.contains_key(name)
            && !of_word.contains(name)
            && text.is_read_from(name, end)
            && !is_same(name)
            && !is_of_round(name)
    };
    let asks_the_same = |name: &Name<'a>| {
        let mut found = looks.values().map(|(.., way)| text.same_again(*name, way, None, &walk));
        let first = found.next().flatten();
        first.is_some() && found.all(|other| other == first)
    };
    let asks_one = looks.values().flat_map(|(decides, ..)| &decides.asked).all(asks_the_same);
    let ways_are_alike = looks
        .values()
        .all(|(.., way)| text.loads_the_same(way, &walk) && (!has_votes || text.branches_alike(way, &walk)));
    let mut branches = looks.values().flat_map(|(decides, ..)| &decides.branches);
    let branches_on_their_round = branches.all(|&branch| text.branches_on_its_round(branch, &walk));
    let is_used = looks.iter().any(|(&load, (decides, ..))| decides.is_used(text, load));
    let reloads = text.reloads(&walk);
    let until = Until { is_used, reloads, ..until.clone() };
    let is_before = |load: usize| looks.values().all(|(.., way)| way.has(load));
    let besides = text.looked_at_besides(&walk, is_before)?;
    if has_votes && !besides.is_empty() {
        return None;
    }
    let votes = walk.votes.clone();
    (!walk.is_given_up()
        && ends_alike
        && asks_one
        && ways_are_alike
        && branches_on_their_round
        && !looks.contains_key(&end)
        && !written.iter().any(changes))
    .then_some(Poll { until, besides, votes })
}

/// Whether a comparison behind a look may end a loop like this.
fn may_end<'a>(text: &Text<'a>, look: usize, until: &Until<Operand<'a>>) -> bool {
    let ends = |decides: Decides<'a>| [0, 1].into_iter().any(|result| is_same_end(&decides.until(result), until));
    twice::all(text, look).into_iter().any(ends)
}

/// The looks of a loop: what decides behind them, its result with which the loop goes on, and the way to them.
type Looks<'a> = BTreeMap<usize, (Decides<'a>, u64, Way)>;

/// Where each look leads that is not in vain, and what is known there.
fn lead_to<'a>(
    text: &Text<'a>,
    looks: &Looks<'a>,
    walk: &mut Walk<'a, '_>,
) -> Option<BTreeMap<usize, (usize, Known<'a>)>> {
    let leads = looks.iter().map(|(&load, &(ref decides, result, _))| {
        walk.again(decides.together.is_empty().then_some((decides.at, result)));
        Some((load, text.leads_to(load + 1, Known::new(), walk)?))
    });
    leads.collect()
}

/// A look in vain.
struct Vain<'a, 'l> {
    /// The result of the comparison.
    result: u64,
    walk: Walk<'a, 'l>,
    /// The looks to which it leads.
    looks: Vec<usize>,
}

/// The results of the comparison behind a load with which all ways lead to looks; then those with which they do only where a look besides says nothing.
fn in_vain<'a, 'l>(text: &Text<'a>, load: usize, decides: &Decides<'a>, walk: &Walk<'a, 'l>) -> Vec<Vain<'a, 'l>> {
    let is_one = |result: &u64| decides.results(*result).is_some() && decides.leaves(*result);
    let ways = [0, 1].into_iter().filter(is_one).filter_map(|result| {
        let (mut tried, mut looks) = (walk.clone(), Vec::new());
        text.walk_from(load, decides, result, &mut tried, &mut looks)?;
        // what another look decides alone, before that, is no matter of this one
        let is_asked = tried.passed.contains(&decides.at);
        (!looks.is_empty() && is_asked).then_some(Vain { result, walk: tried, looks })
    });
    let (always, sometimes): (Vec<_>, Vec<_>) = ways.partition(|vain| vain.walk.besides.len() == walk.besides.len());
    always.into_iter().chain(sometimes).collect()
}

#[cfg(test)]
mod tests;
