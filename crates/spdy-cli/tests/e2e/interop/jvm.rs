//! Both roles against OkHttp, Jetty and Undertow.

use http::Request;
use http_body_util::BodyExt;
use spdy::Priority;
use spdy::body::Body;
use spdy_testkit::wait::WAIT_LIMIT;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::interop::peer_test::{PeerTest, every_file, peer_tests};
use crate::support::files::{FILES, sha256};
use crate::support::peers::{Peer, peers_enabled};
use crate::support::program::{run_expecting, spdy};

peer_tests! {
    okhttp = PeerTest::plain(Peer::OkHttp, "spdy/3.1"),
    okhttp_over_tls = PeerTest::tls(Peer::OkHttp, "spdy/3.1"),
    undertow = PeerTest::plain(Peer::Undertow, "spdy/3.1"),
    undertow_over_tls = PeerTest::tls(Peer::Undertow, "spdy/3.1") => {
        every_peer
        its_client_gets_the_page_with_pushes_it_rejects
    };
    jetty_spdy_3 = PeerTest::plain(Peer::Jetty, "spdy/3"),
    jetty_spdy_3_over_tls = PeerTest::tls(Peer::Jetty, "spdy/3"),
    jetty_spdy_2 = PeerTest::plain(Peer::Jetty, "spdy/2"),
    jetty_spdy_2_over_tls = PeerTest::tls(Peer::Jetty, "spdy/2") => {
        every_peer
        its_client_accepts_our_pushes
        its_client_accepts_pushes_of_serve
        its_client_accepts_our_pushes_in_one_block
        its_client_accepts_our_pushes_with_the_version_twice
        its_pushes_are_accepted
        its_pushes_satisfy_requests
    };
}

/// Undertow often ends an upload twice: with FIN on its last DATA, and with an empty DATA with FIN after it. It cannot receive
/// fifty long responses during the uploads: it loses bytes if a read ends within the 8 bytes of a WINDOW_UPDATE.
#[test]
fn undertow_uploads_fifty_files_at_once() {
    PeerTest::plain(Peer::Undertow, "spdy/3.1").its_client_uploads_fifty_files_at_once();
}

/// MockWebServer sends `Content-Length`. A name with upper-case letters is a stream error, unless `--fold-names` is set.
#[test]
fn fetch_resets_responses_of_mock_web_server_unless_it_folds_names() {
    if !peers_enabled() {
        return;
    }
    let (_process, origin) = Peer::MockWebServer.serve("spdy/3.1", true);
    let mut command = spdy(&["fetch", "--protocol", "spdy/3.1", "--json", "--insecure"]);
    let output = run_expecting(1, command.arg(format!("{origin}/128")));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("stream 1 was reset locally: PROTOCOL_ERROR"),
        "{text}"
    );
    let names = ["0", "128", "10k", "1m"];
    let folder = tempfile::tempdir().expect("create a folder");
    let mut command = spdy(&[
        "fetch",
        "--protocol",
        "spdy/3.1",
        "--fold-names",
        "--insecure",
    ]);
    command.arg("--output-dir").arg(folder.path());
    run_expecting(
        0,
        command.args(names.map(|name| format!("{origin}/{name}"))),
    );
    for name in names {
        let actual = std::fs::read(folder.path().join(name)).expect("read the file");
        let expected = std::fs::read(FILES.folder.join(name)).expect("read the file");
        assert!(actual == expected, "{name}: {} bytes", actual.len());
    }
}

/// Undertow also uses the initial window of our SETTINGS for its own receive window, and grants no more than 64 KiB. Uploads with
/// the default settings stalled because of that.
#[test]
fn the_default_client_uploads_to_undertow() {
    if !peers_enabled() {
        return;
    }
    let (_process, origin) = Peer::Undertow.serve("spdy/3.1", false);
    let address = origin.trim_start_matches("http://").to_owned();
    let files = every_file();
    let runtime = Runtime::new().expect("create a runtime");
    let uploads = runtime.block_on(async {
        let socket = TcpStream::connect(&address).await.expect("connect");
        let (session, connection) = spdy::client::handshake(socket);
        connection.spawn();
        let uploads = files.iter().map(async |file| {
            let body = std::fs::read(FILES.folder.join(file.name)).expect("read the file");
            let request = Request::post(format!("{origin}/echo")).body(Body::full(body));
            let request = request.expect("a valid request");
            let response = session.request(request, Priority::HIGHEST).await?;
            let body = response
                .into_body()
                .collect()
                .await
                .expect("a complete body");
            Ok::<_, spdy::Error>((file, sha256(&body.to_bytes())))
        });
        let uploads = futures_util::future::try_join_all(uploads);
        tokio::time::timeout(WAIT_LIMIT, uploads).await
    });
    for (file, digest) in uploads.expect("no upload hangs").expect("no upload fails") {
        assert_eq!(digest, file.sha256, "{}", file.name);
    }
}
