//! A decoded instruction: an operation on numbered registers.
//!
//! Constants are registers too, with values that each frame begins with, so that an operand is always a register number. One PTX
//! instruction becomes one operation or a few: `.ftz`, `.sat`, vectors and pairs are composed from the same operations.

use std::collections::{BTreeMap, BTreeSet};

use crate::alu::convert::Conversion;
use crate::alu::group::GroupProduct;
use crate::alu::matrix::Matrix;
pub(crate) use crate::call::{CallSite, Callee, Slot};
pub(crate) use crate::operand::{AtomicForm, Memory, Unit};
use crate::tensor::TileForm;
use crate::types::{Scope, Type};
use crate::world::{AtomicOp, Until};

/// The number of a register in its function's frame.
pub(crate) type Reg = u16;

pub(crate) type Unary = fn(u64) -> u64;
pub(crate) type Binary = fn(u64, u64) -> u64;
pub(crate) type Ternary = fn(u64, u64, u64) -> u64;
pub(crate) type Quaternary = fn(u64, u64, u64, u64) -> u64;
/// The carry comes in and goes out.
pub(crate) type Carry = fn(u64, u64, u64, bool) -> (u64, bool);

#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Move {
        d: Reg,
        a: Reg,
    },
    Unary {
        f: Unary,
        d: Reg,
        a: Reg,
    },
    Binary {
        f: Binary,
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Ternary {
        f: Ternary,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    Quaternary {
        f: Quaternary,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        e: Reg,
    },
    Carry {
        f: Carry,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        uses: bool,
        sets: bool,
    },
    Convert {
        d: Reg,
        a: Reg,
        how: u16,
    },
    /// The most frequent ones, without a call through a pointer.
    Add32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    Add64 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    MulWideS32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    FmaF32 {
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
    },
    LessS32 {
        d: Reg,
        a: Reg,
        b: Reg,
    },

    Special {
        d: Reg,
        what: Special,
    },
    /// The address of a global variable plus a number.
    Global {
        d: Reg,
        variable: u16,
        offset: i32,
    },
    /// The address of this frame's local memory, plus a number, in the local space.
    Local {
        d: Reg,
        offset: u32,
    },

    Load {
        d: Reg,
        a: Reg,
        offset: i32,
        memory: Memory,
    },
    Store {
        s: Reg,
        a: Reg,
        offset: i32,
        memory: Memory,
    },
    /// Plain accesses of 4 and 8 bytes, to global memory or to a generic address: the most frequent ones.
    Load4 {
        d: Reg,
        a: Reg,
        offset: i32,
        memory: Memory,
    },
    Load8 {
        d: Reg,
        a: Reg,
        offset: i32,
        memory: Memory,
    },
    Store4 {
        s: Reg,
        a: Reg,
        offset: i32,
        memory: Memory,
    },
    Store8 {
        s: Reg,
        a: Reg,
        offset: i32,
        memory: Memory,
    },
    /// The kernel's parameters.
    LoadParameter {
        d: Reg,
        offset: u32,
        bytes: u8,
    },
    /// Parameters of a device function, its result, the slots of calls.
    LoadSlot {
        d: Reg,
        offset: u32,
        bytes: u8,
    },
    StoreSlot {
        s: Reg,
        offset: u32,
        bytes: u8,
    },
    /// An atomic; `d` is the old value. `b` and `c` are its operands.
    Atomic {
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        how: u16,
    },
    /// A strong access of 16 bytes, by the form of an atomic: `d` is what was there, `b` and `c` are its operands. Each is two registers.
    Wide {
        kind: Wide,
        d: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        how: u16,
    },
    Fence {
        fence: FenceKind,
        scope: Scope,
    },

    Branch {
        target: u32,
    },
    BranchIf {
        p: Reg,
        unless: bool,
        target: u32,
    },
    /// `brx.idx`: the tables of a function.
    BranchTable {
        a: Reg,
        table: u16,
    },
    Call {
        call: u16,
    },
    Return,
    Exit,
    Trap,
    /// A named barrier: its number `a`, the number of threads `b` if it is given, a predicate to reduce.
    Barrier {
        kind: Barrier,
        d: Reg,
        a: Reg,
        b: Option<Reg>,
        p: Reg,
        aligned: bool,
    },
    /// What the threads of a warp do together: `d` and the predicate `q` are results.
    Warp {
        kind: Warp,
        d: Reg,
        q: Reg,
        a: Reg,
        b: Reg,
        c: Reg,
        mask: Reg,
    },
    /// The next operations access a register which products of warp groups work on.
    Held {
        register: Reg,
        writes: bool,
    },
    /// A row of a matrix, 16 bytes of shared memory at `a`, for each of the first so many lanes of a warp: loaded into the register `t` and the
    /// one behind it, or stored from them.
    Row {
        stores: bool,
        t: Reg,
        a: Reg,
        lanes: u8,
        shared: bool,
    },
    /// `relaxed`: it releases and acquires nothing.
    MBarrier {
        kind: MBarrier,
        d: Reg,
        a: Reg,
        b: Reg,
        shared: bool,
        relaxed: bool,
    },
    /// Copies `n` bytes from `s` to `t`. `barrier` is the mbarrier that counts them, or of `Elements` how many are read.
    Bulk {
        kind: Bulk,
        t: Reg,
        s: Reg,
        n: Reg,
        barrier: Reg,
    },
    /// Copies a tile of a tensor, by the number of its form.
    Tile {
        how: u16,
    },
    /// A thread closes a group of its copies, or waits for groups: in bulk, or of elements.
    Group {
        group: Group,
        bulk: bool,
    },
    /// The bytes at `a` were written by an asynchronous store, which is in flight until a phase of an mbarrier ends. `before` is the old state of the mbarrier.
    UnderWay {
        a: Reg,
        bytes: u8,
        barrier: Reg,
        before: Reg,
    },
    /// An element of a multicast access, by the form of an atomic: `r` is its value, or where the result of a load goes.
    Multi {
        kind: Multi,
        r: Reg,
        a: Reg,
        how: u16,
    },
    /// Arrives at the barrier of the cluster, or waits there.
    Cluster {
        waits: bool,
        releases: bool,
    },
    /// An address of shared memory as block `b` of the cluster has it.
    InCluster {
        d: Reg,
        a: Reg,
        b: Reg,
    },
    /// The number in the cluster of the block in whose shared memory an address lies.
    RankOf {
        d: Reg,
        a: Reg,
    },
    /// Marks what the thread does from here on as free to race, for the reason of this number. `None` ends the last mark.
    Mark {
        reason: Option<u16>,
    },
    Sleep,
}

impl Op {
    pub(crate) fn load(d: Reg, a: Reg, offset: i32, memory: Memory) -> Self {
        match memory.plain_bytes() {
            Some(4) => Self::Load4 { d, a, offset, memory },
            Some(8) => Self::Load8 { d, a, offset, memory },
            _ => Self::Load { d, a, offset, memory },
        }
    }

    pub(crate) fn store(s: Reg, a: Reg, offset: i32, memory: Memory) -> Self {
        match memory.plain_bytes() {
            Some(4) => Self::Store4 { s, a, offset, memory },
            Some(8) => Self::Store8 { s, a, offset, memory },
            _ => Self::Store { s, a, offset, memory },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FenceKind {
    AcquireRelease,
    Sequential,
    /// Acquires or releases by words of shared memory only.
    Shared,
    /// Between ordinary accesses to shared memory and bulk copies that come later.
    AsyncProxy,
    /// Between other proxies, or for mbarriers. It does nothing, because the bytes of a copy move when it is issued.
    OtherProxy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Barrier {
    Sync,
    Arrive,
    Count,
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Warp {
    Sync,
    Up,
    Down,
    Butterfly,
    Index,
    All,
    Any,
    Uniform,
    Ballot,
    MatchAny(u8),
    MatchAll(u8),
    Elect,
    Reduce(AtomicOp, Type),
    /// With matrices that all lanes hold together, by the number of its form. All come to the same instruction.
    Matrix(u16),
    /// As one of the four warps of a group. All come to the same instruction.
    Group(InGroup),
}

/// What warps do for the products of their group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InGroup {
    /// Orders earlier accesses to registers before the products that follow.
    Fence,
    /// The group's four warps begin a product, by the number of its form.
    Multiply(u16),
    /// The products since the last commit form one group.
    Commit,
    /// They wait until at most so many groups are not over.
    Wait(u32),
}

/// What a product of a warp group is made of.
#[derive(Clone, Debug)]
pub(crate) struct GroupForm {
    pub(crate) kind: GroupProduct,
    pub(crate) d: Vec<Reg>,
    pub(crate) a: Factor,
    pub(crate) b: Factor,
    /// Whether what is in `d` is added.
    pub(crate) adds: Reg,
}

/// Where a matrix of a product is.
#[derive(Clone, Debug)]
pub(crate) enum Factor {
    Registers(Vec<Reg>),
    /// In shared memory, by a descriptor.
    Shared {
        descriptor: Reg,
        transposed: bool,
    },
}

/// What a warp does with matrices, and the registers that hold them.
#[derive(Clone, Debug)]
pub(crate) struct MatrixForm {
    pub(crate) kind: Matrix,
    pub(crate) d: Vec<Reg>,
    /// Of a product, `a × b + c`.
    pub(crate) operands: [Vec<Reg>; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MBarrier {
    Init,
    Invalidate,
    /// `completes`: it may end the phase.
    Arrive {
        completes: bool,
    },
    ArriveDrop {
        completes: bool,
    },
    ExpectTx,
    ArriveExpectTx,
    CompleteTx,
    /// Arrives when the thread's copies so far have ended. If it does not `count`, the phase expects one more arrival.
    ArriveBehindCopies {
        counts: bool,
    },
    /// Waits for the phase of a state; `true`: of a parity.
    Test {
        parity: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wide {
    Load,
    Store,
    Exchange,
    CompareSwap,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Multi {
    /// The reduction of all copies.
    Load,
    Store,
    Reduce,
}

/// What a thread does with groups of its asynchronous copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// The copies since the last commit form one group.
    Commit,
    /// It waits until at most `most` groups are not over; with `read`, until at most so many have not read their sources.
    Wait { most: u32, read: bool },
    /// It waits for all of its copies.
    WaitAll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bulk {
    /// From global to shared memory, counted by an mbarrier.
    ToShared,
    /// From shared to shared memory, counted by an mbarrier. Both are the block's own.
    Within,
    ToGlobal,
    /// From shared to global memory, added to what is there or combined with it: the number of the form of an atomic.
    Reduce(u16),
    /// A few bytes of one thread from global to shared memory, which no mbarrier counts. Zeros follow the bytes that are read.
    Elements,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    Thread(u8),
    BlockSize(u8),
    Block(u8),
    GridSize(u8),
    /// The position of the cluster, how many clusters there are, the block's position in its cluster, and the cluster's dimensions.
    Cluster(u8),
    Clusters(u8),
    InCluster(u8),
    ClusterSize(u8),
    /// The block's number in its cluster, the number of blocks there, and whether the launch forms clusters.
    Rank,
    Ranks,
    HasClusters,
    Lane,
    Warp,
    Warps,
    LanesBelow,
    LanesUpTo,
    LanesAbove,
    LanesFrom,
    LaneMask,
    /// The active lanes: only this one, as if threads ran one after another.
    Active,
    /// Words of the environment; 1 and 2 hold the address of the grid's workspace.
    Environment(u8),
    DynamicShared,
    TotalShared,
    /// The thread's clock, which does not advance while the thread only polls memory: see `block/pace.rs`.
    Clock,
    Constant(u32),
}

impl Special {
    /// Whether all threads of a warp see the same.
    pub(crate) fn is_of_warp(self) -> bool {
        use Special::{Active, Clock, Lane, LaneMask, LanesAbove, LanesBelow, LanesFrom, LanesUpTo, Thread};
        let is_of_lane = matches!(
            self,
            Thread(_) | Lane | LaneMask | Active | LanesBelow | LanesUpTo | LanesFrom | LanesAbove | Clock
        );
        !is_of_lane
    }
}

/// A loop that only looks at a word until it compares true.
#[derive(Debug)]
pub(crate) struct Looks {
    pub(crate) until: Until<Reg>,
    /// What else each round looks at, except loads before the look whose value the loop ignores: the thread has already made those.
    pub(crate) besides: Vec<LookBeside<Reg>>,
}

/// A load that each round of such a loop makes besides.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookBeside<Number> {
    /// The number of its operation, and the address that it loads from.
    pub(crate) load: u32,
    pub(crate) base: Number,
    pub(crate) offset: i64,
    /// The value that it must not find if the loop goes on.
    pub(crate) otherwise: Option<Until<Number>>,
}

#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) ops: Vec<Op>,
    /// The place of the first operation, as an index into the module's places. Those of the others follow.
    pub(crate) first_place: u32,
    /// The values that registers begin with: zero, or a constant.
    pub(crate) registers: Vec<u64>,
    pub(crate) conversions: Vec<Conversion>,
    pub(crate) atomics: Vec<AtomicForm>,
    pub(crate) matrices: Vec<MatrixForm>,
    pub(crate) products: Vec<GroupForm>,
    pub(crate) tiles: Vec<TileForm>,
    pub(crate) calls: Vec<CallSite>,
    pub(crate) tables: Vec<Vec<u32>>,
    /// Loads in loops that do nothing else, by the numbers of their operations, and what ends the loops.
    pub(crate) polls: BTreeMap<u32, Looks>,
    /// Tests of mbarriers in loops that do nothing else.
    pub(crate) awaits: BTreeSet<u32>,
    /// Why accesses are marked as free to race.
    pub(crate) reasons: Vec<String>,
    /// Bytes of local memory of a frame.
    pub(crate) local: u32,
    /// What a frame's local memory is aligned to.
    pub(crate) local_align: u32,
    /// Bytes of parameters, result and slots of a frame.
    pub(crate) slots: u32,
    /// Where parameters and result of a device function begin among its slots.
    pub(crate) parameters: Vec<Slot>,
    pub(crate) result: Option<Slot>,
}
