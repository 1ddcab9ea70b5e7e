//! The site of most tests: `a.test`, plain and over TLS, and what a client needs there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use spdy_client::client::{Client, Config};
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{World, numbers, runtime, tls_pair};

pub(crate) const HTTP: SocketText = "10.0.0.1:80";

pub(crate) const HTTPS: SocketText = "10.0.0.1:443";

pub(crate) type SocketText = &'static str;

pub(crate) fn client(world: &World, config: Config) -> Client {
    Client::new(runtime(), Arc::new(world.clone()), config)
}

pub(crate) fn only(protocol: Protocol) -> Config {
    let mut client = Config::default();
    client.protocols = vec![protocol];
    client.plain_protocol = protocol;
    client
}

/// A world with `a.test`, plain and over TLS, that speaks `protocols`; and what a client needs there.
pub(crate) fn world(protocols: &[Protocol]) -> (World, Config) {
    let world = World::default();
    let (server, tls) = tls_pair();
    world
        .name("a.test", &["10.0.0.1"])
        .server(HTTP, protocols, None, Latch::new(), numbers)
        .server(HTTPS, protocols, Some(server), Latch::new(), numbers);
    let mut client = Config::default();
    client.tls = Some(tls);
    (world, client)
}

/// A plain server that answers each connection's first request with these bytes, and hangs up.
pub(crate) fn serve_responses(
    world: &World,
    responses: &'static [&'static str],
) -> Arc<AtomicUsize> {
    let request_count = Arc::new(AtomicUsize::new(0));
    let count = request_count.clone();
    world
        .name("a.test", &["10.0.0.1"])
        .accept_at(HTTP, move |mut io| {
            let nth = count.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let _ = io.read(&mut request).await;
                let _ = io
                    .write_all(responses[nth.min(responses.len() - 1)].as_bytes())
                    .await;
                let _ = io.shutdown().await;
            });
        });
    request_count
}
