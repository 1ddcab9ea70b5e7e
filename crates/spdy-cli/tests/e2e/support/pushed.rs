//! A client of our own in the test's process that takes what is pushed; `spdy fetch` refuses it.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::body::Body;
use spdy::client::Builder;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::network::{BoxIo, Network, SystemNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_net::verify::{Roots, Trust};
use tokio::runtime::Runtime;

use super::certificate::CERTIFICATE;
use super::files::sha256;

/// What came by one stream: path, status, bytes, SHA-256 in hexadecimal.
pub(crate) type Came = (String, u16, usize, String);

/// How long the pushes may take.
const WITHIN: Duration = Duration::from_secs(20);

/// GETs `target` of the server at `origin`; gives its response, and the first `pushes` that came with it, by
/// path.
pub(crate) fn get_with_pushes(
    origin: &str,
    version: Version,
    flow_control: bool,
    target: &str,
    pushes: usize,
) -> (Came, Vec<Came>) {
    let runtime = Runtime::new().expect("a runtime can be made");
    let getting = async {
        let io = connect(origin, version).await;
        let shared = SharedRuntime::new(TokioRuntime::start());
        let builder = Builder::new(version).flow_control(flow_control);
        let (session, mut offered, connection) = builder.handshake_with_pushes(io, shared);
        let running = tokio::spawn(connection.run());
        let request = Request::get(format!("{origin}{target}"))
            .body(Body::empty())
            .expect("a URI of ours");
        let response = session.request(request, Priority::HIGHEST);
        let asking = tokio::spawn(async move {
            let response = response.await.expect("the peer answers");
            read_out("asked for", response).await
        });
        let mut came = Vec::new();
        while came.len() < pushes {
            let Some(push) = offered.next().await else {
                panic!("the session ended after {came:?}: {:?}", session.error());
            };
            let path = push.request().uri.path().to_owned();
            let response = push.response().await;
            let response =
                response.unwrap_or_else(|error| panic!("the push of {path} ended: {error}"));
            came.push(read_out(&path, response).await);
        }
        came.sort();
        let page = asking.await.expect("asking does not panic");
        drop((session, offered));
        running.abort();
        (page, came)
    };
    runtime.block_on(async {
        let got = tokio::time::timeout(WITHIN, getting).await;
        got.unwrap_or_else(|_| panic!("no {pushes} pushes from {origin} within {WITHIN:?}"))
    })
}

/// TCP, or TLS that agreed on `version`.
async fn connect(origin: &str, version: Version) -> BoxIo {
    let (scheme, address) = origin.split_once("://").expect("an origin");
    let address = address.parse().expect("peers are known by address");
    let io = SystemNetwork.connect(address).await;
    let io = io.expect("the peer listens");
    if scheme == "http" {
        return io;
    }
    let trust = Trust {
        roots: Roots::File(CERTIFICATE.authority.clone()),
        ..Trust::default()
    };
    let tls = ClientTls::new(&trust, &TlsOptions::default()).expect("TLS can be set up");
    let tls = tls.offering(&[Protocol::Spdy(version)]);
    let (io, agreed) = tls.connect(io, "127.0.0.1").await.expect("TLS");
    assert_eq!(agreed.protocol, Some(Protocol::Spdy(version)));
    io
}

async fn read_out(path: &str, response: Response<Body>) -> Came {
    let status = response.status().as_u16();
    let body = response.into_body().collect().await;
    let body: Bytes = body
        .unwrap_or_else(|error| panic!("{path} broke off: {error}"))
        .to_bytes();
    (path.to_owned(), status, body.len(), sha256(&body))
}
