//! Resources under proxied URLs: which requests are served, and which are redirected to the host that has the resource.

use http::StatusCode;
use spdy_rewrite::reference::integrity::{Digests, matches};

use crate::support::fields::{CSS, FRESH, HTML, ONCE};
use crate::support::proxied_site::{
    SHEET, SHEET_SHA256, assert_redirected_to_host, before, get_proxied, load, other,
};
use crate::support::{Origin, accelerator_of, get, pages, respond, until};

#[tokio::test]
async fn page_with_opaque_origin_is_redirected_to_host() {
    let (own, other) = (Origin::start(pages(&[])), other());
    let proxy = before(&own, &other);
    for site in ["cross-site", "same-site"] {
        let fields = [
            ("sec-fetch-dest", "image"),
            ("sec-fetch-mode", "cors"),
            ("sec-fetch-site", site),
        ];
        let response = get_proxied(&proxy, &other, "/b.png", &fields).await;
        assert_redirected_to_host(&response, &other, "/b.png");
        assert_eq!(
            response.field("access-control-allow-origin"),
            "*",
            "or its hop is not read"
        );
        assert_eq!(
            response.field("cross-origin-resource-policy"),
            "cross-origin"
        );
        // A client that would open it, or does not state how it loads it, is not redirected.
        for destination in ["iframe", "document", "worker"] {
            let fields = [("sec-fetch-dest", destination), ("sec-fetch-site", site)];
            let response = get_proxied(&proxy, &other, "/b.png", &fields).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{destination}");
        }
        let response = get_proxied(&proxy, &other, "/b.png", &[("sec-fetch-site", site)]).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(
        other.request_lines(),
        [""; 0],
        "nothing is fetched for them"
    );
}

#[tokio::test]
async fn excluded_path_redirects_to_host() {
    let (own, other) = (Origin::start(pages(&[])), other());
    let proxy = before(&own, &other);
    // A script that was moved names it by a relative URL, or a page of before it was excepted.
    for destination in ["script", "image", "empty"] {
        let response = get_proxied(&proxy, &other, "/ads/a.js?b=1", &load(destination)).await;
        assert_redirected_to_host(&response, &other, "/ads/a.js?b=1");
        // Whether this is excepted, only the host knows.
        let response = get_proxied(&proxy, &other, "/img%2Fa.png", &load(destination)).await;
        assert_redirected_to_host(&response, &other, "/img%2Fa.png");
    }
    for fields in [&load("document")[..], &load("iframe"), &[]] {
        let response = get_proxied(&proxy, &other, "/ads/a.js", fields).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{fields:?}");
    }
    let port = other.address.port();
    let stranger = format!("/.spdy/1/-/p/stranger.test~{port}/ads/a.js");
    let response = get(&proxy, &stranger, &load("script")).await;
    assert_eq!(
        response.status,
        StatusCode::NOT_FOUND,
        "expected no redirect"
    );
    assert_eq!(other.request_lines(), [""; 0]);
}

/// Regression: relative loads of a shared host's script, and of a module's data in the parent folder, got 404. For scripts this is still
/// so: browsers do not check the path of a policy after a redirect, so an injected script could load more than the policy allows.
#[tokio::test]
async fn relative_load_of_proxied_script_redirects_to_host() {
    let other = other();
    let port = other.address.port();
    let own = Origin::start(move |_| {
        let text = format!("<script src='http://shared.test:{port}/ace.js'></script>");
        std::future::ready(respond(&[HTML, ONCE], text))
    });
    let host = |name: &str, more: &str| {
        format!(
            "[[site.rewrite.hosts]]\nhost = '{name}:{port}'\nscheme = 'http'\nkinds = ['script']\n{more}\n"
        )
    };
    let proxy = accelerator_of(&format!(
        "[listen]\ntls = []\nplain = ['127.0.0.1:80']\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\n{}{}",
        own.address,
        host("shared.test", "shared = true"),
        host("cdn.test", "path = '/lib/'"),
    ));
    let page = get(&proxy, "/", &[]).await;
    let script_path = page
        .text()
        .split('"')
        .nth(1)
        .expect("the page has a proxied URL");
    let (beside, _) = script_path.rsplit_once('/').expect("a path");
    let of_folder = format!("/.spdy/1/-/p/cdn.test~{port}");
    for (base, destination, host, path) in [
        (beside, "style", "shared.test", "/skin.css"),
        (beside, "empty", "shared.test", "/mode.json"),
        (&of_folder, "empty", "cdn.test", "/shared/x.json"),
        (&of_folder, "style", "cdn.test", "/lib/skin.css"),
    ] {
        let target = format!("{base}{path}?v=1");
        let response = get(&proxy, &target, &load(destination)).await;
        assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT, "{target}");
        let host_url = format!("http://{host}:{port}{path}?v=1");
        assert_eq!(response.field("location"), host_url);
        // A client that would open it, or does not state how it loads it, is not redirected.
        for fields in [&load("document")[..], &load("iframe"), &load("worker")] {
            let response = get(&proxy, &target, fields).await;
            assert_eq!(
                response.status,
                StatusCode::NOT_FOUND,
                "{target}: {fields:?}"
            );
        }
        if base == beside || path.starts_with("/shared/") {
            let response = get(&proxy, &target, &load("script")).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{target}");
            let response = get(&proxy, &target, &[]).await;
            assert_eq!(response.status, StatusCode::NOT_FOUND, "{target}");
        }
    }
    for head in [
        format!("/.spdy/1/-/p/stranger.test~{port}"),
        beside.replace("shared.test", "stranger.test"),
        beside.replace("/u", "/k"),
    ] {
        let response = get(&proxy, &format!("{head}/x.css"), &load("style")).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{head}");
    }
    assert_eq!(other.request_lines(), [""; 0]);
}

#[tokio::test]
async fn response_without_type_redirects_to_host() {
    let (own, other) = (Origin::start(pages(&[])), other());
    let proxy = before(&own, &other);
    assert_redirected_to_host(
        &get_proxied(&proxy, &other, "/typeless", &load("image")).await,
        &other,
        "/typeless",
    );
    let response = get_proxied(&proxy, &other, "/typeless", &[]).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn unrewritable_stylesheet_redirects_to_host() {
    let (own, other) = (Origin::start(pages(&[])), other());
    let proxy = before(&own, &other);
    for path in ["/fixed.css", "/coded.css"] {
        assert_redirected_to_host(
            &get_proxied(&proxy, &other, path, &load("style")).await,
            &other,
            path,
        );
        let response = get_proxied(&proxy, &other, path, &[]).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn pinned_site_stylesheet_is_rewritten_once_known() {
    let other = other();
    let own = Origin::start(|request: http::Request<bytes::Bytes>| {
        let text = format!("<link rel=stylesheet integrity='{SHEET_SHA256}' href=/own.css>");
        std::future::ready(match request.uri().path() {
            "/own.css" => respond(&[CSS, FRESH], SHEET),
            _ => respond(&[HTML, ONCE], text),
        })
    });
    let proxy = before(&own, &other);
    let first = get(&proxy, "/", &[]).await;
    let marked =
        format!("<link rel=stylesheet integrity='{SHEET_SHA256}' href=\"/own.css?spdy=off\">");
    assert_eq!(first.text(), marked);
    assert_eq!(get(&proxy, "/own.css?spdy=off", &[]).await.text(), SHEET);
    until("both are fetched ahead", || own.times("/own.css") == 2).await;
    let sheet = get(&proxy, "/own.css", &[]).await;
    assert_eq!(
        sheet.text(),
        SHEET.replace("http://cdn.test", "/.spdy/1/-/p/cdn.test")
    );
    let second = get(&proxy, "/", &[]).await;
    let hash = second
        .text()
        .split("integrity=\"")
        .nth(1)
        .expect("the new hash is present");
    let hash = hash.split('"').next().expect("a hash");
    assert!(
        matches(hash, &Digests::of(sheet.text().as_bytes())),
        "{}",
        second.text()
    );
    assert!(
        second.text().contains("href=/own.css>"),
        "{}",
        second.text()
    );
    assert_eq!(own.times("/own.css"), 2);
}

#[tokio::test]
async fn preconnect_is_removed_once_all_references_are_rewritten() {
    let other = other();
    let port = other.address.port();
    let own = Origin::start(move |request: http::Request<bytes::Bytes>| {
        let cdn = format!("http://cdn.test:{port}");
        let frame = match request.uri().path() {
            "/framed" => format!("<iframe src='{cdn}/f.html'></iframe>"),
            _ => String::new(),
        };
        let text = format!("<link rel=preconnect href='{cdn}'><img src='{cdn}/b.png'>{frame}");
        // It is stored, revalidated each time, and never the same.
        let fields = [HTML, ("cache-control", "max-age=0"), ("etag", "\"1\"")];
        std::future::ready(respond(&fields, text))
    });
    let proxy = before(&own, &other);
    for (path, stays) in [("/", false), ("/framed", true)] {
        let first = get(&proxy, path, &[]).await;
        assert!(
            first.text().contains("preconnect"),
            "nothing is known of it yet"
        );
        let page = format!("http://www.site.test{path}");
        until("the page has come by", || {
            proxy.pages.reports.of(&page).is_some()
        })
        .await;
        let second = get(&proxy, path, &[]).await;
        assert_eq!(second.text().contains("preconnect"), stays, "{path}");
    }
}

#[tokio::test]
async fn stored_responses_have_usable_validators() {
    let other = other();
    let modified = ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT");
    let own = Origin::start(move |request: http::Request<bytes::Bytes>| {
        std::future::ready(match request.uri().path() {
            "/plain.css" => respond(&[CSS, FRESH, modified], "p { color: red }"),
            "/moved.css" => respond(&[CSS, FRESH, modified], SHEET),
            _ => respond(&[HTML, FRESH], "<img src=http://cdn.test/b.png>"),
        })
    });
    let proxy = before(&own, &other);
    for (path, keeps_date) in [("/plain.css", true), ("/moved.css", false), ("/", false)] {
        get(&proxy, path, &[]).await;
        let response = get(&proxy, path, &[]).await;
        let date = if keeps_date { modified.1 } else { "" };
        assert_eq!(response.field("last-modified"), date, "{path}");
        let tag = response.field("etag");
        assert!(tag.starts_with('"') && tag.len() > 20, "{path}: {tag}");
        let again = get(&proxy, path, &[("if-none-match", tag)]).await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED, "{path}");
        let other = get(&proxy, path, &[("if-none-match", "\"other\"")]).await;
        assert_eq!(other.status, StatusCode::OK, "{path}");
        if keeps_date {
            let again = get(&proxy, path, &[("if-modified-since", modified.1)]).await;
            assert_eq!(again.status, StatusCode::NOT_MODIFIED);
        }
        assert_eq!(own.times(path), 1, "{path}");
    }
}

#[tokio::test]
async fn unreachable_third_party_redirects_to_host() {
    let own = Origin::start(pages(&[]));
    let proxy = accelerator_of(&format!(
        "[upstream]\nfailures = 2\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [1]\n\
         resolve = {{ 'down.test' = '127.0.0.1', 'private.test' = '10.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\n\
         [[site.rewrite.hosts]]\nhost = 'down.test:1'\nscheme = 'http'\nkinds = ['image']\n\
         [[site.rewrite.hosts]]\nhost = 'private.test'\nscheme = 'http'\nkinds = ['image']\n",
        own.address
    ));
    // After two failures no request is sent to the host for some time. That makes no difference.
    for number in 0..4 {
        let target = format!("/.spdy/1/-/p/down.test~1/{number}.png?q");
        let response = get(&proxy, &target, &load("image")).await;
        assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT, "{number}");
        let host_url = format!("http://down.test:1/{number}.png?q");
        assert_eq!(response.field("location"), host_url);
        assert_eq!(response.field("cache-control"), "no-store");
        let reason = response.field("proxy-status");
        let is_resting = reason == "spdy; error=destination_unavailable";
        assert!(
            is_resting || reason == "spdy; error=connection_refused",
            "{reason}"
        );
        assert!(is_resting == (number > 0), "{number}: {reason}");
        // A client that may be opening it as a page is redirected nowhere.
        for fields in [&[][..], &[("sec-fetch-site", "same-origin")]] {
            let response = get(&proxy, &target, fields).await;
            assert!(
                response.status.is_server_error(),
                "{fields:?}: {}",
                response.status
            );
            assert_eq!(response.field("location"), "");
        }
    }
    // The address rules deny the other host's address: no client is redirected to it either, however often the URL is requested.
    for number in 0..4 {
        let target = format!("/.spdy/1/-/p/private.test/{number}.png");
        let response = get(&proxy, &target, &load("image")).await;
        assert_eq!(response.status, StatusCode::BAD_GATEWAY, "{number}");
        assert_eq!(response.field("location"), "");
    }
}
