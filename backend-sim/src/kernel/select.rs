//! [`Select`]: tests of variables, and waits for any or some of several, as NVSHMEM's documentation has them.

use onesided::backend::Span;
use onesided::{Cmp, DType};

use super::name::Form;

/// Looks at variables of the caller's own memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Select {
    /// The variables, contiguous.
    pub(crate) vars: Span,
    /// Their type.
    pub(crate) dtype: DType,
    /// The comparison.
    pub(crate) cmp: Cmp,
    /// What they are compared with.
    pub(crate) wanted: Wanted,
    /// Which are left out: a flag for each, or none.
    pub(crate) skip: Vec<bool>,
    /// Of how many it speaks.
    pub(crate) form: Form,
    /// Whether it returns at once, instead of waiting until something compares true.
    pub(crate) test: bool,
    /// Where the indices of the variables go that compare true.
    pub(crate) indices: Option<u64>,
}

/// What variables are compared with: element bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All with one value.
    One(u64),
    /// Each with its own.
    Each(Vec<u64>),
}

/// What a call returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Selected {
    /// The result: whether, which, or how many.
    pub(crate) result: u64,
    /// The variables that compare true, in their order; what is written to [`Select::indices`].
    pub(crate) indices: Vec<u64>,
}

/// The index that says that there is none.
pub(crate) const NO_INDEX: u64 = u64::MAX;

impl Select {
    /// The variables that are not left out: number and bytes.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (usize, Span)> + '_ {
        let size = self.dtype.size();
        (0..self.vars.len / size)
            .filter(|&index| !self.skip.get(index).copied().unwrap_or(false))
            .map(move |index| (index, Span { start: self.vars.start + index * size, len: size, ..self.vars }))
    }

    /// What the call returns while memory is as `load` says; nothing if it waits.
    pub(crate) fn look(&self, mut load: impl FnMut(Span) -> u64) -> Option<Selected> {
        let mut candidates = 0;
        let mut indices = Vec::new();
        for (index, span) in self.variables() {
            candidates += 1;
            let wanted = match &self.wanted {
                Wanted::One(value) => *value,
                Wanted::Each(values) => values[index],
            };
            if self.cmp.holds_bits(self.dtype, load(span), wanted) {
                indices.push(index as u64);
                if self.form == Form::Any {
                    break;
                }
            }
        }
        let all = indices.len() == candidates;
        let ready = match self.form {
            Form::One | Form::All => all,
            Form::Any | Form::Some => !indices.is_empty() || candidates == 0,
        };
        if !ready && !self.test {
            return None;
        }
        let result = match self.form {
            Form::One | Form::All => all.into(),
            Form::Any => indices.first().copied().unwrap_or(NO_INDEX),
            Form::Some => indices.len() as u64,
        };
        Some(Selected { result, indices })
    }
}

#[cfg(test)]
mod tests {
    use onesided::backend::AllocId;

    use super::*;

    const MEMORY: [i32; 4] = [5, -1, 7, 5];

    fn look(form: Form, test: bool, cmp: Cmp, value: i32, skip: &[usize]) -> Option<Selected> {
        let select = Select {
            vars: Span { alloc: AllocId(3), start: 8, len: 16 },
            dtype: DType::I32,
            cmp,
            wanted: Wanted::One(u64::from(value as u32)),
            skip: (0..4).map(|index| skip.contains(&index)).collect(),
            form,
            test,
            indices: None,
        };
        select.look(|span| u64::from(MEMORY[(span.start - 8) / 4] as u32))
    }

    fn result(form: Form, test: bool, cmp: Cmp, value: i32, skip: &[usize]) -> Option<u64> {
        look(form, test, cmp, value, skip).map(|selected| selected.result)
    }

    #[test]
    fn waits_end_when_something_compares_true() {
        assert_eq!(result(Form::Any, false, Cmp::Eq, 5, &[]), Some(0));
        assert_eq!(result(Form::Any, false, Cmp::Eq, 5, &[0]), Some(3));
        assert_eq!(result(Form::Any, false, Cmp::Eq, 6, &[]), None);
        assert_eq!(look(Form::Some, false, Cmp::Eq, 5, &[]), Some(Selected { result: 2, indices: vec![0, 3] }));
        assert_eq!(look(Form::Some, false, Cmp::Eq, 6, &[]), None);
        assert_eq!(result(Form::Any, false, Cmp::Lt, 0, &[]), Some(1), "with a sign");
    }

    #[test]
    fn tests_return_at_once() {
        assert_eq!(result(Form::All, true, Cmp::Ge, 5, &[1]), Some(1));
        assert_eq!(result(Form::All, true, Cmp::Ge, 5, &[]), Some(0));
        assert_eq!(result(Form::Any, true, Cmp::Eq, 6, &[]), Some(u64::MAX));
        assert_eq!(look(Form::Some, true, Cmp::Eq, 6, &[]), Some(Selected { result: 0, indices: vec![] }));
    }

    #[test]
    fn without_variables_nothing_waits() {
        let all = [0, 1, 2, 3];
        assert_eq!(result(Form::Any, false, Cmp::Eq, 5, &all), Some(u64::MAX));
        assert_eq!(result(Form::Some, false, Cmp::Eq, 5, &all), Some(0));
        assert_eq!(result(Form::All, true, Cmp::Eq, 5, &all), Some(1));
    }
}
