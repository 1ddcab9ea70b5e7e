//! Files of a folder in place of an origin.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use http::StatusCode;
use spdy::body::Body;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;

use crate::support::{CollectedResponse, Origin, accelerator_of, pages, send_request};

struct Site {
    own: Origin,
    proxy: Arc<Proxy>,
    folder: tempfile::TempDir,
}

fn site() -> Site {
    site_with("")
}

/// With `more` before the site in the configuration.
fn site_with(more: &str) -> Site {
    site_of(more, "")
}

/// With `rules` after its rule for the folder.
fn site_with_rules(rules: &str) -> Site {
    site_of("", rules)
}

fn site_of(more: &str, rules: &str) -> Site {
    let own = Origin::start(pages(&[("/", &[], "the origin")]));
    let folder = tempfile::tempdir().expect("create a folder");
    let write = |name: &str, bytes: &[u8]| {
        let path = folder.path().join("www").join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("create the folder");
        std::fs::write(path, bytes).expect("write the file");
    };
    write("a b.css", b"p {}");
    write("docs/index.html", b"<!DOCTYPE html><p>docs");
    write("app.js", b"plain");
    write("app.js.br", b"brotli");
    write("app.js.gz", b"gzip");
    write("long.bin", &vec![b'x'; 200_000]);
    write(".hidden", b"secret");
    std::fs::write(folder.path().join("outside"), "secret").expect("write the file");
    #[cfg(unix)]
    for (to, name) in [("../outside", "out"), ("a b.css", "in.css")] {
        let link = folder.path().join("www").join(name);
        std::os::unix::fs::symlink(Path::new(to), link).expect("link the file");
    }
    let (origin, www) = (own.address, folder.path().join("www"));
    let proxy = accelerator_of(&format!(
        "{more}[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.paths]]\npath = '/static/'\nfolder = {www:?}\nresponse_headers = {{ Cache-Control = 'max-age=60' }}\n{rules}"
    ));
    Site { own, proxy, folder }
}

impl Site {
    async fn get(&self, target: &str, fields: &[(&str, &str)]) -> CollectedResponse {
        send_request(&self.proxy, http::Method::GET, target, fields, "").await
    }
}

#[tokio::test]
async fn files_have_types_validators_and_ranges() {
    let site = site();
    let response = site.get("/static/a%20b.css?v=1", &[]).await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(response.text(), "p {}");
    assert_eq!(response.field("content-type"), "text/css; charset=utf-8");
    assert_eq!(response.field("cache-control"), "max-age=60");
    let long = site.get("/static/long.bin", &[]).await;
    assert_eq!(long.text().len(), 200_000);
    assert_eq!(long.field("content-length"), "200000");
    let (tag, date) = (long.field("etag"), long.field("last-modified"));
    for (name, value) in [("if-none-match", tag), ("if-modified-since", date)] {
        let unchanged = site.get("/static/long.bin", &[(name, value)]).await;
        assert_eq!(unchanged.status, StatusCode::NOT_MODIFIED, "{name}");
    }
    let failed = site.get("/static/long.bin", &[("if-match", "\"a\"")]).await;
    assert_eq!(failed.status, StatusCode::PRECONDITION_FAILED);
    let fields = [("range", "bytes=100-199"), ("if-range", tag)];
    let part = site.get("/static/long.bin", &fields).await;
    assert_eq!(part.status, StatusCode::PARTIAL_CONTENT);
    assert_eq!(part.field("content-range"), "bytes 100-199/200000");
    assert_eq!(part.text().len(), 100);
    let beyond = site
        .get("/static/long.bin", &[("range", "bytes=200000-")])
        .await;
    assert_eq!(beyond.status, StatusCode::RANGE_NOT_SATISFIABLE);
    let head = send_request(&site.proxy, http::Method::HEAD, "/static/long.bin", &[], "").await;
    assert_eq!(head.field("content-length"), "200000");
    assert_eq!(head.text(), "");
    // A changed file is seen at once.
    std::fs::write(site.folder.path().join("www/a b.css"), "p { color: red }").expect("write");
    assert_eq!(
        site.get("/static/a%20b.css", &[]).await.text(),
        "p { color: red }"
    );
    assert!(site.own.request_lines().is_empty());
}

#[tokio::test]
async fn folders_have_an_index_and_files_may_be_compressed_before() {
    let site = site();
    let docs = site.get("/static/docs/", &[]).await;
    assert!(docs.text().contains("<p>docs"), "{docs:?}");
    let redirect = site.get("/static/docs?a=1", &[]).await;
    assert_eq!(redirect.status, StatusCode::MOVED_PERMANENTLY);
    assert_eq!(redirect.field("location"), "/static/docs/?a=1");
    for (accepted, coding, body) in [
        ("gzip, br", "br", "brotli"),
        ("gzip", "gzip", "gzip"),
        ("identity", "", "plain"),
    ] {
        let response = site
            .get("/static/app.js", &[("accept-encoding", accepted)])
            .await;
        assert_eq!(response.field("content-encoding"), coding, "{accepted}");
        assert_eq!(response.text(), body, "{accepted}");
        assert_eq!(
            response.field("content-type"),
            "text/javascript; charset=utf-8"
        );
        assert!(response.field("vary").contains("accept-encoding"));
    }
}

#[tokio::test]
async fn nothing_outside_of_the_folder_and_no_hidden_file_is_served() {
    let site = site();
    for target in [
        "/static/missing",
        "/static/.hidden",
        "/static/out",
        "/static/../outside",
        "/static/%2e%2e/outside",
        "/static/..%2foutside",
        "/static/docs/..%5c..%5coutside",
        "/static//outside",
        "/static/",
        "/static/a%20b.css/",
    ] {
        let response = site.get(target, &[]).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{target}");
        assert!(!response.text().contains("secret"), "{target}");
    }
    #[cfg(unix)]
    assert_eq!(site.get("/static/in.css", &[]).await.text(), "p {}");
    let post = send_request(&site.proxy, http::Method::POST, "/static/app.js", &[], "a").await;
    assert_eq!(post.status, StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(post.field("allow"), "GET, HEAD");
    assert_eq!(site.get("/", &[]).await.text(), "the origin");
}

/// An origin may have files there too, which the folder replaces.
#[tokio::test]
async fn no_spelling_of_a_path_of_the_folder_reaches_the_origin() {
    let site = site();
    for target in [
        "/%73tatic/app.js",
        "/static/./app.js",
        "/x/../static/app.js",
        "//static/app.js",
        "/static;a=1/app.js",
        "/static%2fapp.js",
    ] {
        let response = site.get(target, &[]).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{target}");
    }
    let handshake = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let response = site.get("/static/./app.js", &handshake).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
    assert!(site.own.request_lines().is_empty());
    assert_eq!(site.get("/%61", &[]).await.status, StatusCode::NOT_FOUND);
    assert_eq!(site.own.request_lines(), ["GET /%61"]);
}

#[tokio::test]
async fn a_rule_for_a_file_applies_to_all_ways_to_its_content() {
    let site = site_with_rules(
        "[[site.paths]]\npath = '/static/app.js'\nallow = ['198.51.100.1']\n\
         [[site.paths]]\npath = '/static/docs/index.html'\nallow = ['198.51.100.1']\n",
    );
    for target in ["/static/app.js", "/static/docs/index.html"] {
        let response = site.get(target, &[]).await;
        assert_eq!(response.status, StatusCode::FORBIDDEN, "{target}");
    }
    for target in ["/static/app.js.br", "/static/app.js.gz"] {
        let response = site.get(target, &[]).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{target}");
    }
    let folder = site.get("/static/docs/", &[]).await;
    assert_eq!(folder.status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(folder.field("location"), "/static/docs/index.html");
    // A compressed file that is no form of another one is a file.
    std::fs::write(site.folder.path().join("www/all.tar.gz"), "archive").expect("write");
    assert_eq!(site.get("/static/all.tar.gz", &[]).await.text(), "archive");
}

/// Releases are often exchanged by a symbolic link.
#[cfg(unix)]
#[tokio::test]
async fn a_link_to_the_folder_is_followed_when_it_changes() {
    let base = tempfile::tempdir().expect("create a folder");
    let link = |to: &str| {
        let (new, current) = (base.path().join("new"), base.path().join("current"));
        std::os::unix::fs::symlink(to, &new).expect("link the folder");
        std::fs::rename(new, current).expect("exchange the link");
    };
    for release in ["one", "two"] {
        let folder = base.path().join(release);
        std::fs::create_dir(&folder).expect("create the folder");
        std::fs::write(folder.join("a.txt"), release).expect("write the file");
    }
    link("one");
    let current = base.path().join("current");
    let proxy = accelerator_of(&format!(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://127.0.0.1:1'\n\
         [[site.paths]]\npath = '/static/'\nfolder = {current:?}\n"
    ));
    let get = async || send_request(&proxy, http::Method::GET, "/static/a.txt", &[], "").await;
    assert_eq!(get().await.text(), "one");
    link("two");
    assert_eq!(get().await.text(), "two");
    std::fs::remove_dir_all(base.path().join("two")).expect("remove the folder");
    assert_eq!(get().await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn files_do_not_count_as_misses() {
    let site = site_with("[cache]\nmisses_per_second = 1\n");
    for nth in 0..20 {
        let file = site.get("/static/app.js", &[]).await;
        assert_eq!(file.status, StatusCode::OK, "{nth}");
    }
    for nth in 0..6 {
        let expected = if nth < 5 {
            StatusCode::NOT_FOUND
        } else {
            StatusCode::TOO_MANY_REQUESTS
        };
        let page = site.get(&format!("/{nth}"), &[]).await;
        assert_eq!(page.status, expected, "{nth}");
    }
}

/// A response that is not read has a file open, or a chunk of it in memory.
#[tokio::test]
async fn unread_files_of_one_client_are_limited() {
    let site = site_with("[upstream]\nqueue_timeout_s = 0\n");
    for target in ["/static/long.bin", "/static/app.js"] {
        let get = async |client: u8| {
            let request = http::Request::get(target).header("host", "www.site.test");
            let request = request.body(Body::empty()).expect("a request");
            let from = IpAddr::from([192, 0, 2, client]);
            site.proxy.answer(request, Some(from)).await
        };
        let mut unread = Vec::new();
        for _ in 0..128 {
            let response = get(1).await;
            assert_eq!(response.status(), StatusCode::OK);
            unread.push(response);
        }
        let refused = get(1).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "1");
        assert_eq!(get(2).await.status(), StatusCode::OK, "{target}");
        let read = unread.pop().expect("a response").into_body();
        read.collect_up_to(1 << 20).await.expect("a whole body");
        assert_eq!(get(1).await.status(), StatusCode::OK, "{target}");
    }
}

#[test]
fn a_folder_has_no_origin_beside_it() {
    for keys in [
        "path = '/a'",
        "path = '/a/'\norigin = 'http://b.test'",
        "path = '/a/'\ngrpc = true",
    ] {
        let text = format!(
            "[[site]]\nnames = ['a.test']\norigin = 'http://o.test'\n[[site.paths]]\nfolder = '/srv'\n{keys}\n"
        );
        let error = Config::parse(&text).expect_err("an error").to_string();
        assert!(
            error.starts_with("site.paths.folder: expected a `path`"),
            "{error}"
        );
    }
}
