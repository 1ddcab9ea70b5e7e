//! What became of the sheets that were moved, so that a page which pins one by a hash can pin what is served of it.
//!
//! ```text
//! sheet's text ──▶ digests ──┐
//!      rewritten ──▶ digests ┴▶ remembered by URL and rules ◀── a page that names the sheet with `integrity`
//! ```
//!
//! The same text under the same rules is always rewritten to the same text: what is remembered here holds as long as the host serves
//! what the page pins, and if it serves anything else, the browser refuses it as it would have without us. A sheet that nobody has
//! fetched yet stays where it is, and is fetched for the next page that names it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use spdy_rewrite::integrity::{self, Digests, KnownSheets, Pinned};
use spdy_rewrite::rules::Rules;
use url::Url;

/// Sheets that are remembered, the latest.
const REMEMBERED: usize = 4096;

/// A sheet as its host has it, and as it is served.
#[derive(Clone, Debug)]
pub(crate) struct Became {
    pub(crate) original: Digests,
    pub(crate) served: Digests,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Sheets(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    became: BTreeMap<String, Became>,
    order: VecDeque<String>,
}

impl Sheets {
    /// The sheet at `url` became this under `rules`.
    pub(crate) fn note(&self, rules: &Rules, url: &Url, became: Became) {
        let name = name(rules, url);
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.became.insert(name.clone(), became).is_some() {
            return;
        }
        table.order.push_back(name);
        if table.order.len() > REMEMBERED
            && let Some(oldest) = table.order.pop_front()
        {
            table.became.remove(&oldest);
        }
    }

    fn pinned(&self, name: &str, metadata: &str) -> Pinned {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match table.became.get(name) {
            Some(became) => integrity::pinned(metadata, &became.original, &became.served),
            None => Pinned::Unknown,
        }
    }
}

/// The tag of rules is theirs and their site's alone.
fn name(rules: &Rules, url: &Url) -> String {
    format!("{} {}", rules.tag(), &url[..url::Position::AfterQuery])
}

/// [`Sheets`], for the pages of one site.
#[derive(Debug)]
pub(crate) struct OfSite {
    pub(crate) proxy: std::sync::Arc<crate::proxy::Proxy>,
    pub(crate) rules: std::sync::Arc<Rules>,
}

impl KnownSheets for OfSite {
    fn pinned(&self, url: &Url, metadata: &str) -> Pinned {
        self.proxy.sheets.pinned(&name(&self.rules, url), metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_latest_sheets_are_remembered_each_by_its_rules() {
        let site = Url::parse("https://www.site.test/").expect("a URL");
        let other = Url::parse("https://www.other.test/").expect("a URL");
        let rules = |site| Rules::compile(site, &spdy_rewrite::config::Config::default(), None);
        let (rules, others) = (rules(&site).expect("rules"), rules(&other).expect("rules"));
        let sheets = Sheets::default();
        let url =
            |at: usize| Url::parse(&format!("https://cdn.test/{at}.css#fragment")).expect("a URL");
        let became = Became {
            original: Digests::of(b"hello"),
            served: Digests::of(b"hello, moved"),
        };
        for at in 0..=REMEMBERED {
            sheets.note(&rules, &url(at), became.clone());
            sheets.note(&rules, &url(at), became.clone());
        }
        let hello = "sha256-LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=";
        let pinned = |rules, at| sheets.pinned(&name(rules, &url(at)), hello);
        assert_eq!(pinned(&rules, 0), Pinned::Unknown);
        assert!(matches!(pinned(&rules, 1), Pinned::Rewritten(_)));
        assert!(matches!(pinned(&rules, REMEMBERED), Pinned::Rewritten(_)));
        assert_eq!(pinned(&others, 1), Pinned::Unknown, "another site's");
    }
}
