//! Whether what a program can do under one profile is part of what it can do under another.

use std::collections::BTreeSet;

use onesided_sim::Profile;

use super::run::Done;
use super::table::Outcome;
use crate::tool::count;

/// Compares the outcomes of all profiles with each other, for each number of PEs. An outcome is what the PEs returned, or
/// how a run ended that did not finish.
pub(super) fn compared(outcomes: &[Outcome<'_>]) -> Vec<String> {
    let mut numbers: Vec<usize> = outcomes.iter().map(|outcome| outcome.pes).collect();
    numbers.dedup();
    let is_one = numbers.len() == 1;
    let mut said = Vec::new();
    for pes in numbers {
        let of_pes = if is_one { String::new() } else { format!("{}: ", count(pes as u64, "PE")) };
        let ran = outcomes.iter().filter(|outcome| outcome.pes == pes);
        let ran = ran.filter_map(|outcome| outcome.ran.as_ref().ok().map(|(_, done)| (outcome.profile, done)));
        let (known, not): (Vec<_>, Vec<_>) = ran.partition(|(_, done)| done.explored.complete);
        for (i, (profile, done)) in known.iter().enumerate() {
            let others = known[i + 1..].iter();
            said.extend(others.map(|(other, theirs)| of_pes.clone() + &relation(*profile, done, *other, theirs)));
        }
        if !not.is_empty() {
            let names: Vec<&str> = not.iter().map(|(profile, _)| profile.name()).collect();
            said.push(format!("{of_pes}not compared, because not complete: {}", names.join(", ")));
        }
    }
    said
}

/// How the outcomes of two profiles relate.
fn relation(a: Profile, of_a: &Done, b: Profile, of_b: &Done) -> String {
    in_words((a.name(), &of_a.outcomes), (b.name(), &of_b.outcomes))
}

fn in_words<T: Ord>((a, of_a): (&str, &BTreeSet<T>), (b, of_b): (&str, &BTreeSet<T>)) -> String {
    let only = |some: &BTreeSet<T>, others: &BTreeSet<T>| some.difference(others).count();
    match (only(of_a, of_b), only(of_b, of_a)) {
        (0, 0) => format!("{a} and {b}: the same outcomes ({})", of_a.len()),
        (0, more) => format!("{a}: every outcome is one under {b} too, which has {more} more"),
        (more, 0) => format!("{b}: every outcome is one under {a} too, which has {more} more"),
        (mine, theirs) => {
            format!("{a} and {b}: neither is stronger, each has outcomes of its own ({mine} and {theirs})")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_equal_or_one_is_stronger_or_neither() {
        let said = |a: &[u64], b: &[u64]| {
            let (a, b): (BTreeSet<u64>, BTreeSet<u64>) = (a.iter().copied().collect(), b.iter().copied().collect());
            in_words(("spec", &a), ("nvlink", &b))
        };
        assert_eq!(said(&[1], &[1]), "spec and nvlink: the same outcomes (1)");
        assert_eq!(said(&[1, 2, 3], &[2]), "nvlink: every outcome is one under spec too, which has 2 more");
        assert_eq!(said(&[2], &[1, 2]), "spec: every outcome is one under nvlink too, which has 1 more");
        let neither = "spec and nvlink: neither is stronger, each has outcomes of its own (1 and 2)";
        assert_eq!(said(&[1, 2], &[2, 3, 4]), neither);
    }
}
