//! Proxied resources and the policies of the page: Content-Security-Policy and Referrer-Policy.

use http::StatusCode;

use crate::support::fields::{CSS, HTML, ONCE};
use crate::support::proxied_site::{assert_redirected_to_host, before, get_proxied, load, other};
use crate::support::{Origin, accelerator_of, get, respond, until};

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
