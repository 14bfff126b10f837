//! What a block runs against: global memory, and whoever hears of fences and of printing.

use crate::block::{Sync, ToldInBlock, Who};
use crate::decode::window;
use crate::module::Place;
use crate::op::FenceKind;
use crate::types::{Order, Scope, Type};

/// One access to global memory, by one thread, of at most 8 bytes; or a strong one to shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// The first byte. It is a multiple of `bytes`. Of shared memory, the generic address: see [`Access::is_shared`].
    pub address: u64,
    /// 1, 2, 4 or 8.
    pub bytes: u8,
    /// Strength and order.
    pub order: Order,
    /// The scope of a strong access; `Sys` for a weak one.
    pub scope: Scope,
    /// What the access does.
    pub kind: AccessKind,
    /// For an atomic: whether atomics of its kind leave the same value in any order, and nobody looks at the old value.
    pub commutes: bool,
    /// For an atomic: whether somebody may look at the old value.
    pub is_used: bool,
    /// For an atomic that counts: what its thread asks, if that is all that it does with the old value.
    pub asks: Option<Asks>,
    /// Who accesses: the number of the thread in its block. [`Block::who`](crate::Block::who) says where it is.
    pub thread: u32,
    /// Where in the kernel.
    pub place: Place,
    /// Where it stands among the accesses of a vector.
    pub within: Within,
}

/// What a thread asks of the old value of an atomic that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "a question has no more")]
pub struct Asks {
    /// What the atomic adds, or where it begins anew.
    pub by: u32,
    /// Whether the old value is this number.
    pub number: u32,
}

/// The position of an access among those that are made together: those of a vector's elements to one aligned word of 8 bytes, if the world
/// [accesses words](World::accesses_words), and the two halves of an access of 16 bytes in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "an access stands at one of these")]
pub enum Within {
    /// It is the only one.
    #[default]
    Alone,
    /// Others follow.
    First,
    /// Others come before and behind it.
    Inner,
    /// Others come before it.
    Last,
    /// The lower half of 16 bytes.
    Low,
    /// The upper half.
    High,
}

impl Within {
    /// The position of the element at `place` in an aligned vector of so many elements of so many bytes.
    pub(crate) fn word(place: u8, elements: u8, bytes: u8) -> Within {
        let in_a_word = 8 / bytes.min(8);
        let follows = !place.is_multiple_of(in_a_word);
        let goes_on = !(place + 1).is_multiple_of(in_a_word) && place + 1 < elements;
        match (follows, goes_on) {
            (false, false) => Within::Alone,
            (false, true) => Within::First,
            (true, true) => Within::Inner,
            (true, false) => Within::Last,
        }
    }

    /// Whether elements of the word come before it.
    pub fn follows(self) -> bool {
        matches!(self, Within::Inner | Within::Last)
    }

    /// Whether elements of the word follow.
    pub fn goes_on(self) -> bool {
        matches!(self, Within::First | Within::Inner)
    }
}

impl Access {
    /// A plain access of a thread.
    #[inline(always)] // on the hottest path, where most of it folds away
    pub(crate) fn plain(thread: usize, address: u64, bytes: u8, kind: AccessKind, place: Place) -> Self {
        let (order, scope, within) = (Order::Weak, Scope::Sys, Within::Alone);
        Self {
            address,
            bytes,
            order,
            scope,
            kind,
            commutes: false,
            is_used: false,
            asks: None,
            thread: thread as u32,
            place,
            within,
        }
    }

    /// Whether it is to the block's shared memory, and not to global memory.
    #[inline]
    pub fn is_shared(&self) -> bool {
        is_shared(self.address)
    }

    /// Whether others follow that are made together with this one. `words`: whether the world [accesses words](World::accesses_words).
    #[inline]
    pub fn goes_on(&self, words: bool) -> bool {
        self.order.is_strong() && (self.within == Within::Low || self.within.goes_on() && words)
    }
}

/// Whether a generic address is one of shared memory.
#[inline]
pub fn is_shared(address: u64) -> bool {
    address & !(window::SHARED - 1) == window::SHARED
}

/// What ends a loop that does nothing but load a word, leave it as it was by an atomic, or look at it by a call: see
/// [`Block::ends_loop`](crate::Block::ends_loop).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Until<Against = u64> {
    /// How the word, or a part of it, is compared with `against`.
    pub compare: Compare,
    /// As numbers of this type.
    pub ty: Type,
    /// What it is compared with: the bits of a number. While a text is decoded, an operand; in decoded code, a register.
    pub against: Against,
    /// The part of the word that is compared.
    pub view: View<Against>,
    /// Whether something else may look at the value that was found.
    pub is_used: bool,
    /// Whether each round also loads something else plainly. That finds the same value each time, unless another thread races with the load.
    pub reloads: bool,
}

/// What a thread in such a loop waits for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Looks {
    /// What ends it: what the look finds, or what the call returns.
    pub until: Until,
    /// What else each round looks at, except loads before the look whose value the loop ignores: the thread has already made those.
    pub besides: Vec<LookBeside>,
}

/// A load that each round of such a loop makes besides.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct LookBeside {
    /// The load.
    pub access: Access,
    /// Whether a call of `nvshmem_signal_fetch` makes it.
    pub is_call: bool,
    /// The value that it must not find if the loop goes on.
    pub otherwise: Option<Until>,
}

/// A part of a word: of `word >> shift & mask`, perhaps less a number, or the like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_structs, reason = "it is all of the formula")]
pub struct View<Number = u64> {
    /// The bits that are left out below.
    pub shift: u8,
    /// The bits behind that.
    pub mask: u64,
    /// What is done with these bits, one step after the other.
    pub then: [Then<Number>; 2],
}

/// What is done with a part of a word before it is compared. Sums and differences wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "who evaluates it must know all of them")]
pub enum Then<Number = u64> {
    /// Nothing.
    Nothing,
    /// This is added.
    Plus(Number),
    /// This is taken from it.
    Minus(Number),
    /// It is taken from this.
    From(Number),
    /// The bits that are set in this are flipped.
    Xor(Number),
    /// Its bytes are permuted. Each four bits of this, from the lowest on, are the number of the byte that goes there.
    Bytes(Number),
}

impl<Number> Then<Number> {
    /// The number that it takes.
    fn number(&self) -> Option<&Number> {
        match self {
            Then::Nothing => None,
            Then::Plus(number) | Then::Minus(number) | Then::From(number) | Then::Xor(number) | Then::Bytes(number) => {
                Some(number)
            }
        }
    }

    fn map<Other>(&self, other: &mut impl FnMut(&Number) -> Option<Other>) -> Option<Then<Other>> {
        Some(match self {
            Then::Nothing => Then::Nothing,
            Then::Plus(number) => Then::Plus(other(number)?),
            Then::Minus(number) => Then::Minus(other(number)?),
            Then::From(number) => Then::From(other(number)?),
            Then::Xor(number) => Then::Xor(other(number)?),
            Then::Bytes(number) => Then::Bytes(other(number)?),
        })
    }
}

impl<Number> View<Number> {
    /// These bits of a word, as they are.
    pub(crate) fn of_bits(shift: u8, mask: u64) -> Self {
        View { shift, mask, then: [Then::Nothing, Then::Nothing] }
    }

    /// Whether nothing is done with the bits.
    pub fn is_plain(&self) -> bool {
        self.numbers().next().is_none()
    }

    /// The numbers that it takes.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = &Number> {
        self.then.iter().filter_map(Then::number)
    }

    /// `count` bits of the part, beginning with bit `from`. `None` if that is not a part of the word.
    pub(crate) fn bits(self, from: u32, count: u32) -> Option<Self> {
        let mask = self.mask.checked_shr(from)? & 1_u64.checked_shl(count).map_or(u64::MAX, |end| end - 1);
        Some(View { shift: self.shift + from as u8, mask, ..self })
    }

    /// The same part, with other numbers, if there is one for each.
    pub(crate) fn map<Other>(&self, mut other: impl FnMut(&Number) -> Option<Other>) -> Option<View<Other>> {
        let [first, second] = &self.then;
        let then = [first.map(&mut other)?, second.map(&mut other)?];
        Some(View { shift: self.shift, mask: self.mask, then })
    }
}

impl View {
    /// The part of this word.
    #[inline]
    #[must_use]
    pub fn of(self, word: u64) -> u64 {
        let part = word.checked_shr(self.shift.into()).unwrap_or(0) & self.mask;
        self.then.into_iter().fold(part, |part, then| match then {
            Then::Nothing => part,
            Then::Plus(number) => part.wrapping_add(number),
            Then::Minus(number) => part.wrapping_sub(number),
            Then::From(number) => number.wrapping_sub(part),
            Then::Xor(number) => part ^ number,
            Then::Bytes(order) => {
                (0..4).fold(0, |all, at| all | (part >> (8 * (order >> (4 * at) & 3)) & 0xff) << (8 * at))
            }
        })
    }
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there are no others")]
pub enum Compare {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

impl Compare {
    /// The comparison that a modifier of `setp` names, for numbers of a type.
    pub(crate) fn parse(word: &str, ty: Type) -> Option<Self> {
        Some(match word {
            "eq" => Self::Eq,
            "ne" => Self::Ne,
            "lt" | "lo" if ty.is_integer() => Self::Lt,
            "le" | "ls" if ty.is_integer() => Self::Le,
            "gt" | "hi" if ty.is_integer() => Self::Gt,
            "ge" | "hs" if ty.is_integer() => Self::Ge,
            _ => return None,
        })
    }

    /// True where this is false.
    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Eq => Self::Ne,
            Self::Ne => Self::Eq,
            Self::Lt => Self::Ge,
            Self::Le => Self::Gt,
            Self::Gt => Self::Le,
            Self::Ge => Self::Lt,
        }
    }

    /// The same comparison with its two numbers swapped.
    pub(crate) fn mirrored(self) -> Self {
        match self {
            Self::Eq | Self::Ne => self,
            Self::Lt => Self::Gt,
            Self::Le => Self::Ge,
            Self::Gt => Self::Lt,
            Self::Ge => Self::Le,
        }
    }
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a world must handle every kind")]
pub enum AccessKind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes in one step.
    Atomic(AtomicOp),
    /// Arrives at an mbarrier, in a phase of this parity, or announces bytes to it. Arrivals in one phase commute; they do not with bytes that are announced
    /// (`Access::commutes` tells which it is).
    Arrive {
        /// Whether the phase is the second, the fourth and so on.
        odd: bool,
        /// Whether the phase ends: what arrives later is in the next.
        ends: bool,
    },
    /// Reads a part of the source of a bulk copy.
    BulkLoad,
    /// Writes a part of the destination of a bulk copy.
    BulkStore,
    /// The interpreter reads for itself: the text of a printf, or a tensor map.
    Inspect,
}

/// What an atomic makes of the old value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "the atomics of PTX")]
pub enum AtomicOp {
    /// The sum.
    Add,
    /// The old value plus 1, or 0 from the operand on.
    Inc,
    /// The old value minus 1, or the operand from 0 or beyond the operand.
    Dec,
    /// The smaller.
    Min,
    /// The larger.
    Max,
    /// Bitwise.
    And,
    /// Bitwise.
    Or,
    /// Bitwise.
    Xor,
    /// The operand.
    Exchange,
    /// The second operand, if the old value is the first.
    CompareSwap,
}

impl AtomicOp {
    /// The new value in global memory, where additions of `f32` take what is too small for a normal number as zero, and give zero for it.
    /// `b` is the operand of an exchange or arithmetic, and what a compare-and-swap compares with; `c` what that writes.
    pub fn apply(self, ty: Type, old: u64, b: u64, c: u64) -> u64 {
        if (self, ty) != (AtomicOp::Add, Type::F32) {
            return crate::alu::atomic(self, ty, old, b, c);
        }
        let normal = |a: u64| if a & 0x7f80_0000 == 0 { a & 0x8000_0000 } else { a };
        normal(crate::alu::atomic(self, ty, normal(old), normal(b), c))
    }
}

/// Why a world does not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a block must handle both")]
pub enum Refusal {
    /// Not now: the thread stops with [`Stop::Access`](crate::Stop::Access), and the access is asked for again when it goes on.
    Wait,
    /// The access is wrong: the block ends with a fault that has this text, such as "beyond the end of `buf1`".
    /// One word, so that results of accesses fit into registers.
    Fault(Box<String>),
}

impl Refusal {
    /// The access is wrong, for this reason.
    #[cold]
    pub fn fault(why: impl Into<String>) -> Self {
        Self::Fault(Box::new(why.into()))
    }
}

/// What a strong write to shared memory has done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The aligned 8 bytes in which the word lies, as they were before.
    pub before: u64,
    /// The same, now.
    pub now: u64,
    /// What the word tells from now on.
    pub told: ToldInBlock,
}

/// Global memory and its surroundings. A block asks, in the order in which its threads run.
pub trait World {
    /// Whether the thread stops before this access, so that others may act first. If threads of a warp make plain accesses
    /// together, this is asked for each of them, and asked again if the accesses are then made one by one.
    fn stops(&mut self, access: &Access) -> bool {
        access.order.is_strong()
    }

    /// Whether threads access all elements of a vector that lie in one aligned word of 8 bytes [at once](Within). By PTX's text, elements are accessed in any order.
    fn accesses_words(&self) -> bool {
        false
    }

    /// A thread has made a strong access to shared memory, at which it may have been [stopped](World::stops). `written`: `None` if it has only read.
    fn accessed_shared(&mut self, access: &Access, written: Option<&Written>) {
        let _ = (access, written);
    }

    /// Reads `access.bytes` bytes of global memory, little-endian.
    ///
    /// # Errors
    /// If the access is wrong, or not possible now.
    fn load(&mut self, access: &Access) -> Result<u64, Refusal>;

    /// Whether the last load has found what memory held earlier. The next load there may find something else, though nothing changes.
    fn found_older(&self) -> bool {
        false
    }

    /// Writes the low bytes of `value`. Returns whether that changed the memory.
    ///
    /// # Errors
    /// If the access is wrong, or not possible now.
    fn store(&mut self, access: &Access, value: u64) -> Result<bool, Refusal>;

    /// Makes the plain loads of threads of a warp that are at the same instruction, all at once. `lanes` has a bit for each thread. The loads are from the addresses `from`,
    /// which are multiples of `access.bytes`, into the values `into`. `access` is that of the first thread, and lanes are in the order of the threads' numbers.
    /// Returns false if no load was made; then the loads come one by one. A world that [stops](World::stops)
    /// at one of them, or refuses one, must return false.
    fn load_together(&mut self, access: &Access, lanes: u32, from: &[u64; 32], into: &mut [u64; 32]) -> bool {
        let _ = (access, lanes, from, into);
        false
    }

    /// The same for stores of these values. Returns the lanes that have changed the memory; `None` if no store was made, and the stores come one by one.
    fn store_together(&mut self, access: &Access, lanes: u32, to: &[u64; 32], values: &[u64; 32]) -> Option<u32> {
        let _ = (access, lanes, to, values);
        None
    }

    /// Reads, computes and writes in one step: [`AtomicOp::apply`] says what. The result is the old value, and whether the memory changed.
    ///
    /// # Errors
    /// If the access is wrong, or not possible now.
    fn atomic(&mut self, access: &Access, ty: Type, b: u64, c: u64) -> Result<(u64, bool), Refusal> {
        let AccessKind::Atomic(op) = access.kind else { return Err(Refusal::fault("no atomic")) };
        let old = self.load(access)?;
        Ok((old, self.store(access, op.apply(ty, old, b, c))?))
    }

    /// The addresses of the copies for which a multicast address stands. Each is then accessed by itself.
    ///
    /// # Errors
    /// If it is not a multicast address.
    fn copies(&mut self, access: &Access) -> Result<Vec<u64>, Refusal> {
        Err(Refusal::fault(format!("{:#x} is no multicast address", access.address)))
    }

    /// Whether the thread stops before this fence, with [`Stop::Fence`](crate::Stop::Fence), so that what comes before the fence may happen first.
    /// Asked once for each fence. `thread` is the number of the thread in its block; `sequential`: whether the fence is sequentially consistent.
    fn stops_at_fence(&mut self, thread: u32, scope: Scope, sequential: bool) -> bool {
        let _ = (thread, scope, sequential);
        false
    }

    /// A thread's fence: release and acquire at this scope; sequentially consistent if so.
    fn fence(&mut self, thread: u32, scope: Scope, sequential: bool, place: Place) {
        let _ = (thread, scope, sequential, place);
    }

    /// What a thread does from now on is marked as free to race, for a reason that the program gives. Without a reason, the last mark
    /// ends. `thread` is the number of the thread in its block.
    fn marks(&mut self, thread: u32, reason: Option<&str>, place: Place) {
        let _ = (thread, reason, place);
    }

    /// The time, as a number that only the world interprets: see [`World::looks_again`]. It is asked when a turn begins.
    fn now(&self) -> u64 {
        0
    }

    /// A thread that only waits looks again, because memory that it has read has changed since it read it. `reads` has for each read the address, the number of bytes,
    /// and the [time](World::now) of the read. `thread` is the number of the thread in its block.
    fn looks_again(&mut self, thread: u32, reads: &[(u64, u8, u64)]) {
        let _ = (thread, reads);
    }

    /// Whether other threads and blocks come first. Asked if a thread has looked at memory for many rounds of a loop without a visible effect, and its state
    /// differs in each round, because it may count its looks. If so, the block's turn ends with [`Stop::Looks`](crate::Stop::Looks).
    fn others_first(&mut self) -> bool {
        false
    }

    /// Whether a block that does not wait may go on. Asked about every 65,000 instructions, when a thread jumps back or calls.
    /// False ends the block with [`FaultKind::Stopped`](crate::FaultKind::Stopped).
    fn goes_on(&mut self) -> bool {
        true
    }

    /// Threads of the block have been ordered, if the launch [looks for races](crate::Checks::races) or for [order](crate::Checks::order).
    /// Told before whatever the threads do next.
    fn synchronize(&mut self, sync: &Sync) {
        let _ = sync;
    }

    /// The current moment, as a number that never decreases. Asked when a thread accesses shared memory, if the launch [looks for
    /// races](crate::Checks::races); see [`World::comes_after`].
    fn moment(&mut self, thread: u32) -> u64 {
        let _ = thread;
        0
    }

    /// Whether what a thread of the block does now comes after everything that another one had done by a [moment](World::moment), because something outside
    /// of the block orders them: words of global memory, or calls. Asked if nothing in the block orders two
    /// accesses to shared memory. Threads are given by their numbers in the block.
    fn comes_after(&mut self, thread: u32, of: u32, moment: u64) -> bool {
        let _ = (thread, of, moment);
        false
    }

    /// The accesses that follow are those of a bulk copy, whose number follows those of the block's threads (see [`COPIES`](crate::COPIES)). `None` ends
    /// that. Told only if the launch [looks for races](crate::Checks::races).
    fn copying(&mut self, copy: Option<usize>) {
        let _ = copy;
    }

    /// The result of an external function that has no parameters and whose answer never changes, such as the number of PEs. `external` is an index into
    /// [`Module::externals`](crate::Module::externals). With `None`, the function is [called](crate::Stop::Call).
    fn query(&mut self, external: usize) -> Option<u64> {
        let _ = external;
        None
    }

    /// A thread has printed.
    fn print(&mut self, who: Who, text: &str) {
        let _ = (who, text);
    }
}

impl FenceKind {
    pub(crate) fn is_sequential(self) -> bool {
        self == Self::Sequential
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In global memory, numbers below the least normal one are zero; in shared memory they are not.
    #[test]
    fn additions_of_f32_in_global_memory_know_no_subnormal_numbers() {
        let (tiny, least) = (1_u64, u64::from(f32::MIN_POSITIVE.to_bits()));
        let minus = |a: u64| a | 0x8000_0000;
        let add = |a, b| AtomicOp::Add.apply(Type::F32, a, b, 0);
        assert_eq!(add(tiny, tiny), 0);
        assert_eq!(add(minus(tiny), minus(tiny)), minus(0));
        assert_eq!(add(least, tiny), least);
        assert_eq!(add(least + 1, minus(least)), 0, "the sum is subnormal");
        assert_eq!(crate::alu::atomic(AtomicOp::Add, Type::F32, tiny, tiny, 0), 2);
        assert_eq!(AtomicOp::Add.apply(Type::F64, 1, 1, 0), 2);
        assert_eq!(AtomicOp::Max.apply(Type::F32, 1, 0, 0), 1);
    }
}
