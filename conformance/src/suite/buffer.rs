//! Memory: allocation, local access, slices, registration of external memory, loads and stores to peers, multicast.

use onesided::{Backend, Pe, ReduceOp, Result};

use super::rma::{Verbs, every_type, free_all, kind, seen_by};
use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        every_element_type: 1,
        zeroed_after_reuse: 1,
        zeroed_on_every_pe: 2,
        aligned: 1,
        alignment_errors: 2,
        length_0: 2,
        heap_exhausted: 2,
        freed_in_any_order: 2,
        free_completes_host_puts: 2,
        allocations_are_apart: 1,
        arena: 2,
        slices: 1,
        empty_slices: 1,
        as_bytes: 1,
        read_into: 1,
        length_errors: 1,
        external_read_write: 1 => |case| case.needs_registration(),
        registered_local_put_source: 2 => |case| case.needs_registration(),
        registered_local_get_target: 2 => |case| case.needs_registration(),
        registering_orders_no_data: 2 racy => |case| case.needs_symmetric_registration(),
        registered_symmetric_keeps_content: 2 => |case| case.needs_symmetric_registration(),
        unregistered_symmetric_keeps_content: 2 => |case| case.needs_symmetric_registration(),
        peer_store_then_barrier: 2 => |case| case.needs_peer_access(),
        peer_store_then_quiet: 2 => |case| case.needs_peer_access(),
        peer_store_then_sync: 2 => |case| case.needs_peer_access(),
        peer_store_then_load: 2 => |case| case.needs_peer_access(),
        peer_store_then_get: 2 racy => |case| case.needs_peer_access(),
        two_peer_stores: 2 => |case| case.needs_peer_access(),
        peer_load: 2 => |case| case.needs_peer_access(),
        peer_of_another_node: 2 => |case| case.nodes(2),
        peer_errors: 1,
        multicast_store: 2 => |case| case.needs_multicast(),
        multicast_reduce: 2 => |case| case.needs_multicast(),
    ]
}

/// The memory of an arena works like any other. It is freed when the body ends: finalize finds no leak.
fn arena<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let mut saw = Vec::new();
    for round in 0..2 {
        let number = pe.arena(|arena| {
            let (dst, src) = (arena.alloc_zeroed::<u32>(2)?, arena.alloc::<u32>(1)?);
            pe.write(src, &[10 * round + pe.my_pe() as u32])?;
            pe.host().put(dst.at(1), src, 1 - pe.my_pe())?;
            pe.host().barrier_all()?;
            pe.read_one(dst.at(1))
        })?;
        saw.push(number);
    }
    Ok(seen("received", saw))
}

/// Memory of every element type returns what was written. The case records each type that did.
fn every_element_type<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    every_type(pe, Verbs::WriteRead)
}

/// Zeroed memory is zero even where something else lay before.
fn zeroed_after_reuse<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let old = pe.alloc::<u32>(2)?;
    pe.write(&old, &[7, 7])?;
    pe.free(old)?;
    let new = pe.alloc_zeroed::<u32>(2)?;
    let saw = seen("new", pe.read(&new)?);
    pe.free(new)?;
    Ok(saw)
}

/// When a zeroed allocation returns, it is zero on the *other* PEs too.
fn zeroed_on_every_pe<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let saw = if pe.my_pe() == 0 { seen("x", pe.host().g(&x, 1)?) } else { Seen::nothing() };
    pe.free(x)?;
    Ok(saw)
}

/// Aligned allocations of several alignments live side by side and work like others. (Programs see no addresses, so the
/// alignment itself is not recorded.)
fn aligned<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let bufs = [pe.alloc_aligned::<u32>(1, 8)?, pe.alloc_aligned::<u32>(1, 64)?, pe.alloc_aligned::<u32>(1, 4096)?];
    for (buf, value) in bufs.iter().zip(1..) {
        pe.write(buf, &[value])?;
    }
    let mut values = Vec::new();
    for buf in bufs {
        values.extend(pe.read(&buf)?);
        pe.free(buf)?;
    }
    Ok(seen("values", values))
}

/// An alignment is a power of two and a multiple of 8; anything else is refused on every PE.
fn alignment_errors<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(seen("refused", [0, 4, 12, 24].map(|align| kind(pe.alloc_aligned::<u32>(1, align)))))
}

/// Allocations of no element are refused: the library would skip its barrier, and PEs could diverge.
fn length_0<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    Ok(seen("alloc", kind(pe.alloc::<u32>(0)))
        .and("zeroed", kind(pe.alloc_zeroed::<u32>(0)))
        .and("aligned", kind(pe.alloc_aligned::<u32>(0, 64))))
}

/// An allocation that no heap can hold is the same error on every PE, and so is a size that overflows. Later allocations
/// that fit succeed.
fn heap_exhausted<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let saw = seen("a_tebibyte", kind(pe.alloc::<u8>(1 << 40))).and("overflow", kind(pe.alloc::<u64>(usize::MAX)));
    let small = pe.alloc_zeroed::<u8>(1)?;
    let saw = saw.and("small", pe.read(&small)?);
    pe.free(small)?;
    Ok(saw)
}

/// Freeing in another order than allocating, and allocating between, leaves the other allocations alone.
fn freed_in_any_order<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (first, second) = (pe.alloc_zeroed::<u32>(4)?, pe.alloc_zeroed::<u32>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&second, 2, 1)?;
    }
    pe.free(first)?;
    let third = pe.alloc_zeroed::<u32>(2)?;
    let saw = if pe.my_pe() == 1 {
        seen("second", pe.read(&second)?).and("third", pe.read(&third)?)
    } else {
        Seen::nothing()
    };
    free_all(pe, [second, third])?;
    Ok(saw)
}

/// A free begins with a barrier: a put that was in flight to the freed memory does not hit what is allocated there
/// next.
fn free_completes_host_puts<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let old = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        pe.host().p(&old, 7, 1)?;
    }
    pe.free(old)?;
    let x = pe.alloc_zeroed::<u32>(1)?;
    let saw = seen_by(pe, 1, &x)?;
    pe.free(x)?;
    Ok(saw)
}

/// Writing one allocation leaves its neighbours alone.
fn allocations_are_apart<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (a, b, c) = (pe.alloc_zeroed::<u8>(3)?, pe.alloc_zeroed::<u8>(3)?, pe.alloc_zeroed::<u8>(3)?);
    pe.write(&b, &[1, 2, 3])?;
    let saw = seen("a", pe.read(&a)?).and("b", pe.read(&b)?).and("c", pe.read(&c)?);
    free_all(pe, [a, b, c])?;
    Ok(saw)
}

/// Slices, slices of slices and single elements name the elements that they should.
fn slices<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let buf = pe.alloc_zeroed::<u32>(6)?;
    pe.write(buf.slice(1..4), &[1, 2, 3])?;
    pe.write(buf.slice(2..).slice(1..=1), &[9])?;
    pe.write(buf.at(5), &[5])?;
    let saw = seen("all", pe.read(&buf)?).and("inner", pe.read(buf.slice(..4).slice(1..))?);
    pe.free(buf)?;
    Ok(saw)
}

/// A slice of no element can be read, written and put, and nothing happens.
fn empty_slices<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let buf = pe.alloc_zeroed::<u32>(2)?;
    pe.write(buf.slice(1..1), &[])?;
    pe.host().put(buf.slice(2..), buf.slice(..0), 0)?;
    pe.host().quiet()?;
    let saw = seen("empty", pe.read(buf.slice(2..))?).and("all", pe.read(&buf)?);
    pe.free(buf)?;
    Ok(saw)
}

/// Elements as bytes: little-endian, written by one type and read by the other, and moved as bytes.
fn as_bytes<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (words, copy) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(1)?);
    pe.write(words.at(0), &[0x0403_0201])?;
    pe.write(words.at(1).as_bytes().slice(2..), &[5, 6])?;
    pe.host().get(copy.at(0).as_bytes(), words.at(1).as_bytes(), 0)?;
    let saw = seen("bytes", pe.read(words.slice(..).as_bytes())?).and("copy_is", pe.read(&copy)? == [0x0605_0000]);
    free_all(pe, [words, copy])?;
    Ok(saw)
}

/// `read_into` fills the whole slice that it is given.
fn read_into<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let buf = pe.alloc_zeroed::<i16>(2)?;
    pe.write(buf.at(1), &[-1])?;
    let mut values = [3; 2];
    pe.read_into(&buf, &mut values)?;
    pe.free(buf)?;
    Ok(seen("values", values))
}

/// Local access with a length that is not the memory's is refused, and changes nothing.
fn length_errors<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let buf = pe.alloc_zeroed::<u32>(2)?;
    let mut three = [7; 3];
    let saw = seen("write_short", kind(pe.write(&buf, &[1])))
        .and("write_long", kind(pe.write(&buf, &[1, 2, 3])))
        .and("host_write_long", kind(pe.host().write(&buf, &[1, 2, 3])))
        .and("read_into_long", kind(pe.read_into(&buf, &mut three)))
        .and("buf", pe.read(&buf)?)
        .and("three", three);
    pe.free(buf)?;
    Ok(saw)
}

/// External memory starts zeroed, and is read and written like any other. An allocation of no element is refused.
fn external_read_write<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let external = pe.alloc_external::<u32>(2)?;
    let saw = seen("fresh", pe.read(&external)?);
    pe.write(&external, &[1, 2])?;
    let saw = saw.and("written", pe.read(&external)?).and("length_0", kind(pe.alloc_external::<u32>(0)));
    pe.free_external(external)?;
    Ok(saw)
}

/// Registered local memory is the source of a put.
fn registered_local_put_source<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let local = pe.register_local(pe.alloc_external::<u32>(1)?)?;
    if pe.my_pe() == 0 {
        pe.write(&local, &[1])?;
        pe.host().put(&x, &local, 1)?;
    }
    pe.host().barrier_all()?;
    let saw = seen_by(pe, 1, &x)?;
    pe.free_external(pe.unregister_local(local)?)?;
    pe.free(x)?;
    Ok(saw)
}

/// Registered local memory is the target of a get, and holds the data after its registration ended.
fn registered_local_get_target<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let local = pe.register_local(pe.alloc_external::<u32>(1)?)?;
    if pe.my_pe() == 1 {
        pe.write(&x, &[1])?;
    }
    pe.host().barrier_all()?;
    if pe.my_pe() == 0 {
        pe.host().get(&local, &x, 1)?;
    }
    let external = pe.unregister_local(local)?;
    let saw = if pe.my_pe() == 0 { seen("got", pe.read(&external)?) } else { Seen::nothing() };
    pe.free_external(external)?;
    pe.free(x)?;
    Ok(saw)
}

/// Registration is collective and orders no data: PE 1 may return from it before PE 0, which puts first, calls it.
fn registering_orders_no_data<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (x, external) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_external::<u32>(1)?);
    if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
        pe.host().quiet()?;
    }
    let shared = pe.register_symmetric(external)?;
    let saw = seen_by(pe, 1, &x)?;
    pe.free_external(pe.unregister_symmetric(shared)?)?;
    pe.free(x)?;
    Ok(saw)
}

/// External memory joins the heap with its content: PE 0 gets what PE 1 wrote before the registration.
fn registered_symmetric_keeps_content<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let external = pe.alloc_external::<u32>(1)?;
    if pe.my_pe() == 1 {
        pe.write(&external, &[1])?;
    }
    let shared = pe.register_symmetric(external)?;
    let saw = if pe.my_pe() == 0 { seen("x", pe.host().g(&shared, 1)?) } else { Seen::nothing() };
    pe.free_external(pe.unregister_symmetric(shared)?)?;
    Ok(saw)
}

/// External memory leaves the heap with its content: PE 1 keeps what PE 0 put before a barrier.
fn unregistered_symmetric_keeps_content<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let shared = pe.register_symmetric(pe.alloc_external::<u32>(2)?)?;
    if pe.my_pe() == 0 {
        pe.host().p(shared.at(1), 1, 1)?;
    }
    pe.host().barrier_all()?;
    let external = pe.unregister_symmetric(shared)?;
    let saw = if pe.my_pe() == 1 { seen("x", pe.read(&external)?) } else { Seen::nothing() };
    pe.free_external(external)?;
    Ok(saw)
}

/// A store through a peer's pointer is there after a barrier, as a put would be.
fn peer_store_then_barrier<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    peer_store(pe, |pe| pe.host().barrier_all())
}

/// `peer_store_then_barrier` with the two halves of a barrier: the quiet completes stores to peers.
fn peer_store_then_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    peer_store(pe, |pe| {
        pe.host().quiet()?;
        pe.host().sync_all()
    })
}

/// A sync alone is enough: it completes stores to peers, but no puts (`order/put_then_sync`).
fn peer_store_then_sync<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    peer_store(pe, |pe| pe.host().sync_all())
}

/// A PE sees its own store at once, as after an ordinary store.
fn peer_store_then_load<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        let peer = pe.peer(&x, 1)?.expect("the case needs peer access");
        peer.write(&[1])?;
        saw = seen("x", peer.read()?);
    }
    pe.free(x)?;
    Ok(saw)
}

/// A get is a transfer, and no load: it may go another way than the store through the pointer before it, and find the old value.
fn peer_store_then_get<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.peer(&x, 1)?.expect("the case needs peer access").write(&[1])?;
        saw = seen("x", pe.host().g(&x, 1)?);
    }
    pe.free(x)?;
    Ok(saw)
}

/// Two stores of one PE to one word stay in order without a fence: the second value remains. Two puts do not stay in order
/// (`order/two_puts_unfenced`).
fn two_peer_stores<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    peer_stores(pe, &[1, 2], |pe| pe.host().barrier_all())
}

fn peer_store<B: Backend>(pe: &Pe<B>, meet: fn(&Pe<B>) -> Result<()>) -> Result<Seen> {
    peer_stores(pe, &[1], meet)
}

/// PE 0 stores the values to PE 1 one after the other, both meet, PE 1 reads.
fn peer_stores<B: Backend>(pe: &Pe<B>, values: &[u32], meet: fn(&Pe<B>) -> Result<()>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        let peer = pe.peer(&x, 1)?.expect("the case needs peer access");
        values.iter().try_for_each(|&value| peer.write(&[value]))?;
    }
    meet(pe)?;
    let saw = seen_by(pe, 1, &x)?;
    pe.free(x)?;
    Ok(saw)
}

/// A load through a peer's pointer sees what the peer wrote before a barrier.
fn peer_load<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(2)?;
    if pe.my_pe() == 1 {
        pe.write(x.at(1), &[1])?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 0 {
        let peer = pe.peer(x.slice(1..), 1)?.expect("the case needs peer access");
        seen("x", peer.read()?)
    } else {
        Seen::nothing()
    };
    pe.free(x)?;
    Ok(saw)
}

/// Loads and stores reach no further than the node: a PE reaches itself, and no PE of another node.
fn peer_of_another_node<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let saw = seen("myself", pe.peer(&x, pe.my_pe())?.is_some()).and("other", pe.peer(&x, 1 - pe.my_pe())?.is_some());
    pe.free(x)?;
    Ok(saw)
}

/// A pointer to a PE that does not exist is refused, and so is a store with a length that is not the memory's.
fn peer_errors<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(2)?;
    let length = pe.peer(&x, 0)?.map(|myself| kind(myself.write(&[1])));
    let saw = seen("no_such_pe", kind(pe.peer(&x, 1))).and("length", length);
    pe.free(x)?;
    Ok(saw)
}

/// A multicast store is there on every member after a barrier.
fn multicast_store<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    if pe.my_pe() == 0 {
        let all = pe.multicast(pe.world(), &x)?.expect("the case needs multicast");
        all.write(&[1])?;
    }
    pe.host().barrier_all()?;
    let saw = seen("x", pe.read(&x)?);
    pe.free(x)?;
    Ok(saw)
}

/// A multicast load reduces all members' elements; on floats, bitwise reductions are refused.
fn multicast_reduce<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (x, y) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<f32>(1)?);
    pe.write(&x, &[pe.my_pe() as u32 + 1])?;
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 0 {
        let all = pe.multicast(pe.world(), &x)?.expect("the case needs multicast");
        let floats = pe.multicast(pe.world(), &y)?.expect("the case needs multicast");
        seen("sum", all.read_reduce(ReduceOp::Sum)?).and("bits_of_floats", kind(floats.read_reduce(ReduceOp::Xor)))
    } else {
        Seen::nothing()
    };
    pe.free(x)?;
    pe.free(y)?;
    Ok(saw)
}
