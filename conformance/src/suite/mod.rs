//! The cases, by chapter of the API.

use onesided::{Backend, Source};

use crate::case::Case;

mod atomic;
mod buffer;
mod causality;
mod claim;
mod collective;
mod device;
mod init;
mod large;
mod lint;
mod litmus;
mod mismatch;
mod misuse;
mod nodes;
mod order;
mod reduce;
mod rma;
mod signal;
mod stream;
mod team;
mod torn;
mod wait;

/// The modules of kernels that cases load. `extensions`: also those that call what NVSHMEM has for kernels from 3.8 on.
pub fn kernels(extensions: bool) -> Vec<Source> {
    let all = device::sources().into_iter();
    all.filter(|source| extensions || source.name() != device::EXTENSIONS).collect()
}

/// Every case of the suite, in the order of the chapters.
pub fn cases<B: Backend>() -> Vec<Case<B>> {
    let chapters: [(&str, Vec<Case<B>>); 14] = [
        ("init", init::cases()),
        ("team", team::cases()),
        ("buffer", buffer::cases()),
        ("rma", rma::cases()),
        ("order", order::cases()),
        ("litmus", litmus::cases()),
        ("signal", signal::cases()),
        ("atomic", atomic::cases()),
        ("collective", collective::cases()),
        ("stream", stream::cases()),
        ("device", device::cases()),
        ("nodes", nodes::cases()),
        ("misuse", misuse::cases()),
        ("lint", lint::cases()),
    ];
    chapters
        .into_iter()
        .flat_map(|(chapter, cases)| {
            cases.into_iter().map(move |case| Case { name: format!("{chapter}/{}", case.name), ..case })
        })
        .collect()
}
