//! A PE of a program on the simulator: how it makes each of its calls.

use onesided::backend::AmoOp;
use onesided::{
    Element, Event, Issue, Pe, RegisteredLocal, Result, SignalOp, Slice, Stream, SymmetricBuf, SymmetricSlice, Team,
    TeamConfig, Waitable,
};
use onesided_sim::Sim;

use super::program::{Call, Collective, Op, Update};

/// A PE that makes its calls.
pub(crate) struct Running<'a, T: Word> {
    pub(crate) pe: &'a Pe<Sim>,
    pub(crate) buf: &'a SymmetricBuf<T>,
    /// Words behind those of `buf`, which only this PE reaches.
    pub(crate) local: Option<&'a RegisteredLocal<T>>,
    pub(crate) streams: Vec<Stream<Sim>>,
    pub(crate) events: Vec<Event<Sim>>,
    pub(crate) teams: Vec<Option<Team>>,
    pub(crate) saw: Vec<u64>,
}

/// What words of a program are.
pub(crate) trait Word: Waitable {
    /// Makes a call that is about signals, or atomic.
    fn make_atomic(running: &mut Running<'_, Self>, call: &Call) -> Result<()>;
}

impl Word for u16 {
    fn make_atomic(_: &mut Running<'_, u16>, call: &Call) -> Result<()> {
        unreachable!("{call:?} with narrow words")
    }
}

impl Word for u32 {
    fn make_atomic(_: &mut Running<'_, u32>, call: &Call) -> Result<()> {
        unreachable!("{call:?} with narrow words")
    }
}

impl Word for u64 {
    fn make_atomic(running: &mut Running<'_, u64>, call: &Call) -> Result<()> {
        running.signal(call)
    }
}

impl<'a, T: Word> Running<'a, T> {
    pub(crate) fn make(&mut self, call: &Call) -> Result<()> {
        let Running { pe, buf, streams, events, .. } = self;
        let host = pe.host();
        let on = call.stream.map(|stream| pe.on(&streams[stream]));
        let on = on.as_ref().unwrap_or(&host);
        match call.op {
            Op::Fence => on.fence(),
            Op::Quiet => on.quiet(),
            Op::Flush => on.flush(),
            Op::Wait { word, cmp, value, signal: false } => on.wait_until(buf.at(word), cmp, T::from_bits64(value)),
            Op::WaitAll { word, cmp, values } => {
                let skip = values.map(|value| value.is_none());
                let wanted = values.map(|value| T::from_bits64(value.unwrap_or_default()));
                on.wait_until_all_vector(buf.slice(word..word + 2), Some(&skip), cmp, &wanted)
            }
            Op::Record { event } => pe.record(&events[event], &streams[call.stream.expect("of a stream")]),
            Op::WaitEvent { event } => pe.wait_event(&events[event], &streams[call.stream.expect("of a stream")]),
            Op::SynchronizeEvent { event } => pe.synchronize_event(&events[event]),
            Op::Synchronize { stream } => pe.synchronize(&streams[stream]),
            Op::Wait { signal: true, .. } | Op::Put { signal: Some(_), .. } | Op::Signal { .. } => {
                T::make_atomic(self, call)
            }
            Op::SignalFetch { .. } | Op::Amo { .. } | Op::Poll { .. } | Op::Lock { .. } => T::make_atomic(self, call),
            _ => {
                let (all, local) = (self.buf.slice(..), self.local.map(|local| local.slice(..)));
                match call.in_bytes {
                    false => self.make_with(call, all, local),
                    true => self.make_with(call, all.as_bytes(), local.map(Slice::as_bytes)),
                }
            }
        }
    }

    /// Makes a call that moves elements of any type.
    fn make_with<E: Element, K>(
        &mut self,
        call: &Call,
        all: SymmetricSlice<'a, E>,
        local: Option<Slice<'a, E, K>>,
    ) -> Result<()>
    where
        Slice<'a, E, K>: onesided::Local<E>,
    {
        let Running { pe, streams, saw, .. } = self;
        let host = pe.host();
        let on = call.stream.map(|stream| pe.on(&streams[stream]));
        let on = on.as_ref().unwrap_or(&host);
        let range = |start: usize, len: usize| all.slice(start..start + len);
        let behind = |start: usize, len: usize| {
            let local = local.filter(|_| start >= all.len())?;
            Some(local.slice(start - all.len()..start - all.len() + len))
        };
        let on_node = "all PEs are on one node";
        match call.op {
            Op::P { to, dst, value } => on.p(all.at(dst), E::from_bits64(value), to),
            Op::G { from, src } => host.g(all.at(src), from).map(|value| saw.push(value.to_bits64())),
            Op::Put { src, len, .. } | Op::Get { dst: src, len, .. } => match behind(src, len) {
                Some(local) => transfer(on, call.op, all, local),
                None => transfer(on, call.op, all, range(src, len)),
            },
            Op::IPut { to, dst, src, strides, count } => {
                on.iput(all.slice(dst..), all.slice(src..), strides.0, strides.1, count, to)
            }
            Op::IGet { from, dst, src, strides, count } => {
                on.iget(all.slice(dst..), all.slice(src..), strides.0, strides.1, count, from)
            }
            Op::Write { dst, len, value } => {
                let values = vec![E::from_bits64(value); len];
                match behind(dst, len) {
                    Some(local) => pe.write(local, &values),
                    None => on.write(range(dst, len), &values),
                }
            }
            Op::Read { src, len } => {
                let values = behind(src, len).map_or_else(|| pe.read(range(src, len)), |local| pe.read(local))?;
                saw.extend(values.into_iter().map(E::to_bits64));
                Ok(())
            }
            Op::PeerLoad { of, src, len } => {
                let values = pe.peer(range(src, len), of)?.expect(on_node).read()?;
                saw.extend(values.into_iter().map(E::to_bits64));
                Ok(())
            }
            Op::PeerStore { to, dst, len, value } => {
                pe.peer(range(dst, len), to)?.expect(on_node).write(&vec![E::from_bits64(value); len])
            }
            Op::Enter(what) => enter(pe, on, pe.world(), what, all),
            Op::EnterOf { team, what } => {
                enter(pe, on, self.teams[team].as_ref().expect("it is not destroyed"), what, all)
            }
            op => unreachable!("{op:?} moves nothing"),
        }
    }
}

/// A put or a get. `local`: my operand.
fn transfer<'a, E: Element>(
    on: &Issue<'_, Sim>,
    op: Op,
    all: SymmetricSlice<'a, E>,
    local: impl onesided::Local<E>,
) -> Result<()> {
    match op {
        Op::Put { to, dst, len, nbi: false, .. } => on.put(all.slice(dst..dst + len), local, to),
        Op::Put { to, dst, len, nbi: true, .. } => on.put_nbi(all.slice(dst..dst + len), local, to),
        Op::Get { from, src, len, nbi: false, .. } => on.get(local, all.slice(src..src + len), from),
        Op::Get { from, src, len, nbi: true, .. } => on.get_nbi(local, all.slice(src..src + len), from),
        op => unreachable!("{op:?} is no put and no get"),
    }
}

fn enter<E: Element>(
    pe: &Pe<Sim>,
    on: &Issue<'_, Sim>,
    team: &Team,
    what: Collective,
    buf: SymmetricSlice<'_, E>,
) -> Result<()> {
    let range = |start: usize, len: usize| buf.slice(start..start + len);
    let all = team.n_pes();
    match what {
        Collective::Team => {
            let part = pe.team_split_strided(team, 0, 1, all, TeamConfig::default())?;
            pe.team_destroy(part.expect("of all PEs"))
        }
        Collective::AllocFree => pe.free(pe.alloc::<u64>(1)?),
        Collective::Sync => on.sync(team),
        Collective::Barrier => on.barrier(team),
        Collective::Broadcast { root, dst, src, len } => on.broadcast(team, range(dst, len), range(src, len), root),
        Collective::Fcollect { dst, src, len } => on.fcollect(team, range(dst, len * all), range(src, len)),
        Collective::Alltoall { dst, src, len } => on.alltoall(team, range(dst, len * all), range(src, len * all)),
        Collective::Reduce { dst, src, len, op } => on.reduce(team, range(dst, len), range(src, len), op),
        Collective::ReduceScatter { dst, src, len, op } => {
            on.reducescatter(team, range(dst, len), range(src, len * all), op)
        }
    }
}

/// # Signals and atomic operations
impl Running<'_, u64> {
    fn signal(&mut self, call: &Call) -> Result<()> {
        let Running { pe, buf, streams, saw, .. } = self;
        let host = pe.host();
        let on = call.stream.map(|stream| pe.on(&streams[stream]));
        let on = on.as_ref().unwrap_or(&host);
        let range = |start: usize, len: usize| buf.slice(start..start + len);
        let how = |update: Update| if update.add { SignalOp::Add } else { SignalOp::Set };
        match call.op {
            Op::Put { to, dst, src, len, nbi, signal: Some(update) } => {
                let (dst, src, word) = (range(dst, len), range(src, len), buf.signal(update.word));
                match nbi {
                    false => on.put_signal(dst, src, word, update.value, how(update), to),
                    true => on.put_signal_nbi(dst, src, word, update.value, how(update), to),
                }
            }
            Op::Signal { to, update } => on.signal_op(buf.signal(update.word), update.value, how(update), to),
            Op::Wait { word, cmp, value, .. } if call.stream.is_some() => {
                on.signal_wait_until(buf.signal(word), cmp, value)
            }
            Op::Wait { word, cmp, value, .. } => {
                host.signal_wait_until(buf.signal(word), cmp, value).map(|value| saw.push(value))
            }
            Op::SignalFetch { word } => host.signal_fetch(buf.signal(word)).map(|value| saw.push(value)),
            Op::Poll { plainly, word, also, cmp, value } => {
                let found = 'polls: loop {
                    for word in [word].into_iter().chain(also) {
                        let found = match plainly {
                            true => self.pe.intended_race("polled", |pe| pe.read_one(buf.at(word)))?,
                            false => host.signal_fetch(buf.signal(word))?,
                        };
                        if cmp.holds(found, value) {
                            break 'polls [word as u64, found];
                        }
                    }
                };
                saw.extend(found);
                Ok(())
            }
            Op::Lock { to, dst } => {
                while host.atomic_compare_swap(buf.at(dst), 0, 1, to)? != 0 {}
                saw.push(0);
                Ok(())
            }
            Op::Amo { fetch: true, .. } => self.fetch(call.op).map(|old| self.saw.push(old)),
            Op::Amo { fetch: false, .. } => self.update(call.op),
            op => unreachable!("{op:?} is not atomic"),
        }
    }

    fn fetch(&self, amo: Op) -> Result<u64> {
        let Op::Amo { to, dst, op, value, cond, .. } = amo else { unreachable!("{amo:?} is no atomic") };
        let (host, word) = (self.pe.host(), self.buf.at(dst));
        match op {
            AmoOp::Fetch => host.atomic_fetch(word, to),
            AmoOp::Set => host.atomic_swap(word, value, to),
            AmoOp::Add => host.atomic_fetch_add(word, value, to),
            AmoOp::And => host.atomic_fetch_and(word, value, to),
            AmoOp::Or => host.atomic_fetch_or(word, value, to),
            AmoOp::Xor => host.atomic_fetch_xor(word, value, to),
            AmoOp::CompareSwap => host.atomic_compare_swap(word, cond, value, to),
        }
    }

    fn update(&self, amo: Op) -> Result<()> {
        let Op::Amo { to, dst, op, value, .. } = amo else { unreachable!("{amo:?} is no atomic") };
        let (host, word) = (self.pe.host(), self.buf.at(dst));
        match op {
            AmoOp::Set => host.atomic_set(word, value, to),
            AmoOp::Add => host.atomic_add(word, value, to),
            AmoOp::And => host.atomic_and(word, value, to),
            AmoOp::Or => host.atomic_or(word, value, to),
            AmoOp::Xor => host.atomic_xor(word, value, to),
            AmoOp::Fetch | AmoOp::CompareSwap => unreachable!("always fetches"),
        }
    }
}
