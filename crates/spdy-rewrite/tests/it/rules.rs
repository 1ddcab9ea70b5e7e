//! Configurations, and the rules compiled from them.

use std::sync::Arc;

use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::limits::{
    MAX_EMBEDDED_BYTES, MAX_HTML_BUFFER_BYTES, MAX_REFERENCES, MAX_REPORTED_HOSTS,
};
use spdy_rewrite::reference::page_report::{PageReport, PageSkipReason};
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::capability::Keys;
use spdy_rewrite::rules::config::{Config, HostConfig};
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::rules::verdict::{ReferenceSource, Verdict};

use crate::support::{self, key, keys, rules, url};

fn compiled(text: &str) -> Result<Rules, String> {
    let config: Config = toml::from_str(text).map_err(|fault| fault.to_string())?;
    Rules::compile(&url("https://www.site.test"), &config, Some(keys()))
        .map_err(|fault| fault.to_string())
}

#[test]
fn valid_config_compiles() {
    let rules = compiled(
        r#"
        discover = true
        deny = ["ads.example", "*.tracker.example"]
        own_hosts = ["img.site.test"]
        pages_left = ["/admin/"]
        lazy_attributes = ["data-src"]
        referrer = "none"

        [[hosts]]
        host = "cdn.site-b.test"
        path = "/assets/"
        kinds = ["image", "style", "font", "script"]

        [[hosts]]
        host = "*.fonts.test:8443"
        kinds = ["font"]
        accept_language = true
        user_agent = true

        [[hosts]]
        host = "old.test"
        scheme = "http"
        shared = true
        whole = true
        "#,
    )
    .unwrap();
    assert!(rules.skips_page("/admin/x") && !rules.skips_page("/administer"));
    for path in [
        "/admin;v=1/x",
        "/%61dmin/x",
        "//admin/x",
        "/x/..;/admin/",
        "/admin%3b/x",
        "/x;%2f..%2fadmin/y",
        "/x;%252f..%252fadmin/y",
        "/x%2f..;%2f%2fadmin/y",
        "/x/%2e%2e;%2f..%5cadmin%5cy",
        // A server may merge slashes, undo one encoding, or cut at `;` before it decodes.
        "/admin%2f%2f..%2fx",
        "/q%2f..%2fadmin/x%252f..%252f..%252fy",
        "/admin;%2f../x",
        "/x%2f..%2fadmin",
    ] {
        assert!(rules.skips_page(path), "{path}");
    }
    for path in [
        "/x;/y",
        "/x%2fadminister/y",
        "/administer%2f..%2fx",
        "/x;%2f..%2fy",
    ] {
        assert!(!rules.skips_page(path), "{path}");
    }
    assert!(rules.is_site_host("img.site.test") && rules.is_site_host("www.site.test"));
    assert!(rules.open("/.spdy/1/-/s/a.fonts.test~8443/x.woff2").is_ok());
    assert!(rules.open("/.spdy/1/-/p/old.test/x.png").is_ok());
}

#[test]
fn invalid_config_is_an_error() {
    for (text, expected) in [
        ("prefx = '/x/'", "unknown field `prefx`"),
        (
            "[[hosts]]\nhost = 'a.test'\nkind = ['image']",
            "unknown field `kind`",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\nkinds = ['frame']",
            "unknown variant `frame`",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\nkinds = []",
            "hosts.kinds of a.test is empty",
        ),
        (
            "[[hosts]]\nhost = '10.0.0.1'",
            "hosts.host \"10.0.0.1\": expected a hostname, found an address",
        ),
        (
            "[[hosts]]\nhost = 'a.test:0'",
            "port \"0\", expected 1 to 65535",
        ),
        (
            "[[hosts]]\nhost = '*.co.uk'",
            "anyone can register a name under co.uk",
        ),
        (
            "[[hosts]]\nhost = '*.kawasaki.jp'",
            "anyone can register a name under kawasaki.jp",
        ),
        ("[[hosts]]\nhost = 'a b.test'", "hosts.host \"a b.test\""),
        (
            "[[hosts]]\nhost = 'a.test'\npath = 'lib/'",
            "hosts.path \"lib/\": expected a path",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\npath = '/a/../b/'",
            "hosts.path",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\npath = '/b@^1.2?target=es2022'",
            "(`%5E` for `^`)",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\npath = '/b/?q'",
            "hosts.path \"/b/?q\"",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\npath = '/b?q'\nkinds = ['style']",
            "hosts.path \"/b?q\" has a query",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\npath = '/b?q'\nkinds = ['script']\nshared = true",
            "hosts.path \"/b?q\" has a query",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\npath = '/a/'\nexcept = ['/b/']",
            "hosts.except \"/b/\": expected a path below hosts.path \"/a/\"",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\nexcept = ['/']",
            "hosts.except \"/\": expected a path below hosts.path",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\nexcept = ['/;v=1/']",
            "hosts.except \"/;v=1/\": expected a path below hosts.path",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\nexcept = ['ads']",
            "hosts.except \"ads\": expected a path",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\n[[hosts]]\nhost = 'A.test'",
            "a.test / is listed twice",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\npath = '/b?q'\nkinds = ['script']\n[[hosts]]\nhost = 'a.test'\npath = '/b?q'\nkinds = ['script']",
            "a.test /b is listed twice",
        ),
        (
            "[[hosts]]\nhost = 'a.test'\npath = '/b?q'\nkinds = ['script']\n[[hosts]]\nhost = 'a.test'\npath = '/b?r'\nkinds = ['script', 'style']",
            "a.test /b is listed with different queries: expected the same settings",
        ),
        (
            "prefix = '/a/b/'",
            "prefix is \"/a/b/\", expected one path segment in slashes",
        ),
        ("prefix = 'spdy'", "prefix"),
        ("prefix = '/../'", "prefix"),
        ("deny = ['*']", "deny \"*\""),
        ("own_hosts = ['a/b']", "own_hosts \"a/b\""),
        ("pages_left = ['x']", "pages_left \"x\""),
        ("lazy_attributes = ['src']", "lazy_attributes \"src\""),
        ("lazy_attributes = ['data-no-spdy']", "lazy_attributes"),
        ("lazy_attributes = ['data-x], *']", "lazy_attributes"),
    ] {
        let fault = compiled(text).err().unwrap_or_default();
        assert!(fault.contains(expected), "{text}: {fault}");
    }
    for site in [
        "https://www.site.test/x",
        "ftp://site.test",
        "https://u@site.test",
        "data:x",
    ] {
        assert!(
            Rules::compile(&url(site), &Config::default(), None).is_err(),
            "{site}"
        );
    }
    let discover = Config {
        discover: true,
        ..Config::default()
    };
    let fault = Rules::compile(&url("https://www.site.test"), &discover, None)
        .err()
        .unwrap();
    assert_eq!(fault.to_string(), "discover needs a key for capabilities");
}

#[test]
fn most_specific_rule_applies() {
    let entry = |host: &str, path: &str, kind| HostConfig {
        path: path.to_owned(),
        kinds: vec![kind],
        ..HostConfig::passive(host)
    };
    let config = Config {
        hosts: vec![
            entry("*.b.test", "/", Kind::Font),
            entry("a.b.test", "/", Kind::Image),
            entry("a.b.test", "/css/", Kind::Style),
            entry("a.b.test", "/css/one.js", Kind::Script),
        ],
        ..Config::default()
    };
    let rules = support::compile(&config, keys());
    let kinds = |target: &str| {
        rules
            .open(&format!("/.spdy/1/-/s/{target}"))
            .unwrap()
            .kinds()
            .iter()
            .map(Kind::name)
            .collect::<Vec<_>>()
    };
    assert_eq!(kinds("a.b.test/x"), ["image"]);
    assert_eq!(kinds("a.b.test/css/x"), ["style"]);
    assert_eq!(kinds("a.b.test/css/one.js"), ["script"]);
    assert_eq!(kinds("a.b.test/css/one.js2"), ["style"]);
    assert_eq!(kinds("c.b.test/css/x"), ["font"]);
}

#[test]
fn excluded_path_stays_under_any_encoding() {
    let rules = compiled(
        r#"
        [[hosts]]
        host = "a.test"
        except = ["/ads/", "/pixel.gif", "/a%20b/"]

        [[hosts]]
        host = "a.test"
        path = "/ads/free/"

        [[hosts]]
        host = "a.test"
        path = "/lib/"
        except = ["/lib/user/"]
        "#,
    )
    .unwrap();
    for (path, expected) in [
        ("/ads/x.png", Some("path-excepted")),
        ("/ads/", Some("path-excepted")),
        ("/%61ds/x.png", Some("path-excepted")),
        ("/a%20b/x.png", Some("path-excepted")),
        // Hosts merge slashes.
        ("//ads/x.png", Some("path-excepted")),
        ("/lib//user/x.png", Some("path-excepted")),
        // By its bytes the whole host's line governs, and by what the host reads another.
        ("/%6cib/user/x.png", Some("path-excepted")),
        ("/%6cib/x.png", Some("path-excepted")),
        ("/lib/%78.png", None),
        // Hosts cut each segment at its parameters, and some undo encoding twice.
        ("/ads;v=1/x.png", Some("path-excepted")),
        ("/ads%3Bv=1/x.png", Some("path-excepted")),
        ("/;v=1/ads/x.png", Some("path-excepted")),
        ("/%2561ds%253b/x.png", Some("path-excepted")),
        ("/lib;v=1/user;w/x.png", Some("path-excepted")),
        ("/lib/;/user/x.png", Some("path-excepted")),
        ("/lib;v=1/x.png", Some("path-excepted")),
        ("/pixel.gif;v=1", Some("path-excepted")),
        ("/lib/x;v=1.png", None),
        ("/x;/adsense/x.png;v=1", None),
        ("/x/..;/y.png", Some("dot-segment")),
        ("/x/%2e%2e%3b/y.png", Some("dot-segment")),
        ("/x/..%252fads/x.png", Some("encoded-slash")),
        ("/pixel.gif", Some("path-excepted")),
        ("/pixel.gif?who=1", Some("path-excepted")),
        ("/x/..%2fads/x.png", Some("encoded-slash")),
        ("/ads", None),
        ("/adsense/x.png", None),
        ("/pixel.gif2", None),
        ("/x/ads/x.png", None),
        // The longest path governs.
        ("/ads/free/x.png", None),
    ] {
        let named = url(&format!("https://a.test{path}"));
        let skip_reason = match rules.verdict(&named, Kind::Image, ReferenceSource::Site) {
            Verdict::Rewrite(_) => None,
            Verdict::Skip(reason) => Some(reason.name()),
        };
        assert_eq!(skip_reason, expected, "{path}");
        let refused = rules.open(&format!("/.spdy/1/-/s/a.test{path}")).err();
        assert_eq!(refused.as_ref().map(Refusal::name), expected, "{path}");
        if let Some(Refusal::PathExcepted { place, .. }) = refused {
            assert_eq!(place.as_deref(), Some(named.as_str()));
        }
    }
}

/// Every reading of these paths by a server that decodes `%2f` is judged by a narrower entry or by `except`, or they are refused.
#[test]
fn encoded_slash_does_not_escape_a_narrower_rule() {
    let all_paths = "[[hosts]]\nhost = 'a.test'\nkinds = ['image', 'style', 'font', 'script']\n";
    let narrower = "[[hosts]]\nhost = 'a.test'\npath = '/users/'\nkinds = ['image']\n";
    let excepting = "[[hosts]]\nhost = 'a.test'\npath = '/lib/'\nexcept = ['/lib/users/']\n";
    let wildcard = "[[hosts]]\nhost = '*.a.test'\nkinds = ['image', 'script']\n\
        [[hosts]]\nhost = 'b.a.test'\npath = '/users/'\nkinds = ['image']\n";
    for (lines, host, expected) in [
        ([all_paths, ""], "a.test", None),
        ([all_paths, narrower], "a.test", Some("encoded-slash")),
        ([all_paths, excepting], "a.test", Some("encoded-slash")),
        ([wildcard, ""], "b.a.test", Some("encoded-slash")),
        ([wildcard, ""], "c.a.test", None),
    ] {
        let rules = compiled(&lines.concat()).unwrap();
        for path in [
            "/x;%2f..%2fusers/evil.js",
            "/x;%2F..%2Flib%2Fusers/evil.js",
            "/x;v=1%5c..%5cusers/evil.js",
            "/x%3b%252f..%252fusers/evil.js",
            "/users%2f%2f..%2fevil.js",
            "/users%2fevil.js",
            "/image/fetch/https%253A%252F%252Fe.test%252Fa.png",
        ] {
            let named = url(&format!("https://{host}{path}"));
            let skip_reason = match rules.verdict(&named, Kind::Script, ReferenceSource::Site) {
                Verdict::Rewrite(_) => None,
                Verdict::Skip(reason) => Some(reason.name()),
            };
            assert_eq!(skip_reason, expected, "{lines:?} {path}");
            let refused = rules.open(&format!("/.spdy/1/-/s/{host}{path}")).err();
            assert_eq!(
                refused.as_ref().map(Refusal::name),
                expected,
                "{lines:?} {path}"
            );
        }
    }
}

#[test]
fn preconnect_stays_for_host_with_excluded_paths() {
    let hint = "<link rel=preconnect href=https://a.test>";
    let with = |except: &[&str]| {
        let everything = HostConfig {
            except: except.iter().map(|&path| path.to_owned()).collect(),
            ..HostConfig::all_kinds("a.test")
        };
        let config = Config {
            hosts: vec![everything],
            ..Config::default()
        };
        let (out, _) = page_by(&support::compile(&config, keys()), hint);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(with(&["/ads/"]), hint);
    assert_ne!(with(&[]), hint);
}

#[test]
fn tag_changes_with_rules_only() {
    let tag = |config: &Config, kid, fill| {
        support::compile(config, Keys::new(key(kid, fill), None))
            .tag()
            .to_owned()
    };
    let config = support::config();
    let one = tag(&config, 'a', 1);
    assert_eq!(one, tag(&config, 'a', 1));
    assert_eq!(one.len(), 16);
    assert_ne!(one, tag(&config, 'b', 1), "another name of the key");
    assert_ne!(one, tag(&config, 'a', 2), "another secret of that name");
    let mut excepting = config.clone();
    excepting.hosts[0].except = vec!["/ads/".to_owned()];
    assert_ne!(one, tag(&excepting, 'a', 1));
    assert_ne!(
        one,
        tag(
            &Config {
                deny: Vec::new(),
                ..config.clone()
            },
            'a',
            1
        )
    );
    let other_site = Rules::compile(
        &url("https://twin.test"),
        &config,
        Some(Keys::new(key('a', 1), None)),
    )
    .unwrap();
    assert_ne!(one, other_site.tag());
    let rules = |config: &Config, fill| support::compile(config, Keys::new(key('a', fill), None));
    let of_one = rules(&config, 1);
    assert!(of_one.is_same_but_for_keys(&rules(&config, 2)));
    assert!(!of_one.is_same_but_for_keys(&other_site));
    let denying = Config {
        deny: Vec::new(),
        ..config.clone()
    };
    assert!(!of_one.is_same_but_for_keys(&rules(&denying, 1)));
}

#[test]
fn self_url_script_is_skipped() {
    let config = Config {
        hosts: vec![HostConfig::all_kinds("sc-static.net")],
        ..Config::default()
    };
    let rules = support::compile(&config, keys());
    let script = url("https://sc-static.net/scevent.min.js");
    let verdict = rules.verdict(&script, Kind::Script, ReferenceSource::Site);
    assert!(matches!(verdict, Verdict::Skip(reason) if reason.name() == "reads-its-url"));
    assert!(matches!(
        rules.verdict(&script, Kind::Image, ReferenceSource::Site),
        Verdict::Rewrite(_)
    ));
}

#[test]
fn alias_helps_some_self_url_scripts() {
    let verdict = |host: &str| {
        let config = Config {
            names_under: Some("x.assets.test".to_owned()),
            hosts: vec![HostConfig::named(host)],
            ..Config::default()
        };
        let rules = support::compile(&config, keys());
        let script = url(&format!("https://{host}/a.js"));
        rules.verdict(&script, Kind::Script, ReferenceSource::Site)
    };
    for host in ["sc-static.net", "cdn.segment.com"] {
        assert!(matches!(verdict(host), Verdict::Rewrite(_)), "{host}");
    }
    for host in ["js.stripe.com", "plausible.io"] {
        let reason = match verdict(host) {
            Verdict::Skip(reason) => reason.name(),
            Verdict::Rewrite(to) => panic!("{host} went to {to}"),
        };
        assert_eq!(reason, "reads-its-url", "{host}");
    }
}

#[test]
fn unmarked_public_cdns_are_reported() {
    for (host, is_reported) in [
        ("host = 'cdn.jsdelivr.net'\nkinds = ['script']", true),
        ("host = '*.jsdelivr.net'\nkinds = ['script']", true),
        (
            "host = 'cdn.jsdelivr.net'\nkinds = ['script']\npath = '/npm/'",
            true,
        ),
        (
            "host = 'cdn.jsdelivr.net'\nkinds = ['script']\npath = '/npm/bootstrap@5.3.3/'",
            false,
        ),
        (
            "host = 'cdn.jsdelivr.net'\nkinds = ['script']\nshared = true",
            false,
        ),
        ("host = 'cdn.jsdelivr.net'\nkinds = ['style']", false),
        ("host = 'cdn.test'\nkinds = ['script']", false),
    ] {
        let rules = compiled(&format!("[[hosts]]\n{host}")).unwrap();
        let unmarked: Vec<_> = rules.unmarked_public_cdns().into_iter().collect();
        let expected: &[&str] = if is_reported {
            &["cdn.jsdelivr.net"]
        } else {
            &[]
        };
        assert_eq!(unmarked, expected, "{host}");
    }
}

fn page(text: &str) -> (Vec<u8>, PageReport) {
    page_by(&rules(), text)
}

fn page_by(rules: &Arc<Rules>, text: &str) -> (Vec<u8>, PageReport) {
    let at = url("https://www.site.test/");
    let mut headers = http::HeaderMap::new();
    headers.insert(
        "content-type",
        http::HeaderValue::from_static("text/html; charset=utf-8"),
    );
    let head = PageHead::rewrite(rules, &at, http::StatusCode::OK, &mut headers, true);
    let mut rewriter = spdy_rewrite::html::HtmlRewriter::new(rules, &at, head, None);
    let mut out = Vec::new();
    text.as_bytes()
        .chunks(10_000)
        .for_each(|chunk| rewriter.write(chunk, &mut out));
    let report = rewriter.end(&mut out);
    (out, report)
}

#[test]
fn style_element_buffer_is_limited() {
    let style = |len: usize| {
        let rule = "p{background:url(https://cdn.test/a.png)}";
        format!(
            "<style>{rule}{}</style><img src=https://cdn.test/b.png>",
            " ".repeat(len - rule.len())
        )
    };
    assert_eq!(page(&style(MAX_EMBEDDED_BYTES)).1.proxied, 2);
    let long = style(MAX_EMBEDDED_BYTES + 1);
    let (out, report) = page(&long);
    assert_eq!(report.proxied, 1, "what follows is rewritten");
    assert!(out.starts_with(long.split("<img").next().unwrap().as_bytes()));
}

#[test]
fn tag_buffer_is_limited() {
    let before = "<img src=https://cdn.test/a.png>";
    let tag = |len: usize| format!("{before}<p title='{}'>{before}", "x".repeat(len));
    assert_eq!(page(&tag(MAX_HTML_BUFFER_BYTES / 4)).1.proxied, 2);
    let long = tag(2 * MAX_HTML_BUFFER_BYTES);
    let (out, report) = page(&long);
    assert_eq!(
        report.skip_reason.map(PageSkipReason::name),
        Some("too-long")
    );
    assert_eq!(report.proxied, 1);
    assert!(
        out.ends_with(&long.as_bytes()[before.len()..]),
        "nothing is lost"
    );
}

#[test]
fn references_and_hosts_in_report_are_limited() {
    let images = |count: usize| {
        (0..count)
            .map(|at| format!("<img src=https://h{at}.test/>"))
            .collect::<String>()
    };
    let (_, mut report) = page(&images(MAX_REFERENCES));
    assert_eq!(
        (report.unreported, report.hosts.len()),
        (0, MAX_REPORTED_HOSTS)
    );
    assert_eq!(report.take_references().len(), MAX_REFERENCES);
    let (_, report) = page(&images(MAX_REFERENCES + 1));
    assert_eq!(
        (report.unreported, report.unchanged_count()),
        (1, MAX_REFERENCES + 1)
    );
}

/// Browsers encode `^` in a path, and the capability is for the bytes that they send.
#[test]
fn capability_is_for_the_path_as_browsers_send_it() {
    let rules = rules();
    let range = url("https://shared.test/lib@^4/a.js?x=^");
    let Verdict::Rewrite(path) = rules.verdict(&range, Kind::Script, ReferenceSource::Site) else {
        panic!("the host is listed")
    };
    assert!(path.ends_with("/shared.test/lib@%5E4/a.js?x=^"), "{path}");
    let opened = rules.open(&path).unwrap();
    assert_eq!(
        opened.url().as_str(),
        "https://shared.test/lib@%5E4/a.js?x=^"
    );
}
