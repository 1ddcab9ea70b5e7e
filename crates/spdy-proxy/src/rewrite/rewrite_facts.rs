//! Records the facts that a stored page was rewritten with, besides its text and the rules. When more is known, the page is rewritten
//! again.
//!
//! A page *pins* a style sheet if it names it with subresource integrity (`integrity=`). The URL of a pinned sheet may change only if the
//! hash of the sheet that is served instead is known, because the page must state it.
//!
//! ```text
//!  a page pins a sheet whose rewritten bytes are unknown ──▶ the reference is not changed, and the page is stored with a note of it
//!  the sheet was fetched ──▶ the next request for the page fetches the whole page from its origin, once, and rewrites it
//!  the page is stale ──────▶ the same, instead of a conditional request, whose response would be a 304
//! ```
//!
//! After its first line, which another module writes, the note has a line for each fact: `pin URL RESULT METADATA` or `connect ORIGIN`. A
//! fact that is no longer known does not cause a rewrite, because the page that was rewritten with it is still correct.

use std::hash::{DefaultHasher, Hash, Hasher};

use http::HeaderMap;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::integrity::IntegrityState;
use spdy_rewrite::referrer::ReferrerScope;
use spdy_rewrite::response::rewritten_head;
use spdy_rewrite::rules::verdict::SkipReason;
use url::Url;

/// Maximum number of pinned sheets that are noted for a page.
const MAX_PINS: usize = 64;
/// Maximum number of preconnect hints that are noted for a page.
const MAX_PRECONNECTS: usize = 16;
/// Longest line of a note, bytes.
const MAX_LINE_BYTES: usize = 1024;

/// The first word of a line about a pinned sheet.
const PIN: &str = "pin";
/// The first word of a line about a preconnect hint.
const CONNECT: &str = "connect";
/// RESULT: the sheet's rewritten bytes are not known.
const UNKNOWN: &str = "unknown";
/// RESULT: rewriting does not change the sheet.
const UNTOUCHED: &str = "untouched";
/// RESULT: the sheet's host is guarded by a content security policy (`spdy-rewrite/src/csp/guard.rs`), so the sheet is not served under
/// the site's name.
const CSP_GUARDED: &str = "guarded";

/// The facts of one page.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct RewriteFacts {
    pins: Vec<PinnedStylesheet>,
    /// Origins that the page hints to connect to. It was not known that all of the page's references to them are rewritten, which would
    /// make the hint unnecessary.
    preconnects: Vec<String>,
}

/// A style sheet that the page pins.
#[derive(Clone, Debug, Eq, PartialEq)]
struct PinnedStylesheet {
    url: String,
    metadata: String,
    /// What was known of the sheet: [`UNKNOWN`], [`UNTOUCHED`], [`CSP_GUARDED`], or the hash of the rewritten sheet.
    result: String,
}

impl PinnedStylesheet {
    fn format_line(&self) -> String {
        [PIN, &self.url, &self.result, &self.metadata].join(" ")
    }
}

impl RewriteFacts {
    /// Notes that the page pins the sheet at `url` with the integrity `metadata`, and the known `state` of the sheet. If it `is_guarded`,
    /// [`CSP_GUARDED`] is noted instead: the sheet stays at its host in any case.
    ///
    /// Only the first note of a sheet with the same metadata is kept, and nothing is noted beyond the limits of a note.
    pub(crate) fn add_pin(
        &mut self,
        url: &Url,
        metadata: &str,
        state: &IntegrityState,
        is_guarded: bool,
    ) {
        let words: Vec<&str> = metadata.split_ascii_whitespace().collect();
        let pin = PinnedStylesheet {
            url: url[..url::Position::AfterQuery].to_owned(),
            metadata: words.join(" "),
            result: result_word(state, is_guarded).to_owned(),
        };
        let is_same =
            |other: &PinnedStylesheet| other.url == pin.url && other.metadata == pin.metadata;
        let is_new = !self.pins.iter().any(is_same);
        if is_new && self.pins.len() < MAX_PINS && pin.format_line().len() <= MAX_LINE_BYTES {
            self.pins.push(pin);
        }
    }

    /// Notes that the page hints to connect to `origin`, because it was not known that the hint is unnecessary.
    pub(crate) fn add_preconnect(&mut self, origin: String) {
        let is_new = !self.preconnects.contains(&origin);
        if is_new && self.preconnects.len() < MAX_PRECONNECTS && origin.len() <= MAX_LINE_BYTES {
            self.preconnects.push(origin);
        }
    }

    /// Formats the lines of these facts, to be appended to the first line of a note. So each begins with a line feed, and none ends in one.
    pub(crate) fn format_lines(&self) -> String {
        let pins = self.pins.iter().map(PinnedStylesheet::format_line);
        let connects = self
            .preconnects
            .iter()
            .map(|origin| [CONNECT, origin].join(" "));
        pins.chain(connects)
            .flat_map(|line| ["\n".to_owned(), line])
            .collect()
    }

    /// The part of `note` that [`format_lines`](Self::format_lines) wrote: all after its first line.
    pub(crate) fn note_lines(note: &[u8]) -> &[u8] {
        let end = note.iter().position(|byte| *byte == b'\n');
        end.map_or(&[], |end| &note[end..])
    }

    /// Parses the facts in `note`. A line that is not a fact is ignored.
    pub(crate) fn parse(note: &[u8]) -> Self {
        let mut facts = Self::default();
        let lines = std::str::from_utf8(Self::note_lines(note)).unwrap_or_default();
        for line in lines.lines() {
            let mut words = line.splitn(4, ' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some(PIN), Some(url), Some(result_word), Some(metadata)) => {
                    facts.pins.push(PinnedStylesheet {
                        url: url.to_owned(),
                        metadata: metadata.to_owned(),
                        result: result_word.to_owned(),
                    });
                }
                (Some(CONNECT), Some(origin), None, None) => {
                    facts.preconnects.push(origin.to_owned());
                }
                _ => {}
            }
        }
        facts
    }

    /// A hash of the facts that are known now, if the page would be rewritten differently with them.
    ///
    /// `state_of` returns the known state of the sheet at a URL that is pinned with some metadata, and whether it is guarded. `all_rewritten`
    /// returns whether all of the page's references to an origin are rewritten. This only saves a connection, so it is compared only if the
    /// page `is_stale` and will be requested from its origin in any case.
    pub(crate) fn would_change(
        &self,
        state_of: impl Fn(&Url, &str) -> (IntegrityState, bool),
        all_rewritten: impl Fn(&Url) -> Option<bool>,
        is_stale: bool,
    ) -> Option<u64> {
        let mut hasher = DefaultHasher::new();
        let mut changes = false;
        for pin in &self.pins {
            let Ok(url) = Url::parse(&pin.url) else {
                continue;
            };
            let (state, is_guarded) = state_of(&url, &pin.metadata);
            let result_word = result_word(&state, is_guarded);
            changes |= result_word != UNKNOWN && result_word != pin.result;
            result_word.hash(&mut hasher);
        }
        for origin in self.preconnects.iter().filter(|_| is_stale) {
            let url = Url::parse(origin).ok();
            let is_unnecessary = url.and_then(|url| all_rewritten(&url)) == Some(true);
            changes |= is_unnecessary;
            is_unnecessary.hash(&mut hasher);
        }
        changes.then(|| hasher.finish())
    }

    /// Whether `lines` of a note have one about a pinned sheet.
    pub(crate) fn has_pins(lines: &[u8]) -> bool {
        let mut lines = lines.split(|byte| *byte == b'\n');
        lines.any(|line| line.starts_with(PIN.as_bytes()))
    }

    /// Adds the known facts about pinned sheets to the ETag: a page that is rewritten with other facts has another text.
    fn mark_etag(&self, headers: &mut HeaderMap) {
        let has_result = |pin: &&PinnedStylesheet| pin.result != UNKNOWN;
        let lines: Vec<String> = self
            .pins
            .iter()
            .filter(has_result)
            .map(PinnedStylesheet::format_line)
            .collect();
        if !lines.is_empty() {
            rewritten_head::add_facts_to_etag(headers, lines.join("\n").as_bytes());
        }
    }

    /// References to the pinned sheets of which nothing was known when the note was written, for the prefetcher. Only the URLs are the
    /// page's; the other fields have the values that make the prefetcher fetch a pinned sheet.
    pub(crate) fn unknown_stylesheets(&self) -> impl Iterator<Item = Reference> {
        let unknown = self.pins.iter().filter(|pin| pin.result == UNKNOWN);
        unknown.map(|pin| Reference {
            url: pin.url.clone(),
            kind: Kind::Style,
            // Browsers accept a pinned sheet of another host only with CORS.
            by_cors: true,
            cannot_preload: true,
            // Not one of several that the browser chooses from: those are not prefetched.
            is_candidate: false,
            referrer_scope: ReferrerScope::All,
            // The page was rewritten without it, for its integrity. The prefetcher fetches it for the next time.
            outcome: Err(SkipReason::Integrity),
        })
    }
}

/// The RESULT of a note for a pinned sheet.
fn result_word(state: &IntegrityState, is_guarded: bool) -> &str {
    match state {
        _ if is_guarded => CSP_GUARDED,
        IntegrityState::Unknown => UNKNOWN,
        IntegrityState::Unchanged => UNTOUCHED,
        IntegrityState::Rewritten(hash) => hash,
    }
}

/// Adds the facts in `note` to the ETag in `headers`, the headers of the page that is stored with this note.
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
        let mut facts = RewriteFacts::default();
        facts.add_pin(
            &url(1),
            " sha256-AA\n sha512-BB ",
            &IntegrityState::Unknown,
            false,
        );
        facts.add_pin(
            &url(2),
            "sha256-AA",
            &IntegrityState::Rewritten("sha256-CC".to_owned()),
            false,
        );
        facts.add_pin(&url(3), "sha256-AA", &IntegrityState::Unchanged, true);
        facts.add_pin(
            &url(1),
            "sha256-AA sha512-BB",
            &IntegrityState::Unchanged,
            false,
        );
        facts.add_preconnect("https://cdn.test".to_owned());
        facts.add_preconnect("https://cdn.test".to_owned());
        let lines = facts.format_lines();
        assert_eq!(
            lines,
            "\npin https://cdn.test/1.css?v unknown sha256-AA sha512-BB\
             \npin https://cdn.test/2.css?v sha256-CC sha256-AA\
             \npin https://cdn.test/3.css?v guarded sha256-AA\
             \nconnect https://cdn.test"
        );
        let note = ["page quiet 0", &lines].concat();
        assert_eq!(RewriteFacts::parse(note.as_bytes()), facts);
        assert_eq!(RewriteFacts::note_lines(note.as_bytes()), lines.as_bytes());
        let unknown: Vec<String> = facts
            .unknown_stylesheets()
            .map(|reference| reference.url)
            .collect();
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
        let mut facts = RewriteFacts::default();
        for at in 0..=MAX_PINS {
            facts.add_pin(&url(at), "sha256-AA", &IntegrityState::Unknown, false);
            facts.add_preconnect(format!("https://{at}.test"));
        }
        assert_eq!(
            (facts.pins.len(), facts.preconnects.len()),
            (MAX_PINS, MAX_PRECONNECTS)
        );
        let mut long = RewriteFacts::default();
        let beside = "pin https://cdn.test/1.css?v unknown ".len();
        for (bytes, count) in [
            (MAX_LINE_BYTES - beside + 1, 0),
            (MAX_LINE_BYTES - beside, 1),
        ] {
            long.add_pin(&url(1), &"x".repeat(bytes), &IntegrityState::Unknown, false);
            assert_eq!(long.pins.len(), count);
        }
        long.add_preconnect("x".repeat(MAX_LINE_BYTES + 1));
        assert!(long.preconnects.is_empty());
    }
}
