//! Transfers without a machine: what may happen next, after fences, reads and landings.

use onesided::backend::{AllocId, AmoOp};

use super::*;

/// Transfers of one scope, from PE 0, launched and stepped by hand.
struct Bench {
    flight: Flight,
    launched: u64,
    in_order: bool,
}

const SCOPE: ScopeId = ScopeId(0);

impl Bench {
    fn new() -> Bench {
        let mut flight = Flight::default();
        flight.reset(2);
        Bench { flight, launched: 0, in_order: false }
    }

    /// Drafts a transfer of `count` words towards PE `target`.
    fn draft(&mut self, kind: Kind, data: Data, target: u32, count: usize) -> TransferId {
        let span = Span { alloc: AllocId(0), start: 0, len: 8 * count };
        let (dst, src) = ((PeId(target), span), (PeId(0), span));
        let shape = Shape::contiguous(span.len, 8);
        let key = self.launched;
        self.launched += 1;
        let id = self.flight.draft(Draft { key, kind, dst, src, shape, call: "put", at: At::caller() });
        self.flight.get_mut(id).data = data;
        id
    }

    fn launch(&mut self, kind: Kind, data: Data, target: u32, count: usize) -> TransferId {
        let id = self.draft(kind, data, target, count);
        self.flight.launch(id, Some(SCOPE), 4, self.in_order);
        id
    }

    fn put(&mut self, target: u32) -> TransferId {
        self.launch(Kind::Put, Data::Word(1), target, 1)
    }

    fn put_nbi(&mut self, target: u32, count: usize) -> TransferId {
        let id = self.draft(Kind::Put, Data::Source, target, count);
        self.flight.get_mut(id).nbi = true;
        self.flight.launch(id, Some(SCOPE), 4, self.in_order);
        id
    }

    /// A store through a peer pointer, of words from `start` on.
    fn store(&mut self, target: u32, start: usize, count: usize) -> TransferId {
        let id = self.draft(Kind::Store, Data::Bytes(vec![self.launched as u8; 8 * count]), target, count);
        self.flight.get_mut(id).dst.start = 8 * start;
        self.flight.launch(id, Some(SCOPE), 4, self.in_order);
        id
    }

    /// What may happen next, in order.
    fn units(&self) -> Vec<(TransferId, u16, UnitStep)> {
        let mut units: Vec<_> = self.flight.units.iter().map(|unit| (unit.transfer, unit.piece, unit.step)).collect();
        units.sort_by_key(|&(id, piece, step)| (id, step as u8, piece));
        units
    }

    /// The transfers of which something may be delivered.
    fn deliverable(&self) -> Vec<TransferId> {
        let units = self.units().into_iter().filter(|unit| unit.2 != UnitStep::Read);
        let mut ids: Vec<TransferId> = units.map(|unit| unit.0).collect();
        ids.dedup();
        ids
    }

    fn take(&mut self, transfer: TransferId, piece: u16, step: UnitStep) {
        let at = self.flight.units.iter().position(|unit| *unit == Unit { transfer, piece, step });
        self.flight.units.swap_remove(at.expect("it may happen"));
    }

    /// Reads the source of a piece; whether that was the last.
    fn read(&mut self, id: TransferId, piece: u16) -> bool {
        self.take(id, piece, UnitStep::Read);
        self.flight.get_mut(id).data = Data::Bytes(Vec::new());
        self.flight.note_read(id, piece)
    }

    /// Delivers a transfer of one piece, and so ends it.
    fn land(&mut self, id: TransferId) {
        self.take(id, 0, UnitStep::Deliver);
        self.flight.land(id);
    }

    fn fence(&mut self) {
        self.flight.fence(SCOPE, None, true);
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
    assert_eq!(bench.units(), [(first, 0, UnitStep::Deliver), (late, 0, UnitStep::Read), (late, 1, UnitStep::Read)]);
    assert!(!bench.read(late, 1));
    assert_eq!(bench.deliverable(), [first], "read, but held");
    bench.land(first);
    assert_eq!(bench.units(), [(late, 0, UnitStep::Read), (late, 1, UnitStep::Deliver)]);
    assert!(bench.read(late, 0), "the last piece");
    assert_eq!(bench.units(), [(late, 0, UnitStep::Deliver), (late, 1, UnitStep::Deliver)]);
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
fn in_order_non_blocking_operations_are_in_no_order() {
    let mut bench = Bench { in_order: true, ..Bench::new() };
    let (a, late, b) = (bench.put(1), bench.put_nbi(1, 1), bench.put(1));
    bench.read(late, 0);
    assert_eq!(bench.deliverable(), [a, late]);
    bench.land(a);
    assert_eq!(bench.deliverable(), [late, b]);
}

#[test]
fn stores_to_one_place_are_delivered_in_program_order() {
    let mut bench = Bench::new();
    let (first, beside, second) = (bench.store(1, 0, 2), bench.store(1, 2, 1), bench.store(1, 1, 1));
    assert_eq!(bench.deliverable(), [first, beside], "the third overlaps the first");
    for piece in [1, 0] {
        bench.take(first, piece, UnitStep::Deliver);
    }
    bench.flight.land(first);
    assert_eq!(bench.deliverable(), [beside, second]);
}

#[test]
fn an_agent_sees_its_own_stores_until_they_are_delivered() {
    let mut bench = Bench::new();
    bench.launched = 7;
    let store = bench.store(1, 1, 2);
    let words = |bench: &Bench, pe: u32, start: usize, count: usize| {
        let mut bytes = vec![0; 8 * count];
        let span = Span { alloc: AllocId(0), start: 8 * start, len: 8 * count };
        bench.flight.lay_stores_over(SCOPE, PeId(pe), span, &mut bytes);
        bytes.chunks(8).map(|word| word[0]).collect::<Vec<_>>()
    };
    assert_eq!(words(&bench, 1, 0, 4), [0, 7, 7, 0]);
    assert_eq!((words(&bench, 1, 2, 1), words(&bench, 0, 0, 4)), (vec![7], vec![0; 4]));
    bench.flight.get_mut(store).delivered = 1;
    assert_eq!(words(&bench, 1, 0, 4), [0, 0, 7, 0], "what is delivered is read from there");
    let over = bench.store(1, 2, 1);
    assert_eq!(bench.flight.get(over).blockers, 1);
    assert_eq!(words(&bench, 1, 0, 4), [0, 0, 8, 0], "the later store lies over the earlier one");
}

#[test]
fn parts_of_collectives_have_no_scope() {
    let mut bench = Bench::new();
    let put = bench.put(1);
    bench.fence();
    let part = bench.draft(Kind::Put, Data::Word(1), 1, 1);
    bench.flight.launch(part, None, 4, false);
    assert_eq!(bench.deliverable(), [put, part]);
    assert_eq!(bench.flight.live(SCOPE).count(), 1);
}

#[test]
fn pieces_cover_all_elements_once() {
    let mut bench = Bench::new();
    for count in 0..20 {
        for pieces in 1..=count.max(1) {
            let id = bench.draft(Kind::Get, Data::Source, 1, count);
            bench.flight.launch(id, None, pieces, false);
            let transfer = bench.flight.get(id);
            let covered: Vec<usize> = (0..transfer.pieces).flat_map(|piece| transfer.elements(piece)).collect();
            assert_eq!(covered, Vec::from_iter(0..count), "{count} in {pieces}");
        }
    }
}

#[test]
fn a_put_of_nothing_is_only_its_signal() {
    let mut bench = Bench::new();
    let signal = bench.launch(Kind::Put, Data::Source, 1, 0);
    assert_eq!(bench.units(), [(signal, 0, UnitStep::Signal)]);
    bench.fence();
    let held = bench.put(1);
    bench.take(signal, 0, UnitStep::Signal);
    bench.flight.land(signal);
    assert_eq!(bench.deliverable(), [held]);
}

#[test]
fn a_reset_forgets_everything() {
    let mut bench = Bench::new();
    bench.put(1);
    bench.fence();
    bench.put(1);
    bench.flight.for_each_live(SCOPE, |transfer| transfer.claimed.by = Some(ClaimId(3)));
    bench.flight.reset(2);
    assert!(bench.units().is_empty() && bench.flight.is_quiet(SCOPE));
    let fresh = bench.put(1);
    assert_eq!((bench.deliverable(), bench.flight.get(fresh).claimed.by), (vec![fresh], None));
}
