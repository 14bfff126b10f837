//! [`Moved`]: the values of an event.

use std::fmt;
use std::ops::Range;

use onesided::{DType, Element, bf16, f16};
use serde_json::{Map, Value};

/// Values that were read, stored or delivered: the first few of them, so that a trace stays small.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// Their type.
    pub dtype: DType,
    /// How many there were.
    pub count: usize,
    /// What an atomic update found.
    pub before: Option<u64>,
    bytes: Box<[u8]>,
}

impl Moved {
    /// So many values are kept.
    pub const MOST: usize = 16;

    /// All values, or their beginning.
    pub(crate) fn new(dtype: DType, bytes: &[u8]) -> Moved {
        let kept = bytes.len().min(Moved::MOST * dtype.size());
        Moved { dtype, count: bytes.len() / dtype.size(), before: None, bytes: bytes[..kept].into() }
    }

    /// One value, by its bits.
    pub(crate) fn one(dtype: DType, bits: u64) -> Moved {
        Moved::new(dtype, &bits.to_le_bytes()[..dtype.size()])
    }

    /// An atomic update of a value.
    pub(crate) fn update(dtype: DType, before: u64, after: u64) -> Moved {
        Moved { before: Some(before), ..Moved::one(dtype, after) }
    }

    /// Whether an atomic update has left what it found.
    pub(super) fn is_unchanged(&self) -> bool {
        self.before.is_some_and(|before| self.bytes[..] == before.to_le_bytes()[..self.dtype.size()])
    }

    /// A range of the bytes. `None` unless the values that were kept have exactly `whole` bytes. For an update: the bytes of the value before it (`found`), or of
    /// the value after it.
    pub(super) fn bytes(&self, whole: usize, range: Range<usize>, found: bool) -> Option<Vec<u8>> {
        let bytes = match self.before.filter(|_| found) {
            Some(before) => before.to_le_bytes()[..self.dtype.size()].to_vec(),
            None => self.bytes.to_vec(),
        };
        bytes.get(range).filter(|_| bytes.len() == whole).map(<[u8]>::to_vec)
    }

    /// The values that were kept, as Rust prints them.
    pub fn texts(&self) -> Vec<String> {
        self.bytes.chunks_exact(self.dtype.size()).map(|value| text(self.dtype, bits(value))).collect()
    }

    /// What an atomic update found, as Rust prints it.
    pub(crate) fn before_in_words(&self) -> Option<String> {
        self.before.map(|before| format!("[{}]", text(self.dtype, before)))
    }

    pub(super) fn add_to(&self, fields: &mut Map<String, Value>) {
        fields.insert("type".into(), self.dtype.name().into());
        fields.insert("values".into(), self.texts().into());
        let kept = self.bytes.len() / self.dtype.size();
        if kept < self.count {
            fields.insert("more".into(), (self.count - kept).into());
        }
        if let Some(before) = self.before {
            fields.insert("before".into(), text(self.dtype, before).into());
        }
    }
}

/// `[1, 2]`, `[1, 2 and 30 more]`; `1 -> 2` for an update.
impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = self.texts();
        match (self.before, &texts[..]) {
            (Some(before), [after]) => write!(f, "{} -> {after}", text(self.dtype, before)),
            (_, few) if few.len() == self.count => write!(f, "[{}]", few.join(", ")),
            (_, first) => write!(f, "[{} and {} more]", first.join(", "), self.count - first.len()),
        }
    }
}

fn bits(value: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..value.len()].copy_from_slice(value);
    u64::from_le_bytes(word)
}

/// The value of these bits, as Rust prints it.
fn text(dtype: DType, bits: u64) -> String {
    fn of<T: Element>(bits: u64) -> String {
        format!("{:?}", T::from_bits64(bits))
    }
    match dtype {
        DType::I8 => of::<i8>(bits),
        DType::I16 => of::<i16>(bits),
        DType::I32 => of::<i32>(bits),
        DType::I64 => of::<i64>(bits),
        DType::U8 => of::<u8>(bits),
        DType::U16 => of::<u16>(bits),
        DType::U32 => of::<u32>(bits),
        DType::U64 => of::<u64>(bits),
        DType::F16 => of::<f16>(bits),
        DType::BF16 => of::<bf16>(bits),
        DType::F32 => of::<f32>(bits),
        DType::F64 => of::<f64>(bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_by_their_type() {
        let of = |dtype, bits: u64| Moved::one(dtype, bits).to_string();
        assert_eq!([of(DType::I8, 255), of(DType::U8, 255)], ["[-1]", "[255]"]);
        let f32s = [1.5f32, -0.0].map(|value| of(DType::F32, value.to_bits64()));
        assert_eq!(f32s, ["[1.5]", "[-0.0]"]);
        assert_eq!(of(DType::BF16, bf16::from_f64(2.0).to_bits64()), "[2.0]");
        assert_eq!(Moved::update(DType::U64, 3, 4).to_string(), "3 -> 4");
    }

    #[test]
    fn only_the_first_values_are_kept() {
        let many = Moved::new(DType::U16, &[7; 100]);
        assert_eq!((many.count, many.texts().len()), (50, Moved::MOST));
        assert!(many.to_string().ends_with("1799 and 34 more]"), "{many}");
    }
}
