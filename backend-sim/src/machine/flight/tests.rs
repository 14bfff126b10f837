//! Transfers without a machine: what may happen next, after fences, reads and landings.

use onesided::backend::AllocId;

use super::*;

/// Transfers of one scope, from PE 0, launched and stepped by hand.
struct Bench {
    flight: Flight,
    launched: u64,
    in_order: bool,
}

const SCOPE: u32 = 0;

impl Bench {
    fn new() -> Bench {
        let mut flight = Flight::default();
        flight.reset(2);
        Bench { flight, launched: 0, in_order: false }
    }

    /// Launches a transfer of `count` words towards PE `target`; returns its slot.
    fn launch(&mut self, kind: Kind, data: Data, target: u32, count: usize) -> u32 {
        let span = Span { alloc: AllocId(0), start: 0, len: 8 * count };
        let shape = Shape::contiguous(span.len, 8);
        let key = self.launched;
        self.launched += 1;
        let slot = self.flight.draft(key, kind, (target, span), (0, span), shape, ("put", At::caller()));
        self.flight.get_mut(slot).data = data;
        self.flight.launch(slot, SCOPE, 4, self.in_order);
        slot
    }

    fn put(&mut self, target: u32) -> u32 {
        self.launch(Kind::Put, Data::Word(1), target, 1)
    }

    fn put_nbi(&mut self, target: u32, count: usize) -> u32 {
        self.launch(Kind::Put, Data::Source, target, count)
    }

    /// What may happen next, in order.
    fn units(&self) -> Vec<(u32, u16, Step)> {
        let mut units: Vec<_> = self.flight.units.iter().map(|unit| (unit.slot, unit.piece, unit.step)).collect();
        units.sort_by_key(|&(slot, piece, step)| (slot, step as u8, piece));
        units
    }

    /// The transfers of which something may be delivered.
    fn deliverable(&self) -> Vec<u32> {
        let mut slots: Vec<u32> =
            (self.units().into_iter()).filter(|unit| unit.2 != Step::Read).map(|unit| unit.0).collect();
        slots.dedup();
        slots
    }

    fn take(&mut self, slot: u32, piece: u16, step: Step) {
        let at = self.flight.units.iter().position(|unit| *unit == Unit { slot, piece, step });
        self.flight.units.swap_remove(at.expect("it may happen"));
    }

    /// Reads the source of a piece; whether that was the last.
    fn read(&mut self, slot: u32, piece: u16) -> bool {
        self.take(slot, piece, Step::Read);
        self.flight.get_mut(slot).data = Data::Bytes(Vec::new());
        self.flight.note_read(slot, piece)
    }

    /// Delivers a transfer of one piece, and so ends it.
    fn land(&mut self, slot: u32) {
        self.take(slot, 0, Step::Deliver);
        self.flight.land(slot);
    }

    fn fence(&mut self) {
        self.flight.fence(SCOPE);
    }
}

#[test]
fn without_a_fence_everything_is_deliverable_at_once() {
    let mut bench = Bench::new();
    let slots = [1, 1, 2].map(|target| bench.put(target));
    assert_eq!(bench.deliverable(), slots);
}

#[test]
fn a_fence_holds_later_transfers_to_the_same_pe_until_all_earlier_ones_have_landed() {
    let mut bench = Bench::new();
    let (a, b) = (bench.put(1), bench.put(1));
    bench.fence();
    let (held, elsewhere) = (bench.put(1), bench.put(2));
    assert_eq!(bench.deliverable(), [a, b, elsewhere]);
    bench.land(b);
    assert_eq!(bench.deliverable(), [a, elsewhere]);
    bench.land(a);
    assert_eq!(bench.deliverable(), [held, elsewhere]);
}

#[test]
fn fences_make_a_chain() {
    let mut bench = Bench::new();
    let slots = [(); 3].map(|()| {
        let slot = bench.put(1);
        bench.fence();
        bench.fence(); // twice is once
        slot
    });
    for slot in slots {
        assert_eq!(bench.deliverable(), [slot]);
        bench.land(slot);
    }
    assert!(bench.units().is_empty() && bench.flight.is_quiet(SCOPE));
}

#[test]
fn a_fence_without_anything_in_flight_holds_nothing() {
    let mut bench = Bench::new();
    bench.fence();
    let first = bench.put(1);
    bench.land(first);
    bench.fence();
    let (second, third) = (bench.put(1), bench.put(1));
    assert_eq!(bench.deliverable().len(), 2);
    // a slot is used again, and nothing of its last transfer remains
    assert!(second == first || third == first);
    bench.fence();
    let held = bench.put(1);
    bench.land(second);
    bench.land(third);
    assert_eq!(bench.deliverable(), [held]);
}

#[test]
fn gets_are_not_held_and_hold_nothing() {
    let mut bench = Bench::new();
    let get = bench.launch(Kind::Get, Data::Source, 1, 1);
    bench.fence();
    let put = bench.put(1);
    assert_eq!(bench.deliverable(), [get, put]);
    bench.fence();
    let fetch = bench.launch(Kind::Fetch, Data::Source, 1, 1);
    let add = Kind::Amo { op: AmoOp::Add, value: 1, cond: 0 };
    let atomic = bench.launch(add, Data::Source, 1, 1);
    assert_eq!(bench.deliverable(), [get, put, fetch], "an atomic is held");
    bench.land(put);
    assert_eq!(bench.deliverable(), [get, fetch, atomic]);
}

#[test]
fn the_source_of_a_held_transfer_may_be_read_early() {
    let mut bench = Bench::new();
    let first = bench.put(1);
    bench.fence();
    let late = bench.put_nbi(1, 2);
    assert_eq!(bench.units(), [(first, 0, Step::Deliver), (late, 0, Step::Read), (late, 1, Step::Read)]);
    assert!(!bench.read(late, 1));
    assert_eq!(bench.deliverable(), [first], "read, but held");
    bench.land(first);
    assert_eq!(bench.units(), [(late, 0, Step::Read), (late, 1, Step::Deliver)]);
    assert!(bench.read(late, 0), "the last piece");
    assert_eq!(bench.units(), [(late, 0, Step::Deliver), (late, 1, Step::Deliver)]);
}

#[test]
fn a_flush_waits_for_sources_and_a_quiet_for_everything() {
    let mut bench = Bench::new();
    let (put, late) = (bench.put(1), bench.put_nbi(2, 1));
    assert!(!bench.flight.is_flushed(SCOPE));
    bench.read(late, 0);
    assert!(bench.flight.is_flushed(SCOPE) && !bench.flight.is_quiet(SCOPE));
    bench.land(late);
    bench.land(put);
    assert!(bench.flight.is_quiet(SCOPE));
}

#[test]
fn what_one_quiet_has_claimed_no_other_claims() {
    let mut bench = Bench::new();
    let first = bench.put(1);
    bench.launch(Kind::Get, Data::Source, 0, 1);
    assert_eq!(bench.flight.claim(SCOPE, 7), 2);
    assert_eq!(bench.flight.claim(SCOPE, 8), 0);
    let later = bench.put(1);
    assert_eq!(bench.flight.claim(SCOPE, 8), 1);
    assert_eq!([first, later].map(|slot| bench.flight.get(slot).claim), [7, 8]);
    // a landed transfer's claim does not pass to the next in its slot
    bench.land(first);
    let again = bench.put(1);
    assert_eq!((again, bench.flight.get(again).claim), (first, NONE));
}

#[test]
fn in_order_to_the_same_pe_each_waits_for_the_one_before() {
    let mut bench = Bench { in_order: true, ..Bench::new() };
    let (a, b, elsewhere) = (bench.put(1), bench.put(1), bench.put(2));
    assert_eq!(bench.deliverable(), [a, elsewhere]);
    bench.land(a);
    assert_eq!(bench.deliverable(), [b, elsewhere]);
}

#[test]
fn parts_of_collectives_have_no_scope() {
    let mut bench = Bench::new();
    let put = bench.put(1);
    bench.fence();
    let span = Span { alloc: AllocId(0), start: 0, len: 8 };
    let at = At::caller();
    let part = bench.flight.draft(9, Kind::Put, (1, span), (0, span), Shape::contiguous(8, 8), ("put", at));
    bench.flight.get_mut(part).data = Data::Word(1);
    bench.flight.launch(part, NONE, 4, false);
    assert_eq!(bench.deliverable(), [put, part]);
    assert_eq!(bench.flight.live(SCOPE).count(), 1);
    assert_eq!(bench.flight.claim(SCOPE, 1), 1);
}

#[test]
fn pieces_cover_all_elements_once() {
    for count in 0..20 {
        for pieces in 1..=count.max(1) {
            let shape = Shape::contiguous(count * 4, 4);
            let covered = (0..pieces as u16).flat_map(|piece| shape.elements(piece, pieces as u16));
            assert_eq!(covered.collect::<Vec<_>>(), Vec::from_iter(0..count), "{count} in {pieces}");
        }
    }
}

#[test]
fn a_put_of_nothing_is_only_its_signal() {
    let mut bench = Bench::new();
    let signal = bench.launch(Kind::Put, Data::Source, 1, 0);
    assert_eq!(bench.units(), [(signal, 0, Step::Signal)]);
    bench.fence();
    let held = bench.put(1);
    bench.take(signal, 0, Step::Signal);
    bench.flight.land(signal);
    assert_eq!(bench.deliverable(), [held]);
}

#[test]
fn a_reset_forgets_everything() {
    let mut bench = Bench::new();
    bench.put(1);
    bench.fence();
    bench.put(1);
    bench.flight.claim(SCOPE, 3);
    bench.flight.reset(2);
    assert!(bench.units().is_empty() && bench.flight.is_quiet(SCOPE));
    let fresh = bench.put(1);
    assert_eq!((bench.deliverable(), bench.flight.get(fresh).claim), (vec![fresh], NONE));
}
