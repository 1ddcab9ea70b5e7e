//! An accelerator with a full disk, and one whose certificate and configuration change under load. It serves no wrong byte, fails
//! no request without need, and logs what happened. `kill.rs` has the tests that kill it.

#![cfg(unix)]

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::{Request, Version};
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_client::client::{Client, Config};
use spdy_frame::priority::Priority;
use spdy_frame::version;
use spdy_net::network::SystemNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_testkit::wait::{WAIT_LIMIT, until};

use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::PendingResponse;
use crate::support::origins::scripted::{Origins, complete_response};

const SITE: &str = "www.site.test";
/// Number of resources of the site.
const RESOURCES: usize = 60;

/// The body of `/N`. It depends on N, so that a wrong or truncated body is detected.
pub(crate) fn resource_body(number: usize) -> Vec<u8> {
    let len = 1 + number * 997;
    (0..len)
        .map(|at| (at * 31 + number * 7 + at / 256) as u8)
        .collect()
}

fn origin() -> Origins {
    Origins::start(&[(SITE, "http")], |request, _| {
        let number = request.target.trim_start_matches('/').parse();
        let head =
            "200 OK\r\nContent-Type: application/octet-stream\r\nCache-Control: max-age=600\r\n";
        complete_response(head, &resource_body(number.expect("a number")))
    })
}

/// A configuration with a small memory cache, so that the disk is also read.
fn config(origins: &Origins, folder: &Path, extra_config: &str) -> String {
    let (secret, token) = (folder.join("secret"), folder.join("token"));
    for path in [&secret, &token] {
        std::fs::write(path, [b's'; 32]).expect("write the test's file");
    }
    let (cache_folder, origin) = (folder.join("cache"), origins.addresses.origin(SITE));
    let address = origins.addresses.address(SITE).ip();
    format!(
        "secret_file = {secret:?}\n[listen]\ntls = []\nplain = ['127.0.0.1:0']\n\
         [cache]\nmemory_mib = 1\nobject_mib = 1\ndisk = {cache_folder:?}\nmisses_per_second = 0\n{extra_config}\n\
         [admin]\naddress = '127.0.0.1:0'\ntoken_file = {token:?}\n\
         [[site]]\nnames = ['{SITE}']\norigin = '{origin}'\naddress = '{address}'\n"
    )
}

fn request(number: usize) -> String {
    format!("GET /{number} HTTP/1.1\r\nHost: {SITE}\r\nConnection: close\r\n\r\n")
}

/// Number of disk cache objects with this `event`.
pub(crate) fn disk_object_count(accelerator: &Accelerator, event: &str) -> u64 {
    let name = format!("spdy_cache_disk_objects_total{{event=\"{event}\"}} ");
    let count = accelerator.metric(&name);
    count.unwrap_or_else(|| panic!("no {name}"))
}

/// Requests every resource and compares each body.
fn assert_all_served(accelerator: &Accelerator) {
    for number in 0..RESOURCES {
        let request = request(number);
        let response =
            PendingResponse::begin(accelerator.plain(), request.as_bytes()).end(usize::MAX);
        assert!(
            response.is_complete && response.body == resource_body(number),
            "/{number}: {}",
            response.head
        );
    }
}

/// Starts the accelerator by `wrapper`, with a disk that cannot store everything. Its log must contain `log_words`.
fn assert_served_with_failing_disk(
    origins: &Origins,
    folder: &Path,
    wrapper: &[&OsStr],
    log_words: &str,
) -> Accelerator {
    let accelerator = Accelerator::start_under(wrapper, &config(origins, folder, ""));
    for _ in 0..3 {
        assert_all_served(&accelerator);
    }
    accelerator.line_with(log_words);
    assert!(
        disk_object_count(&accelerator, "written") > 0,
        "some objects were written at first"
    );
    assert_all_served(&accelerator);
    assert_eq!(disk_object_count(&accelerator, "corrupt"), 0);
    accelerator
}

/// A disk that fails for large files: for a system without namespaces, and for an error in the middle of a file.
#[test]
fn a_failing_disk_write_corrupts_no_response() {
    let origins = origin();
    let folder = tempfile::tempdir().expect("create a folder");
    // Blocks of 512 or 1024 bytes, depending on the shell: the largest bodies are longer in both cases.
    let script = "trap '' XFSZ; ulimit -f 32; exec \"$@\"";
    let wrapper = ["sh", "-c", script, "sh"].map(OsStr::new);
    let log_words = "cannot write to the disk cache; continuing with memory";
    let accelerator = assert_served_with_failing_disk(&origins, folder.path(), &wrapper, log_words);
    until("a write fails", || {
        disk_object_count(&accelerator, "write-skipped") > 0
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_evicts_the_least_recently_used() {
    let unshared = Command::new("unshare").args(["-Urm", "true"]).status();
    if !unshared.is_ok_and(|status| status.success()) {
        // Without user and mount namespaces no full disk can be simulated; the test above needs none.
        return;
    }
    let origins = origin();
    let folder = tempfile::tempdir().expect("create a folder");
    let cache_folder = folder.path().join("cache");
    std::fs::create_dir(&cache_folder).expect("write the test's file");
    let script = "mount -t tmpfs -o size=512k tmpfs \"$0\" && exec \"$@\"";
    let words = ["unshare", "-Urm", "sh", "-c", script].map(OsStr::new);
    let wrapper = [&words[..], &[cache_folder.as_os_str()]].concat();
    let log_words = "the disk is full before the cache reaches max_bytes";
    let accelerator = assert_served_with_failing_disk(&origins, folder.path(), &wrapper, log_words);
    until("all that fits on the disk is written", || {
        disk_object_count(&accelerator, "written") >= RESOURCES as u64
    });
    assert!(disk_object_count(&accelerator, "evicted") > 0);
    assert_eq!(disk_object_count(&accelerator, "write-skipped"), 0);
}

/// Number of reloads. Each adds one name to the site.
const RELOADS: usize = 6;

#[test]
fn certificates_and_configuration_change_under_load_and_no_request_fails() {
    let origins = origin();
    let folder = tempfile::tempdir().expect("create a folder");
    let authority = LocalCa::generate(KeyKind::EcdsaP256).expect("create a CA");
    let (chain, key) = (
        folder.path().join("chain.pem"),
        folder.path().join("key.pem"),
    );
    let name = |number: usize| format!("n{number}.site.test");
    // Writes a certificate and returns the configuration for it.
    let renewed = |reloads: usize| {
        let names: Vec<_> = (0..reloads).map(name).chain([SITE.to_owned()]).collect();
        let identity = authority.issue(&names, &[]).expect("create a certificate");
        for (path, text) in [(&chain, identity.chain_pem()), (&key, identity.key_pem())] {
            std::fs::write(path, text).expect("write the test's file");
        }
        let (origin, address) = (
            origins.addresses.origin(SITE),
            origins.addresses.address(SITE).ip(),
        );
        format!(
            "[listen]\ntls = ['127.0.0.1:0']\n[tls]\ncertificate = {chain:?}\nkey = {key:?}\n\
             [cache]\nmisses_per_second = 0\n\
             [[site]]\nnames = {names:?}\norigin = '{origin}'\naddress = '{address}'\n"
        )
    };
    let accelerator = Accelerator::start(&renewed(0));
    let port = accelerator.tls().port();
    let trust = Trust::only(vec![authority.certificate().clone()]);
    let tls = ClientTls::new(&trust, &TlsOptions::default()).expect("a TLS configuration");
    let client = |protocol| {
        let names = (0..RELOADS).map(name).chain([SITE.to_owned()]);
        let resolve = names.map(|name| (name, None, [127, 0, 0, 1].into()));
        let mut config = Config::default();
        config.protocols = vec![protocol];
        config.tls = Some(tls.clone());
        config.resolve = resolve.collect();
        config.retries = 0;
        let runtime = SharedRuntime::new(TokioRuntime::start());
        Client::new(runtime, Arc::new(SystemNetwork), config)
    };
    let fetch = async |client: &Client, host: &str, number: usize| {
        let request = Request::get(format!("https://{host}:{port}/{number}"));
        let request = request
            .version(Version::HTTP_11)
            .body(Body::empty())
            .expect("a request");
        let response = client
            .send(request, Priority::HIGHEST)
            .await
            .map_err(|error| error.to_string())?;
        let status = response.status();
        let body = response.into_body().collect_up_to(1 << 20).await;
        let body = body.map_err(|error| error.to_string())?;
        match status.as_u16() {
            200 => Ok(body),
            _ => Err(status.to_string()),
        }
    };
    let is_over = AtomicBool::new(false);
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    runtime.block_on(async {
        let load = async |protocol: Protocol| {
            let persistent_client = client(protocol);
            let mut request_count = 0;
            while !is_over.load(Ordering::SeqCst) {
                // A persistent client, and a new one each time.
                let number = request_count % RESOURCES;
                for client in [&persistent_client, &client(protocol)] {
                    let result =
                        tokio::time::timeout(WAIT_LIMIT, fetch(client, SITE, number)).await;
                    let result = result.unwrap_or_else(|_| Err("no response".to_owned()));
                    let body = result.unwrap_or_else(|error| {
                        panic!("{protocol} /{number} after {request_count}: {error}")
                    });
                    assert!(body == resource_body(number), "{protocol} /{number}");
                }
                request_count += 1;
            }
            assert!(request_count > 0, "{protocol}");
        };
        let change = async {
            for reloads in 1..=RELOADS {
                let new = name(reloads - 1);
                let new_name_client = client(Protocol::Http2);
                let result =
                    tokio::time::timeout(WAIT_LIMIT, fetch(&new_name_client, &new, 1)).await;
                let result = result.unwrap_or_else(|_| panic!("no response from {new}"));
                assert!(result.is_err(), "{new} was already served");
                accelerator.reload(&renewed(reloads));
                // Then both the certificate and the configuration have the new name.
                let is_served = async {
                    while fetch(&client(Protocol::Http2), &new, 1).await.is_err() {
                        tokio::task::yield_now().await;
                    }
                };
                let is_served = tokio::time::timeout(WAIT_LIMIT, is_served).await;
                is_served.unwrap_or_else(|_| {
                    panic!("{new} is not served: {:?}", accelerator.log_lines())
                });
            }
            is_over.store(true, Ordering::SeqCst);
        };
        tokio::join!(
            load(Protocol::Spdy(version::Version::V31)),
            load(Protocol::Http2),
            load(Protocol::Http3),
            load(Protocol::Http1),
            change
        );
    });
}
