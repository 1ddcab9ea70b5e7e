//! Clients that never finish what they send. `scripts/slow-clients` shows the same with slowhttptest, in numbers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::accelerator::Accelerator;
use crate::support::echo_origin::{Asked, EchoOrigin};

/// More than the connections that there may be to an origin.
const UPLOADS: usize = 40;

/// An origin is asked once a request is there, or the beginning of a long one: half of one holds no connection to it.
#[test]
fn uploads_that_never_end_hold_no_connection_to_the_origin() {
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
    let half = b"POST /half HTTP/1.1\r\nHost: site.test\r\nContent-Length: 9\r\n\r\nhalf";
    let uploads: Vec<_> = (0..UPLOADS)
        .map(|_| {
            let mut upload = connect();
            upload.write_all(half).expect("it reads");
            upload
        })
        .collect();

    let whole = b"GET /whole HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";
    let mut client = connect();
    client.write_all(whole).expect("it reads");
    let mut got = String::new();
    client.read_to_string(&mut got).expect("it answers");
    assert!(got.starts_with("HTTP/1.1 200"), "{got}");
    let asked: Vec<_> = origin.asked().iter().map(Asked::target).collect();
    assert_eq!(asked, ["/whole"], "with {} halves open", uploads.len());
}
