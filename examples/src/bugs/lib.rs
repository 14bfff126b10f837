#![doc = include_str!("README.md")]
#![deny(unsafe_code)]
//!
//! # Module map
//!
//! | file | what it holds |
//! |---|---|
//! | `label.rs` | [`Label`]: what is wrong, where it was seen, what repairs it |
//! | `ordering/` … `memory/` | a chapter each: its list, and a file for each bug |

use onesided::{Backend, Pe, Result};
use onesided_sim::Sim;

mod atomics;
mod collectives;
mod kernels;
mod label;
mod memory;
mod ordering;
mod reuse;
mod signals;
mod streams;

pub use label::{Class, Edit, Label, Lines};

/// The profiles under which the corpus is run: the weakest that one fabric has, and the strongest.
pub const PROFILES: [&str; 2] = ["spec", "nvlink"];

/// A program that every PE runs.
pub type Program<B> = fn(&Pe<B>) -> Result<()>;

/// A bug: a program that has it, and the same program repaired.
#[derive(Debug)]
#[non_exhaustive]
pub struct Bug<B: Backend> {
    /// Its name.
    pub name: &'static str,
    /// Its chapter.
    pub chapter: &'static str,
    /// What is wrong.
    pub label: Label,
    /// Its file, from the folder of this package.
    pub file: &'static str,
    /// The text of that file.
    pub text: &'static str,
    /// The program that has it.
    pub buggy: Program<B>,
    /// The program without it. It is right under every profile.
    pub fixed: Program<B>,
}

impl<B: Backend> Bug<B> {
    /// The lines that its text marks.
    pub fn lines(&self) -> Lines {
        Lines::in_text(self.text)
    }

    /// What is wrong, in a sentence: the first of its file.
    pub fn sentence(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix("//!"));
        let paragraph: Vec<&str> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
        paragraph.join(" ")
    }
}

/// All bugs, by chapter.
pub fn all<B: Backend>() -> Vec<Bug<B>> {
    let chapters = [
        ordering::bugs(),
        signals::bugs(),
        atomics::bugs(),
        streams::bugs(),
        reuse::bugs(),
        collectives::bugs(),
        memory::bugs(),
        kernels::bugs(),
    ];
    chapters.into_iter().flatten().collect()
}

/// All bugs, for the simulator. What uses this does not compile the corpus once more.
///
/// ```
/// assert!(onesided_bugs::simulated().iter().any(|bug| bug.name == "put_signal_by_hand"));
/// ```
pub fn simulated() -> Vec<Bug<Sim>> {
    all()
}

/// The list of a chapter: each bug is a module with a `LABEL` and the programs `buggy` and `fixed`.
macro_rules! chapter {
    ($chapter:literal: $($name:ident),* $(,)?) => {
        /// The chapter's bugs.
        pub(crate) fn bugs<B: onesided::Backend>() -> Vec<crate::Bug<B>> {
            vec![$(crate::Bug {
                name: stringify!($name),
                chapter: $chapter,
                label: $name::LABEL,
                file: concat!($chapter, "/", stringify!($name), ".rs"),
                text: include_str!(concat!(stringify!($name), ".rs")),
                buggy: $name::buggy,
                fixed: $name::fixed,
            }),*]
        }
    };
}
pub(crate) use chapter;
