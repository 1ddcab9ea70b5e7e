//! An accelerator that is killed repeatedly under load. After each restart, a cached response is complete or absent: the site's own
//! resources, proxied ones, and rewritten pages, over HTTP/1.1 and over HTTP/2.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use http::Request;
use http_body_util::BodyExt as _;
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_client::client::{Client, Config};
use spdy_frame::priority::Priority;
use spdy_net::network::SystemNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::certificates_from_pem;
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_testkit::wait::until;

use crate::accelerate::lifecycle::disk_and_reload::{disk_object_count, resource_body};
use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::PendingResponse;
use crate::support::origins::scripted::{OriginAddresses, Origins, complete_response};

const SITE: &str = "www.site.test";
const CDN: &str = "cdn.other.test";
/// Number of resources of each kind.
const RESOURCES: usize = 60;
/// Number of kills.
const ROUNDS: usize = 3;
/// Concurrent clients, half of them over HTTP/1.1 and half over HTTP/2.
const CLIENTS: usize = 4;

/// The target of a request: a resource of the site, a proxied one of another host, or a page, in turn.
fn target(number: usize, addresses: &OriginAddresses) -> String {
    let (kind, number) = (number % 3, number / 3);
    let port = addresses.address(CDN).port();
    match kind {
        0 => format!("/{number}"),
        1 => format!("/.spdy/1/-/p/{CDN}~{port}/{number}"),
        _ => format!("/page/{number}"),
    }
}

/// The expected body.
fn expected_body(number: usize, addresses: &OriginAddresses) -> Vec<u8> {
    let (kind, number) = (number % 3, number / 3);
    let port = addresses.address(CDN).port();
    match kind {
        0 | 1 => resource_body(number),
        _ => page(number, &format!("/.spdy/1/-/p/{CDN}~{port}")).into_bytes(),
    }
}

/// A page that references resources of the other host with the URL prefix `prefix`. Its length grows with its number.
fn page(number: usize, prefix: &str) -> String {
    let rows = (0..=number * 10).map(|row| {
        let image = (number + row) % RESOURCES;
        format!("<p>{number}.{row} <img alt=\"\" src=\"{prefix}/{image}\"></p>\n")
    });
    let head = format!("<!doctype html><title>{number}</title>\n");
    [head].into_iter().chain(rows).collect()
}

fn origins() -> Origins {
    Origins::start(&[(SITE, "http"), (CDN, "http")], |request, addresses| {
        let number = request.target.rsplit('/').next().expect("the last part");
        let number = number.parse().expect("a number");
        let (kind, body) = match request.target.starts_with("/page/") {
            true => {
                let page = page(number, &addresses.origin(CDN));
                ("text/html; charset=utf-8", page.into_bytes())
            }
            false => ("image/png", resource_body(number)),
        };
        let head = format!("200 OK\r\nContent-Type: {kind}\r\nCache-Control: max-age=600\r\n");
        complete_response(&head, &body)
    })
}

/// A configuration with a small memory cache, so that the disk is also read.
fn config(origins: &Origins, folder: &Path) -> String {
    std::fs::create_dir_all(folder).expect("write the test's file");
    let (secret, token) = (folder.join("secret"), folder.join("token"));
    for path in [&secret, &token] {
        std::fs::write(path, [b's'; 32]).expect("write the test's file");
    }
    let (cache_folder, origin) = (folder.join("cache"), origins.addresses.origin(SITE));
    let [site, cdn] = [SITE, CDN].map(|name| origins.addresses.address(name));
    format!(
        "secret_file = {secret:?}\n[listen]\ntls = ['127.0.0.1:0']\nplain = ['127.0.0.1:0']\n\
         [cache]\nmemory_mib = 1\nobject_mib = 1\ndisk = {cache_folder:?}\nmisses_per_second = 0\n\
         [admin]\naddress = '127.0.0.1:0'\ntoken_file = {token:?}\n\
         [upstream]\nallow_addresses = ['{cdn_ip}/32']\nallow_ports = [{port}]\nresolve = {{ '{CDN}' = '{cdn_ip}' }}\n\
         [[site]]\nnames = ['{SITE}']\norigin = '{origin}'\naddress = '{site_ip}'\n\
         [[site.rewrite.hosts]]\nhost = '{CDN}:{port}'\nscheme = 'http'\n",
        site_ip = site.ip(),
        cdn_ip = cdn.ip(),
        port = cdn.port(),
    )
}

fn request(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {SITE}\r\nConnection: close\r\n\r\n")
}

/// Sends a request over HTTP/1.1 and checks the body: a truncated one must be a prefix. `false` if the response is incomplete.
fn fetch_and_check(from: SocketAddr, number: usize, addresses: &OriginAddresses) -> bool {
    let target = target(number, addresses);
    let Ok(pending) = PendingResponse::try_begin(from, request(&target).as_bytes()) else {
        return false;
    };
    let (response, expected) = (pending.end(usize::MAX), expected_body(number, addresses));
    let is_correct = match response.is_complete && response.status == 200 {
        true => response.body == expected,
        false => expected.starts_with(&response.body),
    };
    assert!(is_correct, "{target}: {}", response.head);
    response.is_complete
}

/// An HTTP/2 session with the program.
struct Session {
    client: Client,
    port: u16,
}

impl Session {
    fn new(accelerator: &Accelerator) -> Self {
        let authority = std::fs::read(accelerator.authority()).expect("read the certificate");
        let trust = certificates_from_pem(&authority, "the authority").expect("valid PEM");
        let tls = ClientTls::new(&Trust::only(trust), &TlsOptions::default());
        let mut config = Config::default();
        config.protocols = vec![Protocol::Http2];
        config.tls = Some(tls.expect("a TLS configuration"));
        config.resolve = vec![(SITE.to_owned(), None, [127, 0, 0, 1].into())];
        config.retries = 0;
        let runtime = SharedRuntime::new(TokioRuntime::start());
        Self {
            client: Client::new(runtime, Arc::new(SystemNetwork), config),
            port: accelerator.tls().port(),
        }
    }

    /// Like [`fetch_and_check`].
    async fn fetch_and_check(&self, number: usize, addresses: &OriginAddresses) -> bool {
        let target = target(number, addresses);
        let request = Request::get(format!("https://{SITE}:{}{target}", self.port));
        let request = request.body(Body::empty()).expect("a request");
        let result = self.client.send(request, Priority::HIGHEST).await;
        let Ok(response) = result else {
            return false;
        };
        let (head, mut body) = response.into_parts();
        let (mut bytes, mut is_complete) = (Vec::new(), true);
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                is_complete = false;
                break;
            };
            // Other frames are trailers.
            if let Ok(data) = frame.into_data() {
                bytes.extend_from_slice(&data);
            }
        }
        let expected = expected_body(number, addresses);
        let is_correct = match is_complete && head.status == 200 {
            true => bytes == expected,
            false => expected.starts_with(&bytes),
        };
        assert!(is_correct, "{target}: {head:?}, {} bytes", bytes.len());
        is_complete
    }
}

/// Requests everything over both protocols and checks each body.
fn assert_all_served(accelerator: &Accelerator, addresses: &OriginAddresses) {
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    runtime.block_on(async {
        let session = Session::new(accelerator);
        for number in 0..3 * RESOURCES {
            let is_complete = fetch_and_check(accelerator.plain(), number, addresses)
                && session.fetch_and_check(number, addresses).await;
            assert!(is_complete, "{}", target(number, addresses));
        }
    });
}

/// Clients that request different resources until the server is gone. The program is killed after enough responses.
fn kill_under_load(accelerator: &Accelerator, addresses: &OriginAddresses, round: usize) {
    let (plain, id) = (accelerator.plain(), accelerator.id().to_string());
    let response_counts: [AtomicUsize; 2] = Default::default();
    let is_killed = AtomicBool::new(false);
    // Each client has its own order, different in each round.
    let number =
        |client: usize, step: usize| (step * 17 + client * 13 + round * 29) % (3 * RESOURCES);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (response_counts, is_killed) = (&response_counts, &is_killed);
            scope.spawn(move || {
                let by_http2 = client % 2 == 1;
                let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
                let _within = runtime.enter();
                let session = by_http2.then(|| Session::new(accelerator));
                for step in 0.. {
                    let number = number(client, step);
                    let is_complete = match &session {
                        Some(session) => {
                            runtime.block_on(session.fetch_and_check(number, addresses))
                        }
                        None => fetch_and_check(plain, number, addresses),
                    };
                    if is_killed.load(Ordering::SeqCst) || !is_complete {
                        return;
                    }
                    response_counts[client % 2].fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let started = std::panic::catch_unwind(|| {
            until("both protocols work", || {
                response_counts
                    .iter()
                    .all(|count| count.load(Ordering::SeqCst) >= RESOURCES)
            });
        });
        let killed = Command::new("kill").args(["-9", &id]).status();
        // Also after a panic: otherwise the scope waits for the clients forever.
        is_killed.store(true, Ordering::SeqCst);
        assert!(killed.expect("run `kill`").success());
        started.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Number of files in the disk cache that were still being written.
fn unfinished_files(cache_folder: &Path) -> u64 {
    let folders = std::fs::read_dir(cache_folder).expect("read the folder");
    let files = folders.filter_map(|folder| std::fs::read_dir(folder.ok()?.path()).ok());
    let files = files.flatten().filter_map(Result::ok);
    files
        .filter(|file| {
            file.path()
                .extension()
                .is_some_and(|extension| extension == "new")
        })
        .count() as u64
}

#[test]
fn after_kills_under_load_no_wrong_byte_is_served() {
    let origins = origins();
    let addresses = &origins.addresses;
    let folder = tempfile::tempdir().expect("create a folder");
    // An accelerator that was not killed serves the expected responses.
    let fresh = Accelerator::start(&config(&origins, &folder.path().join("fresh")));
    assert_all_served(&fresh, addresses);
    drop(fresh);

    let config = config(&origins, folder.path());
    for round in 0..ROUNDS {
        let accelerator = Accelerator::start(&config);
        kill_under_load(&accelerator, addresses, round);
    }
    let unfinished = unfinished_files(&folder.path().join("cache"));
    let accelerator = Accelerator::start(&config);
    assert_all_served(&accelerator, addresses);
    assert!(
        disk_object_count(&accelerator, "hit") > 0,
        "no object survived"
    );
    let broken = disk_object_count(&accelerator, "corrupt");
    assert_eq!(
        broken, unfinished,
        "a file was renamed before it was complete"
    );
}
