//! Port-forward over a plain WebSocket, the form of old: client and server of this crate.

use spdy_cri::Config;
use spdy_cri::client::{self, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::tungstenite::ClientRequestBuilder;

use crate::support::{
    dead_port, dial, echo_port, fake_runtime, forward_to, nothing_runs, pattern, post, runtime,
};

#[tokio::test]
async fn two_ports_are_forwarded_over_channels_at_once() {
    let (first_port, second_port) = (echo_port().await, echo_port().await);
    let server = fake_runtime(Config::default());
    let query = format!("?port={first_port}%2C{second_port}");
    for (ports, query) in [
        (vec![first_port, second_port], ""),
        (Vec::new(), query.as_str()),
    ] {
        let url = server.port_forward_url(forward_to(&ports)).expect("a URL") + query;
        let forwarded = client::port_forward_in_channels(
            dial(&server),
            &post(&url),
            &[first_port, second_port],
            Options::default(),
            runtime(),
        )
        .await
        .expect("a way");
        assert_eq!(forwarded.len(), 2);
        let both = forwarded
            .into_iter()
            .zip(1..)
            .map(async |(forwarded, seed)| {
                let mut forwarded = forwarded;
                let payload = pattern(300_000, seed);
                let mut echo = vec![0; payload.len()];
                let (mut from, mut to) = tokio::io::split(&mut forwarded.data);
                let (read_result, write_result) =
                    tokio::join!(from.read_exact(&mut echo), to.write_all(&payload));
                read_result.expect("an echo");
                write_result.expect("written");
                assert!(echo == payload);
                forwarded
            });
        let forwarded = futures_util::future::join_all(both).await;
        // Together: while the data of one is held, the other does not end.
        let waits = forwarded.into_iter().map(client::ForwardedConnection::wait);
        for result in futures_util::future::join_all(waits).await {
            result.expect("no error");
        }
        nothing_runs(&server).await;
    }
}

#[tokio::test]
async fn a_dead_port_is_reported_on_its_error_channel() {
    let port = dead_port();
    let server = fake_runtime(Config::default());
    let url = server.port_forward_url(forward_to(&[port])).expect("a URL");
    let (io, options) = (dial(&server), Options::default());
    let mut forwarded =
        client::port_forward_in_channels(io, &post(&url), &[port], options, runtime())
            .await
            .expect("a way");
    let error = forwarded
        .remove(0)
        .wait()
        .await
        .expect_err("no listener on the port");
    let start = format!("error forwarding port {port} to pod p1: Connection refused");
    assert!(error.to_string().starts_with(&start), "{error}");
}

#[tokio::test]
async fn a_port_that_closes_ends_its_connection() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.expect("a client");
        socket.write_all(b"bye").await.expect("written");
    });
    let server = fake_runtime(Config::default());
    let url = server.port_forward_url(forward_to(&[port])).expect("a URL");
    let (io, options) = (dial(&server), Options::default());
    let mut forwarded =
        client::port_forward_in_channels(io, &post(&url), &[port], options, runtime())
            .await
            .expect("a way");
    let mut text = String::new();
    let data = &mut forwarded[0].data;
    data.read_to_string(&mut text).await.expect("an end");
    assert_eq!(text, "bye");
    nothing_runs(&server).await;
}

#[tokio::test]
async fn missing_invalid_and_too_many_ports_are_refused() {
    let server = fake_runtime(Config::default());
    let count = |count| (1..=count).collect::<Vec<u16>>();
    let cases = [
        (vec![], "", "v4.channel.k8s.io", false),
        (vec![], "?port=0", "v4.channel.k8s.io", false),
        (vec![], "?port=80,", "v4.channel.k8s.io", false),
        (vec![], "?port=65536", "v4.channel.k8s.io", false),
        (vec![], "?transport=80", "v4.channel.k8s.io", false),
        (vec![], "?port=1%2c2%2C3", "v4.channel.k8s.io", true),
        (vec![], "?a=b&port=1&port=65535", "v4.channel.k8s.io", true),
        (count(127), "", "v4.channel.k8s.io", true),
        (count(128), "", "v4.channel.k8s.io", false),
        (count(40), "", "v4.base64.channel.k8s.io", true),
        (count(41), "", "v4.base64.channel.k8s.io", false),
    ];
    for (ports, query, protocol, works) in cases {
        let url = server.port_forward_url(forward_to(&ports)).expect("a URL") + query;
        let url = url.replacen("http", "ws", 1).parse().expect("a URL");
        let request = ClientRequestBuilder::new(url).with_sub_protocol(protocol);
        let result = tokio_tungstenite::client_async(request, dial(&server)).await;
        assert_eq!(result.is_ok(), works, "{} ports, {query}", ports.len());
    }
}

/// A server that answered all the same made the client panic at the hundred and twenty-ninth.
#[tokio::test]
async fn a_client_forwards_no_more_ports_than_channels() {
    let server = fake_runtime(Config::default());
    let ports: Vec<u16> = (1..=128).collect();
    let url = server.port_forward_url(forward_to(&[])).expect("a URL");
    let options = Options::default();
    let io = dial(&server);
    let request = post(&url);
    let result = client::port_forward_in_channels(io, &request, &ports, options, runtime()).await;
    let error = result.expect_err("one too many");
    assert_eq!(error.to_string(), "128 ports requested, limit 127");
}
