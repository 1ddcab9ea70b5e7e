//! Records the facts that a stored page was rewritten with, beside its text and the rules. It is rewritten again when more is known.
//!
//! ```text
//!  a page pins a sheet, and what is served of that is not known yet ──▶ the sheet stays, and the page is kept with a note of it
//!  the sheet was fetched ──▶ the next request for the page gets the whole from its origin, once, and the page is rewritten
//!  the page is stale ──────▶ the same, in place of a condition that a 304 would answer
//! ```
//!
//! The note has a line for each fact: `pin URL ANSWER METADATA` and `connect ORIGIN`. A fact that is no longer known changes nothing: what
//! was written by it is still right.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::HeaderMap;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::integrity::IntegrityState;
use spdy_rewrite::referrer::ReferrerScope;
use spdy_rewrite::response::rewritten_head;
use spdy_rewrite::rules::verdict::SkipReason;
use url::Url;

/// Pinned sheets of a page that are noted with it.
const MAX_PINS: usize = 64;
/// Hosts that a page hints to connect to and that are noted with it.
const MAX_PRECONNECTS: usize = 16;
/// The longest line that is noted, bytes.
const MAX_LINE_BYTES: usize = 1024;

/// The words of a note.
const PIN: &str = "pin";
const CONNECT: &str = "connect";
const UNKNOWN: &str = "unknown";
const UNTOUCHED: &str = "untouched";
const CSP_GUARDED: &str = "guarded";

/// The facts of one page.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct RewriteFacts {
    pins: Vec<PinnedStylesheet>,
    /// Origins of which it was not known that all the page names there is moved.
    preconnects: Vec<String>,
}

/// A sheet that the page pins.
#[derive(Clone, Debug, Eq, PartialEq)]
struct PinnedStylesheet {
    url: String,
    metadata: String,
    /// The word for what was known of it: one of those above, or the hash of what is served.
    answer: String,
}

impl PinnedStylesheet {
    fn line(&self) -> String {
        [PIN, &self.url, &self.answer, &self.metadata].join(" ")
    }
}

impl RewriteFacts {
    /// The page pins the sheet at `url` by `metadata`, of which this is known; as one that is not moved if it is guarded.
    pub(crate) fn pin(
        &mut self,
        url: &Url,
        metadata: &str,
        known: &IntegrityState,
        is_guarded: bool,
    ) {
        let words: Vec<&str> = metadata.split_ascii_whitespace().collect();
        let pin = PinnedStylesheet {
            url: url[..url::Position::AfterQuery].to_owned(),
            metadata: words.join(" "),
            answer: answer(known, is_guarded).to_owned(),
        };
        let is_it =
            |other: &PinnedStylesheet| other.url == pin.url && other.metadata == pin.metadata;
        let is_new = !self.pins.iter().any(is_it);
        if is_new && self.pins.len() < MAX_PINS && pin.line().len() <= MAX_LINE_BYTES {
            self.pins.push(pin);
        }
    }

    /// The page hints to connect to `origin`, and it is not known that it need not.
    pub(crate) fn add_preconnect(&mut self, origin: String) {
        let is_new = !self.preconnects.contains(&origin);
        if is_new && self.preconnects.len() < MAX_PRECONNECTS && origin.len() <= MAX_LINE_BYTES {
            self.preconnects.push(origin);
        }
    }

    /// The lines of a note, each with a line feed before it.
    pub(crate) fn lines(&self) -> String {
        let pins = self.pins.iter().map(PinnedStylesheet::line);
        let connects = self
            .preconnects
            .iter()
            .map(|origin| [CONNECT, origin].join(" "));
        pins.chain(connects)
            .flat_map(|line| ["\n".to_owned(), line])
            .collect()
    }

    /// Those lines of a note, which follow its first.
    pub(crate) fn note_lines(note: &[u8]) -> &[u8] {
        let end = note.iter().position(|byte| *byte == b'\n');
        end.map_or(&[], |end| &note[end..])
    }

    /// Reads a note; a line without a fact is ignored.
    pub(crate) fn parse(note: &[u8]) -> Self {
        let mut made_by = Self::default();
        let lines = std::str::from_utf8(Self::note_lines(note)).unwrap_or_default();
        for line in lines.lines() {
            let mut words = line.splitn(4, ' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some(PIN), Some(url), Some(answer), Some(metadata)) => {
                    made_by.pins.push(PinnedStylesheet {
                        url: url.to_owned(),
                        metadata: metadata.to_owned(),
                        answer: answer.to_owned(),
                    });
                }
                (Some(CONNECT), Some(origin), None, None) => {
                    made_by.preconnects.push(origin.to_owned());
                }
                _ => {}
            }
        }
        made_by
    }

    /// The number of what is known by now, if the page would be rewritten otherwise by it; what only spares a connection counts if it
    /// `is_stale`.
    ///
    /// `known` gives what is known of a sheet that is pinned by some metadata, `all_rewritten` whether all references to a host are
    /// rewritten.
    pub(crate) fn would_change(
        &self,
        known: impl Fn(&Url, &str) -> (IntegrityState, bool),
        all_rewritten: impl Fn(&Url) -> Option<bool>,
        is_stale: bool,
    ) -> Option<u64> {
        let mut facts = DefaultHasher::new();
        let mut changes = false;
        for pin in &self.pins {
            let Ok(url) = Url::parse(&pin.url) else {
                continue;
            };
            let (state, is_guarded) = known(&url, &pin.metadata);
            let answer = answer(&state, is_guarded);
            changes |= answer != UNKNOWN && answer != pin.answer;
            answer.hash(&mut facts);
        }
        for origin in self.preconnects.iter().filter(|_| is_stale) {
            let url = Url::parse(origin).ok();
            let goes = url.and_then(|url| all_rewritten(&url)) == Some(true);
            changes |= goes;
            goes.hash(&mut facts);
        }
        changes.then(|| facts.finish())
    }

    /// Whether lines of a note have one about a pinned sheet.
    pub(crate) fn has_pins(lines: &[u8]) -> bool {
        let mut lines = lines.split(|byte| *byte == b'\n');
        lines.any(|line| line.starts_with(PIN.as_bytes()))
    }

    /// Gives the ETag of a page that was rewritten by more than its text and the rules a mark of that.
    fn mark_etag(&self, headers: &mut HeaderMap) {
        let is_known = |pin: &&PinnedStylesheet| pin.answer != UNKNOWN;
        let known: Vec<String> = self
            .pins
            .iter()
            .filter(is_known)
            .map(PinnedStylesheet::line)
            .collect();
        if !known.is_empty() {
            rewritten_head::add_facts_to_etag(headers, known.join("\n").as_bytes());
        }
    }

    /// The sheets of which nothing is known.
    pub(crate) fn unknown_stylesheets(&self) -> impl Iterator<Item = Reference> {
        let unknown = self.pins.iter().filter(|pin| pin.answer == UNKNOWN);
        unknown.map(|pin| Reference {
            url: pin.url.clone(),
            kind: Kind::Style,
            // Browsers accept a pinned sheet of another host only with CORS.
            by_cors: true,
            cannot_preload: true,
            is_candidate: false,
            referrer_scope: ReferrerScope::All,
            outcome: Err(SkipReason::Integrity),
        })
    }
}

fn answer(known: &IntegrityState, is_guarded: bool) -> &str {
    match known {
        _ if is_guarded => CSP_GUARDED,
        IntegrityState::Unknown => UNKNOWN,
        IntegrityState::Unchanged => UNTOUCHED,
        IntegrityState::Rewritten(hash) => hash,
    }
}

/// Marks the ETag in `headers`, of a page stored with `note`, with the facts that it was rewritten by.
pub(crate) fn mark_etag(note: &[u8], headers: &mut HeaderMap) {
    if !RewriteFacts::note_lines(note).is_empty() {
        RewriteFacts::parse(note).mark_etag(headers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(at: usize) -> Url {
        Url::parse(&format!("https://cdn.test/{at}.css?v#f")).expect("a URL")
    }

    #[test]
    fn note_round_trips() {
        let mut made_by = RewriteFacts::default();
        made_by.pin(
            &url(1),
            " sha256-AA\n sha512-BB ",
            &IntegrityState::Unknown,
            false,
        );
        made_by.pin(
            &url(2),
            "sha256-AA",
            &IntegrityState::Rewritten("sha256-CC".to_owned()),
            false,
        );
        made_by.pin(&url(3), "sha256-AA", &IntegrityState::Unchanged, true);
        made_by.pin(
            &url(1),
            "sha256-AA sha512-BB",
            &IntegrityState::Unchanged,
            false,
        );
        made_by.add_preconnect("https://cdn.test".to_owned());
        made_by.add_preconnect("https://cdn.test".to_owned());
        let lines = made_by.lines();
        assert_eq!(
            lines,
            "\npin https://cdn.test/1.css?v unknown sha256-AA sha512-BB\
             \npin https://cdn.test/2.css?v sha256-CC sha256-AA\
             \npin https://cdn.test/3.css?v guarded sha256-AA\
             \nconnect https://cdn.test"
        );
        let note = ["page quiet 0", &lines].concat();
        assert_eq!(RewriteFacts::parse(note.as_bytes()), made_by);
        assert_eq!(RewriteFacts::note_lines(note.as_bytes()), lines.as_bytes());
        let unknown: Vec<String> = made_by.unknown_stylesheets().map(|it| it.url).collect();
        assert_eq!(unknown, ["https://cdn.test/1.css?v"]);
        for nothing in [
            "",
            "page",
            "page\npin\npin a\nconnect\nconnect a b\n",
            "page\n\u{0}",
        ] {
            assert_eq!(
                RewriteFacts::parse(nothing.as_bytes()),
                RewriteFacts::default(),
                "{nothing:?}"
            );
        }
    }

    #[test]
    fn note_lines_and_bytes_are_limited() {
        let mut made_by = RewriteFacts::default();
        for at in 0..=MAX_PINS {
            made_by.pin(&url(at), "sha256-AA", &IntegrityState::Unknown, false);
            made_by.add_preconnect(format!("https://{at}.test"));
        }
        assert_eq!(
            (made_by.pins.len(), made_by.preconnects.len()),
            (MAX_PINS, MAX_PRECONNECTS)
        );
        let mut long = RewriteFacts::default();
        let beside = "pin https://cdn.test/1.css?v unknown ".len();
        for (bytes, count) in [
            (MAX_LINE_BYTES - beside + 1, 0),
            (MAX_LINE_BYTES - beside, 1),
        ] {
            long.pin(&url(1), &"x".repeat(bytes), &IntegrityState::Unknown, false);
            assert_eq!(long.pins.len(), count);
        }
        long.add_preconnect("x".repeat(MAX_LINE_BYTES + 1));
        assert!(long.preconnects.is_empty());
    }
}
