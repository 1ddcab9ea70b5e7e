//! Notes on everything that an import omitted, changed or made up.

use std::collections::BTreeMap;
use std::fmt;

/// The reason for omitting WebSockets.
pub const WEBSOCKETS: &str = "WebSockets";
/// The reason for omitting responses of the page's own service worker, which no server sent.
pub const FROM_SERVICE_WORKER: &str = "from a service worker";

/// The report of one import.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ImportNotes {
    /// The format of the file, in words: `HAR 1.2 by WebInspector`.
    pub format: String,
    /// Number of pages in the file, of which one is imported; 0 if its format has only one page a file.
    pub pages: usize,
    /// Number of imported exchanges.
    pub exchanges: usize,
    /// Bodies whose bytes were in the file.
    pub real_bodies: usize,
    /// Synthetic bodies of the recorded size.
    pub filler_bodies: usize,
    /// Skipped exchanges, counted by reason.
    pub skipped: BTreeMap<String, usize>,
    /// Other remarks for a person, one sentence each.
    pub remarks: Vec<String>,
}

impl ImportNotes {
    pub(crate) fn new(format: impl Into<String>) -> Self {
        Self {
            format: format.into(),
            ..Self::default()
        }
    }

    pub(crate) fn skip(&mut self, reason: &str) {
        *self.skipped.entry(reason.to_owned()).or_default() += 1;
    }

    pub(crate) fn remark(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.remarks.contains(&sentence) {
            self.remarks.push(sentence);
        }
    }

    /// Counts `exchanges` and their bodies.
    pub(crate) fn count(&mut self, exchanges: &[crate::replica::Exchange]) {
        self.exchanges = exchanges.len();
        self.real_bodies = exchanges
            .iter()
            .filter(|exchange| exchange.body_is_real)
            .count();
        self.filler_bodies = self.exchanges - self.real_bodies;
    }

    /// The reasons for skipping, each with its count, on one line; empty if there are none.
    pub fn skipped_line(&self) -> String {
        let reasons: Vec<_> = self
            .skipped
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        reasons.join(", ")
    }
}

impl fmt::Display for ImportNotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            format,
            exchanges,
            real_bodies,
            filler_bodies,
            ..
        } = self;
        write!(
            f,
            "{format}: {exchanges} exchanges, {real_bodies} bodies real, {filler_bodies} filler"
        )?;
        if !self.skipped.is_empty() {
            write!(f, "; skipped {}", self.skipped_line())?;
        }
        self.remarks
            .iter()
            .try_for_each(|remark| write!(f, "; {remark}"))
    }
}
