//! Recorded heads that go out as they are: which answers have one, and that a connection writes them.

use bytes::Bytes;
use http::Request;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_net::protocol::Protocol;
use spdy_net::shims::literal_head::LiteralHead;
use spdy_page::replica::{Exchange, Kind, Replica};
use spdy_server::respond::{Limits, respond};
use spdy_server::serve::{ServeConfig, serve_connection};
use spdy_server::site::Site;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PAGE: &str = "HTTP/1.1 200 Fine\r\nETag:  \"a\"\r\nx-UPPER: 1\r\nContent-Length: 4\r\n\r\n";
const SAME: &str = "HTTP/1.1 304 Still The Same\r\nETag: \"a\"\r\nX-New: 1\r\n\r\n";

fn exchange(path: &str, head: &'static str, body: &'static str) -> Exchange {
    let url = format!("http://a.test{path}").parse().expect("a URL");
    Exchange {
        response_head: Bytes::from(head),
        ..Exchange::synthetic(url, Kind::Other, "text/plain", body)
    }
}

/// `path` as `change` leaves it.
fn changed(path: &str, head: &'static str, change: impl FnOnce(&mut Exchange)) -> Exchange {
    let mut exchange = exchange(path, head, "four");
    change(&mut exchange);
    exchange
}

fn replica() -> Replica {
    let long = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
    let protocol = |name: &'static str| {
        move |exchange: &mut Exchange| exchange.observed.protocol = Some(name.to_owned())
    };
    let refused = |exchange: &mut Exchange| exchange.observed.refused = Some("cut".to_owned());
    Replica {
        name: "test".to_owned(),
        source: "made for a test".to_owned(),
        start: 0,
        exchanges: vec![
            exchange("/page", PAGE, "four"),
            exchange("/page", SAME, ""),
            exchange("/same-first", SAME, ""),
            exchange("/same-first", PAGE, "four"),
            exchange("/other", PAGE, "four"),
            exchange("/other", "HTTP/1.1 304 No\r\nETag: \"b\"\r\n\r\n", ""),
            changed("/by-h1", PAGE, protocol("http/1.1")),
            changed("/by-h2", PAGE, protocol("h2")),
            changed("/lost-by-an-importer", long, |_| ()),
            changed("/cut", long, refused),
            exchange(
                "/no-head",
                "HTTP/1.1 200 OK\r\nContent-Length: four\r\n\r\n",
                "four",
            ),
        ],
        recorded: None,
        dom_content_loaded: None,
        load: None,
        failures: Vec::new(),
    }
}

/// The status of the answer, and its literal head.
fn asked(site: &Site, request: http::request::Builder) -> (u16, Option<String>) {
    let (head, ()) = request.body(()).expect("a request").into_parts();
    let response = respond(site, &head, None, &Limits::default());
    let literal = response.extensions().get::<LiteralHead>();
    let literal = literal.map(|head| String::from_utf8_lossy(head.bytes()).into_owned());
    (response.status().as_u16(), literal)
}

#[test]
fn literal_heads_are_used_for_recorded_framable_responses() {
    let site = Site::of_replica_with_literal_heads(&replica());
    for (path, is_literal) in [
        ("/page", true),
        ("/same-first", true),
        ("/by-h1", true),
        ("/by-h2", false),
        ("/lost-by-an-importer", false),
        ("/cut", true),
        ("/no-head", false),
        ("/unknown", false),
    ] {
        let (_, literal) = asked(&site, Request::get(format!("http://a.test{path}")));
        assert_eq!(literal.is_some(), is_literal, "{path}: {literal:?}");
    }
    assert_eq!(site.heads(), (8, 5));
    let head = asked(&site, Request::head("http://a.test/page"));
    assert_eq!(head, (200, Some(PAGE.to_owned())));
    let default = Site::of_replica(&replica());
    assert_eq!(
        asked(&default, Request::get("http://a.test/page")),
        (200, None)
    );
    assert_eq!(default.heads(), (8, 0));
}

#[test]
fn generated_responses_have_no_literal_head_but_a_recorded_304() {
    let site = Site::of_replica_with_literal_heads(&replica());
    let get = |path: &str| Request::get(format!("http://a.test{path}"));
    let known = |path| asked(&site, get(path).header("if-none-match", "\"a\""));
    assert_eq!(known("/page"), (304, Some(SAME.to_owned())));
    assert_eq!(known("/same-first"), (304, Some(SAME.to_owned())));
    assert_eq!(known("/other"), (304, None), "it spoke of another version");
    assert_eq!(known("/by-h1"), (304, None), "none was recorded");
    assert_eq!(
        asked(&site, get("/page").header("range", "bytes=1-2")),
        (206, None)
    );
    assert_eq!(
        asked(&site, get("/page").header("range", "bytes=9-")),
        (416, None)
    );
    assert_eq!(
        asked(&site, get("/page").header("if-match", "\"b\"")),
        (412, None)
    );
}

#[tokio::test]
async fn over_http_1_the_recorded_bytes_go_out_and_the_next_request_finds_its_own() {
    let (mut near, far) = tokio::io::duplex(64 * 1024);
    let config = ServeConfig {
        protocols: vec![Protocol::Http1],
        ..ServeConfig::default()
    };
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let site = Site::of_replica_with_literal_heads(&replica()).into();
    tokio::spawn(serve_connection(Box::new(far), site, config, runtime));
    let get = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n{more}\r\n");
    let known = "If-None-Match: \"a\"\r\n";
    let asked = [
        get("/page", ""),
        get("/page", known),
        get("/by-h2", ""),
        get("/cut", ""),
    ];
    near.write_all(asked.concat().as_bytes())
        .await
        .expect("it is read");
    let mut came = String::new();
    near.read_to_string(&mut came)
        .await
        .expect("it ends in order");
    let rest = came
        .strip_prefix(&format!("{PAGE}four{SAME}"))
        .expect("the recorded heads come");
    let by_fields = "HTTP/1.1 200 OK\r\netag: \"a\"\r\nx-upper: 1\r\ncontent-length: 4\r\n";
    assert!(rest.starts_with(by_fields), "{rest}");
    assert!(
        rest.ends_with("\r\n\r\nfourHTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour"),
        "{rest}"
    );
}
