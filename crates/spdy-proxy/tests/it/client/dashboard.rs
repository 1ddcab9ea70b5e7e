//! The counters of each site, and the operator's dashboard: its page without a token, and its numbers with it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use spdy::Body;
use spdy_net::handler::Handler;
use spdy_proxy::admin::handler::Admin;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::serve::connection::ConnectionHandler;
use spdy_proxy::token::Token;

use crate::support::fields::{FRESH, HTML, ONCE};
use crate::support::{Origin, accelerator_of, pages, read_again};

const TOKEN: &str = "a token of the operator";

/// Two sites with the same origin; the rules of the second are only tried.
fn config(origin: &Origin, more: &str) -> String {
    let address = origin.address;
    format!(
        "[[site]]\nnames = ['www.a.test', 'a.test']\norigin = 'http://{address}'\n{more}\
         [[site]]\nnames = ['b.test']\norigin = 'http://{address}'\n[site.rewrite]\ndry_run = true\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test'\nkinds = ['image']\n"
    )
}

fn origin() -> Origin {
    Origin::start(pages(&[
        ("/stored", &[FRESH], "twelve bytes"),
        ("/once", &[ONCE], "five!"),
        (
            "/page",
            &[HTML, FRESH],
            "<img src=https://cdn.test/a.png><img src=https://else.test/b.png>",
        ),
        (
            "/as-is",
            &[HTML, ("cache-control", "no-transform, max-age=60")],
            "<p>",
        ),
    ]))
}

/// Requests `target` of `host` as a client does, and reads the response.
async fn visit(proxy: &Arc<Proxy>, method: Method, host: &str, target: &str) -> StatusCode {
    let is_head = method == Method::HEAD;
    let request = Request::builder().method(method).uri(target);
    let request = request.header("host", host).body(Body::empty());
    let handler = ConnectionHandler::new(proxy.clone(), None, None);
    let response = handler.answer(request.expect("a request")).await;
    let (head, body) = response.into_parts();
    // A connection reads no body of a response to HEAD.
    if !is_head {
        body.collect_up_to(1 << 20)
            .await
            .expect("the body is complete");
    }
    head.status
}

fn admin(proxy: &Arc<Proxy>) -> Admin {
    let metrics = Arc::new(|_: &Request<Body>| http::Response::new(Body::empty()));
    Admin::new(proxy.clone(), Token::new(TOKEN), metrics)
}

async fn ask(
    admin: &Admin,
    method: Method,
    target: &str,
    token: Option<&str>,
) -> (StatusCode, HeaderMap, String) {
    let mut request = Request::builder().method(method).uri(target);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Body::empty()).expect("a request");
    let (head, body) = admin.answer(request).await.into_parts();
    let body = body.collect_up_to(1 << 20).await;
    let body = body.expect("the body is complete");
    let text = String::from_utf8(body.to_vec()).expect("the text is UTF-8");
    (head.status, head.headers, text)
}

/// The numbers of the dashboard.
async fn numbers(admin: &Admin) -> Value {
    let (status, _, text) = ask(admin, Method::GET, "/dashboard.json", Some(TOKEN)).await;
    assert_eq!(status, StatusCode::OK, "{text}");
    serde_json::from_str(&text).expect("the text is JSON")
}

#[tokio::test]
async fn dashboard_counts_requests_hits_and_saved_bytes_of_each_site() {
    let origin = origin();
    let proxy = accelerator_of(&config(&origin, ""));
    for (method, host, target) in [
        (Method::GET, "www.a.test", "/stored"),
        (Method::GET, "www.a.test", "/stored"),
        (Method::GET, "www.a.test", "/stored"),
        (Method::GET, "a.test:443", "/once"),
        (Method::GET, "www.a.test", "/unknown"),
        (Method::GET, "b.test", "/once"),
        (Method::GET, "other.test", "/once"),
    ] {
        visit(&proxy, method, host, target).await;
    }
    let numbers = numbers(&admin(&proxy)).await;
    let sites = numbers["sites"].as_array().expect("a list");
    let names: Vec<_> = sites.iter().map(|site| &site["name"]).collect();
    assert_eq!(names, ["b.test", "www.a.test"]);
    let [second, first] = &sites[..] else {
        panic!("two sites")
    };
    let not_found = "no such thing".len();
    assert_eq!(first["requests"], 5, "{first}");
    assert_eq!(first["classes"], json!({"2xx": 4, "4xx": 1}));
    assert_eq!((&first["hits"], &first["misses"]), (&json!(2), &json!(3)));
    assert_eq!(first["response_bytes"], 12 * 3 + 5 + not_found);
    assert_eq!(first["saved_bytes"], 12 * 2);
    assert_eq!(first["origin"]["responses"], 3);
    assert_eq!(first["origin"]["errors"], 0);
    assert_eq!(
        first["origin"]["url"],
        format!("http://{}/", origin.address)
    );
    assert!(first["latency"]["p95_ms"].as_f64() > first["latency"]["median_ms"].as_f64());
    assert_eq!(
        (&first["dry_run"], &second["dry_run"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(
        (&second["requests"], &second["hits"]),
        (&json!(1), &json!(0))
    );
    let idle = json!({"url": null, "responses": 0, "errors": null, "latency": {"median_ms": null, "p95_ms": null}});
    assert_eq!(numbers["third_party"], idle);
    assert_eq!(numbers["cache"]["memory"]["objects"], 1);
    assert_eq!(numbers["cache"]["disk"], Value::Null);
}

#[tokio::test]
async fn head_adds_a_request_and_no_bytes() {
    let origin = origin();
    let proxy = accelerator_of(&config(&origin, ""));
    visit(&proxy, Method::GET, "www.a.test", "/stored").await;
    visit(&proxy, Method::HEAD, "www.a.test", "/stored").await;
    let numbers = numbers(&admin(&proxy)).await;
    let site = &numbers["sites"][1];
    assert_eq!((&site["requests"], &site["hits"]), (&json!(2), &json!(1)));
    assert_eq!(
        (&site["response_bytes"], &site["saved_bytes"]),
        (&json!(12), &json!(0))
    );
}

#[tokio::test]
async fn counters_of_a_site_survive_a_reload_under_the_same_first_name() {
    let origin = origin();
    let proxy = accelerator_of(&config(&origin, ""));
    visit(&proxy, Method::GET, "www.a.test", "/stored").await;
    let site = |name: &str| {
        let sites = proxy.origins.sites();
        sites.find(name).expect("the site is configured").clone()
    };
    let before = site("www.a.test");
    read_again(&proxy, &config(&origin, "compress_private = true\n"));
    visit(&proxy, Method::GET, "a.test", "/stored").await;
    assert_eq!(site("a.test").counters.load().requests(), 2);
    assert_eq!(site("b.test").counters.load().requests(), 0);
    // A request that began before the reload is counted, too.
    assert!(Arc::ptr_eq(&before.counters, &site("a.test").counters));
    assert!(Arc::ptr_eq(&site("www.a.test"), &site("a.test")));

    let renamed = config(&origin, "").replace("'www.a.test', 'a.test'", "'a.test', 'www.a.test'");
    read_again(&proxy, &renamed);
    assert_eq!(site("www.a.test").counters.load().requests(), 0);
}

#[tokio::test]
async fn an_unreachable_origin_is_an_error_of_its_site() {
    let proxy = accelerator_of("[[site]]\nnames = ['a.test']\norigin = 'http://127.0.0.1:1'\n");
    let status = visit(&proxy, Method::GET, "a.test", "/").await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    let numbers = numbers(&admin(&proxy)).await;
    let site = &numbers["sites"][0];
    assert_eq!(site["origin"]["errors"], 1, "{site}");
    assert_eq!((&site["hits"], &site["misses"]), (&json!(0), &json!(0)));
    assert_eq!(site["classes"], json!({"5xx": 1}));
    assert_eq!(numbers["origin_outcomes"], json!({"connect-error": 1}));
}

#[tokio::test]
async fn dashboard_lists_pages_with_the_reason_in_words() {
    let origin = origin();
    let proxy = accelerator_of(&config(&origin, ""));
    for target in ["/page", "/as-is"] {
        visit(&proxy, Method::GET, "b.test", target).await;
        let url = format!("https://b.test:8443{target}");
        crate::support::until("the page is reported", || {
            proxy.pages.reports.of(&url).is_some()
        })
        .await;
    }
    let numbers = numbers(&admin(&proxy)).await;
    let page = |nth: usize| {
        let page = &numbers["pages"][nth];
        ["dry_run", "proxied", "skipped", "skip_message"].map(|key| page[key].clone())
    };
    assert_eq!(page(1), [json!(true), json!(1), json!(1), Value::Null]);
    assert_eq!(page(0)[3], "Cache-Control has no-transform");
}

#[tokio::test]
async fn dashboard_shows_when_certificates_expire() {
    let origin = origin();
    let proxy = accelerator_of(&config(&origin, ""));
    let now = SystemTime::now();
    let admin = admin(&proxy).with_certificates(Arc::new(move || {
        vec![
            ("a.test".to_owned(), Some(now + Duration::from_secs(7200))),
            ("b.test".to_owned(), None),
            ("c.test".to_owned(), Some(SystemTime::UNIX_EPOCH)),
        ]
    }));
    let numbers = numbers(&admin).await;
    let left = |nth: usize| numbers["certificates"][nth]["left_s"].clone();
    let hours = left(0).as_u64().expect("a number");
    assert!((7000..=7200).contains(&hours), "{hours}");
    assert_eq!((left(1), left(2)), (Value::Null, json!(0)));
}

/// The page itself has no data, so that a browser can load it. Its policy allows no other host, no inline script and no frame.
#[tokio::test]
async fn only_the_page_without_data_is_served_without_the_token() {
    let proxy =
        accelerator_of("[[site]]\nnames = ['secret.test']\norigin = 'http://127.0.0.1:1'\n");
    let admin = admin(&proxy);
    for (path, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/dashboard.css", "text/css; charset=utf-8"),
        ("/dashboard.js", "text/javascript; charset=utf-8"),
    ] {
        let (status, headers, text) = ask(&admin, Method::GET, path, None).await;
        assert_eq!(
            (status, &headers["content-type"]),
            (StatusCode::OK, &kind.parse().unwrap())
        );
        assert!(!text.contains("secret.test"), "{path}");
        let policy = headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; "),
            "{policy}"
        );
        assert!(
            policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"),
            "{policy}"
        );
        assert!(
            !text.contains("http://") && !text.contains("https://"),
            "{path} names another host"
        );
        let (status, headers, _) = ask(&admin, Method::POST, path, Some(TOKEN)).await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(headers["allow"], "GET, HEAD");
        let foreign = format!("http://evil.test{path}");
        let (status, ..) = ask(&admin, Method::GET, &foreign, Some(TOKEN)).await;
        assert_eq!(status, StatusCode::MISDIRECTED_REQUEST, "{foreign}");
    }
    for token in [None, Some(""), Some("a token of the operatoR")] {
        let (status, _, text) = ask(&admin, Method::GET, "/dashboard.json", token).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "{token:?}");
        assert!(!text.contains("secret.test"), "{text}");
    }
    let (status, headers, _) = ask(&admin, Method::GET, "/dashboard.json", Some(TOKEN)).await;
    assert_eq!(
        (status, &headers["cache-control"]),
        (StatusCode::OK, &"no-store".parse().unwrap())
    );
    let (status, ..) = ask(&admin, Method::POST, "/dashboard.json", Some(TOKEN)).await;
    assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED);
    let (status, ..) = ask(&admin, Method::GET, "/other", Some(TOKEN)).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
