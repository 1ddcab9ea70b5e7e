//! `spdy accelerate` behind HAProxy, which balances connections and announces their clients: the client's address and scheme, and
//! what happens if the listener and the balancer are configured differently.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use spdy_testkit::wait::until;

use crate::support::accelerator::haproxy::HaProxy;
use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::PendingResponse;
use crate::support::origins::echo::EchoOrigin;
use crate::support::peers::peers_enabled;
use crate::support::program::{output, run_expecting};

const NAME: &str = "www.site.test";
/// The client's address, different from the balancer's.
const CLIENT: &str = "127.0.0.9";

fn config(origin: &EchoOrigin, listen: &str) -> String {
    format!(
        "[listen]\n{listen}\ntrusted = ['127.0.0.1']\n[[site]]\nnames = ['{NAME}']\norigin = 'http://{}'\n",
        origin.address
    )
}

/// An accelerator that stores nothing, with `listen` as its `[listen]` table, and its origin; `None` if tests with peers are
/// disabled.
fn start_behind_balancer(listen: &str) -> Option<(EchoOrigin, Accelerator)> {
    peers_enabled().then(|| {
        let origin = EchoOrigin::start("no-store", Duration::ZERO);
        let accelerator = Accelerator::start(&config(&origin, listen));
        (origin, accelerator)
    })
}

/// curl, as a client that connects to `balancer` for the site.
fn curl(balancer: &HaProxy, scheme: &str, target: &str) -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--fail", "--noproxy", "*"])
        .args(["--max-time", "60", "--interface", CLIENT])
        .args(["--connect-to", &format!("::{}", balancer.address)])
        .arg("--cacert")
        .arg(balancer.authority())
        .arg(format!("{scheme}://{NAME}{target}"));
    curl
}

/// The client's address and the scheme that `origin` got in the request for `target`.
fn seen_client(origin: &EchoOrigin, target: &str) -> (String, String) {
    let requests = origin.requests().into_iter();
    let request = requests.rev().find(|request| request.target() == target);
    let request = request.unwrap_or_else(|| panic!("no request for {target}"));
    let field = |name| request.values(name).join("+");
    (field("x-forwarded-for"), field("x-forwarded-proto"))
}

#[test]
fn the_announced_client_is_logged_and_forwarded() {
    if !peers_enabled() {
        return;
    }
    let origin = EchoOrigin::start("max-age=60", Duration::ZERO);
    let listen = "plain = ['127.0.0.1:0']\ntls = []\nproxy_protocol = true";
    let accelerator = Accelerator::start_json(&config(&origin, listen));
    let address = accelerator.plain();
    for (number, (server_options, is_secure, expected_scheme)) in [
        ("send-proxy", false, "http"),
        ("send-proxy-v2", false, "http"),
        ("send-proxy-v2-ssl", false, "http"),
        ("send-proxy-v2-ssl", true, "https"),
    ]
    .into_iter()
    .enumerate()
    {
        let balancer = HaProxy::start(address, server_options, is_secure, NAME);
        let target = format!("/{number}");
        let mut curl = curl(&balancer, expected_scheme, &target);
        // A TCP balancer forwards these fields unchanged, so they are the client's own.
        let forged_fields = ["X-Forwarded-For: 9.9.9.9", "X-Forwarded-Proto: ftp, https"];
        curl.args(forged_fields.iter().flat_map(|field| ["--header", field]));
        run_expecting(0, &mut curl);
        let (client, scheme) = seen_client(&origin, &target);
        assert_eq!(
            (&client[..], &scheme[..]),
            (CLIENT, expected_scheme),
            "{server_options}"
        );
        let line = accelerator.json_line(1 + number);
        assert_eq!(
            line["uri"],
            format!("{expected_scheme}://{NAME}{target}"),
            "{line}"
        );
        assert_eq!(line["client"], CLIENT, "{line}");
    }
}

/// If the balancer terminates TLS but does not announce it, TLS is detected by the port that clients connected to.
#[test]
fn a_connection_to_the_tls_port_counts_as_tls() {
    let listen = "plain = ['127.0.0.1:0']\ntls = []\nproxy_protocol = true";
    let Some((origin, accelerator)) = start_behind_balancer(listen) else {
        return;
    };
    let balancer = HaProxy::start(accelerator.plain(), "send-proxy", true, NAME);
    run_expecting(0, &mut curl(&balancer, "https", "/before"));
    assert_eq!(seen_client(&origin, "/before").1, "http");
    let port = format!("{listen}\npublic_port = {}", balancer.address.port());
    accelerator.reload(&config(&origin, &port));
    accelerator.line_with("reloaded the configuration");
    run_expecting(0, &mut curl(&balancer, "https", "/after"));
    assert_eq!(seen_client(&origin, "/after").1, "https");
    // A change of the listeners needs a restart, and so does a change of where TLS is terminated.
    let with_tls_port = port.replace("tls = []", "tls = ['127.0.0.1:0']");
    accelerator.reload(&config(&origin, &with_tls_port));
    accelerator.line_with("listen.tls changed");
    run_expecting(0, &mut curl(&balancer, "https", "/later"));
    assert_eq!(seen_client(&origin, "/later").1, "https");
}

#[test]
fn tls_passed_through_by_a_balancer_begins_after_the_proxy_header() {
    let listen = "tls = ['127.0.0.1:0']\nproxy_protocol = true";
    let Some((origin, accelerator)) = start_behind_balancer(listen) else {
        return;
    };
    let balancer = HaProxy::start(accelerator.tls(), "send-proxy-v2", false, NAME);
    for protocol in ["--http1.1", "--http2"] {
        let target = format!("/{protocol}");
        let mut curl = curl(&balancer, "https", &target);
        let curl = curl.arg(protocol).arg("--cacert");
        run_expecting(0, curl.arg(accelerator.authority()));
        let actual = seen_client(&origin, &target);
        assert_eq!(
            actual,
            (CLIENT.to_owned(), "https".to_owned()),
            "{protocol}"
        );
    }
}

#[test]
fn a_proxy_protocol_mismatch_is_warned_about() {
    let listen = |extra_config: &str| format!("plain = ['127.0.0.1:0']\ntls = []\n{extra_config}");
    let Some((origin, accelerator)) = start_behind_balancer(&listen("proxy_protocol = true"))
    else {
        return;
    };
    let address = accelerator.plain();
    let status = |to: SocketAddr| {
        let request = format!("GET / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n");
        PendingResponse::begin(to, request.as_bytes())
            .end(usize::MAX)
            .status
    };
    assert_eq!(status(address), 0, "no PROXY header from 127.0.0.1");
    let line = accelerator.line_with("sends no valid PROXY protocol header");
    assert!(line.contains("found \"GET / HTTP/1.1"), "{line}");

    accelerator.reload(&config(&origin, &listen("")));
    until("no PROXY header is needed", || status(address) == 200);
    let balancer = HaProxy::start(address, "send-proxy", false, NAME);
    let output = output(&mut curl(&balancer, "http", "/"));
    assert_eq!(output.status.code(), Some(22), "400: {output:?}");
}
