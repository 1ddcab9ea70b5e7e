//! Thousands of clients that hold their connections. Each costs at most the memory that docs/reference/memory.md states, and other
//! clients get correct and complete responses. `scripts/slow-clients` shows two hundred of slowhttptest's.

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

/// All of them together, unless SPDY_SLOW_CLIENTS says how many, or the system lets this process open fewer files.
const CLIENTS: usize = 10_000;
/// Files that the test, and the program, have open besides.
const OTHER_FILES: usize = 400;
/// Of one address, less than what one may have.
const OF_ONE_ADDRESS: usize = 2_000;
/// Hands that are shaken at once.
const MAX_CONCURRENT_HANDSHAKES: usize = 32;
/// What the configuration lets the cache hold, MiB.
const CACHE_MIB: u64 = 16;
/// What slow readers ask for, bytes.
const LARGE: usize = 100_000;

/// How a client is slow.
#[derive(Clone, Debug)]
struct SlowClientKind {
    /// As docs/reference/memory.md calls it.
    name: &'static str,
    /// It is in TLS, and speaks this there.
    tls: Option<Protocol>,
    /// What it has sent when it stops.
    bytes_sent: Vec<u8>,
}

impl SlowClientKind {
    /// Those last that are cut off first: a head has 30 s, and all else a minute.
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
        let behind_closed_window =
            |framed: FrameProtocol, scheme| framed.behind_a_closed_window(&fields(scheme));
        let spdy = Protocol::Spdy(Version::V31);
        vec![
            of("HTTP/1.1, an answer not read", None, all.as_bytes()),
            of(
                "HTTP/2, its window closed",
                None,
                &behind_closed_window(FrameProtocol::Http2, b"http"),
            ),
            of(
                "SPDY/3.1, its window closed",
                None,
                &behind_closed_window(FrameProtocol::Spdy, b"http"),
            ),
            of(
                "HTTP/1.1 in TLS, an answer not read",
                Some(Protocol::Http1),
                all.as_bytes(),
            ),
            of(
                "HTTP/2 in TLS, its window closed",
                Some(Protocol::Http2),
                &behind_closed_window(FrameProtocol::Http2, b"https"),
            ),
            of(
                "SPDY/3.1 in TLS, its window closed",
                Some(spdy),
                &behind_closed_window(FrameProtocol::Spdy, b"https"),
            ),
            of("half a body", None, body.as_bytes()),
            of("half a head", None, head.as_bytes()),
        ]
    }

    /// What docs/reference/memory.md says that one costs, bytes.
    fn documented(&self) -> u64 {
        let row = format!("| {} | ", self.name);
        let cells = LIMITS.lines().find_map(|line| line.strip_prefix(&row));
        let kib = cells.and_then(|cells| cells.split(' ').next()?.parse::<u64>().ok());
        kib.unwrap_or_else(|| panic!("docs/reference/memory.md has no {}", self.name)) << 10
    }

    /// A client of this manner, the one of this number, at the moment from which it does nothing more.
    async fn client(self, addresses: ListenAddresses, number: usize) -> BoxIo {
        let socket = TcpSocket::new_v4().expect("enough sockets (see ulimit -n)");
        // What is not read is to wait at the server.
        socket.set_recv_buffer_size(4096).expect("a setting");
        let last = u8::try_from(2 + number / OF_ONE_ADDRESS).expect("enough addresses");
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
            // Its answer has begun, or its session.
            io.read_u8().await.expect("a response");
        }
        io
    }

    /// So many of them, of which the first has this number.
    async fn clients(&self, addresses: &ListenAddresses, count: usize, first: usize) -> Vec<BoxIo> {
        let (mut coming, mut connections) = (JoinSet::new(), Vec::with_capacity(count));
        for number in first..first + count {
            coming.spawn(self.clone().client(addresses.clone(), number));
            if coming.len() >= MAX_CONCURRENT_HANDSHAKES {
                connections.extend(coming.join_next().await);
            }
        }
        while let Some(client) = coming.join_next().await {
            connections.push(client);
        }
        let connections: Result<_, _> = connections.into_iter().collect();
        connections.expect("no client panicked")
    }
}

/// Where they come in.
#[derive(Clone)]
struct ListenAddresses {
    plain: SocketAddr,
    tls: SocketAddr,
    client: ClientTls,
}

fn clients() -> usize {
    let configured_count = std::env::var("SPDY_SLOW_CLIENTS").ok();
    configured_count.map_or_else(
        || CLIENTS.min(most_files().map_or(CLIENTS, |max_files| max_files - OTHER_FILES)),
        |text| text.parse().expect("a number"),
    )
}

/// What `ulimit -n` says, where the system tells it in a file.
fn most_files() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The answer that is not read, of bytes of which none is like the next.
fn large() -> Vec<u8> {
    (0..LARGE).map(|at| (at * 31 + at / 256) as u8).collect()
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

/// Others are served meanwhile, from what is kept and from the origin, in time and byte for byte.
fn assert_serves(program: &AcceleratedSite, round: usize) {
    let cached_response = program.get(SITE, "/large", "");
    assert!(
        cached_response.is_whole && cached_response.body == large(),
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
        std::fs::read(origins.signed.path("authority.pem")).expect("read the certificate");
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
        let had = program.memory();
        connections.push(runtime.block_on(kind.clients(&addresses, count, first)));
        assert_serves(&program, 1 + number);
        peak_open_files = peak_open_files.max(program.open_files().unwrap_or(clients));
        memory_limit += count as u64 * kind.documented();
        let of_one = |(had, has): (u64, u64)| has.saturating_sub(had) / count as u64;
        figures.push((kind.name, had.zip(program.memory()).map(of_one)));
    }
    for round in 100..120 {
        assert_serves(&program, round);
    }
    if let Some((memory_before, memory_after)) = memory_before.zip(program.memory()) {
        let growth = memory_after.saturating_sub(memory_before);
        assert!(
            growth <= memory_limit,
            "{growth} bytes more, at most {memory_limit} by docs/reference/memory.md; of one: {figures:?}"
        );
    }
    assert!(
        2 * peak_open_files > clients,
        "{peak_open_files} of {clients} were open at once"
    );
    // A client that reads late gets its response.
    let response = runtime.block_on(read_at_last(connections.swap_remove(0).swap_remove(0)));
    let body = response.windows(4).position(|four| four == b"\r\n\r\n");
    let body = &response[body.expect("a head") + 4..];
    assert!(
        !body.is_empty() && large().starts_with(body),
        "{} bytes",
        body.len()
    );
}

/// What comes within a second.
async fn read_at_last(mut io: BoxIo) -> Vec<u8> {
    let mut response = Vec::new();
    let reading = async { while matches!(io.read_buf(&mut response).await, Ok(1..)) {} };
    let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
    response
}
