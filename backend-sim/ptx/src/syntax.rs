//! A PTX text as it is written: declarations, statements, operands. Names are not yet resolved.

use crate::lexer::Float;
use crate::source::Sources;
use crate::types::Type;

/// The whole text.
#[derive(Debug, Default)]
pub(crate) struct Text<'a> {
    pub(crate) version: (u32, u32),
    pub(crate) functions: Vec<Function<'a>>,
    pub(crate) variables: Vec<Variable<'a>>,
    pub(crate) sources: Sources<'a>,
}

/// An `.entry` or a `.func`. Without a body it is declared only.
#[derive(Debug)]
pub(crate) struct Function<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: u32,
    pub(crate) is_entry: bool,
    pub(crate) is_external: bool,
    pub(crate) result: Option<Variable<'a>>,
    pub(crate) parameters: Vec<Variable<'a>>,
    pub(crate) max_threads: Option<[u32; 3]>,
    pub(crate) required_threads: Option<[u32; 3]>,
    pub(crate) cluster: Option<[u32; 3]>,
    pub(crate) body: Option<Vec<Statement<'a>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VariableSpace {
    Global,
    Const,
    Shared,
    Local,
    Param,
}

/// A variable or parameter.
#[derive(Clone, Debug)]
pub(crate) struct Variable<'a> {
    pub(crate) name: &'a str,
    pub(crate) line: u32,
    pub(crate) space: VariableSpace,
    pub(crate) ty: Type,
    pub(crate) align: u32,
    /// Bytes; `None` for an array without a length, whose size is known at launch.
    pub(crate) size: Option<u64>,
    pub(crate) is_external: bool,
    pub(crate) initial: Vec<Initial<'a>>,
}

/// One element of an initializer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Initial<'a> {
    Bits(u64),
    Float(Float),
    /// The address of a variable, generic or in its space, plus a number.
    Address {
        name: &'a str,
        offset: i64,
        generic: bool,
    },
}

#[derive(Debug)]
pub(crate) enum Statement<'a> {
    /// Index of the `.loc` that holds from here on.
    Loc(usize),
    Label(&'a str, u32),
    /// `{`: names declared from here to `End` hold in between only.
    Begin,
    End,
    /// `.reg`; with a count, `%r<4>` is `%r0` to `%r3`.
    Registers {
        ty: Type,
        name: &'a str,
        count: Option<u32>,
        line: u32,
    },
    Variable(Variable<'a>),
    /// `.branchtargets`: the labels that an indexed branch may go to.
    Targets {
        name: &'a str,
        labels: Vec<&'a str>,
        line: u32,
    },
    Instruction(Instruction<'a>),
    /// From here on, accesses of the thread are marked as free to race, for this reason. Without one, the last mark ends.
    Mark {
        reason: Option<&'a str>,
        line: u32,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Instruction<'a> {
    pub(crate) line: u32,
    /// The predicate before it, and whether it is negated.
    pub(crate) guard: Option<(&'a str, bool)>,
    pub(crate) opcode: &'a str,
    pub(crate) modifiers: Vec<&'a str>,
    pub(crate) operands: Vec<Operand<'a>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand<'a> {
    /// A register, special register, variable, function or label; `+ offset` for an address.
    Name {
        name: &'a str,
        offset: i64,
    },
    /// `%r1.b3210`: a register, and which bytes or halves of it, as only instructions on these have.
    Part {
        name: &'a str,
        part: &'a str,
    },
    /// `!p`.
    Not(&'a str),
    /// `a|b`.
    Pair(&'a str, &'a str),
    Bits(u64),
    Float(Float),
    /// `[base+offset]`; without a base, an absolute address.
    Address {
        base: Option<&'a str>,
        offset: i64,
    },
    /// `[base+offset, {a, b}]`: a tensor map, and coordinates.
    Tile {
        base: Option<&'a str>,
        offset: i64,
        corner: Vec<Operand<'a>>,
    },
    /// `{a, b}`.
    Vector(Vec<Operand<'a>>),
    /// `(a, b)`.
    List(Vec<Operand<'a>>),
}
