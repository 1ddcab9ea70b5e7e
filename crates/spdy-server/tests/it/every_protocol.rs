//! The same site over every protocol, plain and over TLS, by `spdy-net`'s own client.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, KeyLogTarget, ServerTls, TlsOptions};
use spdy_net::wall_clock::WallClock;
use spdy_page::replica::{Exchange, Kind};
use spdy_server::serve::{ServeConfig, serve_connection};
use spdy_server::site::Site;

use crate::support::replica_of;

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 253) as u8).collect()
}

fn site() -> Arc<Site> {
    let url = |path: &str| format!("https://www.test{path}").parse().unwrap();
    let exchanges = [("/", 1_000), ("/big?v=1", 300_000), ("/empty", 0)]
        .map(|(path, len)| Exchange::synthetic(url(path), Kind::Other, "text/plain", body(len)));
    Arc::new(Site::of_replica(&replica_of(exchanges.into())))
}

/// The hour at the origin of a run.
fn calendar() -> WallClock {
    WallClock::FromEpoch(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000))
}

async fn connect(
    protocol: Protocol,
    tls: Option<(&ServerTls, &ClientTls)>,
    config: ServeConfig,
) -> Connection {
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let (near, far) = tokio::io::duplex(64 * 1024);
    let config = ServeConfig {
        protocols: vec![protocol],
        tls: tls.map(|(server, _)| server.clone()),
        wall_clock: calendar(),
        ..config
    };
    tokio::spawn(serve_connection(
        Box::new(far),
        site(),
        config,
        runtime.clone(),
    ));
    let io: BoxIo = match tls {
        None => Box::new(near),
        Some((_, client)) => {
            client
                .with_alpn(&[protocol])
                .connect(Box::new(near), "www.test")
                .await
                .unwrap()
                .0
        }
    };
    Connection::start(io, protocol, 0, &ClientOptions::default(), &runtime)
        .await
        .unwrap()
}

async fn send_request(
    connection: &Connection,
    request: http::request::Builder,
    body: Body,
) -> (Response<()>, Vec<u8>) {
    assert!(connection.ready().await);
    let response = connection
        .send(request.body(body).unwrap(), Priority::HIGHEST)
        .await
        .unwrap();
    let (head, body) = response.into_parts();
    (
        Response::from_parts(head, ()),
        body.collect_up_to(1 << 20).await.unwrap().to_vec(),
    )
}

#[tokio::test]
async fn every_protocol_gives_the_same_responses() {
    let mut options = TlsOptions::default();
    options.key_log = KeyLogTarget::Disabled;
    let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
    let identity = ca.issue(&["www.test".to_owned()], &[]).unwrap();
    let server = ServerTls::new(&identity, &Protocol::ALL, &options).unwrap();
    let client = ClientTls::new(&Trust::only(vec![ca.certificate().clone()]), &options).unwrap();
    let get = |target: &str| Request::get(format!("https://www.test{target}"));
    for protocol in Protocol::ALL {
        for tls in [None, Some((&server, &client))] {
            let road = format!("{protocol}, TLS: {}", tls.is_some());
            let connection = connect(protocol, tls, ServeConfig::default()).await;
            let (head, received) = send_request(&connection, get("/"), Body::empty()).await;
            assert_eq!(
                (head.status().as_u16(), &received),
                (200, &body(1_000)),
                "{road}"
            );
            assert!(
                head.headers()["date"]
                    .to_str()
                    .unwrap()
                    .starts_with("Sun, 09 Sep 2001 01:4"),
                "{road}"
            );
            let (head, received) = send_request(&connection, get("/big?v=1"), Body::empty()).await;
            assert_eq!(
                (head.status().as_u16(), received == body(300_000)),
                (200, true),
                "{road}"
            );
            let (head, received) = send_request(&connection, get("/empty"), Body::empty()).await;
            assert_eq!((head.status().as_u16(), received.len()), (200, 0), "{road}");
            let range = get("/big?v=1").header("range", "bytes=299990-");
            let (head, received) = send_request(&connection, range, Body::empty()).await;
            assert_eq!(
                (head.status().as_u16(), &received[..]),
                (206, &body(300_000)[299_990..]),
                "{road}"
            );
            let request = Request::head("https://www.test/big?v=1");
            let (head, received) = send_request(&connection, request, Body::empty()).await;
            assert_eq!((head.status().as_u16(), received.len()), (200, 0), "{road}");
            assert_eq!(head.headers()["content-length"], "300000", "{road}");
            let upload = Request::post("https://www.test/");
            let (head, _) = send_request(&connection, upload, Body::full(body(200_000))).await;
            assert_eq!(
                (head.status().as_u16(), &head.headers()["allow"]),
                (405, &"GET, HEAD".parse().unwrap()),
                "{road}"
            );
            let (head, _) = send_request(&connection, get("/nix"), Body::empty()).await;
            assert_eq!(head.status(), 404, "{road}");
            let (head, _) = send_request(
                &connection,
                Request::get("https://other.test/"),
                Body::empty(),
            )
            .await;
            assert_eq!(head.status(), 421, "{road}");
            let long = get(&format!("/{}", "a".repeat(17_000)));
            let (head, _) = send_request(&connection, long, Body::empty()).await;
            assert_eq!(head.status(), 414, "{road}");
            let (head, _) = send_request(
                &connection,
                get("/").header("x", "a".repeat(49_500)),
                Body::empty(),
            )
            .await;
            assert_eq!(head.status(), 431, "{road}");
        }
    }
}

#[tokio::test]
async fn every_response_is_logged() {
    let logged = Arc::new(Mutex::new(Vec::new()));
    let entries = logged.clone();
    let log: spdy_server::serve::Log = Arc::new(move |served| {
        let line = format!(
            "{} {} {} {}",
            served.status,
            served.uri.path(),
            served.protocol,
            served.body_bytes
        );
        entries.lock().unwrap().push(line);
    });
    let config = ServeConfig {
        log: Some(log),
        ..ServeConfig::default()
    };
    let connection = connect(Protocol::Http2, None, config).await;
    for target in ["/", "/nix"] {
        send_request(
            &connection,
            Request::get(format!("http://www.test{target}")),
            Body::empty(),
        )
        .await;
    }
    assert_eq!(
        *logged.lock().unwrap(),
        ["200 OK / h2 1000", "404 Not Found /nix h2 14"]
    );
}
