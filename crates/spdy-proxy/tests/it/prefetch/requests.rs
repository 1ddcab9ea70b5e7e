//! Prefetching: with the headers of the later request, and not if it is useless.

use spdy_proxy::proxy::Proxy;
use spdy_proxy::telemetry::counters::CounterFamily;

use crate::support::fields::FRESH;
use crate::support::{Origin, accelerator, accelerator_of, get, respond, until, until_some};

const BROWSER: (&str, &str) = ("user-agent", "Browser/1");
const IMAGE: [(&str, &str); 3] = [
    BROWSER,
    ("accept", "image/avif,image/webp,*/*"),
    ("sec-fetch-dest", "image"),
];
const PAGE: [(&str, &str); 3] = [
    BROWSER,
    ("accept", "text/html,image/avif,*/*;q=0.8"),
    ("sec-fetch-dest", "document"),
];

fn preload_count(proxy: &Proxy, name: &str) -> u64 {
    let all = proxy.telemetry.counters.read(CounterFamily::Preloads);
    let counter = all.iter().find(|(label, _)| *label == name);
    counter.map_or(0, |(_, count)| *count)
}

/// A site whose private page names `names`; images are in the format that `Accept` prefers.
fn origin(names: &'static [&'static str]) -> Origin {
    Origin::start(move |request: http::Request<bytes::Bytes>| {
        let accept = request.headers().get("accept");
        let accept = accept.map_or("", |accept| accept.to_str().expect("ASCII"));
        let accepts_avif = accept.contains("image/avif");
        let image = ("content-type", "image/png");
        std::future::ready(match request.uri().path() {
            "/" => {
                let text: String = names
                    .iter()
                    .map(|name| format!("<img src={name}>"))
                    .collect();
                respond(
                    &[("content-type", "text/html"), ("cache-control", "private")],
                    text,
                )
            }
            "/nobodys.png" => respond(&[image, ("cache-control", "no-store")], "x"),
            "/stale.png" => respond(&[image, ("cache-control", "max-age=0")], "x"),
            _ => respond(
                &[image, FRESH, ("vary", "accept")],
                if accepts_avif { "avif" } else { "png" },
            ),
        })
    })
}

#[tokio::test]
async fn image_prefetch_uses_the_browser_accept() {
    let origin = origin(&["/a.png", "/b.png"]);
    let proxy = accelerator(&origin, "");
    // The formats that the client accepts are not known yet.
    get(&proxy, "/", &PAGE).await;
    until("both are fetched", || {
        preload_count(&proxy, "prefetched") >= 2
            && origin.times("/a.png") + origin.times("/b.png") >= 2
    })
    .await;
    assert!(!origin.fields("/a.png").contains_key("accept"));
    assert_eq!(get(&proxy, "/a.png", &IMAGE).await.text(), "avif");
    assert_eq!(
        origin.times("/a.png"),
        2,
        "another format was fetched ahead"
    );

    // Now it is known, and for another page it is fetched as it is wanted.
    let purge = serde_json::from_str(r#"{"site": "www.site.test"}"#).expect("a purge");
    proxy.purge(&purge).expect("the purge is valid");
    get(&proxy, "/", &PAGE).await;
    until("both are fetched as they are wanted", || {
        origin.times("/a.png") >= 3 && origin.times("/b.png") >= 2
    })
    .await;
    assert_eq!(origin.fields("/b.png")["accept"], IMAGE[1].1);
    for name in ["/a.png", "/b.png"] {
        assert_eq!(get(&proxy, name, &IMAGE).await.text(), "avif");
    }
    assert_eq!((origin.times("/a.png"), origin.times("/b.png")), (3, 2));
    // The page's `Accept` is not the one for its images.
    let other = [("user-agent", "Browser/2"), PAGE[1], PAGE[2]];
    get(&proxy, "/", &other).await;
    until("it is fetched for another", || origin.times("/a.png") >= 4).await;
    assert!(!origin.fields("/a.png").contains_key("accept"));
}

/// What was fetched recently is not looked up again; a purge resets that.
#[tokio::test]
async fn purged_resource_is_prefetched_again_at_once() {
    let origin = origin(&["/a.png"]);
    let proxy = accelerator(&origin, "");
    get(&proxy, "/", &[]).await;
    until("it is fetched", || origin.times("/a.png") == 1).await;
    until_some("it is here", async || {
        let again = get(&proxy, "/a.png", &[]).await;
        again.field("cache-status").contains("hit").then_some(())
    })
    .await;
    get(&proxy, "/", &[]).await; // and finds it
    let purge = serde_json::from_str(r#"{"site": "www.site.test"}"#).expect("a purge");
    proxy.purge(&purge).expect("the purge is valid");
    get(&proxy, "/", &[]).await;
    until("it is fetched again", || origin.times("/a.png") == 2).await;
    assert_eq!(preload_count(&proxy, "prefetched"), 2);
}

#[tokio::test]
async fn unusable_prefetch_is_not_repeated() {
    let names = &[
        "/nobodys.png",
        "/stale.png",
        "/good.png",
        "http://gone.test:1/x.png",
    ];
    let origin = origin(names);
    let address = origin.address;
    let proxy = accelerator_of(&format!(
        "[upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [1]\nresolve = {{ 'gone.test' = '127.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{address}'\n\
         [[site.rewrite.hosts]]\nhost = 'gone.test:1'\nscheme = 'http'\nkinds = ['image']\n"
    ));
    get(&proxy, "/", &[]).await;
    until("all are fetched", || {
        preload_count(&proxy, "prefetched") >= 4
    })
    .await;
    // Until the last of them is known to be of no use a page may have it fetched once more.
    for futile in [1, 100] {
        until_some("it is known to be of no use", async || {
            get(&proxy, "/", &[]).await;
            (preload_count(&proxy, "backoff") >= futile).then_some(())
        })
        .await;
    }
    let fetched = preload_count(&proxy, "prefetched");
    assert!(fetched <= 8, "{fetched}");
    assert_eq!(origin.times("/good.png"), 1);
    assert!(origin.times("/nobodys.png") <= 2 && origin.times("/stale.png") == 1);
    assert!(origin.times("/") > 20, "{:?}", origin.request_lines());
}

fn limit_count(proxy: &Proxy, limit: &str) -> u64 {
    let all = proxy.telemetry.counters.read(CounterFamily::Limits);
    let counter = all.iter().find(|(label, _)| *label == limit);
    counter.map_or(0, |(_, count)| *count)
}

#[tokio::test]
async fn prefetches_of_page_and_its_stylesheets_share_a_budget() {
    let origin = Origin::start(|request: http::Request<bytes::Bytes>| {
        let path = request.uri().path().to_owned();
        std::future::ready(match path.strip_suffix(".css") {
            None if path == "/" => {
                let sheets =
                    ["a", "b", "c"].map(|name| format!("<link rel=stylesheet href={name}.css>"));
                respond(&[("content-type", "text/html")], sheets.concat())
            }
            None => respond(&[("content-type", "image/png"), FRESH], "x"),
            Some(sheet) => {
                let images =
                    (0..10).map(|name| format!("p {{ background: url({sheet}{name}.png) }}\n"));
                let text: String = images.collect();
                respond(&[("content-type", "text/css"), FRESH], text)
            }
        })
    });
    let proxy = accelerator(&origin, "[learn]\nprefetch_per_page = 5\n");
    get(&proxy, "/", &PAGE).await;
    // Three sheets, and of the thirty pictures that they name two.
    until("all are looked at", || {
        preload_count(&proxy, "prefetched") + limit_count(&proxy, "prefetch_per_page") >= 33
    })
    .await;
    assert_eq!(preload_count(&proxy, "prefetched"), 5);
    assert_eq!(limit_count(&proxy, "prefetch_per_page"), 28);
}

/// Each width of an image was fetched, and what is never fetched ahead used up what a page may have looked for.
#[tokio::test]
async fn candidates_are_not_prefetched_and_skips_cost_no_budget() {
    let origin = Origin::start(|request: http::Request<bytes::Bytes>| {
        let skipped = "<iframe src=/frame></iframe><img src=http://other.test/x.png>".repeat(40);
        let text = format!(
            "{skipped}<picture><source srcset='a.avif 1x, b.avif 2x'><img src=c.png srcset='d.png 1x, e.png 2x'></picture>\
             <style>p {{ background: image-set('f.png' 1x, url(g.png) 2x), url(h.png) }}</style><script src=last.js></script>"
        );
        std::future::ready(match request.uri().path() {
            "/" => respond(&[("content-type", "text/html")], text),
            _ => respond(&[("content-type", "image/png"), FRESH], "x"),
        })
    });
    let proxy = accelerator(&origin, "");
    get(&proxy, "/", &PAGE).await;
    // What is named before it is fetched before it.
    until("the last is fetched", || origin.times("/last.js") > 0).await;
    let mut requests = origin.request_lines();
    requests.sort();
    let expected = ["GET /", "GET /c.png", "GET /h.png", "GET /last.js"];
    assert_eq!(requests, expected);
}

#[tokio::test]
async fn one_page_may_use_all_of_its_prefetch_budget() {
    let origin = Origin::start(|request: http::Request<bytes::Bytes>| {
        let images = (0..200).map(|number| format!("<img src={number}.png>"));
        let text: String = images.collect();
        std::future::ready(match request.uri().path() {
            "/" => respond(&[("content-type", "text/html")], text),
            _ => respond(&[("content-type", "image/png"), FRESH], "x"),
        })
    });
    for (limit, expected) in [("", 128), ("[learn]\nprefetch_per_page = 150\n", 150)] {
        let proxy = accelerator(&origin, limit);
        get(&proxy, "/", &PAGE).await;
        until("all are looked for", || {
            preload_count(&proxy, "prefetched") + limit_count(&proxy, "prefetch_per_page") >= 200
        })
        .await;
        assert_eq!(preload_count(&proxy, "prefetched"), expected);
    }
}

#[tokio::test]
async fn concurrent_prefetches_are_limited_globally() {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let permits = gate.clone();
    let origin = Origin::start(move |request: http::Request<bytes::Bytes>| {
        let (permits, path) = (permits.clone(), request.uri().path().to_owned());
        async move {
            if path == "/" {
                let images = ["a", "b", "c"].map(|name| format!("<img src={name}.png>"));
                return respond(&[("content-type", "text/html")], images.concat());
            }
            permits
                .acquire()
                .await
                .expect("the semaphore is never closed")
                .forget();
            respond(&[("content-type", "image/png"), FRESH], "x")
        }
    });
    let proxy = accelerator(&origin, "[learn]\nprefetches = 1\n");
    get(&proxy, "/", &PAGE).await;
    until("the other requests exceed the limit", || {
        limit_count(&proxy, "prefetches") == 2
    })
    .await;
    // Another page waits for it no less.
    get(&proxy, "/", &PAGE).await;
    until("nor do those of another", || {
        limit_count(&proxy, "prefetches") >= 4
    })
    .await;
    assert_eq!(preload_count(&proxy, "prefetched"), 1);
    gate.add_permits(100);
    until_some("its place is free again", async || {
        get(&proxy, "/", &PAGE).await;
        (preload_count(&proxy, "prefetched") >= 3).then_some(())
    })
    .await;
}
