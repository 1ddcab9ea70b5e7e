//! Limits what range requests of one client may make an origin send for nothing.
//!
//! For a range from the first byte, the proxy fetches the whole resource to store it (`fetch/range_fill/request_whole.rs`). A client that
//! requests one byte of many different URLs could thus make the origin send megabytes for each. Each client therefore has a credit of bytes:
//!
//! ```text
//! begin   credit left, and fewer than PENDING_FILLS wait for a head? ─no─▶ the range is passed through
//! charge  the head came: credit -= length of the whole                    may go below zero, by one object for each pending fill
//! refund  the client read a piece of its part: credit += its length
//! refill  the full credit in REFILL_SECONDS
//! ```
//!
//! So over any time a client costs an origin no more than the full credit, what is refilled, and the objects that were pending when the
//! credit ended, beyond what the client took itself. A client is an IPv4 address or a /56 of IPv6, as for `misses_per_second`. When the
//! table is full, clients with their full credit are forgotten, which changes nothing for them. A client for which there is no room passes
//! its ranges through.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body::Body as _;
use http_body_util::BodyExt;
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;
use spdy_clock::Instant;

use crate::sites::client_rate::source;

/// The key that sets the limit, as counters call it.
pub(crate) const LIMIT: &str = "range_fill_mib";
/// The seconds in which the full credit is refilled.
const REFILL_SECONDS: i64 = 64;
/// Maximum number of fills of one client with a size that is not known yet.
const MAX_PENDING_FILLS: u32 = 8;
/// The charge for a fill that is aborted at its head, bytes: about what an origin has sent by then.
const ABORTED_FILL_CHARGE_BYTES: u64 = 1 << 20;
/// Clients in the table.
const CLIENTS: usize = 64 * 1024;
/// The least time between two sweeps of a full table.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(1);

/// The credits of all clients.
#[derive(Debug)]
pub(crate) struct RangeFillCredits {
    /// Full credit, bytes; 0 is no limit.
    max_credit_bytes: i64,
    clients: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    accounts: BTreeMap<IpAddr, Account>,
    swept: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Account {
    /// Bytes; negative after a large object.
    credit: i64,
    refilled: Instant,
    pending: u32,
}

impl Account {
    fn refill(&mut self, now: Instant, full: i64) {
        // The credit of whole milliseconds is added; the rest of a millisecond stays due.
        let waited = now.saturating_since(self.refilled).as_millis();
        let waited = i64::try_from(waited).unwrap_or(i64::MAX);
        self.refilled += Duration::from_millis(waited.unsigned_abs());
        let earned = waited.saturating_mul(full) / (REFILL_SECONDS * 1000);
        self.credit = self.credit.saturating_add(earned).min(full);
    }
}

impl RangeFillCredits {
    /// Gives each client a credit of `full` bytes; 0 is no limit.
    pub(crate) fn new(full: usize) -> Arc<Self> {
        Arc::new(Self {
            max_credit_bytes: i64::try_from(full).unwrap_or(i64::MAX),
            clients: CLIENTS,
            table: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }

    /// Begins to fetch the whole for a range request of `client`; `None` if its credit does not allow that. Without a client there is no limit.
    pub(crate) fn begin(
        self: &Arc<Self>,
        client: Option<IpAddr>,
        now: Instant,
    ) -> Option<RangeFill> {
        let client = client.filter(|_| self.max_credit_bytes > 0).map(source);
        if let Some(client) = client {
            let mut table = self.lock();
            if !table.accounts.contains_key(&client) && !table.has_capacity(self, now) {
                return None;
            }
            let account = table.accounts.entry(client).or_insert(Account {
                credit: self.max_credit_bytes,
                refilled: now,
                pending: 0,
            });
            account.refill(now, self.max_credit_bytes);
            if account.credit <= 0 || account.pending >= MAX_PENDING_FILLS {
                return None;
            }
            account.pending += 1;
        }
        Some(RangeFill {
            fills: self.clone(),
            client,
            charged: 0,
            is_pending: true,
        })
    }
}

impl Table {
    /// Whether one more client finds room, after clients with full credit were forgotten.
    fn has_capacity(&mut self, fills: &RangeFillCredits, now: Instant) -> bool {
        if self.accounts.len() < fills.clients {
            return true;
        }
        let is_due = |swept: Instant| now.saturating_since(swept) >= BETWEEN_SWEEPS;
        if self.swept.is_none_or(is_due) {
            self.swept = Some(now);
            self.accounts.retain(|_, account| {
                account.refill(now, fills.max_credit_bytes);
                account.pending > 0 || account.credit < fills.max_credit_bytes
            });
        }
        self.accounts.len() < fills.clients
    }
}

/// One whole that is fetched for a range request.
#[derive(Debug)]
pub(crate) struct RangeFill {
    fills: Arc<RangeFillCredits>,
    /// `None` without a limit.
    client: Option<IpAddr>,
    /// Bytes that were charged and not refunded.
    charged: u64,
    is_pending: bool,
}

impl RangeFill {
    /// Changes the client's account, if it is still known.
    fn update(&self, change: impl FnOnce(&mut Account)) {
        if let Some(client) = &self.client
            && let Some(account) = self.fills.lock().accounts.get_mut(client)
        {
            change(account);
        }
    }

    /// The head came: `len` bytes follow it.
    pub(crate) fn charge(&mut self, len: u64) {
        self.charged += len;
        let was_pending = std::mem::replace(&mut self.is_pending, false);
        self.update(|account| {
            account.pending -= u32::from(was_pending);
            account.credit = account.credit.saturating_sub_unsigned(len);
        });
    }

    /// The whole is given up at its head, which announced `len` bytes.
    pub(crate) fn abort(mut self, len: Option<u64>) {
        self.charge(
            len.unwrap_or(ABORTED_FILL_CHARGE_BYTES)
                .min(ABORTED_FILL_CHARGE_BYTES),
        );
    }

    /// Refunds `bytes` that the client has read of its part.
    fn refund(&mut self, len: u64) {
        let bytes = len.min(self.charged);
        self.charged -= bytes;
        let full = self.fills.max_credit_bytes;
        self.update(|account| {
            account.credit = account.credit.saturating_add_unsigned(bytes).min(full);
        });
    }

    /// The client's `body`, of which each byte that it reads is refunded.
    pub(crate) fn refund_on_read(mut self, body: Body) -> Body {
        match self.client.is_none() || body.is_end_stream() {
            true => body,
            false => Body::wrap(body.inspect_frame(move |frame| {
                if let Some(data) = frame.data_ref() {
                    self.refund(data.len() as u64);
                }
            })),
        }
    }
}

impl Drop for RangeFill {
    fn drop(&mut self) {
        if self.is_pending {
            self.update(|account| account.pending -= 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: usize = 64 << 20;

    fn client(number: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, number]))
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn fill(fills: &Arc<RangeFillCredits>, number: u8, seconds: u64, len: u64) -> bool {
        let Some(mut fill) = fills.begin(client(number), at(seconds)) else {
            return false;
        };
        fill.charge(len);
        true
    }

    #[test]
    fn client_has_full_credit_then_a_64th_per_second() {
        let fills = RangeFillCredits::new(FULL);
        let full = FULL as u64;
        assert!(fill(&fills, 1, 0, full - 1));
        assert!(fill(&fills, 1, 0, 1 << 20), "one byte is left");
        assert!(!fill(&fills, 1, 0, 1), "one step past it");
        assert!(fill(&fills, 2, 0, full), "another client has its own");
        assert!(!fill(&fills, 1, 0, 1));
        assert!(fill(&fills, 1, 1, 1), "a second brings 1 MiB, and the byte");
        // No more than the full credit is saved.
        assert!(fill(&fills, 1, 86_400, full));
        assert!(!fill(&fills, 1, 86_400, 1));
        let no_limit = RangeFillCredits::new(0);
        assert!((0..100).all(|_| fill(&no_limit, 1, 0, full)));
    }

    #[test]
    fn bytes_read_are_refunded_and_aborted_fill_is_charged() {
        let fills = RangeFillCredits::new(FULL);
        let full = FULL as u64;
        for _ in 0..10 {
            let mut fill_in_progress = fills
                .begin(client(1), at(0))
                .expect("the client has credit");
            fill_in_progress.charge(full);
            fill_in_progress.refund(full);
            fill_in_progress.refund(full);
        }
        for len in [None, Some(full), Some(1 << 20)] {
            fills
                .begin(client(1), at(0))
                .expect("the client has credit")
                .abort(len);
        }
        assert!(fill(&fills, 1, 0, full - (3 << 20) - 1));
        assert!(fill(&fills, 1, 0, 1));
        assert!(!fill(&fills, 1, 0, 1));
    }

    #[test]
    fn pending_fills_per_client_are_limited() {
        let fills = RangeFillCredits::new(FULL);
        let begin = |number| fills.begin(client(number), at(0));
        let mut pending: Vec<_> = (0..MAX_PENDING_FILLS).map(|_| begin(1)).collect();
        assert!(pending.iter().all(Option::is_some));
        assert!(begin(1).is_none() && begin(2).is_some());
        pending[0].as_mut().expect("the fill is pending").charge(10);
        pending.push(begin(1));
        assert!(pending.iter().all(Option::is_some));
        assert!(begin(1).is_none());
        pending.clear();
        assert!(begin(1).is_some(), "cancelled before their heads arrived");
    }

    #[test]
    fn credit_table_is_limited() {
        let fills = Arc::new(RangeFillCredits {
            max_credit_bytes: FULL as i64,
            clients: 3,
            table: Mutex::default(),
        });
        assert!((1..=3).all(|number| fill(&fills, number, 0, 1 << 20)));
        assert!(!fill(&fills, 4, 0, 1), "passed through");
        assert!(fill(&fills, 3, 0, 1), "known clients are not affected");
        // After two seconds all have their full credit again, and are forgotten.
        assert!(fill(&fills, 4, 2, 1));
        assert_eq!(fills.lock().accounts.len(), 1);
    }
}
