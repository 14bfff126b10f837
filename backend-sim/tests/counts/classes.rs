//! Classes of equivalent schedules, computed from their traces: an independent look at what the search does.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

use onesided::backend::{AmoOp, Op, Span};
use onesided::{At, Pe, Result, SignalOp};
use onesided_sim::{Config, Event, EventKind, Explore, Races, Run, Sim, Simulation};

/// A step, by a name that it has in every schedule. No line may be passed twice by the same PE.
type Step = (u32, u32, u32, &'static str, u16);

/// Which of every two conflicting steps came first.
pub(crate) type Class = BTreeSet<(Step, Step)>;

/// What an exhaustive search visited.
pub(crate) struct Visited {
    pub(crate) schedules: u64,
    pub(crate) classes: BTreeSet<Class>,
}

/// The classes of all schedules as the search visits them, and those of some random ones.
pub(crate) fn classes<T>(config: Config, program: impl Fn(&Pe<Sim>) -> Result<T>) -> (Visited, BTreeSet<Class>) {
    let config = Config { races: Races::Note, ..config };
    let visit = |how| {
        let recording = RefCell::new(Simulation::new(config.clone()).unwrap());
        let mut classes = BTreeSet::new();
        let mut simulation = Simulation::new(config.clone()).unwrap();
        simulation.count_classes();
        let explored = simulation.explore(how, &program, |run: &Run<T>| {
            assert!(run.is_ok(), "{}", run.verdict);
            let recorded = recording.borrow_mut().reproduce(run, &program).unwrap();
            classes.insert(class(recorded.trace.as_deref().expect("it was recorded")));
            ControlFlow::Continue(())
        });
        (explored.unwrap(), classes)
    };
    let (explored, all) = visit(Explore::All { limit: 100_000 });
    assert!(explored.complete);
    assert_eq!(explored.redundant, 0, "a schedule was begun that is equivalent to another");
    let (drawn, random) = visit(Explore::random(100, 1));
    assert_eq!(drawn.classes, Some(random.len() as u64), "the search tells random schedules apart as this does");
    (Visited { schedules: explored.schedules, classes: all }, random)
}

fn class(trace: &[Event]) -> Class {
    let mut class = Class::new();
    let mut steps: Vec<(Step, Vec<Access>)> = Vec::new();
    for event in trace {
        let touches = accesses(trace, event);
        if touches.is_empty() {
            continue;
        }
        let step = name(event);
        for (earlier, others) in &steps {
            assert_ne!(*earlier, step, "names are unique");
            if others.iter().any(|other| touches.iter().any(|access| access.conflicts(other))) {
                class.insert((*earlier, step));
            }
        }
        steps.push((step, touches));
    }
    class
}

fn name(event: &Event) -> Step {
    let (tag, piece) = match event.kind {
        EventKind::SourceRead { piece, .. } => ("source", piece),
        EventKind::Read { piece, .. } => ("read", piece),
        EventKind::Delivered { piece, .. } => ("delivery", piece),
        EventKind::Signaled { .. } => ("signal", 0),
        _ => ("call", 0),
    };
    (event.pe, event.at.line(), event.at.column(), tag, piece)
}

/// Bytes of a PE.
struct Access {
    pe: u32,
    span: Span,
    write: bool,
    /// The name of an update of which two commute.
    update: Option<&'static str>,
}

impl Access {
    fn conflicts(&self, other: &Access) -> bool {
        let commute = self.update.is_some() && self.update == other.update;
        (self.write || other.write) && !commute && self.pe == other.pe && self.span.overlaps(&other.span)
    }
}

/// What a step touches, told from its event and from the operation that it belongs to.
fn accesses(trace: &[Event], event: &Event) -> Vec<Access> {
    let read = |pe, span| Access { pe, span, write: false, update: None };
    let write = |pe, span| Access { pe, span, write: true, update: None };
    match event.kind {
        // a blocking put of one element reads its source when it is issued; of several, in pieces
        EventKind::Op { op: Op::Put { nbi: false, src, dtype, .. }, .. } if src.len == dtype.size() => {
            vec![read(event.pe, src)]
        }
        EventKind::Read { of, span, dtype, piece, pieces } => {
            vec![read(of, elements(span, dtype.size(), piece, pieces))]
        }
        EventKind::Write { of, span, .. } => vec![write(of, span)],
        EventKind::SourceRead { from, span, piece, pieces } => {
            vec![read(from, part(span, op_at(trace, event.at), piece, pieces))]
        }
        EventKind::Signaled { to, update } => {
            let adds = (update.op == SignalOp::Add).then_some(AmoOp::Add.verb(false));
            vec![Access { update: adds, ..write(to, update.word) }]
        }
        EventKind::Delivered { to, span, piece, pieces } => match op_at(trace, event.at) {
            Op::G { .. } => vec![read(to, span)],
            op @ Op::Get { src, pe, .. } => {
                vec![read(*pe, part(*src, op, piece, pieces)), write(to, part(span, op, piece, pieces))]
            }
            Op::Amo { op, fetch: false, .. } if *op != AmoOp::Set => {
                vec![Access { update: Some(op.verb(false)), ..write(to, span) }]
            }
            op => vec![write(to, part(span, op, piece, pieces))],
        },
        _ => Vec::new(),
    }
}

fn op_at(trace: &[Event], at: At) -> &Op {
    trace.iter().find(|event| event.at == at).and_then(Event::op).expect("a transfer belongs to an operation")
}

/// The elements of one piece.
fn part(span: Span, op: &Op, piece: u16, pieces: u16) -> Span {
    elements(span, op.dtype().expect("it moves elements").size(), piece, pieces)
}

fn elements(span: Span, size: usize, piece: u16, pieces: u16) -> Span {
    let (count, piece, pieces) = (span.len / size, piece as usize, pieces as usize);
    let (start, end) = (count * piece / pieces, count * (piece + 1) / pieces);
    Span { start: span.start + start * size, len: (end - start) * size, ..span }
}
