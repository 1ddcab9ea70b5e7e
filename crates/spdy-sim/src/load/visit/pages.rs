//! The pages of a visit, each with those before it, and servers that have the recordings of all.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use spdy_page::replica::{Exchange, Replica};

use crate::load::Page;
use crate::load::page::site_of;

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
        let new_site = || site_of(&replica, &think_times);
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
