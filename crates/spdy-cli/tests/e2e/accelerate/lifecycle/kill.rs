//! An accelerator that is killed in the middle of its work, again and again. After each restart, a cached response is whole or absent:
//! the site's own resources, moved ones, and rewritten pages, over HTTP/1.1 and over HTTP/2.

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

use crate::accelerate::lifecycle::disk_and_reload::{of_disk, thing};
use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::PendingResponse;
use crate::support::origins::scripted::{OriginAddresses, Origins, complete_response};

const SITE: &str = "www.site.test";
const CDN: &str = "cdn.other.test";
/// Things of each kind.
const THINGS: usize = 60;
/// Times that it is killed.
const ROUNDS: usize = 3;
/// Clients that ask at the same time, half of them over HTTP/1.1 and half over HTTP/2.
const CLIENTS: usize = 4;

/// What is asked for: of each number a thing of the site's own, one of another host under the site's name, and a page.
fn target(number: usize, places: &OriginAddresses) -> String {
    let (kind, number) = (number % 3, number / 3);
    let port = places.address(CDN).port();
    match kind {
        0 => format!("/{number}"),
        1 => format!("/.spdy/1/-/p/{CDN}~{port}/{number}"),
        _ => format!("/page/{number}"),
    }
}

/// What must come, byte for byte.
fn expected_body(number: usize, places: &OriginAddresses) -> Vec<u8> {
    let (kind, number) = (number % 3, number / 3);
    let port = places.address(CDN).port();
    match kind {
        0 | 1 => thing(number),
        _ => page(number, &format!("/.spdy/1/-/p/{CDN}~{port}")).into_bytes(),
    }
}

/// A page that names things of the other host, which are at `place`: the longer the higher its number.
fn page(number: usize, place: &str) -> String {
    let rows = (0..=number * 10).map(|row| {
        let image = (number + row) % THINGS;
        format!("<p>{number}.{row} <img alt=\"\" src=\"{place}/{image}\"></p>\n")
    });
    let head = format!("<!doctype html><title>{number}</title>\n");
    [head].into_iter().chain(rows).collect()
}

fn origins() -> Origins {
    Origins::start(&[(SITE, "http"), (CDN, "http")], |request, places| {
        let number = request.target.rsplit('/').next().expect("the last part");
        let number = number.parse().expect("a number");
        let (kind, body) = match request.target.starts_with("/page/") {
            true => {
                let page = page(number, &places.origin(CDN));
                ("text/html; charset=utf-8", page.into_bytes())
            }
            false => ("image/png", thing(number)),
        };
        let head = format!("200 OK\r\nContent-Type: {kind}\r\nCache-Control: max-age=600\r\n");
        complete_response(&head, &body)
    })
}

/// What is kept in memory is little, so that the disk is read as well.
fn config(origins: &Origins, folder: &Path) -> String {
    std::fs::create_dir_all(folder).expect("write the test's file");
    let (secret, token) = (folder.join("secret"), folder.join("token"));
    for path in [&secret, &token] {
        std::fs::write(path, [b's'; 32]).expect("write the test's file");
    }
    let (cache_folder, origin) = (folder.join("kept"), origins.places.origin(SITE));
    let [site, cdn] = [SITE, CDN].map(|name| origins.places.address(name));
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

/// Asks for it over HTTP/1.1; `false` if the other end is gone. What comes and is whole must be right, and what is not its beginning.
fn is_good(from: SocketAddr, number: usize, places: &OriginAddresses) -> bool {
    let target = target(number, places);
    let Ok(going) = PendingResponse::try_begin(from, request(&target).as_bytes()) else {
        return false;
    };
    let (response, expected) = (going.end(usize::MAX), expected_body(number, places));
    let is_right = match response.is_whole && response.status == 200 {
        true => response.body == expected,
        false => expected.starts_with(&response.body),
    };
    assert!(is_right, "{target}: {}", response.head);
    response.is_whole
}

/// One session of HTTP/2 with the program.
struct Session {
    client: Client,
    port: u16,
}

impl Session {
    fn new(accelerator: &Accelerator) -> Self {
        let authority = std::fs::read(accelerator.authority()).expect("read the certificate");
        let trust = certificates_from_pem(&authority, "the authority").expect("valid PEM");
        let tls = ClientTls::new(&Trust::only(trust), &TlsOptions::default());
        let config = Config {
            protocols: vec![Protocol::Http2],
            tls: Some(tls.expect("a TLS configuration")),
            resolve: vec![(SITE.to_owned(), None, [127, 0, 0, 1].into())],
            retries: 0,
            ..Config::default()
        };
        let runtime = SharedRuntime::new(TokioRuntime::start());
        Self {
            client: Client::new(runtime, Arc::new(SystemNetwork), config),
            port: accelerator.tls().port(),
        }
    }

    /// The same as [`is_good`].
    async fn is_good(&self, number: usize, places: &OriginAddresses) -> bool {
        let target = target(number, places);
        let request = Request::get(format!("https://{SITE}:{}{target}", self.port));
        let request = request.body(Body::empty()).expect("a request");
        let result = self.client.send(request, Priority::HIGHEST).await;
        let Ok(response) = result else {
            return false;
        };
        let (head, mut body) = response.into_parts();
        let (mut bytes, mut is_whole) = (Vec::new(), true);
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                is_whole = false;
                break;
            };
            // Else they are trailers.
            if let Ok(data) = frame.into_data() {
                bytes.extend_from_slice(&data);
            }
        }
        let expected = expected_body(number, places);
        let is_right = match is_whole && head.status == 200 {
            true => bytes == expected,
            false => expected.starts_with(&bytes),
        };
        assert!(is_right, "{target}: {head:?}, {} bytes", bytes.len());
        is_whole
    }
}

/// Asks for everything by both protocols, and must get all of it.
fn assert_all_right(accelerator: &Accelerator, places: &OriginAddresses) {
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    runtime.block_on(async {
        let session = Session::new(accelerator);
        for number in 0..3 * THINGS {
            let by_both = is_good(accelerator.plain(), number, places)
                && session.is_good(number, places).await;
            assert!(by_both, "{}", target(number, places));
        }
    });
}

/// Clients that request different resources until the server is gone. The program is killed after enough responses.
fn kill_under_load(accelerator: &Accelerator, places: &OriginAddresses, round: usize) {
    let (plain, id) = (accelerator.plain(), accelerator.id().to_string());
    let response_counts: [AtomicUsize; 2] = Default::default();
    let is_killed = AtomicBool::new(false);
    // Each client has its own order, different in each round.
    let number = |client: usize, step: usize| (step * 17 + client * 13 + round * 29) % (3 * THINGS);
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
                    let is_good = match &session {
                        Some(session) => runtime.block_on(session.is_good(number, places)),
                        None => is_good(plain, number, places),
                    };
                    if is_killed.load(Ordering::SeqCst) || !is_good {
                        return;
                    }
                    response_counts[client % 2].fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let works = std::panic::catch_unwind(|| {
            until("both protocols work", || {
                response_counts
                    .iter()
                    .all(|count| count.load(Ordering::SeqCst) >= THINGS)
            });
        });
        let killed = Command::new("kill").args(["-9", &id]).status();
        // Whatever became of it: clients that go on would be waited for.
        is_killed.store(true, Ordering::SeqCst);
        assert!(killed.expect("run `kill`").success());
        works.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Files of the disk's cache that were being written, and have no name yet.
fn unnamed_files(cache_folder: &Path) -> u64 {
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
fn killed_under_load_and_started_again_it_serves_no_wrong_byte() {
    let origins = origins();
    let places = &origins.places;
    let folder = tempfile::tempdir().expect("create a folder");
    // An accelerator that was not killed serves the expected responses.
    let fresh = Accelerator::start(&config(&origins, &folder.path().join("fresh")));
    assert_all_right(&fresh, places);
    drop(fresh);

    let config = config(&origins, folder.path());
    for round in 0..ROUNDS {
        let accelerator = Accelerator::start(&config);
        kill_under_load(&accelerator, places, round);
    }
    let unnamed = unnamed_files(&folder.path().join("kept"));
    let accelerator = Accelerator::start(&config);
    assert_all_right(&accelerator, places);
    assert!(of_disk(&accelerator, "hit") > 0, "no object survived");
    let broken = of_disk(&accelerator, "corrupt");
    assert_eq!(broken, unnamed, "a file was renamed before it was complete");
}
