//! `spdy::Metrics` of the sessions of both sides.

use http::Request;
use spdy::metrics::{RoleMetrics, Sessions};
use spdy::{Metrics, Version};
use spdy_cri::client::{self, Options};
use spdy_cri::{Config, StreamingServer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    self, FakeRuntime, PIPES, dial, exec, fake_runtime, forward_to, pattern, post, runtime,
};

/// Two collections, the server's and the client's, and the two sides that write to them.
fn with_metrics() -> (StreamingServer<FakeRuntime>, Options, [Metrics; 2]) {
    let both = [Metrics::new(), Metrics::new()];
    let mut config = Config::default();
    config.metrics = Some(both[0].clone());
    let server = fake_runtime(config);
    let mut options = Options::default();
    options.metrics = Some(both[1].clone());
    (server, options, both)
}

fn total(side: &RoleMetrics) -> u64 {
    let of = |&(version, Sessions { total, .. })| {
        assert!(version == Version::V31 || total == 0, "{version}");
        total
    };
    side.sessions.iter().map(of).sum()
}

#[tokio::test]
async fn an_exec_is_counted_on_both_sides() {
    let (server, options, both) = with_metrics();
    let url = server.exec_url(exec(&["cat"], PIPES)).expect("a URL");
    let mut process = client::exec(dial(&server), &post(&url), PIPES, options, runtime())
        .await
        .expect("a process");
    let input = pattern(100_000, 0);
    let mut stdin = process.stdin.take().expect("the stream was requested");
    let mut stdout = process.stdout.take().expect("the stream was requested");
    let mut output = vec![0; input.len()];
    stdin.write_all(&input).await.expect("written");
    stdout.read_exact(&mut output).await.expect("all of it");
    assert!(output == input);
    let [server_metrics, client_metrics] = both.map(|metrics| metrics.snapshot());
    for side in [&server_metrics.server, &client_metrics.client] {
        assert_eq!(total(side), 1);
        assert_eq!(side.streams_open, 4, "error, stdin, stdout and stderr");
    }
    assert_eq!(server_metrics.server.stats.received_data_bytes, 100_000);
    assert_eq!(client_metrics.client.stats.received_data_bytes, 100_000);
    assert_eq!(
        total(&server_metrics.client) + total(&client_metrics.server),
        0
    );
    stdin.shutdown().await.expect("an end");
    assert!(process.wait().await.expect("a status").is_success());
}

#[tokio::test]
async fn a_tunnel_is_counted_as_the_session_inside_it() {
    let (server, options, both) = with_metrics();
    let url = server.port_forward_url(forward_to(&[])).expect("a URL");
    let get = Request::get(url).body(()).expect("a request");
    let forward = client::port_forward_in_websocket(dial(&server), &get, options, runtime())
        .await
        .expect("a session");
    let port = support::echo_port().await;
    let forwarded = forward.connect(port).await.expect("a connection");
    let [server_metrics, client_metrics] = both.map(|metrics| metrics.snapshot());
    assert_eq!(
        (total(&server_metrics.server), total(&client_metrics.client)),
        (1, 1)
    );
    assert_eq!(
        client_metrics.client.stats.streams_opened, 2,
        "error and data"
    );
    drop(forwarded);
}
