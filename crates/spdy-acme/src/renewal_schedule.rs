//! When a certificate is ordered next: a machine without I/O, whose times are arguments.
//!
//! ```text
//!             nothing held ──▶ Order ──issued──▶ held ── Wait ──▶ due ──▶ Order
//!                                │                │               ▲
//!                                failed           │ Ask, now and then: the authority may want it sooner (RFC 9773)
//!                                └─▶ Wait, twice as long each time ──▶ Order
//! ```
//!
//! Due is a remaining share of the validity, in percent, minus a random part: certificates that were ordered together are not renewed
//! together. No order comes sooner than a hundredth of the validity after the last certificate: not for an authority that always advises
//! to renew, nor for one that signs old certificates.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// After the first failure. Let's Encrypt bears five failures an hour for one name.
pub const MIN_RETRY_DELAY: Duration = Duration::from_secs(120);
/// After many.
pub const MAX_RETRY_DELAY: Duration = Duration::from_secs(6 * 60 * 60);
/// The longest that an authority may send us away for.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);
/// How often an authority is polled for advice if it states no interval; the first time at a random earlier time.
pub const RENEWAL_INFO_INTERVAL: Duration = Duration::from_secs(6 * 60 * 60);
/// No sooner than this, and no later than a day, whatever it states (RFC 9773 §4.3.2).
pub const MIN_RENEWAL_INFO_INTERVAL: Duration = Duration::from_secs(60);

/// What is to be done.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NextAction {
    /// A certificate is to be ordered.
    Order,
    /// Fetch the authority's renewal advice for the current certificate.
    FetchRenewalInfo,
    /// Nothing before that hour.
    Wait(SystemTime),
}

/// When to renew one certificate.
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

    /// A stored certificate with this validity was found in the folder.
    pub fn found(&mut self, now: SystemTime, validity: &Range<SystemTime>) {
        self.due = renewal_time(validity, self.remaining_percent, self.jitter_rng.random());
        // A restart causes no fetch.
        self.next_fetch =
            Some(now + RENEWAL_INFO_INTERVAL.mul_f64(self.jitter_rng.random_range(0.1..1.0)));
        self.failures = 0;
    }

    /// One has come.
    pub fn record_issued(&mut self, now: SystemTime, validity: &Range<SystemTime>) {
        self.found(now, validity);
        let lifetime = lifetime(validity);
        self.not_before = now + (lifetime / 100).max(Duration::from_secs(1));
        self.due = self.due.max(self.not_before);
    }

    /// An order failed; `rest` is how long to wait, if the authority gave a time.
    pub fn record_failure(&mut self, now: SystemTime, rest: Option<Duration>) {
        self.failures = self.failures.saturating_add(1);
        let rest = rest.unwrap_or_default().min(MAX_RETRY_AFTER);
        self.due = now + retry_delay(self.failures, self.jitter_rng.random()).max(rest);
        self.next_fetch = None;
    }

    /// The authority suggests to renew within `window`, and to fetch the advice after `again`. It may only bring the
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

    /// The authority has no advice at the moment.
    pub fn record_no_renewal_info(&mut self, now: SystemTime) {
        self.next_fetch = Some(now + RENEWAL_INFO_INTERVAL);
    }

    /// True if a certificate with this validity should have been renewed before `now`.
    #[must_use]
    pub fn is_overdue(&self, now: SystemTime, validity: &Range<SystemTime>) -> bool {
        now >= renewal_time(validity, self.remaining_percent, 0.0)
    }

    /// When the next order is.
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

/// How long after the failure of this number, 1 and up, it is tried again: twice as long each time, and up to a quarter longer by
/// chance, from 0 to 1.
#[must_use]
pub fn retry_delay(failures: u32, chance: f64) -> Duration {
    let doubled = MIN_RETRY_DELAY.saturating_mul(1 << failures.saturating_sub(1).min(16));
    doubled.min(MAX_RETRY_DELAY).mul_f64(1.0 + chance / 4.0)
}
