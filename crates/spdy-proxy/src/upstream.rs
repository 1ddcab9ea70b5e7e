//! Origins: who is asked how, and who is left alone for a while.
//!
//! A site's own origin is where the operator said, be it in a private network. Hosts of others are looked up by a guarded
//! network, which leads to nobody's private address (`spdy-dns/guard.rs`); the two never share a connection.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{Either, select};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_client::client::{Client, Config as ClientConfig};
use spdy_client::error::Error;
use spdy_client::origin::Origin;
use spdy_client::retry_budget::RetryBudget;
use spdy_client::route::Route;
use spdy_client::switch::Switched;
use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_net::connection::ClientOptions;
use spdy_net::network::SharedNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::tls::ClientTls;

use crate::config_upstream::UpstreamConfig;
use crate::placed::addresses_of_sites;
use crate::seats::Seats;
use crate::sites::Sites;
use crate::slow_readers::{A_MOMENT, SlowReaders};
use crate::uploads::{Uploads, seated};
use crate::upstream_moved::Place;

/// Origins whose failures are remembered.
const REMEMBERED: usize = 1024;
/// So much of an answer over HTTP/2 may have come and not be read, bytes.
const STREAM_WINDOW_BYTES: u32 = 512 * 1024;
/// Answers of an origin over HTTP/2 that are open at a time, whatever it allows: many say nothing of it.
const MAX_STREAMS: u32 = 256;
/// What may have come of all of them together. All requests to an origin share its connection, so readers who are slow would hold up those
/// who are not if it had less room than every stream's.
const CONNECTION_WINDOW_BYTES: u32 = MAX_STREAMS * STREAM_WINDOW_BYTES;

/// Whose answer is wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Whose {
    /// The site's own.
    Site,
    /// Some other host's, that is moved under the site's name.
    Others,
}

/// Why there is no answer of an origin.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UpstreamError {
    /// It failed so often that it is left alone.
    #[error("{0} failed too often, and is left alone for a while")]
    Resting(Origin),
    /// So many long bodies are on their way to it that one more found no seat in time.
    #[error("as many long requests as may be are on their way to {0}")]
    Uploads(Origin),
    /// So many of its answers are under way that one more found no place in time.
    #[error("as many answers of {0} as may be are under way")]
    Fetches(Origin),
    /// Its answer has a length and chunks, so that two readers may see two ends of it (RFC 9112 §6.3).
    #[error("{0} answers with both Content-Length and Transfer-Encoding")]
    TwoLengths(Origin),
    /// Its answer is under a transfer coding that nobody asked for, and that would be taken off undone (RFC 9112 §6.1).
    #[error("{0} answers under a transfer coding beside chunked")]
    TransferCoding(Origin),
    /// It was asked for the same by others, and has not answered them for as long as it may take.
    #[error("others wait for the same, and there is no answer in time")]
    Waited,
    /// It was asked for the same by another, and told him so that it has too much to do.
    #[error("the origin answered {0} to who asked for the same")]
    Overloaded(StatusCode),
    /// It could not be asked, or did not answer.
    #[error(transparent)]
    Client(#[from] Error),
}

impl UpstreamError {
    /// What a client is told.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Waited | Self::Client(Error::TimedOut { .. }) => StatusCode::GATEWAY_TIMEOUT,
            Self::Client(error) if stands_still(error) => StatusCode::GATEWAY_TIMEOUT,
            Self::Client(Error::NoBody { .. }) => StatusCode::REQUEST_TIMEOUT,
            Self::Resting(_)
            | Self::Uploads(_)
            | Self::Fetches(_)
            | Self::Overloaded(_)
            | Self::Client(Error::Full { .. }) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Client(_) | Self::TwoLengths(_) | Self::TransferCoding(_) => {
                StatusCode::BAD_GATEWAY
            }
        }
    }

    /// The limit of ours that was met, if no origin did anything wrong: the key that sets it.
    #[must_use]
    pub fn limit(&self) -> Option<&'static str> {
        match self {
            Self::Uploads(_) => Some("uploads"),
            Self::Fetches(_) => Some("limits.fetches"),
            Self::Client(Error::Full { .. }) => Some("queue"),
            Self::Resting(_)
            | Self::TwoLengths(_)
            | Self::TransferCoding(_)
            | Self::Waited
            | Self::Overloaded(_)
            | Self::Client(_) => None,
        }
    }

    /// Whether it was connected to, and what came is no answer.
    #[must_use]
    pub fn has_answered_badly(&self) -> bool {
        matches!(
            self,
            Self::TwoLengths(_) | Self::TransferCoding(_) | Self::Client(Error::Exchange { .. })
        )
    }

    /// Whether the origin did answer, with a head larger than any that is taken.
    #[must_use]
    pub fn is_too_large(&self) -> bool {
        matches!(self, Self::Client(error) if is_too_large(error))
    }

    /// The label of its counter.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Resting(_) => "resting",
            Self::Uploads(_) => "uploads",
            Self::Fetches(_) => "fetches",
            Self::Client(Error::Full { .. }) => "queue",
            Self::Overloaded(_) => "overloaded",
            Self::Client(Error::Resolve { .. }) => "name",
            Self::Client(Error::Connect { .. }) => "connect",
            Self::Waited | Self::Client(Error::TimedOut { .. }) => "time-out",
            Self::Client(Error::NoBody { .. }) => "client",
            Self::Client(error) if stands_still(error) => "time-out",
            Self::Client(_) | Self::TwoLengths(_) | Self::TransferCoding(_) => "broken",
        }
    }

    /// The same for `Proxy-Status` (RFC 9209 §2.3), which says nothing of addresses.
    #[must_use]
    pub fn proxy_status(&self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Resting(_) | Self::Overloaded(_) => "spdy; error=destination_unavailable",
            Self::Uploads(_) | Self::Fetches(_) | Self::Client(Error::Full { .. }) => {
                "spdy; error=connection_limit_reached"
            }
            Self::TwoLengths(_) => "spdy; error=http_protocol_error",
            Self::TransferCoding(_) => "spdy; error=http_response_transfer_coding",
            Self::Client(Error::Resolve { .. }) => "spdy; error=dns_error",
            Self::Client(Error::Connect { why, .. }) if is_of_certificate(why) => {
                "spdy; error=tls_certificate_error"
            }
            Self::Client(Error::Connect { reached: true, .. }) => "spdy; error=tls_protocol_error",
            Self::Client(Error::Connect { .. }) => "spdy; error=connection_refused",
            Self::Client(Error::TimedOut { what, .. }) if what.contains("connection") => {
                "spdy; error=connection_timeout"
            }
            Self::Waited | Self::Client(Error::TimedOut { .. }) => {
                "spdy; error=http_response_timeout"
            }
            Self::Client(Error::NoBody { .. }) => "spdy; error=http_request_error",
            Self::Client(error) if stands_still(error) => "spdy; error=connection_write_timeout",
            Self::Client(error) if is_too_large(error) => {
                "spdy; error=http_response_header_section_size"
            }
            Self::Client(Error::Exchange { .. }) => "spdy; error=http_response_incomplete",
            Self::Client(_) => "spdy; error=proxy_internal_error",
        })
    }
}

/// Fails where the fields of an answer of `origin` give it two ends, or its bytes a form that nobody undoes.
fn is_framed_once(headers: &HeaderMap, origin: Origin) -> Result<(), UpstreamError> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let Some(coding) = codings.next() else {
        return Ok(());
    };
    if headers.contains_key(header::CONTENT_LENGTH) {
        return Err(UpstreamError::TwoLengths(origin));
    }
    let is_undone = match coding.to_str() {
        Ok(coding) if codings.next().is_none() => !is_left_undone(coding),
        _ => false,
    };
    match is_undone {
        true => Ok(()),
        false => Err(UpstreamError::TransferCoding(origin)),
    }
}

/// Whether these transfer codings are any but chunked alone. A single name that nobody has registered is none, and such an answer ends with
/// its connection (RFC 9112 §6.3).
fn is_left_undone(codings: &str) -> bool {
    let registered = ["gzip", "x-gzip", "deflate", "compress", "x-compress"];
    let is_any = |coding: &str| registered.iter().any(|it| it.eq_ignore_ascii_case(coding));
    codings.contains([',', ';']) || is_any(codings.trim())
}

/// Has the length of an answer stand there once, as a number, as the body was read by: `4, 4` is good to read, and not to pass on
/// (RFC 9110 §8.6). An answer that has no content has none.
fn say_length_once(response: &mut Response<Body>) {
    let status = response.status();
    let headers = response.headers_mut();
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(first) = lengths.next() else { return };
    if status == StatusCode::NO_CONTENT {
        headers.remove(header::CONTENT_LENGTH);
    } else if lengths.next().is_some() || first.as_bytes().contains(&b',') {
        let text = first.to_str().unwrap_or_default();
        let length = text.split(',').next().unwrap_or_default().trim();
        let length = length.parse::<u64>().ok();
        headers.remove(header::CONTENT_LENGTH);
        if let Some(length) = length {
            headers.insert(header::CONTENT_LENGTH, length.into());
        }
    }
}

/// Whether an origin was given up because it took nothing of a request.
fn stands_still(error: &Error) -> bool {
    matches!(error, Error::Exchange { source, .. } if source.stalled)
}

/// Whether the head of an origin's answer is larger than any that is taken.
fn is_too_large(error: &Error) -> bool {
    matches!(error, Error::Exchange { source, .. } if source.too_large)
}

/// Whether it was a certificate for which there is no connection, as rustls says that.
fn is_of_certificate(why: &str) -> bool {
    why.starts_with("invalid peer certificate")
}

/// Whether an origin was not found, or could not be connected to, whatever it was to be asked.
fn is_out_of_reach(error: &Error) -> bool {
    match error {
        Error::Resolve { .. } | Error::Connect { reached: false, .. } => true,
        Error::TimedOut { what, .. } => what.contains("connection"),
        _ => false,
    }
}

/// How an origin did of late.
#[derive(Clone, Copy, Debug, Default)]
struct Health {
    failures: u32,
    rests_until: Option<Instant>,
    /// When it answered last.
    answered: Option<Instant>,
}

/// All origins.
#[derive(Debug)]
pub struct Upstream {
    site: Client,
    others: Client,
    pub(crate) runtime: SharedRuntime,
    health: Mutex<BTreeMap<Origin, Health>>,
    uploads: Uploads,
    slow_readers: SlowReaders,
    pub(crate) fetches: Seats<Place>,
    pub(crate) queue_timeout: Duration,
    /// From a request to the head of its answer.
    pub(crate) head_timeout: Duration,
    failures: u32,
    rest: Duration,
    retry_budget: Arc<RetryBudget>,
}

impl Upstream {
    /// The own origins of `sites` are asked over `network`, those of others over `guarded`. `tls` believes whom the operator believes.
    #[must_use]
    pub fn new(
        config: &UpstreamConfig,
        tls: Option<&ClientTls>,
        sites: &Sites,
        network: SharedNetwork,
        guarded: SharedNetwork,
        runtime: &SharedRuntime,
    ) -> Self {
        let retry_budget = Arc::new(RetryBudget::new(config.retry_percent));
        let client = |network, resolve, aliases| {
            let config = ClientConfig {
                protocols: vec![Protocol::Http2, Protocol::Http1],
                plain_protocol: Some(Protocol::Http1),
                http1_connections: config.connections,
                tls: tls.cloned(),
                connect_timeout: Some(Duration::from_secs(config.connect_timeout_s)),
                head_timeout: Some(Duration::from_secs(config.head_timeout_s)),
                body_timeout: Some(Duration::from_secs(config.body_timeout_s)),
                retries: config.retries,
                retry_budget: Some(retry_budget.clone()),
                http1_idle_timeout: Some(Duration::from_secs(config.idle_timeout_s)),
                queue_timeout: Some(config.queue_timeout()),
                queue: config.queue,
                connection: ClientOptions {
                    stream_window_bytes: STREAM_WINDOW_BYTES,
                    session_window_bytes: CONNECTION_WINDOW_BYTES,
                    max_streams: Some(MAX_STREAMS as usize),
                    write_timeout: Some(Duration::from_secs(config.write_timeout_s)),
                    ..ClientOptions::default()
                },
                resolve,
                aliases,
                ..ClientConfig::default()
            };
            Client::new(runtime.clone(), network, config)
        };
        let own = addresses_of_sites(sites, &config.resolve);
        let of_others = config.resolve.iter();
        let of_others = of_others.map(|(name, &address)| (name.clone(), None, address));
        let of_others = of_others.collect();
        Self {
            site: client(network, own, sites.aliases().clone()),
            others: client(guarded, of_others, BTreeMap::new()),
            runtime: runtime.clone(),
            health: Mutex::default(),
            uploads: Uploads::new(config.uploads()),
            slow_readers: SlowReaders::new(config.slow_readers()),
            fetches: Seats::default(),
            queue_timeout: config.queue_timeout(),
            head_timeout: Duration::from_secs(config.head_timeout_s),
            failures: config.failures,
            rest: config.rest(),
            retry_budget,
        }
    }

    /// Asks for `request`, whose URI is absolute.
    ///
    /// # Errors
    ///
    /// [`UpstreamError`]: what a client is told of it, and whether a stale answer may take its place, is the caller's.
    pub async fn fetch(
        &self,
        whose: Whose,
        request: Request<Body>,
        priority: Priority,
    ) -> Result<Response<Body>, UpstreamError> {
        let origin = Origin::of(request.uri())?;
        if self.rests(&origin) {
            return Err(UpstreamError::Resting(origin));
        }
        let client = match whose {
            Whose::Site => &self.site,
            Whose::Others => &self.others,
        };
        let request = self.seated(&origin, request).await?;
        let asked = self.runtime.now();
        let answered = self.answered(client, &origin, request, priority).await;
        self.learn(origin.clone(), asked, answered.as_ref().err());
        let mut response = answered?;
        is_framed_once(response.headers(), origin.clone())?;
        say_length_once(&mut response);
        let route = response.extensions().get::<Route>();
        let is_alone = route.is_some_and(|route| !route.protocol.is_multiplexed());
        let is_coming = !http_body::Body::is_end_stream(response.body());
        Ok(match is_alone && is_coming {
            true => response.map(|body| self.slow_readers.read(origin, body, &self.runtime)),
            false => response,
        })
    }

    /// What `client` gets for `request`. While all connections are taken, those who read too slowly what came over theirs make room.
    async fn answered(
        &self,
        client: &Client,
        origin: &Origin,
        request: Request<Body>,
        priority: Priority,
    ) -> Result<Response<Body>, Error> {
        let mut coming = client.send(request, priority);
        loop {
            let moment = self.runtime.sleep_until(self.runtime.now() + A_MOMENT);
            match select(coming, moment).await {
                Either::Left((answered, _)) => return answered,
                Either::Right(((), still)) => coming = still,
            }
            if client.is_full(origin) {
                self.slow_readers.make_room(origin, self.runtime.now());
            }
        }
    }

    /// Asks a site's own origin for another protocol. One that has no answer to that may have one to all else: such a failure is
    /// not held against it.
    ///
    /// # Errors
    ///
    /// [`UpstreamError`], as of [`fetch`](Self::fetch).
    pub async fn switch(&self, request: Request<Body>) -> Result<Switched, UpstreamError> {
        let origin = Origin::of(request.uri())?;
        if self.is_resting(&origin) {
            return Err(UpstreamError::Resting(origin));
        }
        let asked = self.runtime.now();
        let switched = self.site.switch(request).await;
        match &switched {
            Err(error) if !is_out_of_reach(error) => (),
            switched => self.learn(origin.clone(), asked, switched.as_ref().err()),
        }
        let switched = switched?;
        is_framed_once(switched.headers(), origin)?;
        Ok(switched)
    }

    /// `request`, with a seat if its body is not all here.
    async fn seated(
        &self,
        origin: &Origin,
        request: Request<Body>,
    ) -> Result<Request<Body>, UpstreamError> {
        if request.body().try_clone().is_some() {
            return Ok(request);
        }
        let deadline = self.runtime.now() + self.queue_timeout;
        let seat = Box::pin(self.uploads.seat(origin));
        match select(seat, self.runtime.sleep_until(deadline)).await {
            Either::Left((seat, _)) => Ok(request.map(|body| seated(body, seat))),
            Either::Right(_) => Err(UpstreamError::Uploads(origin.clone())),
        }
    }

    /// Answers that were broken off because they were read too slowly while others waited, since this was asked the last time.
    pub(crate) fn take_broken_off(&self) -> u64 {
        self.slow_readers.take_broken_off()
    }

    /// Requests that might have been sent again and were not (`retry_percent`), since this was asked the last time.
    pub(crate) fn take_retries_withheld(&self) -> u64 {
        self.retry_budget.take_withheld()
    }

    /// Ends all connections in order.
    pub async fn close(&self) {
        self.site.close().await;
        self.others.close().await;
    }

    fn health(&self) -> MutexGuard<'_, BTreeMap<Origin, Health>> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `origin` is left alone, asked by who is not let through to see how it does.
    fn is_resting(&self, origin: &Origin) -> bool {
        let until = self.health().get(origin).and_then(|it| it.rests_until);
        until.is_some_and(|until| until > self.runtime.now())
    }

    fn rests(&self, origin: &Origin) -> bool {
        let now = self.runtime.now();
        let mut all = self.health();
        let Some(health) = all.get_mut(origin) else {
            return false;
        };
        match health.rests_until {
            Some(until) if until > now => true,
            Some(_) => {
                // One is let through to see; the others wait for what it finds.
                health.rests_until = Some(now + self.rest);
                false
            }
            None => false,
        }
    }

    /// What became of a request to `origin`, which was `asked` then.
    pub(crate) fn learn(&self, origin: Origin, asked: Instant, error: Option<&Error>) {
        // A body that does not come is another error, and its client's fault.
        let counts = error.is_some_and(|error| match error {
            Error::Connect { .. } | Error::Resolve { .. } | Error::TimedOut { .. } => true,
            // It took nothing of a request. That it breaks off, or cannot be read, may be so of one thing alone, and whoever asks for
            // that would close the site; or its client broke off.
            error => stands_still(error),
        });
        if !(counts || error.is_none()) {
            return;
        }
        let mut all = self.health();
        if all.len() >= REMEMBERED && !all.contains_key(&origin) {
            all.retain(|_, health| health.failures > 0);
            if all.len() >= REMEMBERED {
                return;
            }
        }
        let health = all.entry(origin).or_default();
        if error.is_none() {
            *health = Health {
                answered: Some(self.runtime.now()),
                ..Health::default()
            };
            return;
        }
        // Who has answered others meanwhile is slow with this one thing, and whoever asks for that would close the site.
        let is_slow = error.is_some_and(|error| match error {
            Error::TimedOut { .. } => !is_out_of_reach(error),
            error => stands_still(error),
        });
        if is_slow && health.answered.is_some_and(|answered| answered > asked) {
            return;
        }
        health.failures = health.failures.saturating_add(1);
        if let (1, Some(why)) = (health.failures, error) {
            tracing::warn!(%why, "an origin fails");
        }
        if self.failures > 0 && health.failures >= self.failures {
            health.rests_until = Some(self.runtime.now() + self.rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_whether_it_was_tcp_tls_or_a_certificate() {
        for (reached, why, want) in [
            (
                false,
                "Connection refused (os error 111)",
                "connection_refused",
            ),
            (true, "received corrupt message", "tls_protocol_error"),
            (
                true,
                "invalid peer certificate: UnknownIssuer",
                "tls_certificate_error",
            ),
        ] {
            let error = UpstreamError::Client(Error::Connect {
                origin: Origin::of(&"https://origin.test/".parse().unwrap()).expect("an origin"),
                reached,
                why: why.to_owned(),
            });
            assert_eq!(error.proxy_status(), format!("spdy; error={want}"));
        }
    }

    #[test]
    fn what_fails_behind_tcp_says_nothing_of_an_origin_that_was_asked_for_a_websocket() {
        let origin = Origin::of(&"https://origin.test/".parse().unwrap()).expect("an origin");
        let connect = |reached| Error::Connect {
            origin: origin.clone(),
            reached,
            why: "why".to_owned(),
        };
        let timed_out = |what| Error::TimedOut {
            what,
            origin: origin.clone(),
            after: Duration::from_secs(1),
        };
        let resolve = Error::Resolve {
            host: "origin.test".to_owned(),
            why: "why".to_owned(),
        };
        for (error, wanted) in [
            (resolve, true),
            (connect(false), true),
            (timed_out("connection"), true),
            (connect(true), false),
            (timed_out("response"), false),
            (Error::Closed, false),
        ] {
            assert_eq!(is_out_of_reach(&error), wanted, "{error}");
        }
    }
}
