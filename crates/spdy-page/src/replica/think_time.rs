//! Estimates from a recording the think time of each response: how long the server computed before it responded.
//!
//! A recorder that knows its server states the think time. Any other recording has one time from the request to the first byte of the
//! response. Three things are in it:
//!
//! ```text
//! request sent                                      first byte
//! |------------------------ wait -----------------------|
//! |- one round trip -|- other responses -|- think time -|
//! ```
//!
//! - The round trip of a host is the shortest TCP handshake or wait that was recorded for its address.
//! - While the same connection delivered other responses, the server may have been ready. That time does not count.
//!
//! So the estimate is a lower bound where a connection has several streams, and an upper bound where packets waited in queues.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::head;
use crate::replica::{Exchange, Replica};

/// The longest think time that is replayed.
pub const MAX_THINK_TIME: Duration = Duration::from_secs(60);

/// A shorter time is no round trip to the server: it is a response from a cache, a connection that was opened ahead, or a proxy on the
/// recording machine (1 ms in recordings of whole milliseconds).
const MIN_ROUND_TRIP: Duration = Duration::from_millis(2);

impl Replica {
    /// The think time of each exchange: the [stated](crate::replica::observation::Observation::think_time) one, else an estimate from
    /// the recorded wait, else zero. At most [`MAX_THINK_TIME`].
    #[must_use]
    pub fn think_times(&self) -> Vec<Duration> {
        let round_trips = round_trips(&self.exchanges);
        let received = received_by_connection(&self.exchanges);
        let think_time = |exchange: &Exchange| {
            if let Some(stated) = exchange.observed.think_time {
                return Some(stated);
            }
            let wait = exchange.wait?;
            let round_trip = *round_trips.get(&server_of(exchange))?;
            let sent = exchange.started.map(|started| {
                let sent = started.saturating_add(exchange.queued.unwrap_or_default());
                (sent, sent.saturating_add(wait))
            });
            let busy = match (sent, received.get(&connection_of(exchange))) {
                (Some((from, until)), Some(received)) => overlap(received, from, until),
                _ => Duration::ZERO,
            };
            Some(wait.saturating_sub(busy).saturating_sub(round_trip))
        };
        let times = self.exchanges.iter().map(think_time);
        times
            .map(|time| time.unwrap_or_default().min(MAX_THINK_TIME))
            .collect()
    }

    /// States the think time of each exchange, in their order.
    pub fn state_think_times(&mut self, think_times: &[Duration]) {
        for (exchange, &think_time) in self.exchanges.iter_mut().zip(think_times) {
            exchange.observed.think_time = Some(think_time);
        }
    }
}

/// The address of the server, or the host if no address was recorded.
fn server_of(exchange: &Exchange) -> String {
    match exchange.address {
        Some(address) => address.to_string(),
        None => exchange.url.host_str().unwrap_or_default().to_owned(),
    }
}

/// The shortest handshake or wait of each server.
fn round_trips(exchanges: &[Exchange]) -> BTreeMap<String, Duration> {
    let mut shortest: BTreeMap<String, Duration> = BTreeMap::new();
    for exchange in exchanges {
        let observed = &exchange.observed;
        let connect = observed.connect;
        let handshake = connect
            .map(|connect| connect.saturating_sub(observed.tls.unwrap_or_default()))
            .filter(|time| *time >= MIN_ROUND_TRIP);
        let wait = exchange.wait.filter(|time| *time >= MIN_ROUND_TRIP);
        for time in [handshake, wait].into_iter().flatten() {
            let least = shortest.entry(server_of(exchange)).or_insert(time);
            *least = time.min(*least);
        }
    }
    shortest
}

/// A connection: its recorded number, or its origin if the number was not recorded.
fn connection_of(exchange: &Exchange) -> Result<u32, String> {
    let number = exchange.observed.connection;
    number.ok_or_else(|| head::authority(&exchange.url))
}

/// When each connection with several streams delivered responses: intervals in order, without overlap.
fn received_by_connection(
    exchanges: &[Exchange],
) -> BTreeMap<Result<u32, String>, Vec<(Duration, Duration)>> {
    let mut received: BTreeMap<_, Vec<(Duration, Duration)>> = BTreeMap::new();
    for exchange in exchanges {
        let has_streams = exchange.observed.has_streams();
        if let (true, Some(first), Some(last)) =
            (has_streams, exchange.first_byte(), exchange.finished())
        {
            let intervals = received.entry(connection_of(exchange)).or_default();
            intervals.push((first, last));
        }
    }
    for intervals in received.values_mut() {
        intervals.sort_unstable();
        intervals.dedup_by(|next, last| {
            let meets = next.0 <= last.1;
            if meets {
                last.1 = last.1.max(next.1);
            }
            meets
        });
    }
    received
}

/// The part of `from..until` in `intervals`, which are in order and do not overlap.
fn overlap(intervals: &[(Duration, Duration)], from: Duration, until: Duration) -> Duration {
    let first = intervals.partition_point(|(_, end)| *end <= from);
    let inside = intervals[first..]
        .iter()
        .take_while(|(start, _)| *start < until);
    inside
        .map(|&(start, end)| end.min(until).saturating_sub(start.max(from)))
        .fold(Duration::ZERO, Duration::saturating_add)
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;
    use crate::builtin;
    use crate::replica::Kind;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// An exchange that was sent at `sent`, waited for `wait`, and was received within `receive`.
    fn exchange(url: &str, sent: u64, wait: u64, receive: u64) -> Exchange {
        let url = Url::parse(url).unwrap();
        let mut exchange = Exchange::synthetic(url, Kind::Image, "image/png", "x");
        exchange.started = Some(ms(sent));
        exchange.wait = Some(ms(wait));
        exchange.receive = Some(ms(receive));
        exchange
    }

    fn think_times(exchanges: Vec<Exchange>) -> Vec<u64> {
        let replica = Replica {
            exchanges,
            ..builtin::flags()
        };
        let times = replica.think_times();
        times
            .iter()
            .map(|time| u64::try_from(time.as_millis()).unwrap())
            .collect()
    }

    #[test]
    fn the_shortest_wait_of_a_server_is_its_round_trip() {
        let pages = vec![
            exchange("http://a.test/", 0, 250, 10),
            exchange("http://a.test/1", 300, 40, 10),
            exchange("http://a.test/2", 300, 45, 10),
            exchange("http://b.test/", 300, 90, 10),
        ];
        assert_eq!(think_times(pages), [210, 0, 5, 0]);
    }

    #[test]
    fn a_handshake_shorter_than_every_wait_is_the_round_trip() {
        let mut page = exchange("https://a.test/", 0, 250, 10);
        page.observed.connect = Some(ms(90));
        page.observed.tls = Some(ms(60));
        assert_eq!(think_times(vec![page.clone()]), [220]);
        page.observed.connect = Some(ms(1));
        page.observed.tls = None;
        assert_eq!(think_times(vec![page]), [0], "a proxy nearby");
    }

    #[test]
    fn time_in_which_the_connection_delivers_other_responses_does_not_count() {
        let mut all = vec![
            exchange("https://a.test/", 0, 30, 0),
            exchange("https://a.test/1", 50, 30, 200), // received from 80 to 280
            exchange("https://a.test/2", 50, 260, 10), // waits from 50 to 310
        ];
        assert_eq!(think_times(all.clone()), [0, 0, 230], "HTTP/1.1");
        for each in &mut all {
            each.observed.protocol = Some("h2".to_owned());
        }
        assert_eq!(think_times(all.clone()), [0, 0, 30]);
        all[1].observed.connection = Some(7);
        assert_eq!(think_times(all), [0, 0, 230], "another connection");
    }

    #[test]
    fn a_think_time_is_zero_without_recorded_times_and_has_a_maximum() {
        let mut first = exchange("http://a.test/", 0, 10, 0);
        let mut second = exchange("http://a.test/1", 0, 86_400_000, 0);
        assert_eq!(
            think_times(vec![first.clone(), second.clone()]),
            [0, 60_000]
        );
        (first.wait, second.wait) = (None, None);
        assert_eq!(think_times(vec![first, second]), [0, 0]);
    }

    #[test]
    fn a_stated_think_time_replaces_the_estimate_from_the_wait() {
        let first = exchange("http://a.test/", 0, 40, 10);
        let second = exchange("http://a.test/1", 100, 500, 10);
        let mut replica = Replica {
            exchanges: vec![first.clone(), second.clone(), second],
            ..builtin::flags()
        };
        assert_eq!(replica.think_times(), [ms(0), ms(460), ms(460)]);
        replica.state_think_times(&[ms(7), ms(0)]);
        assert_eq!(replica.think_times(), [ms(7), ms(0), ms(460)]);
        replica.state_think_times(&[Duration::MAX]);
        assert_eq!(replica.think_times()[0], MAX_THINK_TIME);
    }

    #[test]
    fn intervals_of_any_order_are_merged() {
        let intervals = [(ms(10), ms(20)), (ms(30), ms(50))];
        for (from, until, expected) in [(0, 5, 0), (15, 35, 10), (0, 100, 30), (20, 30, 0)] {
            assert_eq!(overlap(&intervals, ms(from), ms(until)), ms(expected));
        }
        let mut all: Vec<_> = [(40, 10), (5, 20), (20, 10)]
            .map(|(first, receive)| {
                let mut one = exchange("https://a.test/", first, 0, receive);
                one.observed.protocol = Some("h3".to_owned());
                one
            })
            .into();
        all.push(exchange("https://a.test/", 0, 0, 0)); // HTTP/1.1
        let merged = received_by_connection(&all);
        let expected = vec![(ms(5), ms(30)), (ms(40), ms(50))];
        assert_eq!(merged.into_values().collect::<Vec<_>>(), [expected]);
    }
}
