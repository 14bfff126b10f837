//! A signal that is waited for by the plain wait. Signals are promised to be seen by the wait for signals.

use super::report::LintKind;
use super::{Known, Notice, Rule};
use crate::race::How;

#[derive(Debug, Default)]
pub(super) struct PlainWait;

impl Rule for PlainWait {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        let Notice::Ends { agent, word } = *notice else { return };
        let Some(waiting) = known.waits.get(&agent).filter(|waiting| !waiting.signal) else { return };
        let news = known.races.news(agent, waiting.pe, word);
        let is_signal = |how: How, call: &str| how == How::AtomicUpdate && call.contains("signal");
        if let Some((writer, _)) = news.last().filter(|(writer, how)| is_signal(*how, writer.call)) {
            let site = known.races.site(agent, waiting.asked);
            known.found.note(LintKind::PlainWaitOnSignal, *writer, site, None);
        }
    }
}
