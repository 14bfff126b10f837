//! Accesses of all sizes: a run has a race exactly if two accesses that nothing orders touch one byte.
//!
//! Random spans, from a byte to more than two blocks of shadow memory, are compared with a list of all accesses and the bytes of each. There is
//! little synchronization, and only one run of each program, so what is tested is what the detector keeps of each byte.
//!
//! Other programs, and more of them: `REFERENCE_SEED=7 REFERENCE_TIMES=5 cargo test -p onesided-sim --test all race_spans`.

use std::cell::Cell;

use crate::random;
use onesided::{Pe, Result};
use onesided_sim::{Config, Races, Sim, Simulation};
use proptest::prelude::*;

const PES: usize = 3;
/// Of each PE's memory. More than two blocks of shadow memory, which have 1 KiB.
const BYTES: usize = 2400;

#[derive(Clone, Copy, Debug)]
enum Op {
    Put { to: usize, start: usize, len: usize },
    Get { from: usize, start: usize, len: usize },
    IPut { to: usize, start: usize, stride: usize, count: usize },
    Write { start: usize, len: usize },
    Read { start: usize, len: usize },
    P { to: usize, word: usize },
    Add { to: usize, word: usize },
    Fence,
    Quiet,
    Barrier,
}

/// One PE after another calls; all meet at a barrier.
type Program = Vec<(usize, Op)>;

fn perform(program: &Program, pe: &Pe<Sim>) -> Result<()> {
    let words = pe.alloc_zeroed::<u64>(BYTES / 8)?;
    let (source, scratch) = (pe.alloc_zeroed::<u8>(BYTES)?, pe.alloc_zeroed::<u8>(BYTES)?);
    let bytes = words.slice(..).as_bytes();
    let host = pe.host();
    for (_, op) in program.iter().filter(|(by, op)| *by == pe.my_pe() || matches!(op, Op::Barrier)) {
        match *op {
            Op::Put { to, start, len } => host.put(bytes.slice(start..start + len), source.slice(..len), to)?,
            Op::Get { from, start, len } => host.get(scratch.slice(..len), bytes.slice(start..start + len), from)?,
            Op::IPut { to, start, stride, count } => {
                host.iput(bytes.slice(start..), source.slice(..), stride, 1, count, to)?;
            }
            Op::Write { start, len } => pe.write(bytes.slice(start..start + len), &vec![1; len])?,
            Op::Read { start, len } => _ = pe.read(bytes.slice(start..start + len))?,
            Op::P { to, word } => host.p(words.at(word), 1, to)?,
            Op::Add { to, word } => host.atomic_add(words.at(word), 1, to)?,
            Op::Fence => host.fence()?,
            Op::Quiet => host.quiet()?,
            Op::Barrier => host.barrier_all()?,
        }
    }
    host.barrier_all()?;
    pe.free(scratch)?;
    pe.free(source)?;
    pe.free(words)
}

/// An access as the list has it.
struct Access {
    by: usize,
    /// Whose memory.
    of: usize,
    bytes: Vec<bool>,
    kind: Kind,
    /// Fences, and quiets, of its PE before it.
    fences: usize,
    quiets: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Put,
    Atomic,
}

impl Kind {
    fn is_on_its_way(self) -> bool {
        matches!(self, Kind::Put | Kind::Atomic)
    }
}

fn races(earlier: &Access, later: &Access) -> bool {
    let conflict = earlier.of == later.of
        && (earlier.kind, later.kind) != (Kind::Read, Kind::Read)
        && (earlier.kind, later.kind) != (Kind::Atomic, Kind::Atomic)
        && earlier.bytes.iter().zip(&later.bytes).any(|(one, other)| *one && *other);
    let ordered = earlier.by == later.by
        && (!earlier.kind.is_on_its_way()
            || earlier.quiets < later.quiets
            || later.kind.is_on_its_way() && earlier.fences < later.fences);
    conflict && !ordered
}

fn has_race(program: &Program) -> bool {
    let mut accesses: Vec<Access> = Vec::new();
    let (mut fences, mut quiets) = ([0; PES], [0; PES]);
    for &(by, op) in program {
        let span = |start: usize, len: usize| (0..BYTES).map(|byte| (start..start + len).contains(&byte)).collect();
        let (of, bytes, kind) = match op {
            Op::Put { to, start, len } => (to, span(start, len), Kind::Put),
            Op::Get { from, start, len } => (from, span(start, len), Kind::Read),
            Op::IPut { to, start, stride, count } => {
                let hit = |byte: usize| {
                    byte >= start && (byte - start).is_multiple_of(stride) && (byte - start) / stride < count
                };
                (to, (0..BYTES).map(hit).collect(), Kind::Put)
            }
            Op::Write { start, len } => (by, span(start, len), Kind::Write),
            Op::Read { start, len } => (by, span(start, len), Kind::Read),
            Op::P { to, word } => (to, span(8 * word, 8), Kind::Put),
            Op::Add { to, word } => (to, span(8 * word, 8), Kind::Atomic),
            Op::Fence => {
                fences[by] += 1;
                continue;
            }
            Op::Quiet => {
                quiets[by] += 1;
                continue;
            }
            Op::Barrier => {
                accesses.clear();
                continue;
            }
        };
        let access = Access { by, of, bytes, kind, fences: fences[by], quiets: quiets[by] };
        if accesses.iter().any(|earlier| races(earlier, &access)) {
            return true;
        }
        accesses.push(access);
    }
    false
}

/// Mostly short, mostly near the bounds of cells and blocks.
fn span() -> impl Strategy<Value = (usize, usize)> {
    let edge = prop_oneof![0..40usize, 1000..1050usize, 2030..2070usize, 0..BYTES];
    let len = prop_oneof![4 => 1..20usize, 1 => 1..BYTES, 1 => Just(1024), 1 => Just(8)];
    let start = prop_oneof![3 => edge.clone(), 2 => edge.prop_map(|start| start / 8 * 8), 1 => prop_oneof![Just(0), Just(1024)].boxed()];
    (start, len).prop_map(|(start, len)| (start, len.min(BYTES - start)))
}

fn op() -> impl Strategy<Value = Op> {
    let pe = || 0..PES;
    let word = || prop_oneof![0..5usize, 126..131usize, 254..258usize];
    prop_oneof![
        4 => (pe(), span()).prop_map(|(to, (start, len))| Op::Put { to, start, len }),
        3 => (pe(), span()).prop_map(|(from, (start, len))| Op::Get { from, start, len }),
        1 => (pe(), 0..1100usize, 2..9usize, 1..100usize)
            .prop_map(|(to, start, stride, count)| Op::IPut { to, start, stride, count }),
        3 => span().prop_map(|(start, len)| Op::Write { start, len }),
        3 => span().prop_map(|(start, len)| Op::Read { start, len }),
        2 => (pe(), word()).prop_map(|(to, word)| Op::P { to, word }),
        2 => (pe(), word()).prop_map(|(to, word)| Op::Add { to, word }),
        1 => Just(Op::Fence),
        1 => Just(Op::Quiet),
        1 => Just(Op::Barrier),
    ]
}

#[test]
fn spans_race_exactly_where_they_overlap() {
    let racy = Cell::new(0);
    let programs = prop::collection::vec((0..PES, op()), 2..=9);
    let cases = random::check_all(programs, 4_000, 0x7370_616e, |program| {
        let config = Config { races: Races::Note, ..Config::pes(PES) };
        let run = Simulation::new(config).unwrap().run(|pe| perform(&program, pe)).unwrap();
        let expected = has_race(&program);
        racy.set(racy.get() + u32::from(expected));
        let found = run.verdict.races.first().map(ToString::to_string);
        prop_assert_eq!(found.is_some(), expected, "{:?}", found);
        Ok(())
    });
    eprintln!("{} of {cases} programs have a race", racy.get());
    assert!(racy.get() > cases / 5 && racy.get() < cases * 4 / 5, "{} of {cases} programs have a race", racy.get());
}
