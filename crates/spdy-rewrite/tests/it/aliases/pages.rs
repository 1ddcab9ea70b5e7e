//! Hosts with a name of their own: references to them in pages, references in their own pages and sheets, and the
//! effect of policies.

use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderValue};
use spdy_rewrite::csp::guard::CspGuard;
use spdy_rewrite::css::{StylesheetContext, rewrite_bytes};
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::config::{Config, HostConfig};

use crate::support::aliases::{config, name_of, opened, rules};
use crate::support::page::html;
use crate::support::{compile, keys, url};

/// The head of a page with `policy`, if that is one.
fn html_under(policy: &str) -> HeaderMap {
    let mut headers = html("text/html; charset=utf-8");
    if !policy.is_empty() {
        headers.insert(CONTENT_SECURITY_POLICY, policy.parse().unwrap());
    }
    headers
}

/// `page` of the site with `policy`, rewritten.
fn of_site(policy: &str, page: &str) -> (String, String) {
    let rules = rules();
    let mut headers = html_under(policy);
    let place = url("https://www.site.test/dir/page.html");
    let head = PageHead::rewrite(&rules, &place, StatusCode::OK, &mut headers, true);
    written(&rules, &place, head, &headers, page)
}

/// `page` of widgets.test with `policy`, as it is served under its name.
fn of_widgets(policy: &str, page: &str) -> (String, String) {
    let rules = rules();
    let page_url = opened(&rules, "https://widgets.test/dir/frame.html");
    let mut headers = html_under(policy);
    let head = PageHead::rewrite_alias(&rules, &page_url, StatusCode::OK, &mut headers);
    assert_eq!(head.left, None);
    written(&rules, page_url.url(), head, &headers, page)
}

/// The text and the policy, with `{widgets}` and `{pictures}` for the names of these.
fn written(
    rules: &Arc<Rules>,
    place: &url::Url,
    head: PageHead,
    headers: &HeaderMap,
    page: &str,
) -> (String, String) {
    let mut rewriter = HtmlRewriter::new(rules, place, head, None);
    let mut out = Vec::new();
    rewriter.write(page.as_bytes(), &mut out);
    rewriter.end(&mut out);
    let short = |text: String| {
        let text = text.replace(&name_of(rules, "widgets.test"), "{widgets}");
        text.replace(&name_of(rules, "pictures.test:8443"), "{pictures}")
    };
    let policy = headers.get(CONTENT_SECURITY_POLICY);
    let policy = policy.map_or("", |policy| policy.to_str().unwrap());
    (
        short(String::from_utf8(out).unwrap()),
        short(policy.to_owned()),
    )
}

#[test]
fn page_uses_alias_in_all_references() {
    for (page, expected) in [
        (
            "<img src=//widgets.test/a.png>",
            "<img src=\"{widgets}/a.png\">",
        ),
        (
            "<img srcset=\"https://widgets.test/a.png 1x, b.png 2x\">",
            "<img srcset=\"{widgets}/a.png 1x, b.png 2x\">",
        ),
        (
            "<iframe src=\"https://widgets.test/f?a&amp;b#c\"></iframe>",
            "<iframe src=\"{widgets}/f?a&amp;b#c\"></iframe>",
        ),
        (
            "<embed src=https://widgets.test/e>",
            "<embed src=\"{widgets}/e\">",
        ),
        (
            "<object data=https://widgets.test/o.svg></object>",
            "<object data=\"{widgets}/o.svg\"></object>",
        ),
        (
            "<script src=https://widgets.test/a.js integrity=sha256-x></script>",
            "<script src=\"{widgets}/a.js\" integrity=sha256-x></script>",
        ),
        (
            "<style>@import 'https://widgets.test/a.css'; a { background: url(https://pictures.test:8443/pub/b.png) }</style>",
            "<style>@import '{widgets}/a.css'; a { background: url({pictures}/pub/b.png) }</style>",
        ),
        ("<link rel=preconnect href=https://widgets.test>", "<!---->"),
        // References that stay unchanged.
        (
            "<a href=https://widgets.test/>x</a>",
            "<a href=https://widgets.test/>x</a>",
        ),
        (
            "<iframe src=https://cdn.test/f></iframe>",
            "<iframe src=https://cdn.test/f></iframe>",
        ),
        ("<iframe src=/own></iframe>", "<iframe src=/own></iframe>"),
        (
            "<iframe data-no-spdy src=https://widgets.test/f></iframe>",
            "<iframe data-no-spdy src=https://widgets.test/f></iframe>",
        ),
        (
            "<img crossorigin=use-credentials src=https://widgets.test/a.png>",
            "<img crossorigin=use-credentials src=https://widgets.test/a.png>",
        ),
    ] {
        let (text, _) = of_site("", page);
        assert_eq!(text, expected);
        let again = expected
            .replace("{widgets}", &name_of(&rules(), "widgets.test"))
            .replace("{pictures}", &name_of(&rules(), "pictures.test:8443"));
        assert_eq!(of_site("", &again).0, expected, "it was rewritten twice");
    }
}

#[test]
fn absolute_module_imports_resolve_to_alias() {
    let (text, _) = of_site(
        "",
        "<script type=module src=https://widgets.test/m.js></script>",
    );
    // From the root of a name a module's imports resolve correctly; under the site's they need an import map.
    let map = "<script type=\"importmap\">{\"imports\":{\"https://cdn.test/\":\"/.spdy/1/-/s/cdn.test/\",\
               \"https://widgets.test/\":\"{widgets}/\"},\"scopes\":{\"/.spdy/1/-/s/cdn.test/\":\
               {\"/\":\"/.spdy/1/-/s/cdn.test/\",\"/.spdy/\":\"/.spdy/\"}}}</script>";
    let module = "<script type=module src=\"{widgets}/m.js\"></script>";
    assert_eq!(text, format!("{map}{module}"));
}

#[test]
fn policy_allows_alias_like_its_host() {
    for (policy, expected) in [
        (
            "frame-src https://widgets.test",
            "frame-src https://widgets.test {widgets}/",
        ),
        (
            "child-src widgets.test; worker-src https://widgets.test/w/",
            "child-src widgets.test {widgets}/; worker-src https://widgets.test/w/ {widgets}/w/",
        ),
        (
            "default-src 'self' https://widgets.test; connect-src https://widgets.test",
            "default-src 'self' https://widgets.test {widgets}/; connect-src https://widgets.test {widgets}/",
        ),
        (
            "img-src https://*.assets-b.test https://cdn.test",
            "img-src https://*.assets-b.test https://cdn.test /.spdy/",
        ),
        (
            "img-src https://pictures.test:8443",
            "img-src https://pictures.test:8443 {pictures}/pub/",
        ),
        (
            "frame-src 'none'; img-src 'self'",
            "frame-src 'none'; img-src 'self'",
        ),
        (
            "frame-ancestors https://widgets.test; form-action https://widgets.test",
            "frame-ancestors https://widgets.test; form-action https://widgets.test",
        ),
    ] {
        let (_, rewritten) = of_site(policy, "");
        let rewritten = rewritten.replace("https://www.site.test/.spdy/1/-/s/cdn.test/", "/.spdy/");
        let words = |text: &str| {
            let mut words: Vec<_> = text.split(' ').map(str::to_owned).collect();
            words.sort();
            words
        };
        assert_eq!(words(&rewritten), words(expected), "{policy}");
    }
    let frame = "<iframe src=https://widgets.test/f></iframe>";
    assert_eq!(
        of_site("frame-src 'self'", frame).0,
        frame,
        "it stays blocked"
    );
    let (page_text, _) = of_site("frame-src https://widgets.test", frame);
    assert_eq!(page_text, "<iframe src=\"{widgets}/f\"></iframe>");
}

#[test]
fn alias_document_references_aliases_but_no_proxied_urls() {
    for (page, expected) in [
        // Relative references and paths from the root mean the alias without rewriting.
        (
            "<img src=a.png><script src=/a.js></script>",
            "<img src=a.png><script src=/a.js></script>",
        ),
        (
            "<iframe src=deeper.html></iframe>",
            "<iframe src=deeper.html></iframe>",
        ),
        (
            "<img src=https://widgets.test/a.png>",
            "<img src=\"{widgets}/a.png\">",
        ),
        (
            "<img src=https://pictures.test:8443/pub/a.png>",
            "<img src=\"{pictures}/pub/a.png\">",
        ),
        (
            "<img src=https://cdn.test/a.png>",
            "<img src=https://cdn.test/a.png>",
        ),
        (
            "<img src=https://www.site.test/a.png>",
            "<img src=https://www.site.test/a.png>",
        ),
        (
            "<base href=/b/><img src=a.png>",
            "<base href=/b/><img src=a.png>",
        ),
        (
            "<base href=https://widgets.test/b/><img src=a.png>",
            "<base href=https://widgets.test/b/><img src=\"{widgets}/b/a.png\">",
        ),
        (
            "<link rel=stylesheet href=https://www.site.test/a.css integrity=sha256-x>",
            "<link rel=stylesheet href=https://www.site.test/a.css integrity=sha256-x>",
        ),
    ] {
        assert_eq!(of_widgets("", page).0, expected);
    }
}

#[test]
fn self_in_alias_document_includes_the_host() {
    let (_, policy) = of_widgets(
        "default-src 'self'; img-src https://pictures.test:8443 https://cdn.test",
        "",
    );
    assert_eq!(
        policy,
        "default-src 'self' https://widgets.test; img-src https://pictures.test:8443 https://cdn.test {pictures}/pub/"
    );
    let forms = "form-action 'self'; frame-ancestors 'self'";
    assert_eq!(
        of_widgets(forms, "").1,
        "form-action 'self' https://widgets.test; frame-ancestors 'self'"
    );
    let image = "<img src=https://widgets.test/a.png>";
    assert_eq!(
        of_widgets("img-src 'self'", image).0,
        "<img src=\"{widgets}/a.png\">"
    );
    assert_eq!(of_widgets("img-src 'none'", image).0, image);
}

#[test]
fn base_allowed_only_for_host_is_ignored_under_alias() {
    let page = "<base href=https://widgets.test/dir/><img src=a.png>";
    let by_base = "<base href=https://widgets.test/dir/><img src=\"{widgets}/dir/a.png\">";
    assert_eq!(of_widgets("", page).0, by_base);
    // The browser reads from where it has the page, which leads to the same.
    assert_eq!(of_widgets("base-uri 'self'", page).0, page);
}

#[test]
fn sandboxed_alias_document_is_rewritten() {
    let image = "<img src=https://widgets.test/a.png>";
    let (text, policy) = of_widgets("sandbox allow-scripts; img-src 'self'", image);
    assert_eq!(text, "<img src=\"{widgets}/a.png\">");
    assert_eq!(
        policy,
        "sandbox allow-scripts; img-src 'self' https://widgets.test"
    );
}

#[test]
fn pinned_stylesheet_of_alias_document_is_unrewritten() {
    let pinned = |href: &str| format!("<link rel=stylesheet href={href} integrity=sha256-{PIN}>");
    for (href, expected) in [
        ("a.css", "\"a.css?spdy=off\""),
        ("/a.css?b#c", "\"/a.css?b&amp;spdy=off#c\""),
        ("https://widgets.test/a.css", "\"{widgets}/a.css?spdy=off\""),
        // The stylesheet of another host has no integrity state yet.
        (
            "https://pictures.test:8443/pub/a.css",
            "https://pictures.test:8443/pub/a.css",
        ),
    ] {
        assert_eq!(of_widgets("", &pinned(href)).0, pinned(expected), "{href}");
    }
}

/// The base64 of a SHA-256.
const PIN: &str = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

#[test]
fn alias_scripts_need_no_csp_guard() {
    let guarded = |host: HostConfig| {
        let config = Config {
            hosts: vec![host, HostConfig::named("widgets.test")],
            ..config()
        };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
        headers.insert(
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("script-src 'self'"),
        );
        CspGuard::from_head(
            &compile(&config, keys()),
            &url("https://www.site.test/"),
            &headers,
        )
    };
    assert!(!guarded(HostConfig::all_kinds("cdn.test")).is_empty());
    assert!(guarded(HostConfig::named("cdn.test")).is_empty());
}

#[test]
fn alias_stylesheet_keeps_relative_urls() {
    let rules = rules();
    let sheet_url = opened(&rules, "https://widgets.test/css/a.css");
    let sheet = StylesheetContext::moved(&rules, &sheet_url, &sheet_url);
    let text = "a { background: url(../a.png), url(/b.png), url(https://widgets.test/c.png), \
                url(https://cdn.test/d.png) } @import 'e.css';";
    let rewritten = rewrite_bytes(&rules, &sheet, text.as_bytes(), None);
    let rewritten = rewritten.body.into_owned();
    let expected = text.replace("https://widgets.test", &name_of(&rules, "widgets.test"));
    assert_eq!(String::from_utf8(rewritten).unwrap(), expected);
}
