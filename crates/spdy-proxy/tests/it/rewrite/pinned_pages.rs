//! Pages that pin a sheet and are stored before its served text is known: they are rewritten again when it is known.

use http::{Request, Response, StatusCode};
use spdy::body::Body;
use spdy_proxy::cache::disk::store::DiskStore;
use spdy_rewrite::reference::integrity::{Digests, matches};

use crate::support::fields::{CSS, FRESH, HTML};
use crate::support::proxied_site::{Proxy, SHEET, SHEET_SHA256};
use crate::support::{CollectedResponse, Origin, accelerator_of, get, respond, until, until_some};

const STALE: (&str, &str) = ("cache-control", "max-age=0");
const ETAG: (&str, &str) = ("etag", "\"one\"");

/// The accelerator before `own`, which moves sheets of `cdn.test`, at `other`, and images and sheets of its port 80.
fn before(own: &Origin, other: &Origin) -> Proxy {
    let (origin, port) = (own.address, other.address.port());
    accelerator_of(&format!(
        "[listen]\ntls = []\nplain = ['127.0.0.1:80']\n\
         [upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['style']\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test'\nscheme = 'http'\nkinds = ['image', 'style']\n"
    ))
}

fn other() -> Origin {
    let anybody = ("access-control-allow-origin", "*");
    Origin::start(move |_| std::future::ready(respond(&[CSS, FRESH, anybody], SHEET)))
}

/// A site with one page, which pins the sheet at `cdn` and is answered by these fields, or by 304.
fn site(cdn: &str, freshness: (&'static str, &'static str)) -> Origin {
    let text = page(&format!("'{cdn}/s.css'"), &format!("'{SHEET_SHA256}'"));
    Origin::start(move |request: Request<bytes::Bytes>| {
        let is_revalidation = request.headers().contains_key("if-none-match");
        std::future::ready(match is_revalidation {
            true => not_modified(freshness),
            false => respond(&[HTML, ETAG, freshness], text.clone()),
        })
    })
}

fn not_modified(freshness: (&'static str, &'static str)) -> Response<Body> {
    let mut response = respond(&[ETAG, freshness], "");
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

fn page(href: &str, hash: &str) -> String {
    format!("<link rel=stylesheet crossorigin integrity={hash} href={href}><p>Text")
}

/// The sheet as it is served under the site's name, when that is known here.
async fn sheet(proxy: &Proxy, other: &Origin) -> (String, CollectedResponse) {
    until("it is fetched ahead", || other.times("/s.css") == 1).await;
    let path = format!("/.spdy/1/-/p/cdn.test~{}/s.css", other.address.port());
    let sheet = get(proxy, &path, &[]).await;
    assert!(sheet.text().contains("url(/.spdy/1/-/p/cdn.test/b.png)"));
    (path, sheet)
}

/// The page after `first` as it was rewritten again: in the background, so `first` is served until then.
async fn rewritten_again(proxy: &Proxy, first: &CollectedResponse) -> CollectedResponse {
    until_some("the page is rewritten again", async || {
        let page = get(proxy, "/", &[]).await;
        let cache_status = page.field("cache-status");
        assert!(cache_status.starts_with("spdy; hit"), "{page:?}");
        (page.text() != first.text()).then_some(page)
    })
    .await
}

/// Checks that `page` names the sheet at `path` by the hash of what is served there.
fn assert_rewritten(page: &CollectedResponse, path: &str, sheet: &CollectedResponse) {
    let text = page.text();
    assert!(text.contains(&format!("href=\"{path}\"")), "{text}");
    let hash = text
        .split("integrity=\"")
        .nth(1)
        .expect("the page has another pin");
    let hash = hash.split('"').next().expect("a hash");
    assert!(
        matches(hash, &Digests::of(sheet.text().as_bytes())),
        "{text}"
    );
}

#[tokio::test]
async fn fresh_page_is_refetched_once_pinned_stylesheet_is_known() {
    let other = other();
    let cdn = format!("http://cdn.test:{}", other.address.port());
    let own = site(&cdn, FRESH);
    let proxy = before(&own, &other);
    let first = get(&proxy, "/", &[]).await;
    assert_eq!(
        first.text(),
        page(&format!("'{cdn}/s.css'"), &format!("'{SHEET_SHA256}'"))
    );
    let (path, sheet) = sheet(&proxy, &other).await;
    let second = rewritten_again(&proxy, &first).await;
    assert_rewritten(&second, &path, &sheet);
    assert_eq!(own.times("/"), 2);
    for _ in 0..3 {
        let hit = get(&proxy, "/", &[]).await;
        assert!(
            hit.field("cache-status").starts_with("spdy; hit"),
            "{hit:?}"
        );
        assert_eq!(hit.text(), second.text());
    }
    assert_eq!(own.times("/"), 2, "once for what became known");
    // A client that has the first rewriting does not get a 304.
    let revalidate = async |etag: &str| get(&proxy, "/", &[("if-none-match", etag)]).await;
    let again = revalidate(first.field("etag")).await;
    assert_eq!(
        (again.status, again.text()),
        (StatusCode::OK, second.text())
    );
    assert_eq!(
        revalidate(again.field("etag")).await.status,
        StatusCode::NOT_MODIFIED
    );
}

#[tokio::test]
async fn revalidated_page_is_refetched_once_pinned_stylesheet_is_known() {
    let other = other();
    let cdn = format!("http://cdn.test:{}", other.address.port());
    let own = site(&cdn, STALE);
    let proxy = before(&own, &other);
    let first = get(&proxy, "/", &[]).await;
    assert!(first.text().contains(&cdn), "{first:?}");
    let (path, sheet) = sheet(&proxy, &other).await;
    let second = get(&proxy, "/", &[]).await;
    assert_rewritten(&second, &path, &sheet);
    assert!(!own.fields("/").contains_key("if-none-match"));
    let etag = second.field("etag").to_owned();
    for _ in 0..2 {
        let validated = get(&proxy, "/", &[]).await;
        assert!(own.fields("/").contains_key("if-none-match"));
        assert_eq!(validated.text(), second.text());
        assert_ne!(
            validated.field("etag"),
            etag,
            "it was sent before the sheet was known to be pinned"
        );
        let same = [("if-none-match", validated.field("etag"))];
        assert_eq!(
            get(&proxy, "/", &same).await.status,
            StatusCode::NOT_MODIFIED
        );
    }
}

#[tokio::test]
async fn page_with_mismatched_pin_is_not_refetched() {
    let other = other();
    let cdn = format!("http://cdn.test:{}", other.address.port());
    let text = page(&format!("{cdn}/s.css"), "sha256-AAAA");
    let own = Origin::start(move |_| std::future::ready(respond(&[HTML, FRESH], text.clone())));
    let proxy = before(&own, &other);
    let first = get(&proxy, "/", &[]).await;
    sheet(&proxy, &other).await;
    for _ in 0..3 {
        assert_eq!(get(&proxy, "/", &[]).await.text(), first.text());
    }
    assert_eq!(own.times("/"), 1);
}

/// A fresh page is served, even if the attempt to rewrite it again fails.
#[tokio::test]
async fn fresh_page_is_served_if_refetch_fails_or_is_unstorable() {
    for status in [
        StatusCode::SERVICE_UNAVAILABLE,
        StatusCode::INTERNAL_SERVER_ERROR,
    ] {
        let other = other();
        let cdn = format!("http://cdn.test:{}", other.address.port());
        let text = page(&format!("{cdn}/s.css"), SHEET_SHA256);
        let is_refetch = std::sync::Arc::new(std::sync::atomic::AtomicBool::default());
        let own = Origin::start(move |_| {
            let mut response = respond(&[HTML, FRESH], text.clone());
            if is_refetch.swap(true, std::sync::atomic::Ordering::SeqCst) {
                *response.status_mut() = status;
            }
            std::future::ready(response)
        });
        let proxy = before(&own, &other);
        let first = get(&proxy, "/", &[]).await;
        sheet(&proxy, &other).await;
        for _ in 0..3 {
            let next = get(&proxy, "/", &[]).await;
            assert_eq!(
                (next.status, next.text()),
                (StatusCode::OK, first.text()),
                "{status}"
            );
        }
        until("it is requested again", || own.times("/") == 2).await;
        get(&proxy, "/", &[]).await;
        assert_eq!(own.times("/"), 2, "once in a minute");
    }
}

#[tokio::test]
async fn page_is_not_refetched_for_uncacheable_request() {
    let other = other();
    let cdn = format!("http://cdn.test:{}", other.address.port());
    let own = site(&cdn, FRESH);
    let proxy = before(&own, &other);
    let first = get(&proxy, "/", &[]).await;
    let (path, sheet) = sheet(&proxy, &other).await;
    let only = get(&proxy, "/", &[("cache-control", "only-if-cached")]).await;
    assert_eq!(only.text(), first.text());
    let part = get(&proxy, "/", &[("range", "bytes=0-4")]).await;
    assert_eq!(part.text(), &first.text()[..5]);
    let with_cookies = get(&proxy, "/", &[("cookie", "a=b")]).await;
    assert_eq!(with_cookies.text(), first.text());
    assert_eq!(own.times("/"), 1);
    assert_rewritten(&rewritten_again(&proxy, &first).await, &path, &sheet);
}

/// A connection that the page does not need any more is no reason to fetch a fresh page again. A stale page is fetched whole.
#[tokio::test]
async fn preconnect_is_removed_from_revalidated_page() {
    let other = other();
    let cdn = format!("http://cdn.test:{}", other.address.port());
    for (freshness, is_removed) in [(STALE, true), (FRESH, false)] {
        let text =
            format!("<link rel=preconnect href='{cdn}'><link rel=stylesheet href='{cdn}/s.css'>");
        let own = Origin::start(move |request: Request<bytes::Bytes>| {
            std::future::ready(match request.headers().contains_key("if-none-match") {
                true => not_modified(freshness),
                false => respond(&[HTML, ETAG, freshness], text.clone()),
            })
        });
        let proxy = before(&own, &other);
        let first = get(&proxy, "/", &[]).await;
        assert!(first.text().contains("preconnect"));
        let page = "http://www.site.test/";
        until("the page has come by", || {
            proxy.pages.reports.of(page).is_some()
        })
        .await;
        for _ in 0..2 {
            let next = get(&proxy, "/", &[]).await;
            assert_eq!(
                !next.text().contains("preconnect"),
                is_removed,
                "{freshness:?}"
            );
        }
    }
}

/// Before, the rewritten form of a sheet was unknown after a restart: neither page nor sheet was fetched whole again.
#[tokio::test]
async fn stylesheet_digests_are_known_after_restart() {
    let other = other();
    let cdn = format!("http://cdn.test:{}", other.address.port());
    let own = site(&cdn, FRESH);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let with_disk = || {
        let proxy = before(&own, &other);
        proxy.set_disk(DiskStore::open(folder.path(), 10 << 20).expect("a temporary folder"));
        proxy
    };
    let proxy = with_disk();
    let first = get(&proxy, "/", &[]).await;
    let (path, sheet) = sheet(&proxy, &other).await;
    let disk = proxy.cache.disk().expect("the cache has a disk tier");
    disk.flush_removals().await;
    let cache = std::sync::Arc::downgrade(&proxy.cache);
    drop(proxy);
    until("no task holds the cache", || cache.strong_count() == 0).await;

    let proxy = with_disk();
    assert_eq!(
        get(&proxy, "/", &[]).await.text(),
        first.text(),
        "it is on the disk"
    );
    let rewritten = rewritten_again(&proxy, &first).await;
    assert_rewritten(&rewritten, &path, &sheet);
    assert_eq!((own.times("/"), other.times("/s.css")), (2, 1));
}

/// Until then the page requests it without a pin.
#[tokio::test]
async fn stored_page_pins_rewritten_site_stylesheet_once_known() {
    let other = other();
    let own = Origin::start(|request: Request<bytes::Bytes>| {
        std::future::ready(match request.uri().path() {
            "/own.css" => respond(&[CSS, FRESH], SHEET),
            _ => respond(&[HTML, FRESH], page("/own.css", SHEET_SHA256)),
        })
    });
    let proxy = before(&own, &other);
    let first = get(&proxy, "/", &[]).await;
    assert!(first.text().contains("/own.css?spdy=off"), "{first:?}");
    let sheet = get(&proxy, "/own.css", &[]).await;
    let second = rewritten_again(&proxy, &first).await;
    let text = second.text();
    assert!(text.contains("href=/own.css>"), "{text}");
    let hash = text
        .split("integrity=\"")
        .nth(1)
        .expect("the page has another pin");
    let hash = hash.split('"').next().expect("a hash");
    assert!(
        matches(hash, &Digests::of(sheet.text().as_bytes())),
        "{text}"
    );
    assert_eq!(get(&proxy, "/", &[]).await.text(), text);
    assert_eq!(own.times("/"), 2);
}

/// By its hash as it was rewritten its browser would refuse what the host has.
#[tokio::test]
async fn stored_page_keeps_guarded_pinned_stylesheet_at_host() {
    let other = other();
    let cdn = format!("http://cdn.test:{}", other.address.port());
    let text = page(&format!("{cdn}/s.css"), SHEET_SHA256);
    let own = Origin::start(move |request: Request<bytes::Bytes>| {
        let policy = ("content-security-policy", "style-src 'self'");
        std::future::ready(match request.uri().path() {
            "/guarding" => respond(&[HTML, FRESH, policy], "<p>No other sheets"),
            _ => respond(&[HTML, FRESH], text.clone()),
        })
    });
    let proxy = before(&own, &other);
    let first = get(&proxy, "/", &[]).await;
    let (path, sheet) = sheet(&proxy, &other).await;
    let rewritten = rewritten_again(&proxy, &first).await;
    assert_rewritten(&rewritten, &path, &sheet);
    get(&proxy, "/guarding", &[]).await;
    let restored = rewritten_again(&proxy, &rewritten).await;
    assert_eq!(restored.text(), first.text());
    assert_eq!(own.times("/"), 3);
}
