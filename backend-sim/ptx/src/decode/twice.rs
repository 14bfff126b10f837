//! A word that is compared twice in each round: both comparisons together say whether it equals something, and the loop goes on while it does.
//!
//! A queue's poll leaves its loop when its counter is larger than what it has seen, and goes round while it equals that. A sentinel of -0.0 is found by a comparison
//! with zero, and by its sign. Both results are known while the word is what is waited to go away; otherwise nothing is known of them.

use std::collections::BTreeMap;

use super::decides::{Decides, compared};
use super::text::Text;
use crate::syntax::Operand;
use crate::types::Type;
use crate::world::{Compare, View};

/// So many comparisons of a word are looked at.
const MOST: usize = 4;

/// What may decide about a round: the first comparison behind a look, or two of them together.
pub(super) fn all<'a>(text: &Text<'a>, load: usize) -> Vec<Decides<'a>> {
    let mut found = compared(text, load, MOST);
    let pairs = (0..found.len()).flat_map(|later| (0..later).map(move |first| (first, later)));
    let both: Vec<Decides<'a>> = pairs
        .flat_map(|(first, later)| {
            let (first, later) = (&found[first], &found[later]);
            equal(first, later).into_iter().chain(of_bits(first, later)).collect::<Vec<_>>()
        })
        .collect();
    found.truncate(1);
    found.retain(|decides| decides.is_alone);
    found.extend(both);
    found
}

/// Two comparisons with the same number, one of them for equality: where that holds, the result of the other one is known as well.
fn equal<'a>(first: &Decides<'a>, later: &Decides<'a>) -> Option<Decides<'a>> {
    let is_alike = first.view == later.view && first.against == later.against && first.ty.bytes() == later.ty.bytes();
    let is_equality = |one: &Decides<'_>| matches!(one.compare, Compare::Eq | Compare::Ne);
    let result = |one: &Decides<'_>| u64::from(matches!(one.compare, Compare::Eq | Compare::Le | Compare::Ge));
    let together = BTreeMap::from([(first.at, result(first)), (later.at, result(later))]);
    (is_alike && (is_equality(first) || is_equality(later)))
        .then(|| joined(first, later, together, first.view.clone(), first.against.clone()))
}

/// Two comparisons of bits of the word with constants: what the word is where both of them say which bits there are.
fn of_bits<'a>(first: &Decides<'a>, later: &Decides<'a>) -> Vec<Decides<'a>> {
    let is_alike = first.view.shift == later.view.shift && first.ty.bytes() == later.ty.bytes();
    let mut all = Vec::new();
    for (mask, bits, result) in bits_of(first).into_iter().filter(|_| is_alike) {
        for (other_mask, other_bits, other_result) in bits_of(later) {
            let both = (mask | other_mask, bits | other_bits);
            if bits & other_mask == other_bits & mask && (first.is_alone && later.is_alone || is_number(both)) {
                let together = BTreeMap::from([(first.at, result), (later.at, other_result)]);
                let view = View { mask: mask | other_mask, ..first.view.clone() };
                all.push(joined(first, later, together, view, Operand::Bits(bits | other_bits)));
            }
        }
    }
    all
}

/// Whether these bits of 16, as a mask says, are all and those of a number, of either type.
fn is_number((mask, bits): (u64, u64)) -> bool {
    mask == Type::B16.mask() && bits & (mask >> 1) <= 0x7c00
}

/// Results of a comparison that say which bits the word has: the mask of these, the bits, and the result.
fn bits_of(one: &Decides<'_>) -> Vec<(u64, u64, u64)> {
    let Operand::Bits(number) = one.against else { return Vec::new() };
    let (mask, number) = (one.view.mask & one.ty.mask(), number & one.ty.mask());
    let sign = one.ty.mask() - (one.ty.mask() >> 1);
    // whether it is less than this says which sign it has
    let of_sign = |is_less: u64| vec![(sign, sign, is_less), (sign, 0, 1 - is_less)];
    let is_signed = one.ty.is_signed() && one.view.mask == one.ty.mask();
    match one.compare {
        _ if !one.view.is_plain() => Vec::new(),
        Compare::Eq if number & !mask == 0 => vec![(mask, number, 1)],
        Compare::Ne if number & !mask == 0 => vec![(mask, number, 0)],
        Compare::Lt if is_signed && number == 0 => of_sign(1),
        Compare::Ge if is_signed && number == 0 => of_sign(0),
        Compare::Le if is_signed && number == one.ty.mask() => of_sign(1),
        Compare::Gt if is_signed && number == one.ty.mask() => of_sign(0),
        _ => Vec::new(),
    }
}

fn joined<'a>(
    first: &Decides<'a>,
    later: &Decides<'a>,
    together: BTreeMap<usize, u64>,
    view: View<Operand<'a>>,
    against: Operand<'a>,
) -> Decides<'a> {
    let ty = match first.ty.bytes() {
        1 => Type::B8,
        2 => Type::B16,
        4 => Type::B32,
        _ => Type::B64,
    };
    let chain = first.chain.union(&later.chain).copied().collect();
    let asked = first.asked.union(&later.asked).copied().collect();
    Decides { chain, asked, together, view, against, ty, compare: Compare::Eq, is_alone: true, ..later.clone() }
}
