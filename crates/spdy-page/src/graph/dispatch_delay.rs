//! Dispatch: the time until the network code of a browser receives a request of its page.
//!
//! A recording has it only as a part of [`queued`](Exchange::queued), together with the waits for a name, a connection and the browser's
//! limits. So it is known of urgent requests that opened a connection themselves, had an idle one, or an open one that many requests
//! share: the rest of their wait is dispatch. Other requests at about the same time are taken to have waited as long.
//!
//! On an open connection of HTTP/2, requests of a burst are written together, when the last of them was dispatched.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use url::Origin;

use crate::replica::{Exchange, Initiator};

/// Requests that start within this time of a known one have its delay.
const NEAR: Duration = Duration::from_millis(10);

/// A longer wait was for something else, such as a free connection. The longest known one in 330 loads by Chromium was 81 ms.
const MAX_DISPATCH: Duration = Duration::from_millis(200);

/// The delay of each exchange; zero if nothing is known at about its time.
///
/// `document` is the index of the page's own document.
pub(crate) fn dispatch_delays(exchanges: &[Exchange], document: usize) -> Vec<Duration> {
    let known = KnownDelays::of(exchanges, &exchanges[document]);
    let mut requests: Vec<DispatchedRequest> = exchanges
        .iter()
        .enumerate()
        .filter_map(|(index, exchange)| DispatchedRequest::of(index, exchange, &known))
        .collect();
    requests.sort_by_key(|request| (request.started, request.index));
    // Requests are dispatched in their order: none later than one that started after it.
    let mut latest = Duration::MAX;
    let mut next_known = None;
    for request in requests.iter_mut().rev() {
        latest = latest.min(request.latest);
        request.latest = latest;
        if request.is_known {
            next_known = Some((request.started, request.delay()));
        }
        request.next_known = next_known;
    }
    let mut delays = vec![Duration::ZERO; exchanges.len()];
    let mut last_known = None;
    let mut earliest = Duration::ZERO;
    for request in &requests {
        if request.is_known {
            last_known = Some((request.started, request.delay()));
        }
        let is_near =
            |(started, _): &(Duration, Duration)| started.abs_diff(request.started) <= NEAR;
        let near = last_known.filter(is_near);
        let near = near.or_else(|| request.next_known.filter(is_near));
        let delay = near.map_or(Duration::ZERO, |(_, delay)| delay);
        let dispatched = request.started.saturating_add(delay).max(earliest);
        let dispatched = dispatched.min(request.latest);
        earliest = dispatched;
        delays[request.index] = dispatched.saturating_sub(request.started);
    }
    delay_until_written(&requests, exchanges, &known, &mut delays);
    delays
}

/// The delay of the navigation to `document`, if a browser measured its lookup and its connection; else zero.
pub(crate) fn navigation_delay(document: &Exchange) -> Duration {
    let connect = document.observed.connect.unwrap_or_default();
    let is_redirected = matches!(document.initiator, Initiator::Redirect { .. });
    let delay = unexplained(document).filter(|_| !connect.is_zero() && !is_redirected);
    delay
        .filter(|delay| *delay <= MAX_DISPATCH)
        .unwrap_or_default()
}

/// Adds the time from dispatch to the write, for requests of known dispatch on open connections of HTTP/2.
///
/// Chromium's network thread handles one request after another, in 0.4 ms each. The first one for a connection only adds a task that
/// writes, behind all requests that wait by then. So the connection writes when the last of these is handled.
fn delay_until_written(
    requests: &[DispatchedRequest],
    exchanges: &[Exchange],
    known: &KnownDelays<'_>,
    delays: &mut [Duration],
) {
    let mut requests: Vec<&DispatchedRequest> = requests.iter().collect();
    requests.retain(|request| request.is_known);
    // The last write to each origin.
    let mut writes: HashMap<Pool, Duration> = HashMap::new();
    for request in &requests {
        let exchange = &exchanges[request.index];
        if !exchange.observed.is_http2() || !known.had_open_connection(exchange) {
            continue;
        }
        let dispatched = request.latest;
        let waiting = requests.partition_point(|other| other.started <= dispatched);
        let next = requests[..waiting]
            .last()
            .map_or(dispatched, |last| last.latest);
        let write = writes.entry(Pool::of_origin(exchange, known.document));
        let write = write.or_insert(next);
        if *write < dispatched {
            *write = next;
        }
        delays[request.index] = write.saturating_sub(request.started);
    }
}

/// A request of the page.
struct DispatchedRequest {
    index: usize,
    started: Duration,
    /// The latest time of its dispatch; the time itself if it is known.
    latest: Duration,
    is_known: bool,
    /// Start and delay of the first known request from here on.
    next_known: Option<(Duration, Duration)>,
}

impl DispatchedRequest {
    /// `None` for requests that the network code makes: those that follow a redirect, and preflights.
    fn of(index: usize, exchange: &Exchange, known: &KnownDelays<'_>) -> Option<Self> {
        let is_redirected = matches!(exchange.initiator, Initiator::Redirect { .. });
        if is_redirected || exchange.method == http::Method::OPTIONS {
            return None;
        }
        let started = exchange.started?;
        let known = known.delay(exchange);
        // Without a lookup and a connection of its own. If those were ahead of it, it was sent when they were done.
        let unexplained = unexplained(exchange).or(exchange.queued);
        let latest = known.or(unexplained);
        Some(Self {
            index,
            started,
            latest: latest.map_or(Duration::MAX, |latest| started.saturating_add(latest)),
            is_known: known.is_some(),
            next_known: None,
        })
    }

    fn delay(&self) -> Duration {
        self.latest.saturating_sub(self.started)
    }
}

/// What `exchange` waited for except for its name and its connection. `None` if the recording does not state it.
fn unexplained(exchange: &Exchange) -> Option<Duration> {
    let observed = &exchange.observed;
    let wait = exchange
        .queued?
        .checked_sub(observed.connect.unwrap_or_default())?;
    wait.checked_sub(observed.dns.unwrap_or_default())
}

/// The requests that can have waited for nothing but dispatch.
struct KnownDelays<'a> {
    document: &'a Exchange,
    /// When each pool of connections had its first response.
    first_responses: HashMap<Pool, Duration>,
    /// When the requests on each connection of HTTP/1.1 were sent and answered, in their order.
    turns: HashMap<u32, Vec<(Duration, Duration)>>,
    /// URLs that a preflight request was about (Fetch Standard, CORS).
    preflighted: HashSet<&'a str>,
}

impl<'a> KnownDelays<'a> {
    fn of(exchanges: &'a [Exchange], document: &'a Exchange) -> Self {
        let mut first_responses = HashMap::new();
        let mut turns: HashMap<u32, Vec<_>> = HashMap::new();
        for exchange in exchanges {
            if let (Some(number), false) = (
                exchange.observed.connection,
                exchange.observed.has_streams(),
            ) {
                let turn = sent(exchange).zip(exchange.finished());
                turns.entry(number).or_default().extend(turn);
            }
            let is_preflight = exchange.method == http::Method::OPTIONS; // it has a connection without credentials
            if let (Some(at), false) = (exchange.first_byte(), is_preflight) {
                let pool = match exchange.observed.connection {
                    Some(number) => Pool::Connection(number),
                    None => Pool::of_origin(exchange, document),
                };
                let first = first_responses.entry(pool).or_insert(at);
                *first = at.min(*first);
            }
        }
        turns.values_mut().for_each(|turns| turns.sort_unstable());
        let preflights = exchanges.iter();
        let preflights = preflights.filter(|exchange| exchange.method == http::Method::OPTIONS);
        Self {
            document,
            first_responses,
            turns,
            preflighted: preflights.map(Exchange::key).collect(),
        }
    }

    /// When the connection of `exchange` by HTTP/1.1 became idle, at the latest.
    fn idle_since(&self, exchange: &Exchange) -> Option<Duration> {
        let turns = self.turns.get(&exchange.observed.connection?)?;
        let sent = sent(exchange)?;
        let before = turns.partition_point(|(at, _)| *at < sent);
        match before.checked_sub(1) {
            Some(last) => Some(turns[last].1),
            // It was opened ahead: at the host of the document together with the first one.
            None if exchange.url.origin() == self.document.url.origin() => {
                self.document.first_byte()
            }
            None => None,
        }
    }

    /// True if a connection for `exchange` was open and free when its page requested it.
    fn had_open_connection(&self, exchange: &Exchange) -> bool {
        let since = match exchange.observed.has_streams() {
            true => {
                // A response without a number can have come on the numbered connection.
                let numbered = exchange.observed.connection.map(Pool::Connection);
                let origin = Pool::of_origin(exchange, self.document);
                let pools = numbered.into_iter().chain([origin]);
                let firsts = pools.filter_map(|pool| self.first_responses.get(&pool));
                firsts.min().copied()
            }
            false => self.idle_since(exchange),
        };
        let since = since.zip(exchange.started);
        since.is_some_and(|(since, at)| since <= at)
    }

    fn delay(&self, exchange: &Exchange) -> Option<Duration> {
        let observed = &exchange.observed;
        let opened_one = observed.connect.is_some_and(|connect| !connect.is_zero());
        let waited_for_nothing = is_urgent(exchange)
            && !self.preflighted.contains(exchange.key())
            && (opened_one || self.had_open_connection(exchange));
        let delay = unexplained(exchange).filter(|_| waited_for_nothing);
        delay.filter(|delay| *delay <= MAX_DISPATCH)
    }
}

/// When `exchange` was sent.
fn sent(exchange: &Exchange) -> Option<Duration> {
    Some(exchange.started?.saturating_add(exchange.queued?))
}

/// Requests of one pool can use the same connection.
#[derive(Eq, Hash, PartialEq)]
enum Pool {
    /// This number of a connection was recorded.
    Connection(u32),
    /// No number was. Requests [without credentials](Exchange::is_without_credentials) use their own connections.
    Origin {
        origin: Origin,
        without_credentials: bool,
    },
}

impl Pool {
    fn of_origin(exchange: &Exchange, document: &Exchange) -> Self {
        Self::Origin {
            origin: exchange.url.origin(),
            without_credentials: exchange.is_without_credentials(&document.url),
        }
    }
}

/// True if no limit of Chromium's schedulers delays it.
fn is_urgent(exchange: &Exchange) -> bool {
    matches!(
        exchange.observed.priority.as_deref(),
        Some("VeryHigh" | "High")
    )
}
