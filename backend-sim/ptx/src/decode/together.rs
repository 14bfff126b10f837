//! Votes in which threads of a block may take part together. They need not stand at the same instruction, nor in the same function: a kernel may vote, and so may
//! functions that it calls.

use std::collections::{BTreeMap, BTreeSet};

use super::ballots::BALLOT;
use super::text::Text;
use crate::syntax::{Instruction, Operand};

/// Functions without a body that do not vote begin so.
const KNOWN: &[&str] = &["nvshmem", "vprintf", "__assertfail"];

/// Which functions of a module threads of a block may be in at the same time.
pub(super) struct Calls {
    /// Of each function, those that run in a kernel with it, itself among them. `None`: perhaps others as well.
    together: Vec<Option<BTreeSet<usize>>>,
}

impl Calls {
    pub(super) fn of(texts: &[Text<'_>]) -> Self {
        let numbers: BTreeMap<&str, usize> =
            texts.iter().enumerate().map(|(number, text)| (text.called, number)).collect();
        let called: Vec<Called> = texts.iter().map(|text| Called::by(text, &numbers)).collect();
        let kernels = (0..texts.len()).filter(|&number| texts[number].is_entry);
        let mut together = vec![Some(BTreeSet::new()); texts.len()];
        for kernel in kernels {
            let (reached, is_all) = reached(kernel, &called);
            for &number in &reached {
                match &mut together[number] {
                    Some(all) if is_all => all.extend(&reached),
                    other => *other = None,
                }
            }
        }
        Self { together }
    }

    /// The votes that threads may take part in together with one of these, of a function; those included. Each by its function and its number there.
    pub(super) fn votes_with(
        &self,
        texts: &[Text<'_>],
        function: usize,
        votes: &BTreeSet<usize>,
    ) -> Option<BTreeSet<(usize, usize)>> {
        let text = &texts[function];
        let all = self.together[function].as_ref()?.iter().flat_map(|&other| {
            let meets = move |&at: &usize| votes.iter().any(|&vote| may_meet((text, vote), (&texts[other], at)));
            (0..texts[other].body.len()).filter(meets).map(move |at| (other, at))
        });
        Some(all.collect())
    }
}

/// What a function calls.
struct Called {
    functions: BTreeSet<usize>,
    /// Whether it calls nothing else that may vote.
    is_all: bool,
}

impl Called {
    fn by(text: &Text<'_>, numbers: &BTreeMap<&str, usize>) -> Self {
        let mut called = Self { functions: BTreeSet::new(), is_all: true };
        for (_, call) in text.body.iter().filter(|(_, instruction)| instruction.opcode == "call") {
            let callee = call.operands.iter().find_map(|operand| match operand {
                Operand::Name { name, .. } => Some(*name),
                _ => None,
            });
            match callee.and_then(|callee| numbers.get(callee)) {
                Some(&number) => _ = called.functions.insert(number),
                None => {
                    let begins = |callee: &str| KNOWN.iter().any(|begin| callee.starts_with(begin));
                    called.is_all &= callee.is_some_and(begins);
                }
            }
        }
        called
    }
}

/// All functions that run in a kernel, and whether it calls nothing else.
fn reached(kernel: usize, called: &[Called]) -> (BTreeSet<usize>, bool) {
    let (mut reached, mut todo, mut is_all) = (BTreeSet::new(), vec![kernel], true);
    while let Some(number) = todo.pop() {
        if reached.insert(number) {
            is_all &= called[number].is_all;
            todo.extend(&called[number].functions);
        }
    }
    (reached, is_all)
}

/// Whether threads that come to two instructions may vote together.
fn may_meet<'a>((text, one): (&Text<'a>, usize), (other_text, other): (&Text<'a>, usize)) -> bool {
    let [(scope, one), (other_scope, other)] = [text.body[one], other_text.body[other]];
    // the mask, or the number of the barrier
    let among = if one.opcode == "vote" { 2 } else { 1 };
    let number = |text: &Text<'a>, scope, instruction: &Instruction<'a>| match text
        .known(scope, instruction.operands.get(among)?)
    {
        Operand::Bits(bits) => Some(bits as u32),
        _ => None,
    };
    let are_apart = match (number(text, scope, one), number(other_text, other_scope, other)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    };
    let is_barrier = |instruction: &Instruction<'_>| {
        matches!(instruction.opcode, "bar" | "barrier") && instruction.modifiers.contains(&"red")
    };
    let is_ballot = |instruction: &Instruction<'_>| instruction.modifiers.contains(&BALLOT);
    !are_apart
        && match (is_barrier(one), is_ballot(one)) {
            (true, _) => is_barrier(other),
            (false, true) => is_ballot(other),
            (false, false) => other.opcode == one.opcode && other.modifiers == one.modifiers,
        }
}
