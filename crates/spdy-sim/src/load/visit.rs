//! A visit: pages one after the other, each with the connections, names and cache that the earlier ones left.
//!
//! ```text
//!   home ── pause ── article ── pause ── checkout       one client, and one server at each address
//!     │                 │                   │
//!   a load like      a load after        a load after
//!   any other        home                home and article
//! ```
//!
//! Each page of a visit is a [`Page`] that loads the earlier ones first, and its result is that of its own load alone. So each can be
//! repeated without the others, and a page is loaded alike in a race, an experiment, and any clock.
//!
//! - **Servers** respond with the recordings of all pages. If pages recorded different responses to one request, the first is sent.
//! - **Cache**: what the earlier pages received, at its age since then, by the rules of [`client_cache`](super::client_cache).
//! - **Connections** stay open until one side closes them as idle.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use spdy_clock::Instant;
use spdy_page::replica::{Exchange, Replica};
use spdy_server::site::Site;

use crate::load::page::{RequestKey, key_of};
use crate::load::{Page, WaterfallRow};

/// Longest pause between two pages.
pub const MAX_PAUSE: Duration = Duration::from_secs(600);

/// Maximum number of pages: each has the exchanges of all.
pub const MAX_PAGES: usize = 10;

/// The pages that a client has loaded before a page, in this order, and the pause after each.
#[derive(Clone, Default)]
pub struct EarlierPages {
    /// Pages of the same visit.
    pub pages: Vec<Arc<Page>>,
    /// From the end of the load of each to the next navigation.
    pub pause: Duration,
}

/// Checks the number of pages of a visit.
///
/// # Errors
///
/// Fewer than two, or more than [`MAX_PAGES`].
pub fn check_page_count(count: usize) -> Result<(), String> {
    match (2..=MAX_PAGES).contains(&count) {
        true => Ok(()),
        false => Err(format!("a visit has 2 to {MAX_PAGES} pages, found {count}")),
    }
}

/// Makes a visit of `pages`, with `pause` from the end of each load to the next navigation.
///
/// # Panics
///
/// If `pause` is longer than [`MAX_PAUSE`], or there are more than [`MAX_PAGES`].
#[must_use]
pub fn visit(pages: Vec<Page>, pause: Duration) -> Vec<Arc<Page>> {
    assert!(
        pause <= MAX_PAUSE,
        "pause of {pause:?}: at most {MAX_PAUSE:?}"
    );
    assert!(
        pages.len() <= MAX_PAGES,
        "{} pages: at most {MAX_PAGES}",
        pages.len()
    );
    // The earliest date; unknown if that of a page is, because ages are differences of dates.
    let dates = pages.iter().map(|page| page.replica().recorded);
    let began = dates.collect::<Option<Vec<_>>>();
    let began = began.and_then(|dates| dates.into_iter().min());
    let (mut exchanges, mut offsets, mut think_times) = (Vec::new(), Vec::new(), Vec::new());
    for page in &pages {
        offsets.push(exchanges.len());
        think_times.extend_from_slice(page.think_times());
        exchanges.extend(on_clock_of(began, page.replica()));
    }
    let own_hosts: BTreeSet<String> = pages.iter().flat_map(|it| it.own_hosts().clone()).collect();
    let mut site = None;
    let mut visited: Vec<Arc<Page>> = Vec::new();
    for (page, offset) in pages.into_iter().zip(offsets) {
        let replica = Replica {
            start: offset + page.replica().start,
            exchanges: exchanges.clone(),
            recorded: began,
            ..page.replica().clone()
        };
        let new_site = || Arc::new(Site::with_think_times(&replica, &think_times));
        let site = site.get_or_insert_with(new_site);
        let earlier = EarlierPages {
            pages: visited.clone(),
            pause,
        };
        let page = page.in_visit(replica, offset, site.clone(), think_times.clone(), earlier);
        visited.push(Arc::new(page.with_own_hosts(own_hosts.clone())));
    }
    visited
}

/// The exchanges of `replica`, with starts since `began`.
fn on_clock_of(began: Option<Timestamp>, replica: &Replica) -> impl Iterator<Item = Exchange> {
    let later = began.zip(replica.recorded);
    let later = later.map(|(began, recorded)| recorded.duration_since(began));
    let later = later.and_then(|later| Duration::try_from(later).ok());
    replica.exchanges.iter().map(move |exchange| Exchange {
        started: exchange.started.zip(later).map(|(at, later)| at + later),
        ..exchange.clone()
    })
}

/// What the earlier pages of a visit left in the client, besides its connections and names.
#[derive(Debug, Default)]
pub(crate) struct VisitState {
    /// For each request the exchange with the stored response, and when it was received.
    received: BTreeMap<RequestKey, (usize, Instant)>,
    /// Hosts that have responded, so that a browser knows their protocols.
    hosts: BTreeSet<String>,
    /// Time since the start of the visit.
    pub(crate) elapsed: Duration,
}

impl VisitState {
    /// The exchange with the stored response to the request of `exchange`, and when it was received.
    pub(crate) fn stored(&self, exchange: &Exchange) -> Option<(usize, Instant)> {
        self.received.get(&key_of(exchange)).copied()
    }

    /// True if `host` has responded.
    pub(crate) fn has_responded(&self, host: &str) -> bool {
        self.hosts.contains(host)
    }

    /// Adds the responses of a load of `page`, whose `rows` have the numbers of their nodes. Those of `failed` nodes are not whole.
    pub(crate) fn extend<'a>(
        &mut self,
        page: &Page,
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
            self.hosts.insert(host.to_owned());
        }
    }
}
