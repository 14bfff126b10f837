//! What decides about a round of a loop that looks at a word: a comparison of the word, or of a [part](View) of it, with a number, or with a register
//! that the loop does not change.

use std::collections::{BTreeMap, BTreeSet};

use super::again::is_strong_load;
use super::text::{Name, Scope, Text};
use super::{fetches, floats};
use crate::syntax::{Instruction, Operand};
use crate::types::Type;
use crate::world::{Compare, Then, Until, View};

/// So many instructions may stand between a load and the comparison.
const MOST_BETWEEN: usize = 128;

/// What decides about a round.
#[derive(Clone)]
pub(super) struct Decides<'a> {
    /// The instruction, and those that compute from the word what it compares.
    pub(super) at: usize,
    /// Branches before it, which something else decides, such as another element of a vector.
    pub(super) branches: Vec<usize>,
    pub(super) chain: BTreeSet<usize>,
    pub(super) view: View<Operand<'a>>,
    pub(super) ty: Type,
    /// Its result is true where the part of the word compares so.
    pub(super) compare: Compare,
    pub(super) against: Operand<'a>,
    /// If it stands for [several instructions](super::twice): the results of these where it is true. Where it is false, they may have others.
    pub(super) together: BTreeMap<usize, u64>,
    /// Registers that the loop may not change.
    pub(super) asked: BTreeSet<Name<'a>>,
    pub(super) takes: Takes<'a>,
    /// Whether it says what the word is without another comparison.
    pub(super) is_alone: bool,
}

/// What a look does to the word.
#[derive(Clone)]
pub(super) enum Takes<'a> {
    Nothing,
    /// It replaces this.
    One(Operand<'a>),
    /// It leaves this, whatever it finds, in the whole word.
    Any(Operand<'a>, Type),
}

impl<'a> Decides<'a> {
    /// The results of comparisons in rounds that go on with this result of all. `None`: nobody knows.
    pub(super) fn results(&self, result: u64) -> Option<BTreeMap<usize, u64>> {
        match self.together.is_empty() {
            true => Some(BTreeMap::from([(self.at, result)])),
            false => (result == 1).then(|| self.together.clone()),
        }
    }

    /// The instruction up to which each look computes: a branch that it decides may lead past others.
    pub(super) fn computes_to(&self) -> usize {
        let first = self.branches.first().filter(|_| !self.together.is_empty());
        first.copied().unwrap_or(self.at)
    }

    /// Whether a look after which the loop goes on leaves the word as it was. An exchange may change it once, as it leaves the same value whatever it
    /// finds. Then the next look finds that value: it must go on as well.
    pub(super) fn leaves(&self, result: u64) -> bool {
        let compare = self.ending(result);
        let ends = |is_equal: bool| match compare {
            Compare::Eq | Compare::Le | Compare::Ge => is_equal,
            Compare::Ne => !is_equal,
            Compare::Lt | Compare::Gt => false,
        };
        let is_against = |found: u64| match self.against {
            Operand::Bits(against) if self.view.is_plain() => {
                let part = View::of_bits(self.view.shift, self.view.mask).of(found);
                Some(part & self.ty.mask() == against & self.ty.mask())
            }
            _ => None,
        };
        match &self.takes {
            Takes::Nothing => true,
            Takes::One(Operand::Bits(found)) => is_against(*found).is_some_and(ends),
            Takes::One(found @ Operand::Name { .. }) => {
                let is_whole = self.view.shift == 0 && self.view.mask == self.ty.mask();
                *found == self.against && is_whole && self.view.is_plain() && ends(true)
            }
            Takes::Any(Operand::Bits(left), _) if matches!(compare, Compare::Eq | Compare::Ne) => {
                is_against(*left).is_some_and(|is_equal| !ends(is_equal))
            }
            Takes::One(_) | Takes::Any(..) => false,
        }
    }

    /// The comparison that ends a loop which goes on with this result.
    fn ending(&self, result: u64) -> Compare {
        if result == 1 { self.compare.negated() } else { self.compare }
    }

    /// What a look must find to change anything, in a loop that goes on with this result.
    pub(super) fn until(&self, result: u64) -> Until<Operand<'a>> {
        let (compare, is_used, reloads) = (self.ending(result), false, false);
        match &self.takes {
            Takes::Any(left, ty) => {
                let view = View::of_bits(0, ty.mask());
                Until { compare: Compare::Ne, ty: *ty, against: left.clone(), view, is_used, reloads }
            }
            _ => {
                let (against, view) = (self.against.clone(), self.view.clone());
                Until { compare, ty: self.ty, against, view, is_used, reloads }
            }
        }
    }

    /// Whether something else looks at what was loaded.
    pub(super) fn is_used(&self, text: &Text<'a>, load: usize) -> bool {
        let deciding = |at: &usize| *at == self.at || self.chain.contains(at) || self.together.contains_key(at);
        let of_chain = self.chain.iter().chain([&load]).flat_map(|&at| text.names_of(at));
        let mut read = of_chain.filter_map(|name| text.readers.get(&name));
        read.any(|all| !all.iter().all(deciding))
    }
}

/// Whether two loops end in the same cases: where a number is greater than 4, it is at least 5.
pub(super) fn is_same_end<'a>(one: &Until<Operand<'a>>, other: &Until<Operand<'a>>) -> bool {
    let by_steps = |until: &Until<Operand<'a>>| {
        let (mask, until) = (until.ty.mask(), until.clone());
        let most = if until.ty.is_signed() { mask >> 1 } else { mask };
        let compare = match until.compare {
            Compare::Gt => Compare::Ge,
            Compare::Le => Compare::Lt,
            _ => return until,
        };
        match until.against {
            Operand::Bits(number) if number & mask != most => {
                Until { compare, against: Operand::Bits(number.wrapping_add(1) & mask), ..until }
            }
            _ => until,
        }
    };
    let masked = |until: Until<Operand<'a>>| match until.against {
        Operand::Bits(number) => Until { against: Operand::Bits(number & until.ty.mask()), ..until },
        _ => until,
    };
    masked(by_steps(one)) == masked(by_steps(other))
}

/// What a register has of the word that was loaded.
#[derive(Clone)]
struct Seen<'a> {
    view: View<Operand<'a>>,
    /// It is a number of this type, which has been widened.
    widened: Option<Type>,
    chain: BTreeSet<usize>,
}

type Views<'a> = BTreeMap<Name<'a>, Seen<'a>>;

/// The comparison behind a look: the first of something that comes from the word.
pub(super) fn decides<'a>(text: &Text<'a>, load: usize) -> Option<Decides<'a>> {
    let mut first = Vec::new();
    compare(text, load, 1, &mut first);
    first.pop().filter(|decides| decides.is_alone)
}

/// The comparisons behind a look of something that comes from the word, so many of them.
pub(super) fn compared<'a>(text: &Text<'a>, load: usize, most: usize) -> Vec<Decides<'a>> {
    let mut found = Vec::new();
    compare(text, load, most, &mut found);
    found
}

/// Finds comparisons, as far as nothing stands between that is none of a look.
fn compare<'a>(text: &Text<'a>, load: usize, most: usize, found: &mut Vec<Decides<'a>>) -> Option<()> {
    let (scope, instruction) = text.body[load];
    let [Operand::Name { name: loaded, offset: 0 }, Operand::Address { base: Some(base), .. }, ref swap @ ..] =
        instruction.operands[..]
    else {
        return None;
    };
    let of_load = instruction.modifiers.last().and_then(|ty| Type::parse(ty))?;
    let has = |word: &str| instruction.modifiers.contains(&word);
    let operands: Vec<Operand<'a>> = swap.iter().map(|operand| text.known(scope, operand)).collect();
    let is_same = |one: &Operand<'a>, (other, inner, at): (&Operand<'a>, Scope, usize)| match (one, other) {
        (Operand::Name { name: one, offset: 0 }, Operand::Name { name: other, offset: 0 }) => {
            text.are_same((text.name(scope, one), load), (text.name(inner, other), at))
        }
        (one, other) => one == other,
    };
    let of_swap = operands.len() - usize::from(instruction.opcode == "atom" && fetches::is_of_call(instruction));
    let takes = match &operands[..of_swap] {
        _ if instruction.opcode == "ld" => Takes::Nothing,
        [found, left] if has("cas") && is_same(found, (left, scope, load)) => Takes::Nothing,
        [found, _] if has("cas") => Takes::One(found.clone()),
        [left] if has("exch") => Takes::Any(left.clone(), of_load),
        [Operand::Bits(0)] => Takes::Nothing, // an addition, or the like
        _ => return None,
    };
    if of_load.is_signed() && of_load.bytes() < 4 {
        return None; // its register is wider
    }
    let whole = View::of_bits(0, of_load.mask());
    let loads = Seen { view: whole, widened: None, chain: BTreeSet::new() };
    let mut views = Views::from([(text.name(scope, loaded), loads)]);
    let mut asked = BTreeSet::from([text.name(scope, base)]);
    for operand in swap {
        asked.extend(known_in(text, (scope, scope), &text.known(scope, operand))?);
    }
    let mut branches = Vec::new();
    for at in load + 1..(load + MOST_BETWEEN).min(text.body.len()) {
        let (inner, instruction) = text.body[at];
        if instruction.opcode == "bra" && instruction.guard.is_some() && matches!(takes, Takes::Nothing) {
            branches.push(at);
            continue;
        }
        if instruction.guard.is_some() || !(text.computes(instruction) || is_strong_load(instruction)) {
            return None;
        }
        if instruction.opcode == "setp" {
            let (&[compare, .., ty], [_, one, other]) = (&instruction.modifiers[..], &instruction.operands[..]) else {
                continue;
            };
            let seen = |operand: &Operand<'a>| match operand {
                Operand::Name { name, offset: 0 } => views.get(&text.name(inner, name)).cloned(),
                _ => None,
            };
            let (Seen { view, widened, chain }, against, is_mirrored) = match (seen(one), seen(other)) {
                (Some(seen), None) => (seen, other, false),
                (None, Some(seen)) => (seen, one, true),
                _ => continue,
            };
            let ty = Type::parse(ty)?;
            let against = text.known(inner, against);
            let is_whole = view.is_plain() && view.shift == 0 && view.mask == of_load.mask();
            let flushes = instruction.modifiers.contains(&"ftz");
            let is_alone = widened.is_none() || ty.is_float();
            let (compare, ty, view, against) = match (&instruction.modifiers[1..], ty.is_float()) {
                (_, true) => floats::equal_as_bits((compare, ty), (flushes, widened), view, &against)?,
                ([_], false) if ty.is_integer() || matches!(ty, Type::B16 | Type::B32 | Type::B64) => {
                    match (Compare::parse(compare, ty)?, widened) {
                        (compare, None) => (compare, ty, view, against),
                        (compare, Some(_)) => floats::sign((compare, ty), view, &against)?,
                    }
                }
                _ => return None,
            };
            let compare = if is_mirrored { compare.mirrored() } else { compare };
            // a signed number that is narrower than its register is another one there
            let is_alike = ty.bytes() == of_load.bytes() || !is_whole || !of_load.is_signed();
            for operand in view.numbers().chain([&against]) {
                asked.extend(known_in(text, (scope, inner), operand)?);
            }
            is_alike.then_some(())?;
            let takes = match &takes {
                Takes::One(found) if is_same(found, (&against, inner, at)) => Takes::One(against.clone()),
                takes => takes.clone(),
            };
            let (asked, together) = (asked.clone(), BTreeMap::new());
            let branches = branches.clone();
            found.push(Decides { at, branches, chain, view, ty, compare, against, asked, takes, together, is_alone });
            if found.len() == most || !matches!(found[0].takes, Takes::Nothing) {
                return None;
            }
            continue;
        }
        step(text, at, of_load, &mut views);
    }
    None
}

/// A number, or a register that has the same name where the load stands: its name, if it is one. `None`: something else.
fn known_in<'a>(text: &Text<'a>, (outer, inner): (Scope, Scope), operand: &Operand<'a>) -> Option<Option<Name<'a>>> {
    match operand {
        Operand::Bits(_) => Some(None),
        Operand::Name { name, offset: 0 } if !name.contains('.') => {
            let [there, here] = [outer, inner].map(|scope| text.name(scope, name));
            (there == here).then_some(Some(here))
        }
        _ => None,
    }
}

/// What registers have of the word behind an instruction.
fn step<'a>(text: &Text<'a>, at: usize, loaded: Type, views: &mut Views<'a>) {
    let (scope, instruction) = text.body[at];
    let Instruction { opcode, modifiers, operands, .. } = instruction;
    let has = |at: usize| match operands.get(at) {
        Some(Operand::Name { name, offset: 0 }) => views.get(&text.name(scope, name)).cloned(),
        _ => None,
    };
    let (mut from, mut others) = (has(1), operands.get(2..).unwrap_or_default());
    let is_other = from.is_none() && matches!(*opcode, "add" | "and" | "xor" | "sub");
    if is_other {
        (from, others) = (has(2), operands.get(1..2).unwrap_or_default());
    }
    text.names_of(at).for_each(|name| _ = views.remove(&name));
    let (Some(seen), Some(ty)) = (from, modifiers.last().and_then(|ty| Type::parse(ty))) else { return };
    let Seen { view, widened, mut chain } = seen;
    if loaded.is_signed() && ty.bytes() > loaded.bytes() {
        return;
    }
    chain.insert(at);
    let is_widened = widened.is_some();
    match &operands[0] {
        Operand::Name { name, offset: 0 } if is_widened || ty.is_float() && *opcode == "cvt" => {
            let widened = match (*opcode, &modifiers[..]) {
                ("mov", _) => widened,
                ("cvt", ["f32", "f16" | "bf16"]) if view.is_plain() && view.mask == ty.mask() && !is_widened => {
                    Some(ty)
                }
                _ => None,
            };
            views.extend(widened.map(|ty| (text.name(scope, name), Seen { view, widened: Some(ty), chain })));
        }
        Operand::Name { name, offset: 0 } => {
            let others: Vec<Operand<'a>> = others.iter().map(|operand| text.known(scope, operand)).collect();
            let opcode = if is_other && *opcode == "sub" { "from" } else { opcode };
            let part = part((opcode, modifiers), &others, view, ty);
            views.extend(part.map(|view| (text.name(scope, name), Seen { view, widened, chain })));
        }
        Operand::Vector(all) if view.is_plain() && !is_widened => {
            let bits = 8 * ty.bytes() / all.len() as u32;
            for (number, operand) in all.iter().enumerate() {
                let part = view.clone().bits(bits * number as u32, bits);
                if let (Operand::Name { name, offset: 0 }, Some(view)) = (operand, part) {
                    views.insert(text.name(scope, name), Seen { view, widened, chain: chain.clone() });
                }
            }
        }
        _ => {}
    }
}

/// What an instruction makes of a part of a word, if that is a part, too. `from`: it is taken from the other operand.
fn part<'a>(
    (opcode, modifiers): (&str, &[&str]),
    others: &[Operand<'a>],
    view: View<Operand<'a>>,
    ty: Type,
) -> Option<View<Operand<'a>>> {
    let number = |at: usize| match others.get(at) {
        Some(Operand::Bits(bits)) => Some(*bits),
        _ => None,
    };
    if opcode == "mov" {
        return Some(view);
    }
    let bits = 8 * ty.bytes();
    let sum: Option<fn(Operand<'a>) -> Then<Operand<'a>>> = match (opcode, modifiers) {
        ("sub", [_]) => Some(Then::Minus),
        ("from", [_]) => Some(Then::From),
        ("add", [_]) => Some(Then::Plus),
        _ => None,
    };
    if let Some(sum) = sum {
        let sum = sum(others.first()?.clone());
        let then = match view.then {
            [Then::Nothing, _] => [sum, Then::Nothing],
            [first @ (Then::Plus(_) | Then::Minus(_) | Then::From(_)), Then::Nothing] => [first, sum],
            _ => return None,
        };
        return Some(View { then, ..view });
    }
    if !view.is_plain() {
        return None;
    }
    match (opcode, modifiers) {
        ("and", _) => Some(View { mask: view.mask & number(0)?, ..view }),
        ("shr", _) if !ty.is_signed() => view.bits(u32::try_from(number(0)?).ok()?, bits),
        ("bfe", _) if !ty.is_signed() => view.bits(u32::try_from(number(0)?).ok()?, u32::try_from(number(1)?).ok()?),
        ("cvt", &[to, _]) => {
            let to = Type::parse(to)?;
            let is_kept = to.bytes() <= ty.bytes() || !ty.is_signed();
            let is_wider = to.is_signed() && to.bytes() < 4; // than the number, the register
            let are_integers = [to, ty].iter().all(|ty| ty.is_integer());
            (is_kept && !is_wider && are_integers).then(|| View { mask: view.mask & ty.mask() & to.mask(), ..view })
        }
        ("xor", _) => Some(View { then: [Then::Xor(others.first()?.clone()), Then::Nothing], ..view }),
        // no byte of the other operand, and no sign
        ("prmt", ["b32"]) if number(1)? & 0xcccc == 0 => {
            let bytes = [Then::Bytes(others.get(1)?.clone()), Then::Nothing];
            Some(View { then: bytes, mask: view.mask & u64::from(u32::MAX), ..view })
        }
        _ => None,
    }
}
