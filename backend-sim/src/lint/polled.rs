//! A signal that is read by a plain read: a compiler or a cache may show the old value for ever.

use super::report::LintKind;
use super::{Known, Notice, Rule};
use crate::race::How;
use crate::race::call::signals;

/// The longest read that looks at a word, and not at data that has one in it.
const WORD: usize = 8;

#[derive(Debug, Default)]
pub(super) struct Polled;

impl Rule for Polled {
    fn notice(&mut self, notice: &Notice<'_>, known: &mut Known<'_>) {
        let Notice::Read { agent, pe, span, asked } = *notice else { return };
        if span.len > WORD || known.races.mark(agent) > 0 {
            return;
        }
        let news = known.races.news(agent, pe, span);
        let signal = news.iter().find(|(site, how)| *how == How::AtomicUpdate && signals(site.call));
        if let Some((writer, _)) = signal {
            let site = known.races.site(agent, asked);
            known.found.note(LintKind::SignalPolled, *writer, site, None);
        }
    }
}
