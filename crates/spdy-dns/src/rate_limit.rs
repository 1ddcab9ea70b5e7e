//! Limits the answers that one network gets by UDP, so that a forged sender address does not let us flood that network.
//!
//! A network's token bucket gets `per_second` tokens a second, and has room for the tokens of one second. Each answer costs one token,
//! and so does a suppressed answer. The bucket can become negative, down to the tokens of one `window`, so that a flood is suppressed
//! while it lasts and up to `window` after it. Each `slip`-th suppressed answer requests a retry over TCP, which a client with a forged
//! address cannot make, so that real clients get an answer.
//!
//! ```text
//!  network (/24, /56) -> token bucket, last query            a table of bounded length
//! ```
//!
//! There is no clock here: `now` is an argument.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use spdy_clock::Instant;

/// Limits for one network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RateLimits {
    /// Answers a second, on average; 0 is no limit. Default 100: a large resolver sends queries from many addresses, and rarely.
    pub per_second: u32,
    /// For how long a flood is silenced after it has ended, at most. Default 15 s.
    pub window: Duration,
    /// Every `slip`-th suppressed answer is sent truncated and without records, so that the client retries over TCP; 0 sends
    /// none, 1 all. Default 2.
    pub slip: u32,
    /// Bits of an IPv4 address that are a network, 0 to 32. Default 24.
    pub ipv4_bits: u8,
    /// Bits of an IPv6 address that are a network, 0 to 128. Default 56.
    pub ipv6_bits: u8,
    /// Maximum number of networks in the table; above it, the network that sent no query for longest is evicted. Default 65,536.
    pub networks: usize,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            per_second: 100,
            window: Duration::from_secs(15),
            slip: 2,
            ipv4_bits: 24,
            ipv6_bits: 56,
            networks: 64 * 1024,
        }
    }
}

/// The decision on a question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is answered.
    Answer,
    /// The response is truncated, so that the client retries over TCP.
    Slip,
    /// There is no response.
    Drop,
}

/// The table of networks.
#[derive(Clone, Debug)]
pub struct RateLimiter {
    limits: RateLimits,
    networks: BTreeMap<IpAddr, TokenBucket>,
    /// Networks by the number of their latest query.
    order: BTreeMap<u64, IpAddr>,
    questions: u64,
}

/// The state of one network.
#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    /// Thousandths of an answer; below zero in a flood.
    balance: i64,
    filled: Instant,
    suppressed: u32,
    question: u64,
}

/// Thousandths in one answer.
const TOKEN: i64 = 1000;

impl RateLimiter {
    /// An empty table.
    #[must_use]
    pub fn new(limits: RateLimits) -> Self {
        Self {
            limits,
            networks: BTreeMap::new(),
            order: BTreeMap::new(),
            questions: 0,
        }
    }

    /// Decides how to answer a question from `address` at `now`.
    pub fn check(&mut self, now: Instant, address: IpAddr) -> Verdict {
        let limits = self.limits;
        if limits.per_second == 0 {
            return Verdict::Answer;
        }
        let network = self.network(address);
        let rate = i64::from(limits.per_second); // thousandths in a millisecond
        let full = rate * TOKEN;
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let floor = millis(limits.window).saturating_mul(-rate);

        self.questions += 1;
        let question = self.questions;
        let fresh = || TokenBucket {
            balance: full,
            filled: now,
            suppressed: 0,
            question,
        };
        if !self.networks.contains_key(&network) && self.networks.len() >= limits.networks.max(1) {
            self.evict_oldest();
        }
        let purse = self.networks.entry(network).or_insert_with(fresh);
        self.order.remove(&purse.question);
        self.order.insert(question, network);
        purse.question = question;

        let waited = millis(now.saturating_since(purse.filled));
        if waited > 0 {
            let earned = waited.saturating_mul(rate);
            purse.balance = purse.balance.saturating_add(earned).min(full);
            purse.filled += Duration::from_millis(waited.unsigned_abs());
        }
        purse.balance = purse.balance.saturating_sub(TOKEN).max(floor);
        if purse.balance >= 0 {
            purse.suppressed = 0;
            return Verdict::Answer;
        }
        purse.suppressed = purse.suppressed.wrapping_add(1);
        let slips = limits.slip > 0 && purse.suppressed.is_multiple_of(limits.slip);
        if slips { Verdict::Slip } else { Verdict::Drop }
    }

    /// Networks in the table.
    #[must_use]
    pub fn networks(&self) -> usize {
        self.networks.len()
    }

    fn evict_oldest(&mut self) {
        if let Some((_, network)) = self.order.pop_first() {
            self.networks.remove(&network);
        }
    }

    fn network(&self, address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let host_bits = 32_u32.saturating_sub(self.limits.ipv4_bits.into());
                let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V4(Ipv4Addr::from(u32::from(address) & mask))
            }
            IpAddr::V6(address) => {
                let host_bits = 128_u32.saturating_sub(self.limits.ipv6_bits.into());
                let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from(u128::from(address) & mask))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn limiter(per_second: u32, slip: u32) -> RateLimiter {
        RateLimiter::new(RateLimits {
            per_second,
            slip,
            window: Duration::from_secs(2),
            networks: 3,
            ..RateLimits::default()
        })
    }

    fn v4(last: [u8; 2]) -> IpAddr {
        IpAddr::from([192, 0, last[0], last[1]])
    }

    #[test]
    fn a_network_gets_a_second_s_worth_at_once_and_then_so_many_a_second() {
        let mut table = limiter(10, 0);
        for question in 0..10 {
            let verdict = table.check(at(0), v4([2, question]));
            assert_eq!(verdict, Verdict::Answer, "{question}");
        }
        assert_eq!(table.check(at(0), v4([2, 200])), Verdict::Drop);
        assert_eq!(table.check(at(0), v4([3, 0])), Verdict::Answer); // another /24
        // The suppressed answer also cost a token.
        assert_eq!(table.check(at(100), v4([2, 0])), Verdict::Drop);
        assert_eq!(table.check(at(400), v4([2, 0])), Verdict::Answer);
        // Long after, the bucket has the tokens of one second, and no more.
        let given = (0..20).filter(|_| table.check(at(99_000), v4([2, 0])) == Verdict::Answer);
        assert_eq!(given.count(), 10);
    }

    #[test]
    fn a_flood_is_silenced_for_the_window_after_it_and_no_longer() {
        let mut table = limiter(10, 0);
        for _ in 0..100_000 {
            table.check(at(0), v4([2, 1]));
        }
        assert_eq!(table.check(at(1_999), v4([2, 1])), Verdict::Drop);
        assert_eq!(table.check(at(2_300), v4([2, 1])), Verdict::Answer);
    }

    #[test]
    fn every_nth_suppressed_answer_is_truncated() {
        let mut table = limiter(1, 3);
        assert_eq!(table.check(at(0), v4([2, 1])), Verdict::Answer);
        let verdicts: Vec<Verdict> = (0..6).map(|_| table.check(at(0), v4([2, 1]))).collect();
        use Verdict::{Drop, Slip};
        assert_eq!(verdicts, [Drop, Drop, Slip, Drop, Drop, Slip]);
    }

    #[test]
    fn a_56_of_ipv6_is_one_network_and_a_mapped_address_is_its_ipv4() {
        let mut table = limiter(1, 0);
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(table.check(at(0), ip("2a00:1:2:300::1")), Verdict::Answer);
        assert_eq!(table.check(at(0), ip("2a00:1:2:3ff::1")), Verdict::Drop);
        assert_eq!(table.check(at(0), ip("2a00:1:2:400::1")), Verdict::Answer);
        assert_eq!(table.check(at(0), ip("::ffff:192.0.2.1")), Verdict::Answer);
        assert_eq!(table.check(at(0), v4([2, 9])), Verdict::Drop);
    }

    #[test]
    fn the_table_is_bounded_and_evicts_the_quietest_network() {
        let mut table = limiter(1, 0);
        for network in [1, 2, 3, 1] {
            table.check(at(0), v4([network, 1]));
        }
        table.check(at(0), v4([4, 1])); // one more than there is room for: 2 was quiet longest
        assert_eq!(table.networks(), 3);
        assert_eq!(table.check(at(0), v4([1, 1])), Verdict::Drop);
        assert_eq!(table.check(at(0), v4([3, 1])), Verdict::Drop);
        assert_eq!(table.check(at(0), v4([2, 1])), Verdict::Answer);
        assert_eq!(table.networks(), 3);
    }

    #[test]
    fn any_width_of_a_network_is_one() {
        for (ipv4_bits, ipv6_bits) in [(0, 0), (32, 128), (200, 200)] {
            let limits = RateLimits {
                ipv4_bits,
                ipv6_bits,
                ..RateLimits::default()
            };
            let table = RateLimiter::new(limits);
            let (v4, v6) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([0x2a00; 8]));
            let whole = ipv4_bits > 0;
            assert_eq!(table.network(v4) == v4, whole);
            assert_eq!(table.network(v6) == v6, whole);
        }
    }
}
