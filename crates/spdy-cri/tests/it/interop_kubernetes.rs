//! Kubernetes' own client-go against our server, straight and through the API server's proxies.
//!
//! ```text
//!  client-go  -- SPDY -------------------------------------------->  our server      Direct
//!  client-go  -- SPDY ---> UpgradeAwareHandler ------------------->  our server      Proxy
//!  client-go  == WebSocket ===> StreamTranslator or TunnelingHandler, SPDY ------>   Translated
//!  client-go  == WebSocket =======================================>  our server      WebSocket
//!  client-go  == WebSocket ===> UpgradeAwareHandler ==============>  our server      WebSocketByProxy
//! ```
//!
//! WebSocket is channels for exec and attach, and SPDY inside of it for port-forward.
//!
//! `scripts/setup-peers` builds the drivers of `interop/kubernetes`. Data is compared by SHA-256.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use spdy_cri::Config;
use tokio::net::TcpListener;

use crate::support::kubernetes::{Kubernetes, MEGABYTE, ROUTES, client_go};
use crate::support::{
    PIPES, TERMINAL, attach, dead_port, echo_port, exec, forward_to, listening, nothing_runs,
    pattern, sha256,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_gets_back_a_megabyte_of_stdin() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    for route in ROUTES {
        for joins in [false, true] {
            let url = match joins {
                false => server.exec_url(exec(&["cat"], PIPES)),
                true => server.attach_url(attach()),
            };
            let url = route.exec(&kubernetes, &url.expect("a URL"), false);
            let mode = route.mode("exec", "wsexec");
            let length = MEGABYTE.to_string();
            let result = client_go(&["-mode", mode, "-url", &url, "-stdin", &length]).await;
            assert_eq!(result["error"], Value::Null, "{route:?}: {result}");
            let digest = sha256(&pattern(MEGABYTE, 0));
            assert_eq!(
                result["stdout"]["sha256"], digest,
                "{route:?}: {}",
                result["stdout"]["bytes"]
            );
            assert_eq!(result["stderr"]["bytes"], 0);
        }
    }
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_gets_exit_code_stderr_and_errors() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    for route in ROUTES {
        let url = server.exec_url(exec(&["fail", "7"], PIPES)).expect("a URL");
        let url = route.exec(&kubernetes, &url, false);
        let mode = route.mode("exec", "wsexec");
        let result = client_go(&["-mode", mode, "-url", &url]).await;
        assert_eq!(result["code"], 7, "{route:?}: {result}");
        assert_eq!(
            result["stderr"]["text"], "failing as asked\n",
            "{route:?}: {result}"
        );
        let url = server.exec_url(exec(&["dance"], PIPES)).expect("a URL");
        let url = route.exec(&kubernetes, &url, false);
        let mode = route.mode("exec", "wsexec");
        let result = client_go(&["-mode", mode, "-url", &url]).await;
        let error = result["error"].as_str().unwrap_or_default();
        assert!(
            error.contains("no command \"dance\""),
            "{route:?}: {result}"
        );
    }
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_gets_output_that_is_larger_than_every_buffer() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    for route in ROUTES {
        let length = 5 * MEGABYTE;
        let command = ["bytes", &length.to_string()];
        let url = server.exec_url(exec(&command, PIPES)).expect("a URL");
        let url = route.exec(&kubernetes, &url, false);
        let mode = route.mode("exec", "wsexec");
        let result = client_go(&["-mode", mode, "-url", &url]).await;
        assert_eq!(result["error"], Value::Null, "{route:?}: {result}");
        assert_eq!(
            result["stdout"]["sha256"],
            sha256(&pattern(length, 0)),
            "{route:?}: {} bytes, {}",
            result["stdout"]["bytes"],
            result["noise"]
        );
    }
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_sends_terminal_sizes() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    for route in ROUTES {
        let url = server
            .exec_url(exec(&["size", "2"], TERMINAL))
            .expect("a URL");
        let url = route.exec(&kubernetes, &url, true);
        let mode = route.mode("exec", "wsexec");
        let result = client_go(&["-mode", mode, "-url", &url, "-tty"]).await;
        assert_eq!(result["error"], Value::Null, "{route:?}: {result}");
        assert_eq!(
            result["stdout"]["text"], "80x24\n132x43\n",
            "{route:?}: {result}"
        );
    }
    nothing_runs(&server).await;
}

/// Three megabytes through a forwarded port, by client-go.
async fn three_megabytes(mode: &str, url: &str) {
    let port = echo_port().await.to_string();
    let result = client_go(&["-mode", mode, "-url", url, "-remote", &port]).await;
    assert_eq!(result["error"], Value::Null, "{mode} {result}");
    let connections = result["connections"].as_array().expect("connections");
    assert_eq!(connections.len(), 3);
    for (seed, connection) in connections.iter().enumerate() {
        let digest = sha256(&pattern(MEGABYTE, seed));
        assert_eq!(connection["sha256"], digest, "{mode} {result}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_forwards_three_megabytes_at_once() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    for route in ROUTES {
        let url = server.port_forward_url(forward_to(&[])).expect("a URL");
        let url = route.port_forward(&kubernetes, &url);
        let mode = route.mode("portforward", "wsportforward");
        three_megabytes(mode, &url).await;
    }
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_reports_our_error_of_a_dead_port() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    let port = dead_port();
    for route in ROUTES {
        let url = server.port_forward_url(forward_to(&[])).expect("a URL");
        let url = route.port_forward(&kubernetes, &url);
        let mode = route.mode("portforward", "wsportforward");
        let remote = port.to_string();
        let arguments = [
            "-mode",
            mode,
            "-url",
            &url,
            "-remote",
            &remote,
            "-connections",
            "1",
        ];
        let result = client_go(&arguments).await;
        let all = result.to_string();
        let message = format!("error forwarding port {port} to pod p1: Connection refused");
        assert!(all.contains(&message), "{route:?}: {all}");
    }
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_gets_an_error_for_a_used_token() {
    let server = listening(Config::default()).await;
    let url = server.exec_url(exec(&["both"], PIPES)).expect("a URL");
    let first = client_go(&["-mode", "exec", "-url", &url]).await;
    assert_eq!(first["stdout"]["bytes"], 60, "{first}");
    let second = client_go(&["-mode", "exec", "-url", &url]).await;
    let error = second["error"].as_str().unwrap_or_default();
    assert!(error.contains("unknown, used or expired token"), "{second}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_falls_back_to_our_spdy_if_our_websocket_is_off() {
    let mut config = Config::default();
    config.channels = Vec::new();
    let server = listening(config).await;
    // As an API server: each request is given a token of its own.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/exec", listener.local_addr().expect("an address"));
    let refusals = Arc::new(AtomicUsize::new(0));
    let (streaming, refusal_counter) = (server.clone(), refusals.clone());
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.expect("a client");
            let (server, refusal_counter) = (streaming.clone(), refusal_counter.clone());
            let service = hyper::service::service_fn(move |mut request: Request<_>| {
                let url = server.exec_url(exec(&["fail", "7"], PIPES)).expect("a URL");
                *request.uri_mut() = url.parse().expect("a URI");
                let response = server.respond(request);
                let refusal = response.status() == StatusCode::FORBIDDEN;
                refusal_counter.fetch_add(usize::from(refusal), Ordering::SeqCst);
                async { Ok::<_, std::convert::Infallible>(response) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            let connection = http.serve_connection(TokioIo::new(socket), service);
            tokio::spawn(connection.with_upgrades());
        }
    });
    let result = client_go(&["-mode", "anyexec", "-url", &url]).await;
    assert_eq!(result["code"], 7, "{result}");
    assert_eq!(result["stderr"]["text"], "failing as asked\n");
    assert_eq!(refusals.load(Ordering::SeqCst), 1, "the WebSocket");
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_gets_the_exit_code_in_each_sub_protocol() {
    let server = listening(Config::default()).await;
    // In the first version it does not wait for the word on the error channel.
    for protocol in ["v5.channel.k8s.io", "v4.channel.k8s.io"] {
        let url = server.exec_url(exec(&["fail", "7"], PIPES)).expect("a URL");
        let arguments = ["-mode", "wsexec", "-protocol", protocol, "-url", &url];
        let result = client_go(&arguments).await;
        assert_eq!(result["code"], 7, "{protocol}: {result}");
        assert_eq!(result["stderr"]["text"], "failing as asked\n");
    }
    nothing_runs(&server).await;
}
