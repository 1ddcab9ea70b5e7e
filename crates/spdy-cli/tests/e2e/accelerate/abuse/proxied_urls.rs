//! Known attempts to make a proxy connect to forbidden addresses, over real sockets against the running program. A listener at a
//! denied address must get no connection.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tokio::net::TcpSocket;

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::clients::raw_client::RawResponse;
use crate::support::origins::scripted::{
    OriginAddresses, OriginRequest, Origins, Step, complete_response,
};

#[path = "../../../../../spdy-rewrite/tests/it/support/corpus.rs"]
#[allow(dead_code, reason = "the corpus has an unknown word")]
pub(crate) mod corpus;

pub(crate) const SITE: &str = "www.site.test";
const CDN: &str = "cdn.test";

/// The canary's address: loopback, so denied unless it is listed.
const CANARY_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 99);

/// A listener that must get no connection.
pub(crate) struct Canary {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    /// Keeps the same port of 127.0.0.1 closed: the rules allow that address, and another test could listen there.
    _closed: TcpSocket,
}

impl Canary {
    pub(crate) fn start() -> Self {
        let (listener, closed) = (0..100)
            .find_map(|_| {
                let listener = TcpListener::bind((CANARY_ADDRESS, 0)).ok()?;
                let port = listener.local_addr().ok()?.port();
                let closed = TcpSocket::new_v4().ok()?;
                closed.bind(([127, 0, 0, 1], port).into()).ok()?;
                Some((listener, closed))
            })
            .expect("a port that is free on two addresses of loopback");
        let address = listener.local_addr().expect("a bound socket");
        let connections = Arc::<AtomicUsize>::default();
        let counter = connections.clone();
        thread::spawn(move || {
            while listener.accept().is_ok() {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self {
            address,
            connections,
            _closed: closed,
        }
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Redirect targets of an allowed origin for `/to/N`: none of them is allowed.
fn redirect_targets(canary: SocketAddr, cdn: SocketAddr) -> Vec<String> {
    let (port, cdn) = (canary.port(), cdn.port());
    [
        "http://127.0.0.99:{port}/",
        "https://127.0.0.99:{port}/",
        "//127.0.0.99:{port}/",
        "\\\\127.0.0.99:{port}/",
        "https:\\\\127.0.0.99:{port}\\",
        "/\\127.0.0.99:{port}/",
        "https:127.0.0.99:{port}",
        "http://0x7f000063:{port}/",
        "http://2130706531:{port}/",
        "http://127.99:{port}/",
        "http://0177.0.0.0143:{port}/",
        "http://[::ffff:127.0.0.99]:{port}/",
        "http://[::ffff:7f00:63]:{port}/",
        "http://[64:ff9b::7f00:63]:{port}/",
        "http://\u{ff11}\u{ff12}\u{ff17}.0.0.99:{port}/",
        "http://127.0.0.99.:{port}/",
        "http://localhost:{port}/",
        "http://canary.localhost:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "https://stranger.test:{port}/",
        "https://cdn.test.stranger.test:{port}/",
        "https://cdn.test:{port}/a.png",
        "http://cdn.test:{cdn}/a.png",
        "https://cdn.test@127.0.0.99:{port}/",
        "https://u:p@cdn.test:{cdn}/a.png",
        "https://127.0.0.99:{port}#@cdn.test:{cdn}/",
        "https://www.site.test/secret",
        "https://www.site.test/.spdy/1/-/s/cdn.test~{cdn}/a.png",
        "file:///etc/passwd",
        "gopher://127.0.0.99:{port}/_GET",
        "ftp://127.0.0.99:{port}/",
        "data:image/png;base64,AAAA",
        "javascript:alert(1)",
        "https://",
        "https://[",
        "",
    ]
    .map(|url| {
        let url = url.replace("{port}", &port.to_string());
        url.replace("{cdn}", &cdn.to_string())
    })
    .to_vec()
}

/// Denied addresses that an allowed host name resolves to (DNS rebinding).
const REBOUND: [&str; 24] = [
    "127.0.0.99",
    "127.0.0.1",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.8",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.99",
    "::127.0.0.99",
    "64:ff9b::7f00:63",
    "2002:7f00:63::1",
    "fd00:ec2::254",
    "fe80::1",
    "ff02::1",
    "2001:db8::1",
];

fn respond(
    request: &OriginRequest,
    addresses: &OriginAddresses,
    locations: &[String],
) -> Vec<Step> {
    let png = "200 OK\r\nContent-Type: image/png\r\nCache-Control: max-age=60\r\n";
    if request.host == SITE {
        return match request.target.as_str() {
            "/page" => complete_response(
                "200 OK\r\nCache-Control: max-age=60\r\nContent-Type: text/html\r\n",
                b"<p>hello",
            ),
            _ => complete_response(
                "404 Not Found\r\nContent-Type: text/plain\r\n",
                b"the origin has no such thing\n",
            ),
        };
    }
    let redirect = |to: &str| complete_response(&format!("302 Found\r\nLocation: {to}\r\n"), b"");
    if let Some(number) = request.target.strip_prefix("/to/") {
        return match number.parse::<usize>() {
            Ok(number) => redirect(&locations[number]),
            // Some locations can be read as paths.
            Err(_) => complete_response("404 Not Found\r\n", b""),
        };
    }
    match request.target.as_str() {
        "/round" => redirect(&format!("{}/round", addresses.origin(CDN))),
        "/twice" => complete_response("302 Found\r\nLocation: /a.png\r\nLocation: /b.png\r\n", b""),
        "/nowhere" => complete_response("302 Found\r\n", b""),
        "/page" => complete_response(
            "200 OK\r\nContent-Type: text/html\r\n",
            b"<script>alert(1)</script>",
        ),
        "/two-types" => complete_response(
            "200 OK\r\nContent-Type: image/png\r\nContent-Type: text/html\r\n",
            b"?",
        ),
        "/login" => complete_response(
            "401 No\r\nWWW-Authenticate: Basic realm=\"your bank\"\r\nContent-Type: image/png\r\n",
            b"x",
        ),
        "/big.png" => complete_response(png, &[b'x'; 100_000]),
        _ => complete_response(png, b"a picture"),
    }
}

/// The program, its origins, and the canary.
pub(crate) struct Setup {
    canary: Canary,
    pub(crate) origins: Origins,
    pub(crate) program: AcceleratedSite,
    locations: Vec<String>,
}

pub(crate) fn setup() -> Setup {
    let canary = Canary::start();
    let canary_address = canary.address;
    let origins = Origins::start(
        &[(SITE, "http"), (CDN, "https")],
        move |request, addresses| {
            let locations = redirect_targets(canary_address, addresses.address(CDN));
            respond(request, addresses, &locations)
        },
    );
    let (cdn, canary_port) = (origins.addresses.address(CDN), canary.address.port());
    // The port is free again at once. If another process takes it, this test fails; it cannot pass by mistake.
    let own_address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let own_address = own_address.expect("a free port on loopback");
    let folder = tempfile::tempdir().expect("create a folder");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, [1; 32]).expect("write the file");
    let rebound = REBOUND.iter().enumerate();
    let rebound =
        rebound.map(|(number, address)| format!(", 'r{number}.rebound.test' = '{address}'"));
    let program = AcceleratedSite::start(
        &origins,
        &Setting {
            top: &format!("secret_file = {secret:?}"),
            site: &format!(
                "[site.rewrite]\ndiscover = true\ndeny = ['evil.test']\nown_hosts = ['img.site.test']\n\
                 hosts = [\n\
                 {{ host = 'cdn.test', kinds = ['image', 'style', 'font', 'media', 'script'] }},\n\
                 {{ host = 'cdn.test:{}', kinds = ['image', 'style', 'font', 'media'] }},\n\
                 {{ host = 'folder.test', path = '/lib/', kinds = ['image'] }},\n\
                 {{ host = '*.wild.test', kinds = ['image'] }},\n\
                 {{ host = 'port.test:8443', kinds = ['image'] }},\n\
                 {{ host = 'plain.test', scheme = 'http', kinds = ['image'] }},\n\
                 {{ host = 'shared.test', shared = true, kinds = ['image', 'script'] }},\n\
                 {{ host = 'parts.test', kinds = ['image', 'style', 'font', 'media'] }},\n\
                 {{ host = 'parts.test', path = '/users/', kinds = ['image'] }},\n\
                 {{ host = '*.rebound.test:{canary_port}', kinds = ['image'] }},\n\
                 {{ host = 'self.test:{}', kinds = ['image'] }},\n\
                 {{ host = 'closed.test:{}', kinds = ['image'] }},\n]",
                cdn.port(),
                own_address.port(),
                1,
            ),
            upstream: &format!(
                "allow_addresses = ['127.0.0.2/32', '127.0.0.1/32']\nallow_ports = [{}, {canary_port}, {}]\nfailures = 0\n\
                 resolve = {{ 'cdn.test' = '127.0.0.2', 'self.test' = '127.0.0.1', 'closed.test' = '127.0.0.2'{} }}",
                cdn.port(),
                own_address.port(),
                rebound.collect::<String>()
            ),
            tls: Some(own_address),
            has_http3: true,
        },
    );
    let locations = redirect_targets(canary.address, cdn);
    Setup {
        canary,
        origins,
        program,
        locations,
    }
}

impl Setup {
    /// The proxied URL of `path` on the CDN.
    fn proxied_url(&self, path: &str) -> String {
        format!(
            "/.spdy/1/-/s/cdn.test~{}{path}",
            self.origins.addresses.address(CDN).port()
        )
    }

    fn get(&self, target: &str, fields: &str) -> RawResponse {
        self.program.get(SITE, target, fields)
    }

    /// It still serves proxied resources, and the canary got no connection.
    pub(crate) fn assert_healthy(&self) {
        let response = self.get(&self.proxied_url("/a.png"), "");
        assert_eq!(
            (response.status, response.text()),
            (200, "a picture".to_owned()),
            "{}",
            response.head
        );
        assert_eq!(self.canary.connections(), 0, "the canary got a request");
    }
}

/// The response is an error, and neither an origin nor the cache was used.
fn is_refusal(response: &RawResponse) -> bool {
    response.field("cache-status").is_none()
        && response.field("proxy-status").is_none()
        && response.status >= 400
}

#[test]
fn every_abuse_of_proxied_urls_is_refused_without_a_fetch() {
    let setup = setup();
    let mut cases = corpus::cases('1');
    // In HTTP these two are other forms of an allowed URL: everything after `#` is removed before the request is handled.
    cases.retain(|case| !matches!(case.name, "fragment" | "absolute-form"));
    assert!(cases.len() >= 80, "{} cases", cases.len());
    let mut failures = Vec::new();
    for case in cases {
        let requests_before = setup.origins.requests().len();
        let mut head = format!(
            "{} {} HTTP/1.1\r\nHost: {SITE}\r\n",
            case.method, case.target
        );
        let has_connection_field = case.fields.iter().any(|(name, _)| *name == "connection");
        if !has_connection_field {
            head.push_str("Connection: close\r\n");
        }
        for (name, value) in &case.fields {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let response = setup.program.exchange(format!("{head}\r\n").as_bytes());
        let requests = setup.origins.requests().split_off(requests_before);
        let is_correct = match case.refusal {
            // The path is forwarded to the site, whatever it looks like.
            "not-proxied" => {
                requests.len() == 1
                    && requests[0].host == SITE
                    && requests[0].target == case.target
                    && response.status == 404
            }
            "method" => is_refusal(&response) && matches!(response.status, 405 | 400),
            // The HTTP implementation rejects some of them.
            _ => {
                is_refusal(&response) && matches!(response.status, 404 | 400) && requests.is_empty()
            }
        };
        if !is_correct {
            failures.push((
                case.name,
                case.refusal,
                response.status,
                response.head,
                requests,
            ));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
    setup.assert_healthy();
}

#[test]
fn an_origin_cannot_redirect_the_program_to_denied_addresses() {
    let setup = setup();
    let loads = [
        "",
        "Sec-Fetch-Dest: image\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Site: same-origin\r\n",
    ];
    for (number, location) in setup.locations.iter().enumerate() {
        for load in loads {
            let response = setup.get(&setup.proxied_url(&format!("/to/{number}")), load);
            let what = format!("{location:?} {load:?}: {}", response.head);
            match response.status {
                404 => {}
                // Only the page's own loads are redirected, so the browser connects to the target, not the program.
                307 => {
                    assert!(!load.is_empty(), "an open redirect: {what}");
                    let to = response.field("location").unwrap_or_default();
                    assert!(to.starts_with("http"), "{what}");
                }
                _ => panic!("{what}"),
            }
        }
    }
    for (path, load) in [
        "/round",
        "/twice",
        "/nowhere",
        "/page",
        "/two-types",
        "/login",
    ]
    .iter()
    .flat_map(|path| loads.map(|load| (path, load)))
    {
        let response = setup.get(&setup.proxied_url(path), load);
        assert_eq!(response.status, 404, "{path}: {}", response.head);
        assert!(
            response.field("www-authenticate").is_none() && response.body.is_empty(),
            "{path}: {}",
            response.head
        );
    }
    let rounds = setup.origins.requests();
    let rounds = rounds
        .iter()
        .filter(|request| request.target == "/round")
        .count();
    assert_eq!(rounds, 2 * 4, "once, and three redirects");
    let secret = setup
        .origins
        .requests()
        .into_iter()
        .find(|request| request.target == "/secret");
    assert!(
        secret.is_none(),
        "an origin read the site's own: {secret:?}"
    );
    setup.assert_healthy();
}

#[test]
fn a_rebound_host_name_is_refused() {
    let setup = setup();
    let canary_port = setup.canary.address.port();
    for (number, address) in REBOUND.iter().enumerate() {
        for path in ["/a.png", "/"] {
            let response = setup.get(
                &format!("/.spdy/1/-/s/r{number}.rebound.test~{canary_port}{path}"),
                "",
            );
            assert_eq!(response.status, 502, "{address}: {}", response.head);
            assert!(
                !response.text().contains(address),
                "leaked internals: {}",
                response.text()
            );
        }
    }
    let own_port = setup.program.tls.port();
    let response = setup.get(&format!("/.spdy/1/-/s/self.test~{own_port}/a.png"), "");
    assert_eq!(
        response.status, 502,
        "a request to itself: {}",
        response.head
    );
    let response = setup.get("/.spdy/1/-/s/closed.test~1/a.png", "");
    assert_eq!(response.status, 502, "an unlisted port: {}", response.head);
    setup.assert_healthy();
}

#[test]
fn ambiguous_hosts_and_messages_are_refused() {
    let setup = setup();
    let proxied_url = setup.proxied_url("/a.png");
    let canary_address = setup.canary.address;
    let post = "POST /page HTTP/1.1\r\nHost: www.site.test\r\nConnection: close\r\n";
    let get = "GET /page HTTP/1.1\r\nHost: www.site.test\r\nConnection: close\r\n";
    for (name, message, statuses) in [
        ("another host", format!("GET /page HTTP/1.1\r\nHost: stranger.test\r\n{CLOSE}"), &[421][..]),
        ("an address", format!("GET /page HTTP/1.1\r\nHost: {canary_address}\r\n{CLOSE}"), &[421]),
        ("a listed host", format!("GET /a.png HTTP/1.1\r\nHost: cdn.test\r\n{CLOSE}"), &[421]),
        ("no host", format!("GET /page HTTP/1.1\r\n{CLOSE}"), &[400, 421]),
        ("two hosts", format!("{get}Host: cdn.test\r\n\r\n"), &[400]),
        ("user name before the host", format!("GET /page HTTP/1.1\r\nHost: www.site.test@{canary_address}\r\n{CLOSE}"), &[400, 421]),
        ("the site as a user name", format!("GET /page HTTP/1.1\r\nHost: {canary_address}@www.site.test\r\n{CLOSE}"), &[400, 421]),
        ("a space in the host", format!("GET /page HTTP/1.1\r\nHost: www.site.test {canary_address}\r\n{CLOSE}"), &[400, 421]),
        ("a path in the host", format!("GET /page HTTP/1.1\r\nHost: www.site.test/{canary_address}\r\n{CLOSE}"), &[400, 421]),
        ("two hosts in one field", format!("GET /page HTTP/1.1\r\nHost: www.site.test, {canary_address}\r\n{CLOSE}"), &[400, 421]),
        ("an absolute URL of the canary", format!("GET http://{canary_address}/ HTTP/1.1\r\nHost: www.site.test\r\n{CLOSE}"), &[400, 421]),
        ("an absolute URL of another site", format!("GET https://stranger.test/ HTTP/1.1\r\nHost: www.site.test\r\n{CLOSE}"), &[400, 421]),
        ("a file URL", format!("GET file:///etc/passwd HTTP/1.1\r\nHost: www.site.test\r\n{CLOSE}"), &[400, 404, 421]),
        ("CONNECT", format!("CONNECT {canary_address} HTTP/1.1\r\nHost: {canary_address}\r\n{CLOSE}"), &[400, 405, 421, 501]),
        ("CONNECT to the site", format!("CONNECT www.site.test:443 HTTP/1.1\r\nHost: www.site.test\r\n{CLOSE}"), &[400, 405, 501]),
        ("TRACE", format!("TRACE /page HTTP/1.1\r\nHost: www.site.test\r\nCookie: a=secret\r\n{CLOSE}"), &[405, 501]),
        ("a loop", format!("{get}CDN-Loop: other, www.site.test; v=1\r\n\r\n"), &[508]),
        ("two lengths", format!("{post}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"), &[400]),
        ("two lengths in one", format!("{post}Content-Length: 1, 2\r\n\r\nab"), &[400]),
        ("a length with a sign", format!("{post}Content-Length: +1\r\n\r\na"), &[400]),
        ("a length in hexadecimal", format!("{post}Content-Length: 0x1\r\n\r\na"), &[400]),
        ("a negative length", format!("{post}Content-Length: -1\r\n\r\na"), &[400]),
        ("chunked is not the last coding", format!("{post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"), &[400]),
        ("an unknown transfer coding", format!("{post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"), &[400]),
        ("chunks in HTTP/1.0", "POST /page HTTP/1.0\r\nHost: www.site.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(), &[400]),
        ("a space before the colon", format!("{get}Content-Length : 5\r\n\r\n"), &[400]),
        ("a folded field", format!("{get}X-A: b\r\n Content-Length: 5\r\n\r\n"), &[400]),
        ("a bare return in a field", format!("{get}X-A: b\rContent-Length: 5\r\n\r\n"), &[400]),
        ("a NUL in a field", format!("{get}X-A: b\0c\r\n\r\n"), &[400]),
        ("an invalid chunk length", format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n"), &[400, 404, 502]),
        ("a WebSocket at a proxied URL", format!("GET {proxied_url} HTTP/1.1\r\nHost: www.site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"), &[404]),
        ("a WebSocket to the site", "GET /page HTTP/1.1\r\nHost: www.site.test\r\nConnection: Upgrade\r\nUpgrade: h2c, WebSocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".to_owned(), &[200]),
        ("an incomplete WebSocket handshake", "GET /page HTTP/1.1\r\nHost: www.site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n".to_owned(), &[400]),
        ("a WebSocket of an older version", "GET /page HTTP/1.1\r\nHost: www.site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 8\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".to_owned(), &[426]),
        ("a body for a proxied URL", format!("GET {proxied_url} HTTP/1.1\r\nHost: www.site.test\r\nContent-Length: 3\r\n{CLOSE}abc"), &[404]),
        ("chunks for a proxied URL", format!("GET {proxied_url} HTTP/1.1\r\nHost: www.site.test\r\nTransfer-Encoding: chunked\r\n{CLOSE}0\r\n\r\n"), &[404]),
        ("DELETE of a proxied URL", format!("DELETE {proxied_url} HTTP/1.1\r\nHost: www.site.test\r\n{CLOSE}"), &[405]),
        ("PURGE of a proxied URL", format!("PURGE {proxied_url} HTTP/1.1\r\nHost: www.site.test\r\n{CLOSE}"), &[405]),
    ] {
        let requests_before = setup.origins.requests().len();
        let response = setup.program.exchange(message.as_bytes());
        assert!(statuses.contains(&response.status), "{name}: expected {statuses:?}, found {:?} {}", response.head, response.text());
        let requests = setup.origins.requests().split_off(requests_before);
        assert!(requests.iter().all(|request| request.host == SITE && request.target == "/page"), "{name}: {requests:?}");
        assert!(requests.len() <= 1, "{name}: one message became {requests:?}");
        setup.assert_healthy();
    }
}

#[test]
fn content_length_with_chunked_is_ignored_and_closes_the_connection() {
    let setup = setup();
    for (first, second) in [
        ("Content-Length: 5", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 5"),
    ] {
        let smuggled = format!(
            "GET {} HTTP/1.1\r\nHost: {SITE}\r\n\r\n",
            setup.proxied_url("/smuggled.png")
        );
        let message = format!(
            "POST /page HTTP/1.1\r\nHost: {SITE}\r\n{first}\r\n{second}\r\n\r\n0\r\n\r\n{smuggled}"
        );
        let response = setup.program.exchange(message.as_bytes());
        assert_eq!(
            response.field("connection").as_deref(),
            Some("close"),
            "{}",
            response.head
        );
        let forwarded_request = setup.origins.requests().pop().expect("a forwarded request");
        assert!(
            forwarded_request.head.starts_with("post /page "),
            "{}",
            forwarded_request.head
        );
        assert!(
            !forwarded_request.head.contains("content-length: 5"),
            "{}",
            forwarded_request.head
        );
    }
    setup.assert_healthy();
    let smuggled = setup
        .origins
        .requests()
        .into_iter()
        .find(|request| request.target == "/smuggled.png");
    assert!(smuggled.is_none(), "{smuggled:?}");
}

const CLOSE: &str = "Connection: close\r\n\r\n";

#[test]
fn proxied_requests_carry_no_identity_and_responses_no_site_headers() {
    let setup = setup();
    let private_fields = "Cookie: session=secret\r\nAuthorization: Basic c2VjcmV0\r\nReferer: https://www.site.test/secret?token=1\r\n\
                X-Forwarded-For: secret\r\nX-Original-URL: /secret\r\nX-HTTP-Method-Override: DELETE\r\nForwarded: for=secret\r\n\
                X-Secret: secret\r\nConnection: X-Secret\r\nSec-CH-UA: secret\r\nProxy-Authorization: secret\r\n";
    let response = setup.get(&setup.proxied_url("/private.png"), private_fields);
    assert_eq!(response.status, 200);
    let request = setup.origins.requests().pop().expect("a request");
    assert!(
        request.target == "/private.png" && !request.head.contains("secret"),
        "{}",
        request.head
    );
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        assert_eq!(
            response.field(name).as_deref(),
            Some(value),
            "{}",
            response.head
        );
    }
    let policy = response
        .field("content-security-policy")
        .unwrap_or_default();
    assert!(
        policy.starts_with("sandbox; default-src 'none'"),
        "{}",
        response.head
    );
}

#[test]
fn a_thousand_ranges_return_at_most_the_resource() {
    let setup = setup();
    let target = setup.proxied_url("/big.png");
    assert_eq!(setup.get(&target, "").body.len(), 100_000);
    for ranges in [
        (0..2_000)
            .map(|at| format!("{at}-"))
            .collect::<Vec<_>>()
            .join(","),
        (0..2_000)
            .map(|_| "0-99999".to_owned())
            .collect::<Vec<_>>()
            .join(","),
        (0..1_000)
            .map(|at| format!("{}-{}", at * 100, at * 100))
            .collect::<Vec<_>>()
            .join(","),
        "-18446744073709551615,0-18446744073709551615".to_owned(),
        "0-0,".repeat(5_000),
    ] {
        let response = setup.get(&target, &format!("Range: bytes={ranges}\r\n"));
        assert!(
            matches!(response.status, 200 | 206 | 400 | 416),
            "{}",
            response.head
        );
        assert!(
            response.body.len() <= 200_000,
            "{} bytes for {} of ranges",
            response.body.len(),
            ranges.len()
        );
    }
    setup.assert_healthy();
}
