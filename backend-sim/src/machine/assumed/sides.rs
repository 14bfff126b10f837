//! Words beside those that end waits, such as a flag by which all are told to give up: `while (load(flag) != 1) if (load(stop)) return;`.
//!
//! A proof assumes that such a word stays as it is as long as somebody waits so: then the wait is one for the other word alone. Runs show whether an
//! update says something that can come before the wait's end, as for [steady](super::super::steady) words. Then such loops look step by step,
//! and the picks of a schedule are others ([`Choices::Stepwise`](crate::Choices::Stepwise)).

use super::super::access::Test;
use super::super::ids::AgentId;
use super::super::past::Past;
use super::super::steady::{Beginning, Waited};
use super::seen::Fact;
use super::updates::Updates;
use super::{Assumptions, Terms, word};

impl Assumptions {
    /// The same, where such loops look step by step.
    pub(crate) fn stepwise(self) -> Assumptions {
        Assumptions { terms: Terms { told: true, ..self.terms }, ..self }
    }

    /// Whether it is a proof in which such loops look step by step.
    pub(crate) fn is_stepwise(&self) -> bool {
        self.terms.proof && !self.stay()
    }

    /// Whether such words may be taken to stay what they are.
    pub(in crate::machine) fn stay(&self) -> bool {
        self.terms.allow_all() && !self.terms.told
    }

    /// An agent waits for another word from now on, as long as this is so. `past`: what that comes after. `disturbed`: whether
    /// nothing orders it with the last plain write of the word.
    pub(in crate::machine) fn begins_beside(
        &mut self,
        agent: AgentId,
        side: &Test,
        past: Option<&Past>,
        disturbed: bool,
    ) {
        let (key, waited) = (word(side.pe, side.variable), Waited::of(side));
        let seen = self.meet(key, side.variable.len);
        let mut news = seen.note_side(waited);
        news |= disturbed && seen.note(Fact::Disturbed);
        self.news |= news;
        let beginning = Beginning { agent, past, is_steady: true, is_side: true };
        let updates = self.updates.get(&key).into_iter().flat_map(Updates::replaced);
        self.steady.wait(key, waited, beginning, updates);
    }

    /// A word has become something else already, where an agent could have waited for another one.
    pub(in crate::machine) fn says(&mut self, side: &Test) {
        let seen = self.meet(word(side.pe, side.variable), side.variable.len);
        let news = [seen.note_side(Waited::of(side)), seen.note(Fact::Says)];
        self.news |= news.contains(&true);
    }
}
