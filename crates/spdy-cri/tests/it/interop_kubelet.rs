//! Our client against the kubelet's own streaming library, straight and through the API server's proxies.
//!
//! ```text
//!  our client  -- SPDY ------------------------------------------>  the kubelet's   Direct
//!  our client  -- SPDY ---> UpgradeAwareHandler ----------------->  the kubelet's   Proxy
//!  our client  == WebSocket ===> StreamTranslator or TunnelingHandler, SPDY ---->   Translated
//!  our client  == WebSocket =====================================>  the kubelet's   WebSocket
//!  our client  == WebSocket ===> UpgradeAwareHandler ============>  the kubelet's   WebSocketByProxy
//! ```
//!
//! The kubelet's library has version 4 of channels at best, which has no message for the end of stdin, and
//! no tunnel; the API server's translator has version 5 alone.
//!
//! `scripts/setup-peers` builds the drivers of `interop/kubernetes`. Data is compared by SHA-256.

use spdy_cri::client::{self, Options, PortForward, Process};
use spdy_cri::{
    ChannelProtocol, ClientError, ExitCode, RemoteCommand, StreamOptions, TerminalSize,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::kubernetes::{Kubernetes, MEGABYTE, ROUTES, Route};
use crate::support::process::text;
use crate::support::{
    PIPES, TERMINAL, connect, dead_port, echo_port, pattern, post, runtime, sha256,
};

/// Our client at the kubelet's.
async fn run(
    kubernetes: &Kubernetes,
    what: &str,
    streams: StreamOptions,
    route: Route,
    mut options: Options,
) -> Result<Process, ClientError> {
    let url = kubernetes.new_url(what).await;
    let request = post(&route.exec(kubernetes, &url, streams.tty));
    let io = connect(&request.uri().to_string()).await;
    if !route.is_websocket() {
        return client::exec(io, &request, streams, options, runtime()).await;
    }
    if route != Route::Translated && options.channels == [ChannelProtocol::V5] {
        options.channels = vec![ChannelProtocol::V4];
    }
    client::exec_in_websocket(io, &request, streams, options, runtime()).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_gets_a_megabyte_back_from_the_kubelet() {
    let kubernetes = Kubernetes::start();
    for (what, route) in ["exec?cmd=cat", "attach"]
        .into_iter()
        .flat_map(|what| ROUTES.map(|route| (what, route)))
    {
        let mut process = run(&kubernetes, what, PIPES, route, Options::default())
            .await
            .expect("a process");
        let best = match route {
            Route::Translated => RemoteCommand::V5,
            _ => RemoteCommand::V4,
        };
        assert_eq!(process.version(), best);
        let mut stdin = process.stdin.take().expect("the stream was requested");
        let feed = tokio::spawn(async move {
            stdin
                .write_all(&pattern(MEGABYTE, 0))
                .await
                .expect("written");
            stdin.shutdown().await.expect("an end");
            stdin
        });
        let mut output = vec![0; MEGABYTE];
        let mut stdout = process.stdout.take().expect("the stream was requested");
        stdout.read_exact(&mut output).await.expect("all of it");
        assert_eq!(
            sha256(&output),
            sha256(&pattern(MEGABYTE, 0)),
            "{what}: {route:?}"
        );
        drop(feed.await.expect("no panic"));
        if matches!(route, Route::WebSocket | Route::WebSocketByProxy) {
            continue; // version 4 has no word for the end of stdin
        }
        assert_eq!(stdout.read(&mut output).await.expect("an end"), 0);
        assert_eq!(text(process.stderr.take()).await, "");
        assert!(process.wait().await.expect("a status").is_success());
    }
}

/// Exit code seven, as the kubelet reports it in a version of the protocol.
async fn assert_exit_code_seven(mut process: Process, version: RemoteCommand) {
    assert_eq!(process.version(), version);
    assert_eq!(text(process.stderr.take()).await, "failing as asked\n");
    match process.wait().await {
        Ok(code) => assert!(code == ExitCode(7) && version >= RemoteCommand::V4),
        Err(ClientError::Remote { message }) => {
            assert!(
                version < RemoteCommand::V4 && message.contains('7'),
                "{message}"
            );
        }
        other => panic!("{version:?}: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_gets_the_kubelets_exit_code_in_every_version() {
    let kubernetes = Kubernetes::start();
    let what = "exec?cmd=fail&cmd=7";
    for version in [RemoteCommand::V4, RemoteCommand::V3, RemoteCommand::V2] {
        for route in [Route::Direct, Route::Proxy] {
            let mut options = Options::default();
            options.remote_command = vec![version];
            let process = run(&kubernetes, what, PIPES, route, options).await;
            assert_exit_code_seven(process.expect("a process"), version).await;
        }
    }
    // Of channels the kubelet has all but version 5, and the API server that alone.
    for protocol in ChannelProtocol::ALL {
        for route in [Route::Translated, Route::WebSocket, Route::WebSocketByProxy] {
            if protocol.has_close() != (route == Route::Translated) {
                continue;
            }
            let mut options = Options::default();
            options.channels = vec![protocol];
            let process = run(&kubernetes, what, PIPES, route, options).await;
            assert_exit_code_seven(process.expect("a process"), protocol.version()).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_sends_terminal_sizes_to_the_kubelet() {
    let kubernetes = Kubernetes::start();
    for route in ROUTES {
        let what = "exec?cmd=size&tty=1";
        let mut process = run(&kubernetes, what, TERMINAL, route, Options::default())
            .await
            .expect("a process");
        let mut resizer = process.resize.take().expect("a terminal");
        for (width, height) in [(80, 24), (132, 43)] {
            let size = TerminalSize { width, height };
            resizer.resize(size).await.expect("sent");
        }
        let out = text(process.stdout.take()).await;
        assert_eq!(out, "80x24\n132x43\n", "{route:?}");
        assert!(process.wait().await.expect("a status").is_success());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_falls_back_to_spdy_if_the_kubelet_refuses_version_5() {
    let kubernetes = Kubernetes::start();
    let url = format!(
        "http://127.0.0.1:{}/api/exec?cmd=fail&cmd=7",
        kubernetes.front
    );
    let (mut dials, request) = (0, post(&url));
    let dial = async || {
        dials += 1;
        Ok(connect(&url).await)
    };
    let options = Options::default();
    let process = client::exec_with_fallback(dial, &request, PIPES, options, runtime())
        .await
        .expect("a process");
    assert_eq!((dials, process.version()), (2, RemoteCommand::V4));
    assert_eq!(process.wait().await.expect("a status"), ExitCode(7));
}

/// The roads of port-forward to the kubelet's library, which has no tunnel.
const WAYS: [Route; 3] = [Route::Direct, Route::Proxy, Route::Translated];

/// Our port-forward to the kubelet.
async fn forward(kubernetes: &Kubernetes, route: Route) -> PortForward {
    let url = kubernetes.new_url("portforward").await;
    let request = post(&route.port_forward(kubernetes, &url));
    let (io, options) = (
        connect(&request.uri().to_string()).await,
        Options::default(),
    );
    match route.is_websocket() {
        true => client::port_forward_in_websocket(io, &request, options, runtime()).await,
        false => client::port_forward(io, &request, options, runtime()).await,
    }
    .expect("a way")
}

/// The form of old, straight to the kubelet's library or through the proxy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_forwards_ports_of_the_kubelet_by_channels() {
    let kubernetes = Kubernetes::start();
    let (alive, dead) = (echo_port().await, dead_port());
    for route in [Route::WebSocket, Route::WebSocketByProxy] {
        let what = format!("portforward?port={alive}&port={dead}");
        let url = kubernetes.new_url(&what).await;
        let request = post(&route.port_forward(&kubernetes, &url));
        let (io, options) = (
            connect(&request.uri().to_string()).await,
            Options::default(),
        );
        let ports = [alive, dead];
        let mut forwarded =
            client::port_forward_in_channels(io, &request, &ports, options, runtime())
                .await
                .expect("a way");
        let mut works = forwarded.remove(0);
        let payload = pattern(MEGABYTE, 5);
        let mut echo = vec![0; MEGABYTE];
        let (mut from, mut to) = tokio::io::split(&mut works.data);
        let (read_result, write_result) =
            tokio::join!(from.read_exact(&mut echo), to.write_all(&payload));
        read_result.expect("an echo");
        write_result.expect("written");
        assert_eq!(sha256(&echo), sha256(&payload), "{route:?}");
        drop(works);
        let error = forwarded
            .remove(0)
            .wait()
            .await
            .expect_err("no listener on the port");
        assert!(
            error.to_string().contains("connection refused"),
            "{route:?}: {error}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_forwards_three_megabytes_at_once() {
    let kubernetes = Kubernetes::start();
    let port = echo_port().await;
    for route in WAYS {
        let forward = forward(&kubernetes, route).await;
        let echo = |seed| {
            let forward = &forward;
            async move {
                let mut forwarded = forward.connect(port).await.expect("a connection");
                let payload = pattern(MEGABYTE, seed);
                let mut echo = Vec::new();
                let (mut from, mut to) = tokio::io::split(&mut forwarded.data);
                let write = async {
                    to.write_all(&payload).await.expect("written");
                    to.shutdown().await.expect("an end");
                };
                let ((), read_result) = tokio::join!(write, from.read_to_end(&mut echo));
                read_result.expect("an end");
                assert_eq!(
                    sha256(&echo),
                    sha256(&payload),
                    "{route:?}: {} bytes",
                    echo.len()
                );
                forwarded.wait().await.expect("no error");
            }
        };
        tokio::join!(echo(0), echo(1), echo(2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_gets_the_kubelets_error_of_a_dead_port() {
    let kubernetes = Kubernetes::start();
    let port = dead_port();
    for route in WAYS {
        let forward = forward(&kubernetes, route).await;
        let error = match forward.connect(port).await {
            Ok(forwarded) => forwarded.wait().await.expect_err("no listener on the port"),
            Err(error) => error,
        };
        assert!(
            error.to_string().contains("connection refused"),
            "{route:?}: {error}"
        );
    }
}
