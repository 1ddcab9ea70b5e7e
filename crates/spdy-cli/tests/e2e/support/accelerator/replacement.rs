//! An accelerator that is replaced while clients ask it without a rest: whatever becomes of it, each of them has to be answered.

use std::net::{SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spdy_testkit::patience::until;

use crate::support::clients::raw_client::PendingResponse;
use crate::support::origins::scripted::Origins;

/// The site of all requests.
pub(crate) const SITE: &str = "www.site.test";
/// Clients, each time over a new connection.
const CLIENTS: usize = 4;
/// Answers that there are to be at least before it is replaced once more.
const ANSWERS: usize = 40;
/// How long a stopping accelerator waits for the first byte of a connection. A client that is delayed for so long between its
/// connection and its request may be cut off.
const STOP_LATENCY: Duration = Duration::from_secs(1);

/// A listening loopback socket, and its address for the configuration.
pub(crate) fn door() -> (TcpListener, SocketAddr) {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
    let door = socket.local_addr().expect("a bound socket");
    (socket, door)
}

/// A configuration with `top` above, for the site of `origins` at `door` alone.
pub(crate) fn config(top: &str, origins: &Origins, door: SocketAddr) -> String {
    let (origin, address) = (
        origins.places.origin(SITE),
        origins.places.address(SITE).ip(),
    );
    format!(
        "{top}\n[listen]\ntls = []\nplain = ['{door}']\n\
         [[site]]\nnames = ['{SITE}']\norigin = '{origin}'\naddress = '{address}'\n"
    )
}

/// Runs `replace` while clients send requests to `door`. `replace` gets a function that waits for enough new responses. All
/// clients were answered when this returns.
pub(crate) fn with_clients<T>(door: SocketAddr, replace: impl FnOnce(&dyn Fn()) -> T) -> T {
    let (answers, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let enough = || {
        let before = answers.load(Ordering::SeqCst);
        until("the replacement responds", || {
            answers.load(Ordering::SeqCst) >= before + ANSWERS
        });
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (answers, is_over) = (&answers, &is_over);
                scope.spawn(move || ask_on(door, client, answers, is_over))
            })
            .collect();
        let replaced = catch_unwind(AssertUnwindSafe(|| replace(&enough)));
        // Whatever became of it: clients that go on would be waited for.
        is_over.store(true, Ordering::SeqCst);
        let replaced = replaced.unwrap_or_else(|why| resume_unwind(why));
        for client in clients {
            client.join().unwrap_or_else(|why| resume_unwind(why));
        }
        replaced
    })
}

/// Sends requests until `is_over`, each for another path over a new connection. Each must be answered.
fn ask_on(door: SocketAddr, client: usize, answers: &AtomicUsize, is_over: &AtomicBool) {
    for step in 0.. {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let path = format!("/{client}/{step}");
        let got = loop {
            let began = Instant::now();
            let going = get(door, &path);
            let is_late = began.elapsed() >= STOP_LATENCY;
            let got = going.end(usize::MAX);
            // Whatever came of it was begun, and has to be whole.
            if !is_late || got.status != 0 {
                break got;
            }
        };
        assert_eq!((got.status, got.text()), (200, path), "{}", got.head);
        answers.fetch_add(1, Ordering::SeqCst);
    }
}

/// Requests `target` over a new connection.
pub(crate) fn get(door: SocketAddr, target: &str) -> PendingResponse {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {SITE}\r\nConnection: close\r\n\r\n");
    PendingResponse::begin(door, request.as_bytes())
}
