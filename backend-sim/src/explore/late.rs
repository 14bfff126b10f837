//! The adversary: transfers arrive as late as they may, and those that were issued last arrive first.

use super::Chooser;
use super::generator::Generator;
use crate::machine::Machine;

/// Agents go first. Where none can, the transfer that its issuer has issued last takes a step.
#[derive(Debug)]
pub(crate) struct Late {
    /// Draws whose turn it is; `None`: agents by rank, the last issuer first.
    generator: Option<Generator>,
    /// Steps so far.
    taken: usize,
}

/// One of so many steps is anybody's. Else an agent that polls would keep others, its own streams, or its earlier transfers for ever.
const PATIENCE: usize = 64;

impl Late {
    /// The schedule of this seed, or the one in order.
    pub(crate) fn new(seed: Option<u64>) -> Late {
        Late { generator: seed.map(Generator::new), taken: 0 }
    }
}

impl Chooser for Late {
    fn pick(&mut self, machine: &Machine, n: usize) -> usize {
        let agents = machine.agent_choices();
        self.taken += 1;
        if self.taken.is_multiple_of(PATIENCE) {
            return self.taken / PATIENCE % n; // each has its turn
        }
        if agents > 0 {
            return match &mut self.generator {
                Some(generator) => generator.below(agents),
                None => (0..agents).min_by_key(|&index| machine.choice_key(index)).expect("there is one"),
            };
        }
        let issuer = self.generator.as_mut().map(|generator| machine.issuer_of_choice(generator.below(n)));
        let theirs = (0..n).filter(|&index| issuer.is_none_or(|issuer| machine.issuer_of_choice(index) == issuer));
        theirs.max_by_key(|&index| machine.choice_key(index)).expect("there is one")
    }
}
