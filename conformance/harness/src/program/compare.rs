//! Whether what a program can do under one profile is part of what it can do under another.

use std::collections::BTreeSet;

use super::table::Outcome;
use onesided::count;

/// Profiles that have the same outcomes, and those.
struct Group<'a, T> {
    names: Vec<&'a str>,
    outcomes: &'a BTreeSet<T>,
}

/// Compares the outcomes of all profiles with each other, for each number of PEs. An outcome is what the PEs returned, or
/// how a run ended that did not finish.
pub(super) fn compared(outcomes: &[Outcome<'_>]) -> Vec<String> {
    let mut numbers: Vec<usize> = outcomes.iter().map(|outcome| outcome.pes).collect();
    numbers.dedup();
    let is_one = numbers.len() == 1;
    let mut said = Vec::new();
    for pes in numbers {
        let of_pes = if is_one { String::new() } else { format!("{}: ", count(pes, "PE")) };
        let ran = outcomes.iter().filter(|outcome| outcome.pes == pes);
        let ran = ran.filter_map(|outcome| outcome.ran.as_ref().ok().map(|(_, done)| (outcome.profile.name(), done)));
        let (complete, not): (Vec<_>, Vec<_>) = ran.partition(|(_, done)| done.explored.complete);
        let (hidden, known): (Vec<_>, Vec<_>) = complete.into_iter().partition(|(_, done)| done.has_more_outcomes);
        let known: Vec<_> = known.into_iter().map(|(name, done)| (name, &done.outcomes)).collect();
        said.extend(in_words(&known).into_iter().map(|relation| of_pes.clone() + &relation));
        let race = "there is a race, and a proof does not look at every order behind one (--races note does)";
        for (rows, why) in [(hidden, race), (not, "not complete")] {
            if !rows.is_empty() {
                let names: Vec<&str> = rows.iter().map(|(name, _)| *name).collect();
                said.push(format!("{of_pes}not compared, because {why}: {}", names.join(", ")));
            }
        }
    }
    said
}

/// A line for each set of outcomes, with the profiles that have it, and how it relates to the others.
fn in_words<T: Ord>(known: &[(&str, &BTreeSet<T>)]) -> Vec<String> {
    let mut groups: Vec<Group<'_, T>> = Vec::new();
    for &(name, outcomes) in known {
        match groups.iter_mut().find(|group| group.outcomes == outcomes) {
            Some(group) => group.names.push(name),
            None => groups.push(Group { names: vec![name], outcomes }),
        }
    }
    if known.len() < 2 {
        return Vec::new();
    }
    groups.iter().enumerate().map(|(index, group)| group.in_words(&groups, index)).collect()
}

impl<T: Ord> Group<'_, T> {
    fn in_words(&self, groups: &[Group<'_, T>], index: usize) -> String {
        let names = self.names.join(", ");
        let the_same = if self.names.len() > 1 { "the same " } else { "" };
        let mut said = format!("{names}: {the_same}{}", count(self.outcomes.len(), "outcome"));
        let weaker = |other: &Group<'_, T>, than: &Group<'_, T>| {
            other.outcomes.len() > than.outcomes.len() && than.outcomes.is_subset(other.outcomes)
        };
        // what is weaker than something weaker goes without saying
        let above: Vec<&Group<'_, T>> = groups.iter().filter(|other| weaker(other, self)).collect();
        let next = above.iter().filter(|other| !above.iter().any(|between| weaker(other, between)));
        for other in next {
            let more = other.outcomes.len() - self.outcomes.len();
            said += &format!("; stronger than {}, which has {more} more", other.names[0]);
        }
        let apart = |other: &&Group<'_, T>| !self.outcomes.is_subset(other.outcomes) && !weaker(self, other);
        for other in groups[..index].iter().filter(apart) {
            let own = |some: &Group<'_, T>, others: &Group<'_, T>| some.outcomes.difference(others.outcomes).count();
            let (mine, theirs) = (own(self, other), own(other, self));
            said +=
                &format!("; neither stronger nor weaker than {} ({mine} and {theirs} of their own)", other.names[0]);
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_equal_or_one_is_stronger_or_neither() {
        let said = |sets: &[&[u64]]| {
            let sets: Vec<BTreeSet<u64>> = sets.iter().map(|set| set.iter().copied().collect()).collect();
            in_words(&["spec", "ibgda", "network", "nvlink"].into_iter().zip(&sets).collect::<Vec<_>>())
        };
        assert_eq!(said(&[&[1]]), Vec::<String>::new());
        assert_eq!(said(&[&[1], &[1]]), ["spec, ibgda: the same 1 outcome"]);
        let stronger = ["spec: 3 outcomes", "ibgda: 1 outcome; stronger than spec, which has 2 more"];
        assert_eq!(said(&[&[1, 2, 3], &[2]]), stronger);
        let weaker = ["spec: 1 outcome; stronger than ibgda, which has 1 more", "ibgda: 2 outcomes"];
        assert_eq!(said(&[&[2], &[1, 2]]), weaker);
        let neither = "ibgda: 3 outcomes; neither stronger nor weaker than spec (2 and 1 of their own)";
        assert_eq!(said(&[&[1, 2], &[2, 3, 4]]), ["spec: 2 outcomes", neither]);
        // each set is compared with the next weaker ones
        let chain = [
            "spec: 4 outcomes",
            "ibgda: 2 outcomes; stronger than spec, which has 2 more",
            "network: 2 outcomes; stronger than spec, which has 2 more; neither stronger nor weaker than ibgda (1 and 1 of \
             their own)",
            "nvlink: 1 outcome; stronger than ibgda, which has 1 more; stronger than network, which has 1 more",
        ];
        assert_eq!(said(&[&[1, 2, 3, 4], &[1, 2], &[2, 3], &[2]]), chain);
    }
}
