//! Imports one page of a log as a replica: selects its requests, with their initiators and times.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;
use url::Url;

use super::event::Id;
use super::log::{Hop, Log, Transaction, TransactionId};
use super::messages::{self, TransactionMessages};
use super::observation_matcher::{ObservationMatcher, Times};
use super::page::{LogPage, site};
use super::parse;
use crate::error::OpenError;
use crate::head::Head;
use crate::import::assemble::{document, kinds_of_redirects, seconds};
use crate::import::devtools::{IN_PROGRESS, Observations, ObservedRequest, RequestInitiator};
use crate::import::notes::{FROM_SERVICE_WORKER, ImportNotes, WEBSOCKETS};
use crate::import::result::{ImportOptions, OpenedReplica};
use crate::limits::Limits;
use crate::replica::observation::{Failure, Observation};
use crate::replica::{Exchange, Initiator, Kind, Replica, without_fragment};

/// Imports the page of a NetLog from another recorder.
///
/// # Errors
///
/// [`OpenError::Json`] if it is no NetLog; [`OpenError::NoPageLoad`] and [`OpenError::NoSuchPage`] if the requested page is not in
/// it; [`OpenError::Limit`] past the limits.
pub fn import(
    text: &[u8],
    name: &str,
    options: &ImportOptions,
) -> Result<OpenedReplica, OpenError> {
    let source = "NetLog; licence not recorded";
    open(text, name, source, options, None)
}

/// Imports the page that was observed while its NetLog was written.
///
/// Times that are both in `observations` and in the log come from the observations, which have a higher resolution.
///
/// # Errors
///
/// Like [`import`].
pub fn record(
    text: &[u8],
    name: &str,
    source: &str,
    observations: &Observations,
    limits: &Limits,
) -> Result<OpenedReplica, OpenError> {
    let options = ImportOptions {
        page: None,
        limits: *limits,
    };
    open(text, name, source, &options, Some(observations))
}

fn open(
    text: &[u8],
    name: &str,
    source: &str,
    options: &ImportOptions,
    observations: Option<&Observations>,
) -> Result<OpenedReplica, OpenError> {
    let mut notes = ImportNotes::new("NetLog");
    let mut log = Log::default();
    let json = |what: String| OpenError::Json {
        form: "NetLog",
        what,
    };
    if parse::parse(text, &mut log).map_err(|fault| json(fault.to_string()))? {
        notes.remark("the log is incomplete: its browser was killed");
    }
    if !log.has_event_kinds {
        return Err(json("no event types in the log's constants".to_owned()));
    }
    let mut exact = messages::from_connections(&mut log);
    let page = LogPage::choose(&log, options, observations, &mut notes)?;
    let mut recording = Recording {
        log: &log,
        page: &page,
        watched: observations.map(|seen| ObservationMatcher::new(seen, &page)),
        notes,
        limits: &options.limits,
        connections: BTreeMap::new(),
        found: Vec::new(),
        failures: Vec::new(),
    };
    recording.collect_exchanges(&mut exact)?;
    recording.finish(name, source)
}

/// One exchange, before its initiator is determined.
struct ImportedExchange {
    exchange: Exchange,
    place: TransactionId,
    seen: Option<usize>,
}

struct Recording<'a> {
    log: &'a Log,
    page: &'a LogPage,
    watched: Option<ObservationMatcher<'a>>,
    notes: ImportNotes,
    limits: &'a Limits,
    /// Numbers of sockets in the order of their first use.
    connections: BTreeMap<Id, u32>,
    found: Vec<ImportedExchange>,
    failures: Vec<Failure>,
}

impl Recording<'_> {
    /// Imports the requests of the page, in order.
    fn collect_exchanges(
        &mut self,
        exact: &mut BTreeMap<TransactionId, TransactionMessages>,
    ) -> Result<(), OpenError> {
        let log = self.log;
        let mut legs: Vec<(Id, usize, &Hop)> = Vec::new();
        for (&id, request) in &log.requests {
            legs.extend(
                request
                    .hops
                    .iter()
                    .enumerate()
                    .map(|(nth, leg)| (id, nth, leg)),
            );
        }
        legs.sort_by(|one, other| {
            let started = one.2.started.total_cmp(&other.2.started);
            started.then((one.0, one.1).cmp(&(other.0, other.1)))
        });
        let is_of_page = |leg: &Hop| (self.page.from..self.page.until).contains(&leg.started);
        legs.retain(|(.., leg)| is_of_page(leg));
        let sent = legs.iter().map(|(.., leg)| *leg);
        let sent: HashSet<(&str, &str)> = sent
            .filter(|leg| !leg.transactions.is_empty())
            .map(|leg| (&leg.method[..], without_fragment(&leg.url)))
            .collect();
        for (id, nth, leg) in legs {
            let was_sent = sent.contains(&(&leg.method[..], without_fragment(&leg.url)));
            if was_sent && self.is_cache_lookup(leg) {
                continue;
            }
            let seen = self.watched.as_mut().and_then(|watched| watched.take(leg));
            let of_page = site(&leg.network_isolation_key)
                .is_some_and(|site| self.page.sites.contains(&site));
            if seen.is_none() && !of_page {
                self.notes.skip("of the browser's own");
                continue;
            }
            let redirected = log.requests[&id].hops.len() > nth + 1;
            self.import_hop((id, nth), leg, redirected, seen, exact)?;
        }
        self.add_blocked();
        Ok(())
    }

    /// True if the browser looked only in its own cache, without success: it does so for fonts, before the request that DevTools
    /// shows.
    fn is_cache_lookup(&self, leg: &Hop) -> bool {
        let name = leg.net_error.and_then(|error| self.log.errors.get(&error));
        leg.transactions.is_empty() && name.is_some_and(|name| *name == "ERR_CACHE_MISS")
    }

    fn import_hop(
        &mut self,
        (id, nth): (Id, usize),
        leg: &Hop,
        redirected: bool,
        seen: Option<usize>,
        exact: &mut BTreeMap<TransactionId, TransactionMessages>,
    ) -> Result<(), OpenError> {
        let url = match Url::parse(&leg.url) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => url,
            Ok(url) if matches!(url.scheme(), "ws" | "wss") => {
                self.notes.skip(WEBSOCKETS);
                return Ok(());
            }
            _ => {
                self.notes.skip("with URLs that are not http or https");
                return Ok(());
            }
        };
        let Ok(method) = http::Method::from_bytes(leg.method.as_bytes()) else {
            self.notes.skip("with an invalid method");
            return Ok(());
        };
        let mut answered = false;
        for (index, transaction) in leg.transactions.iter().enumerate() {
            let place = (id, nth, index);
            let Some(answer) = exact
                .remove(&place)
                .or_else(|| messages::from_events(transaction, &method))
            else {
                continue;
            };
            answered = true;
            self.import_messages(&url, &method, leg, transaction, answer, place, seen)?;
        }
        if answered {
            return Ok(());
        }
        match self.error(leg, seen) {
            Some(error) => self.fail(leg, error, seen),
            None if redirected => self.notes.skip("that the browser redirected internally"),
            None if leg.transactions.is_empty() => self.notes.skip("from the browser's cache"),
            None => self.fail(leg, IN_PROGRESS.to_owned(), seen),
        }
        Ok(())
    }

    /// The error of the request, if it failed.
    fn error(&self, leg: &Hop, seen: Option<usize>) -> Option<String> {
        let error = leg.net_error?;
        let seen = seen.and_then(|seen| self.seen(seen));
        Some(match (seen, self.log.errors.get(&error)) {
            // The browser aborts unfinished requests when it exits.
            (Some(seen), _) if seen.finished.is_none() => IN_PROGRESS.to_owned(),
            (_, Some(name)) => format!("net::{name}"),
            (_, None) => format!("net error {error}"),
        })
    }

    fn fail(&mut self, leg: &Hop, error: String, seen: Option<usize>) {
        let seen = seen.and_then(|seen| self.seen(seen));
        let started = match (&self.watched, seen) {
            (Some(watched), Some(seen)) => seconds(seen.requested_at - watched.origin),
            _ => self.since_start(leg.started),
        };
        self.failures.push(Failure {
            method: leg.method.clone(),
            url: leg.url.clone(),
            error,
            started: Some(started),
        });
    }

    /// Adds requests that were observed but blocked before they were sent.
    fn add_blocked(&mut self) {
        let Some(watched) = &self.watched else { return };
        let unmatched: BTreeSet<usize> = watched.waiting.values().flatten().copied().collect();
        for index in unmatched {
            let seen = &watched.observations.requests[index];
            if let Some(error) = &seen.error
                && seen.url.starts_with("http")
            {
                self.failures.push(Failure {
                    method: seen.method.clone(),
                    url: seen.url.clone(),
                    error: error.clone(),
                    started: Some(seconds(seen.requested_at - watched.origin)),
                });
            }
        }
        self.failures.sort_by_key(|failure| failure.started);
    }

    fn seen(&self, index: usize) -> Option<&ObservedRequest> {
        self.watched.as_ref()?.observations.requests.get(index)
    }

    /// From the start of the load to `moment`, milliseconds of the log's clock.
    fn since_start(&self, moment: f64) -> Duration {
        let origin = self
            .watched
            .as_ref()
            .map_or(self.page.from, |watched| watched.origin * 1e3);
        seconds((moment - origin) / 1e3)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the data of a response is in five places"
    )]
    fn import_messages(
        &mut self,
        url: &Url,
        method: &http::Method,
        leg: &Hop,
        transaction: &Transaction,
        answer: TransactionMessages,
        place: TransactionId,
        seen: Option<usize>,
    ) -> Result<(), OpenError> {
        self.check_limits(&answer)?;
        if answer.has_trailers {
            self.notes
                .remark("some bodies had trailer fields, which a replica does not store");
        }
        if !answer.is_literal {
            self.notes.remark(
                "some heads and bodies are as Chromium decoded them, not from the bytes of their connection",
            );
        }
        let socket = messages::socket(self.log, transaction);
        let next = u32::try_from(self.connections.len()).unwrap_or(u32::MAX);
        let connection = socket.map(|socket| *self.connections.entry(socket).or_insert(next));
        let observed_request = seen.and_then(|seen| self.seen(seen));
        let head = Head::parse(&answer.response_head);
        let content_type = head.as_ref().and_then(|head| head.value("content-type"));
        let kind = Kind::of(
            content_type,
            url,
            observed_request.map(|seen| &seen.kind[..]),
        );
        let refused = observed_request.and_then(|seen| seen.error.clone());
        let refused = refused.or_else(|| self.error(leg, seen));
        let priority = observed_request.map(|seen| seen.priority.clone());
        let mut observed = Observation {
            protocol: Some(answer.protocol.to_owned()),
            priority: priority
                .or_else(|| {
                    self.log
                        .requests
                        .get(&place.0)
                        .map(|request| request.priority.clone())
                })
                .filter(|priority| !priority.is_empty()),
            raised_after: observed_request.and_then(|seen| {
                let raised_at = seen.raised_at?;
                Some(seconds(raised_at - seen.requested_at))
            }),
            connection,
            request_body: answer.request_body,
            refused: refused.or_else(|| {
                let message = "the body ended before its declared length";
                answer.is_cut.then(|| message.to_owned())
            }),
            ..Observation::default()
        };
        let answered = transaction.answered.unwrap_or(transaction.sent);
        let times = observed_request
            .zip(self.watched.as_ref())
            .and_then(|(seen, watched)| Times::from_observation(seen, watched.origin));
        let times = times.unwrap_or_else(|| Times {
            started: match (observed_request, &self.watched) {
                (Some(seen), Some(watched)) => seconds(seen.requested_at - watched.origin),
                _ => self.since_start(leg.started),
            },
            queued: seconds((transaction.sent - leg.started) / 1e3),
            wait: seconds((answered - transaction.sent) / 1e3),
            receive: seconds((transaction.last - answered) / 1e3),
            dns: None,
            connect: None,
            tls: None,
        });
        (observed.dns, observed.connect, observed.tls) = (times.dns, times.connect, times.tls);
        let exchange = Exchange {
            url: url.clone(),
            method: method.clone(),
            // The log has no address for QUIC sockets.
            address: messages::address(self.log, transaction)
                .or_else(|| observed_request.and_then(|seen| seen.address)),
            request_head: answer.request_head,
            response_head: answer.response_head,
            body: answer.body,
            body_is_real: true,
            kind,
            initiator: Initiator::Unknown,
            started: Some(times.started),
            queued: Some(times.queued),
            wait: Some(times.wait),
            receive: Some(times.receive),
            observed,
        };
        self.found.push(ImportedExchange {
            exchange,
            place,
            seen,
        });
        Ok(())
    }

    /// Checks limits that a replica's file also has.
    fn check_limits(&self, answer: &TransactionMessages) -> Result<(), OpenError> {
        let heads = answer.request_head.len().max(answer.response_head.len());
        let bodies = answer.body.len().max(answer.request_body.len());
        for (what, held, limit) in [
            ("records", self.found.len() * 3 + 4, self.limits.records),
            ("bytes in a literal head", heads, self.limits.head_bytes),
            ("bytes in a body", bodies, self.limits.body_bytes),
        ] {
            if held > limit {
                return Err(OpenError::Limit { what, limit });
            }
        }
        Ok(())
    }

    fn finish(mut self, name: &str, source: &str) -> Result<OpenedReplica, OpenError> {
        let mut found = std::mem::take(&mut self.found);
        found.sort_by_key(|found| (found.exchange.started, found.place));
        let links: Vec<(TransactionId, Option<usize>)> = found
            .iter()
            .map(|found| (found.place, found.seen))
            .collect();
        let mut exchanges: Vec<Exchange> = found.into_iter().map(|found| found.exchange).collect();
        kinds_of_redirects(&mut exchanges);
        let start = document(&exchanges, Some(&self.page.url)).ok_or_else(|| {
            let failed = self
                .failures
                .iter()
                .find(|failure| failure.url == self.page.url);
            let reason = failed.map_or("no response is a document", |failure| &failure.error);
            OpenError::NoPageLoad {
                reason: format!("{}: {reason}", self.page.url),
            }
        })?;
        self.initiators(&mut exchanges, &links, start);
        self.notes.count(&exchanges);
        let watched = self.watched.as_ref();
        if let Some(watched) = watched {
            set_compute_times(&mut exchanges, &watched.observations.compute_times());
            let requests = &watched.observations.requests;
            for _ in requests.iter().filter(|seen| seen.from_service_worker) {
                self.notes.skip(FROM_SERVICE_WORKER);
            }
            if watched.observations.omitted > 0 {
                self.notes
                    .remark("more requests were made than a recording can store");
            }
        }
        let moment = |at: fn(&Observations) -> Option<f64>| {
            watched.and_then(|w| at(w.observations).map(|moment| seconds(moment - w.origin)))
        };
        let wall = watched
            .and_then(|watched| watched.observations.requests.first())
            .map_or((self.page.from + self.log.epoch_ms) / 1e3, |seen| {
                seen.wall_s
            });
        let replica = Replica {
            name: name.to_owned(),
            source: source.to_owned(),
            start,
            exchanges,
            // Out of range, the cast saturates, and there is no date.
            recorded: Timestamp::from_microsecond((wall * 1e6) as i64).ok(),
            dom_content_loaded: moment(|seen| seen.dom_content_loaded),
            load: moment(|seen| seen.load),
            paints: watched
                .and_then(|watched| watched.observations.vitals())
                .map(|vitals| vitals.paints)
                .unwrap_or_default(),
            failures: self.failures,
        };
        Ok(OpenedReplica {
            replica,
            notes: self.notes,
        })
    }

    fn initiators(
        &self,
        exchanges: &mut [Exchange],
        links: &[(TransactionId, Option<usize>)],
        start: usize,
    ) {
        let mut first_of = HashMap::<String, usize>::new();
        let mut last_leg = HashMap::<(Id, usize), usize>::new();
        for (index, exchange) in exchanges.iter_mut().enumerate() {
            let ((request, leg, _), seen) = links[index];
            let before = leg
                .checked_sub(1)
                .and_then(|leg| last_leg.get(&(request, leg)));
            let initiator = seen
                .and_then(|seen| self.seen(seen))
                .map(|seen| &seen.initiator);
            let named = match initiator {
                Some(RequestInitiator::Text(url)) => first_of.get(without_fragment(url)),
                Some(RequestInitiator::Redirect | RequestInitiator::Unknown) | None => None,
            };
            exchange.initiator = match (before, named) {
                (Some(&index), _) => Initiator::Redirect { index },
                (None, _) if index == start || index == 0 => Initiator::Navigation,
                (None, Some(&index)) => Initiator::Resource {
                    index,
                    at_byte: None,
                },
                (None, None) => Initiator::Unknown,
            };
            last_leg.insert((request, leg), index);
            first_of.entry(exchange.key().to_owned()).or_insert(index);
        }
    }
}

/// Assigns evaluation times to the first script, style sheet, or document with inline scripts at each URL.
fn set_compute_times(exchanges: &mut [Exchange], compute: &BTreeMap<&str, f64>) {
    let mut compute: HashMap<&str, f64> = compute
        .iter()
        .map(|(url, &time)| (without_fragment(url), time))
        .collect();
    for exchange in exchanges {
        if matches!(
            exchange.kind,
            Kind::Script | Kind::Stylesheet | Kind::Document
        ) && exchange.status().is_some_and(|status| status < 300)
            && let Some(time) = compute.remove(exchange.key())
        {
            exchange.observed.compute = Some(seconds(time));
        }
    }
}
