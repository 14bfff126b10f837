//! Several words at a time: a transfer or copy of more than one element is several steps.

use onesided::{Backend, Pe, Result, SymmetricSlice};

use super::rma::free_all;
use crate::case::{Case, Seen, cases, seen};

/// This part of the chapter `rma`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    cases![
        put_torn: 2 racy,
        put_of_four_torn: 2 racy,
        element_never_torn: 2 racy,
        get_sees_any_mix: 3 racy,
        flag_before_data_in_one_read: 2 racy,
        flag_before_data_in_two_reads: 2 racy,
        flag_before_data_in_one_peer_read: 2 racy => |case| case.needs_peer_access(),
        flag_before_data_in_one_get: 2 racy,
        flag_before_data_in_the_source_of_a_put: 2 racy,
        flag_before_data_in_the_source_of_an_iput: 2 racy,
    ]
}

/// A put of two elements, read by its target while in flight: any of the two may be there. After a barrier both are.
fn put_torn<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    torn(pe, 2)
}

/// `put_torn` with four elements, to see that they need not arrive from front to back.
fn put_of_four_torn<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    torn(pe, 4)
}

fn torn<B: Backend>(pe: &Pe<B>, len: usize) -> Result<Seen> {
    let (x, src) = (pe.alloc_zeroed::<u32>(len)?, pe.alloc_zeroed::<u32>(len)?);
    let mut early = None;
    if pe.my_pe() == 0 {
        pe.write(&src, &vec![1; len])?;
        pe.host().put(&x, &src, 1)?;
    } else {
        early = Some(pe.read(&x)?);
    }
    pe.host().barrier_all()?;
    let saw = match early {
        Some(early) => seen("early", early).and("late", pe.read(&x)?),
        None => Seen::nothing(),
    };
    free_all(pe, [x, src])?;
    Ok(saw)
}

/// One element of 8 bytes, read by its target while in flight, is the old value or the new one, never half of each.
fn element_never_torn<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u64>(1)?;
    let saw = if pe.my_pe() == 0 {
        pe.host().p(&x, 0x1111_1111_2222_2222, 1)?;
        Seen::nothing()
    } else {
        seen("x", format_args!("{:x}", pe.read(&x)?[0]))
    };
    pe.free(x)?;
    Ok(saw)
}

/// A get by a third PE sees any mix of two puts in flight.
fn get_sees_any_mix<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (x, into) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(2)?);
    let mut saw = Seen::nothing();
    match pe.my_pe() {
        0 => {
            pe.host().p(x.at(0), 1, 1)?;
            pe.host().p(x.at(1), 1, 1)?;
        }
        2 => {
            pe.host().get(&into, &x, 1)?;
            saw = seen("got", pe.read(&into)?);
        }
        _ => {}
    }
    free_all(pe, [x, into])?;
    Ok(saw)
}

/// PE 0 puts data, then a flag behind a fence. PE 1 copies both at once: a copy reads its words one by one, in any order, so it
/// may have the flag and not the data. Control: `flag_before_data_in_two_reads`.
fn flag_before_data_in_one_read<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    data_then_flag(pe, |pe, pair, _| pe.read(pair))
}

/// A PE that reads the flag first and then the data never finds the flag alone.
fn flag_before_data_in_two_reads<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    data_then_flag(pe, |pe, pair, _| {
        let flag = pe.read_one(pair.at(1))?;
        Ok(vec![pe.read_one(pair.at(0))?, flag])
    })
}

/// The same with a put whose source is the pair.
fn flag_before_data_in_the_source_of_a_put<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    data_then_flag(pe, |pe, pair, copy| {
        pe.host().put(copy, pair, 1)?;
        pe.host().quiet()?;
        pe.read(copy)
    })
}

/// The same with a strided put.
fn flag_before_data_in_the_source_of_an_iput<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    data_then_flag(pe, |pe, pair, copy| {
        pe.host().iput(copy, pair, 1, 1, 2, 1)?;
        pe.host().quiet()?;
        pe.read(copy)
    })
}

/// The same with a get.
fn flag_before_data_in_one_get<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    data_then_flag(pe, |pe, pair, copy| {
        pe.host().get(copy, pair, 1)?;
        pe.read(copy)
    })
}

/// How PE 1 copies the pair, perhaps to memory of its own.
type CopyPair<B> = fn(&Pe<B>, SymmetricSlice<'_, u32>, SymmetricSlice<'_, u32>) -> Result<Vec<u32>>;

fn data_then_flag<B: Backend>(pe: &Pe<B>, copy: CopyPair<B>) -> Result<Seen> {
    let words = pe.alloc_zeroed::<u32>(4)?;
    let (pair, own) = (words.slice(..2), words.slice(2..));
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.host().p(pair.at(0), 1, 1)?;
        pe.host().fence()?;
        pe.host().p(pair.at(1), 1, 1)?;
    } else {
        saw = seen("data_and_flag", copy(pe, pair, own)?);
    }
    pe.free(words)?;
    Ok(saw)
}

/// PE 0 writes data and then a flag to its own memory; PE 1 loads both at once through a pointer to it.
fn flag_before_data_in_one_peer_read<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let pair = pe.alloc_zeroed::<u32>(2)?;
    let mut saw = Seen::nothing();
    if pe.my_pe() == 0 {
        pe.write(pair.at(0), &[1])?;
        pe.write(pair.at(1), &[1])?;
    } else {
        let peer = pe.peer(&pair, 0)?.expect("the case needs peer access");
        saw = seen("data_and_flag", peer.read()?);
    }
    pe.free(pair)?;
    Ok(saw)
}
