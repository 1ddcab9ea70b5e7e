//! Hosts with an alias under the site: pages that use it, and requests that it serves or redirects.

use http::{Method, StatusCode};

use crate::support::aliased_site::AliasedSite;
use crate::support::{get, until};

#[tokio::test]
async fn page_uses_alias_and_alias_serves_the_host() {
    let named = AliasedSite::start(
        "<!doctype html><img src='{widgets}/a.png'><iframe src='{widgets}/frame.html'></iframe>",
    );
    let page = get(&named.proxy, "/", &[]).await;
    let name = &named.names[0];
    assert_eq!(
        page.text(),
        format!(
            "<!doctype html><img src=\"https://{name}/a.png\"><iframe src=\"https://{name}/frame.html\"></iframe>"
        )
    );
    until("the picture is fetched ahead", || {
        named.widgets.times("/a.png") == 1
    })
    .await;
    let picture = named
        .get(
            "/a.png",
            &[
                ("cookie", "of=reader"),
                ("sec-fetch-dest", "image"),
                ("sec-fetch-mode", "no-cors"),
                ("sec-fetch-site", "cross-site"),
            ],
        )
        .await;
    assert_eq!(picture.text(), "a picture");
    assert!(picture.headers.get("set-cookie").is_none());
    assert_eq!(named.widgets.times("/a.png"), 1, "the response was stored");
    let headers = named.widgets.fields("/a.png");
    assert!(
        headers.get("cookie").is_none() && headers.get("x-forwarded-for").is_none(),
        "{headers:?}"
    );
    assert_eq!(
        named.widgets.times("/frame.html"),
        0,
        "a frame begins when it is seen"
    );
}

#[tokio::test]
async fn withheld_alias_leaves_reference_at_host() {
    let named = AliasedSite::start("<!doctype html><iframe src='{widgets}/frame.html'></iframe>");
    let port = named.widgets.address.port();
    let own =
        format!("<!doctype html><iframe src='http://widgets.test:{port}/frame.html'></iframe>");
    let name = &named.names[0];
    let aliased = format!("<!doctype html><iframe src=\"https://{name}/frame.html\"></iframe>");
    let label = name.split(':').next().expect("a name").to_owned();
    for (withheld, page) in [
        ([label].into(), &own),
        (std::collections::BTreeSet::new(), &aliased),
    ] {
        assert!(named.proxy.origins.withhold_aliases(&withheld));
        assert!(
            !named.proxy.origins.withhold_aliases(&withheld),
            "it is so already"
        );
        assert_eq!(get(&named.proxy, "/", &[]).await.text(), *page);
        let frame = named.get("/frame.html", &[]).await;
        assert_eq!(frame.status, StatusCode::OK, "pages of before name it");
    }
    assert_eq!(named.own.times("/"), 2, "each is stored separately");
}

#[tokio::test]
async fn alias_frame_is_rewritten_without_zone_headers() {
    let named = AliasedSite::start("");
    let fields = [
        ("sec-fetch-dest", "iframe"),
        ("sec-fetch-mode", "navigate"),
        ("sec-fetch-site", "cross-site"),
    ];
    let frame = named.get("/frame.html", &fields).await;
    let name = &named.names[0];
    assert_eq!(
        frame.text(),
        format!("<!doctype html><img src=\"https://{name}/a.png\"><script src=b.js></script>")
    );
    for absent in [
        "set-cookie",
        "link",
        "x-content-type-options",
        "content-security-policy",
    ] {
        assert_eq!(frame.field(absent), "", "{absent}");
    }
    until("what it names is fetched ahead", || {
        named.widgets.times("/a.png") == 1 && named.widgets.times("/b.js") == 1
    })
    .await;
    let fields = [
        ("sec-fetch-dest", "script"),
        ("sec-fetch-mode", "no-cors"),
        ("sec-fetch-site", "same-origin"),
    ];
    assert_eq!(named.get("/b.js", &fields).await.text(), "run()");
    assert_eq!(named.widgets.times("/b.js"), 1, "the response was stored");
}

#[tokio::test]
async fn alias_accepts_paths_invalid_as_proxied_url() {
    let named = AliasedSite::start("");
    let port = named.widgets.address.port();
    let long = format!("/a.png?{}", "a".repeat(8 * 1024));
    for target in [&*long, "/a.png?a\\b"] {
        let refused = named.get(target, &[]).await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
        let response = named.get(target, &[("sec-fetch-dest", "image")]).await;
        assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT);
        let host_url = format!("http://widgets.test:{port}{target}");
        assert_eq!(response.field("location"), host_url);
    }
    let path = named.get("/a\\b.png", &[("sec-fetch-dest", "image")]).await;
    assert_eq!(path.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn unrewritten_mark_returns_original_stylesheet() {
    let named = AliasedSite::start("");
    let (name, port) = (&named.names[0], named.widgets.address.port());
    let sheet = |origin: &str| format!("@import '{origin}/b.css';");
    for _ in 0..2 {
        let rewritten = named.get("/a.css", &[]).await;
        assert_eq!(rewritten.text(), sheet(&format!("https://{name}")));
        let marked = named.get("/a.css?spdy=off", &[]).await;
        assert_eq!(marked.text(), sheet(&format!("http://widgets.test:{port}")));
    }
    assert_eq!(named.widgets.times("/a.css"), 2, "each is stored");
    assert_eq!(named.widgets.times("/a.css?spdy=off"), 0);
}

#[tokio::test]
async fn alias_redirects_are_passed_to_the_browser() {
    let named = AliasedSite::start("");
    let image = [
        ("sec-fetch-dest", "image"),
        ("sec-fetch-mode", "no-cors"),
        ("sec-fetch-site", "cross-site"),
    ];
    let old = named.get("/old.png", &image).await;
    let name = &named.names[0];
    assert_eq!(old.status, StatusCode::FOUND);
    assert_eq!(old.field("location"), format!("https://{name}/a.png"));
    assert_eq!(named.widgets.times("/a.png"), 0);
    let out = named.get("/out.png", &image).await;
    assert_eq!(out.field("location"), "http://169.254.169.254/latest");
    let navigation = named.get("/out.png", &[]).await;
    assert_eq!(navigation.status, StatusCode::NOT_FOUND, "an open redirect");
}

#[tokio::test]
async fn alias_serves_no_site_page_and_unknown_names_fail() {
    let named = AliasedSite::start("");
    let [widgets, pictures] = &named.names;
    let status = async |host: &str, target: &str, fields: &[(&str, &str)]| {
        named
            .send_request(Method::GET, host, target, fields)
            .await
            .status
    };
    assert_eq!(
        status(&widgets.to_uppercase(), "/a.png", &[]).await,
        StatusCode::OK
    );
    let unknown = "aaaaaaaaaaaaaaaa.x.assets.test:8443";
    assert_eq!(
        status(unknown, "/", &[]).await,
        StatusCode::MISDIRECTED_REQUEST
    );
    assert_eq!(
        status("x.assets.test", "/", &[]).await,
        StatusCode::MISDIRECTED_REQUEST
    );
    let port = named.widgets.address.port();
    let proxied_path = &format!("/.spdy/1/-/p/widgets.test~{port}/a.png");
    assert_eq!(
        status(widgets, proxied_path, &[]).await,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        status("www.site.test", proxied_path, &[]).await,
        StatusCode::NOT_FOUND
    );
    let page = [
        ("sec-fetch-dest", "document"),
        ("sec-fetch-mode", "navigate"),
    ];
    for name in [widgets, pictures] {
        assert_eq!(
            status(name, "/frame.html", &page).await,
            StatusCode::NOT_FOUND
        );
    }
    let frame = [("sec-fetch-dest", "iframe"), ("sec-fetch-mode", "navigate")];
    assert_eq!(
        status(pictures, "/frame.html", &frame).await,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        status(pictures, "/frame.html", &[]).await,
        StatusCode::NOT_FOUND,
        "by its type"
    );
    assert!(
        named.own.request_lines().is_empty(),
        "{:?}",
        named.own.request_lines()
    );
}

/// Browsers keep pages and sheets of before a host had a name.
#[tokio::test]
async fn former_proxied_url_redirects_to_aliased_host() {
    let named = AliasedSite::start("");
    let port = named.widgets.address.port();
    let target = format!("/.spdy/1/-/p/widgets.test~{port}/a.png?b");
    for destination in ["image", "script", "empty", "iframe", "document"] {
        let fields = [
            ("sec-fetch-dest", destination),
            ("sec-fetch-site", "same-origin"),
        ];
        let response = named.send_request(Method::GET, "www.site.test", &target, &fields);
        let response = response.await;
        match destination {
            "iframe" | "document" => assert_eq!(response.status, StatusCode::NOT_FOUND),
            _ => {
                assert_eq!(
                    response.status,
                    StatusCode::TEMPORARY_REDIRECT,
                    "{destination}"
                );
                let host_url = format!("http://widgets.test:{port}/a.png?b");
                assert_eq!(response.field("location"), host_url);
            }
        }
    }
}

/// With it the host would have certificates for a name of the operator's.
#[tokio::test]
async fn alias_does_not_serve_well_known() {
    let named = AliasedSite::start("");
    let target = "/.well-known/acme-challenge/a";
    let proof = named.get(target, &[]).await;
    assert_eq!(proof.status, StatusCode::NOT_FOUND);
    assert_eq!(named.widgets.times(target), 0);
}

#[tokio::test]
async fn alias_redirect_passes_cors_checks() {
    let named = AliasedSite::start("");
    let port = named.widgets.address.port();
    let fields = [
        ("origin", "https://www.site.test:8443"),
        ("sec-fetch-dest", "style"),
        ("sec-fetch-mode", "cors"),
    ];
    let response = named.get("/odd.css", &fields).await;
    assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT);
    let host_url = format!("http://widgets.test:{port}/odd.css");
    assert_eq!(response.field("location"), host_url);
    assert_eq!(response.field("access-control-allow-origin"), "*");
    assert_eq!(
        response.field("cross-origin-resource-policy"),
        "cross-origin"
    );
}

/// From its root it means its host there.
#[tokio::test]
async fn no_transform_stylesheet_passes_under_alias() {
    let named = AliasedSite::start("");
    let style = [("sec-fetch-dest", "style"), ("sec-fetch-mode", "no-cors")];
    let sheet = named.get("/fixed.css", &style).await;
    assert_eq!(sheet.text(), "@import '/b.css';");
}

#[tokio::test]
async fn navigation_from_frame_opens_the_host() {
    let named = AliasedSite::start("");
    let port = named.widgets.address.port();
    let navigate = async |site: &str| {
        let fields = [
            ("sec-fetch-dest", "document"),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-site", site),
        ];
        named.get("/full?a", &fields).await
    };
    let response = navigate("same-origin").await;
    assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT);
    let host_url = format!("http://widgets.test:{port}/full?a");
    assert_eq!(response.field("location"), host_url);
    for others in ["cross-site", "same-site", "none"] {
        assert_eq!(
            navigate(others).await.status,
            StatusCode::NOT_FOUND,
            "{others}"
        );
    }
}

/// Scripts of a document load more than its tags name.
#[tokio::test]
async fn unlisted_path_of_alias_redirects_to_host() {
    let named = AliasedSite::start("");
    let (name, port) = (&named.names[1], named.widgets.address.port());
    let load = async |destination: &str| {
        let fields = [("sec-fetch-dest", destination)];
        named
            .send_request(Method::GET, name, "/b.js?c", &fields)
            .await
    };
    let response = load("script").await;
    assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT);
    let host_url = format!("http://pictures.test:{port}/b.js?c");
    assert_eq!(response.field("location"), host_url);
    for destination in ["iframe", "worker", "document"] {
        assert_eq!(load(destination).await.status, StatusCode::NOT_FOUND);
    }
    assert_eq!(named.widgets.times("/b.js?c"), 0);
}

#[tokio::test]
async fn alias_of_private_host_is_refused() {
    let named = AliasedSite::start("");
    let response = named
        .send_request(Method::GET, &named.rebound, "/a.png", &[])
        .await;
    assert_eq!(response.status, StatusCode::BAD_GATEWAY);
    assert!(!response.text().contains("10.0.0.1"), "{}", response.text());
}

#[tokio::test]
async fn alias_is_usable_only_by_its_site() {
    let named = AliasedSite::start("");
    assert_ne!(named.of_second, named.names[0]);
    let by = async |origin: &str| {
        let fields = [("origin", origin)];
        let response = named.send_request(Method::GET, &named.of_second, "/a.png", &fields);
        response.await.status
    };
    assert_eq!(by("https://www.second.test:8443").await, StatusCode::OK);
    assert_eq!(
        by("https://www.site.test:8443").await,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn unreachable_alias_redirects_safe_requests_only() {
    let named = AliasedSite::start("");
    named.widgets.stop();
    until("the host is down", || {
        std::net::TcpStream::connect(named.widgets.address).is_err()
    })
    .await;
    let port = named.widgets.address.port();
    let of_page = [
        ("origin", "https://www.site.test"),
        ("sec-fetch-dest", "empty"),
        ("sec-fetch-mode", "cors"),
        ("sec-fetch-site", "cross-site"),
    ];
    let response = named.get("/a.json?q", &of_page).await;
    assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT);
    assert_eq!(
        response.field("location"),
        format!("http://widgets.test:{port}/a.json?q")
    );
    assert_eq!(response.field("access-control-allow-origin"), "*");
    // The host may have acted on the request, so the browser must not send it again.
    let response = named
        .send_request(Method::POST, &named.names[0], "/a.json", &of_page)
        .await;
    assert_eq!(response.status, StatusCode::BAD_GATEWAY);
}
