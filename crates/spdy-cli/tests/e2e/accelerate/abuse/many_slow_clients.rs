//! Thousands of clients that hold their connections. Each costs at most the memory that docs/reference/memory.md states, and other
//! clients get correct and complete responses. `scripts/slow-clients` does the same with two hundred clients of slowhttptest.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use spdy_frame::version::Version;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::certificates_from_pem;
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, TlsOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio::task::JoinSet;

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::clients::raw_frames::FrameProtocol;
use crate::support::origins::scripted::{Origins, complete_response};

const SITE: &str = "www.site.test";
const LIMITS: &str = include_str!("../../../../../../docs/reference/memory.md");

/// Number of clients, unless SPDY_SLOW_CLIENTS sets another, or this process may open fewer files.
const CLIENTS: usize = 10_000;
/// Other files that the test or the program has open.
const OTHER_FILES: usize = 400;
/// Clients for each source address; less than the limit for one address.
const CLIENTS_PER_ADDRESS: usize = 2_000;
/// Maximum number of concurrent handshakes.
const MAX_CONCURRENT_HANDSHAKES: usize = 32;
/// Size of the memory cache by the configuration, MiB.
const CACHE_MIB: u64 = 16;
/// Size of the resource that slow readers request, bytes.
const LARGE_BYTES: usize = 100_000;

/// A way in which a client is slow.
#[derive(Clone, Debug)]
struct SlowClientKind {
    /// Its name in docs/reference/memory.md.
    name: &'static str,
    /// The protocol inside TLS; `None` without TLS.
    tls: Option<Protocol>,
    /// The bytes that it sends before it stops.
    bytes_sent: Vec<u8>,
}

impl SlowClientKind {
    /// Sorted by timeout, shortest last: a head has 30 s, everything else a minute.
    fn all() -> Vec<Self> {
        let of = |name, tls, bytes_sent: &[u8]| Self {
            name,
            tls,
            bytes_sent: bytes_sent.to_vec(),
        };
        let head = format!("GET /small HTTP/1.1\r\nHost: {SITE}\r\nX-Field: and so");
        let body = format!("POST /form HTTP/1.1\r\nHost: {SITE}\r\nContent-Length: 9\r\n\r\nhalf");
        let all = format!("GET /large HTTP/1.1\r\nHost: {SITE}\r\n\r\n");
        let fields = |scheme| -> [(&str, &[u8]); 4] {
            [
                (":method", b"GET"),
                (":scheme", scheme),
                (":authority", SITE.as_bytes()),
                (":path", b"/large"),
            ]
        };
        let with_zero_window =
            |framed: FrameProtocol, scheme| framed.with_zero_window(&fields(scheme));
        let spdy = Protocol::Spdy(Version::V31);
        vec![
            of("HTTP/1.1, an answer not read", None, all.as_bytes()),
            of(
                "HTTP/2, its window closed",
                None,
                &with_zero_window(FrameProtocol::Http2, b"http"),
            ),
            of(
                "SPDY/3.1, its window closed",
                None,
                &with_zero_window(FrameProtocol::Spdy, b"http"),
            ),
            of(
                "HTTP/1.1 in TLS, an answer not read",
                Some(Protocol::Http1),
                all.as_bytes(),
            ),
            of(
                "HTTP/2 in TLS, its window closed",
                Some(Protocol::Http2),
                &with_zero_window(FrameProtocol::Http2, b"https"),
            ),
            of(
                "SPDY/3.1 in TLS, its window closed",
                Some(spdy),
                &with_zero_window(FrameProtocol::Spdy, b"https"),
            ),
            of("half a body", None, body.as_bytes()),
            of("half a head", None, head.as_bytes()),
        ]
    }

    /// Memory of one client by docs/reference/memory.md, bytes.
    fn documented(&self) -> u64 {
        let row = format!("| {} | ", self.name);
        let cells = LIMITS.lines().find_map(|line| line.strip_prefix(&row));
        let kib = cells.and_then(|cells| cells.split(' ').next()?.parse::<u64>().ok());
        kib.unwrap_or_else(|| panic!("docs/reference/memory.md has no {}", self.name)) << 10
    }

    /// Opens client `number` of this kind; when it returns, the client does nothing more.
    async fn client(self, addresses: ListenAddresses, number: usize) -> BoxIo {
        let socket = TcpSocket::new_v4().expect("enough sockets (see ulimit -n)");
        // A small buffer, so that unread data waits at the server.
        socket.set_recv_buffer_size(4096).expect("set the option");
        let last = u8::try_from(2 + number / CLIENTS_PER_ADDRESS).expect("enough addresses");
        let from = SocketAddr::from((Ipv4Addr::new(127, 0, 1, last), 0));
        socket.bind(from).expect("a free port on loopback");
        let to = match self.tls {
            Some(_) => addresses.tls,
            None => addresses.plain,
        };
        let socket = socket.connect(to).await.expect("connect");
        let mut io: BoxIo = Box::new(socket);
        if let Some(protocol) = self.tls {
            let client = addresses.client.with_alpn(&[protocol]);
            (io, _) = client.connect(io, SITE).await.expect("a TLS handshake");
        }
        io.write_all(&self.bytes_sent)
            .await
            .expect("write the request");
        io.flush().await.expect("write the request");
        if !self.name.starts_with("half") {
            // The response or the session has begun.
            io.read_u8().await.expect("a response");
        }
        io
    }

    /// Opens `count` clients of this kind; `first` is the number of the first one.
    async fn clients(&self, addresses: &ListenAddresses, count: usize, first: usize) -> Vec<BoxIo> {
        let (mut handshakes, mut connections) = (JoinSet::new(), Vec::with_capacity(count));
        for number in first..first + count {
            handshakes.spawn(self.clone().client(addresses.clone(), number));
            if handshakes.len() >= MAX_CONCURRENT_HANDSHAKES {
                connections.extend(handshakes.join_next().await);
            }
        }
        while let Some(client) = handshakes.join_next().await {
            connections.push(client);
        }
        let connections: Result<_, _> = connections.into_iter().collect();
        connections.expect("no client panicked")
    }
}

/// The addresses of the listeners.
#[derive(Clone)]
struct ListenAddresses {
    plain: SocketAddr,
    tls: SocketAddr,
    client: ClientTls,
}

fn clients() -> usize {
    let configured_count = std::env::var("SPDY_SLOW_CLIENTS").ok();
    configured_count.map_or_else(
        || CLIENTS.min(max_open_files().map_or(CLIENTS, |max_files| max_files - OTHER_FILES)),
        |text| text.parse().expect("a number"),
    )
}

/// The limit of open files of this process; `None` if the system does not report it in a file.
fn max_open_files() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The body that is not read. It has no repeated part.
fn large() -> Vec<u8> {
    (0..LARGE_BYTES)
        .map(|at| (at * 31 + at / 256) as u8)
        .collect()
}

fn origins() -> Origins {
    Origins::start(&[(SITE, "http")], |request, _| {
        let body = match &request.target[..] {
            "/large" => large(),
            target => target.as_bytes().to_vec(),
        };
        let head = "200 OK\r\nContent-Type: image/png\r\nCache-Control: max-age=600\r\n";
        complete_response(head, &body)
    })
}

/// Other clients are served at the same time, from the cache and from the origin, completely and without delay.
fn assert_serves(program: &AcceleratedSite, round: usize) {
    let cached_response = program.get(SITE, "/large", "");
    assert!(
        cached_response.is_complete && cached_response.body == large(),
        "{}",
        cached_response.head
    );
    let target = format!("/{round}");
    let uncached_response = program.get(SITE, &target, "");
    assert_eq!(
        (uncached_response.status, uncached_response.text()),
        (200, target)
    );
}

#[test]
fn thousands_of_slow_clients_cost_the_documented_memory() {
    let clients = clients();
    let origins = origins();
    let cache = format!("[cache]\nmemory_mib = {CACHE_MIB}\nobject_mib = 1\n");
    let setting = Setting {
        site: &cache,
        ..Setting::default()
    };
    let program = AcceleratedSite::start(&origins, &setting);
    let authority =
        std::fs::read(origins.certificates.path("authority.pem")).expect("read the certificate");
    let authority = certificates_from_pem(&authority, "a test's").expect("valid PEM");
    let trust = Trust::only(authority);
    let addresses = ListenAddresses {
        plain: program.plain(),
        tls: program.tls,
        client: ClientTls::new(&trust, &TlsOptions::default()).expect("a TLS configuration"),
    };
    assert_serves(&program, 0);
    let memory_before = program.memory();

    let kinds = SlowClientKind::all();
    let (mut connections, mut figures, mut memory_limit) =
        (Vec::new(), Vec::new(), CACHE_MIB << 20);
    let mut peak_open_files = 0;
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    for (number, kind) in kinds.iter().enumerate() {
        let count = clients / kinds.len();
        let first = number * count;
        let memory_before_kind = program.memory();
        connections.push(runtime.block_on(kind.clients(&addresses, count, first)));
        assert_serves(&program, 1 + number);
        peak_open_files = peak_open_files.max(program.open_files().unwrap_or(clients));
        memory_limit += count as u64 * kind.documented();
        let per_client = |(before, after): (u64, u64)| after.saturating_sub(before) / count as u64;
        figures.push((
            kind.name,
            memory_before_kind.zip(program.memory()).map(per_client),
        ));
    }
    for round in 100..120 {
        assert_serves(&program, round);
    }
    if let Some((memory_before, memory_after)) = memory_before.zip(program.memory()) {
        let growth = memory_after.saturating_sub(memory_before);
        assert!(
            growth <= memory_limit,
            "{growth} bytes more, at most {memory_limit} by docs/reference/memory.md; per client: {figures:?}"
        );
    }
    assert!(
        2 * peak_open_files > clients,
        "{peak_open_files} of {clients} were open at once"
    );
    // A client that reads late gets its response.
    let response = runtime.block_on(read_for_a_second(connections.swap_remove(0).swap_remove(0)));
    let body = response.windows(4).position(|four| four == b"\r\n\r\n");
    let body = &response[body.expect("a head") + 4..];
    assert!(
        !body.is_empty() && large().starts_with(body),
        "{} bytes",
        body.len()
    );
}

/// Reads for one second.
async fn read_for_a_second(mut io: BoxIo) -> Vec<u8> {
    let mut response = Vec::new();
    let reading = async { while matches!(io.read_buf(&mut response).await, Ok(1..)) {} };
    let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
    response
}
