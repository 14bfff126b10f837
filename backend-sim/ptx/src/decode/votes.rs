//! Votes of loops in which each thread looks, and they go on until all have seen what they look for:
//! `while (!__all_sync(mask, load_acquire(&flags[lane]) == 1));`.
//!
//! One thread that looks in vain decides such a vote, and all go round. So each may as well wait for its own word, and then vote.
//! Those who do not look in a round, or look with success, go round as well where the vote is in vain, and leave nothing behind either. Threads may also vote
//! together at different instructions: all of them must be of such loops.

use std::collections::BTreeSet;

use super::rounds::{AtVotes, Step, Walk};
use super::text::{Known, Name, Text, target};
use crate::syntax::Operand;

/// A vote that one thread can decide.
pub(super) struct Vote<'a> {
    /// What a thread votes.
    pub(super) of: &'a Operand<'a>,
    /// Where the result goes.
    pub(super) target: Name<'a>,
    /// One such vote makes that the result.
    pub(super) decides: u64,
}

impl<'a> Text<'a> {
    /// If an instruction is such a vote, of threads of a warp or a block.
    pub(super) fn vote(&self, at: usize) -> Option<Vote<'a>> {
        let (scope, instruction) = self.body[at];
        let (kind, of) = match (instruction.opcode, &instruction.modifiers[..], &instruction.operands[..]) {
            ("vote", ["sync", kind, "pred", ..], [_, of, _mask]) => (*kind, of),
            ("bar" | "barrier", [words @ .., "pred"], [_, .., of]) if words.contains(&"red") => {
                (*words.iter().find(|word| matches!(**word, "and" | "or"))?, of)
            }
            _ => return None,
        };
        let decides = match kind {
            "all" | "and" => 0,
            "any" | "or" => 1,
            _ => return None,
        };
        let target = self.name(scope, target(instruction)?);
        instruction.guard.is_none().then_some(Vote { of, target, decides })
    }

    /// Walks all ways of those who go round without waiting, from looks and from votes in vain. The looks on them; `None`: one leads elsewhere.
    pub(super) fn others_go_round(&self, looks: &[usize], walk: &mut Walk<'a, '_>) -> Option<Vec<usize>> {
        let (votes, mut found) = (walk.votes.clone(), Vec::new());
        walk.at_votes = AtVotes::Ends;
        for &look in looks {
            walk.again(None);
            self.walk(Step::new(look + 1, Known::new()), walk, &mut found)?;
        }
        for &at in &votes {
            let vote = self.vote(at)?;
            walk.again(None);
            self.walk(Step::new(at + 1, Known::from([(vote.target, vote.decides)])), walk, &mut found)?;
        }
        // a way has come to other votes: their results are not known
        (walk.votes == votes).then_some(found)
    }

    /// Where votes lead that are not in vain, and what is known there.
    pub(super) fn votes_lead_to(&self, walk: &Walk<'a, '_>) -> impl Iterator<Item = Option<(usize, Known<'a>)>> {
        walk.votes.iter().map(|&at| {
            let vote = self.vote(at)?;
            self.leads_to(at + 1, Known::from([(vote.target, 1 - vote.decides)]), walk)
        })
    }

    /// Of registers that a look computes, those that no other instruction of the loop writes, except with a constant.
    pub(super) fn only_of_looks(
        &self,
        of_word: BTreeSet<Name<'a>>,
        computing: &BTreeSet<usize>,
        walk: &Walk<'a, '_>,
    ) -> BTreeSet<Name<'a>> {
        let is_number = |at: &&usize| {
            let (_, instruction) = self.body[**at];
            instruction.opcode == "mov" && matches!(instruction.operands[..], [_, Operand::Bits(_)])
        };
        let others = walk.passed.iter().filter(|at| !computing.contains(at) && !is_number(at));
        let written: BTreeSet<Name<'a>> = others.flat_map(|&at| self.names_of(at)).collect();
        of_word.difference(&written).copied().collect()
    }
}
