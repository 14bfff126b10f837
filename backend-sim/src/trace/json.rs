//! An event as JSON, and in words.

use onesided::backend::{CollectiveKind, Effect, Moves, Op, Order, Span, Transfer};
use serde_json::{Map, Value, json};

use super::{Event, EventKind, in_words};

impl Event {
    /// The event as JSON; the same bytes for the same event. The README of `onesided-harness` lists the fields.
    pub fn to_json(&self) -> Value {
        let Event { step, pe, stream, at, of, moved, .. } = self;
        let (event, op, text) = self.in_words();
        let text = self.thread.map_or_else(|| text.clone(), |thread| format!("{text} ({thread})"));
        let mut json = json!({
            "step": step,
            "pe": pe,
            "stream": stream,
            "event": event,
            "op": op,
            "text": text,
            "at": at.to_string(),
        });
        let fields = json.as_object_mut().expect("an event is an object");
        if at.column() > 0 {
            fields.insert("column".into(), at.column().into());
        }
        if let Some(of) = of {
            fields.insert("of".into(), json!(of));
        }
        self.add_facts(fields);
        if let Some(unwritten) = &self.unwritten {
            fields.insert("unwritten".into(), unwritten.to_string().into());
        }
        if let Some(moved) = moved {
            moved.add_to(fields);
        }
        json
    }

    /// What only some kinds of events have.
    fn add_facts(&self, fields: &mut Map<String, Value>) {
        let mut add = |name: &str, value: Value| drop(fields.insert(name.into(), value));
        match &self.kind {
            EventKind::Call(_) => {}
            EventKind::Op { op, .. } | EventKind::Enqueued { op, .. } => {
                add("does", does(op).into());
                if let Effect::Transfer(transfer) = op.effect() {
                    add(if sends(&transfer) { "to" } else { "from" }, transfer.peer.into());
                }
                if let EventKind::Enqueued { stream, .. } = self.kind {
                    add("on", stream.into());
                }
            }
            EventKind::Read { of, span, .. } | EventKind::Loads { of, span, .. } => {
                add("from", (*of).into());
                add("memory", span.to_string().into());
            }
            EventKind::Access { of, span, writes: false, by, .. } => {
                add("from", (*of).into());
                add("memory", span.to_string().into());
                if let Some(by) = by {
                    add("by", (*by).into());
                }
            }
            EventKind::Write { of, span, .. } | EventKind::Access { of, span, .. } => {
                add("to", (*of).into());
                add("memory", span.to_string().into());
            }
            EventKind::SourceRead { from, span, .. } => {
                add("from", (*from).into());
                add("memory", span.to_string().into());
            }
            EventKind::Delivered { to, span, .. } => {
                add("to", (*to).into());
                add("memory", span.to_string().into());
            }
            EventKind::Signaled { to, update } => {
                add("to", (*to).into());
                add("memory", update.word.to_string().into());
            }
            EventKind::Entered { team, number, first } => {
                add("first", (*first).into());
                add("team", team.as_str().into());
                add("number", (*number).into());
            }
            EventKind::Returned { variable, by, .. } => {
                if let Some(variable) = variable {
                    add("memory", variable.to_string().into());
                }
                if let Some(by) = by {
                    add("by", (*by).into());
                }
            }
        }
        if let EventKind::Read { piece, pieces: pieces @ 2.., .. }
        | EventKind::SourceRead { piece, pieces: pieces @ 2.., .. }
        | EventKind::Delivered { piece, pieces: pieces @ 2.., .. } = self.kind
        {
            add("piece", piece.into());
            add("pieces", pieces.into());
        }
    }

    /// The kind of the event, the operation's name, and the event in words.
    pub(super) fn in_words(&self) -> (&'static str, &'static str, String) {
        let on = |span: &Span, pe: &u32, (piece, pieces): (u16, u16)| match pieces {
            1 => format!("{span} on PE {pe}"),
            _ => format!("{span} on PE {pe}, piece {} of {pieces}", piece + 1),
        };
        match &self.kind {
            EventKind::Call(name) => ("call", *name, (*name).to_string()),
            EventKind::Op { op, values } => ("op", op.name(), in_words(op, values)),
            EventKind::Enqueued { stream, op, values } => {
                ("enqueue", op.name(), format!("on stream {stream}: {}", in_words(op, values)))
            }
            EventKind::Read { of, span, dtype, piece, pieces: 1 } => {
                debug_assert_eq!(*piece, 0);
                ("op", "read", format!("read<{dtype}>({span} on PE {of})"))
            }
            EventKind::Read { of, span, dtype, piece, pieces } => {
                ("op", "read", format!("read<{dtype}>({span} on PE {of}), piece {} of {pieces}", piece + 1))
            }
            EventKind::Write { of, span, dtype } => ("op", "write", format!("write<{dtype}>({span} on PE {of})")),
            EventKind::Access { call, of, span, older, .. } => {
                let older = if *older { ", an older value" } else { "" };
                ("op", *call, format!("{call} {span} on PE {of}{older}"))
            }
            EventKind::SourceRead { from, span, piece, pieces } => {
                ("source read", "", on(span, from, (*piece, *pieces)))
            }
            EventKind::Delivered { to, span, piece, pieces } => ("delivered", "", on(span, to, (*piece, *pieces))),
            EventKind::Signaled { to, update } => {
                ("signaled", "", format!("{} {} on PE {to}, {}", update.op.name(), update.word, update.value))
            }
            EventKind::Loads { of, span, dtype } => ("loads", "read", format!("read<{dtype}>({span} on PE {of})")),
            EventKind::Entered { team, number, .. } => ("entered", "", format!("collective #{number} of {team}")),
            EventKind::Returned { call, variable: Some(variable), .. } => {
                ("returned", *call, format!("{call} saw {variable}"))
            }
            EventKind::Returned { call, .. } => ("returned", *call, format!("{call} returned")),
        }
    }
}

/// Whether a transfer changes memory of its peer.
fn sends(transfer: &Transfer) -> bool {
    !matches!(transfer.moves, Moves::Get { .. } | Moves::Fetch)
}

/// What an operation does, in one word.
fn does(op: &Op) -> &'static str {
    match op.effect() {
        Effect::Transfer(Transfer { moves: Moves::Nothing, .. }) => "signal",
        Effect::Transfer(Transfer { moves: Moves::Amo { .. }, .. }) => "atomic",
        Effect::Transfer(transfer) if sends(&transfer) => "put",
        Effect::Transfer(_) => "get",
        Effect::FetchSignal { .. } => "fetch",
        Effect::Fill { .. } => "fill",
        Effect::Wait(_) => "wait",
        Effect::Order(Order::Fence) => "fence",
        Effect::Order(Order::Quiet) => "quiet",
        Effect::Order(Order::Flush) => "flush",
        Effect::Collective(collective) => match collective.kind {
            CollectiveKind::Barrier => "barrier",
            CollectiveKind::Sync => "sync",
            CollectiveKind::Data(_) => "collective",
        },
    }
}
