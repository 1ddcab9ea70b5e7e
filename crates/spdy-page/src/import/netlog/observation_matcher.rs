//! Matches requests of a log with their observations.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use super::log::Hop;
use super::page::LogPage;
use crate::import::assemble::seconds;
use crate::import::devtools::{Observations, ObservedRequest};
use crate::replica::without_fragment;

/// The observations, indexed by request.
pub(super) struct ObservationMatcher<'a> {
    pub(super) observations: &'a Observations,
    /// By method and URL without fragment, in their order. For lookups only, never for iteration.
    pub(super) waiting: HashMap<String, VecDeque<usize>>,
    /// When the load began, seconds.
    pub(super) origin: f64,
}

impl<'a> ObservationMatcher<'a> {
    pub(super) fn new(observations: &'a Observations, page: &LogPage) -> Self {
        let mut waiting = HashMap::<_, VecDeque<usize>>::new();
        for (index, seen) in observations
            .requests
            .iter()
            .enumerate()
            .filter(|(_, seen)| !seen.is_inside)
        {
            waiting
                .entry(key(&seen.method, &seen.url))
                .or_default()
                .push_back(index);
        }
        let first = observations.requests.first();
        Self {
            observations,
            waiting,
            origin: first.map_or(page.from / 1e3, |seen| seen.requested_at),
        }
    }

    /// Removes and returns the first remaining observation of this request.
    pub(super) fn take(&mut self, leg: &Hop) -> Option<usize> {
        self.waiting
            .get_mut(&key(&leg.method, &leg.url))?
            .pop_front()
    }
}

/// The common key of an observation and a hop of the log.
fn key(method: &str, url: &str) -> String {
    format!("{method} {}", without_fragment(url))
}

/// Times of an exchange.
pub(super) struct Times {
    pub(super) started: Duration,
    pub(super) queued: Duration,
    pub(super) wait: Duration,
    pub(super) receive: Duration,
    pub(super) dns: Option<Duration>,
    pub(super) connect: Option<Duration>,
    pub(super) tls: Option<Duration>,
}

impl Times {
    /// The times that the browser reported; `None` without `timing`.
    pub(super) fn from_observation(seen: &ObservedRequest, origin: f64) -> Option<Self> {
        let timing = seen.timing?;
        let sent = timing.request_time + timing.send_start / 1e3;
        let first = timing
            .receive_headers_start
            .unwrap_or(timing.receive_headers_end);
        let first = timing.request_time + first / 1e3;
        let span =
            |from: f64, to: f64| (from >= 0.0 && to >= from).then(|| seconds((to - from) / 1e3));
        let finished = seen.finished.unwrap_or(first);
        Some(Self {
            started: seconds(seen.requested_at - origin),
            queued: seconds(sent - seen.requested_at),
            wait: seconds(first - sent),
            receive: seconds(finished - first),
            dns: span(timing.dns_start, timing.dns_end),
            connect: span(timing.connect_start, timing.connect_end),
            tls: span(timing.ssl_start, timing.ssl_end),
        })
    }
}
