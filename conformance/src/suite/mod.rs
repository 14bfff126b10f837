//! The cases, by chapter of the API.

use onesided::Backend;

use crate::case::Case;

mod order;

/// Every case of the suite, in the order of the chapters.
pub fn cases<B: Backend>() -> Vec<Case<B>> {
    let chapters: [(&str, Vec<Case<B>>); 1] = [("order", order::cases())];
    chapters
        .into_iter()
        .flat_map(|(chapter, cases)| {
            cases.into_iter().map(move |case| Case { name: format!("{chapter}/{}", case.name), ..case })
        })
        .collect()
}
