//! A signal that is waited for by the plain wait. Signals are promised to be seen by the wait for signals.

use super::report::{LintKind, LintSite};
use super::{Known, Notice, Rule};
use crate::race::How;
use crate::race::call::signals;

#[derive(Debug, Default)]
pub(super) struct PlainWait;

impl Rule for PlainWait {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        let Notice::Ends { agent, word } = *notice else { return };
        let Some(waiting) = known.waits.get(&agent).filter(|waiting| !waiting.signal) else { return };
        let news = known.races.news(agent, waiting.pe, word);
        let is_signal = |(writer, how): &&(LintSite, How)| *how == How::AtomicUpdate && signals(writer.call);
        if let Some((writer, _)) = news.last().filter(is_signal) {
            let site = known.races.site(agent, waiting.asked);
            known.found.note(LintKind::PlainWaitOnSignal, *writer, site, None);
        }
    }
}
