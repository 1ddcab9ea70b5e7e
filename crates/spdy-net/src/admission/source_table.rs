//! Counts what each source has used of its limits, in a table of bounded size. Without I/O and clock: `now` is an argument.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use spdy_clock::Instant;
use spdy_net_core::limit::ConnectionLimit;

use crate::admission::limits::AdmissionLimits;
use crate::admission::source::Source;

/// Size of the token bucket, in seconds of `rate`.
const BURST_SECONDS: u64 = 5;

/// All sources with a record.
#[derive(Debug)]
pub(super) struct SourceTable {
    limits: AdmissionLimits,
    all: BTreeMap<Source, SourceRecord>,
}

/// The state of a source.
#[derive(Clone, Copy, Debug)]
struct SourceRecord {
    open: u32,
    /// Remaining tokens, in thousandths of a connection.
    tokens: u64,
    filled: Instant,
    abuses: u32,
    last_abuse: Instant,
}

impl SourceTable {
    pub(super) fn new(limits: AdmissionLimits) -> Self {
        Self {
            limits,
            all: BTreeMap::new(),
        }
    }

    /// True if `address` has used less than half of its limits.
    pub(super) fn has_headroom(&self, now: Instant, address: IpAddr) -> bool {
        let limits = &self.limits;
        let half_used = |source: Source| {
            let Some(record) = self.all.get(&source) else {
                return false;
            };
            let times = |limit: u32| u64::from(limit) * u64::from(source.factor());
            let full = times(limits.rate) * BURST_SECONDS * 1000;
            let waited = (now - record.filled).as_millis() as u64;
            let tokens = record
                .tokens
                .saturating_add(waited.saturating_mul(times(limits.rate)));
            (limits.per_address > 0 && 2 * u64::from(record.open) >= times(limits.per_address))
                || (limits.rate > 0 && 2 * tokens <= full)
        };
        !Source::all(address).any(half_used)
    }

    /// Counts one more connection from `address`, open until it is [`release`](Self::release)d.
    ///
    /// # Errors
    ///
    /// The limit that would be exceeded; the connection is then not counted.
    pub(super) fn admit(&mut self, now: Instant, address: IpAddr) -> Result<(), ConnectionLimit> {
        let full = u64::from(self.limits.rate) * BURST_SECONDS * 1000;
        for source in Source::all(address) {
            if !self.all.contains_key(&source) && self.all.len() >= self.limits.addresses {
                self.evict(now, address);
            }
            let full = full * u64::from(source.factor());
            let record = self.all.entry(source).or_insert(SourceRecord {
                open: 0,
                tokens: full,
                filled: now,
                abuses: 0,
                last_abuse: now,
            });
            if let Some(limit) = record.check(&self.limits, now, full, source.factor()) {
                return Err(limit);
            }
        }
        // Only a connection that exceeds no limit is charged.
        for source in Source::all(address) {
            if let Some(record) = self.all.get_mut(&source) {
                record.open += 1;
                record.tokens = record.tokens.saturating_sub(1000);
            }
        }
        Ok(())
    }

    /// To be called when a connection from `address` has ended.
    pub(super) fn release(&mut self, address: IpAddr) {
        for source in Source::all(address) {
            if let Some(record) = self.all.get_mut(&source) {
                record.open = record.open.saturating_sub(1);
            }
        }
    }

    /// Records that a connection from `address` was closed for abuse.
    pub(super) fn record_abuse(&mut self, now: Instant, address: IpAddr) {
        for source in Source::all(address) {
            if let Some(record) = self.all.get_mut(&source) {
                if record.abuses == 0 {
                    record.last_abuse = now;
                }
                record.abuses = record.abuses.saturating_add(1);
            }
        }
    }

    /// Makes room for another source of `address`: removes sources without open connections and abuses and, if that is not enough,
    /// all without open connections. The sources of `address` stay, because they are about to be charged.
    fn evict(&mut self, now: Instant, address: IpAddr) {
        let window = self.limits.abuse_window;
        let own = Source::all(address);
        let needed = |source: &Source, record: &SourceRecord| {
            record.open > 0 || own.clone().any(|own| own == *source)
        };
        self.all.retain(|source, record| {
            needed(source, record) || (record.abuses > 0 && now - record.last_abuse < window)
        });
        if self.all.len() >= self.limits.addresses {
            self.all.retain(|source, record| needed(source, record));
        }
    }
}

impl SourceRecord {
    /// The limit that one more connection would exceed, if any. `factor` is the multiple of the limits for this source.
    fn check(
        &mut self,
        limits: &AdmissionLimits,
        now: Instant,
        full: u64,
        factor: u32,
    ) -> Option<ConnectionLimit> {
        let times = |limit: u32| limit.saturating_mul(factor);
        if now - self.last_abuse >= limits.abuse_window {
            self.abuses = 0;
        }
        if limits.abuses > 0 && self.abuses >= times(limits.abuses) {
            return Some(ConnectionLimit::AbusesPerAddress);
        }
        if limits.per_address > 0 && self.open >= times(limits.per_address) {
            return Some(ConnectionLimit::ConnectionsPerAddress);
        }
        // Only whole milliseconds are converted to tokens; the fraction is carried over. Otherwise a client that connects more
        // often would block all clients of its address.
        let waited = (now - self.filled).as_millis() as u64;
        self.filled += Duration::from_millis(waited);
        let earned = waited.saturating_mul(times(limits.rate).into());
        self.tokens = self.tokens.saturating_add(earned).min(full);
        (limits.rate > 0 && self.tokens < 1000).then_some(ConnectionLimit::ConnectionRate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(change: impl FnOnce(&mut AdmissionLimits)) -> SourceTable {
        let mut limits = AdmissionLimits::default();
        change(&mut limits);
        SourceTable::new(limits)
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn an_ipv6_customer_is_a_64_and_a_mapped_address_is_ipv4() {
        let mut records = records(|limits| limits.per_address = 1);
        let mut admit = |address: &str| records.admit(ms(0), ip(address)).is_ok();
        assert!(admit("2001:db8::1") && !admit("2001:db8::ffff:1"));
        assert!(admit("2001:db8:0:1::1"), "an address in the same prefix");
        assert!(admit("192.0.2.1") && !admit("::ffff:192.0.2.1"));
    }

    #[test]
    fn many_64s_of_one_48_hit_its_limit_before_the_table_is_full() {
        let subnet = |n: u16| IpAddr::from([0x2001, 0xdb8, 7, n, 0, 0, 0, 1]);
        let mut records = records(|limits| (limits.per_address, limits.rate) = (3, 10));
        for n in 0..6 {
            assert_eq!(records.admit(ms(0), subnet(n)), Ok(()), "{n}");
        }
        let met = records.admit(ms(0), subnet(6));
        assert_eq!(met, Err(ConnectionLimit::ConnectionsPerAddress));
        let other = records.admit(ms(0), ip("2001:db8:8::1"));
        assert_eq!(other, Ok(()), "another site");
        (0..6).for_each(|n| records.release(subnet(n)));
        let mut quick = |n: u16| {
            let met = records.admit(ms(0), subnet(n));
            if met.is_ok() {
                records.release(subnet(n));
            }
            met
        };
        let all: Vec<_> = (10..2000).map(&mut quick).collect();
        let admitted = all.iter().filter(|met| met.is_ok()).count();
        assert_eq!(admitted, 94, "two bursts of five seconds");
        let refused = Err(ConnectionLimit::ConnectionRate);
        assert_eq!(all.iter().filter(|met| **met == refused).count(), 1896);
        let remembered = records.all.len();
        assert_eq!(remembered, 94 + 6 + 1 + 2, "the admitted connections");
    }

    #[test]
    fn new_connections_wait_for_tokens_which_are_saved_for_five_seconds() {
        let mut records = records(|limits| limits.rate = 2);
        let mut admit = |at: u64| records.admit(ms(at), ip("192.0.2.1"));
        for nth in 0..10 {
            assert!(admit(0).is_ok(), "{nth}");
        }
        assert_eq!(admit(0), Err(ConnectionLimit::ConnectionRate));
        assert!(admit(499).is_err());
        assert!(admit(500).is_ok());
        assert!(admit(500).is_err());
        for nth in 0..10 {
            assert!(admit(1_000_000).is_ok(), "{nth}");
        }
        assert!(admit(1_000_000).is_err());
    }

    #[test]
    fn an_address_is_at_ease_until_half_of_what_it_may_have_is_used_up() {
        let (one, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        let mut by_rate = records(|limits| limits.rate = 2);
        for nth in 0..5 {
            assert!(by_rate.has_headroom(ms(0), one), "{nth} of ten tokens");
            by_rate.admit(ms(0), one).expect("there are tokens");
            by_rate.release(one);
        }
        assert!(!by_rate.has_headroom(ms(0), one));
        assert!(by_rate.has_headroom(ms(0), other));
        assert!(
            !by_rate.has_headroom(ms(0), one),
            "a query consumes no token"
        );
        assert!(by_rate.has_headroom(ms(500), one), "a token was added");
        let mut by_number = records(|limits| limits.per_address = 4);
        for nth in 0..2 {
            assert!(by_number.has_headroom(ms(0), one), "{nth} of four");
            by_number.admit(ms(0), one).expect("there is room");
        }
        assert!(!by_number.has_headroom(ms(0), one));
        by_number.release(one);
        assert!(by_number.has_headroom(ms(0), one));
    }

    /// Regression: a client that connected more than once a millisecond kept the tokens of its address at zero forever.
    #[test]
    fn connecting_above_the_rate_still_gets_the_rate() {
        let mut records = records(|limits| (limits.rate, limits.per_address) = (1000, 0));
        let one = ip("192.0.2.1");
        let every = Duration::from_micros(600);
        let attempts = (0..50_000).map(|nth| records.admit(Instant::ZERO + every * nth, one));
        let admitted = attempts.filter(Result::is_ok).count();
        assert_eq!(
            admitted,
            5_000 + 29_999,
            "the burst and thirty seconds of tokens"
        );
    }

    #[test]
    fn an_abusive_address_is_rejected_for_the_abuse_window() {
        let mut records = records(|limits| limits.abuses = 3);
        let one = ip("192.0.2.1");
        for at in [0, 10_000, 20_000] {
            records.admit(ms(at), one).expect("below the limit");
            records.record_abuse(ms(at), one);
            records.release(one);
        }
        let met = records.admit(ms(20_000), one);
        assert_eq!(met, Err(ConnectionLimit::AbusesPerAddress));
        assert!(records.admit(ms(59_999), one).is_err());
        assert!(records.admit(ms(60_000), one).is_ok());
    }

    #[test]
    fn the_table_does_not_grow_past_its_limit_and_forgets_abuses_last() {
        let mut records = records(|limits| (limits.addresses, limits.abuses) = (10, 1));
        let (bad, open) = (ip("192.0.2.1"), ip("192.0.2.2"));
        records.admit(ms(0), bad).expect("the first");
        records.record_abuse(ms(0), bad);
        records.release(bad);
        records.admit(ms(0), open).expect("another");
        for n in 0..1000_u32 {
            let address = IpAddr::from(n.to_be_bytes());
            if records.admit(ms(1), address).is_ok() {
                records.release(address);
            }
            assert!(records.all.len() <= 10);
        }
        assert!(
            records.admit(ms(2), bad).is_err(),
            "the source is remembered"
        );
        assert!(
            records.all.contains_key(&Source::widest(open)),
            "it is open"
        );
    }

    /// Regression: room for the /64 was made by removing the /48, whose record had just been created.
    #[test]
    fn a_table_with_one_place_left_charges_the_48_and_the_64_alike() {
        let mut records = records(|limits| limits.addresses = 3);
        records.admit(ms(0), ip("192.0.2.1")).expect("the first");
        records.admit(ms(0), ip("192.0.2.2")).expect("another");
        records.release(ip("192.0.2.2"));
        let address = ip("2001:db8::1");
        records.admit(ms(1), address).expect("a site");
        let open = |records: &SourceTable| {
            let of = |source| Some(records.all.get(&source)?.open);
            Source::all(address).map(of).collect::<Vec<_>>()
        };
        assert_eq!(open(&records), [Some(1), Some(1)]);
        assert!(records.all.len() <= 3);
        records.release(address);
        assert_eq!(open(&records), [Some(0), Some(0)]);
    }

    #[test]
    fn a_limit_of_zero_is_none() {
        let mut records =
            records(|limits| (limits.per_address, limits.rate, limits.abuses) = (0, 0, 0));
        let one = ip("192.0.2.1");
        for nth in 0..10_000 {
            assert_eq!(records.admit(ms(0), one), Ok(()), "{nth}");
            records.record_abuse(ms(0), one);
        }
    }
}
