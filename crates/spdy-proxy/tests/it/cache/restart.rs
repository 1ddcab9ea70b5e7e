//! An accelerator that begins again with the folder of another: what it still has, and what stays gone.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::{Method, StatusCode};
use spdy_proxy::cache::disk::store::DiskStore;
use spdy_proxy::cache::purge::PurgeRequest;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;

use crate::support::{
    self, Origin, accelerator, accelerator_of, get, pages, respond, send_request, until,
};

const FRESH: (&str, &str) = ("cache-control", "max-age=600, stale-if-error=600");
const PAGE: &str = "<!doctype html><title>a</title><img src=/b.png>";

fn with_disk(origin: &Origin, folder: &Path) -> Arc<Proxy> {
    let proxy = accelerator(origin, "");
    proxy.set_disk(DiskStore::open(folder, 10 << 20).expect("a temporary folder"));
    proxy
}

/// Waits until everything is on the disk, then drops the proxy, and waits until no task holds its cache: the folder is free then.
async fn end(proxy: Arc<Proxy>) {
    let disk = proxy.cache.disk().expect("the cache has a disk tier");
    disk.flush_removals().await;
    let cache = Arc::downgrade(&proxy.cache);
    drop(proxy);
    until("no task holds the cache", || cache.strong_count() == 0).await;
}

#[tokio::test]
async fn stored_response_is_served_after_restart() {
    let html = ("content-type", "text/html");
    let origin = Origin::start(pages(&[
        ("/", &[FRESH, html], PAGE),
        (
            "/b.png",
            &[FRESH, ("content-type", "image/png"), ("etag", "\"b\"")],
            "pixels",
        ),
    ]));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let proxy = with_disk(&origin, folder.path());
    get(&proxy, "/", &[]).await;
    let first = get(&proxy, "/", &[]).await;
    assert!(first.field("etag").starts_with('"'), "{first:?}");
    assert_eq!(get(&proxy, "/b.png", &[]).await.text(), "pixels");
    end(proxy).await;
    let requests = origin.request_lines();

    let proxy = with_disk(&origin, folder.path());
    let again = get(&proxy, "/", &[]).await;
    assert_eq!((again.status, again.text()), (StatusCode::OK, first.text()));
    assert_eq!(
        again.field("etag"),
        first.field("etag"),
        "of content and rules"
    );
    assert!(
        again.field("cache-status").starts_with("spdy; hit"),
        "{again:?}"
    );
    let not_modified = get(&proxy, "/b.png", &[("if-none-match", "\"b\"")]).await;
    assert_eq!(not_modified.status, StatusCode::NOT_MODIFIED);
    let part = get(&proxy, "/b.png", &[("range", "bytes=1-2")]).await;
    assert_eq!(
        (part.status, part.text()),
        (StatusCode::PARTIAL_CONTENT, "ix")
    );
    assert_eq!(
        origin.request_lines(),
        requests,
        "no resource was requested twice"
    );
    // What was lifted once is in memory.
    assert_eq!(
        proxy
            .cache
            .disk()
            .expect("the cache has a disk tier")
            .counters()
            .hits
            .load(Ordering::Relaxed),
        2
    );
}

/// A file that hangs held all that was on the disk alone, for ever, though the origin was well.
#[cfg(unix)]
#[tokio::test]
async fn hung_disk_times_out_then_origin_is_used() {
    let origin = Origin::start(pages(&[("/a", &[FRESH], "a"), ("/b", &[FRESH], "b")]));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let proxy = with_disk(&origin, folder.path());
    for target in ["/a", "/b"] {
        get(&proxy, target, &[]).await;
    }
    end(proxy).await;
    let proxy = with_disk(&origin, folder.path());
    // Opening a pipe blocks until there is a writer.
    let mut pipes = 0;
    for entry in objects(folder.path()) {
        std::fs::remove_file(&entry).expect("the file exists");
        let status = std::process::Command::new("mkfifo").arg(&entry).status();
        assert!(status.expect("mkfifo can be run").success());
        pipes += 1;
    }
    assert_eq!(pipes, 2);
    for (target, text) in [("/a", "a"), ("/b", "b")] {
        let response = get(&proxy, target, &[]).await;
        assert_eq!((response.status, response.text()), (StatusCode::OK, text));
        assert_eq!(origin.times(target), 2);
    }
}

/// The objects in a disk's folder.
fn objects(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the body has arrived");
    let folders = entries.map(|entry| entry.expect("an entry").path());
    let folders = folders.filter(|path| path.is_dir());
    let files = folders.flat_map(|path| std::fs::read_dir(path).expect("the body has arrived"));
    files.map(|entry| entry.expect("an entry").path()).collect()
}

/// It was known of a page's head alone, and of its text only where that had been rewritten by the same program.
#[tokio::test]
async fn page_policies_are_restored_from_disk() {
    const META: &str = "<meta http-equiv=content-security-policy content=\"script-src 'self'\">\
                        <meta name=referrer content=same-origin>";
    let html = ("content-type", "text/html");
    let own = Origin::start(pages(&[
        ("/meta", &[FRESH, html], META),
        ("/plain", &[FRESH, html], PAGE),
    ]));
    let script = ("content-type", "text/javascript");
    let other = Origin::start(pages(&[
        ("/a.js", &[FRESH, script], "window.a = 1"),
        ("/b.png", &[FRESH, ("content-type", "image/png")], "pixels"),
    ]));
    let (origin, port) = (own.address, other.address.port());
    let folder = tempfile::tempdir().expect("a temporary folder");
    let begin = || {
        let proxy = accelerator_of(&format!(
            "[listen]\ntls = []\nplain = ['127.0.0.1:80']\n\
             [upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
             [[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
             [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['script', 'image']\n"
        ));
        proxy.set_disk(DiskStore::open(folder.path(), 10 << 20).expect("a temporary folder"));
        proxy
    };
    let proxied_path = format!("/.spdy/1/-/p/cdn.test~{port}/a.js");
    let load = |proxy: &Arc<Proxy>| {
        let (proxy, proxied_path) = (proxy.clone(), proxied_path.clone());
        async move {
            let fields = [
                ("sec-fetch-dest", "script"),
                ("sec-fetch-mode", "no-cors"),
                ("sec-fetch-site", "same-origin"),
                ("referer", "http://www.site.test/meta"),
            ];
            get(&proxy, &proxied_path, &fields).await.status
        }
    };
    let proxy = begin();
    for page in ["/meta", "/plain"] {
        get(&proxy, page, &[]).await;
    }
    end(proxy).await;
    let requests = own.request_lines();

    let proxy = begin();
    get(&proxy, "/plain", &[]).await;
    assert_eq!(load(&proxy).await, StatusCode::OK);
    assert!(other.fields("/a.js").contains_key("referer"));
    for _ in ["of the disk", "of memory"] {
        get(&proxy, "/meta", &[]).await;
        assert_eq!(load(&proxy).await, StatusCode::TEMPORARY_REDIRECT);
    }
    assert_eq!(own.request_lines(), requests, "the pages were stored");
    // The host does not see the page that loads its pictures, either.
    let picture = proxied_path.replace("/a.js", "/b.png");
    get(
        &proxy,
        &picture,
        &[("referer", "http://www.site.test/meta")],
    )
    .await;
    assert!(!other.fields("/b.png").contains_key("referer"));
}

#[tokio::test]
async fn purged_or_replaced_entries_do_not_return_after_restart() {
    let origin = Origin::start(|request: http::Request<bytes::Bytes>| {
        let body = request.uri().path().to_owned();
        std::future::ready(respond(&[FRESH, ("cache-tag", "t")], body))
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let proxy = with_disk(&origin, folder.path());
    let targets = ["/url", "/soft", "/posted", "/kept"];
    for target in targets {
        assert_eq!(get(&proxy, target, &[]).await.text(), target);
    }
    let url = |path: &str, soft| PurgeRequest {
        url: Some(format!("http://www.site.test{path}")),
        soft,
        ..PurgeRequest::default()
    };
    proxy
        .purge(&url("/url", false))
        .expect("a valid planned request");
    proxy
        .purge(&url("/soft", true))
        .expect("a valid planned request");
    send_request(&proxy, Method::POST, "/posted", &[], "x").await;
    end(proxy).await;

    let proxy = with_disk(&origin, folder.path());
    for target in targets {
        get(&proxy, target, &[]).await;
    }
    assert_eq!(targets.map(|target| origin.times(target)), [2, 2, 2, 1]);
    let tag = PurgeRequest {
        tag: Some("t".to_owned()),
        site: Some("www.site.test".to_owned()),
        ..PurgeRequest::default()
    };
    proxy.purge(&tag).expect("a valid planned request");
    end(proxy).await;
    let proxy = with_disk(&origin, folder.path());
    get(&proxy, "/kept", &[]).await;
    assert_eq!(origin.times("/kept"), 2);
}

#[tokio::test]
async fn response_made_uncacheable_by_304_is_removed() {
    let origin = Origin::start(|request: http::Request<bytes::Bytes>| {
        let mut again = respond(&[("etag", "\"1\""), ("cache-control", "private")], "");
        *again.status_mut() = StatusCode::NOT_MODIFIED;
        let first = respond(
            &[
                ("etag", "\"1\""),
                ("cache-control", "no-cache, stale-if-error=600"),
            ],
            "once",
        );
        let is_revalidation = request.headers().contains_key("if-none-match");
        std::future::ready(if is_revalidation { again } else { first })
    });
    let folder = tempfile::tempdir().expect("a temporary folder");
    let proxy = with_disk(&origin, folder.path());
    for _ in 0..2 {
        assert_eq!(get(&proxy, "/a", &[]).await.text(), "once");
    }
    assert_eq!(proxy.cache.usage().2, 0);
    proxy
        .cache
        .disk()
        .expect("the cache has a disk tier")
        .flush_removals()
        .await;
    assert_eq!(
        proxy
            .cache
            .disk()
            .expect("the cache has a disk tier")
            .usage(),
        (0, 0)
    );
}

#[test]
fn disk_requires_secret_file_and_room_for_one_object() {
    let read = |top: &str, cache: &str| {
        let site = "[[site]]\nnames = ['www.site.test']\norigin = 'http://origin.test'\n";
        let config = Config::parse(&format!("{top}\n[cache]\n{cache}\n{site}"));
        config.map(drop).map_err(|error| error.to_string())
    };
    let disk = "disk = '/var/cache/spdy'";
    assert_eq!(read("secret_file = '/etc/spdy/secret'", disk), Ok(()));
    let without = read("", disk).expect_err("no secret");
    assert!(
        without.starts_with("cache.disk: expected secret_file"),
        "{without}"
    );
    let small = read("secret_file = 's'", &format!("{disk}\ndisk_mib = 31")).expect_err("no room");
    assert!(small.contains("no more than cache.disk_mib"), "{small}");
}

#[tokio::test]
async fn site_quota_is_enforced_separately() {
    let image = ("content-type", "image/png");
    let origin =
        Origin::start(move |_| std::future::ready(respond(&[FRESH, image], vec![7; 400 << 10])));
    let (folder, at) = (
        tempfile::tempdir().expect("a temporary folder"),
        origin.address,
    );
    let disk = folder.path().join("disk");
    let text = format!(
        "secret_file = 'unread'\n[cache]\ndisk = '{}'\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{at}'\ncache_mib = 1\ndisk_mib = 1\n\
         [[site]]\nnames = ['other.test']\norigin = 'http://{at}'\n",
        disk.display()
    );
    let proxy = accelerator_of(&text);
    proxy.set_disk(DiskStore::open(&disk, 10 << 20).expect("a temporary folder"));
    for path in ["/1.png", "/2.png", "/3.png"] {
        for host in ["www.site.test", "other.test"] {
            let request = http::Request::get(path).header("host", host);
            let request = request.body(spdy::body::Body::empty()).expect("a request");
            support::collect_response(&proxy, request, 1)
                .await
                .body
                .expect("the body is complete");
        }
    }
    proxy
        .cache
        .disk()
        .expect("the cache has a disk tier")
        .flush_removals()
        .await;
    let (_, bytes, objects) = proxy.cache.usage();
    assert_eq!(objects, 2 + 3, "{bytes} bytes");
    assert_eq!(
        proxy
            .cache
            .disk()
            .expect("the cache has a disk tier")
            .usage()
            .0,
        2 + 3
    );
    let requests = origin.times("/1.png");
    get(&proxy, "/1.png", &[]).await;
    assert_eq!(
        origin.times("/1.png"),
        requests + 1,
        "it was the first to go"
    );
}
