//! Limits the requests of one client per second: those that the cache does not answer (`cache.misses_per_second`), or those for a path
//! (`site.paths`).
//!
//! ```text
//! address -> tokens, filled at `per_second`, saved for five seconds      a table of bounded length
//! ```
//!
//! Without it, a client that requests new URLs, each with another query string, could make origins work as fast as it can write. The limit
//! is for an IPv4 address, or a /56 of IPv6, the size of one household. When the table is full, clients with a full budget are removed,
//! which changes nothing for them. Clients for which there is still no room share one budget.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use parking_lot::Mutex;
use spdy_clock::Instant;

/// Seconds for which tokens are saved up.
const BURST_SECONDS: i64 = 5;
/// Maximum number of clients with their own budget.
const MAX_CLIENTS: usize = 64 * 1024;
/// The least time between two sweeps of the table.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(1);
/// Bits of an IPv6 address that identify a client.
const IPV6_PREFIX_BITS: u32 = 56;

/// The budgets of all clients.
#[derive(Debug)]
pub(crate) struct ClientRateLimit {
    per_second: i64,
    clients: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    /// Clients without their own entry share `None`.
    budgets: BTreeMap<Option<IpAddr>, TokenBucket>,
    last_sweep: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    /// Thousandths of a request. Below zero: the client owes some.
    tokens: i64,
    filled: Instant,
}

impl ClientRateLimit {
    /// `per_second` requests of each client; 0 is no limit.
    pub(crate) fn new(per_second: u32) -> Self {
        Self {
            per_second: per_second.into(),
            clients: MAX_CLIENTS,
            table: Mutex::default(),
        }
    }

    /// Whether `client` may make one more request at `now`; if so, it is charged.
    pub(crate) fn admits(&self, client: IpAddr, now: Instant) -> bool {
        self.with_budget(client, now, |budget, _| {
            let is_admitted = budget.tokens >= 1000;
            if is_admitted {
                budget.tokens -= 1000;
            }
            is_admitted
        })
    }

    /// The same without the charge.
    pub(crate) fn has_budget(&self, client: IpAddr, now: Instant) -> bool {
        self.with_budget(client, now, |budget, _| budget.tokens >= 1000)
    }

    /// Charges `client` for one more request at `now`, even if it may not make one. It then owes no more than a full budget.
    pub(crate) fn charge(&self, client: IpAddr, now: Instant) {
        self.with_budget(client, now, |budget, full| {
            budget.tokens = (budget.tokens - 1000).max(-full);
            true
        });
    }

    /// The result of `with` for the budget of `client` at `now`, and a full one; `true` without a limit.
    fn with_budget(
        &self,
        client: IpAddr,
        now: Instant,
        with: impl FnOnce(&mut TokenBucket, i64) -> bool,
    ) -> bool {
        if self.per_second == 0 {
            return true;
        }
        let full = self.per_second * BURST_SECONDS * 1000;
        let mut table = self.table.lock();
        let mut source = Some(source(client));
        if !table.budgets.contains_key(&source) && table.budgets.len() >= self.clients {
            let is_due = |swept: Instant| now.saturating_since(swept) >= BETWEEN_SWEEPS;
            if table.last_sweep.is_none_or(is_due) {
                table.last_sweep = Some(now);
                table.budgets.retain(|_, budget| {
                    budget.fill(now, self.per_second, full);
                    budget.tokens < full
                });
            }
            if table.budgets.len() >= self.clients {
                source = None;
            }
        }
        let budget = table.budgets.entry(source).or_insert(TokenBucket {
            tokens: full,
            filled: now,
        });
        budget.fill(now, self.per_second, full);
        with(budget, full)
    }
}

impl TokenBucket {
    fn fill(&mut self, now: Instant, per_second: i64, full: i64) {
        // Only complete milliseconds are counted; the rest of one counts later.
        let waited = now.saturating_since(self.filled).as_millis();
        let waited = u64::try_from(waited).unwrap_or(u64::MAX);
        self.filled += Duration::from_millis(waited);
        let waited = i64::try_from(waited).unwrap_or(i64::MAX);
        let earned = waited.saturating_mul(per_second);
        self.tokens = self.tokens.saturating_add(earned).min(full);
    }
}

/// The client that `address` belongs to.
pub(crate) fn source(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network_mask = u128::MAX << (128 - IPV6_PREFIX_BITS);
            Ipv6Addr::from(u128::from(address) & network_mask).into()
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: Instant = Instant::ZERO;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// How many of 1000 are admitted.
    fn admitted(rate: &ClientRateLimit, from: &str, now: Instant) -> usize {
        let from = address(from);
        (0..1000).filter(|_| rate.admits(from, now)).count()
    }

    #[test]
    fn client_gets_burst_of_five_seconds_then_steady_rate() {
        let rate = ClientRateLimit::new(10);
        assert_eq!(admitted(&rate, "192.0.2.1", T0), 50);
        assert_eq!(
            admitted(&rate, "192.0.2.2", T0),
            50,
            "another client has its own budget"
        );
        let second = T0 + Duration::from_secs(1);
        assert_eq!(admitted(&rate, "192.0.2.1", second), 10);
        let day = T0 + Duration::from_secs(86_400);
        assert_eq!(
            admitted(&rate, "192.0.2.1", day),
            50,
            "the burst is limited"
        );
        // Requests more often than once per millisecond lose no budget to rounding.
        let mut now = day;
        let mut admitted_count = 0;
        for _ in 0..10_000 {
            now += Duration::from_micros(100);
            admitted_count += usize::from(rate.admits(address("192.0.2.1"), now));
        }
        assert_eq!(admitted_count, 10);
        assert_eq!(admitted(&ClientRateLimit::new(0), "192.0.2.1", T0), 1000);
    }

    #[test]
    fn a_charge_may_leave_a_debt_of_a_full_budget() {
        let rate = ClientRateLimit::new(10);
        let client = address("192.0.2.1");
        for _ in 0..49 {
            rate.charge(client, T0);
        }
        assert!(rate.has_budget(client, T0));
        for _ in 0..200 {
            rate.charge(client, T0);
        }
        for (seconds, expected) in [(0, false), (5, false), (6, true)] {
            let now = T0 + Duration::from_secs(seconds);
            assert_eq!(rate.has_budget(client, now), expected, "{seconds}");
        }
    }

    #[test]
    fn a_house_of_ipv6_is_one_client() {
        let rate = ClientRateLimit::new(10);
        assert_eq!(admitted(&rate, "2001:db8:0:100::1", T0), 50);
        assert_eq!(admitted(&rate, "2001:db8:0:1ff::2", T0), 0);
        assert_eq!(admitted(&rate, "2001:db8:0:200::1", T0), 50);
        assert_eq!(admitted(&rate, "::ffff:192.0.2.1", T0), 50);
        assert_eq!(admitted(&rate, "192.0.2.1", T0), 0);
    }

    #[test]
    fn full_table_shares_one_bucket_for_new_clients() {
        let rate = ClientRateLimit {
            clients: 3,
            ..ClientRateLimit::new(10)
        };
        for client in ["192.0.2.1", "192.0.2.2", "192.0.2.3"] {
            assert_eq!(admitted(&rate, client, T0), 50);
        }
        assert_eq!(admitted(&rate, "192.0.2.4", T0), 50);
        assert_eq!(admitted(&rate, "192.0.2.5", T0), 0, "the same budget");
        assert_eq!(rate.table.lock().budgets.len(), 3 + 1);
        // When the other clients have their full budget again, there is room.
        let later = T0 + Duration::from_secs(5);
        assert_eq!(admitted(&rate, "192.0.2.5", later), 50);
        assert_eq!(admitted(&rate, "192.0.2.4", later), 50);
        assert_eq!(rate.table.lock().budgets.len(), 2);
    }
}
