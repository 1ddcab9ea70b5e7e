//! Origins that share an address, and a certificate, and so a session: or do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response, StatusCode};
use spdy::body::Body;
use spdy_client::client::{Client, Config};
use spdy_client::route::Route;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{Identity, KeyKind, LocalCa};
use spdy_net::tls::pins::Pin;
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};

use crate::support::{World, get, read, runtime};

const SPDY: Protocol = Protocol::Spdy(Version::V31);
const AT: &str = "10.0.0.1:443";

/// One server at one address, and what its clients believe.
struct Shared {
    world: World,
    ca: LocalCa,
    identity: Identity,
    server: ServerTls,
}

fn options() -> TlsOptions {
    let mut options = TlsOptions::default();
    options.key_log = KeyLogTarget::Disabled;
    options
}

impl Shared {
    /// `a.test` and `b.test` at one address; the certificate is for `names`.
    fn with_certificate_for(names: &[&str]) -> Self {
        let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let identity = ca.issue(&names, &[]).unwrap();
        let server = ServerTls::new(&identity, &Protocol::ALL, &options()).unwrap();
        let world = World::default();
        world.name("a.test", &["10.0.0.1"]);
        world.name("b.test", &["10.0.0.1"]);
        Self {
            world,
            ca,
            identity,
            server,
        }
    }

    /// A server that answers with the requested host name.
    fn responding(self) -> Self {
        let tls = Some(self.server.clone());
        self.world
            .server(AT, &Protocol::ALL, tls, Latch::new(), names);
        self
    }

    fn trust(&self) -> Trust {
        Trust::only(vec![self.ca.certificate().clone()])
    }

    fn client(&self, protocol: Protocol, trust: &Trust) -> Client {
        let mut config = Config::default();
        config.protocols = vec![protocol];
        config.tls = Some(ClientTls::new(trust, &options()).unwrap());
        config.ip_pooling = true;
        Client::new(runtime(), Arc::new(self.world.clone()), config)
    }
}

async fn names(request: Request<Body>) -> Response<Body> {
    let host = request.uri().host().unwrap_or_default().to_owned();
    Response::new(Body::full(host.into_bytes()))
}

/// Asks for `uri`; gives the answer, and whether it came on another's connection.
async fn fetch(client: &Client, uri: &str) -> (String, bool) {
    let response = client.send(get(uri), Priority::HIGHEST).await;
    let response = response.unwrap_or_else(|error| panic!("{uri}: {error}"));
    let shared = response.extensions().get::<Route>().unwrap().shared;
    let body = read(response).await.unwrap();
    (String::from_utf8(body.to_vec()).unwrap(), shared)
}

/// Number of connections for a request to `a.test`, and then to `b.test`.
async fn connections(client: &Client) -> u64 {
    let expected = ("a.test".to_owned(), false);
    assert_eq!(fetch(client, "https://a.test/").await, expected);
    let (name, shared) = fetch(client, "https://b.test/").await;
    assert_eq!(name, "b.test");
    let stats = client.stats();
    assert_eq!(shared, stats.connections == 1);
    assert_eq!(stats.shared, u64::from(shared));
    stats.connections
}

#[tokio::test]
async fn a_second_origin_shares_a_session_its_certificate_covers() {
    for protocol in [SPDY, Protocol::Http2] {
        let covered = Shared::with_certificate_for(&["a.test", "b.test"]).responding();
        let client = covered.client(protocol, &covered.trust());
        assert_eq!(connections(&client).await, 1, "{protocol}");
        assert_eq!(covered.world.connects().len(), 1);
        assert_eq!(covered.world.look_ups(), ["a.test", "b.test"]);
    }
}

#[tokio::test]
async fn no_sharing_without_a_certificate_for_the_name() {
    let identities = Shared::with_certificate_for(&["a.test"]);
    let other_identity = identities.ca.issue(&["b.test".to_owned()], &[]).unwrap();
    let hosts = [("b.test".to_owned(), other_identity)];
    let server = ServerTls::with_identities(&hosts, &identities.identity, &[SPDY], &options());
    let server = Some(server.unwrap());
    let world = &identities.world;
    world.server(AT, &[SPDY], server, Latch::new(), names);
    let client = identities.client(SPDY, &identities.trust());
    assert_eq!(connections(&client).await, 2);
}

/// CVE-2014-3166: connections were shared past the pins of the second host.
#[tokio::test]
async fn pins_of_the_second_host_are_checked_as_well() {
    let shared = Shared::with_certificate_for(&["a.test", "b.test"]).responding();
    let other_identity = shared.ca.issue(&["b.test".to_owned()], &[]).unwrap();
    let pinned_to = |identity: &Identity| Trust {
        host_pins: vec![(
            "b.test".to_owned(),
            vec![Pin::of(&identity.chain[0]).unwrap()],
        )],
        ..shared.trust()
    };
    let client = shared.client(SPDY, &pinned_to(&shared.identity));
    assert_eq!(
        connections(&client).await,
        1,
        "the server presents the pinned key"
    );

    let client = shared.client(SPDY, &pinned_to(&other_identity));
    fetch(&client, "https://a.test/").await;
    let result = client.send(get("https://b.test/"), Priority::HIGHEST).await;
    let error = result.expect_err("the shown key is not pinned").to_string();
    assert!(error.contains("not pinned"), "{error}");
    assert_eq!(client.stats().shared, 0);
}

#[tokio::test]
async fn other_addresses_http1_and_clients_without_pooling_do_not_share() {
    let shared = Shared::with_certificate_for(&["a.test", "b.test"]).responding();
    let client = shared.client(Protocol::Http1, &shared.trust());
    assert_eq!(connections(&client).await, 2, "http/1.1");

    let mut config = Config::default();
    config.protocols = vec![SPDY];
    config.tls = Some(ClientTls::new(&shared.trust(), &options()).unwrap());
    let client = Client::new(runtime(), Arc::new(shared.world.clone()), config);
    assert_eq!(connections(&client).await, 2, "off by default");

    let other_addresses = Shared::with_certificate_for(&["a.test", "b.test"]).responding();
    let tls = Some(other_addresses.server.clone());
    other_addresses.world.name("b.test", &["10.0.0.2"]).server(
        "10.0.0.2:443",
        &[SPDY],
        tls,
        Latch::new(),
        names,
    );
    let client = other_addresses.client(SPDY, &other_addresses.trust());
    assert_eq!(connections(&client).await, 2, "another address");
}

#[tokio::test]
async fn an_origin_that_gets_421_opens_its_own_connection() {
    /// Answers for `b.test` on a connection that was opened for it alone.
    async fn strict(
        request: Request<Body>,
        first: Arc<std::sync::OnceLock<String>>,
    ) -> Response<Body> {
        let host = request.uri().host().unwrap_or_default().to_owned();
        if *first.get_or_init(|| host.clone()) != host {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
            return response;
        }
        names(request).await
    }
    let shared = Shared::with_certificate_for(&["a.test", "b.test"]);
    let tls = shared.server.clone();
    shared.world.accept_at(AT, move |io| {
        let (tls, first) = (tls.clone(), Arc::default());
        let handler = Arc::new(move |request| strict(request, Arc::clone(&first)));
        serve(io, handler, tls);
    });
    let client = shared.client(SPDY, &shared.trust());
    fetch(&client, "https://a.test/").await;
    // A POST is sent again as well: a server that answers 421 has not processed it.
    let post = Request::post("https://b.test/").body(Body::from("once"));
    let response = client.send(post.unwrap(), Priority::HIGHEST).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!response.extensions().get::<Route>().unwrap().shared);
    for _ in 0..2 {
        assert_eq!(
            fetch(&client, "https://b.test/").await,
            ("b.test".to_owned(), false)
        );
        assert_eq!(
            fetch(&client, "https://a.test/").await,
            ("a.test".to_owned(), false)
        );
    }
    assert_eq!(client.stats().connections, 2);
    assert_eq!(
        client.stats().shared,
        1,
        "the shared connection was tried once"
    );
}

fn serve(io: BoxIo, handler: Arc<impl spdy_net::handler::Handler>, tls: ServerTls) {
    tokio::spawn(async move {
        let (options, runtime) = (spdy_net::serve::ServerOptions::default(), runtime());
        let (stop, protocols) = (Latch::new(), [SPDY]);
        let connection = spdy_net::serve::serve_connection(
            io,
            handler,
            &protocols,
            Some(&tls),
            &options,
            &runtime,
            &stop,
        );
        let _ = connection.await;
    });
}

#[tokio::test]
async fn an_origin_whose_stream_is_reset_gets_its_own_connection() {
    let shared = Shared::with_certificate_for(&["a.test", "b.test"]);
    let (tls, connection_count) = (shared.server.clone(), Arc::new(AtomicUsize::new(0)));
    let counter = connection_count.clone();
    shared.world.accept_at(AT, move |io| {
        let (tls, number) = (tls.clone(), counter.fetch_add(1, Ordering::Relaxed));
        tokio::spawn(async move {
            let (io, _) = tls.accept(io).await.unwrap();
            let (mut accept, connection) = spdy::server::handshake(io);
            connection.spawn();
            while let Some(incoming) = accept.next().await {
                // The first connection is for a.test alone.
                let is_stranger = incoming.headers().get(":host") == Some(b"b.test");
                if number == 0 && is_stranger {
                    incoming.reject(RstStatus::REFUSED_STREAM);
                    continue;
                }
                let (request, responder) = incoming.into_request().unwrap();
                let _ = responder.respond(names(request).await).await;
            }
        });
    });
    let client = shared.client(SPDY, &shared.trust());
    assert_eq!(
        fetch(&client, "https://a.test/").await,
        ("a.test".to_owned(), false)
    );
    assert_eq!(
        fetch(&client, "https://b.test/").await,
        ("b.test".to_owned(), false)
    );
    assert_eq!(connection_count.load(Ordering::Relaxed), 2);
}
