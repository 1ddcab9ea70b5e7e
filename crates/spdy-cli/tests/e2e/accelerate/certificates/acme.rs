//! `spdy accelerate` with certificates of an ACME server that validates the names: Pebble, which queries the accelerator's own DNS
//! server and connects to its listeners for the challenges.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_client::client::{Client, Config};
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::network::SystemNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::{Roots, Trust};
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_testkit::wait::{WAIT_LIMIT, until};

use crate::support::accelerator::pebble::{ChallengeAddresses, Pebble};
use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::PendingResponse;
use crate::support::origins::echo::EchoOrigin;
use crate::support::origins::scripted::{Origins, complete_response};
use crate::support::peers::peers_enabled;
use crate::support::program::address_after;

const NAMES: [&str; 2] = ["www.site.test", "site.test"];

/// An origin, and a folder for the configuration of an accelerator.
struct TestSite {
    origin: EchoOrigin,
    folder: tempfile::TempDir,
}

impl TestSite {
    fn open() -> Self {
        let folder = tempfile::tempdir().expect("create a folder");
        let token = folder.path().join("token");
        std::fs::write(token, [b't'; 16]).expect("write the test's file");
        Self {
            origin: EchoOrigin::start("no-store", Duration::ZERO),
            folder,
        }
    }

    fn certificate_folder(&self) -> std::path::PathBuf {
        self.folder.path().join("acme")
    }

    /// The configuration for `names`, with the section `acme`.
    fn config(&self, names: &[&str], acme: &str) -> String {
        let token = self.folder.path().join("token");
        let address = "addresses = ['127.0.0.1']";
        format!(
            "[listen]\ntls = ['127.0.0.1:0']\nplain = ['127.0.0.1:0']\n{acme}\n\
             [admin]\naddress = '127.0.0.1:0'\ntoken_file = {token:?}\n\
             [dns]\nlisten = ['127.0.0.1:0']\n\
             [[dns.zone]]\napex = 'site.test'\nname_servers = ['ns.site.test']\n\
             [[dns.zone.names]]\nname = '@'\n{address}\n\
             [[dns.zone.names]]\nname = 'www'\n{address}\n\
             [[dns.zone.names]]\nname = 'ns'\n{address}\n\
             [[site]]\nnames = {names:?}\norigin = 'http://{}'\n",
            self.origin.address
        )
    }

    /// A `[tls.acme]` section with an unreachable ACME server.
    fn unreachable_acme(&self) -> String {
        let (directory, folder) = ("https://127.0.0.1:1/dir", self.certificate_folder());
        format!(
            "[tls.acme]\ndirectory = '{directory}'\nfolder = {folder:?}\nterms_of_service_agreed = true\n"
        )
    }

    fn acme(&self, pebble: &Pebble, extra_config: &str) -> String {
        format!(
            "[tls.acme]\ndirectory = '{}'\nauthority = {:?}\nfolder = {:?}\nterms_of_service_agreed = true\n\
             contact = ['admin@site.test']\n{extra_config}\n",
            pebble.directory(),
            pebble.authority(),
            self.certificate_folder(),
        )
    }
}

/// The addresses of `accelerator` at which an ACME server validates challenges.
fn challenge_addresses(accelerator: &Accelerator) -> ChallengeAddresses {
    let named = "DNS server on ";
    let dns = address_after(&accelerator.line_with(named), named);
    ChallengeAddresses {
        tls: accelerator.tls(),
        plain: accelerator.plain(),
        dns: dns.expect("valid address"),
    }
}

/// A client that trusts `roots` and resolves the names of the site to loopback.
fn client(roots: Roots, protocol: Protocol) -> Client {
    let trust = Trust {
        roots,
        ..Trust::default()
    };
    let tls = ClientTls::new(&trust, &TlsOptions::default()).expect("a TLS configuration");
    let resolve = NAMES.map(|name| (name.to_owned(), None, [127, 0, 0, 1].into()));
    let mut config = Config::default();
    config.protocols = vec![protocol];
    config.tls = Some(tls);
    config.resolve = resolve.to_vec();
    let runtime = SharedRuntime::new(TokioRuntime::start());
    Client::new(runtime, Arc::new(SystemNetwork), config)
}

async fn text(response: Response<Body>) -> String {
    let status = response.status();
    let body = response.into_body().collect_up_to(1 << 20).await;
    let body = body.expect("the complete body");
    format!("{status} {}", String::from_utf8_lossy(&body))
}

/// The response to `client` for `/page` of `host`.
async fn page(client: &Client, accelerator: &Accelerator, host: &str) -> Result<String, String> {
    let port = accelerator.tls().port();
    let request = Request::get(format!("https://{host}:{port}/page")).body(Body::empty());
    let response = client.send(request.expect("a request"), Priority::HIGHEST);
    let response = tokio::time::timeout(WAIT_LIMIT, response).await;
    match response.expect("a response before the timeout") {
        Ok(response) => Ok(text(response).await),
        Err(error) => Err(error.to_string()),
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Runtime::new().expect("create a runtime")
}

/// The site's pages are served over every protocol, with certificates of `pebble`.
fn assert_trusted(accelerator: &Accelerator, pebble: &Pebble) {
    let roots = pebble.roots();
    runtime().block_on(async {
        let spdy = Protocol::Spdy(Version::V31);
        for protocol in [spdy, Protocol::Http2, Protocol::Http3, Protocol::Http1] {
            let client = client(roots.clone(), protocol);
            for host in NAMES {
                let response = page(&client, accelerator, host).await;
                let response =
                    response.unwrap_or_else(|error| panic!("{protocol} {host}: {error}"));
                assert!(
                    response.starts_with("200 OK GET /page"),
                    "{protocol}: {response}"
                );
            }
        }
    });
}

fn assert_private_files(folder: &Path) {
    for entry in std::fs::read_dir(folder).expect("read the file") {
        let path = entry.expect("read the file").path();
        let mode = path.metadata().expect("read the file").permissions().mode() & 0o777;
        match path.is_dir() {
            true => {
                assert_eq!(mode, 0o700, "{path:?}");
                assert_private_files(&path);
            }
            false => assert_eq!(mode, 0o600, "{path:?}"),
        }
    }
}

/// Orders a first certificate, renews it during an upload, and after a kill uses the stored one without a request to the ACME
/// server.
#[test]
fn a_certificate_is_ordered_renewed_without_downtime_and_stored() {
    if !peers_enabled() {
        return;
    }
    let site = TestSite::open();
    let accelerator = Accelerator::start(&site.config(&NAMES, ""));
    let pebble = Pebble::start(&challenge_addresses(&accelerator), 600);
    let roots = pebble.roots();
    let untrusted_response = runtime().block_on(async {
        let own_roots = Roots::File(accelerator.authority());
        let response = page(&client(own_roots, Protocol::Http2), &accelerator, NAMES[0]).await;
        assert!(
            response.is_ok_and(|response| response.starts_with("200")),
            "a generated certificate"
        );
        page(
            &client(roots.clone(), Protocol::Http2),
            &accelerator,
            NAMES[0],
        )
        .await
    });
    assert!(untrusted_response.is_err(), "{untrusted_response:?}");

    // Renewed after 1 % of its lifetime: in six seconds.
    accelerator.reload(&site.config(&NAMES, &site.acme(&pebble, "renew_percent = 99")));
    let log_line = accelerator.line_with("new certificate");
    assert!(
        log_line.contains("for www.site.test, site.test: valid until"),
        "{log_line}"
    );
    let (sender, receiver) = tokio::sync::mpsc::channel::<Bytes>(1);
    let upload = {
        let client = client(roots.clone(), Protocol::Http2);
        let url = format!("https://{}:{}/up", NAMES[1], accelerator.tls().port());
        thread::spawn(move || {
            let chunks = stream::unfold(receiver, async |mut receiver| {
                let chunk = receiver.recv().await?;
                Some((Ok::<_, std::io::Error>(chunk), receiver))
            });
            let chunks = Body::from_stream(Box::pin(chunks));
            let request = Request::post(url).body(chunks).expect("a request");
            runtime().block_on(async {
                let response = client.send(request, Priority::HIGHEST).await;
                text(response.expect("a response")).await
            })
        })
    };
    let mut bytes_sent = 0;
    until("the certificate is renewed", || {
        let chunk = Bytes::from_static(&[b'u'; 1024]);
        bytes_sent += sender.try_send(chunk).map_or(0, |()| 1024);
        accelerator.count_lines_with("new certificate") >= 2
    });
    assert_trusted(&accelerator, &pebble);
    drop(sender);
    let upload_response = upload.join().expect("the upload thread ends");
    assert!(
        upload_response.starts_with("200 OK POST /up"),
        "{upload_response}"
    );
    assert!(
        upload_response.ends_with(&format!("{bytes_sent} bytes")),
        "{upload_response}"
    );
    assert_eq!(accelerator.count_lines_with("no certificate"), 0);
    assert_private_files(&site.certificate_folder());
    let orders = accelerator.metric("spdy_certificate_orders_total{outcome=\"issued\"}");
    assert!(orders >= Some(2), "{orders:?}");
    let name = "spdy_certificate_expiry_timestamp_seconds{name=\"www.site.test\"}";
    let now = || {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.expect("a time after 1970").as_secs()
    };
    let earliest = now();
    let expiry = accelerator.metric(name).expect("a metric");
    let soon = earliest..now() + 601;
    assert!(soon.contains(&expiry), "{expiry} within {soon:?}");

    // From now on it is not renewed for minutes.
    let long_lived = site.config(&NAMES, &site.acme(&pebble, ""));
    accelerator.reload(&long_lived);
    accelerator.line_with("reloaded the configuration");
    until("the stored certificate is used", || {
        accelerator.count_lines_with("certificate for www.site.test, site.test: valid until")
            > accelerator.count_lines_with("new certificate")
    });
    let killed = std::process::Command::new("kill")
        .args(["-9", &accelerator.id().to_string()])
        .status();
    assert!(killed.expect("run `kill`").success());
    drop(accelerator);
    let orders = pebble.orders();
    assert!(orders >= 2, "{:#?}", pebble.log_lines());
    let accelerator = Accelerator::start(&long_lived);
    assert_trusted(&accelerator, &pebble);
    accelerator.line_with("certificate for www.site.test, site.test: valid until");
    assert_eq!(accelerator.count_lines_with("ordering"), 0);
    assert_eq!(pebble.orders(), orders, "{:#?}", pebble.log_lines());
}

/// A name that does not resolve to this server is reported. The others are validated by http-01 or dns-01.
#[test]
fn unprovable_names_are_reported_and_others_use_http_or_dns() {
    if !peers_enabled() {
        return;
    }
    let site = TestSite::open();
    let accelerator = Accelerator::start(&site.config(&NAMES, ""));
    let pebble = Pebble::start(&challenge_addresses(&accelerator), 600);
    let http = site.acme(&pebble, "challenge = 'http-01'");
    accelerator.reload(&site.config(&["gone.site.test"], &http));
    let log_line = accelerator.line_with("no certificate for gone.site.test");
    let expected = "gone.site.test: the authority rejected the proof (http-01): ";
    assert!(log_line.contains(expected), "{log_line}");
    assert!(log_line.contains("next attempt in 2 min"), "{log_line}");
    assert!(log_line.ends_with("a generated one is used"), "{log_line}");

    accelerator.reload(&site.config(&NAMES, &http));
    accelerator.line_with("new certificate");
    assert_trusted(&accelerator, &pebble);
    // Challenge paths that the program does not know are forwarded to the origin.
    let request = "GET /.well-known/acme-challenge/own HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n";
    let response = PendingResponse::begin(accelerator.plain(), request.as_bytes()).end(usize::MAX);
    assert!(
        response
            .text()
            .starts_with("GET /.well-known/acme-challenge/own")
    );
    drop(accelerator);

    let site = TestSite::open();
    let accelerator = Accelerator::start(&site.config(&NAMES, ""));
    let pebble = Pebble::start(&challenge_addresses(&accelerator), 600);
    let dns = site.acme(&pebble, "challenge = 'dns-01'");
    accelerator.reload(&site.config(&NAMES, &dns));
    accelerator.line_with("new certificate");
    assert_trusted(&accelerator, &pebble);
}

#[test]
fn a_wildcard_is_certified_by_dns() {
    if !peers_enabled() {
        return;
    }
    let site = TestSite::open();
    let names = ["site.test", "*.site.test"];
    let accelerator = Accelerator::start(&site.config(&names, ""));
    let pebble = Pebble::start(&challenge_addresses(&accelerator), 600);
    let dns = site.acme(&pebble, "challenge = 'dns-01'");
    accelerator.reload(&site.config(&names, &dns));
    accelerator.line_with("new certificate");
    assert_trusted(&accelerator, &pebble);
}

/// Browsers would reject the alias before.
#[test]
fn pages_use_a_host_alias_once_acme_certified_it() {
    const ZONE: &str = "x.names-e.test";
    if !peers_enabled() {
        return;
    }
    let site = TestSite::open();
    let origins = Origins::start(&[("www.site.test", "http")], |_, _| {
        complete_response(
            "200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=600\r\n",
            b"<!doctype html><iframe src=https://widgets.test/></iframe>",
        )
    });
    let secret = site.folder.path().join("secret");
    std::fs::write(&secret, [b'x'; 32]).expect("write the test's file");
    let config = |acme: &str| {
        let text = site.config(&["www.site.test"], acme);
        let [echo_address, page_address] = [
            site.origin.address,
            origins.addresses.address("www.site.test"),
        ];
        let text = text.replace(&echo_address.to_string(), &page_address.to_string());
        format!(
            "secret_file = {secret:?}\n{text}[site.rewrite]\nnames_under = '{ZONE}'\n\
             [[site.rewrite.hosts]]\nhost = 'widgets.test'\nmode = 'name'\nkinds = ['document']\n\
             [[dns.zone]]\napex = 'names-e.test'\nname_servers = ['ns.site.test']\n"
        )
    };
    let accelerator = Accelerator::start(&config(""));
    let page = || {
        let request = "GET / HTTP/1.1\r\nHost: www.site.test\r\nConnection: close\r\n\r\n";
        let response =
            PendingResponse::begin(accelerator.plain(), request.as_bytes()).end(usize::MAX);
        response.text()
    };
    assert!(
        page().contains(ZONE),
        "a generated certificate has all names"
    );
    accelerator.reload(&config(&site.unreachable_acme()));
    accelerator.line_with("until one does, pages keep the original hosts");
    until("the original host is kept", || {
        page().contains("src=https://widgets.test/")
    });
    let pebble = Pebble::start(&challenge_addresses(&accelerator), 600);
    accelerator.reload(&config(&site.acme(&pebble, "challenge = 'dns-01'")));
    accelerator.line_with("new certificate");
    until("the new hostname is used", || page().contains(ZONE));
}

/// A reload from ACME to an invalid certificate file changes nothing.
#[test]
fn a_failed_reload_keeps_the_certificates() {
    let site = TestSite::open();
    let accelerator = Accelerator::start(&site.config(&NAMES, &site.unreachable_acme()));
    accelerator.line_with("no certificate for www.site.test, site.test");
    let ca = LocalCa::generate(KeyKind::EcdsaP256).expect("create a CA");
    let names = NAMES.map(str::to_owned);
    let [first, second] = [(); 2].map(|()| ca.issue(&names, &[]).expect("sign a certificate"));
    let [chain, key] = ["chain.pem", "key.pem"].map(|file| site.folder.path().join(file));
    std::fs::write(&chain, first.chain_pem()).expect("write the test's file");
    std::fs::write(&key, second.key_pem()).expect("write the test's file");
    let tls_config = format!("[tls]\ncertificate = {chain:?}\nkey = {key:?}\n");
    accelerator.reload(&site.config(&NAMES, &tls_config));
    let log_line = accelerator.line_with("cannot reload the configuration");
    assert!(log_line.contains("tls: "), "{log_line}");
    let name = "spdy_certificate_expiry_timestamp_seconds{name=\"www.site.test\"}";
    assert_eq!(accelerator.metric(name), Some(0), "no certificate yet");
}

#[test]
fn an_unreachable_acme_authority_fails_no_request() {
    let site = TestSite::open();
    let accelerator = Accelerator::start(&site.config(&NAMES, &site.unreachable_acme()));
    let log_line = accelerator.line_with("no certificate for www.site.test, site.test");
    assert!(log_line.contains("https://127.0.0.1:1/dir: "), "{log_line}");
    runtime().block_on(async {
        let client = client(Roots::File(accelerator.authority()), Protocol::Http2);
        let response = page(&client, &accelerator, NAMES[1]).await;
        assert!(response.is_ok_and(|response| response.starts_with("200 OK GET /page")));
    });
    let name = "spdy_certificate_expiry_timestamp_seconds{name=\"www.site.test\"}";
    assert_eq!(accelerator.metric(name), Some(0));
    let failed = accelerator.metric("spdy_certificate_orders_total{outcome=\"failed\"}");
    assert_eq!(failed, Some(1));
}
