//! The accelerator starts its own successor (SIGUSR2): no connection is refused, and the cache is preserved. A successor that
//! cannot start affects no request.

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
use spdy_testkit::wait::{WAIT_LIMIT, until};

use crate::support::accelerator::program::Accelerator;
use crate::support::accelerator::replacement::{self, SITE, bind_loopback, get, with_clients};
use crate::support::origins::scripted::{Origins, Step, complete_response};

/// Number of successors, one after the other.
const SUCCESSIONS: usize = 3;
/// More than the buffers of all sockets between the origin and a client that does not read.
const LONG_BYTES: usize = 48 << 20;

fn origin() -> Origins {
    Origins::start(&[(SITE, "http")], |request, _| {
        let cacheable = "200 OK\r\nCache-Control: max-age=600\r\n";
        match request.target.as_str() {
            "/long" => {
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LONG_BYTES}\r\n\r\n");
                vec![Step::Send(head.into()), Step::Send(vec![b'x'; LONG_BYTES])]
            }
            target => complete_response(cacheable, target.as_bytes()),
        }
    })
}

/// A configuration with everything in `folder` that a successor needs.
fn config(origins: &Origins, folder: &Path, address: SocketAddr) -> String {
    let (disk, secret) = (folder.join("cache"), folder.join("secret"));
    std::fs::write(&secret, [b's'; 32]).expect("write the test's file");
    let top = format!("secret_file = {secret:?}\n[cache]\ndisk = {disk:?}\ndisk_mib = 64");
    replacement::config(&top, origins, address)
}

/// A process that another accelerator started. It is killed when dropped.
struct SuccessorProcess(u32);

impl Drop for SuccessorProcess {
    fn drop(&mut self) {
        send_signal("KILL", self.0);
    }
}

/// Sends a signal; `false` if there is no such process.
fn send_signal(name: &str, id: u32) -> bool {
    let option = format!("-{name}");
    let mut kill = Command::new("kill");
    let output = kill.args([&option, &id.to_string()]).output();
    output.expect("run `kill`").status.success()
}

/// The process IDs between `prefix` and `suffix` in the log.
fn logged_ids(accelerator: &Accelerator, prefix: &str, suffix: &str) -> Vec<u32> {
    let lines = accelerator.log_lines();
    let numbers = lines.iter().filter_map(|line| {
        let (_, rest) = line.split_once(prefix)?;
        rest.split_once(suffix)?.0.parse().ok()
    });
    numbers.collect()
}

/// Makes process `id` start a successor, and waits until that has taken over.
fn start_successor(accelerator: &Accelerator, id: u32) -> SuccessorProcess {
    let started = || logged_ids(accelerator, "started process ", " as the successor");
    let taken_over = || logged_ids(accelerator, "process ", " has taken over").len();
    let counts_before = (started().len(), taken_over());
    assert!(send_signal("USR2", id));
    let mut successor = None;
    until("the successor is started", || {
        successor = started()
            .get(counts_before.0)
            .copied()
            .map(SuccessorProcess);
        successor.is_some()
    });
    until("the successor has taken over", || {
        taken_over() > counts_before.1
    });
    successor.expect("a successor")
}

#[test]
fn a_successor_serves_every_request_and_old_responses_finish() {
    let (origins, folder) = (origin(), tempfile::tempdir().expect("create a folder"));
    let (socket, address) = bind_loopback();
    let mut accelerator = Accelerator::start_on(&socket, &config(&origins, folder.path(), address));
    drop(socket); // now only the accelerator has it
    let successors = with_clients(address, |wait_for_responses| {
        wait_for_responses();
        let long = get(address, "/long");
        until("the long response has started", || {
            origins
                .requests()
                .iter()
                .any(|request| request.target == "/long")
        });
        let mut successors = vec![start_successor(&accelerator, accelerator.id())];
        assert!(
            !accelerator.has_ended(),
            "expected it to finish the response"
        );
        let response = long.end(usize::MAX);
        assert_eq!(
            (response.is_complete, response.body.len()),
            (true, LONG_BYTES)
        );
        for nth in 1..SUCCESSIONS {
            wait_for_responses();
            successors.push(start_successor(&accelerator, successors[nth - 1].0));
        }
        wait_for_responses();
        successors
    });
    accelerator.wait_for_exit();
    drop(successors);
}

#[test]
fn a_failed_successor_changes_nothing_and_the_next_has_the_cache() {
    let (origins, folder) = (origin(), tempfile::tempdir().expect("create a folder"));
    let (socket, address) = bind_loopback();
    let valid_config = config(&origins, folder.path(), address);
    let accelerator = Accelerator::start_on(&socket, &valid_config);
    drop(socket);
    let assert_served = |target: &str| {
        let response = get(address, target).end(usize::MAX);
        assert_eq!((response.status, response.text()), (200, target.to_owned()));
    };
    let count_requests = |target: &str| {
        let requests = origins.requests();
        requests
            .iter()
            .filter(|request| request.target == target)
            .count()
    };
    assert_served("/before");
    // One error is found at once, the other after the cache folder was handed over.
    let quoted_path = |name| format!("{:?}", folder.path().join(name));
    let failing_config = valid_config.replace(&quoted_path("cache"), &quoted_path("secret")); // a file instead of a folder
    for (nth, (config, code)) in [("what?", 2), (failing_config.as_str(), 1)]
        .into_iter()
        .enumerate()
    {
        accelerator.write(config);
        assert!(send_signal("USR2", accelerator.id()));
        let mut failures = Vec::new();
        until("the failure is logged", || {
            failures = accelerator.log_lines();
            failures
                .retain(|line| line.contains("the successor failed, so this process continues: "));
            failures.len() > nth
        });
        let exit_status = format!("ended with exit status: {code}");
        assert!(failures[nth].contains(&exit_status), "{failures:#?}");
        assert_served("/before");
        assert_served(&format!("/after/{nth}"));
    }
    accelerator.write(&valid_config);
    let successor = start_successor(&accelerator, accelerator.id());
    for target in ["/before", "/after/0", "/after/1"] {
        assert_served(target);
        assert_eq!(count_requests(target), 1, "{target} was stored");
    }
    accelerator.wait_for_exit();
    drop(successor);
}

/// The response of the accelerator at `address` over HTTP/3, or the error.
async fn over_http3(roots: Roots, address: SocketAddr, target: &str) -> Result<String, String> {
    let trust = Trust {
        roots,
        ..Trust::default()
    };
    let tls = ClientTls::new(&trust, &TlsOptions::default()).expect("a TLS configuration");
    let mut config = Config::default();
    config.protocols = vec![Protocol::Http3];
    config.tls = Some(tls);
    config.resolve = vec![(SITE.to_owned(), None, address.ip())];
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let client = Client::new(runtime, Arc::new(SystemNetwork), config);
    let request = Request::get(format!("https://{SITE}:{}{target}", address.port()));
    let request = request.body(Body::empty()).expect("a request");
    let result = tokio::time::timeout(WAIT_LIMIT, client.send(request, Priority::HIGHEST)).await;
    let response = result.map_err(|_| "no response".to_owned())?;
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
    let (socket, address) = bind_loopback();
    let config = config(&origins, folder.path(), address);
    let config = config.replace("tls = []\nplain", "plain = []\ntls");
    let accelerator = Accelerator::start_on(&socket, &config);
    drop(socket);
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    let fetch = |target: &str| {
        let roots = Roots::File(accelerator.authority());
        runtime.block_on(over_http3(roots, address, target))
    };
    assert_eq!(fetch("/a").as_deref(), Ok("/a"));
    let successor = start_successor(&accelerator, accelerator.id());
    let mut result = Err(String::new());
    until("a response over HTTP/3", || {
        result = fetch("/b");
        result.is_ok()
    });
    assert_eq!(result.as_deref(), Ok("/b"));
    accelerator.wait_for_exit();
    drop(successor);
}
