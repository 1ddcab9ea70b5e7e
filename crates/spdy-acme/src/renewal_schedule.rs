//! Decides when to order a certificate: a state machine without I/O, with time as an argument.
//!
//! ```text
//!             no certificate ▶ Order ──issued──▶ held ── Wait ──▶ due ──▶ Order
//!                                │                │               ▲
//!                                failed           │ FetchRenewalInfo: the authority may advise an earlier time (RFC 9773)
//!                                └─▶ Wait, twice as long each time ──▶ Order
//! ```
//!
//! The due time is a remaining percentage of the validity, minus a random part, so that certificates that were ordered together are
//! not renewed together. The minimum time between a certificate and the next order is a hundredth of the validity, also if the
//! authority always advises to renew, or issues old certificates.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Delay after the first failure. Let's Encrypt allows five failures an hour for a name.
pub const MIN_RETRY_DELAY: Duration = Duration::from_secs(120);
/// Maximum delay after repeated failures.
pub const MAX_RETRY_DELAY: Duration = Duration::from_secs(6 * 60 * 60);
/// Maximum accepted `Retry-After` of an authority.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// How often an authority is polled for advice if it states no interval; the first time at a random earlier time.
pub const RENEWAL_INFO_INTERVAL: Duration = Duration::from_secs(6 * 60 * 60);
/// Minimum interval, whatever the authority states; the maximum is a day (RFC 9773 §4.3.2).
pub const MIN_RENEWAL_INFO_INTERVAL: Duration = Duration::from_secs(60);

/// The next action.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NextAction {
    /// Order a certificate.
    Order,
    /// Fetch the authority's renewal advice for the current certificate.
    FetchRenewalInfo,
    /// Wait until this time.
    Wait(SystemTime),
}

/// The renewal schedule of one certificate.
#[derive(Debug)]
pub struct RenewalSchedule {
    remaining_percent: u8,
    jitter_rng: ChaCha8Rng,
    /// When the certificate is ordered.
    due: SystemTime,
    /// Renewal advice is not followed before this time.
    not_before: SystemTime,
    /// When the renewal advice is fetched next.
    next_fetch: Option<SystemTime>,
    failures: u32,
}

impl RenewalSchedule {
    /// The schedule of a certificate that does not exist yet: it is ordered at once. Later it is renewed when
    /// `remaining_percent` of its validity remains, 1 to 99.
    #[must_use]
    pub fn new(remaining_percent: u8, seed: u64) -> Self {
        Self {
            remaining_percent: remaining_percent.clamp(1, 99),
            jitter_rng: ChaCha8Rng::seed_from_u64(seed),
            due: UNIX_EPOCH,
            not_before: UNIX_EPOCH,
            next_fetch: None,
            failures: 0,
        }
    }

    /// The next action at `now`.
    #[must_use]
    pub fn next(&self, now: SystemTime) -> NextAction {
        if now >= self.due {
            return NextAction::Order;
        }
        match self.next_fetch {
            Some(next_fetch) if now >= next_fetch => NextAction::FetchRenewalInfo,
            Some(next_fetch) => NextAction::Wait(next_fetch.min(self.due)),
            None => NextAction::Wait(self.due),
        }
    }

    /// Records a stored certificate with this validity.
    pub fn found(&mut self, now: SystemTime, validity: &Range<SystemTime>) {
        self.due = renewal_time(validity, self.remaining_percent, self.jitter_rng.random());
        // A restart causes no fetch.
        self.next_fetch =
            Some(now + RENEWAL_INFO_INTERVAL.mul_f64(self.jitter_rng.random_range(0.1..1.0)));
        self.failures = 0;
    }

    /// Records that a certificate was issued.
    pub fn record_issued(&mut self, now: SystemTime, validity: &Range<SystemTime>) {
        self.found(now, validity);
        let lifetime = lifetime(validity);
        self.not_before = now + (lifetime / 100).max(Duration::from_secs(1));
        self.due = self.due.max(self.not_before);
    }

    /// Records a failed order; `rest` is the authority's `Retry-After`, if any.
    pub fn record_failure(&mut self, now: SystemTime, rest: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        let rest = rest.unwrap_or_default().min(MAX_RETRY_AFTER);
        self.due = now + retry_delay(self.failures, self.jitter_rng.random()).max(rest);
        self.next_fetch = None;
    }

    /// Records the authority's suggestion to renew within `window`, and to fetch the advice after `again`. It can only bring the
    /// renewal forward.
    pub fn record_renewal_info(
        &mut self,
        now: SystemTime,
        window: &Range<SystemTime>,
        again: Duration,
    ) {
        let width = lifetime(window).mul_f64(self.jitter_rng.random());
        let at = (window.start + width).max(self.not_before);
        self.due = self.due.min(at);
        self.next_fetch = Some(now + again.clamp(MIN_RENEWAL_INFO_INTERVAL, MAX_RETRY_AFTER));
    }

    /// Records that the authority has no advice at the moment.
    pub fn record_no_renewal_info(&mut self, now: SystemTime) {
        self.next_fetch = Some(now + RENEWAL_INFO_INTERVAL);
    }

    /// True if a certificate with this validity should have been renewed before `now`.
    #[must_use]
    pub fn is_overdue(&self, now: SystemTime, validity: &Range<SystemTime>) -> bool {
        now >= renewal_time(validity, self.remaining_percent, 0.0)
    }

    /// The time of the next order.
    #[must_use]
    pub fn due(&self) -> SystemTime {
        self.due
    }
}

fn lifetime(validity: &Range<SystemTime>) -> Duration {
    validity
        .end
        .duration_since(validity.start)
        .unwrap_or_default()
}

/// The renewal time: when `remaining_percent` of the validity remains, up to a fiftieth of the validity earlier.
/// `chance` is from 0 to 1.
#[must_use]
pub fn renewal_time(
    validity: &Range<SystemTime>,
    remaining_percent: u8,
    chance: f64,
) -> SystemTime {
    let lifetime = lifetime(validity);
    let remaining = lifetime.mul_f64(f64::from(remaining_percent) / 100.0 + chance / 50.0);
    validity.end - remaining.min(lifetime)
}

/// The delay after `failures` failures in a row, from 1: doubled each time, plus up to a quarter by `chance`, from 0 to 1.
#[must_use]
pub fn retry_delay(failures: u32, chance: f64) -> Duration {
    let doubled = MIN_RETRY_DELAY.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(MAX_RETRY_DELAY).mul_f64(1.0 + chance / 4.0)
}
