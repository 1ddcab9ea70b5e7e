//! Moving resources according to what pages state: scripts that they do not allow, hosts that must not see their URLs, sheets that they
//! pin, and what leads back to its source.

use http::StatusCode;
use spdy_rewrite::reference::integrity::{Digests, matches};

use crate::support::{CollectedResponse, Origin, accelerator_of, get, pages, respond, until};

const FRESH: (&str, &str) = ("cache-control", "max-age=60");
const ONCE: (&str, &str) = ("cache-control", "no-store");
const HTML: (&str, &str) = ("content-type", "text/html; charset=utf-8");
const CSS: (&str, &str) = ("content-type", "text/css");
const JS: (&str, &str) = ("content-type", "text/javascript");
const PNG: (&str, &str) = ("content-type", "image/png");

/// Names nothing that has a port, so that its hash is known: `openssl dgst -sha256 -binary | base64`.
const SHEET: &str = "p { background: url(http://cdn.test/b.png) }\n";
const SHEET_SHA256: &str = "sha256-n2NC7uYfsk6aCLM32Xq8aC1K+KrH1vQLOlLAB3v6YsM=";

type Proxy = std::sync::Arc<spdy_proxy::proxy::Proxy>;

/// The accelerator before `own`, which moves all that `cdn.test` has but `/ads/`, at `other`, and images and sheets of its port 80.
fn before(own: &Origin, other: &Origin) -> Proxy {
    let (origin, port) = (own.address, other.address.port());
    accelerator_of(&format!(
        "[listen]\ntls = []\nplain = ['127.0.0.1:80']\n\
         [upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image', 'style', 'script', 'font']\nexcept = ['/ads/']\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test'\nscheme = 'http'\nkinds = ['image', 'style']\n"
    ))
}

fn other() -> Origin {
    Origin::start(pages(&[
        ("/a.js", &[JS, FRESH], "window.a = 1"),
        ("/s.css", &[CSS, FRESH], "p { color: red }"),
        ("/b.png", &[PNG, FRESH], "a picture"),
        ("/c.png", &[PNG, FRESH], "a picture"),
        ("/typeless", &[FRESH], "a picture"),
        (
            "/fixed.css",
            &[CSS, ("cache-control", "no-transform, max-age=60")],
            "a{b:url(/c)}",
        ),
        (
            "/coded.css",
            &[CSS, FRESH, ("content-encoding", "x-own")],
            "a{b:url(/c)}",
        ),
    ]))
}

/// As a browser loads a thing that a page of the site names.
fn load(destination: &'static str) -> [(&'static str, &'static str); 3] {
    [
        ("sec-fetch-dest", destination),
        ("sec-fetch-mode", "no-cors"),
        ("sec-fetch-site", "same-origin"),
    ]
}

async fn get_proxied(
    proxy: &Proxy,
    other: &Origin,
    path: &str,
    fields: &[(&str, &str)],
) -> CollectedResponse {
    let port = other.address.port();
    get(
        proxy,
        &format!("/.spdy/1/-/p/cdn.test~{port}{path}"),
        fields,
    )
    .await
}

#[track_caller]
fn assert_redirected_to_host(response: &CollectedResponse, other: &Origin, path: &str) {
    assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT, "{path}");
    let host_url = format!("http://cdn.test:{}{path}", other.address.port());
    assert_eq!(response.field("location"), host_url);
    assert_eq!(response.field("cache-control"), "no-store");
}

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

/// A site with a page under each of those policies, that names a sheet and a script of `cdn.test`; its port is `{port}`.
fn site_of(policies: &'static [(&'static str, &'static str)], port: u16) -> Origin {
    Origin::start(move |request: http::Request<bytes::Bytes>| {
        let policy = policies
            .iter()
            .find(|(path, _)| *path == request.uri().path());
        let (path, policy) = policy.copied().unwrap_or_default();
        let policy = policy.replace("{cdn}", &format!("http://cdn.test:{port}"));
        let policy = policy.as_str();
        let (policy, meta) = match path.ends_with("meta") {
            true => ("", policy),
            false => (policy, ""),
        };
        let text = format!(
            "<meta http-equiv=content-security-policy content=\"{meta}\">\
             <link rel=stylesheet href='http://cdn.test:{port}/s.css'>\
             <script src='http://cdn.test:{port}/a.js'></script>"
        );
        let tried = match path.ends_with("tried") {
            true => "style-src 'self'",
            false => "",
        };
        let fields = [
            HTML,
            ONCE,
            ("content-security-policy", policy),
            ("content-security-policy-report-only", tried),
        ];
        std::future::ready(respond(&fields, text))
    })
}

#[tokio::test]
async fn script_blocked_by_csp_is_not_served_under_site() {
    const POLICIES: &[(&str, &str)] = &[
        ("/allows", "script-src 'self' {cdn}"),
        ("/strict", "script-src 'self' 'nonce-n' 'strict-dynamic'"),
        ("/elsewhere", "script-src https://else.test"),
        ("/self", "script-src 'self'"),
        ("/meta", "default-src 'self'; img-src *"),
        ("/folder", "script-src 'self' {cdn}/folder/"),
    ];
    for guard in ["/self", "/meta", "/folder"] {
        let other = other();
        let own = site_of(POLICIES, other.address.port());
        let proxy = before(&own, &other);
        for harmless in ["/allows", "/strict", "/elsewhere", "/none"] {
            let page = get(&proxy, harmless, &[]).await;
            let is_rewritten = matches!(harmless, "/allows" | "/none");
            assert_eq!(
                page.text().contains("src=\"/.spdy/"),
                is_rewritten,
                "{harmless}"
            );
        }
        let response = get_proxied(&proxy, &other, "/a.js", &load("script")).await;
        assert_eq!(response.status, StatusCode::OK, "{guard}");
        // From here on it is not served under the site's name to any client, on whatever page.
        get(&proxy, guard, &[]).await;
        until("the page has come by", || {
            proxy
                .pages
                .reports
                .of(&format!("http://www.site.test{guard}"))
                .is_some()
        })
        .await;
        assert_redirected_to_host(
            &get_proxied(&proxy, &other, "/a.js", &load("script")).await,
            &other,
            "/a.js",
        );
        let response = get_proxied(&proxy, &other, "/a.js", &[]).await;
        assert_eq!(
            response.status,
            StatusCode::NOT_FOUND,
            "it is kept, and is a script"
        );
        let response = get_proxied(&proxy, &other, "/b.png", &load("image")).await;
        assert_eq!(response.status, StatusCode::OK, "a picture runs nothing");
        let page = get(&proxy, "/allows", &[]).await;
        assert!(!page.text().contains("src=\"/.spdy/"), "{}", page.text());
    }
}

/// Regression: its fonts were blocked. The site's sheets are rewritten for it, too, and its policy did not name the new places.
#[tokio::test]
async fn csp_of_skipped_page_allows_rewritten_stylesheets() {
    const POLICY: &str = "content-security-policy";
    const SKIPPED: [(&str, &[(&str, &str)]); 6] = [
        ("/checkout/", &[HTML]),
        (
            "/fixed",
            &[HTML, ("cache-control", "max-age=60, no-transform")],
        ),
        ("/coded", &[HTML, ("content-encoding", "x-own")]),
        ("/sandboxed", &[HTML]),
        ("/x.xhtml", &[("content-type", "application/xhtml+xml")]),
        ("/data.json", &[("content-type", "application/json")]),
    ];
    let other = other();
    let port = other.address.port();
    let cdn = format!("http://cdn.test:{port}");
    let text = format!("<p style='background: url({cdn}/b.png)'>");
    let policy_of = move |path: &'static str| {
        let more = if path == "/sandboxed" {
            "sandbox; "
        } else {
            ""
        };
        format!("{more}font-src http://cdn.test:{port}")
    };
    let body = text.clone();
    let own = Origin::start(move |request: http::Request<bytes::Bytes>| {
        let page = SKIPPED
            .iter()
            .find(|(path, _)| *path == request.uri().path());
        let (path, fields) = page.copied().unwrap_or(("", &[CSS]));
        let policy = policy_of(path);
        let mut all = fields.to_vec();
        all.push((POLICY, &policy));
        let sheet = format!("@font-face{{src:url(http://cdn.test:{port}/f.woff)}}");
        let text = if path.is_empty() { sheet } else { body.clone() };
        std::future::ready(respond(&all, text))
    });
    let proxy = accelerator_of(&format!(
        "[listen]\ntls = []\nplain = ['127.0.0.1:80']\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\n\
         [site.rewrite]\npages_left = ['/checkout/']\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image', 'font']\n",
        own.address
    ));
    let proxied_prefix = format!("/.spdy/1/-/p/cdn.test~{port}/");
    let sheet = get(&proxy, "/site.css", &[]).await;
    assert_eq!(
        sheet.text(),
        format!("@font-face{{src:url({proxied_prefix}f.woff)}}")
    );
    for (path, _) in SKIPPED {
        let origin_policy = policy_of(path);
        let expected = match path {
            "/data.json" => origin_policy.clone(),
            _ => format!("{origin_policy} http://www.site.test{proxied_prefix}"),
        };
        let response = get(&proxy, path, &[]).await;
        assert_eq!(response.field(POLICY), expected, "{path}");
        assert_eq!(response.text(), text, "{path}");
        let response = get(&proxy, path, &[("cookie", "spdy=off")]).await;
        assert_eq!(
            response.field(POLICY),
            origin_policy,
            "{path}, as its origin made it"
        );
    }
}

/// A sheet reads a page by what it loads: `input[value^=a] { background: url(…) }`.
#[tokio::test]
async fn stylesheet_blocked_by_csp_is_not_served_under_site() {
    const POLICIES: &[(&str, &str)] = &[
        ("/allows", "style-src 'self' {cdn}"),
        ("/inline", "style-src 'self' 'unsafe-inline'"),
        ("/tried", "style-src 'self' 'unsafe-inline'"),
        ("/self", "style-src 'self'"),
        ("/meta", "default-src 'self'; script-src *"),
    ];
    for guard in ["/self", "/meta"] {
        let other = other();
        let own = site_of(POLICIES, other.address.port());
        let proxy = before(&own, &other);
        for harmless in ["/allows", "/inline", "/tried", "/none"] {
            let page = get(&proxy, harmless, &[]).await;
            let is_rewritten = page.text().contains("href=\"/.spdy/");
            let is_let_in = ["/allows", "/none"].contains(&harmless);
            assert_eq!(is_rewritten, is_let_in, "{harmless}");
        }
        let response = get_proxied(&proxy, &other, "/s.css", &load("style")).await;
        assert_eq!(response.status, StatusCode::OK, "{guard}");
        get(&proxy, guard, &[]).await;
        let url = format!("http://www.site.test{guard}");
        until("the page has come by", || {
            proxy.pages.reports.of(&url).is_some()
        })
        .await;
        let response = get_proxied(&proxy, &other, "/s.css", &load("style")).await;
        assert_redirected_to_host(&response, &other, "/s.css");
        let response = get_proxied(&proxy, &other, "/s.css", &[]).await;
        assert_eq!(
            response.status,
            StatusCode::NOT_FOUND,
            "one stored response"
        );
        for (path, kind) in [("/a.js", "script"), ("/b.png", "image")] {
            let response = get_proxied(&proxy, &other, path, &load(kind)).await;
            assert_eq!(response.status, StatusCode::OK, "{path} is allowed");
        }
        let page = get(&proxy, "/allows", &[]).await;
        assert!(!page.text().contains("href=\"/.spdy/"), "{}", page.text());
        assert!(page.text().contains("src=\"/.spdy/"), "{}", page.text());
    }
}

#[tokio::test]
async fn third_party_referrer_follows_page_policy() {
    const POLICIES: [(&str, &str, &str); 5] = [
        ("/plain", "", "http://www.site.test/"),
        ("/origin", "strict-origin", "http://www.site.test/"),
        ("/same", "same-origin", ""),
        ("/none", "no-referrer", ""),
        ("/meta", "meta same-origin", ""),
    ];
    for (path, policy, expected) in POLICIES {
        let other = other();
        let port = other.address.port();
        let own = Origin::start(move |_| {
            let (header_policy, meta) = match policy.strip_prefix("meta ") {
                Some(meta) => ("", meta),
                None => (policy, ""),
            };
            let text = format!(
                "<meta name=referrer content='{meta}'><img src='http://cdn.test:{port}/b.png'>"
            );
            std::future::ready(respond(
                &[HTML, ONCE, ("referrer-policy", header_policy)],
                text,
            ))
        });
        let proxy = before(&own, &other);
        get(&proxy, path, &[]).await;
        let page = format!("http://www.site.test{path}");
        until("the page has come by", || {
            proxy.pages.reports.of(&page).is_some()
        })
        .await;
        until("its picture is fetched ahead", || other.times("/b.png") > 0).await;
        let referer = |path: &str| {
            let fields = other.fields(path);
            fields.get("referer").map_or(String::new(), |value| {
                value.to_str().expect("ASCII").to_owned()
            })
        };
        assert_eq!(referer("/b.png"), expected, "{policy}, ahead");
        // As its browser requests it: it takes moved resources for the site's own.
        let mut fields = load("image").to_vec();
        if policy != "no-referrer" {
            fields.push(("referer", &page));
        }
        get_proxied(&proxy, &other, "/c.png", &fields).await;
        assert_eq!(referer("/c.png"), expected, "{policy}");
    }
}

/// Regression: an error page, which any client without cookies can cause, made the page's resources send its URL to other hosts again.
#[tokio::test]
async fn error_page_does_not_reset_page_policy() {
    let other = other();
    let own = Origin::start(|request: http::Request<bytes::Bytes>| {
        let is_refused = request.headers().contains_key("x-refused");
        let text = ["<meta name=referrer content=same-origin>", "<p>no"];
        let mut response = respond(&[HTML, ONCE], text[usize::from(is_refused)]);
        if is_refused {
            *response.status_mut() = StatusCode::FORBIDDEN;
        }
        std::future::ready(response)
    });
    let proxy = before(&own, &other);
    get(&proxy, "/account", &[]).await;
    let refused = get(&proxy, "/account", &[("x-refused", "1")]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    let mut fields = load("image").to_vec();
    fields.push(("referer", "http://www.site.test/account"));
    get_proxied(&proxy, &other, "/c.png", &fields).await;
    assert!(!other.fields("/c.png").contains_key("referer"));
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
    // After two failures no request goes to the host for a while. That makes no difference.
    for number in 0..4 {
        let target = format!("/.spdy/1/-/p/down.test~1/{number}.png?q");
        let response = get(&proxy, &target, &load("image")).await;
        assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT, "{number}");
        let host_url = format!("http://down.test:1/{number}.png?q");
        assert_eq!(response.field("location"), host_url);
        assert_eq!(response.field("cache-control"), "no-store");
        let why = response.field("proxy-status");
        let is_resting = why == "spdy; error=destination_unavailable";
        assert!(
            is_resting || why == "spdy; error=connection_refused",
            "{why}"
        );
        assert!(is_resting == (number > 0), "{number}: {why}");
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
