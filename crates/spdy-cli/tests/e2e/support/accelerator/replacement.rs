//! Clients that send requests without a pause while an accelerator is replaced. Each request must get a response.

use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spdy_testkit::wait::until;

use crate::support::clients::raw_client::PendingResponse;
use crate::support::origins::scripted::Origins;

/// The site of all requests.
pub(crate) const SITE: &str = "www.site.test";
/// Number of clients. They open a new connection for each request.
const CLIENTS: usize = 4;
/// Minimum number of responses before the next replacement.
const RESPONSES: usize = 40;
/// How long a stopping accelerator waits for the first byte of a connection. A client that takes longer than this between
/// connecting and sending may be disconnected.
const STOP_LATENCY: Duration = Duration::from_secs(1);

/// A listening loopback socket, and its address for the configuration.
pub(crate) fn bind_loopback() -> (TcpListener, SocketAddr) {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
    let address = socket.local_addr().expect("a bound socket");
    (socket, address)
}

/// A configuration that starts with `top`, for the site of `origins` with `listen_address` as its only listener.
pub(crate) fn config(top: &str, origins: &Origins, listen_address: SocketAddr) -> String {
    let (origin, address) = (
        origins.addresses.origin(SITE),
        origins.addresses.address(SITE).ip(),
    );
    format!(
        "{top}\n[listen]\ntls = []\nplain = ['{listen_address}']\n\
         [[site]]\nnames = ['{SITE}']\norigin = '{origin}'\naddress = '{address}'\n"
    )
}

/// Runs `replace` while clients send requests to `address`. `replace` gets a function that waits for enough new responses. When
/// this returns, all clients have their responses.
pub(crate) fn with_clients<T>(address: SocketAddr, replace: impl FnOnce(&dyn Fn()) -> T) -> T {
    let (response_count, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let wait_for_responses = || {
        let count_before = response_count.load(Ordering::SeqCst);
        until("the replacement responds", || {
            response_count.load(Ordering::SeqCst) >= count_before + RESPONSES
        });
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (response_count, is_over) = (&response_count, &is_over);
                scope.spawn(move || send_requests(address, client, response_count, is_over))
            })
            .collect();
        let result = catch_unwind(AssertUnwindSafe(|| replace(&wait_for_responses)));
        // Also after a panic: otherwise the scope waits for the clients forever.
        is_over.store(true, Ordering::SeqCst);
        let result = result.unwrap_or_else(|panic| resume_unwind(panic));
        for client in clients {
            client.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        result
    })
}

/// Sends requests until `is_over`, each for another path over a new connection. Each must get its response.
fn send_requests(
    address: SocketAddr,
    client: usize,
    response_count: &AtomicUsize,
    is_over: &AtomicBool,
) {
    for step in 0.. {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let path = format!("/{client}/{step}");
        let response = loop {
            let start = Instant::now();
            let pending = get(address, &path);
            let is_late = start.elapsed() >= STOP_LATENCY;
            let response = pending.end(usize::MAX);
            // A late request may get no response. A response that has begun must be complete.
            if !is_late || response.status != 0 {
                break response;
            }
        };
        assert_eq!(
            (response.status, response.text()),
            (200, path),
            "{}",
            response.head
        );
        response_count.fetch_add(1, Ordering::SeqCst);
    }
}

/// Requests `target` over a new connection.
pub(crate) fn get(address: SocketAddr, target: &str) -> PendingResponse {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {SITE}\r\nConnection: close\r\n\r\n");
    PendingResponse::begin(address, request.as_bytes())
}
