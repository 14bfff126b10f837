//! [`Effect`]: what an operation does, described once for everything that asks.
//!
//! A backend, a checker, a trace and a table of calls all need the same facts about an operation: whether it moves data, from
//! where to where, which memory each PE reads and writes, whether that is atomic, when its call ends, and which collective it
//! is. [`Op::effect`] states them. It has one arm for each variant of [`Op`], and no default arm. So a new operation does not
//! compile until it is described here. Everything else follows from the description.
#![expect(clippy::exhaustive_enums, reason = "who asks what an operation does must learn of every new kind of effect")]

use crate::element::DType;
use crate::members::TeamId;
use crate::op::{Against, Op, SignalUpdate};
use crate::operator::{AmoOp, Cmp, ReduceOp};
use crate::span::{AllocId, Span};

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// One transfer between the issuer and one PE.
    Transfer(Transfer),
    /// The issuer reads its own signal word, atomically.
    FetchSignal {
        /// The word.
        word: Span,
    },
    /// The issuer stores [`Values`](crate::backend::Values) to its own memory.
    Fill {
        /// The memory.
        dst: Span,
    },
    /// The issuer waits for its own memory.
    Wait(Wait),
    /// Later operations are ordered behind earlier ones, or earlier ones are completed.
    Order(Order),
    /// All members of a team take part.
    Collective(Collective),
}

/// One transfer: a put, get, signal or atomic, from its issue to its completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What moves.
    pub moves: Moves,
    /// The other PE: a world rank.
    pub peer: u32,
    /// The memory there: the target of what is sent, the source of what is fetched. From the first to the last element.
    pub remote: Span,
    /// Element type.
    pub dtype: DType,
    /// How the elements lie.
    pub shape: Shape,
    /// The signal that follows the data.
    pub signal: Option<SignalUpdate>,
    /// When the call, or the stream's step, ends.
    pub until: Until,
    /// Whether it is one of the `_nbi` operations: it starts in the order of its stream, and then runs beside it.
    pub nbi: bool,
}

/// What a transfer moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// The issuer's memory to the peer's.
    Put {
        /// The source; from the first to the last element.
        src: Span,
    },
    /// One element that travels with the operation, to the peer's memory.
    Value(u64),
    /// No data: the transfer is its signal.
    Nothing,
    /// The peer's memory to the issuer's.
    Get {
        /// The target; from the first to the last element.
        dst: Span,
    },
    /// One element of the peer's memory to the caller.
    Fetch,
    /// An atomic operation on the peer's word; the old value goes to the caller, if the call waits for it.
    Amo {
        /// What is done.
        op: AmoOp,
        /// The operand's bits.
        value: u64,
        /// The condition's bits, for compare-and-swap.
        cond: u64,
    },
}

/// When the call of a transfer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// At once.
    Issued,
    /// When its source has been read, and may be reused.
    SourceRead,
    /// When it has been delivered: the data, or the old value, is there.
    Delivered,
}

/// How the elements of a transfer lie: element `i` at `i · stride` elements behind the first, on each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of elements.
    pub count: usize,
    /// Size of an element, in bytes.
    pub size: usize,
    /// Distance of elements in the target, in elements.
    pub dst_stride: usize,
    /// Distance of elements in the source, in elements.
    pub src_stride: usize,
}

/// What a wait waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// The variables, contiguous.
    pub vars: Span,
    /// Their type.
    pub dtype: DType,
    /// The comparison.
    pub cmp: Cmp,
    /// What to compare with.
    pub against: Against,
    /// Whether the variable is a signal word: nothing but signals and atomics may change it meanwhile.
    pub signal: bool,
}

/// What an ordering operation does to what its issuer's scope issued before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Delivers it before what the scope issues later to the same PE.
    Fence,
    /// Completes it.
    Quiet,
    /// Reads the sources of the issuer's own non-blocking puts.
    Flush,
}

/// A collective operation of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// The team.
    pub team: TeamId,
    /// What happens.
    pub kind: CollectiveKind,
}

/// The collective operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectiveKind {
    /// The issuer's scope is completed, then everyone meets.
    Barrier,
    /// Everyone meets. Completes no transfer but the issuer's stores through peer pointers.
    Sync,
    /// Data moves from members to members.
    Data(Data),
}

/// A collective that moves data. Spans are the same on all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Which part of each member's source goes to which member.
    pub pattern: Pattern,
    /// The target on each member.
    pub dst: Span,
    /// The source on each member.
    pub src: Span,
    /// Element type.
    pub dtype: DType,
}

/// How the data of a collective moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// The root's source to every member.
    Broadcast {
        /// The root's rank in the team.
        root: u32,
    },
    /// Every member's source to block `i` of every member, for member `i`.
    Fcollect,
    /// Block `j` of member `i` to block `i` of member `j`.
    Alltoall,
    /// All sources, combined, to every member.
    Reduce(ReduceOp),
    /// All sources, combined, block `i` to member `i`.
    ReduceScatter(ReduceOp),
}

/// One access to symmetric memory that an operation makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Whose memory.
    pub whose: Whose,
    /// Which bytes.
    pub span: Span,
    /// What is done to them.
    pub how: How,
}

/// Whose memory an operation touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The issuer's.
    Mine,
    /// That of the PE with this world rank.
    Peer(u32),
    /// That of every member of the collective's team.
    Members,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Reads atomically: a wait or fetch on a signal word.
    AtomicRead,
    /// Updates atomically: signals and atomics.
    AtomicUpdate,
}

/// Receives the description of an operation: see [`Op::describe_to`].
pub trait Listener {
    /// What [`hear`](Listener::hear) returns.
    type Answer;

    /// Takes the description.
    fn hear(self, effect: Effect) -> Self::Answer;
}

/// Returns the description itself.
struct Itself;

impl Listener for Itself {
    type Answer = Effect;

    #[inline(always)] // as `Op::effect`
    fn hear(self, effect: Effect) -> Effect {
        effect
    }
}

impl Op {
    /// What the operation does: the one description that everything else reads.
    #[inline(always)] // on the path of every operation, where most of the description folds away
    pub fn effect(&self) -> Effect {
        self.describe_to(Itself)
    }

    /// Gives the description of the operation to `listener`, and returns its answer. The compiler makes a copy of the
    /// listener's code for each kind of operation, and removes most of the description from it. Use this on hot paths.
    #[inline(always)]
    pub fn describe_to<L: Listener>(&self, listener: L) -> L::Answer {
        match *self {
            Op::Put { dst, src, dtype, pe, nbi, signal } => {
                let until = if nbi { Until::Issued } else { Until::SourceRead };
                let put = Transfer::contiguous(Moves::Put { src }, pe, dst, dtype, until);
                listener.hear(Effect::Transfer(Transfer { signal, nbi, ..put }))
            }
            Op::Get { dst, src, dtype, pe, nbi } => {
                let until = if nbi { Until::Issued } else { Until::Delivered };
                let get = Transfer::contiguous(Moves::Get { dst }, pe, src, dtype, until);
                listener.hear(Effect::Transfer(Transfer { nbi, ..get }))
            }
            Op::P { dst, dtype, value, pe } => {
                let put = Transfer::contiguous(Moves::Value(value), pe, dst, dtype, Until::SourceRead);
                listener.hear(Effect::Transfer(put))
            }
            Op::G { src, dtype, pe } => {
                let fetch = Transfer::contiguous(Moves::Fetch, pe, src, dtype, Until::Delivered);
                listener.hear(Effect::Transfer(fetch))
            }
            Op::IPut { dst, src, dst_stride, src_stride, count, dtype, pe } => {
                let shape = Shape::strided(count, dtype, dst_stride, src_stride);
                let put = Transfer::contiguous(Moves::Put { src }, pe, dst, dtype, Until::SourceRead);
                listener.hear(Effect::Transfer(Transfer { shape, ..put }))
            }
            Op::IGet { dst, src, dst_stride, src_stride, count, dtype, pe } => {
                let shape = Shape::strided(count, dtype, dst_stride, src_stride);
                let get = Transfer::contiguous(Moves::Get { dst }, pe, src, dtype, Until::Delivered);
                listener.hear(Effect::Transfer(Transfer { shape, ..get }))
            }
            Op::Signal { update, pe } => {
                let nothing = Span { len: 0, ..update.word };
                let transfer = Transfer::contiguous(Moves::Nothing, pe, nothing, DType::U64, Until::Issued);
                listener.hear(Effect::Transfer(Transfer { signal: Some(update), ..transfer }))
            }
            Op::SignalFetch { word } => listener.hear(Effect::FetchSignal { word }),
            Op::Wait { vars, dtype, cmp, against, signal } => {
                listener.hear(Effect::Wait(Wait { vars, dtype, cmp, against, signal }))
            }
            Op::Amo { dst, dtype, op, value, cond, fetch, pe } => {
                let until = if fetch { Until::Delivered } else { Until::Issued };
                let amo = Transfer::contiguous(Moves::Amo { op, value, cond }, pe, dst, dtype, until);
                listener.hear(Effect::Transfer(amo))
            }
            Op::Fill { dst, dtype: _ } => listener.hear(Effect::Fill { dst }),
            Op::Fence => listener.hear(Effect::Order(Order::Fence)),
            Op::Quiet => listener.hear(Effect::Order(Order::Quiet)),
            Op::Flush => listener.hear(Effect::Order(Order::Flush)),
            Op::Barrier { team } => {
                listener.hear(Effect::Collective(Collective { team, kind: CollectiveKind::Barrier }))
            }
            Op::Sync { team } => listener.hear(Effect::Collective(Collective { team, kind: CollectiveKind::Sync })),
            Op::Broadcast { team, dst, src, dtype, root } => {
                listener.hear(data(team, Pattern::Broadcast { root }, dst, src, dtype))
            }
            Op::Fcollect { team, dst, src, dtype } => listener.hear(data(team, Pattern::Fcollect, dst, src, dtype)),
            Op::Alltoall { team, dst, src, dtype } => listener.hear(data(team, Pattern::Alltoall, dst, src, dtype)),
            Op::Reduce { team, dst, src, dtype, op } => listener.hear(data(team, Pattern::Reduce(op), dst, src, dtype)),
            Op::ReduceScatter { team, dst, src, dtype, op } => {
                listener.hear(data(team, Pattern::ReduceScatter(op), dst, src, dtype))
            }
        }
    }

    /// The team, for collectives.
    #[inline]
    pub fn team(&self) -> Option<TeamId> {
        match self.effect() {
            Effect::Collective(collective) => Some(collective.team),
            Effect::Transfer(_)
            | Effect::FetchSignal { .. }
            | Effect::Fill { .. }
            | Effect::Wait(_)
            | Effect::Order(_) => None,
        }
    }

    /// Whether an operand lies in the allocation.
    pub fn uses(&self, alloc: AllocId) -> bool {
        self.effect().accesses().any(|access| access.span.alloc == alloc)
    }
}

fn data(team: TeamId, pattern: Pattern, dst: Span, src: Span, dtype: DType) -> Effect {
    Effect::Collective(Collective { team, kind: CollectiveKind::Data(Data { pattern, dst, src, dtype }) })
}

impl Effect {
    /// Everything that the operation touches in symmetric memory.
    ///
    /// ```
    /// use onesided::backend::{AllocId, How, Op, Span, Whose};
    /// let word = Span { alloc: AllocId(2), start: 8, len: 8 };
    /// let op = Op::P { dst: word, dtype: onesided::DType::U64, value: 1, pe: 3 };
    /// let accesses: Vec<_> = op.effect().accesses().collect();
    /// assert_eq!((accesses.len(), accesses[0].whose, accesses[0].how), (1, Whose::Peer(3), How::Write));
    /// ```
    pub fn accesses(&self) -> impl Iterator<Item = Access> + use<> {
        let access = |whose, span, how| Some(Access { whose, span, how });
        let all = match *self {
            Effect::Transfer(Transfer { moves, peer, remote, signal, .. }) => {
                let peer = Whose::Peer(peer);
                let (mine, theirs) = match moves {
                    Moves::Put { src } => (access(Whose::Mine, src, How::Read), access(peer, remote, How::Write)),
                    Moves::Value(_) => (None, access(peer, remote, How::Write)),
                    Moves::Nothing => (None, None),
                    Moves::Get { dst } => (access(Whose::Mine, dst, How::Write), access(peer, remote, How::Read)),
                    Moves::Fetch => (None, access(peer, remote, How::Read)),
                    Moves::Amo { op: AmoOp::Fetch, .. } => (None, access(peer, remote, How::AtomicRead)),
                    Moves::Amo { .. } => (None, access(peer, remote, How::AtomicUpdate)),
                };
                [mine, theirs, signal.and_then(|update| access(peer, update.word, How::AtomicUpdate))]
            }
            Effect::FetchSignal { word } => [access(Whose::Mine, word, How::AtomicRead), None, None],
            Effect::Fill { dst } => [access(Whose::Mine, dst, How::Write), None, None],
            Effect::Wait(Wait { vars, .. }) => [access(Whose::Mine, vars, How::AtomicRead), None, None],
            Effect::Order(Order::Fence | Order::Quiet | Order::Flush) => [None; 3],
            Effect::Collective(Collective { kind, .. }) => match kind {
                CollectiveKind::Barrier | CollectiveKind::Sync => [None; 3],
                CollectiveKind::Data(Data { dst, src, .. }) => {
                    [access(Whose::Members, src, How::Read), access(Whose::Members, dst, How::Write), None]
                }
            },
        };
        all.into_iter().flatten()
    }
}

impl Transfer {
    /// A transfer of everything in `remote`, element behind element, without a signal, that is not one of the `_nbi` operations.
    #[inline(always)] // as `Op::effect`
    fn contiguous(moves: Moves, peer: u32, remote: Span, dtype: DType, until: Until) -> Transfer {
        let shape = Shape::contiguous(remote.len, dtype.size());
        Transfer { moves, peer, remote, dtype, shape, signal: None, until, nbi: false }
    }

    /// Whether it takes its data from the issuer's memory.
    #[inline]
    pub fn reads_source(&self) -> bool {
        matches!(self.moves, Moves::Put { .. }) && self.shape.count > 0
    }

    /// Whether a fence orders it. Gets and fetches are not ordered by a fence.
    #[inline]
    pub fn is_ordered_by_fence(&self) -> bool {
        match self.moves {
            Moves::Put { .. } | Moves::Value(_) | Moves::Nothing | Moves::Amo { .. } => true,
            Moves::Get { .. } | Moves::Fetch => false,
        }
    }
}

impl Shape {
    /// `len` bytes of elements, one behind the other. Their size is a power of two.
    #[inline]
    pub fn contiguous(len: usize, size: usize) -> Shape {
        debug_assert!(size.is_power_of_two(), "no element has {size} bytes");
        // a shift, where a division would show
        Shape { count: len >> size.trailing_zeros(), size, dst_stride: 1, src_stride: 1 }
    }

    /// Any number of bytes that move together.
    #[inline]
    pub fn whole(size: usize) -> Shape {
        Shape { count: 1, size, dst_stride: 1, src_stride: 1 }
    }

    fn strided(count: u32, dtype: DType, dst_stride: u32, src_stride: u32) -> Shape {
        let [count, dst_stride, src_stride] = [count, dst_stride, src_stride].map(|n| n as usize);
        Shape { count, size: dtype.size(), dst_stride, src_stride }
    }

    /// Whether the elements lie one behind the other on both sides.
    #[inline]
    pub fn is_contiguous(&self) -> bool {
        self.dst_stride == 1 && self.src_stride == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::SignalOp;

    const SPAN: Span = Span { alloc: AllocId(1), start: 0, len: 32 };

    #[test]
    fn a_put_signal_reads_its_source_and_writes_data_and_signal() {
        let update = SignalUpdate { word: Span { alloc: AllocId(2), start: 8, len: 8 }, value: 1, op: SignalOp::Add };
        let op = Op::Put { dst: SPAN, src: SPAN, dtype: DType::F32, pe: 3, nbi: false, signal: Some(update) };
        let accesses: Vec<_> = op.effect().accesses().map(|access| (access.whose, access.how)).collect();
        let peer = Whose::Peer(3);
        assert_eq!(accesses, [(Whose::Mine, How::Read), (peer, How::Write), (peer, How::AtomicUpdate)]);
        assert!(op.uses(AllocId(1)) && op.uses(AllocId(2)) && !op.uses(AllocId(3)));
        let Effect::Transfer(transfer) = op.effect() else { panic!("a put is a transfer") };
        assert_eq!((transfer.shape.count, transfer.until, transfer.nbi), (8, Until::SourceRead, false));
    }

    #[test]
    fn collectives_name_their_team_and_other_operations_none() {
        let team = TeamId(4);
        assert_eq!(Op::Sync { team }.team(), Some(team));
        assert_eq!(Op::Alltoall { team, dst: SPAN, src: SPAN, dtype: DType::U8 }.team(), Some(team));
        assert_eq!([Op::Quiet, Op::Fence, Op::Flush].map(|op| op.team()), [None; 3]);
    }

    #[test]
    fn elements_are_counted_by_their_size() {
        for size in [1, 2, 4, 8] {
            assert_eq!(Shape::contiguous(64, size).count, 64 / size);
        }
    }
}
