//! Remembers which origins fail, and contacts a failing origin less: after some failures in a row it is not contacted for a while, and then by
//! one request.

use std::collections::BTreeMap;
use std::time::Duration;

use parking_lot::Mutex;
use spdy_client::error::Error;
use spdy_client::origin::Origin;
use spdy_clock::Instant;

use crate::upstream::error::is_write_stalled;

/// The number of origins with remembered failures.
const MAX_HEALTH_ENTRIES: usize = 1024;

/// The recent results of an origin.
#[derive(Clone, Copy, Debug, Default)]
struct Health {
    failures: u32,
    backoff_until: Option<Instant>,
    /// When it responded last.
    last_response: Option<Instant>,
}

/// The recent results of all origins.
#[derive(Debug)]
pub(crate) struct OriginBackoff {
    entries: Mutex<BTreeMap<Origin, Health>>,
    /// Failures in a row before an origin is not contacted; 0: it always is.
    failures: u32,
    /// How long it is not contacted.
    duration: Duration,
}

impl OriginBackoff {
    pub(crate) fn new(failures: u32, duration: Duration) -> Self {
        Self {
            entries: Mutex::default(),
            failures,
            duration,
        }
    }

    /// Whether a request to `origin` fails at once. When the backoff ends, one request is let through as a probe.
    pub(crate) fn rejects(&self, origin: &Origin, now: Instant) -> bool {
        let mut all = self.entries.lock();
        let Some(health) = all.get_mut(origin) else {
            return false;
        };
        match health.backoff_until {
            Some(until) if until > now => true,
            Some(_) => {
                // One request is the probe; other requests fail until it has a result.
                health.backoff_until = Some(now + self.duration);
                false
            }
            None => false,
        }
    }

    /// Whether `origin` is in backoff, for a request that is not its probe.
    pub(crate) fn is_backing_off(&self, origin: &Origin, now: Instant) -> bool {
        let until = self
            .entries
            .lock()
            .get(origin)
            .and_then(|health| health.backoff_until);
        until.is_some_and(|until| until > now)
    }

    /// Records the result of a request to `origin`, which was sent at `sent_at`.
    pub(crate) fn record_result(
        &self,
        origin: Origin,
        sent_at: Instant,
        error: Option<&Error>,
        now: Instant,
    ) {
        // A request body that does not arrive is another error, and the client's fault.
        let counts = error.is_some_and(|error| match error {
            // The proxy's own address rules deny it.
            error if error.is_denied() => false,
            Error::Connect { .. } | Error::Resolve { .. } | Error::TimedOut { .. } => true,
            // Counts only if the origin did not read a request. A response that is incomplete or invalid may concern one resource, and requests
            // for it would make the site unavailable. Or the client aborted the request.
            error => is_write_stalled(error),
        });
        if !(counts || error.is_none()) {
            return;
        }
        let mut all = self.entries.lock();
        if all.len() >= MAX_HEALTH_ENTRIES && !all.contains_key(&origin) {
            all.retain(|_, health| health.failures > 0);
            if all.len() >= MAX_HEALTH_ENTRIES {
                return;
            }
        }
        let health = all.entry(origin).or_default();
        if error.is_none() {
            *health = Health {
                last_response: Some(now),
                ..Health::default()
            };
            return;
        }
        // An origin that responded to other requests meanwhile is slow for this resource only, and requests for it would make the site unavailable.
        let is_slow = error.is_some_and(|error| match error {
            Error::TimedOut { .. } => !error.is_unreachable(),
            error => is_write_stalled(error),
        });
        if is_slow
            && health
                .last_response
                .is_some_and(|last_response| last_response > sent_at)
        {
            return;
        }
        health.failures = health.failures.saturating_add(1);
        if let (1, Some(reason)) = (health.failures, error) {
            tracing::warn!(%reason, "the origin failed repeatedly: backing off");
        }
        if self.failures > 0 && health.failures >= self.failures {
            health.backoff_until = Some(now + self.duration);
        }
    }
}
