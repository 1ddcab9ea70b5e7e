//! Resources of other hosts that fail: their hosts are contacted once in a while, however many clients request them.

use std::sync::Arc;

use http::{Method, StatusCode};
use spdy_proxy::proxy::Proxy;
use spdy_proxy::telemetry::counters::CounterFamily;
use tokio::sync::Semaphore;

use crate::support::fields::{FRESH, PNG};
use crate::support::{
    CollectedResponse, Origin, accelerator_of, get, pages, respond, send_request, until,
};

const IMAGE: [(&str, &str); 3] = [
    ("sec-fetch-dest", "image"),
    ("sec-fetch-mode", "no-cors"),
    ("sec-fetch-site", "same-origin"),
];

/// The same without stating that a page loads it.
const OPENED: [(&str, &str); 1] = [("sec-fetch-mode", "no-cors")];

/// The accelerator that moves images of port `port`.
fn moving(port: u16) -> Arc<Proxy> {
    accelerator_of(&format!(
        "[upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://127.0.0.1:9'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image']\n"
    ))
}

async fn get_proxied(
    proxy: &Arc<Proxy>,
    port: u16,
    path: &str,
    fields: &[(&str, &str)],
) -> CollectedResponse {
    get(
        proxy,
        &format!("/.spdy/1/-/p/cdn.test~{port}{path}"),
        fields,
    )
    .await
}

fn purge(proxy: &Proxy, wish: &str) {
    let wish = serde_json::from_str(wish).expect("a purge");
    proxy.purge(&wish).expect("a valid value");
}

#[tokio::test]
async fn missing_resource_is_requested_once_until_purged() {
    let other = Origin::start(pages(&[]));
    let port = other.address.port();
    let proxy = moving(port);
    // The result of another method does not apply to this one.
    let target = format!("/.spdy/1/-/p/cdn.test~{port}/a.png");
    send_request(&proxy, Method::HEAD, &target, &IMAGE, "").await;
    let first = get_proxied(&proxy, port, "/a.png", &IMAGE).await;
    assert_eq!(first.status, StatusCode::NOT_FOUND);
    for fields in [&IMAGE[..], &OPENED] {
        let again = get_proxied(&proxy, port, "/a.png", fields).await;
        assert_eq!(again.status, StatusCode::NOT_FOUND);
        assert_eq!(again.field("cache-status"), "spdy; hit; detail=negative");
    }
    assert_eq!(other.times("/a.png"), 1);
    // A part of it may be there.
    get_proxied(&proxy, port, "/a.png", &[OPENED[0], ("range", "bytes=0-3")]).await;
    assert_eq!(other.times("/a.png"), 2);
    for wish in [
        format!("{{\"url\": \"http://cdn.test:{port}/a.png\"}}"),
        "{\"site\": \"www.site.test\"}".to_owned(),
        "{\"tag\": \"any\", \"site\": \"www.site.test\"}".to_owned(),
    ] {
        let before = other.times("/a.png");
        purge(&proxy, &wish);
        get_proxied(&proxy, port, "/a.png", &IMAGE).await;
        assert_eq!(other.times("/a.png"), before + 1, "{wish}");
    }
    // A tag may be any thing's, so a URL, which ends what redirects led to from it, is no example.
    let another = format!("{{\"prefix\": \"http://cdn.test:{port}/b\"}}");
    purge(&proxy, &another);
    let before = other.times("/a.png");
    get_proxied(&proxy, port, "/a.png", &IMAGE).await;
    assert_eq!(other.times("/a.png"), before, "another was purged");
}

#[tokio::test]
async fn client_specific_error_is_not_cached() {
    let other = Origin::start(pages(&[]));
    let proxy = moving(other.address.port());
    let looped = [IMAGE[0], IMAGE[1], IMAGE[2], ("cdn-loop", "cdn; loops=16")];
    for times in [1, 2] {
        let response = get_proxied(&proxy, other.address.port(), "/a.png", &looped).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND);
        assert_eq!(other.times("/a.png"), times);
    }
    let response = get_proxied(&proxy, other.address.port(), "/a.png", &IMAGE).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
    assert_eq!(other.times("/a.png"), 3);
}

#[tokio::test]
async fn unreachable_host_is_contacted_once_per_resource() {
    // No server listens there.
    let proxy = moving(1);
    for _ in 0..3 {
        let response = get_proxied(&proxy, 1, "/a.png", &OPENED).await;
        assert_eq!(response.status, StatusCode::BAD_GATEWAY);
        let proxy_status = response.field("proxy-status");
        assert_eq!(proxy_status, "spdy; error=connection_refused");
    }
    // For another client the remembered failure is judged by how it loads the resource.
    let response = get_proxied(&proxy, 1, "/a.png", &IMAGE).await;
    assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(response.field("cache-status"), "spdy; hit; detail=negative");
    assert_eq!(
        proxy.telemetry.counters.read(CounterFamily::Origins),
        [("connect-error", 1)]
    );
    // Of another thing nothing is known.
    get_proxied(&proxy, 1, "/b.png", &IMAGE).await;
    assert_eq!(
        proxy.telemetry.counters.read(CounterFamily::Origins),
        [("connect-error", 2)]
    );
}

#[tokio::test]
async fn negative_entry_is_evaluated_per_request() {
    let policy = ("cross-origin-resource-policy", "same-site");
    let other = Origin::start(pages(&[("/own.png", &[PNG, FRESH, policy], "a picture")]));
    let port = other.address.port();
    let proxy = moving(port);
    for _ in 0..2 {
        let response = get_proxied(&proxy, port, "/own.png", &IMAGE).await;
        assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT);
        let response = get_proxied(&proxy, port, "/own.png", &OPENED).await;
        assert_eq!(
            response.status,
            StatusCode::NOT_FOUND,
            "the client may open the host itself"
        );
    }
    assert_eq!(other.times("/own.png"), 1);
}

#[tokio::test]
async fn waiters_of_a_failed_fetch_use_the_negative_entry() {
    let gate = Arc::new(Semaphore::new(0));
    let permits = gate.clone();
    let other = Origin::start(move |_| {
        let permits = permits.clone();
        async move {
            permits
                .acquire()
                .await
                .expect("the semaphore is never closed")
                .forget();
            let mut response = respond(&[], "no such thing");
            *response.status_mut() = StatusCode::GONE;
            response
        }
    });
    let port = other.address.port();
    let proxy = moving(port);
    let spawn_request = || {
        let proxy = proxy.clone();
        tokio::spawn(async move { get_proxied(&proxy, port, "/a.png", &IMAGE).await.status })
    };
    let first = spawn_request();
    until("it is requested", || other.times("/a.png") == 1).await;
    let others: Vec<_> = (0..5).map(|_| spawn_request()).collect();
    gate.add_permits(6);
    for going in std::iter::once(first).chain(others) {
        assert_eq!(going.await.expect("no panic"), StatusCode::GONE);
    }
    assert_eq!(other.times("/a.png"), 1);
}
