//! Who may connect: so many at once, and of those so many from one address.
//!
//! A budget of one session is nothing to a client that opens another. So what one address has open, how
//! fast it connects, and how often its connections were ended for abuse is kept beside the sessions:
//!
//! ```text
//! address -> open now | tokens for new connections | abuses since ..     a table of bounded length
//! ```
//!
//! An address is a whole IPv4 address, or the first half of an IPv6 one: /64 is what one customer gets.
//! There is no I/O and no clock in the table: `now` is an argument.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spdy_clock::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limit::{ConnectionLimit, LimitHits};

/// What one address, and all together, may have. A 0 is no limit, but for `connections`.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionLimits {
    /// Connections open at once, from whomever. Default 16,384.
    pub connections: usize,
    /// Connections of one address open at once. Default 4096: many clients may share an address.
    pub per_address: u32,
    /// New connections of one address in a second, on average; in a burst, five seconds' worth.
    /// Default 1000.
    pub rate: u32,
    /// Connections of one address that were ended for abuse in `abuse_window`. With so many, the address
    /// is not heard until the window is over. Default 10.
    pub abuses: u32,
    /// Over how long abuses are counted. Default 60 s.
    pub abuse_window: Duration,
    /// Addresses that are remembered. Those that have nothing open are forgotten first. Default 65,536.
    pub addresses: usize,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self {
            connections: 16 * 1024,
            per_address: 4096,
            rate: 1000,
            abuses: 10,
            abuse_window: Duration::from_secs(60),
            addresses: 64 * 1024,
        }
    }
}

/// Seconds for which tokens of `rate` are saved up.
const BURST_SECONDS: u64 = 5;

/// How a connection's peer behaved.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Conduct {
    /// As peers do.
    Fair,
    /// It went past a limit, and the connection was ended for it.
    Abusive,
}

impl From<()> for Conduct {
    fn from((): ()) -> Self {
        Self::Fair
    }
}

/// The door of one or several listeners. Clones are the same door.
#[derive(Clone, Debug)]
pub struct Admission {
    limits: AdmissionLimits,
    room: Arc<Semaphore>,
    table: Arc<Mutex<BTreeMap<IpAddr, Record>>>,
    hits: LimitHits,
    /// Where the clock of its listeners starts.
    began: tokio::time::Instant,
}

/// What is known of an address.
#[derive(Clone, Copy, Debug)]
struct Record {
    open: u32,
    /// Thousandths of a connection that it may still open at once.
    tokens: u64,
    filled: Instant,
    abuses: u32,
    abused: Instant,
}

impl Default for Admission {
    fn default() -> Self {
        Self::new(AdmissionLimits::default(), LimitHits::default())
    }
}

impl Admission {
    /// A door that counts who meets a limit in `hits`.
    #[must_use]
    pub fn new(limits: AdmissionLimits, hits: LimitHits) -> Self {
        Self {
            limits,
            room: Arc::new(Semaphore::new(
                limits.connections.min(Semaphore::MAX_PERMITS),
            )),
            table: Arc::default(),
            hits,
            began: tokio::time::Instant::now(),
        }
    }

    /// The hour, as all listeners of this door have it.
    pub(crate) fn hour(&self) -> Instant {
        Instant::ZERO + self.began.elapsed()
    }

    /// Waits until one more connection may be open.
    pub(crate) async fn room(&self) -> OwnedSemaphorePermit {
        let room = self.room.clone();
        match room.clone().try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                self.hits.count(ConnectionLimit::MaxConnections);
                let permit = room.acquire_owned().await;
                permit.unwrap_or_else(|error| unreachable!("nobody closes it: {error}"))
            }
        }
    }

    /// Lets a connection from `address` in at `now`; it counts as open until what is returned is dropped.
    ///
    /// # Errors
    ///
    /// The limit that it is past.
    pub fn admit(&self, now: Instant, address: IpAddr) -> Result<Admitted, ConnectionLimit> {
        let address = one_customer(address);
        let mut table = self.lock();
        if !table.contains_key(&address) && table.len() >= self.limits.addresses {
            self.forget_some(&mut table, now);
        }
        let full = u64::from(self.limits.rate) * BURST_SECONDS * 1000;
        let record = table.entry(address).or_insert(Record {
            open: 0,
            tokens: full,
            filled: now,
            abuses: 0,
            abused: now,
        });
        let met = self.judge(record, now, full);
        if let Some(limit) = met {
            self.hits.count(limit);
            return Err(limit);
        }
        record.open += 1;
        record.tokens = record.tokens.saturating_sub(1000);
        Ok(Admitted {
            admission: self.clone(),
            address,
        })
    }

    fn judge(&self, record: &mut Record, now: Instant, full: u64) -> Option<ConnectionLimit> {
        let limits = &self.limits;
        if now - record.abused >= limits.abuse_window {
            record.abuses = 0;
        }
        if limits.abuses > 0 && record.abuses >= limits.abuses {
            return Some(ConnectionLimit::AbusesPerAddress);
        }
        if limits.per_address > 0 && record.open >= limits.per_address {
            return Some(ConnectionLimit::ConnectionsPerAddress);
        }
        // Only whole milliseconds are paid for, and what is left of one stays due: who asks more often would
        // shut the door for all behind the address.
        let waited = (now - record.filled).as_millis() as u64;
        record.filled += Duration::from_millis(waited);
        let earned = waited.saturating_mul(limits.rate.into());
        record.tokens = record.tokens.saturating_add(earned).min(full);
        (limits.rate > 0 && record.tokens < 1000).then_some(ConnectionLimit::ConnectionRate)
    }

    /// Makes room for another address: those that have nothing open and a clean record go, and if that is
    /// not enough, all that have nothing open.
    fn forget_some(&self, table: &mut BTreeMap<IpAddr, Record>, now: Instant) {
        let window = self.limits.abuse_window;
        table.retain(|_, record| {
            record.open > 0 || (record.abuses > 0 && now - record.abused < window)
        });
        if table.len() >= self.limits.addresses {
            table.retain(|_, record| record.open > 0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<IpAddr, Record>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that was let in.
#[derive(Debug)]
pub struct Admitted {
    admission: Admission,
    address: IpAddr,
}

impl Admitted {
    /// The connection ended, its peer having behaved so.
    pub(crate) fn ended(self, conduct: Conduct) {
        let now = self.admission.hour();
        self.ended_at(now, conduct);
    }

    /// As `ended`, at `now`.
    fn ended_at(self, now: Instant, conduct: Conduct) {
        if conduct == Conduct::Fair {
            return;
        }
        if let Some(record) = self.admission.lock().get_mut(&self.address) {
            if record.abuses == 0 {
                record.abused = now;
            }
            record.abuses = record.abuses.saturating_add(1);
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(record) = self.admission.lock().get_mut(&self.address) {
            record.open = record.open.saturating_sub(1);
        }
    }
}

/// The part of an address that is one customer's.
fn one_customer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(prefix))
        }
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn door(change: impl FnOnce(&mut AdmissionLimits)) -> Admission {
        let mut limits = AdmissionLimits::default();
        change(&mut limits);
        Admission::new(limits, LimitHits::default())
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn ms(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn one_connection_too_many_from_an_address_is_closed_and_others_are_not() {
        let door = door(|limits| limits.per_address = 2);
        let (one, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        let first = door.admit(ms(0), one).expect("the first");
        let _second = door.admit(ms(0), one).expect("the second");
        let met = door.admit(ms(0), one).expect_err("one too many");
        assert_eq!(met, ConnectionLimit::ConnectionsPerAddress);
        assert_eq!(door.hits.of(met), 1);
        door.admit(ms(0), other).expect("another address");
        first.ended_at(ms(1), Conduct::Fair);
        door.admit(ms(1), one).expect("one has gone");
    }

    #[test]
    fn an_ipv6_customer_is_a_64_and_a_mapped_address_is_ipv4() {
        let door = door(|limits| limits.per_address = 1);
        let _one = door.admit(ms(0), ip("2001:db8::1")).expect("the first");
        assert!(door.admit(ms(0), ip("2001:db8::ffff:1")).is_err());
        let _two = door
            .admit(ms(0), ip("2001:db8:0:1::1"))
            .expect("a neighbour");
        let _four = door.admit(ms(0), ip("192.0.2.1")).expect("the first");
        assert!(door.admit(ms(0), ip("::ffff:192.0.2.1")).is_err());
    }

    #[test]
    fn new_connections_wait_for_tokens_which_are_saved_for_five_seconds() {
        let door = door(|limits| limits.rate = 2);
        let one = ip("192.0.2.1");
        for nth in 0..10 {
            assert!(door.admit(ms(0), one).is_ok(), "{nth}");
        }
        let met = door.admit(ms(0), one).expect_err("one too many");
        assert_eq!(met, ConnectionLimit::ConnectionRate);
        assert!(door.admit(ms(499), one).is_err());
        assert!(door.admit(ms(500), one).is_ok());
        assert!(door.admit(ms(500), one).is_err());
        for nth in 0..10 {
            assert!(door.admit(ms(1_000_000), one).is_ok(), "{nth}");
        }
        assert!(door.admit(ms(1_000_000), one).is_err());
    }

    /// A client that asked more than once a millisecond kept its address at nothing for ever.
    #[test]
    fn asking_more_often_than_the_rate_gives_no_less_than_the_rate() {
        let door = door(|limits| limits.rate = 1000);
        let one = ip("192.0.2.1");
        let every = Duration::from_micros(600);
        let asks = (0..50_000).map(|nth| door.admit(Instant::ZERO + every * nth, one));
        let admitted = asks.filter(Result::is_ok).count();
        assert_eq!(
            admitted,
            5_000 + 29_999,
            "the burst, and thirty seconds' worth"
        );
    }

    #[test]
    fn an_address_whose_connections_are_ended_for_abuse_is_not_heard_for_a_while() {
        let door = door(|limits| limits.abuses = 3);
        let one = ip("192.0.2.1");
        for at in [0, 10_000, 20_000] {
            let connection = door.admit(ms(at), one).expect("not yet too many");
            connection.ended_at(ms(at), Conduct::Abusive);
        }
        let met = door.admit(ms(20_000), one).expect_err("one too many");
        assert_eq!(met, ConnectionLimit::AbusesPerAddress);
        assert!(door.admit(ms(59_999), one).is_err());
        assert!(door.admit(ms(60_000), one).is_ok());
    }

    #[test]
    fn the_table_does_not_grow_past_its_limit_and_forgets_abuses_last() {
        let door = door(|limits| (limits.addresses, limits.abuses) = (10, 1));
        let bad = ip("192.0.2.1");
        let connection = door.admit(ms(0), bad).expect("the first");
        connection.ended_at(ms(0), Conduct::Abusive);
        let _open = door.admit(ms(0), ip("192.0.2.2")).expect("another");
        for n in 0..1000_u32 {
            let address = IpAddr::from(n.to_be_bytes());
            drop(door.admit(ms(1), address));
            assert!(door.lock().len() <= 10);
        }
        assert!(door.admit(ms(2), bad).is_err(), "it was remembered");
        assert!(door.lock().contains_key(&ip("192.0.2.2")), "it is open");
    }

    #[test]
    fn a_limit_of_zero_is_none() {
        let door = door(|limits| (limits.per_address, limits.rate, limits.abuses) = (0, 0, 0));
        let open: Vec<_> = (0..10_000)
            .map(|_| door.admit(ms(0), ip("192.0.2.1")))
            .collect();
        assert!(open.iter().all(Result::is_ok));
    }

    #[tokio::test]
    async fn who_waits_for_room_is_counted_and_let_in_when_there_is() {
        use futures_util::FutureExt;
        let door = door(|limits| limits.connections = 1);
        let first = door.room().await;
        assert_eq!(door.hits.of(ConnectionLimit::MaxConnections), 0);
        let mut second = Box::pin(door.room());
        assert!((&mut second).now_or_never().is_none());
        assert_eq!(door.hits.of(ConnectionLimit::MaxConnections), 1);
        drop(first);
        assert!((&mut second).now_or_never().is_some());
    }
}
