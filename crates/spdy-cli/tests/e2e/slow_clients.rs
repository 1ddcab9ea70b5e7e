//! Clients that never finish what they send. `scripts/slow-clients` shows the same with slowhttptest, in numbers.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;

use crate::support::accelerated::{Accelerated, Setting};
use crate::support::accelerator::Accelerator;
use crate::support::echo_origin::{Asked, EchoOrigin};
use crate::support::origins::{Origins, whole};

/// More than the connections that there may be to an origin.
const UPLOADS: usize = 40;

/// An origin is asked once a request is there, or the beginning of a long one: half of a short one holds no connection to it, and
/// halves of long ones hold some and leave the rest to others.
#[test]
fn uploads_that_never_end_do_not_keep_others_from_the_origin() {
    for (length, sent) in [(9, 4), (1_000_000, 20_000)] {
        let origin = EchoOrigin::start("no-store", Duration::ZERO);
        let accelerator = Accelerator::start(&format!(
            r#"
            [listen]
            tls = []
            plain = ["127.0.0.1:0"]
            [[site]]
            names = ["site.test"]
            origin = "http://{}"
            [upstream]
            connections = 4
            "#,
            origin.address
        ));
        let connect = || TcpStream::connect(accelerator.plain()).expect("it listens");
        let head =
            format!("POST /half HTTP/1.1\r\nHost: site.test\r\nContent-Length: {length}\r\n\r\n");
        let half = [head.as_bytes(), &vec![b'x'; sent]].concat();
        let uploads: Vec<_> = (0..UPLOADS)
            .map(|_| {
                let mut upload = connect();
                upload.write_all(&half).expect("it reads");
                upload
            })
            .collect();

        // More than once: some of the halves may not have come so far at first.
        let targets: Vec<_> = (0..10).map(|at| format!("/whole-{at}")).collect();
        for target in &targets {
            let whole =
                format!("GET {target} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n");
            let mut client = connect();
            client.write_all(whole.as_bytes()).expect("it reads");
            let mut got = String::new();
            client.read_to_string(&mut got).expect("it answers");
            assert!(got.starts_with("HTTP/1.1 200"), "{got}");
        }
        let asked: Vec<_> = origin.asked().iter().map(Asked::target).collect();
        assert_eq!(asked, targets, "with {} halves open", uploads.len());
    }
}

/// Clients of the next test, unless SPDY_SLOW_CLIENTS says how many.
const CLIENTS: usize = 1_000;
/// Of one address, less than what one may have.
const OF_ONE_ADDRESS: usize = 2_000;
/// What each may cost the program, bytes, with its buffers and the unoptimized frames of a test's build.
const MAX_BYTES_OF_ONE: u64 = 48 << 10;
/// What the program may have grown besides: what is kept, and what the allocator has not given back.
const MAX_GROWTH: u64 = 64 << 20;
/// What slow readers ask for, bytes.
const LARGE: usize = 100_000;

/// Half of them never finish their heads, a quarter their bodies, and a quarter read nothing of what they asked for.
#[test]
fn so_many_slow_clients_cost_little_each_and_others_are_served() {
    const SITE: &str = "www.site.test";
    let clients = std::env::var("SPDY_SLOW_CLIENTS").ok();
    let clients = clients.map_or(CLIENTS, |text| text.parse().expect("a number"));
    let origins = Origins::start(&[(SITE, "http")], |asked, _| {
        let len = if asked.target == "/large" { LARGE } else { 5 };
        let head = "200 OK\r\nContent-Type: image/png\r\nCache-Control: max-age=600\r\n";
        whole(head, &vec![b'x'; len])
    });
    let program = Accelerated::start(&origins, &Setting::default());
    assert_eq!(program.get(SITE, "/large", "").body.len(), LARGE);
    let before = program.memory();
    let beginnings = [
        "GET /small HTTP/1.1\r\nHost: www.si".to_owned(),
        format!("POST /form HTTP/1.1\r\nHost: {SITE}\r\nContent-Length: 9\r\n\r\nhalf"),
        "GET /small HTTP/1.1\r\nHost: www.site.test\r\nX-Field: and so".to_owned(),
        format!("GET /large HTTP/1.1\r\nHost: {SITE}\r\n\r\n"),
    ];
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let slow: Vec<_> = runtime.block_on(async {
        let mut slow = Vec::with_capacity(clients);
        for number in 0..clients {
            let socket = TcpSocket::new_v4().expect("there are sockets enough: ulimit -n");
            // What is not read is to wait at the server.
            socket.set_recv_buffer_size(4096).expect("a setting");
            let last = u8::try_from(2 + number / OF_ONE_ADDRESS).expect("so many addresses");
            let from = SocketAddr::from((Ipv4Addr::new(127, 0, 1, last), 0));
            socket.bind(from).expect("loopback has a free port");
            let mut socket = socket.connect(program.plain()).await.expect("it listens");
            let beginning = &beginnings[number % beginnings.len()];
            let sent = socket.write_all(beginning.as_bytes()).await;
            sent.expect("it is let in");
            slow.push(socket);
        }
        slow
    });
    for round in 0..20 {
        let kept = program.get(SITE, "/large", "");
        assert!(kept.is_whole && kept.body.len() == LARGE, "{}", kept.head);
        let asked = program.get(SITE, &format!("/{round}"), "");
        assert_eq!((asked.status, asked.text()), (200, "xxxxx".to_owned()));
    }
    if let (Some(before), Some(after)) = (before, program.memory()) {
        let growth = after.saturating_sub(before);
        let most = MAX_GROWTH + slow.len() as u64 * MAX_BYTES_OF_ONE;
        let of_one = growth / slow.len() as u64;
        assert!(
            growth <= most,
            "{growth} bytes more, {of_one} for each of {}",
            slow.len()
        );
    }
}
