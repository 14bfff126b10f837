//! Puts and gets: what has arrived when, which buffers may be used when, and what is refused.

use onesided::{Backend, Element, ErrorKind, Host, Pe, Result, SymmetricBuf, bf16, f16};

use crate::case::{Case, Seen, cases, seen};

/// The chapter's cases, with those of `torn.rs`.
pub(super) fn cases<B: Backend>() -> Vec<Case<B>> {
    let mut cases = cases![
        put_then_quiet: 2,
        put_nbi_then_quiet: 2,
        put_leaves_neighbours: 2,
        put_to_the_next: 3,
        put_source_reused: 2,
        put_nbi_source_overwritten: 2 racy,
        put_nbi_source_overwritten_after_flush: 2,
        put_nbi_source_overwritten_after_quiet: 2,
        get_after_barrier: 2,
        get_nbi_then_quiet: 2,
        get_nbi_read_before_quiet: 2 racy,
        get_nbi_remote_overwritten: 1 racy,
        get_remote_overwritten: 1,
        g_after_p: 2 racy,
        g_after_p_and_quiet: 2,
        iput: 2,
        iget: 2,
        put_to_myself: 1 racy,
        every_type_put_and_get: 2,
        every_type_nbi: 2,
        every_type_p_and_g: 2,
        every_type_strided: 2,
        length_errors: 1,
        no_such_pe: 2,
        nothing_to_move: 2,
    ];
    cases.extend(super::torn::cases());
    cases
}

/// A transfer of the host between two buffers.
type Transfer<B> = fn(&Host<'_, B>, &SymmetricBuf<u32>, &SymmetricBuf<u32>) -> Result<()>;

/// The value of `x` on the PE `reader`; the others record nothing.
pub(super) fn seen_by<B: Backend>(pe: &Pe<B>, reader: usize, x: &SymmetricBuf<u32>) -> Result<Seen> {
    if pe.my_pe() != reader {
        return Ok(Seen::nothing());
    }
    Ok(seen("x", pe.read(x)?[0]))
}

/// Frees several buffers, in order.
pub(super) fn free_all<B: Backend, T: Element, const N: usize>(pe: &Pe<B>, bufs: [SymmetricBuf<T>; N]) -> Result<()> {
    bufs.into_iter().try_for_each(|buf| pe.free(buf))
}

/// The kind of a call's error, if it failed.
pub(super) fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// A put is there after a quiet of its issuer and a sync with the reader.
fn put_then_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    moved(pe, |host, x, src| host.put(x.at(0), src.at(0), 1))
}

/// A non-blocking put, likewise.
fn put_nbi_then_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    moved(pe, |host, x, src| host.put_nbi(x.at(0), src.at(0), 1))
}

/// A put to a slice leaves the elements beside it alone.
fn put_leaves_neighbours<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    moved(pe, |host, x, src| host.put(x.slice(1..2), src.slice(2..3), 1))
}

/// A strided put moves every third element to every second, and nothing between.
fn iput<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    moved(pe, |host, x, src| host.iput(x.slice(1..), src, 2, 3, 2, 1))
}

/// Transfers of no element succeed and change nothing.
fn nothing_to_move<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    moved(pe, |host, x, src| {
        host.put(x.slice(..0), src.slice(..0), 1)?;
        host.put_nbi(x.slice(..0), src.slice(..0), 1)?;
        host.get(src.slice(..0), x.slice(..0), 1)?;
        host.get_nbi(src.slice(..0), x.slice(..0), 1)?;
        host.iput(x, src, 1, 1, 0, 1)?;
        host.iget(src, x, 1, 1, 0, 1)
    })
}

/// PE 0 moves some of its `1, 2, 3, 4` to PE 1 and quiets; PE 1 reads after a sync.
fn moved<B: Backend>(pe: &Pe<B>, transfer: Transfer<B>) -> Result<Seen> {
    let (x, src) = (pe.alloc_zeroed::<u32>(4)?, pe.alloc_zeroed::<u32>(4)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[1, 2, 3, 4])?;
        transfer(&pe.host(), &x, &src)?;
        pe.host().quiet()?;
    }
    pe.host().sync_all()?;
    let saw = if pe.my_pe() == 1 { seen("x", pe.read(&x)?) } else { Seen::nothing() };
    free_all(pe, [x, src])?;
    Ok(saw)
}

/// Every PE puts its number to the next one; after a barrier each has its neighbour's.
fn put_to_the_next<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    pe.host().p(&x, pe.my_pe() as u32 + 1, (pe.my_pe() + 1) % pe.n_pes())?;
    pe.host().barrier_all()?;
    let saw = seen("x", pe.read(&x)?[0]);
    pe.free(x)?;
    Ok(saw)
}

/// The source of a blocking put may be overwritten as soon as the put returned: the target gets the old value.
fn put_source_reused<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    source_overwritten(pe, |host, x, src| host.put(x, src, 1))
}

/// `put_source_reused` with a non-blocking put: it may read its source late and deliver either value.
fn put_nbi_source_overwritten<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    source_overwritten(pe, |host, x, src| host.put_nbi(x, src, 1))
}

/// `put_nbi_source_overwritten` with a flush before overwriting, which makes the source reusable: the old value only.
fn put_nbi_source_overwritten_after_flush<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    source_overwritten(pe, |host, x, src| {
        host.put_nbi(x, src, 1)?;
        host.flush()
    })
}

/// `put_nbi_source_overwritten` with a quiet before overwriting: the old value only.
fn put_nbi_source_overwritten_after_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    source_overwritten(pe, |host, x, src| {
        host.put_nbi(x, src, 1)?;
        host.quiet()
    })
}

fn source_overwritten<B: Backend>(pe: &Pe<B>, put: Transfer<B>) -> Result<Seen> {
    let (x, src) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    if pe.my_pe() == 0 {
        pe.write(&src, &[1])?;
        put(&pe.host(), &x, &src)?;
        pe.write(&src, &[2])?;
    }
    pe.host().barrier_all()?;
    let saw = seen_by(pe, 1, &x)?;
    free_all(pe, [x, src])?;
    Ok(saw)
}

/// A get returns with what its PE wrote before a barrier.
fn get_after_barrier<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    get_then(pe, |host, into, x| host.get(into, x, 1))
}

/// A non-blocking get has landed after a quiet.
fn get_nbi_then_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    get_then(pe, |host, into, x| {
        host.get_nbi(into, x, 1)?;
        host.quiet()
    })
}

/// `get_nbi_then_quiet` without the quiet: the target may still hold what it held.
fn get_nbi_read_before_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    get_then(pe, |host, into, x| host.get_nbi(into, x, 1))
}

fn get_then<B: Backend>(pe: &Pe<B>, get: Transfer<B>) -> Result<Seen> {
    let (x, into) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    if pe.my_pe() == 1 {
        pe.write(&x, &[1])?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 0 {
        get(&pe.host(), &into, &x)?;
        seen("got", pe.read(&into)?[0])
    } else {
        Seen::nothing()
    };
    free_all(pe, [x, into])?;
    Ok(saw)
}

/// A non-blocking get reads its remote source at any time until quiet: it may return what overwrites the source
/// meanwhile. (The remote PE is the PE itself, which overwrites its own memory.)
fn get_nbi_remote_overwritten<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    remote_overwritten(pe, |host, into, x| host.get_nbi(into, x, 0))
}

/// `get_nbi_remote_overwritten` with a blocking get: the old value only.
fn get_remote_overwritten<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    remote_overwritten(pe, |host, into, x| host.get(into, x, 0))
}

fn remote_overwritten<B: Backend>(pe: &Pe<B>, get: Transfer<B>) -> Result<Seen> {
    let (x, into) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    pe.write(&x, &[1])?;
    get(&pe.host(), &into, &x)?;
    pe.write(&x, &[2])?;
    pe.host().quiet()?;
    let saw = seen("got", pe.read(&into)?[0]);
    free_all(pe, [x, into])?;
    Ok(saw)
}

/// A fetch does not wait for the same PE's earlier put to the same element: only a quiet orders them.
fn g_after_p<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    p_then_g(pe, |_| Ok(()))
}

/// `g_after_p` with a quiet between: the new value only.
fn g_after_p_and_quiet<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    p_then_g(pe, |host| host.quiet())
}

fn p_then_g<B: Backend>(pe: &Pe<B>, between: fn(&Host<'_, B>) -> Result<()>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    let saw = if pe.my_pe() == 0 {
        pe.host().p(&x, 1, 1)?;
        between(&pe.host())?;
        seen("x", pe.host().g(&x, 1)?)
    } else {
        Seen::nothing()
    };
    pe.free(x)?;
    Ok(saw)
}

/// A strided get, likewise.
fn iget<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (x, into) = (pe.alloc_zeroed::<u32>(4)?, pe.alloc_zeroed::<u32>(4)?);
    if pe.my_pe() == 1 {
        pe.write(&x, &[1, 2, 3, 4])?;
    }
    pe.host().barrier_all()?;
    let saw = if pe.my_pe() == 0 {
        pe.host().iget(into.slice(1..), &x, 2, 3, 2, 1)?;
        seen("got", pe.read(&into)?)
    } else {
        Seen::nothing()
    };
    free_all(pe, [x, into])?;
    Ok(saw)
}

/// A put to the PE itself is like any other: it may take effect at any time until a quiet.
fn put_to_myself<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let x = pe.alloc_zeroed::<u32>(1)?;
    pe.host().p(&x, 1, 0)?;
    let early = pe.read(&x)?[0];
    pe.host().quiet()?;
    let late = pe.read(&x)?[0];
    pe.free(x)?;
    Ok(seen("early", early).and("late", late))
}

/// The verbs of one family, which move a value to another PE and back, or to my own memory and back.
#[derive(Clone, Copy)]
pub(super) enum Verbs {
    WriteRead,
    PutGet,
    Nbi,
    PG,
    Strided,
}

/// An element of every type comes back unchanged by put and get; the list has each type that did.
fn every_type_put_and_get<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    every_type(pe, Verbs::PutGet)
}

/// The same by put_nbi and get_nbi.
fn every_type_nbi<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    every_type(pe, Verbs::Nbi)
}

/// The same by p and g.
fn every_type_p_and_g<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    every_type(pe, Verbs::PG)
}

/// The same by iput and iget.
fn every_type_strided<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    every_type(pe, Verbs::Strided)
}

/// The names of the types of which an element came back as it was, seen by PE 0.
pub(super) fn every_type<B: Backend>(pe: &Pe<B>, verbs: Verbs) -> Result<Seen> {
    let kept = [
        there_and_back::<B, i8>(pe, verbs)?,
        there_and_back::<B, i16>(pe, verbs)?,
        there_and_back::<B, i32>(pe, verbs)?,
        there_and_back::<B, i64>(pe, verbs)?,
        there_and_back::<B, u8>(pe, verbs)?,
        there_and_back::<B, u16>(pe, verbs)?,
        there_and_back::<B, u32>(pe, verbs)?,
        there_and_back::<B, u64>(pe, verbs)?,
        there_and_back::<B, f16>(pe, verbs)?,
        there_and_back::<B, bf16>(pe, verbs)?,
        there_and_back::<B, f32>(pe, verbs)?,
        there_and_back::<B, f64>(pe, verbs)?,
    ];
    Ok(if pe.my_pe() == 0 { seen("kept", kept.into_iter().flatten().collect::<Vec<_>>()) } else { Seen::nothing() })
}

/// The type's name, if an element went from PE 0 to PE 1 and came back as it was. Only PE 0 acts, and each step is
/// complete before the next, so that there is one schedule.
fn there_and_back<B: Backend, T: Element>(pe: &Pe<B>, verbs: Verbs) -> Result<Option<&'static str>> {
    let (there, back) = (pe.alloc_zeroed::<T>(1)?, pe.alloc_zeroed::<T>(2)?);
    let mut same = false;
    if pe.my_pe() == 0 {
        let (value, host) = (T::from_f64(100.0), pe.host());
        let (from, to) = (back.at(0), back.at(1));
        pe.write(from, &[value])?;
        match verbs {
            Verbs::WriteRead => pe.write(to, &pe.read(from)?)?,
            Verbs::PutGet => host.put(&there, from, 1)?,
            Verbs::Nbi => host.put_nbi(&there, from, 1)?,
            Verbs::PG => host.p(&there, value, 1)?,
            Verbs::Strided => host.iput(&there, from, 2, 2, 1, 1)?,
        }
        host.quiet()?;
        match verbs {
            Verbs::WriteRead => {}
            Verbs::PutGet => host.get(to, &there, 1)?,
            Verbs::Nbi => host.get_nbi(to, &there, 1)?,
            Verbs::PG => pe.write(to, &[host.g(&there, 1)?])?,
            Verbs::Strided => host.iget(to, &there, 2, 2, 1, 1)?,
        }
        host.quiet()?;
        same = pe.read(to)? == [value];
    }
    free_all(pe, [there, back])?;
    Ok(same.then_some(T::DTYPE.name()))
}

/// Operands of different lengths, single-value verbs on more than one element, strides of 0 and strides that reach past
/// an operand are refused, and nothing is moved; a stride that just fits is not.
fn length_errors<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (two, three) = (pe.alloc_zeroed::<u32>(2)?, pe.alloc_zeroed::<u32>(3)?);
    let host = pe.host();
    let saw = seen("put", kind(host.put(&two, &three, 0)))
        .and("put_nbi", kind(host.put_nbi(&two, &three, 0)))
        .and("get", kind(host.get(&two, &three, 0)))
        .and("get_nbi", kind(host.get_nbi(&two, &three, 0)))
        .and("p", kind(host.p(&two, 1, 0)))
        .and("g", kind(host.g(&two, 0)))
        .and("dst_stride_0", kind(host.iput(&three, &two, 0, 1, 2, 0)))
        .and("src_stride_0", kind(host.iget(&three, &two, 1, 0, 2, 0)))
        .and("dst_too_short", kind(host.iput(&three, &two, 3, 1, 2, 0)))
        .and("src_too_short", kind(host.iget(&three, &two, 1, 2, 2, 0)))
        .and("more_than_can_be_counted", kind(host.iput(&three, &two, usize::MAX, 1, 2, 0)))
        .and("just_fits", kind(host.iput(&three, &two, 2, 1, 2, 0)))
        .and("two", pe.read(&two)?);
    free_all(pe, [two, three])?;
    Ok(saw)
}

/// A PE number that does not exist is refused by every verb, before the library takes it for an array index.
fn no_such_pe<B: Backend>(pe: &Pe<B>) -> Result<Seen> {
    let (x, y) = (pe.alloc_zeroed::<u32>(1)?, pe.alloc_zeroed::<u32>(1)?);
    let host = pe.host();
    let saw = seen("put", kind(host.put(&x, &y, 2)))
        .and("put_nbi", kind(host.put_nbi(&x, &y, 2)))
        .and("get", kind(host.get(&x, &y, 2)))
        .and("get_nbi", kind(host.get_nbi(&x, &y, usize::MAX)))
        .and("p", kind(host.p(&x, 1, 2)))
        .and("g", kind(host.g(&x, 2)))
        .and("iput", kind(host.iput(&x, &y, 1, 1, 1, 2)))
        .and("iget", kind(host.iget(&x, &y, 1, 1, 1, 2)));
    free_all(pe, [x, y])?;
    Ok(saw)
}
