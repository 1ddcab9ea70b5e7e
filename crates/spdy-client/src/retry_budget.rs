//! Limits the number of retries per origin to a share of all requests, plus a small constant rate.
//!
//! ```text
//! origin -> tokens: a part of one for each request, one each second, ten at most        a table of bounded length
//! ```
//!
//! If an origin is down, every request fails, and each retry adds to its load. While most requests succeed, the budget is never
//! exhausted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use spdy_clock::Instant;

use crate::origin::Origin;

/// Size of the bucket: retries that are possible at once, regardless of earlier requests.
const BURST: u64 = 10;
/// Fractions per token.
const PARTS_PER_TOKEN: u64 = 100;
/// One token is added in this interval, regardless of requests.
const EARN_INTERVAL: Duration = Duration::from_secs(1);
/// Limit of origins with a record; above it, the record of the origin with the oldest request is removed.
const MAX_ORIGINS: usize = 1024;

/// The budgets of all origins, which several clients may share.
#[derive(Debug)]
pub struct RetryBudget {
    percent: u64,
    tokens: Mutex<BTreeMap<Origin, Tokens>>,
    withheld: AtomicU64,
}

#[derive(Clone, Copy, Debug)]
struct Tokens {
    /// Tokens, in hundredths of a request.
    hundredths: u64,
    filled: Instant,
    last_used: Instant,
}

impl Tokens {
    fn earn(&mut self, hundredths: u64) {
        let most = BURST * PARTS_PER_TOKEN;
        self.hundredths = self.hundredths.saturating_add(hundredths).min(most);
    }

    fn fill(&mut self, now: Instant) {
        let waited = now.saturating_since(self.filled).as_secs();
        self.filled += EARN_INTERVAL * u32::try_from(waited).unwrap_or(u32::MAX);
        self.earn(waited.saturating_mul(PARTS_PER_TOKEN));
    }
}

impl RetryBudget {
    /// A budget of `percent` retries per hundred requests.
    #[must_use]
    pub fn new(percent: u32) -> Self {
        Self {
            percent: percent.into(),
            tokens: Mutex::default(),
            withheld: AtomicU64::new(0),
        }
    }

    /// Records a request for `origin`.
    pub(crate) fn sent(&self, origin: &Origin, now: Instant) {
        self.with(origin, now, |tokens| tokens.earn(self.percent));
    }

    /// True if a retry is within the budget; it is then charged.
    pub(crate) fn try_spend(&self, origin: &Origin, now: Instant) -> bool {
        let is_admitted = self.with(origin, now, |tokens| {
            let remaining = tokens.hundredths.checked_sub(PARTS_PER_TOKEN);
            tokens.hundredths = remaining.unwrap_or(tokens.hundredths);
            remaining.is_some()
        });
        if !is_admitted {
            self.withheld.fetch_add(1, Ordering::Relaxed);
        }
        is_admitted
    }

    /// Number of retries that the budget has prevented since the last call.
    pub fn take_withheld(&self) -> u64 {
        self.withheld.swap(0, Ordering::Relaxed)
    }

    fn with<T>(&self, origin: &Origin, now: Instant, act: impl FnOnce(&mut Tokens) -> T) -> T {
        let mut all = self.tokens.lock();
        if !all.contains_key(origin)
            && all.len() >= MAX_ORIGINS
            && let Some(oldest) = all.iter().min_by_key(|(_, tokens)| tokens.last_used)
        {
            let oldest = oldest.0.clone();
            all.remove(&oldest);
        }
        let tokens = all.entry(origin.clone()).or_insert(Tokens {
            hundredths: BURST * PARTS_PER_TOKEN,
            filled: now,
            last_used: now,
        });
        tokens.last_used = now;
        tokens.fill(now);
        act(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Instant = Instant::ZERO;

    fn origin(number: usize) -> Origin {
        let url = format!("http://host{number}.test/")
            .parse()
            .expect("the URI is valid");
        Origin::of(&url).expect("the URI has an origin")
    }

    /// Number of retries out of `requests`, if each fails.
    fn admitted_retries(budget: &RetryBudget, requests: usize, now: Instant) -> usize {
        let origin = origin(0);
        let all = (0..requests).filter(|_| {
            budget.sent(&origin, now);
            budget.try_spend(&origin, now)
        });
        all.count()
    }

    #[test]
    fn of_many_failures_a_share_and_a_burst_are_retried() {
        let budget = RetryBudget::new(20);
        // The bucket is full at the start, so the first request adds nothing.
        assert_eq!(admitted_retries(&budget, 101, T0), 10 + 20);
        assert_eq!(budget.take_withheld(), 101 - 30);
        assert_eq!(budget.take_withheld(), 0, "they are reported once");
    }

    #[test]
    fn one_retry_a_second_is_earned_up_to_the_burst() {
        let budget = RetryBudget::new(0);
        assert_eq!(admitted_retries(&budget, 100, T0), 10);
        let second = Duration::from_secs(1);
        assert_eq!(admitted_retries(&budget, 100, T0 + second * 3), 3);
        assert_eq!(admitted_retries(&budget, 100, T0 + second * 1000), 10);
    }

    #[test]
    fn past_the_limit_the_oldest_origin_gets_a_new_budget() {
        let budget = RetryBudget::new(0);
        assert_eq!(admitted_retries(&budget, 100, T0), 10);
        let later = T0 + Duration::from_millis(1);
        for other in 1..MAX_ORIGINS {
            assert!(
                budget.try_spend(&origin(other), later),
                "{other} is another origin"
            );
        }
        assert!(
            !budget.try_spend(&origin(0), later),
            "the origin is remembered"
        );
        let last = later + Duration::from_millis(1);
        assert!(budget.try_spend(&origin(MAX_ORIGINS), last));
        assert_eq!(budget.tokens.lock().len(), MAX_ORIGINS);
    }
}
