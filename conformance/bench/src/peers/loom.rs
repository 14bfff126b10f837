//! Loom: explores executions of threads under the C11 memory model, without those that it knows to be equivalent.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use loom::model::Builder;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::sync::{Arc, mpsc};
use loom::thread;

use super::super::searched::Program;
use super::searched::programs;

programs!();

/// Searches all executions, as far as the limits allow: how many were begun, and how many different results they had.
pub(crate) fn all(program: Program, n: usize, executions: u64, time: Duration) -> (u64, u64) {
    let mut builder = Builder::new();
    builder.checkpoint_interval = 1; // loom looks at its limits that often
    builder.max_permutations = usize::try_from(executions).ok().and_then(|most| most.checked_add(1));
    builder.max_duration = Some(time);
    let seen = std::sync::Arc::new(Mutex::new((0, BTreeSet::new())));
    let note = std::sync::Arc::clone(&seen);
    builder.check(move || {
        note.lock().expect("nobody panics with it").0 += 1;
        let results = execution(program, n);
        note.lock().expect("nobody panics with it").1.insert(results);
    });
    let (begun, results) = &*seen.lock().expect("nobody panics with it");
    (*begun, results.len() as u64)
}
