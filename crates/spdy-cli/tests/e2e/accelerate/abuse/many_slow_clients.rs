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
use crate::support::origins::scripted::{Origins, whole};

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
    sent: Vec<u8>,
}

impl SlowClientKind {
    /// Those last that are cut off first: a head has 30 s, and all else a minute.
    fn all() -> Vec<Self> {
        let of = |name, tls, sent: &[u8]| Self {
            name,
            tls,
            sent: sent.to_vec(),
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
        let closed = |framed: FrameProtocol, scheme| framed.behind_a_closed_window(&fields(scheme));
        let spdy = Protocol::Spdy(Version::V31);
        vec![
            of("HTTP/1.1, an answer not read", None, all.as_bytes()),
            of(
                "HTTP/2, its window closed",
                None,
                &closed(FrameProtocol::Http2, b"http"),
            ),
            of(
                "SPDY/3.1, its window closed",
                None,
                &closed(FrameProtocol::Spdy, b"http"),
            ),
            of(
                "HTTP/1.1 in TLS, an answer not read",
                Some(Protocol::Http1),
                all.as_bytes(),
            ),
            of(
                "HTTP/2 in TLS, its window closed",
                Some(Protocol::Http2),
                &closed(FrameProtocol::Http2, b"https"),
            ),
            of(
                "SPDY/3.1 in TLS, its window closed",
                Some(spdy),
                &closed(FrameProtocol::Spdy, b"https"),
            ),
            of("half a body", None, body.as_bytes()),
            of("half a head", None, head.as_bytes()),
        ]
    }

    /// What docs/reference/memory.md says that one costs, bytes.
    fn documented(&self) -> u64 {
        let row = format!("| {} | ", self.name);
        let told = LIMITS.lines().find_map(|line| line.strip_prefix(&row));
        let kib = told.and_then(|told| told.split(' ').next()?.parse::<u64>().ok());
        kib.unwrap_or_else(|| panic!("docs/reference/memory.md has no {}", self.name)) << 10
    }

    /// A client of this manner, the one of this number, at the moment from which it does nothing more.
    async fn client(self, doors: ListenAddresses, number: usize) -> BoxIo {
        let socket = TcpSocket::new_v4().expect("enough sockets (see ulimit -n)");
        // What is not read is to wait at the server.
        socket.set_recv_buffer_size(4096).expect("a setting");
        let last = u8::try_from(2 + number / OF_ONE_ADDRESS).expect("enough addresses");
        let from = SocketAddr::from((Ipv4Addr::new(127, 0, 1, last), 0));
        socket.bind(from).expect("a free port on loopback");
        let to = match self.tls {
            Some(_) => doors.tls,
            None => doors.plain,
        };
        let socket = socket.connect(to).await.expect("connect");
        let mut io: BoxIo = Box::new(socket);
        if let Some(protocol) = self.tls {
            let client = doors.client.with_alpn(&[protocol]);
            (io, _) = client.connect(io, SITE).await.expect("a TLS handshake");
        }
        io.write_all(&self.sent).await.expect("write the request");
        io.flush().await.expect("write the request");
        if !self.name.starts_with("half") {
            // Its answer has begun, or its session.
            io.read_u8().await.expect("a response");
        }
        io
    }

    /// So many of them, of which the first has this number.
    async fn clients(&self, doors: &ListenAddresses, count: usize, first: usize) -> Vec<BoxIo> {
        let (mut coming, mut held) = (JoinSet::new(), Vec::with_capacity(count));
        for number in first..first + count {
            coming.spawn(self.clone().client(doors.clone(), number));
            if coming.len() >= MAX_CONCURRENT_HANDSHAKES {
                held.extend(coming.join_next().await);
            }
        }
        while let Some(client) = coming.join_next().await {
            held.push(client);
        }
        let held: Result<_, _> = held.into_iter().collect();
        held.expect("no client panicked")
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
    let told = std::env::var("SPDY_SLOW_CLIENTS").ok();
    told.map_or_else(
        || CLIENTS.min(most_files().map_or(CLIENTS, |most| most - OTHER_FILES)),
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
    Origins::start(&[(SITE, "http")], |asked, _| {
        let body = match &asked.target[..] {
            "/large" => large(),
            target => target.as_bytes().to_vec(),
        };
        let head = "200 OK\r\nContent-Type: image/png\r\nCache-Control: max-age=600\r\n";
        whole(head, &body)
    })
}

/// Others are served meanwhile, from what is kept and from the origin, in time and byte for byte.
fn assert_serves(program: &AcceleratedSite, round: usize) {
    let kept = program.get(SITE, "/large", "");
    assert!(kept.is_whole && kept.body == large(), "{}", kept.head);
    let target = format!("/{round}");
    let asked = program.get(SITE, &target, "");
    assert_eq!((asked.status, asked.text()), (200, target));
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
    let doors = ListenAddresses {
        plain: program.plain(),
        tls: program.tls,
        client: ClientTls::new(&trust, &TlsOptions::default()).expect("a TLS configuration"),
    };
    assert_serves(&program, 0);
    let before = program.memory();

    let manners = SlowClientKind::all();
    let (mut held, mut figures, mut most) = (Vec::new(), Vec::new(), CACHE_MIB << 20);
    let mut at_once = 0;
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    for (number, manner) in manners.iter().enumerate() {
        let count = clients / manners.len();
        let first = number * count;
        let had = program.memory();
        held.push(runtime.block_on(manner.clients(&doors, count, first)));
        assert_serves(&program, 1 + number);
        at_once = at_once.max(program.open_files().unwrap_or(clients));
        most += count as u64 * manner.documented();
        let of_one = |(had, has): (u64, u64)| has.saturating_sub(had) / count as u64;
        figures.push((manner.name, had.zip(program.memory()).map(of_one)));
    }
    for round in 100..120 {
        assert_serves(&program, round);
    }
    if let Some((before, after)) = before.zip(program.memory()) {
        let growth = after.saturating_sub(before);
        assert!(
            growth <= most,
            "{growth} bytes more, at most {most} by docs/reference/memory.md; of one: {figures:?}"
        );
    }
    assert!(
        2 * at_once > clients,
        "{at_once} of {clients} were open at once"
    );
    // A client that reads late gets its response.
    let answered = runtime.block_on(read_at_last(held.swap_remove(0).swap_remove(0)));
    let body = answered.windows(4).position(|four| four == b"\r\n\r\n");
    let body = &answered[body.expect("a head") + 4..];
    assert!(
        !body.is_empty() && large().starts_with(body),
        "{} bytes",
        body.len()
    );
}

/// What comes within a second.
async fn read_at_last(mut io: BoxIo) -> Vec<u8> {
    let mut got = Vec::new();
    let reading = async { while matches!(io.read_buf(&mut got).await, Ok(1..)) {} };
    let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
    got
}
