//! The accelerator is started again on sockets that stay open beside it: nobody is refused, and nobody's request is lost.

#![cfg(unix)]

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spdy_testkit::patience::until;

use crate::support::accelerator::Accelerator;
use crate::support::origins::{Origins, whole};
use crate::support::raw_client::Going;

const SITE: &str = "www.site.test";
/// Clients that ask without a rest, each time over a new connection.
const CLIENTS: usize = 4;
/// How often it is started.
const LIVES: usize = 3;
/// Answers that each life of the accelerator is to give at least.
const ANSWERS: usize = 40;
/// How long after it is asked to end the accelerator hears who has said nothing yet. A client that the system leaves alone for so
/// long between its connection and its request may be cut off.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

fn origin() -> Origins {
    Origins::start(&[(SITE, "http")], |asked, _| {
        whole(
            "200 OK\r\nCache-Control: max-age=600\r\n",
            asked.target.as_bytes(),
        )
    })
}

fn config(origins: &Origins, door: SocketAddr) -> String {
    let (origin, address) = (
        origins.places.origin(SITE),
        origins.places.address(SITE).ip(),
    );
    format!(
        "[listen]\ntls = []\nplain = ['{door}']\n\
         [[site]]\nnames = ['{SITE}']\norigin = '{origin}'\naddress = '{address}'\n"
    )
}

#[test]
fn started_again_on_a_socket_that_was_handed_to_it_it_answers_every_request() {
    let origins = origin();
    let socket = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let door = socket.local_addr().expect("it is bound");
    let config = config(&origins, door);
    let (answers, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (answers, is_over) = (&answers, &is_over);
                scope.spawn(move || ask_on(door, client, answers, is_over))
            })
            .collect();
        let lives = std::panic::catch_unwind(|| {
            for _ in 0..LIVES {
                let accelerator = Accelerator::start_on(&socket, &config);
                let before = answers.load(Ordering::SeqCst);
                until("it answers", || {
                    answers.load(Ordering::SeqCst) >= before + ANSWERS
                });
                accelerator.end();
            }
            // Who came meanwhile waits for the next.
            Accelerator::start_on(&socket, &config)
        });
        // Whatever became of it: clients that go on would be waited for.
        is_over.store(true, Ordering::SeqCst);
        let last = lives.unwrap_or_else(|why| std::panic::resume_unwind(why));
        for client in clients {
            client
                .join()
                .unwrap_or_else(|why| std::panic::resume_unwind(why));
        }
        drop(last);
    });
}

/// Asks until it is over, each time for another thing and over another connection, and must be answered.
pub(crate) fn ask_on(door: SocketAddr, client: usize, answers: &AtomicUsize, is_over: &AtomicBool) {
    for step in 0.. {
        if is_over.load(Ordering::SeqCst) {
            return;
        }
        let path = format!("/{client}/{step}");
        let request = format!("GET {path} HTTP/1.1\r\nHost: {SITE}\r\nConnection: close\r\n\r\n");
        let got = loop {
            let began = Instant::now();
            let going = Going::begin(door, request.as_bytes());
            let is_late = began.elapsed() >= HEARD_WITHIN;
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

/// A socket that no address of the configuration fits is of no use to anybody.
#[test]
fn the_sockets_that_are_shipped_are_those_of_the_configuration_that_is_shipped() {
    let units = include_str!("../../../../deploy/spdy-accelerate.socket");
    let of_unit = |kind: &str| -> BTreeSet<String> {
        let lines = units.lines().filter_map(|line| line.strip_prefix(kind));
        lines.map(str::to_owned).collect()
    };
    let example = include_str!("../../../../deploy/accelerate.toml");
    let configured = |key: &str| -> BTreeSet<String> {
        let lists = example.lines().filter_map(|line| line.strip_prefix(key));
        let addresses = lists.flat_map(|list| list.split('"').skip(1).step_by(2));
        addresses.map(str::to_owned).collect()
    };
    let (tls, plain) = (configured("tls = ["), configured("plain = ["));
    assert!(!tls.is_empty() && !plain.is_empty(), "{example}");
    assert_eq!(of_unit("ListenStream="), &tls | &plain);
    assert_eq!(of_unit("ListenDatagram="), tls, "h3 is spoken");
}
