//! A wait that ends by what a plain put delivers. NVSHMEM's text and examples rely on it; OpenSHMEM 1.6 promises it of signals
//! and atomics only.

use super::report::LintKind;
use super::{Known, Notice, Rule};
use crate::race::How;

#[derive(Debug, Default)]
pub(super) struct PlainData;

impl Rule for PlainData {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        let Notice::Ends { agent, word } = *notice else { return };
        let Some(waiting) = known.waits.get(&agent).filter(|waiting| !waiting.signal) else { return };
        let news = known.races.news(agent, waiting.pe, word);
        if let Some((writer, _)) = news.last().filter(|(_, how)| *how == How::Deliver) {
            let site = known.races.site(agent, waiting.asked);
            known.found.note(LintKind::WaitOnPlainData, *writer, site, None);
        }
    }
}
