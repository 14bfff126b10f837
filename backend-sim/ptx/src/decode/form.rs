//! The modifiers of an instruction: each is taken by whoever knows it, and what is left over is refused.

use crate::alu::round::Rounding;
use crate::error::Error;
use crate::syntax::Instruction;
use crate::types::{Order, Scope, Space, Type};
use crate::world::AtomicOp;

const CACHE_HINTS: &[&str] = &[
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::cache_hint",
    "L2::64B",
    "L2::128B",
    "L2::256B",
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
];

const PRIORITIES: &[&str] = &["L2::evict_normal", "L2::evict_unchanged", "L2::evict_first", "L2::evict_last"];

#[derive(Debug)]
pub(super) struct Form<'a> {
    line: u32,
    opcode: &'a str,
    modifiers: Vec<&'a str>,
    /// The types, in their order.
    pub(super) types: Vec<Type>,
    rest: Vec<&'a str>,
}

impl<'a> Form<'a> {
    pub(super) fn of(instruction: &Instruction<'a>) -> Self {
        let (types, rest) = instruction.modifiers.iter().partition::<Vec<&str>, _>(|word| Type::parse(word).is_some());
        Self {
            line: instruction.line,
            opcode: instruction.opcode,
            modifiers: instruction.modifiers.clone(),
            types: types.into_iter().filter_map(Type::parse).collect(),
            rest,
        }
    }

    pub(super) fn error(&self, message: impl Into<String>) -> Error {
        Error::new(self.line, message)
    }

    /// As it is written: `add.s32`.
    pub(super) fn name(&self) -> String {
        std::iter::once(&self.opcode).chain(&self.modifiers).copied().collect::<Vec<_>>().join(".")
    }

    pub(super) fn unknown(&self) -> Error {
        self.error(format!("the instruction {} is not known here", self.name()))
    }

    /// Takes this modifier if it is there.
    pub(super) fn has(&mut self, word: &str) -> bool {
        let found = self.rest.iter().position(|&other| other == word);
        found.map(|at| self.rest.remove(at)).is_some()
    }

    /// Takes the first of these modifiers that is there.
    pub(super) fn one_of(&mut self, words: &[&'static str]) -> Option<&'static str> {
        words.iter().find(|word| self.has(word)).copied()
    }

    /// What a reduction does, as its modifier says.
    pub(super) fn reduction(&mut self) -> Result<AtomicOp, Error> {
        Ok(match self.need(&["add", "inc", "dec", "min", "max", "and", "or", "xor"])? {
            "add" => AtomicOp::Add,
            "inc" => AtomicOp::Inc,
            "dec" => AtomicOp::Dec,
            "min" => AtomicOp::Min,
            "max" => AtomicOp::Max,
            "and" => AtomicOp::And,
            "or" => AtomicOp::Or,
            _ => AtomicOp::Xor,
        })
    }

    /// How many elements an access has, as its modifier says.
    pub(super) fn elements(&mut self) -> u8 {
        match self.one_of(&["v2", "v4", "v8"]) {
            Some("v2") => 2,
            Some("v4") => 4,
            Some(_) => 8,
            None => 1,
        }
    }

    /// Whether this modifier is written, taken or not.
    pub(super) fn says(&self, word: &str) -> bool {
        self.modifiers.contains(&word)
    }

    /// Whether a modifier stands before another one.
    pub(super) fn is_before(&self, one: &str, other: &str) -> bool {
        let mut both = self.modifiers.iter().filter(|word| **word == one || **word == other);
        both.next().is_some_and(|word| *word == one)
    }

    /// Takes the last modifiers, which are the types of matrices. There are no other types, and not all of these are types of registers.
    pub(super) fn types_of_matrices<const COUNT: usize>(&mut self) -> Option<[&'a str; COUNT]> {
        let last = *self.modifiers.last_chunk()?;
        let known = last.iter().filter(|word| Type::parse(word).is_some()).count();
        self.rest.retain(|word| !last.contains(word));
        (std::mem::take(&mut self.types).len() == known).then_some(last)
    }

    /// Takes the first modifier that begins so, and gives what follows.
    pub(super) fn behind(&mut self, begin: &str) -> Option<&'a str> {
        let found = self.rest.iter().position(|word| word.starts_with(begin))?;
        self.rest.remove(found).strip_prefix(begin)
    }

    /// Takes the first of these modifiers, of which one must be there.
    pub(super) fn need(&mut self, words: &[&'static str]) -> Result<&'static str, Error> {
        self.one_of(words).ok_or_else(|| self.unknown())
    }

    pub(super) fn rounding(&mut self) -> Option<Rounding> {
        self.one_of(&["rn", "rz", "rm", "rp", "rna", "rni", "rzi", "rmi", "rpi"]).and_then(Rounding::parse)
    }

    /// The only type.
    pub(super) fn ty(&self) -> Result<Type, Error> {
        match self.types[..] {
            [ty] => Ok(ty),
            _ => Err(self.unknown()),
        }
    }

    pub(super) fn space(&mut self) -> Space {
        for (word, space) in [
            ("global", Space::Global),
            ("shared", Space::Shared),
            ("shared::cta", Space::Shared),
            ("shared::cluster", Space::Shared),
            ("local", Space::Local),
            ("const", Space::Const),
            ("param", Space::Param),
            ("param::entry", Space::Param),
            ("param::func", Space::Param),
        ] {
            if self.has(word) {
                return space;
            }
        }
        Space::Generic
    }

    /// All spaces that are named, in their order.
    pub(super) fn take_spaces(&mut self) -> Vec<&'a str> {
        let is_space = |word: &&str| matches!(*word, "global" | "shared" | "shared::cta" | "shared::cluster");
        let spaces = self.rest.iter().copied().filter(is_space).collect();
        self.rest.retain(|word| !is_space(word));
        spaces
    }

    pub(super) fn scope(&mut self) -> Option<Scope> {
        self.one_of(&["cta", "cluster", "gpu", "sys"]).and_then(Scope::parse)
    }

    pub(super) fn order(&mut self) -> Option<Order> {
        Some(match self.one_of(&["weak", "volatile", "relaxed", "acquire", "release", "acq_rel"])? {
            "weak" => Order::Weak,
            "volatile" => Order::Volatile,
            "relaxed" => Order::Relaxed,
            "acquire" => Order::Acquire,
            "release" => Order::Release,
            _ => Order::AcquireRelease,
        })
    }

    /// Hints to caches, which change nothing that a program can see. Whether one of them comes with an operand.
    pub(super) fn cache_hints(&mut self) -> bool {
        let mut operand = false;
        self.rest.retain(|word| {
            operand |= *word == "L2::cache_hint";
            !CACHE_HINTS.contains(word)
        });
        operand
    }

    /// Priorities in the second cache, which change nothing either. Only few instructions have them.
    pub(super) fn priorities(&mut self) {
        self.rest.retain(|word| !PRIORITIES.contains(word));
    }

    /// Refuses what nobody has taken.
    pub(super) fn done(&self) -> Result<(), Error> {
        match self.rest.first() {
            None => Ok(()),
            Some(word) => Err(self.error(format!("the modifier .{word} of {} is not known here", self.name()))),
        }
    }
}
