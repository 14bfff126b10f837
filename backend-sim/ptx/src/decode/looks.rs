//! Notes for decoded code which of its loads are looks of [loops that only look](super::polls).

use std::collections::BTreeMap;

use super::besides::Beside;
use super::builder::Builder;
use super::polls::Poll;
use super::simpler::Part;
use crate::error::Error;
use crate::op::{LookBeside, Looks, Reg};
use crate::syntax::Operand;
use crate::types::Type;
use crate::world::Until;

/// Such loops of a function.
#[derive(Default)]
pub(super) struct Polls<'m> {
    of: BTreeMap<Part, Poll<'m>>,
    /// The loads so far, and their operations.
    loads: BTreeMap<Part, u32>,
    noted: Vec<Noted>,
}

/// A look that was emitted.
struct Noted {
    load: u32,
    until: Until<Reg>,
    besides: Vec<(Part, LookBeside<Reg>)>,
}

impl<'m> Polls<'m> {
    pub(super) fn new(of: BTreeMap<Part, Poll<'m>>) -> Self {
        Self { of, ..Self::default() }
    }
}

impl Builder<'_, '_> {
    /// An element of a load was emitted, or a compare-and-swap: if it is all that a loop does, what ends the loop.
    pub(super) fn note_poll(&mut self, element: usize) -> Result<(), Error> {
        let part = (self.instructions - 1, element);
        let load = self.code.ops.len() as u32 - 1;
        self.polls.loads.insert(part, load);
        if let Some(Poll { until, besides, .. }) = self.polls.of.remove(&part)
            && let Some(until) = self.until(until)?
        {
            let (of, mut besides) = (besides, Vec::new());
            for Beside { load, base, offset, otherwise } in of {
                let otherwise = match otherwise {
                    None => None,
                    Some(otherwise) => {
                        let Some(otherwise) = self.until(otherwise)? else { return Ok(()) };
                        Some(otherwise)
                    }
                };
                let Some(base) = self.asked(base, Type::B64)? else { return Ok(()) };
                besides.push((load, LookBeside { load: 0, base, offset, otherwise }));
            }
            self.polls.noted.push(Noted { load, until, besides });
        }
        Ok(())
    }

    /// Loops that do nothing but look, when all loads are known.
    pub(super) fn note_polls(&mut self) {
        for Noted { load, until, besides } in std::mem::take(&mut self.polls.noted) {
            let known = |(part, look): (Part, LookBeside<Reg>)| {
                Some(LookBeside { load: *self.polls.loads.get(&part)?, ..look })
            };
            if let Some(besides) = besides.into_iter().map(known).collect() {
                self.code.polls.insert(load, Looks { until, besides });
            }
        }
    }

    /// What ends a loop, with registers.
    fn until(&mut self, of: Until<Operand<'_>>) -> Result<Option<Until<Reg>>, Error> {
        let Until { compare, ty, against, view, is_used, reloads } = of;
        let Some(against) = self.asked(against, ty)? else { return Ok(None) };
        let numbers = view.numbers().cloned().collect::<Vec<_>>();
        let numbers = numbers.into_iter().map(|number| self.asked(number, ty)).collect::<Result<Vec<_>, _>>()?;
        let mut numbers = numbers.into_iter();
        let view = view.map(|_| numbers.next().flatten());
        Ok(view.map(|view| Until { compare, ty, against, view, is_used, reloads }))
    }

    /// The register of what a poll compares with, if it has one.
    fn asked(&mut self, operand: Operand<'_>, ty: Type) -> Result<Option<Reg>, Error> {
        match operand {
            Operand::Name { name, .. } => Ok(self.register(name).map(|(register, _)| register)),
            Operand::Bits(bits) => self.source(&Operand::Bits(bits), ty).map(Some),
            _ => Ok(None),
        }
    }
}
