//! Clients that never finish their requests. `scripts/slow-clients` measures the same with slowhttptest.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use spdy_testkit::wait::with_read_timeout;

use crate::support::accelerator::program::Accelerator;
use crate::support::origins::echo::{EchoOrigin, ReceivedRequest};

/// More than the maximum number of connections to an origin.
const UPLOADS: usize = 40;
/// Maximum number of client connections.
const MAX_CONNECTIONS: usize = 4;

/// The program connects to an origin once a request is complete, or its first part is large. An incomplete small request holds no
/// connection to the origin. Incomplete large ones hold only some of the connections, and other requests use the rest.
#[test]
fn unfinished_uploads_do_not_block_other_requests() {
    for (length, sent_bytes) in [(9, 4), (1_000_000, 20_000)] {
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
        let connect = || TcpStream::connect(accelerator.plain()).expect("connect");
        let head = format!(
            "POST /partial HTTP/1.1\r\nHost: site.test\r\nContent-Length: {length}\r\n\r\n"
        );
        let partial_request = [head.as_bytes(), &vec![b'x'; sent_bytes]].concat();
        let uploads: Vec<_> = (0..UPLOADS)
            .map(|_| {
                let mut upload = connect();
                upload.write_all(&partial_request).expect("write");
                upload
            })
            .collect();

        // Ten requests, because some uploads may not have arrived before the first one.
        let targets: Vec<_> = (0..10).map(|at| format!("/complete-{at}")).collect();
        for target in &targets {
            let request =
                format!("GET {target} HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n");
            let mut client = connect();
            client.write_all(request.as_bytes()).expect("write");
            let mut response = String::new();
            client.read_to_string(&mut response).expect("a response");
            assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        }
        let requested_targets: Vec<_> = origin
            .requests()
            .iter()
            .map(ReceivedRequest::target)
            .collect();
        assert_eq!(
            requested_targets,
            targets,
            "with {} uploads open",
            uploads.len()
        );
    }
}

/// Slow clients take all connection slots with incomplete heads. The program logs it; a new client waits, and is then served.
#[test]
fn full_connection_slots_are_logged_and_waiting_clients_served() {
    let origin = EchoOrigin::start("no-store", Duration::ZERO);
    let config = format!(
        "[listen]\ntls = []\nplain = ['127.0.0.1:0']\n[limits]\nmax_connections = {MAX_CONNECTIONS}\n\
         [[site]]\nnames = ['site.test']\norigin = 'http://{}'\n",
        origin.address
    );
    let accelerator = Accelerator::start(&config);
    let connect = || TcpStream::connect(accelerator.plain()).expect("connect");
    let mut slow_clients: Vec<_> = (0..MAX_CONNECTIONS)
        .map(|_| {
            let mut client = connect();
            client
                .write_all(b"GET / HTTP/1.1\r\nHost: si")
                .expect("write");
            client
        })
        .collect();
    let mut waiting_client = with_read_timeout(connect());
    let request = b"GET /complete HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";
    waiting_client.write_all(request).expect("write");
    let log_line = accelerator.line_with("all connection slots are in use");
    assert!(
        log_line.contains(&format!("connections={MAX_CONNECTIONS}")),
        "{log_line}"
    );
    slow_clients.pop();
    let mut response = String::new();
    waiting_client
        .read_to_string(&mut response)
        .expect("a response");
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}
