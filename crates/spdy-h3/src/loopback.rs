//! Two QUIC endpoints in one process, for tests of streams.

use std::net::{Ipv4Addr, SocketAddr};

use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_net_core::congestion::RememberedWindows;
use spdy_net_core::network::{Network, SystemNetwork};
use spdy_net_core::options::{ClientOptions, ServerOptions};
use spdy_net_core::protocol::Protocol;
use spdy_net_core::tls::certificates::{KeyKind, LocalCa};
use spdy_net_core::tls::verify::Trust;
use spdy_net_core::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};

use crate::quic::{QuicConnection, QuicEndpoint, connect};

/// The client's endpoint, and the server's.
pub(crate) async fn pair() -> (QuicConnection, quinn::Connection) {
    pair_with(None).await
}

/// Like [`pair`], with a server that has this memory of congestion windows.
pub(crate) async fn pair_with(
    windows: Option<RememberedWindows>,
) -> (QuicConnection, quinn::Connection) {
    let mut quiet = TlsOptions::default();
    quiet.key_log = KeyLogTarget::Disabled;
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let identity = ca.issue(&["localhost".to_owned()], &[]).unwrap();
    let trust = Trust::only(vec![ca.certificate().clone()]);
    let (server, client) = (
        ServerTls::new(&identity, &[Protocol::Http3], &quiet).unwrap(),
        ClientTls::new(&trust, &quiet).unwrap(),
    );
    let socket = SystemNetwork.datagrams(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let serve = ServerOptions::default();
    let door = QuicEndpoint::new(socket.unwrap(), &server, &serve, &runtime).unwrap();
    let (to, options) = (door.address().unwrap(), ClientOptions::default());
    let connecting = connect(
        &SystemNetwork,
        to,
        "localhost",
        &client,
        0,
        &options,
        &runtime,
    );
    let accepting = async {
        let incoming = door.accept().await.unwrap().with_windows(windows);
        let accepted = incoming.accept(&serve).unwrap();
        accepted.handshake.await.unwrap();
        accepted.connection
    };
    let (connected, accepted) = tokio::join!(connecting, accepting);
    (connected.unwrap().0, accepted)
}
