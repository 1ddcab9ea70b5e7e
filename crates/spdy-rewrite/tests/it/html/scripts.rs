//! The scripts of a page: which are moved, and what modules need that are.

use std::sync::Arc;

use serde_json::{Value, json};
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::config::{Config, HostConfig};

use crate::support::page::{CDN, becomes, html, rewrite_with, rewritten, stays};
use crate::support::{self, rules, url};

#[test]
fn self_url_scripts_are_unchanged() {
    for host in [
        "sc-static.net",
        "js.stripe.com",
        "www.paypal.com",
        "cloud.umami.is",
    ] {
        let config = Config {
            hosts: vec![HostConfig::all_kinds(host)],
            ..Config::default()
        };
        let site = url("https://www.site.test");
        let rules = Arc::new(Rules::compile(&site, &config, None).unwrap());
        let page =
            format!("<script src=https://{host}/a.js></script><img src=https://{host}/a.png>");
        let (_, report) = rewrite_with(&rules, &mut html("text/html"), page.as_bytes());
        assert_eq!(
            report.skipped_by_reason.get("reads-its-url"),
            Some(&1),
            "{host}"
        );
        assert_eq!(report.proxied, 1, "{host}");
    }
}

#[test]
fn scripts_of_listed_hosts_are_rewritten() {
    becomes(
        "<script src=https://cdn.test/a.js></script>",
        "<script src=\"{cdn}/a.js\"></script>",
    );
    becomes(
        "<script type=text/javascript async src=https://cdn.test/a.js></script>",
        "<script type=text/javascript async src=\"{cdn}/a.js\"></script>",
    );
    stays("<script src=https://folder.test/lib/a.js></script>");
    stays("<script type=text/template src=https://cdn.test/a.js></script>");
    becomes(
        "<svg><script href=https://cdn.test/a.js></script></svg>",
        "<svg><script href=\"{cdn}/a.js\"></script></svg>",
    );
    let shared = rewritten("<script src=https://shared.test/a.js></script>");
    assert!(shared.starts_with("<script src=\"/.spdy/1/ua"), "{shared}");
    assert!(
        shared.ends_with("/s/shared.test/a.js\"></script>"),
        "{shared}"
    );
}

/// What modules of cdn.test need: their own URLs in full, and those from the root of their host.
const MAP: &str = r#"{"imports":{"https://cdn.test/":"{cdn}/"},"scopes":{"{cdn}/":{"/":"{cdn}/","/.spdy/":"/.spdy/"}}}"#;

#[test]
fn import_map_precedes_first_rewritten_module() {
    let map = format!("<script type=\"importmap\">{MAP}</script>");
    becomes(
        "<script type=module src=https://cdn.test/m.js></script><script type=module>import 'https://cdn.test/n.js'</script>",
        &format!(
            "{map}<script type=module src=\"{{cdn}}/m.js\"></script><script type=module>import 'https://cdn.test/n.js'</script>"
        ),
    );
    becomes(
        "<link rel=modulepreload href=https://cdn.test/m.js><script type=module src=https://cdn.test/m.js></script>",
        &format!(
            "{map}<link rel=modulepreload href=\"{{cdn}}/m.js\"><script type=module src=\"{{cdn}}/m.js\"></script>"
        ),
    );
    becomes(
        "<script type=module nonce=abc src=/own.js></script>",
        &format!(
            "{}<script type=module nonce=abc src=/own.js></script>",
            map.replace("importmap\"", "importmap\" nonce=\"abc\"")
        ),
    );
}

/// `import './dep.js'` in it would be requested under a capability that is for another URL.
#[test]
fn public_cdn_modules_are_unchanged() {
    for page in [
        "<script type=module src=https://shared.test/m.js></script>",
        "<link rel=modulepreload href=https://shared.test/m.js>",
        "<script type=importmap>{\"imports\":{\"a\":\"https://shared.test/m.js\"}}</script>",
    ] {
        let (out, report) = rewrite_with(&rules(), &mut html("text/html"), page.as_bytes());
        let out = String::from_utf8(out).unwrap();
        assert!(
            out.ends_with("</script>") || out.ends_with("m.js>"),
            "{out}"
        );
        assert!(
            out.contains("https://shared.test/m.js") && !out.contains("/s/shared.test/"),
            "{out}"
        );
        assert_eq!(
            report.skipped_by_reason.get("shared-module"),
            Some(&1),
            "{page}"
        );
    }
    let preload = rewritten("<link rel=preload as=script href=https://shared.test/a.js>");
    assert!(preload.contains("/.spdy/1/ua"), "{preload}");
}

#[test]
fn public_cdn_preconnect_is_removed_only_if_configured() {
    let hint = "<link rel=preconnect href=https://shared.test>";
    let with = |site| {
        let shared = HostConfig {
            shared: true,
            whole: site,
            ..HostConfig::all_kinds("shared.test")
        };
        let config = Config {
            hosts: vec![shared],
            ..Config::default()
        };
        let rules = support::compile(&config, support::keys());
        let (out, _) = rewrite_with(&rules, &mut html("text/html"), hint.as_bytes());
        String::from_utf8(out).unwrap()
    };
    assert_eq!(with(None), hint, "its modules stay");
    assert_eq!(with(Some(true)), "<!---->");
}

#[test]
fn page_import_map_is_rewritten_and_completed() {
    becomes(
        r#"<script type="importmap">{"imports":{"a":"https://cdn.test/a.js","b":"/b.js","c":"https://stranger.test/c.js","d":null},"scopes":{"https://cdn.test/x/":{"e":"https://cdn.test/e.js"}},"integrity":{"https://cdn.test/a.js":"sha256-AA"}}</script><script type=module src=/m.js></script>"#,
        r#"<script type="importmap">{"imports":{"a":"{cdn}/a.js","b":"/b.js","c":"https://stranger.test/c.js","d":null,"https://cdn.test/":"{cdn}/"},"integrity":{"{cdn}/a.js":"sha256-AA","https://cdn.test/a.js":"sha256-AA"},"scopes":{"{cdn}/":{"/":"{cdn}/","/.spdy/":"/.spdy/"},"{cdn}/x/":{"e":"{cdn}/e.js"},"https://cdn.test/x/":{"e":"{cdn}/e.js"}}}</script><script type=module src=/m.js></script>"#,
    );
    stays("<script type=importmap>no map</script>");
    stays(
        "<script type=importmap data-no-spdy>{\"imports\":{\"a\":\"https://cdn.test/a.js\"}}</script>",
    );
}

#[test]
fn root_relative_import_resolves_to_module_host() {
    let config = Config {
        hosts: vec![
            HostConfig::all_kinds("*.wild.test"),
            HostConfig {
                path: "/lib/".to_owned(),
                ..HostConfig::all_kinds("folder.test")
            },
            HostConfig {
                path: "/one.js".to_owned(),
                ..HostConfig::all_kinds("folder.test")
            },
            HostConfig {
                path: "/two.js?v=1".to_owned(),
                ..HostConfig::all_kinds("folder.test")
            },
        ],
        ..Config::default()
    };
    let rules = Rules::compile(&url("https://www.site.test"), &config, None).unwrap();
    let rewritten = |page: &str| {
        let mut headers = html("text/html; charset=utf-8");
        let (out, _) = rewrite_with(&Arc::new(rules), &mut headers, page.as_bytes());
        String::from_utf8(out).unwrap()
    };
    let page = "<base href=https://else.test/><img src=https://b.wild.test/b.png>\
        <script type=module src=https://a.wild.test/m.js></script>";
    let output = rewritten(page);
    let map = output.split("importmap\">").nth(1).unwrap();
    let map: Value = serde_json::from_str(map.split("</script>").next().unwrap()).unwrap();
    // The base is another host's, so all URLs are absolute; of a pattern, only hosts that were named before
    // are there.
    let site = "https://www.site.test";
    let at = |host: &str| format!("{site}/.spdy/1/-/s/{host}");
    let of_wild = |host: &str| json!({ format!("{site}/"): at(host), format!("{site}/.spdy/"): format!("{site}/.spdy/") });
    let of_folder = json!({
        format!("{site}/"): "https://folder.test/",
        format!("{site}/lib/"): at("folder.test/lib/"),
        format!("{site}/one.js"): at("folder.test/one.js"),
        format!("{site}/two.js?v=1"): at("folder.test/two.js?v=1"),
        format!("{site}/.spdy/"): format!("{site}/.spdy/"),
    });
    assert_eq!(
        map,
        json!({
            "imports": {
                "https://a.wild.test/": at("a.wild.test/"),
                "https://b.wild.test/": at("b.wild.test/"),
                "https://folder.test/lib/": at("folder.test/lib/"),
                "https://folder.test/one.js": at("folder.test/one.js"),
                "https://folder.test/two.js?v=1": at("folder.test/two.js?v=1"),
            },
            "scopes": {
                at("a.wild.test/"): of_wild("a.wild.test/"),
                at("b.wild.test/"): of_wild("b.wild.test/"),
                // A module may import from another listed part of its host.
                // Of all listed parts: modules of a single path may have a query.
                at("folder.test/"): of_folder,
            },
        })
    );
}

#[test]
fn pinned_scripts_keep_hash_and_pinned_stylesheets_stay() {
    becomes(
        "<script integrity=sha256-AAAA crossorigin src=https://cdn.test/a.js></script>",
        "<script integrity=sha256-AAAA crossorigin src=\"{cdn}/a.js\"></script>",
    );
    stays("<link rel=stylesheet integrity=sha256-AAAA crossorigin href=https://cdn.test/a.css>");
}

#[test]
fn template_scripts_do_not_affect_the_page() {
    let script = "<script type=module src=https://cdn.test/m.js></script>";
    let rewritten_script = script.replace("https://cdn.test/m.js", &format!("\"{CDN}/m.js\""));
    let map = format!(
        "<script type=\"importmap\">{}</script>",
        MAP.replace("{cdn}", CDN)
    );
    for inert in [
        "<script type=importmap></script>",
        "<meta http-equiv=content-security-policy content=\"script-src 'none'\">",
    ] {
        assert_eq!(
            rewritten(&format!("<template>{inert}{script}</template>{script}")),
            format!("<template>{inert}{rewritten_script}</template>{map}{rewritten_script}")
        );
    }
}
