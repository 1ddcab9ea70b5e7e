//! What the operator can see of pages and of timings, and what clients cannot.

use std::sync::{Arc, Mutex};

use futures_util::{StreamExt, stream};
use http::{Method, Request, StatusCode};
use serde_json::Value;
use spdy::Body;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::handler::{Handler, RequestInfo};
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_proxy::admin::handler::Admin;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::response::server_timing::{SharedTiming, Timing};
use spdy_proxy::serve::connection::ConnectionHandler;
use spdy_proxy::telemetry::access_log::{AccessLog, AccessLogEntry, BodyEnd};
use spdy_proxy::token::Token;

use crate::support::fields::{FRESH, HTML};
use crate::support::{Origin, accelerator_of, get, pages, respond, until, until_some};

const SITE: &str = "https://www.site.test:8443";
const TOKEN: &str = "a token of the operator";

/// A site whose pages name a picture of a host that is moved, and one of a host that is not.
fn own(other: &Origin) -> Origin {
    let port = other.address.port();
    let html = format!(
        "<img src='http://cdn.test:{port}/b.png'><img src=https://else.test/c.png><img src=/own.png>"
    );
    let private = format!("<link rel=preconnect href='http://cdn.test:{port}/?secret'>{html}");
    Origin::start(move |request: Request<bytes::Bytes>| {
        std::future::ready(match request.uri().path() {
            "/" => respond(&[HTML, FRESH], html.clone()),
            "/reset/secret" => respond(&[HTML, ("cache-control", "private")], private.clone()),
            "/as-is" => respond(
                &[HTML, ("cache-control", "no-transform, max-age=60")],
                html.clone(),
            ),
            "/coded" => respond(
                &[HTML, FRESH, ("content-encoding", "unheard-of")],
                html.clone(),
            ),
            _ => respond(&[FRESH, ("server-timing", "db;dur=3")], "own"),
        })
    })
}

fn other() -> Origin {
    let picture: &[_] = &[("content-type", "image/png"), FRESH];
    Origin::start(pages(&[("/b.png", picture, "a picture")]))
}

fn before(own: &Origin, other: &Origin) -> Arc<Proxy> {
    let (origin, port) = (own.address, other.address.port());
    accelerator_of(&format!(
        "[upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image']\nwhole = true\n"
    ))
}

/// A report is written when the page's last byte has come, and its reader may get that earlier.
async fn reported(proxy: &Arc<Proxy>, url: &str) {
    until("the page is reported", || {
        proxy.pages.reports.of(url).is_some()
    })
    .await;
}

/// The answer of the admin handler to `method` of `target`.
async fn door(
    proxy: &Arc<Proxy>,
    method: Method,
    target: &str,
    token: &str,
) -> (StatusCode, String) {
    let metrics = Arc::new(|_: &Request<Body>| http::Response::new(Body::empty()));
    let admin = Admin::new(proxy.clone(), Token::new(TOKEN), metrics);
    let request = Request::builder().method(method).uri(target);
    let request = request.header("authorization", format!("Bearer {token}"));
    let request = request.body(Body::empty()).expect("a request");
    let (head, body) = admin.answer(request).await.into_parts();
    let body = body
        .collect_up_to(1 << 20)
        .await
        .expect("the body is complete");
    (
        head.status,
        String::from_utf8(body.to_vec()).expect("the text is UTF-8"),
    )
}

/// A page whose name resolves to loopback (DNS rebinding) sends its own name as the host.
#[tokio::test]
async fn admin_listener_rejects_unknown_host() {
    let proxy =
        accelerator_of("[[site]]\nnames = ['www.site.test']\norigin = 'http://127.0.0.1:1'\n");
    for (host, expected) in [
        ("evil.test", StatusCode::MISDIRECTED_REQUEST),
        ("127.0.0.1.evil.test:9180", StatusCode::MISDIRECTED_REQUEST),
        ("127.0.0.1:9180", StatusCode::OK),
        ("localhost", StatusCode::OK),
    ] {
        for path in ["/metrics", "/pages"] {
            let target = format!("http://{host}{path}");
            let (status, text) = door(&proxy, Method::GET, &target, TOKEN).await;
            assert_eq!(status, expected, "{target}: {text}");
        }
    }
}

/// The report of the page at `target`.
async fn report(proxy: &Arc<Proxy>, target: &str) -> Value {
    let url = format!("{SITE}{target}");
    reported(proxy, &url).await;
    let query: String = url::form_urlencoded::byte_serialize(url.as_bytes()).collect();
    let (status, text) = door(proxy, Method::GET, &format!("/pages?url={query}"), TOKEN).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    serde_json::from_str(&text).expect("the text is JSON")
}

#[tokio::test]
async fn page_report_lists_rewritten_and_unchanged_with_reason() {
    let other = other();
    let own = own(&other);
    let proxy = before(&own, &other);
    let port = other.address.port();
    get(&proxy, "/", &[("sec-fetch-dest", "document")]).await;
    let page_report = report(&proxy, "/").await;
    assert_eq!(
        (&page_report["proxied"], &page_report["skip_reason"]),
        (&1.into(), &Value::Null)
    );
    assert_eq!(
        page_report["skipped_by_reason"],
        serde_json::json!({"not-listed": 1})
    );
    let references = page_report["references"].as_array().expect("a list");
    let proxied_path = format!("/.spdy/1/-/p/cdn.test~{port}/b.png");
    assert_eq!(references.len(), 2);
    assert_eq!(references[0]["proxied_to"], proxied_path);
    assert_eq!(
        (&references[1]["url"], &references[1]["message"]),
        (
            &"https://else.test/c.png".into(),
            &"else.test is not listed".into()
        )
    );
    // The site's own picture will be requested, too.
    assert_eq!(
        page_report["prefetched"],
        serde_json::json!([proxied_path, "/own.png"])
    );
    assert_eq!(page_report["last_delivery"], Value::Null);
    // The URL as in a log, of a client of another listener.
    let target = "/pages?url=http://www.site.test:18080/";
    let (status, text) = door(&proxy, Method::GET, target, TOKEN).await;
    let same: Value = serde_json::from_str(&text).expect("the text is JSON");
    assert_eq!((status, same), (StatusCode::OK, page_report));
}

#[tokio::test]
async fn page_report_lists_last_pushes_and_hints() {
    let other = other();
    let html = "<link rel=stylesheet href=/a.css>";
    let own = Origin::start(pages(&[
        ("/", &[HTML, FRESH], html),
        ("/a.css", &[("content-type", "text/css"), FRESH], "p {}"),
    ]));
    let proxy = before(&own, &other);
    let arrival = RequestInfo {
        protocol: Protocol::Spdy(Version::V31),
        secure: true,
        priority: Priority::HIGHEST,
    };
    let visit = || async {
        let request = Request::builder()
            .uri("/")
            .header("host", "www.site.test:8443");
        let request = request.header("accept", "text/html").extension(arrival);
        let request = request.body(Body::empty()).expect("a request");
        let visit = ConnectionHandler::new(proxy.clone(), None, None);
        let (head, body) = visit.answer(request).await.into_parts();
        body.collect_up_to(1 << 20)
            .await
            .expect("the body is complete");
        head.headers.contains_key("link")
    };
    assert!(!visit().await, "the page has no history yet");
    assert_eq!(report(&proxy, "/").await["last_delivery"], Value::Null);
    // A client that cannot get pushes gets hints.
    assert!(visit().await);
    let along = serde_json::json!({"pushed": [], "hinted": ["/a.css"]});
    assert_eq!(report(&proxy, "/").await["last_delivery"], along);
}

#[tokio::test]
async fn skipped_page_has_a_reason() {
    let other = other();
    let own = own(&other);
    let proxy = before(&own, &other);
    for (target, reason) in [("/as-is", "no-transform"), ("/coded", "content-coding")] {
        get(&proxy, target, &[]).await;
        let page_report = report(&proxy, target).await;
        assert_eq!(page_report["skip_reason"], reason, "{target}");
        let pages = proxy
            .telemetry
            .counters
            .read(spdy_proxy::telemetry::counters::CounterFamily::Pages);
        assert!(pages.contains(&(reason, 1)), "{pages:?}");
    }
    get(&proxy, "/?spdy=off", &[]).await;
    assert_eq!(
        proxy.pages.reports.list().len(),
        2,
        "spdy=off makes no report"
    );
}

#[tokio::test]
async fn private_page_report_has_counts_only() {
    let other = other();
    let own = own(&other);
    let proxy = before(&own, &other);
    get(&proxy, "/reset/secret?session=secret", &[]).await;
    let page_report = report(&proxy, "/reset/secret").await;
    assert_eq!(
        (&page_report["proxied"], &page_report["is_public"]),
        (&1.into(), &false.into())
    );
    assert_eq!(page_report["references"], serde_json::json!([]));
    assert_eq!(page_report["prefetched"], serde_json::json!([]));
    assert_eq!(page_report["url"], format!("{SITE}/"));
    let (_, list) = door(&proxy, Method::GET, "/pages", TOKEN).await;
    for page_report in [page_report.to_string(), list] {
        let words = ["secret", "cdn.test", "else.test"];
        let word = words.into_iter().find(|&word| page_report.contains(word));
        assert_eq!(word, None, "{page_report}");
    }
}

#[tokio::test]
async fn reports_require_the_token() {
    let other = other();
    let own = own(&other);
    let proxy = before(&own, &other);
    get(&proxy, "/", &[]).await;
    reported(&proxy, &format!("{SITE}/")).await;
    for (method, target, token, status) in [
        (Method::GET, "/pages", "", StatusCode::UNAUTHORIZED),
        (
            Method::GET,
            "/pages?url=x",
            "a token of the operatoR",
            StatusCode::UNAUTHORIZED,
        ),
        (
            Method::POST,
            "/pages",
            TOKEN,
            StatusCode::METHOD_NOT_ALLOWED,
        ),
        (Method::GET, "/pages?uri=x", TOKEN, StatusCode::BAD_REQUEST),
        (Method::GET, "/pages?url=x", TOKEN, StatusCode::NOT_FOUND),
    ] {
        let (actual, text) = door(&proxy, method, target, token).await;
        assert_eq!(actual, status, "{target}");
        assert!(!text.contains("site.test"), "{text}");
    }
    let (status, text) = door(&proxy, Method::GET, "/pages", TOKEN).await;
    let list: Value = serde_json::from_str(&text).expect("the text is JSON");
    assert_eq!(status, StatusCode::OK);
    let page = &list["pages"][0];
    assert_eq!(
        (&page["url"], &page["proxied"], &page["skipped"]),
        (&format!("{SITE}/").into(), &1.into(), &1.into())
    );
}

#[tokio::test]
async fn trace_context_reaches_site_origin_and_log_only() {
    let other = other();
    let own = own(&other);
    let proxy = before(&own, &other);
    let logged: Arc<Mutex<Vec<Option<String>>>> = Arc::default();
    let log: AccessLog = {
        let logged = logged.clone();
        Arc::new(move |entry: &AccessLogEntry| {
            logged
                .lock()
                .unwrap()
                .push(entry.trace.map(|trace| trace.to_string()));
        })
    };
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let proxied_path = format!("/.spdy/1/-/p/cdn.test~{}/b.png", other.address.port());
    for target in ["/x", &proxied_path] {
        let visit =
            ConnectionHandler::new(proxy.clone(), None, None).with_access_log(Some(log.clone()));
        let request = Request::builder()
            .uri(target)
            .header("host", "www.site.test");
        let request = request
            .header("traceparent", &parent)
            .header("tracestate", "a=b");
        let request = request.body(Body::empty()).expect("a request");
        let (head, body) = visit.answer(request).await.into_parts();
        body.collect_up_to(1 << 20)
            .await
            .expect("the body is complete");
        assert_eq!(head.status, StatusCode::OK, "{target}");
    }
    assert_eq!(
        *logged.lock().unwrap(),
        [Some(trace.to_owned()), Some(trace.to_owned())]
    );
    let (own_headers, other_headers) = (own.fields("/x"), other.fields("/b.png"));
    assert_eq!(
        (&own_headers["traceparent"], &own_headers["tracestate"]),
        (&parent.parse().unwrap(), &"a=b".parse().unwrap())
    );
    assert!(
        !other_headers.contains_key("traceparent") && !other_headers.contains_key("tracestate"),
        "{other_headers:?}"
    );
}

#[tokio::test]
async fn access_log_is_written_at_body_end_with_reason() {
    let other = other();
    let origin_gone = Latch::new();
    let breaks = origin_gone.clone();
    let own = Origin::start(move |request: Request<bytes::Bytes>| {
        let (path, breaks) = (request.uri().path().to_owned(), breaks.clone());
        async move {
            if path != "/breaks" {
                return respond(&[HTML, FRESH], "<img src=https://else.test/c.png>");
            }
            let mut response = respond(&[HTML, ("content-length", "9")], "");
            let half = stream::iter([Ok(bytes::Bytes::from_static(b"half"))]);
            let rest = stream::once(async move {
                breaks.wait().await;
                Err("gone")
            });
            *response.body_mut() = Body::from_stream(half.chain(Box::pin(rest)));
            response
        }
    });
    let proxy = before(&own, &other);
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log: AccessLog = {
        let logged = logged.clone();
        Arc::new(move |entry: &AccessLogEntry| {
            let skipped = entry.page.map(|page| page.skipped);
            let line = (entry.bytes, entry.body_end, skipped);
            logged.lock().unwrap().push(line);
        })
    };
    let request = async |target: &str| {
        let visit =
            ConnectionHandler::new(proxy.clone(), None, None).with_access_log(Some(log.clone()));
        let request = Request::builder().uri(target);
        let request = request.header("host", "www.site.test:8443");
        let request = request.body(Body::empty()).expect("a request");
        visit.answer(request).await.into_body()
    };
    let shutting_down = async |target: &str| {
        let cut_off = Latch::new();
        let visit =
            ConnectionHandler::new(proxy.clone(), None, None).with_access_log(Some(log.clone()));
        let visit = visit.with_cutoff(cut_off.clone());
        let request = Request::builder().uri(target);
        let request = request.header("host", "www.site.test:8443");
        let request = request.body(Body::empty()).expect("a request");
        let body = visit.answer(request).await.into_body();
        cut_off.set();
        body
    };
    let page = request("/").await;
    assert!(logged.lock().unwrap().is_empty(), "it has not ended");
    let page = page
        .collect_up_to(1 << 20)
        .await
        .expect("the body is complete");
    let len = page.len() as u64;
    drop(request("/?again").await);
    let broken = request("/breaks").await;
    origin_gone.set();
    let broken = broken.collect_up_to(1 << 20).await;
    assert!(broken.is_err(), "{broken:?}");
    drop(request("/.spdy/1/-/s/else.test/c.png").await);
    // The client that sent HEAD gets none of the body that is written here.
    let visit =
        ConnectionHandler::new(proxy.clone(), None, None).with_access_log(Some(log.clone()));
    let request = Request::head("/").header("host", "nobody.test");
    let request = request.body(Body::empty()).expect("a request");
    drop(visit.answer(request).await);
    drop(shutting_down("/?shutdown").await);
    let logged = logged.lock().unwrap();
    assert_eq!(logged[0], (len, BodyEnd::Complete, Some(1)));
    assert_eq!((logged[1].0, logged[1].1), (0, BodyEnd::ClientAborted));
    assert_eq!((logged[2].0, logged[2].1), (4, BodyEnd::UpstreamError));
    assert_eq!(
        logged[3],
        (0, BodyEnd::Complete, None),
        "nothing was to come"
    );
    assert_eq!(logged[4], (0, BodyEnd::Complete, None));
    assert_eq!((logged[5].0, logged[5].1), (0, BodyEnd::Shutdown));
    assert_eq!(logged.len(), 6);
}

/// The `Server-Timing` values of the answer to `target`, which came with `token`.
async fn timed(
    proxy: &Arc<Proxy>,
    timing: &Timing,
    target: &str,
    token: Option<&str>,
) -> Vec<String> {
    let visit =
        ConnectionHandler::new(proxy.clone(), None, None).timing(SharedTiming::new(timing.clone()));
    let mut request = Request::builder()
        .uri(target)
        .header("host", "www.site.test");
    if let Some(token) = token {
        request = request.header("spdy-timing", token);
    }
    let request = request.body(Body::empty()).expect("a request");
    let (head, body) = visit.answer(request).await.into_parts();
    body.collect_up_to(1 << 20)
        .await
        .expect("the body is complete");
    let values = head.headers.get_all("server-timing").iter();
    values
        .map(|value| value.to_str().expect("ASCII").to_owned())
        .collect()
}

#[tokio::test]
async fn server_timing_requires_the_token() {
    let other = other();
    let own = own(&other);
    let proxy = before(&own, &other);
    let timing = Timing {
        token: Some(Token::new(TOKEN)),
    };
    let miss = timed(&proxy, &timing, "/", Some(TOKEN)).await;
    assert_eq!(miss.len(), 1);
    assert!(
        miss[0].starts_with("cache;desc=\"miss\", origin;dur=") && miss[0].contains(", total;dur="),
        "{miss:?}"
    );
    assert!(
        !own.fields("/").contains_key("spdy-timing"),
        "the token went on"
    );
    reported(&proxy, &format!("{SITE}/")).await;
    // It is stored slightly after it is reported.
    let hit = until_some("the page is kept", async || {
        let timings = timed(&proxy, &timing, "/", Some(TOKEN)).await;
        (!timings[0].contains("origin")).then_some(timings)
    })
    .await;
    assert!(
        hit[0].starts_with("cache;desc=\"hit\", rewrite;dur=") && !hit[0].contains("origin"),
        "{hit:?}"
    );
    for token in [None, Some("another")] {
        let timings = timed(&proxy, &timing, "/", token).await;
        assert_eq!(timings, [] as [&str; 0], "{token:?}");
    }
    // The origin's own timing stays unchanged.
    let timings = timed(&proxy, &timing, "/x", None).await;
    assert_eq!(timings, ["db;dur=3"]);
    assert_eq!(timed(&proxy, &timing, "/x", Some(TOKEN)).await.len(), 2);
    timed(&proxy, &Timing::default(), "/y", Some(TOKEN)).await;
    assert!(
        !own.fields("/y").contains_key("spdy-timing"),
        "the token went on"
    );
}
