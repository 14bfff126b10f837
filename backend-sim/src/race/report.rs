//! [`Race`]: two accesses that nothing orders, and what would order them.

use std::fmt;

use onesided::At;
use onesided::backend::Span;
use onesided_ptx::Who as KernelThread;

use super::ineffective::IneffectiveOrder;
use super::missing::MissingEdge;

/// Two accesses to the same bytes, at least one of which writes, that nothing orders. They are not both atomic, or they are
/// atomic on words of different sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Race {
    /// The access that was issued first.
    pub first: Access,
    /// The other.
    pub second: Access,
    /// The PE whose memory it is.
    pub pe: usize,
    /// Bytes that both touch.
    pub span: Span,
    /// The line that allocated the memory; `None` for external memory.
    pub made_at: Option<At>,
    /// What would order the two.
    pub missing: MissingEdge,
    /// What would order the accesses that other PEs make by the same two calls, where `missing` does not: fences and quiets.
    pub also_missing: Vec<MissingEdge>,
    /// A call that seems to do that, and does not. Of recorded runs only.
    pub ineffective: Option<IneffectiveOrder>,
    /// How often the same two calls raced in the run.
    pub times: u64,
}

/// One side of a [`Race`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Access {
    /// The PE that made it, or issued the transfer that did.
    pub pe: usize,
    /// Which of its streams; `None` for the host.
    pub stream: Option<usize>,
    /// Which thread of the kernel that runs there; `None` if it was no kernel's.
    pub thread: Option<KernelThread>,
    /// The operation.
    pub call: &'static str,
    /// Its line.
    pub at: At,
    /// Which part of the operation.
    pub part: Part,
    /// Whether it changes the memory.
    pub writes: bool,
    /// Whether it is atomic.
    pub atomic: bool,
    /// The step of the run in which the operation was issued.
    pub step: u64,
    /// The last call of this host or stream that the other side knows, of those that others synchronize with: a signal, an
    /// atomic, a collective.
    pub known: Option<(&'static str, At)>,
}

/// Which part of an operation an [`Access`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// What the call does before it returns.
    Itself,
    /// A transfer reads its source, when it comes to that.
    SourceRead,
    /// A transfer arrives.
    Delivery,
}

impl Race {
    /// What would order the two, and, if there is such a call, why the one does not that seems to. Then what other PEs lack.
    pub fn missing_in_words(&self) -> String {
        let ineffective = self.ineffective.map(|call| format!("; {call}")).unwrap_or_default();
        let also = self.also_missing.iter().map(|edge| format!("; of other PEs: {edge}"));
        format!("{}{ineffective}{}", self.missing, also.collect::<String>())
    }

    /// What each side knows of the other, a line for each: up to which call. None where both are of one host or stream.
    pub fn known(&self) -> Vec<String> {
        let who = |access: &Access| match access.stream {
            Some(stream) => format!("PE {} stream {stream}", access.pe),
            None => format!("PE {}", access.pe),
        };
        let line = |knows: &Access, of: &Access| match of.known {
            Some((call, at)) => format!("{} knows {} up to {call} at {at}", who(knows), who(of)),
            None => format!("{} knows nothing of {}", who(knows), who(of)),
        };
        let Race { first, second, .. } = self;
        match (first.pe, first.stream) == (second.pe, second.stream) {
            true => Vec::new(),
            false => vec![line(second, first), line(first, second)],
        }
    }
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Race { first, second, pe, span, made_at, times, .. } = self;
        write!(f, "data race: {first} and {second}, on {span} of PE {pe}")?;
        if let Some(at) = made_at {
            write!(f, " (made at {at})")?;
        }
        write!(f, "\n    nothing orders them; missing: {}", self.missing_in_words())?;
        write!(f, "\n    issued in steps {} and {}", first.step, second.step)?;
        for line in self.known() {
            write!(f, "\n    {line}")?;
        }
        match times {
            1 => Ok(()),
            more => write!(f, "\n    {more} times in this run"),
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Access { pe, stream, thread, call, at, part, writes, atomic, step: _, known: _ } = self;
        let atomic = if *atomic { "atomic " } else { "" };
        let does = match (writes, part) {
            (_, Part::SourceRead) => "source read",
            (true, Part::Delivery) => "delivery",
            (true, Part::Itself) => "write",
            (false, _) => "read",
        };
        match call {
            call if *call == does => write!(f, "{does} at {at:#} by PE {pe}")?,
            call => write!(f, "{atomic}{does} of {call} at {at:#} by PE {pe}")?,
        }
        if let Some(stream) = stream {
            write!(f, " stream {stream}")?;
        }
        match thread {
            Some(thread) => write!(f, " ({thread})"),
            None => Ok(()),
        }
    }
}
