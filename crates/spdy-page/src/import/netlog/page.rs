//! Selects the requests of one page from a log.

use std::collections::BTreeSet;

use super::log::{Hop, Log};
use crate::error::OpenError;
use crate::import::devtools::Observations;
use crate::import::notes::ImportNotes;
use crate::import::result::ImportOptions;

/// One page of the log.
pub(super) struct LogPage {
    /// Milliseconds of the log's clock.
    pub(super) from: f64,
    pub(super) until: f64,
    /// Its URL after redirects.
    pub(super) url: String,
    /// Its sites in partition keys.
    pub(super) sites: BTreeSet<String>,
}

impl LogPage {
    pub(super) fn choose(
        log: &Log,
        options: &ImportOptions,
        observations: Option<&Observations>,
        notes: &mut ImportNotes,
    ) -> Result<Self, OpenError> {
        let is_main = |legs: &&Vec<Hop>| legs.first().is_some_and(|leg| leg.is_main_frame);
        let mut mains: Vec<&Vec<Hop>> = log
            .requests
            .values()
            .map(|request| &request.hops)
            .filter(is_main)
            .collect();
        mains.sort_by(|one, other| one[0].started.total_cmp(&other[0].started));
        let page_number = options.page.unwrap_or(1);
        let fault = match (mains.is_empty(), page_number) {
            (true, _) => OpenError::NoPageLoad {
                reason: "the log has no request for a page".to_owned(),
            },
            (false, _) => OpenError::NoSuchPage {
                page: page_number,
                pages: mains.len(),
            },
        };
        let index = page_number
            .checked_sub(1)
            .filter(|&index| index < mains.len())
            .ok_or(fault)?;
        // While a page was observed, other navigations are its own.
        notes.pages = observations.map_or(mains.len(), |_| 1);
        let next = mains.get(index + 1);
        if let Some(next) = next {
            notes.remark(match observations {
                Some(_) => format!("the page navigated to another page: {}", next[0].url),
                None => format!("page {page_number} of {} imported", mains.len()),
            });
        }
        let legs = mains[index];
        let site = |leg: &Hop| site(&leg.network_isolation_key);
        let watched = observations.map(|_| mains.iter().skip(1).copied().flatten());
        let later = watched.into_iter().flatten();
        Ok(Self {
            from: legs[0].started,
            until: match (next, observations) {
                (Some(next), None) => next[0].started,
                _ => f64::INFINITY,
            },
            url: legs.last().map(|leg| leg.url.clone()).unwrap_or_default(),
            sites: legs.iter().chain(later).filter_map(site).collect(),
        })
    }
}

/// The first site in a network isolation key; `None` if there is no page.
pub(super) fn site(key: &str) -> Option<String> {
    let first = key.split(' ').next().unwrap_or_default();
    (first.starts_with("http") || first.starts_with("file")).then(|| first.to_owned())
}
