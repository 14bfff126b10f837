//! [`Label`]: what is wrong with a program of the corpus, for people and for tools.

/// What is wrong with a program: what a tool must find, and where.
///
/// The lines are marked in the program itself by comments, so that they survive edits: see [`Lines`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// The kind of finding.
    pub class: Class,
    /// With how many PEs it runs.
    pub pes: usize,
    /// The profiles under which it shows. Under the others the program is right.
    pub profiles: &'static [&'static str],
    /// Where it was seen.
    pub seen: &'static str,
    /// The edit that repairs it, if one call is enough: the weakest that is.
    pub fix: Option<Edit>,
}

/// The kind of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "who compares findings with labels must know each")]
pub enum Class {
    /// Two accesses that nothing orders.
    Race,
    /// Somebody waits for ever.
    Deadlock,
    /// Members of a team call different collectives.
    Mismatch,
    /// Collectives of a team at the same time, or in another order than they were called.
    Unordered,
    /// Memory is given back while it is used.
    Freed,
    /// Memory or a team is never given back.
    Leak,
    /// A kernel does what no kernel may: a race in shared memory, a barrier in a branch, an access out of bounds.
    Kernel,
    /// A program's own check fails, and nothing else is wrong.
    WrongResult,
    /// It works, and no text promises that it does: a finding under `--strict`.
    Lint,
}

/// A repair of one call, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "who compares proposals with labels must know each")]
pub enum Edit {
    /// A fence is inserted.
    Fence,
    /// One put_signal takes the place of a put and a signal.
    PutSignal,
    /// A flush is inserted.
    Flush,
    /// A quiet is inserted.
    Quiet,
    /// The host waits for a stream.
    Synchronize,
    /// A barrier is inserted.
    Barrier,
}

/// The lines that a program's comments mark, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "who knows lines fills in all of them")]
pub struct Lines {
    /// `// bug: first`: the first of the two calls that are at odds, or the call that never returns.
    pub first: Option<u32>,
    /// `// bug: second`: the other call. A leak, or a value that is wrong, has only one line.
    pub second: Option<u32>,
    /// `// bug: fix`: the line behind which [`Label::fix`] goes, or which it replaces.
    pub fix: Option<u32>,
}

impl Label {
    /// Two accesses that nothing orders, under `spec`.
    pub(crate) const fn race(pes: usize) -> Label {
        Label::new(Class::Race, pes)
    }

    /// Somebody waits for ever, under `spec`.
    pub(crate) const fn deadlock(pes: usize) -> Label {
        Label::new(Class::Deadlock, pes)
    }

    pub(crate) const fn new(class: Class, pes: usize) -> Label {
        Label { class, pes, profiles: &["spec"], seen: "", fix: None }
    }

    /// It shows under `nvlink` too.
    pub(crate) const fn on_nvlink_too(self) -> Label {
        Label { profiles: &["spec", "nvlink"], ..self }
    }

    pub(crate) const fn seen(self, seen: &'static str) -> Label {
        Label { seen, ..self }
    }

    pub(crate) const fn fixed_by(self, edit: Edit) -> Label {
        Label { fix: Some(edit), ..self }
    }
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 9] = [
        Class::Race,
        Class::Deadlock,
        Class::Mismatch,
        Class::Unordered,
        Class::Freed,
        Class::Leak,
        Class::Kernel,
        Class::WrongResult,
        Class::Lint,
    ];

    /// Its name in labels and reports.
    pub fn name(self) -> &'static str {
        match self {
            Class::Race => "race",
            Class::Deadlock => "deadlock",
            Class::Mismatch => "mismatch",
            Class::Unordered => "unordered collectives",
            Class::Freed => "freed in use",
            Class::Leak => "leak",
            Class::Kernel => "kernel fault",
            Class::WrongResult => "wrong result",
            Class::Lint => "lint",
        }
    }

    /// The class of a race, by its two calls: one with a call that ends memory is a use of what was given back.
    pub fn of_race(calls: [&str; 2]) -> Class {
        let ends = |call: &str| ["free", "free_external", "unregister_local", "unregister_symmetric"].contains(&call);
        if calls.into_iter().any(ends) { Class::Freed } else { Class::Race }
    }

    /// The class of a run's end, by the short name of its verdict; `None` where nothing was found.
    pub fn of_outcome(outcome: &str) -> Option<Class> {
        match outcome.split(':').next().unwrap_or_default() {
            "race" => Some(Class::Race),
            "deadlock" => Some(Class::Deadlock),
            "collective mismatch" => Some(Class::Mismatch),
            "concurrent collectives" | "collectives out of order" => Some(Class::Unordered),
            "leak" => Some(Class::Leak),
            "kernel fault" => Some(Class::Kernel),
            "failed" | "panicked" => Some(Class::WrongResult),
            "lint" => Some(Class::Lint),
            other if other.ends_with(" of memory in use") => Some(Class::Freed),
            _ => None,
        }
    }
}

impl Edit {
    /// Every edit, weakest first.
    pub const ALL: [Edit; 6] =
        [Edit::Fence, Edit::PutSignal, Edit::Flush, Edit::Quiet, Edit::Synchronize, Edit::Barrier];

    /// Its name in labels and proposals.
    pub fn name(self) -> &'static str {
        match self {
            Edit::Fence => "fence",
            Edit::PutSignal => "put_signal",
            Edit::Flush => "flush",
            Edit::Quiet => "quiet",
            Edit::Synchronize => "synchronize",
            Edit::Barrier => "barrier",
        }
    }
}

impl Lines {
    /// The marks in a program's text: a comment at the end of a line, of whatever language. It can have several marks.
    ///
    /// ```
    /// use onesided_bugs::Lines;
    /// let lines = Lines::in_text("shmem_put(x, y, 8, 1); // bug: first, fix\nshmem_quiet();\nprint(x[0])  # bug: second\n");
    /// assert_eq!((lines.first, lines.second, lines.fix), (Some(1), Some(3), Some(1)));
    /// ```
    pub fn in_text(text: &str) -> Lines {
        let mut lines = Lines::default();
        for (line, number) in text.lines().zip(1..) {
            let Some((_, marks)) = line.rsplit_once(" bug: ") else { continue };
            for mark in marks.split(", ") {
                match mark.trim_end() {
                    "first" => lines.first = Some(number),
                    "second" => lines.second = Some(number),
                    "fix" => lines.fix = Some(number),
                    _ => {}
                }
            }
        }
        lines
    }

    /// These lines, and where one is missing that of `other`.
    #[must_use]
    pub fn or(self, other: Lines) -> Lines {
        let Lines { first, second, fix } = self;
        Lines { first: first.or(other.first), second: second.or(other.second), fix: fix.or(other.fix) }
    }
}
