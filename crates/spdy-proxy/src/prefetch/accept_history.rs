//! The `Accept` that browsers send, by browser and kind of resource: so a prefetch sends the `Accept` that the browser will send.
//!
//! The `Accept` of a page's request does not apply to images. An origin that chooses the image format by it would give a prefetch another
//! format. A browser sends the same value each time, so its last value predicts the next.

use std::collections::{BTreeMap, VecDeque};

use http::{HeaderMap, HeaderValue, header};
use parking_lot::Mutex;
use spdy_rewrite::kind::Kind;

/// The number of entries. The oldest entry is evicted.
const MAX_ENTRIES: usize = 1024;
/// The longest `User-Agent` and `Accept` that are recorded, in bytes.
const MAX_BYTES: usize = 512;

/// The last `Accept` of each browser and kind.
#[derive(Debug, Default)]
pub(crate) struct AcceptHistory(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// By `User-Agent` and kind.
    by_browser: BTreeMap<(Vec<u8>, Kind), HeaderValue>,
    order: VecDeque<(Vec<u8>, Kind)>,
}

impl AcceptHistory {
    /// Records the `Accept` in `fields` of a request for a resource of this kind.
    pub(crate) fn record(&self, fields: &HeaderMap, kind: Kind) {
        let Some((browser, accept)) = browser(fields).zip(fields.get(header::ACCEPT)) else {
            return;
        };
        if browser.len() > MAX_BYTES || accept.len() > MAX_BYTES {
            return;
        }
        let mut table = self.0.lock();
        let name = (browser.to_vec(), kind);
        if let Some(current) = table.by_browser.get_mut(&name) {
            if current != accept {
                current.clone_from(accept);
            }
            return;
        }
        if table.order.len() >= MAX_ENTRIES
            && let Some(first) = table.order.pop_front()
        {
            table.by_browser.remove(&first);
        }
        table.order.push_back(name.clone());
        table.by_browser.insert(name, accept.clone());
    }

    /// The `Accept` that the browser with these fields will send for this kind of resource, if it is known.
    pub(crate) fn lookup(&self, fields: &HeaderMap, kind: Kind) -> Option<HeaderValue> {
        let name = (browser(fields)?.to_vec(), kind);
        let table = self.0.lock();
        table.by_browser.get(&name).cloned()
    }
}

fn browser(fields: &HeaderMap) -> Option<&[u8]> {
    fields.get(header::USER_AGENT).map(HeaderValue::as_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn browser_headers(browser: &str, accept: &str) -> HeaderMap {
        let mut fields = HeaderMap::new();
        fields.insert(header::USER_AGENT, browser.parse().expect("ASCII"));
        fields.insert(header::ACCEPT, accept.parse().expect("ASCII"));
        fields
    }

    #[test]
    fn last_accept_of_browser_and_kind_is_used() {
        let history = AcceptHistory::default();
        let browser = browser_headers("Browser/1", "image/avif");
        assert_eq!(history.lookup(&browser, Kind::Image), None);
        history.record(&browser_headers("Browser/1", "image/webp"), Kind::Image);
        history.record(&browser, Kind::Image);
        history.record(&browser_headers("Browser/1", "text/css"), Kind::Style);
        history.record(&browser_headers("Browser/2", "*/*"), Kind::Image);
        let last_accept = |kind| {
            history
                .lookup(&browser, kind)
                .map(|value| value.as_bytes().to_vec())
        };
        assert_eq!(last_accept(Kind::Image), Some(b"image/avif".to_vec()));
        assert_eq!(last_accept(Kind::Style), Some(b"text/css".to_vec()));
        assert_eq!(last_accept(Kind::Font), None);
    }

    #[test]
    fn oldest_entry_is_evicted_and_long_values_are_ignored() {
        let history = AcceptHistory::default();
        for browser in 0..=MAX_ENTRIES {
            history.record(
                &browser_headers(&format!("Browser/{browser}"), "*/*"),
                Kind::Image,
            );
        }
        let has_entry = |browser: &str| {
            history
                .lookup(&browser_headers(browser, ""), Kind::Image)
                .is_some()
        };
        assert!(!has_entry("Browser/0") && has_entry("Browser/1"));
        assert!(has_entry(&format!("Browser/{MAX_ENTRIES}")));
        assert_eq!(history.0.lock().by_browser.len(), MAX_ENTRIES);
        for (browser, accept) in [(MAX_BYTES + 1, 1), (1, MAX_BYTES + 1)] {
            let fields = browser_headers(&"b".repeat(browser), &"a".repeat(accept));
            history.record(&fields, Kind::Image);
            assert_eq!(history.lookup(&fields, Kind::Image), None);
        }
    }
}
