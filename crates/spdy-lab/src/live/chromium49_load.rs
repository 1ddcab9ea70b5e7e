//! A load by Chromium 49 behind a link, and its recording.
//!
//! Its DevTools would change the requests, so they stay off. The recording has the requests as the servers received them, the
//! responses of the replay, and the times of Resource Timing. Resource Timing has no request that failed, redirects or belongs to a
//! frame: such a request has the time of its arrival, relative to that of the document. The initiators are
//! those of the replay. Times begin when the browser fetches the first URL, as in a recording of a browser of today.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use jiff::Timestamp;
use spdy_page::head;
use spdy_page::notes::WEBSOCKETS;
use spdy_page::observation::Observation;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_record::chromium49::{self, NavigationTiming, Offer, PageTimings, ResourceTiming};
use spdy_record::error::RecordError;
use spdy_sim::options::RaceProtocol;
use spdy_tun::error::RealTimeError;
use spdy_tun::network::RealNetwork;
use url::Url;

use crate::live::browser_load::{BrowserLoad, BrowserLoadError, QUIET_FOR, QUIET_TIMEOUT, limits};
use crate::live::clock::block_on;
use crate::live::filmstrip::Filmstrip;
use crate::live::replay::{Replay, is_websocket};
use crate::live::run_files::{CAPTURE_BYTES, RunFiles};
use crate::live::served_requests::ServedRequest;
use crate::live::visual_metrics::VisualMetrics;

/// Time without further resources after which the page is quiet.
const SETTLE: Duration = Duration::from_secs(1);

/// Options of loads.
#[derive(Clone, Debug)]
pub struct Chromium49Loader {
    /// The program `chromium-49`.
    pub program: PathBuf,
    /// Timeout of a load until the page is quiet.
    pub timeout: Duration,
    /// The file to which the servers of the replay write their TLS secrets, if [files](RunFiles) of each load are kept.
    pub key_log: Option<PathBuf>,
}

impl Chromium49Loader {
    /// Loads the page on `stage` by `protocol` over `network`, whose link the caller has [begun](RealNetwork::begin).
    ///
    /// # Errors
    ///
    /// The link or the browser failed.
    ///
    /// # Panics
    ///
    /// If the browser does not support `protocol`.
    pub fn load(
        &self,
        network: &mut RealNetwork,
        stage: &Replay,
        protocol: RaceProtocol,
    ) -> Result<BrowserLoad, BrowserLoadError> {
        let offer = match protocol {
            RaceProtocol::Http | RaceProtocol::Https => Offer::Http1,
            RaceProtocol::Spdy => Offer::Spdy,
            RaceProtocol::H2 => Offer::Http2,
            other => panic!("Chromium 49 does not support {other}"),
        };
        let start = |what| move |source| RealTimeError::Start { what, source };
        let serving = stage.serve(&network.server).map_err(start("the servers"))?;
        let known_secrets = self.secrets().len();
        if self.key_log.is_some() {
            network.start_capture(CAPTURE_BYTES)?;
        }
        let (program, url, timeout) = (self.program.clone(), stage.start().clone(), self.timeout);
        let screenshot = self.key_log.is_some();
        let work = move || {
            let loaded = async {
                Ok(chromium49::load(&program, &url, offer, timeout, SETTLE, screenshot).await)
            };
            block_on(loaded)
        };
        let loaded = network.client.run(work).map_err(start("the client"))?;
        network.wait_until_quiet(QUIET_FOR, QUIET_TIMEOUT)?;
        let link = network.measure()?;
        let served = serving.stop().map_err(start("the servers"))?;
        let loaded = loaded?;
        let requests = stage.requests();
        let mut recording = recording(stage, &requests, &loaded.timings)?;
        stage.state_think_times(&mut recording);
        let run_files = match self.key_log {
            Some(_) => {
                let (capture, origin) = network.end_capture()?;
                Some(RunFiles {
                    capture,
                    origin,
                    key_log: self
                        .secrets()
                        .get(known_secrets..)
                        .unwrap_or_default()
                        .to_vec(),
                    png: loaded.screenshot,
                    filmstrip: Filmstrip::default(),
                })
            }
            None => None,
        };
        let others = requests
            .iter()
            .filter(|request| request.secure && request.protocol != protocol.wire_protocol());
        let others = others.map(|request| {
            let (method, uri, found) = (&request.method, &request.uri, request.protocol);
            format!("{method} {uri} (by {found})")
        });
        let unrecorded = stage.unrecorded_requests();
        let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
        Ok(BrowserLoad {
            dom_content_loaded_ms: ms(recording.dom_content_loaded),
            load_ms: ms(recording.load),
            metrics: VisualMetrics::default(),
            exchanges: recording.exchanges.len(),
            connections: served.connections,
            fingerprint: stage.fingerprint(&recording),
            failed_requests: unrecorded.unknown.into_iter().chain(others).collect(),
            similar_requests: unrecorded.similar.into_iter().collect(),
            omitted: omitted(&requests),
            unknown_names: stage.unknown_names(),
            faults: limits(recording.load.unwrap_or_default()).faults(&link),
            link,
            recording: Some(recording),
            run_files,
        })
    }

    /// The secrets so far; none before the first handshake.
    fn secrets(&self) -> Vec<u8> {
        let secrets = self.key_log.as_ref().map(fs::read);
        secrets.and_then(Result::ok).unwrap_or_default()
    }
}

/// Counts of the page's requests that a replay does not have.
fn omitted(requests: &[ServedRequest]) -> BTreeMap<String, usize> {
    let websockets = requests
        .iter()
        .filter(|request| is_websocket(&request.headers));
    match websockets.count() {
        0 => BTreeMap::new(),
        count => BTreeMap::from([(WEBSOCKETS.to_owned(), count)]),
    }
}

/// `ms` as a duration; a page can define any value.
fn time(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default()
}

/// The exchanges of `requests` with `timings`.
fn recording(
    stage: &Replay,
    requests: &[ServedRequest],
    timings: &PageTimings,
) -> Result<Replica, RecordError> {
    let page = stage.page();
    let navigation = &timings.timing;
    let zero = navigation.redirect_start.or(navigation.fetch_start);
    let zero = time(zero.unwrap_or_default());
    let since_zero = |at: Duration| at.saturating_sub(zero);
    let mut timed: BTreeMap<&str, VecDeque<&ResourceTiming>> = BTreeMap::new();
    for resource in &timings.resources {
        let url = resource.url.split('#').next().unwrap_or_default();
        timed.entry(url).or_default().push_back(resource);
    }
    let mut exchanges = Vec::new();
    // The first copy of each exchange of the replay.
    let mut copies = BTreeMap::new();
    let mut start = None;
    for request in requests {
        let Some(url) = url_of(request) else {
            continue;
        };
        let original = stage.recorded(&request.method, &url).exchange;
        let mut exchange = match original {
            Some(index) => page.exchanges[index].clone(),
            None => unknown(&url, request),
        };
        // Frames are requested after it.
        let is_document =
            start.is_none() && exchange.kind == Kind::Document && !request.status.is_redirection();
        if is_document {
            start = Some(exchanges.len());
        }
        exchange.address = url
            .host_str()
            .and_then(|host| stage.address(host))
            .map(Into::into);
        exchange.request_head = request_head(request, &url);
        exchange.observed = Observation {
            protocol: Some(request.protocol.to_string()),
            ..Observation::default()
        };
        if is_document {
            let observed = &mut exchange.observed;
            observed.dns = span(navigation.domain_lookup_start, navigation.domain_lookup_end);
            observed.connect = span(navigation.connect_start, navigation.connect_end);
        }
        let resource = timed.get_mut(url.as_str()).and_then(VecDeque::pop_front);
        exchange.url = url;
        (
            exchange.started,
            exchange.queued,
            exchange.wait,
            exchange.receive,
        ) = match (resource, is_document) {
            (_, true) => times_of_document(navigation),
            (Some(resource), false) => times(resource),
            (None, false) => (None, None, None, None),
        };
        exchange.started = exchange.started.map(since_zero);
        if let Some(original) = original {
            copies.entry(original).or_insert(exchanges.len());
        }
        exchanges.push((request.at, exchange));
    }
    let start = start.ok_or_else(|| RecordError::Navigation {
        url: stage.start().to_string(),
        reason: format!("the servers received no request for {}", timings.url),
    })?;
    let (document_at, document) = &exchanges[start];
    let sent = document.started.unwrap_or_default();
    let sent = sent.saturating_add(document.queued.unwrap_or_default());
    let document_at = *document_at;
    let mut exchanges: Vec<Exchange> = exchanges
        .into_iter()
        .map(|(at, mut exchange)| {
            if exchange.started.is_none() {
                // One that came before the document was redirected to it.
                exchange.started = Some(
                    sent.saturating_add(at.saturating_duration_since(document_at))
                        .saturating_sub(document_at.saturating_duration_since(at)),
                );
            }
            exchange
        })
        .collect();
    for exchange in &mut exchanges {
        let copy_of = |index: usize| copies.get(&index).copied();
        exchange.initiator = match exchange.initiator {
            Initiator::Resource { index, at_byte } => {
                copy_of(index).map_or(Initiator::Unknown, |index| Initiator::Resource {
                    index,
                    at_byte,
                })
            }
            Initiator::Redirect { index } => {
                copy_of(index).map_or(Initiator::Unknown, |index| Initiator::Redirect { index })
            }
            other => other,
        };
    }
    let zero_us = i64::try_from(zero.as_micros()).unwrap_or(i64::MAX);
    let since_1970 = ((timings.navigation_start_ms * 1e3) as i64).saturating_add(zero_us);
    Ok(Replica {
        name: page.name.clone(),
        source: format!("loaded with {}; {}", timings.product, page.source),
        start,
        exchanges,
        recorded: Timestamp::from_microsecond(since_1970).ok(),
        dom_content_loaded: navigation
            .dom_content_loaded_event_start
            .map(|ms| since_zero(time(ms))),
        load: navigation.load_event_start.map(|ms| since_zero(time(ms))),
        paints: Default::default(),
        failures: Vec::new(),
    })
}

/// The URL of a request; `None` without a host.
fn url_of(request: &ServedRequest) -> Option<Url> {
    let scheme = if request.secure { "https" } else { "http" };
    let authority = request.uri.authority()?;
    let target = request.uri.path_and_query().map_or("/", |it| it.as_str());
    Url::parse(&format!("{scheme}://{authority}{target}")).ok()
}

/// A request for a resource that the replay does not have, with a response without a body.
fn unknown(url: &Url, request: &ServedRequest) -> Exchange {
    let status = format!("HTTP/1.1 {}", request.status);
    let mut exchange = Exchange::synthetic(url.clone(), Kind::Other, "text/plain", "");
    exchange.response_head = head::synthesize(&status, [("Content-Length", "0")]);
    exchange.method = request.method.clone();
    exchange
}

/// The head of a request as HTTP/1.1 has it.
fn request_head(request: &ServedRequest, url: &Url) -> Bytes {
    let authority = head::authority(url);
    let fields = request
        .headers
        .iter()
        .filter(|(name, _)| *name != http::header::HOST);
    let fields = fields.map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    let host = ("Host".to_owned(), authority);
    let line = format!("{} {} HTTP/1.1", request.method, head::target(url));
    head::synthesize(&line, [host].into_iter().chain(fields))
}

/// Start, waiting time of the request, of the response, and its duration.
type Times = (
    Option<Duration>,
    Option<Duration>,
    Option<Duration>,
    Option<Duration>,
);

fn times(resource: &ResourceTiming) -> Times {
    let between = |from: f64, to: f64| Some(time((to - from).max(0.0)));
    let started = Some(time(resource.start));
    match resource.request > 0.0 {
        true => (
            started,
            between(resource.start, resource.request),
            between(resource.request, resource.response),
            between(resource.response, resource.end),
        ),
        // Another origin: only the whole duration is known, which says nothing about the server.
        false => (started, None, None, None),
    }
}

fn times_of_document(timing: &NavigationTiming) -> Times {
    (
        timing.fetch_start.map(time),
        span(timing.fetch_start, timing.request_start),
        span(timing.request_start, timing.response_start),
        span(timing.response_start, timing.response_end),
    )
}

/// The time between two events, if both occurred.
fn span(from: Option<f64>, to: Option<f64>) -> Option<Duration> {
    Some(time((to? - from?).max(0.0)))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
    use spdy_net::tls::KeyLogTarget;
    use spdy_page::builtin;
    use spdy_page::graph::PageGraph;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn request(at: Instant, uri: &'static str, status: StatusCode) -> ServedRequest {
        let referer = HeaderValue::from_static("https://www.portal.test/");
        ServedRequest {
            at,
            method: Method::GET,
            uri: Uri::from_static(uri),
            headers: HeaderMap::from_iter([(http::header::REFERER, referer)]),
            protocol: RaceProtocol::Spdy.wire_protocol(),
            secure: true,
            status,
        }
    }

    #[test]
    fn a_recording_has_served_requests_with_the_times_of_the_page() {
        let page = builtin::portal();
        let stage = Replay::new(&page, RaceProtocol::Spdy, KeyLogTarget::Disabled)
            .expect("the names are valid in certificates");
        let at = Instant::now();
        let requests = [
            request(at, "https://www.portal.test/", StatusCode::OK),
            request(
                at + 90 * MS,
                "https://www.portal.test/css/portal.css",
                StatusCode::OK,
            ),
            request(
                at + 200 * MS,
                "https://www.portal.test/favicon.ico",
                StatusCode::NOT_FOUND,
            ),
        ];
        let timings = PageTimings {
            product: "Chrome/49".to_owned(),
            url: "https://www.portal.test/#top".to_owned(),
            navigation_start_ms: 1_000.0,
            timing: NavigationTiming {
                fetch_start: Some(50.0),
                domain_lookup_start: Some(65.0),
                domain_lookup_end: Some(95.0),
                connect_start: Some(95.0),
                connect_end: Some(250.0),
                request_start: Some(250.0),
                response_start: Some(320.0),
                response_end: Some(330.0),
                dom_content_loaded_event_start: Some(450.0),
                load_event_start: Some(550.0),
                ..NavigationTiming::default()
            },
            resources: vec![ResourceTiming {
                url: "https://www.portal.test/css/portal.css".to_owned(),
                start: 340.0,
                request: 345.0,
                response: 420.0,
                end: 425.0,
            }],
        };
        let recording = recording(&stage, &requests, &timings).expect("it has a document");
        let exchanges = &recording.exchanges;
        let times = exchanges
            .iter()
            .map(|it| (it.started, it.queued, it.wait, it.receive));
        let ms = |ms: u32| Some(ms * MS);
        let expected = [
            (ms(0), ms(200), ms(70), ms(10)),
            (ms(290), ms(5), ms(75), ms(5)),
            // Its request was sent 200 ms after that of the document.
            (ms(400), None, None, None),
        ];
        assert_eq!(times.collect::<Vec<_>>(), expected);
        assert_eq!(recording.load, ms(500));
        assert_eq!(recording.recorded, Timestamp::from_millisecond(1_050).ok());
        assert_eq!(exchanges[0].body, page.document().body);
        let statuses = exchanges.iter().map(Exchange::status);
        assert_eq!(statuses.collect::<Vec<_>>(), [200, 200, 404].map(Some));
        let head = "GET /css/portal.css HTTP/1.1\r\nHost: www.portal.test\r\nreferer: https://www.portal.test/\r\n\r\n";
        assert_eq!(exchanges[1].request_head, head);
        let protocol = exchanges[1].observed.protocol.as_deref();
        assert_eq!(protocol, Some("spdy/3.1"));
        let observed = &exchanges[0].observed;
        assert_eq!((observed.dns, observed.connect), (ms(30), ms(155)));
        let navigation = PageGraph::of(&recording).nodes[0].delay;
        assert_eq!(Some(navigation), ms(15), "before the lookup");
    }

    #[test]
    fn a_page_that_no_server_received_is_an_error() {
        let stage = Replay::new(
            &builtin::portal(),
            RaceProtocol::Spdy,
            KeyLogTarget::Disabled,
        )
        .expect("the names are valid in certificates");
        let timings = PageTimings {
            product: "Chrome/49".to_owned(),
            url: "https://www.portal.test/".to_owned(),
            navigation_start_ms: f64::NAN,
            timing: NavigationTiming::default(),
            resources: Vec::new(),
        };
        let missing = recording(&stage, &[], &timings);
        assert!(
            matches!(missing, Err(RecordError::Navigation { .. })),
            "{missing:?}"
        );
    }

    #[test]
    fn a_request_is_recorded_with_the_response_that_it_got() {
        let host = "https://www.portal.test/";
        let mut page = builtin::portal();
        let document = page.document().clone();
        let mut redirect = document.clone();
        redirect.url = Url::parse("http://www.portal.test/").expect("a URL");
        let location = [("Location", host), ("Content-Length", "0")];
        redirect.response_head = head::synthesize("HTTP/1.1 301 Moved Permanently", location);
        redirect.body = Bytes::new();
        page.exchanges = vec![
            redirect,
            Exchange {
                url: Url::parse(host).expect("a URL"),
                ..document
            },
        ];
        page.start = 1;
        let stage = Replay::new(&page, RaceProtocol::Spdy, KeyLogTarget::Disabled)
            .expect("the names are valid in certificates");
        let at = Instant::now();
        // A script changed the URL of the page, and its start is as wrong as a page can make it.
        let timings = PageTimings {
            product: "Chrome/49".to_owned(),
            url: "https://www.portal.test/other".to_owned(),
            navigation_start_ms: 1e300,
            timing: NavigationTiming::default(),
            resources: Vec::new(),
        };
        let requests = [
            request(at, host, StatusCode::OK),
            request(at, host, StatusCode::OK),
        ];
        let recording = recording(&stage, &requests, &timings).expect("it has a document");
        let statuses: Vec<_> = recording.exchanges.iter().map(Exchange::status).collect();
        assert_eq!((recording.start, statuses), (0, vec![Some(200), Some(200)]));
    }

    #[test]
    fn websockets_are_counted() {
        let mut socket = request(
            Instant::now(),
            "https://www.portal.test/s",
            StatusCode::NOT_FOUND,
        );
        let upgrade = HeaderValue::from_static("websocket");
        socket.headers.insert(http::header::UPGRADE, upgrade);
        let expected = BTreeMap::from([("WebSockets".to_owned(), 1)]);
        assert_eq!(omitted(&[socket]), expected);
        assert_eq!(omitted(&[]), BTreeMap::new());
    }
}
