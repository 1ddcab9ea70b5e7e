//! The servers for a foreign browser behind the link: the recorded page, at its own addresses, with our own certificates.
//!
//! - **Servers.** One at each recorded address, on ports 80 and 443 (and those of URLs). A request for an unrecorded resource is
//!   answered with 404 (or 421), and reported. If only its query is unknown, it gets the response with the most similar query, and is
//!   counted apart. Not reported are: the icon of the tab, which no page requests, WebSockets, which the browser counts, and requests
//!   that failed when the page was recorded. With HTTP/3, QUIC replaces TLS at the same addresses and ports.
//! - **Certificates.** One for each address, with all recorded names at it, so that a browser shares a connection between names
//!   exactly as with the recorded servers. They are issued by an authority that exists as long as the `Replay`; the browser gets its
//!   pin. The keys are ECDSA, because browsers do not support Ed25519.
//! - **URLs** are unchanged. A page that was recorded over `http` is loaded with TLS from the same URL with another scheme, and its
//!   documents request the same for their resources (`upgrade-insecure-requests`): one more header, and the same bodies. Resources
//!   with `https` URLs are loaded with TLS for any protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use parking_lot::Mutex;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::error::TlsSetupError;
use spdy_net::tls::pins::Pin;
use spdy_net::tls::{KeyLogTarget, ServerTls, TlsOptions};
use spdy_page::graph::Trigger;
use spdy_page::head;
use spdy_page::observation::Failure;
use spdy_page::replica::{Exchange, Kind, Replica};
use spdy_record::fingerprint::Fingerprint;
use spdy_server::serve::{AccessLogEntry, ServeConfig};
use spdy_server::site::{LookupResult, Site};
use spdy_sim::load::{self, Page};
use spdy_sim::options::{Options, RaceProtocol};
use spdy_tun::host::Host;
use url::Url;

use crate::live::addresses;
use crate::live::expected_failures::ExpectedFailures;
use crate::live::resolver::Resolver;
use crate::live::served_requests::{ServedRequest, ServedRequests};
use crate::live::server_side::{RunningServers, ServerSide};

/// The end of the path of a tab's icon. Crawlers do not fetch it, and it is requested after the load.
const FAVICON: &str = "/favicon.ico";
/// Maximum number of reported requests of each kind.
const MAX_UNRECORDED: usize = 1_000;

/// A page, or the pages of a visit, prepared for one protocol; it may be served many times.
pub struct Replay {
    /// The URL of each page.
    starts: Vec<Url>,
    pin: Pin,
    by_quic: Vec<String>,
    far_side: ServerSide,
    /// Requests that had no response when the page was recorded.
    expected_failures: ExpectedFailures,
    /// Requests since [`serve`](Self::serve) that the recording does not have.
    unrecorded: Arc<Mutex<UnrecordedRequests>>,
    page: Replica,
    requests: ServedRequests,
}

/// The recorded response of a request.
pub(crate) struct RecordedResponse {
    /// The recorded URL: the requested one, or one with a similar query.
    pub(crate) url: Url,
    /// The think time of its server.
    think_time: Duration,
    /// The index of its exchange in the page; `None` if it was not recorded.
    pub(crate) exchange: Option<usize>,
}

/// Requests that a recording does not have: method, host and target of each.
#[derive(Clone, Debug, Default)]
pub struct UnrecordedRequests {
    /// They got an error: no recorded target has their path and method.
    pub unknown: BTreeSet<String>,
    /// They got the response of a recorded target with another query.
    pub similar: BTreeSet<String>,
}

impl UnrecordedRequests {
    fn insert(into: &mut BTreeSet<String>, request: String) {
        if into.len() < MAX_UNRECORDED {
            into.insert(request);
        }
    }
}

impl Replay {
    /// Prepares `replica` for loads by `protocol`: `http`, `https`, `h2`, `h3`, or `spdy` for Chromium 49. The servers write their TLS
    /// secrets to `key_log`.
    ///
    /// # Errors
    ///
    /// A certificate cannot contain the name of a host.
    ///
    /// # Panics
    ///
    /// If browsers do not support `protocol`.
    pub fn new(
        replica: &Replica,
        protocol: RaceProtocol,
        key_log: KeyLogTarget,
    ) -> Result<Self, TlsSetupError> {
        let start = start_of(replica, protocol.is_secure());
        let page = Page::new(prepared(replica, protocol));
        let replica = page.replica().clone();
        Self::of_page(&page, replica, vec![start], protocol, key_log)
    }

    /// Prepares the pages of a visit. The servers have the responses of all of them, as those of a [simulated visit](load::visit()).
    ///
    /// # Errors
    ///
    /// Like [`new`](Self::new).
    ///
    /// # Panics
    ///
    /// Like [`new`](Self::new), and without pages.
    pub fn of_visit(replicas: &[Replica], protocol: RaceProtocol) -> Result<Self, TlsSetupError> {
        let starts = replicas.iter();
        let starts = starts.map(|replica| start_of(replica, protocol.is_secure()));
        let pages = replicas.iter();
        let pages = pages.map(|replica| Page::new(prepared(replica, protocol)));
        let pages = load::visit(pages.collect(), Duration::ZERO);
        let page = pages.last().expect("a visit has pages");
        let replica = Replica {
            failures: replicas.iter().flat_map(|it| it.failures.clone()).collect(),
            ..page.replica().clone()
        };
        let starts = starts.collect();
        Self::of_page(page, replica, starts, protocol, KeyLogTarget::Disabled)
    }

    /// Prepares the exchanges of `page`, and the failures of `replica`, which has the same exchanges.
    fn of_page(
        page: &Page,
        replica: Replica,
        starts: Vec<Url>,
        protocol: RaceProtocol,
        key_log: KeyLogTarget,
    ) -> Result<Self, TlsSetupError> {
        let reached = addresses::assign_addresses(page.hosts(protocol, &Options::default()));
        let mut names: BTreeMap<Ipv4Addr, Vec<String>> = BTreeMap::new();
        for (host, &address) in &reached {
            names.entry(address).or_default().push(host.clone());
        }
        let spoken = match protocol {
            RaceProtocol::Http | RaceProtocol::Https => vec![Protocol::Http1],
            RaceProtocol::H2 => vec![Protocol::Http2, Protocol::Http1],
            RaceProtocol::H3 => vec![Protocol::Http3],
            RaceProtocol::Spdy => vec![protocol.wire_protocol(), Protocol::Http1],
            other => panic!("browsers do not support {other}"),
        };
        let authority = LocalCa::generate(KeyKind::EcdsaP256)?;
        let unrecorded = Arc::default();
        let expected_failures = ExpectedFailures::of(&replica);
        let requests = ServedRequests::default();
        let log = log(&replica, &expected_failures, &unrecorded, &requests);
        let mut tls_options = TlsOptions::default();
        tls_options.key_log = key_log;
        let mut servers = BTreeMap::new();
        for (address, names) in &names {
            let identity = authority.issue(names, &[(*address).into()])?;
            let tls = ServerTls::new(&identity, &spoken, &tls_options)?;
            let plain = ServeConfig {
                protocols: vec![Protocol::Http1],
                log: Some(log.clone()),
                think_time_scale: 1.0,
                ..ServeConfig::default()
            };
            let secure = ServeConfig {
                protocols: spoken.clone(),
                tls: Some(tls),
                ..plain.clone()
            };
            for (port, is_secure) in ports(&replica) {
                let config = if is_secure { &secure } else { &plain };
                servers.insert(SocketAddrV4::new(*address, port), config.clone());
            }
        }
        let by_quic = match protocol {
            RaceProtocol::H3 => secure_origins(&reached, &replica),
            _ => Vec::new(),
        };
        let site = Site::with_think_times(&replica, page.think_times());
        Ok(Self {
            starts,
            by_quic,
            pin: Pin::of(authority.certificate())?,
            far_side: ServerSide {
                site: Arc::new(site.with_similar_queries()),
                servers,
                names: Resolver::new(reached),
            },
            expected_failures,
            unrecorded,
            page: replica,
            requests,
        })
    }

    /// The URL of the page, or of the first page.
    #[must_use]
    pub fn start(&self) -> &Url {
        &self.starts[0]
    }

    /// The URL of each page.
    #[must_use]
    pub fn starts(&self) -> &[Url] {
        &self.starts
    }

    /// The pin of the authority of all certificates.
    #[must_use]
    pub fn pin(&self) -> &Pin {
        &self.pin
    }

    /// Every `HOST:PORT` that speaks only HTTP/3.
    #[must_use]
    pub fn quic_origins(&self) -> &[String] {
        &self.by_quic
    }

    /// Serves it on `host`, and clears the lists of unrecorded requests.
    ///
    /// # Errors
    ///
    /// A port cannot be listened on.
    pub fn serve(&self, host: &Host) -> io::Result<RunningServers> {
        *self.unrecorded.lock() = UnrecordedRequests::default();
        self.requests.clear();
        self.far_side.names.clear_unknown();
        self.far_side.clone().start(host)
    }

    /// The served page.
    #[must_use]
    pub fn page(&self) -> &Replica {
        &self.page
    }

    /// The address of `host` here.
    #[must_use]
    pub fn address(&self, host: &str) -> Option<Ipv4Addr> {
        self.far_side.names.address(host)
    }

    /// For any thread: the number of requests since [`serve`](Self::serve).
    pub(crate) fn request_count(&self) -> impl Fn() -> usize + Send + use<> {
        let requests = self.requests.clone();
        move || requests.count()
    }

    /// Requests since [`serve`](Self::serve), in the order of arrival; at most ten thousand.
    #[must_use]
    pub fn requests(&self) -> Vec<ServedRequest> {
        self.requests.all()
    }

    /// Requests since [`serve`](Self::serve) that the recording does not have.
    #[must_use]
    pub fn unrecorded_requests(&self) -> UnrecordedRequests {
        self.unrecorded.lock().clone()
    }

    /// The recorded response that a request for `url` gets.
    pub(crate) fn recorded(&self, method: &Method, url: &Url) -> RecordedResponse {
        let (authority, target) = (head::authority(url), head::target(url));
        let secure = url.scheme() == "https";
        let site = &self.far_side.site;
        let (url, stored) = match site.find(Some(&authority), method, &target, secure) {
            LookupResult::Response(stored) => (url.clone(), Some(stored)),
            LookupResult::Similar(target, stored) => {
                let recorded = url.join(target).unwrap_or_else(|_| url.clone());
                (recorded, Some(stored))
            }
            LookupResult::Redirect(_)
            | LookupResult::OtherMethods(_)
            | LookupResult::NoTarget
            | LookupResult::NoHost => (url.clone(), None),
        };
        RecordedResponse {
            url,
            think_time: stored.map(|stored| stored.think_time).unwrap_or_default(),
            exchange: stored.and_then(|stored| stored.exchange),
        }
    }

    /// The fingerprint of a load of this page, by the recorded URLs.
    pub(crate) fn fingerprint(&self, load: &Replica) -> String {
        let recorded = |exchange: &Exchange| self.recorded(&exchange.method, &exchange.url).url;
        let fingerprint = Fingerprint::with_urls(load, |exchange| recorded(exchange).to_string());
        fingerprint.sha256()
    }

    /// States in a load of this page the think time that a server had for each exchange.
    pub(crate) fn state_think_times(&self, load: &mut Replica) {
        let think_time =
            |exchange: &Exchange| self.recorded(&exchange.method, &exchange.url).think_time;
        let think_times: Vec<_> = load.exchanges.iter().map(think_time).collect();
        load.state_think_times(&think_times);
    }

    /// True if `failure` was recorded with the page: it is no fault of the load if it occurs again.
    #[must_use]
    pub fn is_expected_failure(&self, failure: &Failure) -> bool {
        self.expected_failures.has(failure)
    }

    /// Unknown names that were requested since then, including those of the browser's own requests.
    #[must_use]
    pub fn unknown_names(&self) -> Vec<String> {
        self.far_side.names.unknown()
    }
}

/// `replica` as the servers send it by `protocol`.
fn prepared(replica: &Replica, protocol: RaceProtocol) -> Replica {
    let mut replica = replica.clone();
    if protocol.is_secure() {
        replica.exchanges.iter_mut().for_each(upgrade);
    }
    replica
}

/// The URL of the first exchange of the load, with the requested scheme.
fn start_of(replica: &Replica, secure: bool) -> Url {
    let page = Page::new(replica.clone());
    let nodes = &page.graph().nodes;
    let first = nodes.iter().find(|node| node.trigger == Trigger::Start);
    let first = first.map_or(replica.start, |node| node.exchange);
    let mut url = replica.exchanges[first].url.clone();
    // It fails for URLs that a browser would not load over a network either.
    let _ = url.set_scheme(if secure { "https" } else { "http" });
    url
}

/// Makes a document that came over `http` request its resources with TLS.
fn upgrade(exchange: &mut Exchange) {
    const FIELD: &[u8] = b"Content-Security-Policy: upgrade-insecure-requests\r\n";
    let first_line = exchange
        .response_head
        .iter()
        .position(|&byte| byte == b'\n');
    if let (Kind::Document, "http", Some(end)) = (exchange.kind, exchange.url.scheme(), first_line)
    {
        let (line, fields) = exchange.response_head.split_at(end + 1);
        exchange.response_head = Bytes::from([line, FIELD, fields].concat());
    }
}

/// Every port of a URL, and whether it is a TLS port.
fn ports(replica: &Replica) -> BTreeSet<(u16, bool)> {
    let named = replica.exchanges.iter().filter_map(|exchange| {
        let secure = exchange.url.scheme() == "https";
        Some((exchange.url.port()?, secure))
    });
    [(80, false), (443, true)]
        .into_iter()
        .chain(named)
        .collect()
}

/// Every host with every TLS port.
fn secure_origins(reached: &BTreeMap<String, Ipv4Addr>, replica: &Replica) -> Vec<String> {
    let ports = ports(replica);
    let secure = ports.iter().filter(|(_, is_secure)| *is_secure);
    let hosts = reached.keys();
    let origins =
        secure.flat_map(|(port, _)| hosts.clone().map(move |host| format!("{host}:{port}")));
    origins.collect()
}

/// Stores each request, and reports one for an unrecorded resource. A recorded 404 and a recorded failure do not count.
fn log(
    replica: &Replica,
    expected_failures: &ExpectedFailures,
    unrecorded: &Arc<Mutex<UnrecordedRequests>>,
    requests: &ServedRequests,
) -> spdy_server::serve::Log {
    let missing = replica.exchanges.iter();
    let missing = missing.filter(|exchange| exchange.status() == Some(404));
    let missing: BTreeSet<String> = missing
        .map(|exchange| head::target(&exchange.url))
        .collect();
    let (expected_failures, unrecorded) = (expected_failures.clone(), unrecorded.clone());
    let requests = requests.clone();
    Arc::new(move |served: &AccessLogEntry<'_>| {
        requests.add(served);
        let (method, uri, status) = (served.method, served.uri, served.status.as_u16());
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let is_here = status == 404 && (missing.contains(target) || target.ends_with(FAVICON));
        let is_expected =
            is_here || is_websocket(served.headers) || expected_failures.has_uri(method, uri);
        if matches!(status, 404 | 405 | 421) && !is_expected {
            tracing::warn!(%method, %uri, status, "request that was not recorded");
            let request = format!("{method} {uri} ({status})");
            UnrecordedRequests::insert(&mut unrecorded.lock().unknown, request);
        }
        if let Some(recorded) = served.similar_to {
            tracing::info!(%method, %uri, recorded, "request whose query was not recorded");
            let request = format!("{method} {uri} (recorded: {recorded})");
            UnrecordedRequests::insert(&mut unrecorded.lock().similar, request);
        }
    })
}

pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    let upgrade = headers.get(header::UPGRADE);
    upgrade.is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

#[cfg(test)]
mod tests {
    use spdy_page::builtin;

    use super::*;

    #[test]
    fn each_address_serves_both_ports_and_urls_change_only_scheme() {
        let replica = builtin::portal();
        let hosts: BTreeSet<_> = replica.hosts().into_iter().collect();
        for (protocol, start) in [
            (RaceProtocol::Http, "http://www.portal.test/"),
            (RaceProtocol::H2, "https://www.portal.test/"),
            (RaceProtocol::H3, "https://www.portal.test/"),
        ] {
            let stage = Replay::new(&replica, protocol, KeyLogTarget::Disabled)
                .expect("the names are valid in certificates");
            assert_eq!(stage.start().as_str(), start);
            assert_eq!(stage.far_side.servers.len(), 2 * hosts.len());
            let by_quic: BTreeSet<_> = stage.quic_origins().iter().cloned().collect();
            let expected = hosts.iter().map(|host| format!("{host}:443"));
            match protocol {
                RaceProtocol::H3 => assert_eq!(by_quic, expected.collect()),
                _ => assert_eq!(by_quic, BTreeSet::new()),
            }
            for (at, config) in &stage.far_side.servers {
                assert_eq!(config.tls.is_some(), at.port() == 443, "{at}");
            }
        }
    }

    #[test]
    fn the_servers_of_a_visit_have_the_responses_of_all_pages() {
        let mut pages = [builtin::flags(), builtin::portal()];
        for (page, url) in pages.iter_mut().zip(["http://a.test/x", "http://b.test/y"]) {
            page.failures = vec![Failure {
                method: "GET".to_owned(),
                url: url.to_owned(),
                error: "net::ERR_EMPTY_RESPONSE".to_owned(),
                started: None,
            }];
        }
        let stage = Replay::of_visit(&pages, RaceProtocol::H2).expect("the names are valid");
        let alone = pages.each_ref().map(|page| {
            let stage = Replay::new(page, RaceProtocol::H2, KeyLogTarget::Disabled);
            stage.expect("the names are valid").start().clone()
        });
        assert_eq!(stage.starts(), alone);
        let exchanges = pages.iter().flat_map(|page| &page.exchanges);
        for exchange in exchanges {
            let mut url = exchange.url.clone();
            url.set_scheme("https").expect("it is a web page");
            let recorded = stage.recorded(&exchange.method, &url);
            assert!(recorded.exchange.is_some(), "{url}");
        }
        for failure in pages.iter().flat_map(|page| &page.failures) {
            assert!(stage.is_expected_failure(failure), "{failure:?}");
        }
    }

    #[test]
    fn a_plain_http_document_gets_only_upgrade_insecure_requests() {
        let mut exchange = builtin::portal().document().clone();
        let before = exchange.clone();
        upgrade(&mut exchange);
        let head = String::from_utf8_lossy(&exchange.response_head);
        let (line, fields) = head.split_once("\r\n").expect("it has lines");
        let added = "Content-Security-Policy: upgrade-insecure-requests\r\n";
        let rest = fields.strip_prefix(added).expect("the field comes first");
        assert_eq!(format!("{line}\r\n{rest}").as_bytes(), before.response_head);
        assert_eq!(exchange.body, before.body);
        exchange = before.clone();
        exchange.kind = Kind::Image;
        upgrade(&mut exchange);
        assert_eq!(exchange.response_head, before.response_head);
    }
}
