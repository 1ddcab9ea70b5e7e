use bytes::Bytes;
use futures_util::stream;
use http::{Request, StatusCode};
use spdy::{Body, Priority, SharedRuntime};
use spdy_client::tls::certificates::{KeyKind, LocalCa};
use spdy_client::tls::verify::Trust;
use spdy_client::tls::{ClientTls, TlsOptions};
use spdy_client::{Client, Config, SystemNetwork};
use tokio::sync::mpsc;

use crate::support::{Program, in_time, session};

const PROGRAM: &str = env!("CARGO_BIN_EXE_axum-over-spdy");

#[tokio::test]
async fn json_and_streams_are_served_and_a_stop_waits_for_the_last_stream() {
    let (mut program, address) = Program::serve(PROGRAM, &["127.0.0.1:0"]).await;
    let session = session(&address).await;
    let get = |path: &str| {
        let request = Request::get(format!("http://{address}{path}"))
            .body(Body::empty())
            .expect("a valid URL");
        in_time(session.request(request, Priority::HIGHEST))
    };

    let hello = get("/hello/world").await.expect("a response");
    assert_eq!(hello.headers()["content-type"], "application/json");
    let text = hello
        .into_body()
        .collect_up_to(1000)
        .await
        .expect("a short body");
    assert_eq!(text, r#"{"hello":"world"}"#);

    let count = get("/count/100000").await.expect("a response");
    let text = count
        .into_body()
        .collect_up_to(1 << 20)
        .await
        .expect("all lines");
    let expected: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(text, expected);

    assert_eq!(
        get("/missing").await.expect("a response").status(),
        StatusCode::NOT_FOUND
    );

    // A stream that is open when the server stops.
    let (pieces, receiver) = mpsc::unbounded_channel::<Bytes>();
    let upload = stream::unfold(receiver, async |mut receiver| {
        let piece = receiver.recv().await?;
        Some((Ok::<_, std::io::Error>(piece), receiver))
    });
    let request = Request::post(format!("http://{address}/echo"))
        .body(Body::from_stream(upload))
        .expect("a valid URL");
    pieces
        .send(Bytes::from_static(b"before"))
        .expect("the body is read");
    let response = in_time(session.request(request, Priority::HIGHEST))
        .await
        .expect("a response");
    let mut echo = response.into_body();
    assert_eq!(
        in_time(echo.receive())
            .await
            .expect("a piece")
            .expect("no error"),
        "before"
    );

    program.terminate().await;
    assert_eq!(program.line().await, "stopping, open sessions: 1");
    pieces
        .send(Bytes::from_static(b"after"))
        .expect("the body is read");
    assert_eq!(
        in_time(echo.receive())
            .await
            .expect("a piece")
            .expect("no error"),
        "after"
    );
    drop(pieces);
    assert!(in_time(echo.receive()).await.is_none());
    in_time(session.closed()).await;
    assert!(session.error().is_none());
    assert!(
        get("/hello/again")
            .await
            .expect_err("the session has ended")
            .is_retry_safe()
    );

    let (lines, status) = program.end().await;
    assert!(status.success());
    assert_eq!(lines, ["a session ended"]);
}

#[tokio::test]
async fn the_same_application_is_served_over_tls() {
    let ca = LocalCa::generate(KeyKind::EcdsaP256).expect("an authority");
    let identity = ca
        .issue(&["localhost".to_owned()], &[])
        .expect("a certificate");
    let folder = std::env::temp_dir().join(format!("spdy-examples-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (chain, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    std::fs::write(&chain, identity.chain_pem()).expect("a file");
    std::fs::write(&key, identity.key_pem()).expect("a file");
    let paths = [&chain, &key].map(|path| path.to_str().expect("a path of text"));
    let (_program, address) = Program::serve(PROGRAM, &["127.0.0.1:0", paths[0], paths[1]]).await;
    std::fs::remove_dir_all(&folder).expect("the files were read");

    let trust = Trust::only(vec![ca.certificate().clone()]);
    let tls = ClientTls::new(&trust, &TlsOptions::default()).expect("a configuration");
    let mut config = Config::default();
    config.tls = Some(tls);
    let client = Client::new(
        SharedRuntime::tokio(),
        std::sync::Arc::new(SystemNetwork),
        config,
    );
    let port = address.rsplit(':').next().expect("a port");
    let request = Request::get(format!("https://localhost:{port}/hello/tls"))
        .body(Body::empty())
        .expect("a valid URL");
    let response = in_time(client.send(request, Priority::HIGHEST))
        .await
        .expect("a response");
    let route = response
        .extensions()
        .get::<spdy_client::route::Route>()
        .expect("a route");
    assert_eq!(route.protocol.alpn(), "spdy/3.1");
    let text = response
        .into_body()
        .collect_up_to(1000)
        .await
        .expect("a short body");
    assert_eq!(text, r#"{"hello":"tls"}"#);
    in_time(client.close()).await;
}
