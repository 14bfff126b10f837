//! What was in flight when a run ended: often the cause of the finding.

use onesided::At;
use onesided::backend::Span;

use super::Machine;
use super::ids::{Id as _, PeId};
use super::relaxed::ISSUED;
use super::transfer::{Kind, Transfer};
use crate::verdict::Undelivered;

/// Delivered transfers that are remembered.
const REMEMBERED: usize = 64;

/// The transfers delivered last: what may have overtaken those in flight. Bounded, because every run keeps it.
#[derive(Debug, Default)]
pub(super) struct Landed {
    last: Vec<Delivered>,
    /// How many there have been.
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct Delivered {
    key: u64,
    to: PeId,
    signals: bool,
    call: &'static str,
    at: At,
}

impl Landed {
    pub(super) fn clear(&mut self) {
        self.last.clear();
        self.count = 0;
    }

    /// Remembers a transfer that is about to leave the flight.
    #[inline]
    pub(super) fn note(&mut self, transfer: &Transfer) {
        let Transfer { key, dst_pe: to, signal, call, at, .. } = *transfer;
        let delivered = Delivered { key, to, signals: signal.is_some(), call, at };
        match self.last.get_mut(self.count % REMEMBERED) {
            Some(oldest) => *oldest = delivered,
            None => self.last.push(delivered),
        }
        self.count += 1;
    }

    /// What the issuer of a transfer issued later, to the same PE, and was delivered before: a signal if there is one,
    /// because that is what somebody waits for; of several the first.
    fn overtaker(&self, transfer: &Transfer) -> Option<&Delivered> {
        let Transfer { key, dst_pe, part, .. } = *transfer;
        let overtakes = |other: &&Delivered| {
            other.to == dst_pe && other.key >> ISSUED == key >> ISSUED && other.key > key && part.is_none()
        };
        self.last.iter().filter(overtakes).min_by_key(|other| (!other.signals, other.key))
    }
}

impl Machine {
    /// The transfers in flight to `pe`; if there are none, or no PE is given, all of them.
    pub(crate) fn undelivered(&self, pe: Option<usize>) -> Vec<Undelivered> {
        // the moment in which a reduction has its sources, or others see a delivery, is nothing that a program sent
        let sent = |transfer: &&Transfer| !matches!(transfer.kind, Kind::Combine { .. } | Kind::Spread);
        let in_flight = self.flight.in_flight();
        let all: Vec<Undelivered> =
            in_flight.into_iter().filter(sent).map(|transfer| self.undelivered_transfer(transfer)).collect();
        if all.iter().any(|transfer| Some(transfer.to) == pe) {
            return all.into_iter().filter(|transfer| Some(transfer.to) == pe).collect();
        }
        all
    }

    fn undelivered_transfer(&self, transfer: &Transfer) -> Undelivered {
        let Transfer { kind, dst_pe, dst, src_pe, src, shape, undelivered, pieces, call, at, .. } = *transfer;
        let (to, span, bytes): (PeId, Span, usize) = match (kind, transfer.signal) {
            (Kind::Fetch | Kind::Load { .. }, _) => (src_pe, src, src.len),
            (_, Some(update)) if undelivered == 0 => (dst_pe, update.word, update.word.len),
            _ => (dst_pe, dst, shape.count * shape.size),
        };
        Undelivered {
            pe: transfer.issuing_pe().index(),
            call,
            at,
            to: to.index(),
            span,
            bytes,
            missing: undelivered,
            pieces,
            overtaken_by: self.landed.overtaker(transfer).map(|other| (other.call, other.at)),
        }
    }
}
