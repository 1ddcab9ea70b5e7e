//! The authoritative server on real sockets, queried by real clients.

use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::RecordType;
use spdy::runtime::SharedRuntime;
use spdy_dns::rate_limit::RateLimits;
use spdy_dns::serve::{DnsServer, ServeLimits, StatsReader};
use spdy_dns::zones::{SharedZones, Zones};
use spdy_net::latch::Latch;
use spdy_net::limit::{ConnectionLimit, LimitHits};
use spdy_testkit::wait::{WAIT_LIMIT, output_within};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinHandle;

use crate::support::{question, zones};

/// A server on loopback, IPv4 and IPv6.
struct TestServer {
    addresses: Vec<SocketAddr>,
    zones: SharedZones,
    stats: StatsReader,
    stop: Latch,
    task: JoinHandle<()>,
}

fn serve(limits: ServeLimits) -> TestServer {
    serve_counting(limits, &LimitHits::default())
}

fn serve_counting(limits: ServeLimits, hits: &LimitHits) -> TestServer {
    let addresses = ["127.0.0.1:0", "[::1]:0"].map(|address| address.parse().unwrap());
    let shared = SharedZones::new(zones());
    let server =
        DnsServer::bind(&addresses, shared.clone(), limits, SharedRuntime::tokio()).unwrap();
    let server = server.with_limit_hits(hits);
    let (addresses, stats, stop) = (server.addresses(), server.stats(), Latch::new());
    TestServer {
        addresses,
        zones: shared,
        stats,
        stop: stop.clone(),
        task: tokio::spawn(server.run(stop)),
    }
}

impl TestServer {
    async fn end(self) {
        self.stop.set();
        self.task.await.unwrap();
    }
}

async fn over_udp(to: SocketAddr, request: &[u8]) -> Vec<u8> {
    let any: IpAddr = if to.is_ipv4() {
        [0; 4].into()
    } else {
        [0; 16].into()
    };
    let socket = UdpSocket::bind((any, 0)).await.unwrap();
    socket.connect(to).await.unwrap();
    socket.send(request).await.unwrap();
    let mut answer = [0; 4096];
    let len = socket.recv(&mut answer).await.unwrap();
    answer[..len].to_vec()
}

async fn query_tcp(tcp: &mut TcpStream, request: &[u8]) -> std::io::Result<Vec<u8>> {
    let len = u16::try_from(request.len()).unwrap();
    tcp.write_all(&len.to_be_bytes()).await?;
    tcp.write_all(request).await?;
    let len = tcp.read_u16().await?;
    let mut answer = vec![0; len.into()];
    tcp.read_exact(&mut answer).await?;
    Ok(answer)
}

/// Checks that no socket listens at `address`. A process that another test starts just now has a copy of the closed socket until it
/// runs its own program, so the kernel may accept connections for a moment longer.
async fn assert_refused(address: SocketAddr) {
    let wait = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let result = tokio::time::timeout(WAIT_LIMIT, wait).await;
    assert!(result.is_ok(), "{address} still accepts connections");
}

#[tokio::test]
async fn it_answers_over_udp_and_tcp_and_both_kinds_of_address_until_it_is_stopped() {
    let server = serve(ServeLimits::default());
    let request = question("crowd.site.test", RecordType::A, None);
    let mut connections = Vec::new();
    for &address in &server.addresses {
        let cut = Message::from_vec(&over_udp(address, &request).await).unwrap();
        assert!(cut.metadata.truncation, "{address}");
        let mut tcp = TcpStream::connect(address).await.unwrap();
        for _ in 0..3 {
            let response = query_tcp(&mut tcp, &request).await.unwrap();
            assert_eq!(
                Message::from_vec(&response).unwrap().answers.len(),
                100,
                "{address}"
            );
        }
        connections.push(tcp);
    }
    let stats = server.stats.stats();
    assert_eq!((stats.answered, stats.truncated), (8, 2));
    // Idle connections do not delay the end.
    let addresses = server.addresses.clone();
    server.end().await;
    for tcp in &mut connections {
        assert_eq!(tcp.read(&mut [0; 1]).await.unwrap(), 0);
    }
    for address in addresses {
        assert_refused(address).await;
    }
}

/// Regression: unread bytes at the close of the connection reset it, and the answers were lost.
#[tokio::test]
async fn answers_before_the_question_limit_arrive() {
    let server = serve(ServeLimits::default());
    let request = question("www.site.test", RecordType::A, None);
    let len = u16::try_from(request.len()).unwrap();
    let framed = [&len.to_be_bytes()[..], &request].concat();
    let mut tcp = TcpStream::connect(server.addresses[0]).await.unwrap();
    tcp.write_all(&framed.repeat(1500)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await; // for all to be there before any is read
    let mut answer_count = 0;
    while let Ok(len) = tcp.read_u16().await {
        let mut answer = vec![0; len.into()];
        tcp.read_exact(&mut answer).await.unwrap();
        answer_count += 1;
    }
    assert_eq!(answer_count, 1000);
    drop(tcp);
    server.end().await;
}

#[tokio::test]
async fn zones_change_while_it_runs() {
    let server = serve(ServeLimits::default());
    let request = question("_acme-challenge.site.test", RecordType::TXT, None);
    let code = async || {
        let answer = over_udp(server.addresses[0], &request).await;
        Message::from_vec(&answer).unwrap().metadata.response_code
    };
    assert_eq!(code().await, ResponseCode::NXDomain);
    let added = server
        .zones
        .change(|zones| zones.add_text("_acme-challenge.site.test", "token"));
    added.unwrap();
    assert_eq!(code().await, ResponseCode::NoError);
    server.zones.replace(Zones::default());
    assert_eq!(code().await, ResponseCode::Refused);
    server.end().await;
}

#[tokio::test]
async fn past_the_rate_udp_is_truncated_and_tcp_answers() {
    let server = serve(ServeLimits {
        rate: RateLimits {
            per_second: 1,
            slip: 1,
            ..RateLimits::default()
        },
        ..ServeLimits::default()
    });
    let request = question("www.site.test", RecordType::A, None);
    let mut slipped = 0;
    for _ in 0..20 {
        let answer = Message::from_vec(&over_udp(server.addresses[0], &request).await).unwrap();
        slipped += u64::from(answer.metadata.truncation);
        assert_eq!(answer.answers.is_empty(), answer.metadata.truncation);
    }
    assert!(slipped > 0);
    assert_eq!(server.stats.stats().slipped, slipped);
    let mut tcp = TcpStream::connect(server.addresses[0]).await.unwrap();
    let answer = query_tcp(&mut tcp, &request).await.unwrap();
    assert_eq!(Message::from_vec(&answer).unwrap().answers.len(), 1);
    server.end().await;
}

#[tokio::test]
async fn a_connection_has_so_many_questions_and_none_that_is_no_question() {
    let server = serve(ServeLimits {
        questions: 2,
        ..ServeLimits::default()
    });
    let request = question("www.site.test", RecordType::A, None);
    let mut tcp = TcpStream::connect(server.addresses[0]).await.unwrap();
    for _ in 0..2 {
        assert!(query_tcp(&mut tcp, &request).await.is_ok());
    }
    assert!(query_tcp(&mut tcp, &request).await.is_err());
    let mut answer = request.clone();
    answer[2] |= 0x80;
    for invalid in [vec![0; 5000], vec![0; 11], vec![], answer] {
        let mut tcp = TcpStream::connect(server.addresses[0]).await.unwrap();
        assert!(
            query_tcp(&mut tcp, &invalid).await.is_err(),
            "{} bytes",
            invalid.len()
        );
    }
    assert_eq!(server.stats.stats().unanswered, 3);
    server.end().await;
}

#[tokio::test]
async fn limit_hits_and_questions_are_counted_once() {
    let (mut limits, hits) = (ServeLimits::default(), LimitHits::default());
    limits.admission.per_address = 1;
    let server = serve_counting(limits, &hits);
    let [existing, missing] =
        ["www.site.test", "no.site.test"].map(|name| question(name, RecordType::A, None));
    let mut first = TcpStream::connect(server.addresses[0]).await.unwrap();
    assert!(query_tcp(&mut first, &existing).await.is_ok());
    let mut second = TcpStream::connect(server.addresses[0]).await.unwrap();
    assert!(
        query_tcp(&mut second, &existing).await.is_err(),
        "it has one"
    );
    assert_eq!(hits.of(ConnectionLimit::ConnectionsPerAddress), 1);
    assert!(query_tcp(&mut first, &missing).await.is_ok());
    let outcomes = server.stats.stats().by_outcome();
    let nonzero: Vec<_> = outcomes.iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(nonzero, [&("noerror", 1), &("nxdomain", 1)]);
    drop(first);
    server.end().await;
}

#[tokio::test]
async fn an_idle_tcp_connection_times_out() {
    let server = serve(ServeLimits {
        idle_timeout: Duration::from_millis(20),
        ..ServeLimits::default()
    });
    let mut idle = TcpStream::connect(server.addresses[0]).await.unwrap();
    let mut halfway = TcpStream::connect(server.addresses[0]).await.unwrap();
    halfway.write_all(&[0, 40, 1, 2]).await.unwrap();
    // Ends only if the server ends them.
    assert_eq!(idle.read(&mut [0; 1]).await.unwrap(), 0);
    assert!(matches!(halfway.read(&mut [0; 1]).await, Ok(0) | Err(_)));
    server.end().await;
}

#[tokio::test]
async fn garbage_over_udp_is_answered_shortly_or_not_at_all_and_it_serves_on() {
    let server = serve(ServeLimits::default());
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.addresses[0]).await.unwrap();
    for garbage in [&b""[..], b"x", &[0xff; 1400], &[0; 11]] {
        socket.send(garbage).await.unwrap();
    }
    socket.send(&[0; 12]).await.unwrap(); // a head of no question: FORMERR
    let mut answer = [0; 512];
    assert_eq!(socket.recv(&mut answer).await.unwrap(), 12);
    assert_eq!(answer[3] & 0xf, 1);
    let request = question("www.site.test", RecordType::A, None);
    let answer = over_udp(server.addresses[0], &request).await;
    assert_eq!(Message::from_vec(&answer).unwrap().answers.len(), 1);
    server.end().await;
}

/// What a program prints.
async fn run(program: &'static str, args: Vec<String>) -> String {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null());
    let started = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = started.unwrap_or_else(|error| {
        panic!(
            "{program}: {error}; install the peers with `scripts/setup-peers`, or skip them with SPDY_SKIP_PEERS=1"
        )
    });
    let output_task = tokio::task::spawn_blocking(|| output_within(WAIT_LIMIT, child));
    let output = output_task.await.unwrap();
    assert!(output.status.success(), "{program}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dig_kdig_and_drill_parse_the_answers() {
    if std::env::var_os("SPDY_SKIP_PEERS").is_some_and(|value| !value.is_empty()) {
        return;
    }
    let server = serve(ServeLimits::default());
    for &address in &server.addresses {
        let (ip, port) = (address.ip(), address.port().to_string());
        // The options of a question, and what stands in what is printed.
        for (options, expected_texts) in [
            ("+noall +answer www.site.test A", &["192.0.2.1"][..]),
            (
                "+noall +answer +tcp crowd.site.test A",
                &["192.0.2.0", "192.0.2.99"],
            ),
            (
                "+noall +answer +noedns crowd.site.test A",
                &["192.0.2.0", "192.0.2.99"],
            ), // by TC and TCP
            ("+noall +answer a.x.site.test AAAA", &["2001:db8::1"]),
            (
                "+noall +answer img.site.test A",
                &["CNAME", "www.site.test.", "192.0.2.1"],
            ),
            (
                "+noall +answer site.test SOA",
                &["dns\\.admin.site.test. 1 7200 900 1209600 30"],
            ),
            (
                "+noall +answer site.test NS",
                &["ns1.site.test.", "ns2.other.test."],
            ),
            ("+noall +answer site.test TXT", &["\"v=spf1 -all\""]),
            (
                "+noall +answer site.test ANY",
                &["HINFO", "\"RFC8482\" \"\""],
            ),
            (
                "+noall +answer www.site.test TYPE65",
                &[
                    "alpn",
                    "h3,h2",
                    "port=8443",
                    "ipv4hint=192.0.2.1",
                    "ipv6hint=2001:db8::1",
                ],
            ),
            ("nobody.site.test A", &["NXDOMAIN", "ns1.site.test. dns"]),
            ("ns1.site.test AAAA", &["NOERROR", "ns1.site.test. dns"]),
            ("other.test A", &["REFUSED"]),
            ("-c CH version.bind TXT", &["REFUSED"]),
        ] {
            let mut args = vec![format!("@{ip}"), "-p".to_owned(), port.clone()];
            args.extend(options.split_whitespace().map(str::to_owned));
            for program in ["dig", "kdig"] {
                let printed = run(program, args.clone()).await;
                // One writes its parameters quoted, the other not.
                let plain = printed.replace('"', "");
                for expected in expected_texts {
                    let is_printed =
                        printed.contains(expected) || plain.contains(&expected.replace('"', ""));
                    assert!(
                        is_printed,
                        "{program} {options}: expected {expected:?}, printed\n{printed}"
                    );
                }
            }
        }
        let arguments = ["-p", &port, &format!("@{ip}"), "wWw.site.test", "A"].map(str::to_owned);
        let printed = run("drill", arguments.into()).await;
        assert!(
            printed.contains("192.0.2.1") && printed.contains("wWw.site.test."),
            "{printed}"
        );
    }
    server.end().await;
}
