//! Accesses of kernels in a trace: all strong ones, but those that find again what they have found, and of each line the first few plain ones of
//! a block. So a picture shows flags that kernels set and load, and where a race is; and a trace stays small where kernels compute.

use std::collections::BTreeMap;

use onesided::backend::Span;
use onesided::{At, DType};
use onesided_ptx::Access;

use super::super::Machine;
use super::super::ids::{AgentId, BlockId, PeId};
use super::turn::name_of;
use crate::trace::{EventKind, Moved};

/// So many plain accesses of a line are events, for each block.
const PLAIN: u32 = 8;

/// So many strong accesses of a line are events, for each thread.
const STRONG: u32 = 1000;

/// What was noted so far.
#[derive(Debug, Default)]
pub(in crate::machine) struct Accesses {
    /// Of each line of a block: how many plain ones.
    plain: BTreeMap<(AgentId, At), u32>,
    /// Of each line of a thread: its last strong one, and how many there were.
    strong: BTreeMap<(AgentId, At), (Option<Last>, u32)>,
}

/// What an access has found, and what it has left.
pub(super) type Values = (Option<u64>, Option<u64>);

/// A word, what an access of it has found and left, and whether that was an old value.
type Last = ((PeId, Span), Values, bool);

impl Machine {
    /// Whether the run is recorded.
    #[inline]
    pub(super) fn is_recorded(&self) -> bool {
        self.record.is_some()
    }

    /// A thread accesses a word, where the run is recorded. `older`: a load finds an old value. Returns the event, if it is one, and of what type its value is.
    #[cold]
    pub(super) fn record_access(
        &mut self,
        id: BlockId,
        access: &Access,
        at: At,
        word: (PeId, Span),
        (values, older): (Values, bool),
    ) -> Option<(usize, DType)> {
        let (pe, span) = word;
        if self.kernels.workspaces.has(pe, span.alloc) {
            return None;
        }
        let (block, strong) = (self.kernels.blocks[id].agent, access.order.is_strong());
        let record = self.record.as_mut()?;
        if !strong {
            let times = record.accesses.plain.entry((block, at)).or_default();
            *times += 1;
            if *times > PLAIN {
                return None;
            }
        }
        let thread = self.agent_of_thread(id, access.thread as usize);
        let record = self.record.as_mut()?;
        if strong {
            let (last, times) = record.accesses.strong.entry((thread, at)).or_default();
            *times += 1;
            let this = (word, values, older);
            if last.replace(this) == Some(this) || *times > STRONG {
                return None;
            }
        }
        let dtype = match span.len {
            1 => DType::U8,
            2 => DType::U16,
            4 => DType::U32,
            _ => DType::U64,
        };
        let (call, writes) = (name_of(access), values.1.is_some());
        let kind = EventKind::Access { call, of: pe.0, span, writes, strong, older, by: None };
        let number = self.record.as_ref()?.trace.len();
        let event = self.note_by(thread, kind, at);
        event.implied = true;
        event.moved = match values {
            (Some(found), Some(left)) => Some(Moved::update(dtype, found, left)),
            (found, left) => found.or(left).map(|value| Moved::one(dtype, value)),
        };
        Some((number, dtype))
    }
}
