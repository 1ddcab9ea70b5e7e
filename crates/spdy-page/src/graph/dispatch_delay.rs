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
    requests.sort_by_key(DispatchedRequest::place);
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
    let is_redirected = matches!(document.initiator, Initiator::Redirect { .. });
    let delay = dispatch_of(document).filter(|_| opened_connection(document) && !is_redirected);
    delay.unwrap_or_default()
}

/// Adds the time from dispatch to the write, for requests on open connections of HTTP/2.
///
/// Chromium's network thread handles one request after another, in 0.4 ms each. The first one for a connection only adds a task that
/// writes, behind all requests that wait by then. So the connection writes when the last of these is handled.
///
/// A recorded wait begins with dispatch. So this is only for exchanges with a stated think time: an estimate of it contains the time to
/// the write.
fn delay_until_written(
    requests: &[DispatchedRequest],
    exchanges: &[Exchange],
    known: &KnownDelays<'_>,
    delays: &mut [Duration],
) {
    let handled: Vec<&DispatchedRequest> = requests.iter().filter(|it| it.is_known).collect();
    let burst_ends = burst_ends(&handled);
    // The last write on each connection.
    let mut writes: HashMap<Pool, Duration> = HashMap::new();
    for request in requests {
        let exchange = &exchanges[request.index];
        if !exchange.observed.is_http2()
            || opened_connection(exchange)
            || !known.had_open_connection(exchange)
        {
            continue;
        }
        let dispatched = request.started.saturating_add(delays[request.index]);
        let pool = Pool::of(exchange, known.document);
        let pending = writes.get(&pool).copied();
        let mut write = pending.filter(|write| *write >= dispatched);
        if write.is_none() && request.is_known && exchange.observed.think_time.is_some() {
            let first = handled.partition_point(|other| other.place() < request.place());
            let waiting = handled.partition_point(|other| other.started <= dispatched);
            // The request itself is one of those that wait.
            let last = burst_ends[first].min(waiting - 1);
            write = Some(handled[last].latest);
            writes.insert(pool, handled[last].latest);
        }
        if let Some(write) = write {
            delays[request.index] = write.saturating_sub(request.started);
        }
    }
}

/// The index of the last request in the burst of each: the next one in a burst is dispatched within [`NEAR`].
fn burst_ends(requests: &[&DispatchedRequest]) -> Vec<usize> {
    let mut ends: Vec<usize> = (0..requests.len()).collect();
    for at in (1..requests.len()).rev() {
        if requests[at].latest.saturating_sub(requests[at - 1].latest) <= NEAR {
            ends[at - 1] = ends[at];
        }
    }
    ends
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

    /// Its place in the order of requests.
    fn place(&self) -> (Duration, usize) {
        (self.started, self.index)
    }
}

/// True if `exchange` opened its own connection.
fn opened_connection(exchange: &Exchange) -> bool {
    let connect = exchange.observed.connect;
    connect.is_some_and(|connect| !connect.is_zero())
}

/// The dispatch of `exchange` if it waited for nothing else, and this is plausible.
fn dispatch_of(exchange: &Exchange) -> Option<Duration> {
    unexplained(exchange).filter(|delay| *delay <= MAX_DISPATCH)
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
                let pool = Pool::of(exchange, document);
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
        let waited_for_nothing = is_urgent(exchange)
            && !self.preflighted.contains(exchange.key())
            && (opened_connection(exchange) || self.had_open_connection(exchange));
        dispatch_of(exchange).filter(|_| waited_for_nothing)
    }
}

/// When `exchange` was sent.
fn sent(exchange: &Exchange) -> Option<Duration> {
    Some(exchange.started?.saturating_add(exchange.queued?))
}

/// Requests of one pool can use the same connection.
#[derive(Eq, Hash, PartialEq)]
enum Pool {
    /// The number of the connection.
    Connection(u32),
    /// All connections to an origin. Requests [without credentials](Exchange::is_without_credentials) use others.
    Origin {
        origin: Origin,
        without_credentials: bool,
    },
}

impl Pool {
    /// That of the connection if its number was recorded, else that of the origin.
    fn of(exchange: &Exchange, document: &Exchange) -> Self {
        match exchange.observed.connection {
            Some(number) => Self::Connection(number),
            None => Self::of_origin(exchange, document),
        }
    }

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
