//! A site with several names, at several doors: all of them are its own, and its pages hold under each.

use std::sync::Arc;

use http::{HeaderValue, Request};
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::handler::{Handler, RequestInfo};
use spdy_net::protocol::Protocol;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::serve::connection::ConnectionHandler;

use crate::support::fields::{FRESH, HTML};
use crate::support::{
    self, CollectedResponse, Origin, accelerator_of, collect_response, pages, read_again, until,
};

/// `www.site.test` over TLS, which is `site.test` too, before `own`.
fn before(own: &Origin) -> Arc<Proxy> {
    let origin = own.address;
    accelerator_of(&format!(
        "[listen]\ntls = ['127.0.0.1:443']\nplain = ['127.0.0.1:80']\n\
         [[site]]\nnames = ['www.site.test', 'site.test']\norigin = 'http://{origin}'\n\
         [site.rewrite]\ndiscover = true\nown_hosts = ['img.site.test']\n[[site.rewrite.hosts]]\nhost = 'cdn.test'\n"
    ))
}

/// The response for `target` in a browser at `origin`.
async fn get_at(proxy: &Arc<Proxy>, origin: &str, target: &str) -> CollectedResponse {
    let (scheme, authority) = origin.split_once("://").expect("an origin");
    let arrival = RequestInfo {
        protocol: Protocol::Http1,
        secure: scheme == "https",
        priority: Priority::HIGHEST,
    };
    let request = Request::get(target).header("host", authority);
    let request = request.extension(arrival).body(Body::empty());
    collect_response(proxy, request.expect("a request"), 1).await
}

#[tokio::test]
async fn resources_under_another_site_name_are_same_site() {
    let html = "<img src=https://site.test/logo.png><img src=https://www.site.test/a.png>";
    let own = Origin::start(pages(&[("/", &[HTML, FRESH], html)]));
    let page = get_at(&before(&own), "https://www.site.test", "/").await;
    assert_eq!(page.text(), html);
}

/// A page is for the origin from which its browser has it, stored or not, with TLS or without: only there its policy allows moved
/// resources.
#[tokio::test]
async fn page_works_under_each_name_and_port() {
    let html = "<base href=https://elsewhere.test/><img src=https://cdn.test/a.png>";
    let policy = ("content-security-policy", "img-src https://cdn.test");
    let own = Origin::start(pages(&[("/", &[HTML, FRESH, policy], html)]));
    let proxy = before(&own);
    let homes = [
        "https://www.site.test",
        "https://site.test",
        "http://site.test",
        "https://www.site.test:8443",
    ];
    for _ in ["fetched", "kept"] {
        for home in homes {
            let proxied_prefix = format!("{home}/.spdy/1/-/s/cdn.test/");
            let page = get_at(&proxy, home, "/").await;
            let policy = page.field("content-security-policy");
            assert_eq!(policy, format!("img-src https://cdn.test {proxied_prefix}"));
            assert!(
                page.text()
                    .ends_with(&format!("<img src=\"{proxied_prefix}a.png\">"))
            );
        }
    }
    assert_eq!(own.times("/"), homes.len());
}

/// The browser requests it by that name, which has a cache entry of its own.
#[tokio::test]
async fn reference_to_another_site_name_is_not_prefetched() {
    let html =
        "<link rel=stylesheet href=https://site.test/a.css><link rel=stylesheet href=/b.css>";
    let css = ("content-type", "text/css");
    let own = Origin::start(pages(&[
        ("/", &[HTML, FRESH], html),
        ("/a.css", &[css, FRESH], ""),
        ("/b.css", &[css, FRESH], ""),
    ]));
    let proxy = before(&own);
    get_at(&proxy, "https://www.site.test", "/").await;
    until("what is its own is fetched", || own.times("/b.css") > 0).await;
    assert_eq!(own.times("/a.css"), 0);
}

/// Under either name it is rewritten, and the browser would refuse it by the hash that the page pins. What is the site's by its operator's
/// word alone is not served here.
#[tokio::test]
async fn pinned_stylesheet_of_another_name_is_requested_unrewritten() {
    let html = "<link rel=stylesheet crossorigin integrity=sha256-LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ= href=HREF>";
    let origin = "https://www.site.test";
    for (href, marked) in [
        ("https://site.test/a.css", Some("https://site.test/a.css")),
        (
            "https://www.site.test/a.css",
            Some("https://www.site.test/a.css"),
        ),
        ("http://site.test/a.css", Some("https://site.test/a.css")),
        ("http://www.site.test/a.css", Some("/a.css")),
        ("https://site.test:444/a.css", None),
        ("http://site.test:81/a.css", None),
        ("https://img.site.test/a.css", None),
        ("http://img.site.test/a.css", None),
    ] {
        let html = html.replace("HREF", href);
        let text = html.clone();
        let own = Origin::start(move |request: Request<bytes::Bytes>| {
            std::future::ready(match request.uri().path() {
                "/" => support::respond(&[HTML, FRESH], text.clone()),
                _ => support::respond(&[("content-type", "text/css"), FRESH], "p { }"),
            })
        });
        let page = get_at(&before(&own), origin, "/").await;
        let expected = match marked {
            Some(marked) => html.replace(href, &format!("\"{marked}?spdy=off\"")),
            None => html,
        };
        assert_eq!(page.text(), expected);
    }
}

/// The `Link` fields that a browser at `origin` gets with the page over SPDY without pushes.
async fn hints(proxy: &Arc<Proxy>, origin: &str) -> Vec<String> {
    let (_, authority) = origin.split_once("://").expect("an origin");
    let arrival = RequestInfo {
        protocol: Protocol::Spdy(Version::V31),
        secure: true,
        priority: Priority::HIGHEST,
    };
    let request = Request::get("/").header("host", authority);
    let request = request.header("accept", "text/html").extension(arrival);
    let request = request.body(Body::empty()).expect("a request");
    let response = ConnectionHandler::new(proxy.clone(), None, None)
        .answer(request)
        .await;
    let (head, body) = response.into_parts();
    body.collect_up_to(1 << 20)
        .await
        .expect("the body is complete");
    let links = head.headers.get_all("link").into_iter();
    let link = |link: &HeaderValue| link.to_str().expect("ASCII").to_owned();
    links.map(link).collect()
}

/// The one had the links of the other, whichever came last, though neither is where the other's sheet is.
#[tokio::test]
async fn hints_use_the_requested_site_name() {
    let html = "<link rel=stylesheet href=https://www.site.test/www.css>\
                <link rel=stylesheet href=https://site.test/bare.css><script type=module src=/own.mjs></script>";
    let own = Origin::start(pages(&[("/", &[HTML, FRESH], html)]));
    let proxy = before(&own);
    let origins = ["https://www.site.test", "https://site.test"];
    for origin in origins {
        assert_eq!(hints(&proxy, origin).await, [""; 0], "nothing is known");
    }
    for (origin, sheet) in origins.into_iter().zip(["www", "bare"]) {
        let hint = |url: &str, destination| {
            format!("<{url}>; rel=\"subresource preload\"; as={destination}")
        };
        let expected = [
            hint(&format!("/{sheet}.css"), "style"),
            hint("/own.mjs", "script; crossorigin"),
        ];
        let actual = support::until_some("the page is known", async || {
            let actual = hints(&proxy, origin).await;
            (!actual.is_empty()).then_some(actual)
        });
        assert_eq!(actual.await, expected, "{origin}");
    }
}

/// Behind a port translation, clients cannot reach the port of the listener.
#[tokio::test]
async fn alt_svc_uses_the_public_port_and_follows_reload() {
    let own = Origin::start(pages(&[("/", &[FRESH, HTML], "")]));
    let text = |port: &str| {
        let origin = own.address;
        format!(
            "[listen]\ntls = ['0.0.0.0:8443']\n{port}\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n"
        )
    };
    let proxy = accelerator_of(&text("public_port = 443"));
    let door = HeaderValue::from_static("h3=\":8443\"; ma=3600");
    let [over_tls, plain] =
        [Some(door), None].map(|door| ConnectionHandler::new(proxy.clone(), None, door));
    let alt_svc = async |visit: &ConnectionHandler| {
        let request = Request::get("/").header("host", "www.site.test");
        let request = request.body(Body::empty()).expect("a request");
        let response = visit.answer(request).await;
        let alt_svc = response.headers().get("alt-svc");
        alt_svc.map(|alt_svc| alt_svc.to_str().expect("the value is ASCII").to_owned())
    };
    let at = |port: u16| Some(format!("h3=\":{port}\"; ma=3600"));
    assert_eq!(alt_svc(&over_tls).await, at(443));
    assert_eq!(alt_svc(&plain).await, None, "it is not spoken there");
    for (port, expected) in [("public_port = 444", 444), ("", 8443)] {
        read_again(&proxy, &text(port));
        assert_eq!(
            alt_svc(&over_tls).await,
            at(expected),
            "over the same connection"
        );
    }
}

#[tokio::test]
async fn resolve_applies_to_site_origin_names() {
    let own = Origin::start(pages(&[("/", &[FRESH, HTML], "found")]));
    let port = own.address.port();
    for keep_host in [false, true] {
        let proxy = accelerator_of(&format!(
            "[upstream.resolve]\n'Origin.site.test' = '127.0.0.1'\n\
             [[site]]\nnames = ['www.site.test']\norigin = 'http://origin.site.test:{port}'\nkeep_host = {keep_host}\n"
        ));
        let response = get_at(&proxy, "https://www.site.test", "/").await;
        assert_eq!((response.status.as_u16(), response.text()), (200, "found"));
    }
}

/// Six pictures of a page left its session.
#[tokio::test]
async fn http_site_urls_on_https_page_use_https() {
    let html = "<img src=http://www.site.test/a.png><img src=http://site.test/b.png><a href=http://www.site.test/>";
    let sheet = "p { background: url(http://www.site.test/c.png) }";
    let link = (
        "link",
        "<http://www.site.test/d.css>; rel=preload; as=style",
    );
    let css = ("content-type", "text/css");
    let own = Origin::start(pages(&[
        ("/", &[HTML, FRESH, link], html),
        ("/a.css", &[css, FRESH], sheet),
        ("/d.css", &[css, FRESH], ""),
    ]));
    let proxy = before(&own);
    for _ in ["fetched", "kept"] {
        let page = get_at(&proxy, "https://www.site.test", "/").await;
        let expected = "<img src=\"/a.png\"><img src=\"https://site.test/b.png\"><a href=http://www.site.test/>";
        assert_eq!(page.text(), expected);
        assert_eq!(page.field("link"), "</d.css>; rel=preload; as=style");
        let sheet = get_at(&proxy, "https://www.site.test", "/a.css").await;
        assert_eq!(sheet.text(), "p { background: url(/c.png) }");
    }
    until("it is fetched ahead", || own.times("/d.css") > 0).await;
    let report = proxy
        .pages
        .reports
        .of("https://www.site.test/")
        .expect("the page has a report");
    let report = serde_json::to_value(&report).expect("the report is JSON");
    assert_eq!(report["aliased"], 0);
    let hosts = &report["hosts"];
    assert_eq!(hosts["http://www.site.test"]["proxied"], 2, "{report}");
    assert_eq!(hosts["http://site.test"]["proxied"], 1, "{report}");
    let plain = get_at(&proxy, "http://www.site.test", "/").await;
    assert_eq!(plain.text(), html, "it came over http itself");
}

/// Of an origin that knows nothing of TLS.
#[tokio::test]
async fn redirect_to_http_site_becomes_https() {
    let own = Origin::start(move |request: Request<bytes::Bytes>| {
        let to = request.uri().query().unwrap_or_default().to_owned();
        let mut response = support::respond(&[("location", to.as_str())], "");
        *response.status_mut() = http::StatusCode::FOUND;
        std::future::ready(response)
    });
    let proxy = before(&own);
    for (home, to, expected) in [
        (
            "https://www.site.test",
            "http://www.site.test/b",
            "https://www.site.test/b",
        ),
        (
            "https://site.test",
            "http://www.site.test/b",
            "https://www.site.test/b",
        ),
        (
            "https://site.test:8443",
            "http://www.site.test/",
            "https://www.site.test:8443/",
        ),
        (
            "http://www.site.test",
            "http://site.test/b",
            "http://site.test/b",
        ),
        (
            "https://www.site.test",
            "http://site.test:81/b",
            "http://site.test:81/b",
        ),
        (
            "https://www.site.test",
            "http://img.site.test/b",
            "http://img.site.test/b",
        ),
        (
            "https://www.site.test",
            "http://elsewhere.test/b",
            "http://elsewhere.test/b",
        ),
    ] {
        let client_response = get_at(&proxy, home, &format!("/a?{to}")).await;
        assert_eq!(client_response.field("location"), expected, "{home}");
    }
    // It would lead in a circle.
    let circle = Origin::start(pages(&[(
        "/a",
        &[("location", "http://www.site.test/a")],
        "",
    )]));
    let client_response = get_at(&before(&circle), "https://www.site.test", "/a").await;
    assert_eq!(client_response.field("location"), "http://www.site.test/a");
}

/// A site with a wildcard, and another site with a name below it.
fn with_wildcard(own: &Origin, other: &Origin) -> Arc<Proxy> {
    let (own, other) = (own.address, other.address);
    accelerator_of(&format!(
        "[listen]\ntls = ['127.0.0.1:443']\nplain = ['127.0.0.1:80']\n\
         [[site]]\nnames = ['www.site.test', '*.site.test']\norigin = 'http://{own}'\n\
         [site.rewrite]\ndiscover = true\n[[site.rewrite.hosts]]\nhost = 'cdn.test'\n\
         [[site]]\nnames = ['img.site.test']\norigin = 'http://{other}'\n"
    ))
}

#[tokio::test]
async fn pages_below_a_wildcard_are_rewritten_and_its_hosts_are_no_third_parties() {
    let html = "<img src=https://shop.site.test/a.png><img src=http://blog.site.test/b.png>\
                <img src=https://img.site.test/c.png><img src=https://cdn.test/d.png>";
    let own = Origin::start(pages(&[("/", &[HTML, FRESH], html)]));
    let other = Origin::start(pages(&[("/", &[HTML, FRESH], "other")]));
    let proxy = with_wildcard(&own, &other);
    let page = get_at(&proxy, "https://shop.site.test", "/").await;
    assert_eq!(
        page.text(),
        "<img src=https://shop.site.test/a.png><img src=\"https://blog.site.test/b.png\">\
         <img src=https://img.site.test/c.png><img src=\"/.spdy/1/-/s/cdn.test/d.png\">"
    );
    let page = get_at(&proxy, "https://img.site.test", "/").await;
    assert_eq!(page.text(), "other", "a complete name has precedence");
    for host in ["site.test", "a.b.site.test", "user@shop.site.test"] {
        let page = get_at(&proxy, &format!("https://{host}"), "/").await;
        assert_eq!(page.status, 421, "{host}");
    }
}

/// The origin gets the requested name in `X-Forwarded-Host`, and its response may depend on it.
#[tokio::test]
async fn each_name_below_a_wildcard_has_its_own_stored_response() {
    let own = Origin::start(pages(&[("/", &[HTML, FRESH], "page")]));
    let other = Origin::start(pages(&[]));
    let proxy = with_wildcard(&own, &other);
    let homes = [
        "https://www.site.test",
        "https://a.site.test",
        "https://b.site.test",
    ];
    for _ in ["fetched", "stored"] {
        for home in homes {
            get_at(&proxy, home, "/").await;
        }
        assert_eq!(own.times("/"), homes.len());
    }
    let purge = r#"{"url": "https://a.site.test/"}"#;
    let purge = serde_json::from_str(purge).expect("a purge");
    proxy.purge(&purge).expect("a valid purge");
    for home in homes {
        get_at(&proxy, home, "/").await;
    }
    assert_eq!(own.times("/"), 2 * homes.len(), "a purge is for all names");
}

#[tokio::test]
async fn redirect_to_http_below_a_wildcard_becomes_https() {
    let own = Origin::start(move |request: Request<bytes::Bytes>| {
        let to = request.uri().query().unwrap_or_default().to_owned();
        let mut response = support::respond(&[("location", to.as_str())], "");
        *response.status_mut() = http::StatusCode::FOUND;
        std::future::ready(response)
    });
    let other = Origin::start(pages(&[]));
    let proxy = with_wildcard(&own, &other);
    for (to, expected) in [
        ("http://blog.site.test/b", "https://blog.site.test/b"),
        ("http://a.b.site.test/b", "http://a.b.site.test/b"),
        ("http://other.test/b", "http://other.test/b"),
    ] {
        let response = get_at(&proxy, "https://shop.site.test", &format!("/?{to}")).await;
        assert_eq!(response.field("location"), expected);
    }
}
