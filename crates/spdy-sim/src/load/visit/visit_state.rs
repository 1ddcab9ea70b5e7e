//! What the pages of a site left in the client during a visit, besides its connections and names.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use spdy_clock::Instant;
use spdy_page::replica::Exchange;

use crate::load::page::{RequestKey, key_of};
use crate::load::{Page, WaterfallRow};
use crate::options::Options;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct VisitState {
    /// For each request the exchange with the stored response, and when it was received.
    received: BTreeMap<RequestKey, (usize, Instant)>,
    /// Hosts that have responded to pages, and to frames of other sites, so that a browser knows their protocols there.
    hosts: [BTreeSet<String>; 2],
    /// Time since the start of the visit.
    pub(crate) elapsed: Duration,
}

impl VisitState {
    /// The exchange with the stored response to the request of `exchange`, and when it was received.
    pub(crate) fn stored(&self, exchange: &Exchange) -> Option<(usize, Instant)> {
        self.received.get(&key_of(exchange)).copied()
    }

    /// True if `host` has responded to a page, or to a frame that [is separate](Page::is_separate) from one.
    pub(crate) fn has_responded(&self, host: &str, is_separate: bool) -> bool {
        let hosts = &self.hosts[usize::from(is_separate)];
        hosts.contains(host)
    }

    /// Adds the responses of a load of `page`, whose `rows` have the numbers of their nodes. Those of `failed` nodes are not whole.
    pub(crate) fn extend<'a>(
        &mut self,
        page: &Page,
        options: &Options,
        rows: impl IntoIterator<Item = &'a (usize, WaterfallRow)>,
        failed: &BTreeSet<usize>,
    ) {
        for (node, row) in rows {
            if row.status == 0 || failed.contains(node) {
                continue;
            }
            let exchange = &page.replica().exchanges[page.graph().nodes[*node].exchange];
            let sent = page.sent_index(exchange);
            self.received.insert(key_of(exchange), (sent, row.done));
            let host = exchange.url.host_str().unwrap_or_default();
            let is_separate = page.is_separate(*node, options);
            self.hosts[usize::from(is_separate)].insert(host.to_owned());
        }
    }
}
