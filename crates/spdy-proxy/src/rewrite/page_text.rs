//! The identity of a page's text. It is a line of the note that is stored with the page.
//!
//! An origin may give each client another text at one URL, and confirm each by its validator (`no-cache`). So what one text names is used
//! only with that text. The prefetcher remembers the identity with the names, and compares it with that of the response.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// The first word of the line.
const TEXT: &str = "text";

/// Numbers the texts of pages.
#[derive(Debug, Default)]
pub(crate) struct PageTexts(AtomicU64);

impl PageTexts {
    /// The line for a new text, which arrives at `now`, with a line feed before it. The time distinguishes it from the texts of other
    /// processes, which may be on the disk or in the shared tier.
    pub(crate) fn new_line(&self, now: SystemTime) -> String {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let since = now.duration_since(UNIX_EPOCH).unwrap_or_default();
        format!("\n{TEXT} {:x}-{number:x}", since.as_nanos())
    }
}

/// The identity in `note`.
pub(crate) fn id_of(note: &[u8]) -> Option<&str> {
    let mut lines = std::str::from_utf8(note).ok()?.lines();
    lines.find_map(|line| line.strip_prefix(TEXT)?.strip_prefix(' '))
}

/// The line in `note`, with a line feed before it; empty without one.
pub(crate) fn line_of(note: &[u8]) -> String {
    id_of(note).map_or_else(String::new, |id| format!("\n{TEXT} {id}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_is_read_from_the_note_and_differs_for_each_text() {
        let texts = PageTexts::default();
        let [first, second] = [(); 2].map(|()| texts.new_line(UNIX_EPOCH));
        assert_ne!(first, second);
        let note = ["page", &first, "\nconnect https://a.test"].concat();
        assert_eq!(id_of(note.as_bytes()), Some("0-0"));
        assert_eq!(line_of(note.as_bytes()), first);
        for without in ["", "page", "text", "page\ntextual a", "\u{ff}"] {
            assert_eq!(id_of(without.as_bytes()), None, "{without:?}");
            assert_eq!(line_of(without.as_bytes()), "");
        }
    }
}
