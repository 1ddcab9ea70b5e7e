//! Results of rewriting style sheets, proxied ones and the site's own. A page that pins a sheet by a hash can then pin the rewritten text.
//!
//! ```text
//! sheet's text ──▶ digests ──┐
//!      rewritten ──▶ digests ┴▶ remembered by URL and rules ◀── a page that names the sheet with `integrity`
//! ```
//!
//! The result of rewriting a sheet is stored with it, so it is known again when the sheet comes from the disk or the shared tier.
//!
//! The same text under the same rules always gives the same result, so an entry is valid while the host serves what the page pins. If the
//! host serves anything else, the browser refuses it as it would without the proxy. A proxied sheet that was not fetched yet stays at its
//! host. One of the site's own is requested unchanged. Both are fetched for the next page that names them.

use std::collections::{BTreeMap, VecDeque};

use parking_lot::Mutex;
use spdy_cache::stored::Stored;
use spdy_rewrite::reference::integrity::{self, Digests, IntegrityState};
use spdy_rewrite::rules::Rules;
use url::Url;

use crate::request::proxy_request::ProxyRequest;

/// The first word of a note's line with the result of rewriting a sheet.
const SHEET: &str = "sheet";
/// The number of sheets that are remembered, the latest.
const MAX_STYLESHEETS: usize = 4096;

/// A sheet as its host has it, and as it is served.
#[derive(Clone, Debug)]
pub(crate) struct StylesheetResult {
    pub(crate) original: Digests,
    pub(crate) served: Digests,
}

impl StylesheetResult {
    /// Whether it is served without a change.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.original == self.served
    }

    /// The line of the note that is stored with it, with a line feed before it.
    pub(crate) fn line(&self) -> String {
        format!(
            "\n{SHEET} {} {}",
            self.original.to_token(),
            self.served.to_token()
        )
    }

    /// Parses that line of a note.
    fn parse_note(note: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(note).ok()?.lines().skip(1);
        lines.find_map(|line| {
            let (original, served) = line.strip_prefix(SHEET)?.trim_start().split_once(' ')?;
            Some(Self {
                original: Digests::parse_token(original)?,
                served: Digests::parse_token(served)?,
            })
        })
    }
}

/// All results.
#[derive(Debug, Default)]
pub(crate) struct StylesheetIndex(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    results: BTreeMap<String, StylesheetResult>,
    order: VecDeque<String>,
}

impl StylesheetIndex {
    /// Records the result for the sheet at `url` under `rules`.
    pub(crate) fn record(&self, rules: &Rules, url: &Url, result: StylesheetResult) {
        let name = name(rules, url);
        let mut table = self.0.lock();
        if table.results.insert(name.clone(), result).is_some() {
            return;
        }
        table.order.push_back(name);
        if table.order.len() > MAX_STYLESHEETS
            && let Some(oldest) = table.order.pop_front()
        {
            table.results.remove(&oldest);
        }
    }

    /// `stored`, from the disk or the shared tier, is the response to `request`: if it is a sheet, its note has the result.
    pub(crate) fn record_stored(&self, request: &ProxyRequest, stored: &Stored) {
        if let Some(result) = StylesheetResult::parse_note(stored.note())
            && let Some(url) = request.client_url()
        {
            self.record(&request.site.rules, &url, result);
        }
    }

    /// What is known under `rules` of the sheet at `url`, which a page pins by `metadata`.
    pub(crate) fn integrity_state(
        &self,
        rules: &Rules,
        url: &Url,
        metadata: &str,
    ) -> IntegrityState {
        let table = self.0.lock();
        match table.results.get(&name(rules, url)) {
            Some(result) => integrity::integrity_state(metadata, &result.original, &result.served),
            None => IntegrityState::Unknown,
        }
    }
}

/// The key of the sheet at `url`. The tag of rules is unique to them and to their site.
fn name(rules: &Rules, url: &Url) -> String {
    format!("{} {}", rules.tag(), &url[..url::Position::AfterQuery])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stylesheet_note_round_trips() {
        let became = StylesheetResult {
            original: Digests::of(b"hello"),
            served: Digests::of(b"hello, moved"),
        };
        for first in ["", "https://cdn.test/a.css https://cdn.test/b.css"] {
            let note = [first, &became.line()].concat();
            let read =
                StylesheetResult::parse_note(note.as_bytes()).expect("the note has a result");
            assert_eq!(read.original, became.original);
            assert_eq!(read.served, became.served);
        }
        for nothing in [
            "",
            "page",
            "sheet AA AA",
            "\nsheet AA AA",
            "\nsheet",
            "\npin a b c",
        ] {
            assert!(
                StylesheetResult::parse_note(nothing.as_bytes()).is_none(),
                "{nothing:?}"
            );
        }
    }

    #[test]
    fn latest_stylesheets_are_kept_per_rules() {
        let site = Url::parse("https://www.site.test/").expect("a URL");
        let other = Url::parse("https://www.other.test/").expect("a URL");
        let rules =
            |site| Rules::compile(site, &spdy_rewrite::rules::config::Config::default(), None);
        let (rules, others) = (
            rules(&site).expect("the rules are valid"),
            rules(&other).expect("the rules are valid"),
        );
        let sheets = StylesheetIndex::default();
        let url =
            |at: usize| Url::parse(&format!("https://cdn.test/{at}.css#fragment")).expect("a URL");
        let became = StylesheetResult {
            original: Digests::of(b"hello"),
            served: Digests::of(b"hello, moved"),
        };
        for at in 0..=MAX_STYLESHEETS {
            sheets.record(&rules, &url(at), became.clone());
            sheets.record(&rules, &url(at), became.clone());
        }
        let hello = "sha256-LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=";
        let pinned = |rules, at| sheets.integrity_state(rules, &url(at), hello);
        assert_eq!(pinned(&rules, 0), IntegrityState::Unknown);
        assert!(matches!(pinned(&rules, 1), IntegrityState::Rewritten(_)));
        assert!(matches!(
            pinned(&rules, MAX_STYLESHEETS),
            IntegrityState::Rewritten(_)
        ));
        assert_eq!(
            pinned(&others, 1),
            IntegrityState::Unknown,
            "another site's"
        );
    }
}
