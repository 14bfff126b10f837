//! [`Past`]: which steps must come before something, in every schedule. An exhaustive search tells by it which steps it can
//! exchange; other runs leave it empty, which costs nothing.

/// A set of the chosen steps of a run, by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Past(Vec<u64>);

impl Past {
    /// Adds a step.
    pub(crate) fn add(&mut self, step: usize) {
        let word = step / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (step % 64);
    }

    /// Adds everything of another past.
    #[inline]
    pub(crate) fn join(&mut self, other: &Past) {
        if !other.0.is_empty() {
            self.join_some(other);
        }
    }

    fn join_some(&mut self, other: &Past) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    pub(crate) fn contains(&self, step: usize) -> bool {
        self.0.get(step / 64).is_some_and(|word| word & 1 << (step % 64) != 0)
    }

    /// Its steps, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(index, &word)| {
            let bits = std::iter::successors(Some(word), |bits| Some(bits & bits.wrapping_sub(1)));
            bits.take_while(|&bits| bits != 0).map(move |bits| 64 * index + bits.trailing_zeros() as usize)
        })
    }

    /// These steps, and everything that comes before them: `before` says of a step what that is, all of it.
    pub(crate) fn closure<'a>(&self, before: impl Fn(usize) -> Option<&'a Past>) -> Past {
        let mut all = Past::default();
        for word in (0..self.0.len()).rev() {
            // from the last step on: with it come most of the others
            let missing = |all: &Past| self.0[word] & !all.0.get(word).copied().unwrap_or_default();
            while let Some(bit) = missing(&all).checked_ilog2() {
                let step = 64 * word + bit as usize;
                all.add(step);
                if let Some(before) = before(step) {
                    all.join(before);
                }
            }
        }
        all
    }

    /// Bytes that it takes besides itself.
    pub(crate) fn memory(&self) -> usize {
        size_of_val(&self.0[..])
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pasts_are_sets() {
        let (mut a, mut b) = (Past::default(), Past::default());
        a.add(3);
        b.add(200);
        a.join(&b);
        a.join(&Past::default());
        assert_eq!([3, 4, 200, 264].map(|step| a.contains(step)), [true, false, true, false]);
        assert_eq!(a.iter().collect::<Vec<_>>(), [3, 200]);
        a.clear();
        assert_eq!(a, Past::default());
    }

    #[test]
    fn a_closure_has_what_comes_before_its_steps_and_before_those() {
        let of = |steps: &[usize]| {
            let mut past = Past::default();
            steps.iter().for_each(|step| past.add(*step));
            past
        };
        let before = [(3, of(&[])), (70, of(&[3])), (200, of(&[3, 70]))];
        let find = |step| before.iter().find(|(other, _)| *other == step).map(|(_, before)| before);
        assert_eq!(of(&[200]).closure(find), of(&[3, 70, 200]));
        assert_eq!(of(&[5, 70]).closure(find), of(&[3, 5, 70]));
        assert_eq!(Past::default().closure(find), Past::default());
    }
}
