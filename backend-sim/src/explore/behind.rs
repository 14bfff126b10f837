//! A chooser that repeats the first steps of a run, and then asks another chooser.

use onesided::At;

use super::Chooser;
use super::attempt::Known;
use super::exceptions::Names;
use crate::exception::StepName;
use crate::machine::{Machine, Needs, Step};

/// Takes the steps of a prefix, then what another chooser picks.
#[derive(Debug)]
pub(crate) struct Behind<'a, C> {
    prefix: &'a [StepName],
    chooser: C,
    names: Names,
    /// A step of the prefix was not there.
    pub(crate) is_lost: bool,
    /// The steps that were taken; and those of the prefix, as a search of all schedules knows them.
    pub(crate) taken: Vec<StepName>,
    pub(crate) known: Vec<Known>,
    /// The number of the step that is put into words, from 0.
    pub(crate) named: usize,
    pub(crate) words: Option<Words>,
}

/// A step in words.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) text: String,
    pub(crate) at: Option<At>,
    pub(crate) pe: usize,
    /// When it was taken.
    pub(crate) time: u64,
}

impl<'a, C> Behind<'a, C> {
    pub(crate) fn new(prefix: &'a [StepName], chooser: C) -> Behind<'a, C> {
        let (taken, known, names, named) = (Vec::new(), Vec::new(), Names::default(), usize::MAX);
        Behind { prefix, chooser, names, is_lost: false, taken, known, named, words: None }
    }
}

impl<C: Chooser> Chooser for Behind<'_, C> {
    const NEEDS: Needs = C::NEEDS;

    fn prepare(&mut self, machine: &mut Machine) {
        self.chooser.prepare(machine);
    }

    fn pick(&mut self, machine: &Machine, n: usize) -> usize {
        let number = self.taken.len();
        let index = match self.prefix.get(number).filter(|_| !self.is_lost) {
            Some(step) => {
                let index = (0..n).find(|&index| self.names.of(machine, index) == *step);
                self.is_lost = index.is_none();
                let index = index.unwrap_or(0);
                self.known.push(Known { key: step.key, pick: index as u32, of: n, forced: false });
                index
            }
            None => self.chooser.pick(machine, n),
        };
        if number == self.named {
            let (at, pe) = machine.choice_site(index);
            self.words = Some(Words { text: machine.choice_in_words(index), at, pe, time: machine.steps });
        }
        let name = self.names.of(machine, index);
        self.names.take(name);
        self.taken.push(name);
        index
    }

    fn took(&mut self, step: &Step) {
        self.chooser.took(step);
    }

    fn ended(&mut self, machine: &mut Machine, cut: bool) {
        self.chooser.ended(machine, cut);
    }
}
