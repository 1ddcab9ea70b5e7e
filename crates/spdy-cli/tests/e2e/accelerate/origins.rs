//! How `spdy accelerate` connects to an origin, and that it never connects to itself.

use std::net::{IpAddr, SocketAddr};

use spdy_testkit::wait::until;

use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::PendingResponse;
use crate::support::program::ServeProcess;

/// The head and body of the response of `from`.
fn get(from: SocketAddr) -> String {
    let request = b"GET /a.txt HTTP/1.1\r\nhost: www.site.test\r\nconnection: close\r\n\r\n";
    let response = PendingResponse::begin(from, request).end(1 << 16);
    format!("{}\n{}", response.head, response.text())
}

#[test]
fn an_origin_that_resolves_to_the_accelerator_is_refused() {
    let folder = tempfile::tempdir().expect("create a folder");
    std::fs::write(folder.path().join("a.txt"), "first").expect("write the file");
    let origin = ServeProcess::start(folder.path(), &[]);
    let config = |origin: SocketAddr| {
        format!(
            "[listen]\nplain = ['0.0.0.0:0']\ntls = []\n[upstream]\nfailures = 0\n[[site]]\nnames = ['www.site.test']\n\
             origin = 'http://origin.site.test:{}'\naddress = '{}'\n",
            origin.port(),
            origin.ip()
        )
    };
    let accelerator = Accelerator::start(&config(origin.plain));
    let port = accelerator.plain().port();
    let listener = SocketAddr::from(([127, 0, 0, 1], port));
    assert!(get(listener).ends_with("first"));
    // If the program connected to itself, the response would be 508.
    for address in ["127.0.0.9", "127.0.0.1", "::ffff:127.0.0.1"] {
        let address: IpAddr = address.parse().expect("an address");
        accelerator.reload(&config(origin.plain));
        until("the origin responds again", || {
            get(listener).ends_with("first")
        });
        accelerator.reload(&config((address, port).into()));
        until("the loop is refused", || {
            get(listener).starts_with("HTTP/1.1 502 ")
        });
    }
    // The log has the reason; clients only get a general error.
    let log_line = accelerator.line_with("connection to an origin denied");
    assert!(log_line.contains("own_listener"), "{log_line}");
}
