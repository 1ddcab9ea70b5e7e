//! Who may connect: so many at once, and of those so many from one address.
//!
//! A budget of one session is nothing to a client that opens another. So what one address has open, how
//! fast it connects, and how often its connections were ended for abuse is kept beside the sessions:
//!
//! ```text
//! address -> open now | tokens for new connections | abuses since ..     a table of bounded length
//! ```
//!
//! An address is a whole IPv4 address, or the first half of an IPv6 one: /64 is what one network gets. Who has a
//! site of his own has 65,536 of those, and could be as many clients: so the /48 around it is counted as well.
//! There is no I/O and no clock in the table: `now` is an argument.
//!
//! When all places are taken, connections without anything to do give way, of the address that has most, the one
//! that has waited longest: a few addresses cannot keep all others out by holding connections.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spdy_clock::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limit::{ConnectionLimit, LimitHits};
use crate::seat::Seat;

/// What one address, and all together, may have. A 0 is no limit, but for `connections`. A /48 of IPv6 may have
/// twice what an address may.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionLimits {
    /// Connections open at once, from whomever. Default 16,384.
    pub connections: usize,
    /// With all places taken, whether a connection that has nothing to do is ended for one that waits. Default
    /// `true`.
    pub idle_gives_way: bool,
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
            idle_gives_way: true,
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
/// How many times what one /64 of IPv6 may have its /48 may have. Not more, or two of them would fill the house;
/// not less, for a mobile network puts many customers into one.
const SITE_FACTOR: u32 = 2;
/// How long a connection that was asked to give way has, before another is asked.
const WAY_PATIENCE: Duration = Duration::from_secs(1);

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
    table: Arc<Mutex<Table>>,
    /// Counts on whenever a connection has nothing to do any more.
    turns: Arc<AtomicU64>,
    hits: LimitHits,
    /// Where the clock of its listeners starts.
    began: tokio::time::Instant,
}

/// Whom limits are for: as many bits of an address as he has.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Source {
    prefix: IpAddr,
    bits: u8,
}

impl Source {
    /// Those that a connection from `address` counts for, the widest first: who sweeps his /64s meets the limit of
    /// his /48 before each of them is remembered.
    fn all(address: IpAddr) -> impl DoubleEndedIterator<Item = Self> + Clone {
        let address = address.to_canonical();
        let all: &[u8] = if address.is_ipv4() { &[32] } else { &[48, 64] };
        all.iter().map(move |&bits| Self {
            prefix: match address {
                IpAddr::V6(address) => {
                    let prefix = u128::from(address) >> (128 - bits) << (128 - bits);
                    IpAddr::V6(Ipv6Addr::from(prefix))
                }
                v4 => v4,
            },
            bits,
        })
    }

    /// The widest of them.
    fn widest(address: IpAddr) -> Self {
        let widest = Self::all(address).next();
        widest.unwrap_or_else(|| unreachable!("every address counts for itself"))
    }

    /// How many times what an address may have it may have.
    fn factor(self) -> u32 {
        if self.bits == 48 { SITE_FACTOR } else { 1 }
    }
}

#[derive(Debug, Default)]
struct Table {
    records: BTreeMap<Source, Record>,
    /// The places that are taken, by the widest source of each and in the order in which they were.
    seats: BTreeMap<Source, BTreeMap<u64, Seat>>,
    next_seat: u64,
}

impl Table {
    /// Of the sources that have an idle connection the one with most, of its own the one idle longest.
    fn longest_idle(&self) -> Option<&Seat> {
        let mut best: Option<(usize, Reverse<u64>, &Seat)> = None;
        for seats in self.seats.values() {
            let held = seats.len();
            if best.as_ref().is_some_and(|(most, ..)| *most > held) {
                continue;
            }
            let idle = seats
                .values()
                .filter_map(|seat| Some((seat.idle_since()?, seat)));
            if let Some((since, seat)) = idle.min_by_key(|(since, _)| *since) {
                let candidate = (held, Reverse(since), seat);
                if best
                    .as_ref()
                    .is_none_or(|best| (best.0, best.1) < (candidate.0, candidate.1))
                {
                    best = Some(candidate);
                }
            }
        }
        best.map(|(.., seat)| seat)
    }
}

/// What is known of a source.
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
            turns: Arc::default(),
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
        if let Ok(permit) = self.room.clone().try_acquire_owned() {
            return permit;
        }
        self.hits.count(ConnectionLimit::MaxConnections);
        let mut permit = std::pin::pin!(self.room.clone().acquire_owned());
        loop {
            if self.limits.idle_gives_way && self.make_way() {
                self.hits.count(ConnectionLimit::IdleGivesWay);
            }
            if let Ok(permit) = tokio::time::timeout(WAY_PATIENCE, &mut permit).await {
                return permit.unwrap_or_else(|error| unreachable!("nobody closes it: {error}"));
            }
        }
    }

    /// Asks a connection that has nothing to do to end: of those who have one the source with most connections,
    /// of its own the one that has waited longest. `false` if all have something to do.
    fn make_way(&self) -> bool {
        let table = self.lock();
        // One that was asked something since it was looked at stays, and the next is looked for.
        while let Some(seat) = table.longest_idle() {
            if seat.give_way() {
                return true;
            }
        }
        false
    }

    /// Whether there is room, and `address` has used up less than half of what it may have: else whoever can write
    /// its name on a packet could use up the rest, and keep it out.
    pub(crate) fn is_at_ease(&self, now: Instant, address: IpAddr) -> bool {
        let limits = &self.limits;
        let table = self.lock();
        let half_used = |source: Source| {
            let Some(record) = table.records.get(&source) else {
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
        self.room.available_permits() > 0 && !Source::all(address).any(half_used)
    }

    /// Lets a connection from `address` in at `now`; it counts as open until what is returned is dropped.
    ///
    /// # Errors
    ///
    /// The limit that it is past.
    pub fn admit(&self, now: Instant, address: IpAddr) -> Result<Admitted, ConnectionLimit> {
        let mut table = self.lock();
        let full = u64::from(self.limits.rate) * BURST_SECONDS * 1000;
        for source in Source::all(address) {
            let records = &mut table.records;
            if !records.contains_key(&source) && records.len() >= self.limits.addresses {
                self.forget_some(records, now, address);
            }
            let full = full * u64::from(source.factor());
            let record = records.entry(source).or_insert(Record {
                open: 0,
                tokens: full,
                filled: now,
                abuses: 0,
                abused: now,
            });
            if let Some(limit) = self.judge(record, now, full, source.factor()) {
                self.hits.count(limit);
                return Err(limit);
            }
        }
        // Only who meets no limit at all is charged.
        for source in Source::all(address) {
            if let Some(record) = table.records.get_mut(&source) {
                record.open += 1;
                record.tokens = record.tokens.saturating_sub(1000);
            }
        }
        let (number, seat) = (table.next_seat, Seat::new(self.turns.clone()));
        table.next_seat += 1;
        let seats = table.seats.entry(Source::widest(address)).or_default();
        seats.insert(number, seat.clone());
        drop(table);
        Ok(Admitted {
            admission: self.clone(),
            address,
            number,
            seat,
        })
    }

    fn judge(
        &self,
        record: &mut Record,
        now: Instant,
        full: u64,
        factor: u32,
    ) -> Option<ConnectionLimit> {
        let limits = &self.limits;
        let times = |limit: u32| limit.saturating_mul(factor);
        if now - record.abused >= limits.abuse_window {
            record.abuses = 0;
        }
        if limits.abuses > 0 && record.abuses >= times(limits.abuses) {
            return Some(ConnectionLimit::AbusesPerAddress);
        }
        if limits.per_address > 0 && record.open >= times(limits.per_address) {
            return Some(ConnectionLimit::ConnectionsPerAddress);
        }
        // Only whole milliseconds are paid for, and what is left of one stays due: who asks more often would
        // shut the door for all behind the address.
        let waited = (now - record.filled).as_millis() as u64;
        record.filled += Duration::from_millis(waited);
        let earned = waited.saturating_mul(times(limits.rate).into());
        record.tokens = record.tokens.saturating_add(earned).min(full);
        (limits.rate > 0 && record.tokens < 1000).then_some(ConnectionLimit::ConnectionRate)
    }

    /// Makes room for another source of `address`: those that have nothing open and a clean record go, and if
    /// that is not enough, all that have nothing open. Its own stay: they are about to be charged.
    fn forget_some(&self, records: &mut BTreeMap<Source, Record>, now: Instant, address: IpAddr) {
        let window = self.limits.abuse_window;
        let own = Source::all(address);
        let needed = |source: &Source, record: &Record| {
            record.open > 0 || own.clone().any(|own| own == *source)
        };
        records.retain(|source, record| {
            needed(source, record) || (record.abuses > 0 && now - record.abused < window)
        });
        if records.len() >= self.limits.addresses {
            records.retain(|source, record| needed(source, record));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A connection that was let in.
#[derive(Debug)]
pub struct Admitted {
    admission: Admission,
    address: IpAddr,
    number: u64,
    seat: Seat,
}

impl Admitted {
    /// Its place: for the connection, to say what it does and to hear when it is wanted.
    #[must_use]
    pub fn seat(&self) -> Seat {
        self.seat.clone()
    }

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
        let mut table = self.admission.lock();
        for source in Source::all(self.address) {
            if let Some(record) = table.records.get_mut(&source) {
                if record.abuses == 0 {
                    record.abused = now;
                }
                record.abuses = record.abuses.saturating_add(1);
            }
        }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut table = self.admission.lock();
        for source in Source::all(self.address) {
            if let Some(record) = table.records.get_mut(&source) {
                record.open = record.open.saturating_sub(1);
            }
        }
        let source = Source::widest(self.address);
        if let Some(seats) = table.seats.get_mut(&source) {
            seats.remove(&self.number);
            if seats.is_empty() {
                table.seats.remove(&source);
            }
        }
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
    fn who_sweeps_his_64s_meets_the_limits_of_his_48_before_they_fill_the_table() {
        let subnet = |n: u16| IpAddr::from([0x2001, 0xdb8, 7, n, 0, 0, 0, 1]);
        let door = door(|limits| (limits.per_address, limits.rate) = (3, 10));
        let open: Vec<_> = (0..6).map(|n| door.admit(ms(0), subnet(n))).collect();
        assert!(open.iter().all(Result::is_ok));
        let met = door.admit(ms(0), subnet(6)).expect_err("one too many");
        assert_eq!(met, ConnectionLimit::ConnectionsPerAddress);
        let _other = door
            .admit(ms(0), ip("2001:db8:8::1"))
            .expect("another site");
        drop(open);
        let quick = (10..2000).filter(|n| door.admit(ms(0), subnet(*n)).is_ok());
        assert_eq!(quick.count(), 94, "what is saved for five seconds, twice");
        assert_eq!(door.hits.of(ConnectionLimit::ConnectionRate), 1896);
        let remembered = door.lock().records.len();
        assert_eq!(remembered, 94 + 6 + 1 + 2, "those that were let in");
    }

    #[tokio::test]
    async fn with_all_places_taken_the_longest_idle_of_the_address_that_has_most_is_asked_to_go() {
        use futures_util::FutureExt;
        let door = door(|limits| limits.connections = 5);
        let mut held = Vec::new();
        for (address, count) in [("192.0.2.1", 1), ("192.0.2.2", 3), ("192.0.2.3", 1)] {
            for _ in 0..count {
                let permit = door.room().await;
                let admitted = door.admit(ms(0), ip(address)).expect("a place");
                held.push((admitted, permit));
            }
        }
        let seat = |n: usize| held[n].0.seat();
        let wanted = || (0..5).filter(|n| held[*n].0.seat().wanted().now_or_never().is_some());
        // Of the second address the first has something to do, and the second had a moment ago.
        let _busy = seat(1).exchange();
        drop(seat(2).exchange());
        assert_eq!(
            wanted().count(),
            0,
            "all places are taken, and nobody waits"
        );
        let mut first = Box::pin(door.room());
        assert!((&mut first).now_or_never().is_none());
        assert_eq!(wanted().collect::<Vec<_>>(), [3]);
        let mut next = Box::pin(door.room());
        assert!((&mut next).now_or_never().is_none());
        assert_eq!(wanted().collect::<Vec<_>>(), [2, 3]);
        // All of the others have as many, and the first of them has waited longest.
        let mut last = Box::pin(door.room());
        assert!((&mut last).now_or_never().is_none());
        assert_eq!(wanted().collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(door.hits.of(ConnectionLimit::IdleGivesWay), 3);
        assert_eq!(door.hits.of(ConnectionLimit::MaxConnections), 3);
    }

    #[tokio::test]
    async fn nobody_is_asked_to_go_where_idle_connections_may_stay() {
        use futures_util::FutureExt;
        let door = door(|limits| (limits.connections, limits.idle_gives_way) = (1, false));
        let _permit = door.room().await;
        let admitted = door.admit(ms(0), ip("192.0.2.1")).expect("a place");
        assert!(door.room().now_or_never().is_none());
        assert!(admitted.seat().wanted().now_or_never().is_none());
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

    #[test]
    fn an_address_is_at_ease_until_half_of_what_it_may_have_is_used_up() {
        let (one, other) = (ip("192.0.2.1"), ip("192.0.2.2"));
        let by_rate = door(|limits| limits.rate = 2);
        for nth in 0..5 {
            assert!(by_rate.is_at_ease(ms(0), one), "{nth} of ten tokens");
            by_rate.admit(ms(0), one).expect("there are tokens");
        }
        assert!(!by_rate.is_at_ease(ms(0), one));
        assert!(by_rate.is_at_ease(ms(0), other));
        assert!(!by_rate.is_at_ease(ms(0), one), "asking costs nothing");
        assert!(by_rate.is_at_ease(ms(500), one), "a token came");
        let by_number = door(|limits| limits.per_address = 4);
        let open = [(); 2].map(|()| {
            assert!(by_number.is_at_ease(ms(0), one));
            by_number.admit(ms(0), one).expect("there is room")
        });
        assert!(!by_number.is_at_ease(ms(0), one));
        drop(open);
        assert!(by_number.is_at_ease(ms(0), one));
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
            assert!(door.lock().records.len() <= 10);
        }
        assert!(door.admit(ms(2), bad).is_err(), "it was remembered");
        assert!(
            door.lock()
                .records
                .contains_key(&Source::widest(ip("192.0.2.2"))),
            "it is open"
        );
    }

    /// Room for the /64 was made by forgetting the /48, which was remembered a moment before.
    #[test]
    fn a_table_with_one_place_left_charges_the_48_and_the_64_alike() {
        let door = door(|limits| limits.addresses = 3);
        let _open = door.admit(ms(0), ip("192.0.2.1")).expect("the first");
        drop(door.admit(ms(0), ip("192.0.2.2")).expect("another"));
        let address = ip("2001:db8::1");
        let admitted = door.admit(ms(1), address).expect("a site");
        let open = || {
            let table = door.lock();
            let records = Source::all(address).map(|source| Some(table.records.get(&source)?.open));
            records.collect::<Vec<_>>()
        };
        assert_eq!(open(), [Some(1), Some(1)]);
        assert!(door.lock().records.len() <= 3);
        drop(admitted);
        assert_eq!(open(), [Some(0), Some(0)]);
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
