//! The accelerator starts its own successor beside itself (SIGUSR2): no connection is refused, and the cache is preserved. A successor
//! that cannot start affects no request.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use http::Request;
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_client::client::{Client, Config};
use spdy_frame::priority::Priority;
use spdy_net::network::SystemNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::tls::verify::{Roots, Trust};
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_testkit::patience::{WAIT_LIMIT, until};

use crate::support::accelerator::program::Accelerator;
use crate::support::accelerator::replacement::{self, SITE, door, get, with_clients};
use crate::support::origins::scripted::{Origins, Step, whole};

/// How often one follows another.
const SUCCESSIONS: usize = 3;
/// More than all sockets between the origin and a client hold that does not read.
const LONG_BYTES: usize = 48 << 20;

fn origin() -> Origins {
    Origins::start(&[(SITE, "http")], |asked, _| {
        let kept = "200 OK\r\nCache-Control: max-age=600\r\n";
        match asked.target.as_str() {
            "/long" => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG_BYTES}\r\n\r\n");
                vec![Step::Send(head.into()), Step::Send(vec![b'x'; LONG_BYTES])]
            }
            target => whole(kept, target.as_bytes()),
        }
    })
}

/// Of one that keeps all that a successor has to find in `folder`.
fn config(origins: &Origins, folder: &Path, door: SocketAddr) -> String {
    let (disk, secret) = (folder.join("cache"), folder.join("secret"));
    std::fs::write(&secret, [b's'; 32]).expect("write the test's file");
    let top = format!("secret_file = {secret:?}\n[cache]\ndisk = {disk:?}\ndisk_mib = 64");
    replacement::config(&top, origins, door)
}

/// A program that another one started; it ends with this value.
struct SuccessorProcess(u32);

impl Drop for SuccessorProcess {
    fn drop(&mut self) {
        signal("KILL", self.0);
    }
}

/// Sends it; `false` if there is no such process.
fn signal(what: &str, id: u32) -> bool {
    let signal = format!("-{what}");
    let mut kill = Command::new("kill");
    let sent = kill.args([&signal, &id.to_string()]).output();
    sent.expect("run `kill`").status.success()
}

/// The numbers of processes between `before` and `after` in what the program said.
fn logged_ids(accelerator: &Accelerator, before: &str, after: &str) -> Vec<u32> {
    let said = accelerator.log_lines();
    let numbers = said.iter().filter_map(|line| {
        let (_, rest) = line.split_once(before)?;
        rest.split_once(after)?.0.parse().ok()
    });
    numbers.collect()
}

/// Asks process `id` for a successor, and waits until there is one.
fn succeed(accelerator: &Accelerator, id: u32) -> SuccessorProcess {
    let started = || logged_ids(accelerator, "started process ", " as the successor");
    let taken_over = || logged_ids(accelerator, "process ", " has taken over").len();
    let before = (started().len(), taken_over());
    assert!(signal("USR2", id));
    let mut follower = None;
    until("the successor is started", || {
        follower = started().get(before.0).copied().map(SuccessorProcess);
        follower.is_some()
    });
    until("the successor has taken over", || taken_over() > before.1);
    follower.expect("a successor")
}

#[test]
fn a_successor_serves_every_request_and_old_responses_finish() {
    let (origins, folder) = (origin(), tempfile::tempdir().expect("create a folder"));
    let (socket, door) = door();
    let mut accelerator = Accelerator::start_on(&socket, &config(&origins, folder.path(), door));
    drop(socket); // the accelerator alone has it now
    let followers = with_clients(door, |enough| {
        enough();
        let long = get(door, "/long");
        until("the long response has started", || {
            origins
                .requests()
                .iter()
                .any(|asked| asked.target == "/long")
        });
        let mut followers = vec![succeed(&accelerator, accelerator.id())];
        assert!(
            !accelerator.has_ended(),
            "expected it to finish the response"
        );
        let got = long.end(usize::MAX);
        assert_eq!((got.is_whole, got.body.len()), (true, LONG_BYTES));
        for nth in 1..SUCCESSIONS {
            enough();
            followers.push(succeed(&accelerator, followers[nth - 1].0));
        }
        enough();
        followers
    });
    accelerator.ended();
    drop(followers);
}

#[test]
fn a_failed_successor_changes_nothing_and_the_next_has_the_cache() {
    let (origins, folder) = (origin(), tempfile::tempdir().expect("create a folder"));
    let (socket, door) = door();
    let good = config(&origins, folder.path(), door);
    let accelerator = Accelerator::start_on(&socket, &good);
    drop(socket);
    let answer = |target: &str| {
        let got = get(door, target).end(usize::MAX);
        assert_eq!((got.status, got.text()), (200, target.to_owned()));
    };
    let asked = |target: &str| {
        let asked = origins.requests();
        asked.iter().filter(|asked| asked.target == target).count()
    };
    answer("/before");
    // What is wrong is seen at once, or when the folder of the cache was lent already.
    let named = |name| format!("{:?}", folder.path().join(name));
    let late = good.replace(&named("cache"), &named("secret")); // no folder, but a file
    for (nth, (bad, code)) in [("what?", 2), (late.as_str(), 1)].into_iter().enumerate() {
        accelerator.write(bad);
        assert!(signal("USR2", accelerator.id()));
        let mut why = Vec::new();
        until("the failure is logged", || {
            why = accelerator.log_lines();
            why.retain(|line| line.contains("the successor failed, so this process continues: "));
            why.len() > nth
        });
        let ended = format!("ended with exit status: {code}");
        assert!(why[nth].contains(&ended), "{why:#?}");
        answer("/before");
        answer(&format!("/after/{nth}"));
    }
    accelerator.write(&good);
    let follower = succeed(&accelerator, accelerator.id());
    for target in ["/before", "/after/0", "/after/1"] {
        answer(target);
        assert_eq!(asked(target), 1, "{target} was stored");
    }
    accelerator.ended();
    drop(follower);
}

/// What the accelerator at `door` answers over HTTP/3, or why it does not.
async fn over_http3(roots: Roots, door: SocketAddr, target: &str) -> Result<String, String> {
    let trust = Trust {
        roots,
        ..Trust::default()
    };
    let tls = ClientTls::new(&trust, &TlsOptions::default()).expect("a TLS configuration");
    let config = Config {
        protocols: vec![Protocol::Http3],
        tls: Some(tls),
        resolve: vec![(SITE.to_owned(), None, door.ip())],
        ..Config::default()
    };
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let client = Client::new(runtime, Arc::new(SystemNetwork), config);
    let request = Request::get(format!("https://{SITE}:{}{target}", door.port()));
    let request = request.body(Body::empty()).expect("a request");
    let sent = tokio::time::timeout(WAIT_LIMIT, client.send(request, Priority::HIGHEST)).await;
    let response = sent.map_err(|_| "no response".to_owned())?;
    let body = response.map_err(|error| error.to_string())?.into_body();
    let body = body
        .collect_up_to(1 << 20)
        .await
        .expect("the complete body");
    Ok(String::from_utf8_lossy(&body).into_owned())
}

#[test]
fn datagrams_go_to_the_successor_after_old_quic_sessions_end() {
    let (origins, folder) = (origin(), tempfile::tempdir().expect("create a folder"));
    let (socket, door) = door();
    let config = config(&origins, folder.path(), door);
    let config = config.replace("tls = []\nplain", "plain = []\ntls");
    let accelerator = Accelerator::start_on(&socket, &config);
    drop(socket);
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    let ask = |target: &str| {
        let roots = Roots::File(accelerator.authority());
        runtime.block_on(over_http3(roots, door, target))
    };
    assert_eq!(ask("/a").as_deref(), Ok("/a"));
    let follower = succeed(&accelerator, accelerator.id());
    let mut got = Err(String::new());
    until("a response over HTTP/3", || {
        got = ask("/b");
        got.is_ok()
    });
    assert_eq!(got.as_deref(), Ok("/b"));
    accelerator.ended();
    drop(follower);
}
