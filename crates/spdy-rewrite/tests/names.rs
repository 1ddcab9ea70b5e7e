//! Hosts with a name of their own: which names, what pages say of them, what they are asked and what they answer.

mod support;

use std::sync::Arc;

use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode};
use spdy_rewrite::capability::Keys;
use spdy_rewrite::config::{Config, HostConfig, Scheme};
use spdy_rewrite::css::{Sheet, rewrite_bytes};
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::hygiene::{self, Answer};
use spdy_rewrite::kind::Kind;
use spdy_rewrite::moved_url::Moved;
use spdy_rewrite::named_request;
use spdy_rewrite::page_head::PageHead;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules_error::RulesError;
use spdy_rewrite::verdict::{Finder, Reason, Verdict};
use support::{compile, key, keys, url};

const SITE: &str = "https://www.site.test";

fn config() -> Config {
    Config {
        names_under: Some("x.assets.test".to_owned()),
        hosts: vec![
            HostConfig::named("widgets.test"),
            HostConfig {
                kinds: vec![Kind::Image, Kind::Style],
                path: "/pub/".to_owned(),
                ..HostConfig::named("pictures.test:8443")
            },
            HostConfig::everything("cdn.test"),
        ],
        ..Config::default()
    }
}

fn rules() -> Arc<Rules> {
    compile(&config(), keys())
}

/// The origin under which `host` is served.
fn name_of(rules: &Rules, host: &str) -> String {
    let url = url(&format!("https://{host}/"));
    rules
        .named_of(&url)
        .expect("a named host")
        .origin()
        .to_owned()
}

fn opened(rules: &Rules, url_text: &str) -> Moved {
    let url = url(url_text);
    let named = rules.named_of(&url).expect("a named host");
    let target = &url[url::Position::BeforePath..];
    rules.open_named(named, target).expect("it opens")
}

#[test]
fn a_name_is_of_one_site_scheme_host_and_port() {
    let rules = rules();
    let name = name_of(&rules, "widgets.test");
    let label = name.strip_prefix("https://").unwrap();
    let (label, zone) = label.split_once('.').unwrap();
    assert_eq!((label.len(), zone), (16, "x.assets.test"));
    let plain = |byte: u8| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte);
    assert!(label.bytes().all(plain), "{label}");

    let of = |site: &str, host: HostConfig, keys: Keys| {
        let config = Config {
            hosts: vec![host],
            ..config()
        };
        let rules = Rules::compile(&url(site), &config, Some(keys)).unwrap();
        let named = rules.named_hosts().next().unwrap();
        named.name().split_once('.').unwrap().0.to_owned()
    };
    let widgets = || HostConfig::named("widgets.test");
    assert_eq!(of(SITE, widgets(), keys()), label, "the same again");
    let others = [
        of("https://www.other.test", widgets(), keys()),
        of(SITE, HostConfig::named("widgets2.test"), keys()),
        of(SITE, HostConfig::named("widgets.test:8443"), keys()),
        of(
            SITE,
            HostConfig {
                scheme: Scheme::Http,
                ..widgets()
            },
            keys(),
        ),
        of(SITE, widgets(), Keys::new(key('a', 9), None).unwrap()),
    ];
    for other in others {
        assert_ne!(other, label);
    }
}

/// The characters are a promise to certificates and zones that others keep; these are Python's, by its `hmac` and `base64`.
#[test]
fn a_label_is_these_characters() {
    assert_eq!(
        name_of(&rules(), "widgets.test"),
        "https://2bbr4hfibigp2qnu.x.assets.test"
    );
}

#[test]
fn the_port_of_the_site_is_that_of_its_names() {
    let site = url("https://www.site.test:8443");
    let rules = Rules::compile(&site, &config(), Some(keys())).unwrap();
    let origin = name_of(&rules, "widgets.test");
    assert!(origin.ends_with(".x.assets.test:8443"), "{origin}");
}

#[track_caller]
fn is_wrong(config: &Config, keys: Option<Keys>, told: &str) {
    let error = Rules::compile(&url(SITE), config, keys).expect_err(told);
    assert!(error.to_string().contains(told), "{error}");
}

#[test]
fn what_could_not_be_a_name_is_said() {
    let zone = |zone: &str| Config {
        names_under: Some(zone.to_owned()),
        ..config()
    };
    for near in [
        "site.test",
        "x.site.test",
        "www.site.test",
        "x.www.site.test",
    ] {
        is_wrong(&zone(near), Some(keys()), "registrable domain");
    }
    for nobody in ["test", "co.uk", "github.io"] {
        is_wrong(&zone(nobody), Some(keys()), "anybody can have a name there");
    }
    is_wrong(&zone("X.assets.test"), Some(keys()), "lower-case name");
    is_wrong(&zone("192.0.2.1"), Some(keys()), "address");
    is_wrong(&zone(&"a.".repeat(118)), Some(keys()), "names_under");
    let hosts = |hosts: Vec<HostConfig>| Config { hosts, ..config() };
    let named = HostConfig::named;
    is_wrong(&hosts(vec![]), Some(keys()), "no host has mode");
    is_wrong(
        &hosts(vec![named("*.widgets.test")]),
        Some(keys()),
        "want one host",
    );
    is_wrong(
        &hosts(vec![named("a.x.assets.test")]),
        Some(keys()),
        "outside of",
    );
    is_wrong(&config(), None, "needs a key");
    let shared = HostConfig {
        shared: true,
        ..named("cdn2.test")
    };
    is_wrong(&hosts(vec![shared]), Some(keys()), "no `shared`");
    let other_path = HostConfig {
        path: "/b/".to_owned(),
        ..HostConfig::passive("widgets.test")
    };
    let mixed = hosts(vec![named("widgets.test"), other_path]);
    is_wrong(&mixed, Some(keys()), "one mode for all entries");
    let nowhere = Config {
        names_under: None,
        ..config()
    };
    is_wrong(&nowhere, Some(keys()), "want `names_under`");
    let own = Config {
        own_hosts: vec!["*.assets.test".to_owned()],
        ..config()
    };
    is_wrong(&own, Some(keys()), "registrable domain with assets.test");
    for kind in [Kind::Document, Kind::Worker] {
        let config = hosts(vec![HostConfig {
            kinds: vec![Kind::Image, kind],
            ..HostConfig::passive("cdn.test")
        }]);
        let error = Rules::compile(&url(SITE), &config, Some(keys())).unwrap_err();
        let host = "cdn.test".to_owned();
        assert_eq!(error, RulesError::WantsName { host, kind });
    }
}

#[test]
fn a_url_of_a_named_host_keeps_all_but_its_origin() {
    let rules = rules();
    let verdict = |text: &str, kind| rules.verdict(&url(text), kind, Finder::Site);
    let widgets = name_of(&rules, "widgets.test");
    for rest in ["/", "/a/b.html?c=d&e#f", "/a%2fb", "/?"] {
        let want = Verdict::Move(format!("{widgets}{rest}"));
        assert_eq!(
            verdict(&format!("https://widgets.test{rest}"), Kind::Document),
            want
        );
    }
    let pictures = name_of(&rules, "pictures.test:8443");
    assert_eq!(
        verdict("https://pictures.test:8443/pub/a.png", Kind::Image),
        Verdict::Move(format!("{pictures}/pub/a.png"))
    );
    let left = |text: &str, kind| match verdict(text, kind) {
        Verdict::Leave(reason) => reason.name(),
        Verdict::Move(to) => panic!("{text} went to {to}"),
    };
    assert_eq!(
        left("https://pictures.test:8443/a.png", Kind::Image),
        "path-not-listed"
    );
    assert_eq!(
        left("https://pictures.test:8443/pub/a.js", Kind::Script),
        "kind-not-listed"
    );
    assert_eq!(
        left("https://widgets.test/.spdy/1/-/s/cdn.test/", Kind::Image),
        "nested"
    );
    assert_eq!(
        left("https://cdn.test/frame.html", Kind::Document),
        "document"
    );
    assert_eq!(left(&format!("{widgets}/a.png"), Kind::Image), "own-host");
}

#[test]
fn a_named_host_is_under_no_path_of_the_site() {
    let refusal = rules().open("/.spdy/1/-/s/widgets.test/a.png").unwrap_err();
    assert_eq!(refusal.name(), "has-name");
}

#[test]
fn what_is_opened_under_a_name_is_what_was_made() {
    let rules = rules();
    let named = rules.named_of(&url("https://widgets.test/")).unwrap();
    let moved = rules.open_named(named, "/a/b.png?c").unwrap();
    assert_eq!(moved.url().as_str(), "https://widgets.test/a/b.png?c");
    assert_eq!(moved.path(), format!("{}/a/b.png?c", named.origin()));
    assert!(moved.is_named());
    for (target, why) in [
        ("/a/../b", "dot-segment"),
        ("/a/%2e%2E/b", "dot-segment"),
        ("/.spdy/1/-/s/cdn.test/a", "nested"),
        ("/a\\b", "backslash"),
        ("/a b", "control-byte"),
        ("/a%00", "nul"),
        ("/\u{fc}", "not-ascii"),
        ("*", "not-serialised"),
        ("", "not-serialised"),
        ("@evil.test/", "not-serialised"),
        (".evil.test/", "not-serialised"),
        (":8443/", "not-serialised"),
    ] {
        let refusal = rules.open_named(named, target).expect_err(target);
        assert_eq!(refusal.name(), why, "{target}");
    }
    let long = format!("/{}", "a".repeat(8 * 1024));
    assert_eq!(
        rules.open_named(named, &long).unwrap_err().name(),
        "too-long"
    );
}

/// `page` of the site with `policy`, rewritten.
fn of_site(policy: &str, page: &str) -> (String, String) {
    let rules = rules();
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    if !policy.is_empty() {
        headers.insert(CONTENT_SECURITY_POLICY, policy.parse().unwrap());
    }
    let place = url("https://www.site.test/dir/page.html");
    let head = PageHead::rewrite(&rules, &place, StatusCode::OK, &mut headers, true);
    written(&rules, &place, head, &headers, page)
}

/// `page` of widgets.test with `policy`, as it is served under its name.
fn of_widgets(policy: &str, page: &str) -> (String, String) {
    let rules = rules();
    let moved = opened(&rules, "https://widgets.test/dir/frame.html");
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    if !policy.is_empty() {
        headers.insert(CONTENT_SECURITY_POLICY, policy.parse().unwrap());
    }
    let head = PageHead::rewrite_named(&rules, &moved, StatusCode::OK, &mut headers);
    assert_eq!(head.left, None);
    written(&rules, moved.url(), head, &headers, page)
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
fn a_page_names_them_wherever_it_names_what_is_fetched() {
    for (page, want) in [
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
        // What stays.
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
        assert_eq!(text, want);
        let again = want
            .replace("{widgets}", &name_of(&rules(), "widgets.test"))
            .replace("{pictures}", &name_of(&rules(), "pictures.test:8443"));
        assert_eq!(of_site("", &again).0, want, "it was rewritten twice");
    }
}

#[test]
fn modules_find_absolute_imports_under_the_name() {
    let (text, _) = of_site(
        "",
        "<script type=module src=https://widgets.test/m.js></script>",
    );
    let map = "<script type=\"importmap\">{\"imports\":{\"https://cdn.test/\":\"/.spdy/1/-/s/cdn.test/\",\
               \"https://widgets.test/\":\"{widgets}/\"}}</script>";
    let module = "<script type=module src=\"{widgets}/m.js\"></script>";
    assert_eq!(text, format!("{map}{module}"));
}

#[test]
fn a_policy_allows_a_name_what_it_allowed_the_host() {
    for (policy, want) in [
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
            "frame-ancestors https://widgets.test",
            "frame-ancestors https://widgets.test",
        ),
    ] {
        let (_, got) = of_site(policy, "");
        let got = got.replace("https://www.site.test/.spdy/1/-/s/cdn.test/", "/.spdy/");
        let words = |text: &str| {
            let mut words: Vec<_> = text.split(' ').map(str::to_owned).collect();
            words.sort();
            words
        };
        assert_eq!(words(&got), words(want), "{policy}");
    }
    let frame = "<iframe src=https://widgets.test/f></iframe>";
    assert_eq!(
        of_site("frame-src 'self'", frame).0,
        frame,
        "it stays blocked"
    );
    let (moved, _) = of_site("frame-src https://widgets.test", frame);
    assert_eq!(moved, "<iframe src=\"{widgets}/f\"></iframe>");
}

#[test]
fn a_document_of_a_named_host_names_its_own_and_other_names_and_nothing_of_the_sites() {
    for (page, want) in [
        // What is relative, and from the root, means the name as it stands.
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
        assert_eq!(of_widgets("", page).0, want);
    }
}

#[test]
fn in_a_document_of_a_named_host_self_is_the_host_too() {
    let (_, policy) = of_widgets(
        "default-src 'self'; img-src https://pictures.test:8443 https://cdn.test",
        "",
    );
    assert_eq!(
        policy,
        "default-src 'self' https://widgets.test; img-src https://pictures.test:8443 https://cdn.test {pictures}/pub/"
    );
    let image = "<img src=https://widgets.test/a.png>";
    assert_eq!(
        of_widgets("img-src 'self'", image).0,
        "<img src=\"{widgets}/a.png\">"
    );
    assert_eq!(of_widgets("img-src 'none'", image).0, image);
}

#[test]
fn a_sheet_of_a_named_host_keeps_what_is_relative() {
    let rules = rules();
    let moved = opened(&rules, "https://widgets.test/css/a.css");
    let sheet = Sheet::moved(&rules, &moved, &moved);
    let text = "a { background: url(../a.png), url(/b.png), url(https://widgets.test/c.png), \
                url(https://cdn.test/d.png) } @import 'e.css';";
    let got = rewrite_bytes(&rules, &sheet, text.as_bytes(), None);
    let got = got.body.into_owned();
    let want = text.replace("https://widgets.test", &name_of(&rules, "widgets.test"));
    assert_eq!(String::from_utf8(got).unwrap(), want);
}

fn fields(lines: &[&str]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        fields.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    }
    fields
}

/// What widgets.test is told by a `method` with these fields, or the name of the refusal.
fn asked(method: Method, target: &str, lines: &[&str]) -> Result<Vec<String>, &'static str> {
    let rules = rules();
    let moved = opened(&rules, target);
    let named = rules.named_of(moved.url()).unwrap();
    let lines: Vec<_> = lines
        .iter()
        .map(|line| line.replace("{widgets}", named.origin()))
        .collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.headers_mut() = fields(&lines);
    let upstream = named_request::request(&rules, named, &moved, &request);
    let upstream = upstream.map_err(|refusal| refusal.name())?;
    let told = upstream.headers.iter();
    let mut told: Vec<_> = told
        .filter(|(name, _)| {
            !matches!(
                name.as_str(),
                "accept" | "accept-encoding" | "user-agent" | "via" | "cdn-loop"
            )
        })
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    told.sort();
    Ok(told)
}

const WIDGET: &str = "https://widgets.test/w";

#[test]
fn the_host_is_told_who_asks_and_nothing_of_them() {
    let told = asked(
        Method::GET,
        WIDGET,
        &[
            "cookie: a=b",
            "authorization: Basic eA==",
            "x-forwarded-for: 192.0.2.1",
            "origin: https://www.site.test",
            "referer: https://www.site.test/secret?token",
            "sec-fetch-dest: script",
            "sec-fetch-mode: cors",
            "sec-fetch-site: cross-site",
        ],
    );
    let want = [
        "origin: https://www.site.test",
        "referer: https://www.site.test/",
    ];
    assert_eq!(told.unwrap(), want);
    let told = asked(
        Method::GET,
        WIDGET,
        &[
            "origin: {widgets}",
            "referer: {widgets}/a/b?c",
            "sec-fetch-dest: font",
        ],
    );
    let want = [
        "origin: https://widgets.test",
        "referer: https://widgets.test/",
    ];
    assert_eq!(told.unwrap(), want);
    let told = asked(Method::GET, WIDGET, &["origin: null"]);
    assert_eq!(told.unwrap(), ["origin: null"]);
}

#[test]
fn forms_and_scripts_of_documents_say_what_they_send() {
    let lines = [
        "origin: {widgets}",
        "content-type: application/json",
        "x-requested-with: x",
        "x-own: y",
        "cookie: a=b",
    ];
    let told = asked(Method::POST, WIDGET, &lines).unwrap();
    let want = [
        "content-type: application/json",
        "origin: https://widgets.test",
        "x-requested-with: x",
    ];
    assert_eq!(told, want);
    let pictures = "https://pictures.test:8443/pub/a";
    assert_eq!(asked(Method::POST, pictures, &[]), Err("method"));
    assert_eq!(asked(Method::TRACE, WIDGET, &[]), Err("method"));
}

#[test]
fn what_would_not_be_asked_by_a_page_that_names_it_is_refused() {
    let pictures = "https://pictures.test:8443/pub/a";
    for (target, line, why) in [
        (WIDGET, "sec-fetch-dest: document", "destination"),
        (WIDGET, "sec-fetch-dest: serviceworker", "destination"),
        (WIDGET, "sec-fetch-dest: report", "destination"),
        (WIDGET, "service-worker: script", "service-worker"),
        (WIDGET, "sec-fetch-site: none", "destination"),
        (WIDGET, "sec-fetch-mode: navigate", "destination"),
        (WIDGET, "sec-fetch-mode: websocket", "destination"),
        (WIDGET, "upgrade: websocket", "upgrade"),
        (WIDGET, "content-length: 1", "body"),
        (WIDGET, "origin: https://evil.test", "cross-site"),
        (WIDGET, "referer: https://evil.test/", "cross-site"),
        (WIDGET, "origin: x", "field"),
        (WIDGET, "cdn-loop: www.site.test", "loop"),
        (pictures, "sec-fetch-dest: iframe", "kind-not-listed"),
        (pictures, "sec-fetch-dest: script", "kind-not-listed"),
        (pictures, "sec-fetch-dest: worker", "kind-not-listed"),
    ] {
        assert_eq!(asked(Method::GET, target, &[line]), Err(why), "{line}");
    }
    let frame = ["sec-fetch-dest: iframe", "sec-fetch-mode: navigate"];
    assert_eq!(asked(Method::GET, WIDGET, &frame), Ok(Vec::new()));
}

/// What becomes of an answer with these fields to a load with these: its head, or the name of what came instead.
fn answered(target: &str, load: &[&str], status: u16, lines: &[&str]) -> Result<HeaderMap, String> {
    let rules = rules();
    let moved = opened(&rules, target);
    let named = rules.named_of(moved.url()).unwrap();
    let mut request = Request::new(());
    *request.headers_mut() = fields(load);
    let upstream = named_request::request(&rules, named, &moved, &request).unwrap();
    let status = StatusCode::from_u16(status).unwrap();
    match hygiene::judge(&rules, &moved, upstream.load, status, &fields(lines)) {
        Answer::Serve(head) => Ok(head),
        Answer::Bare(status) => Err(status.as_str().to_owned()),
        Answer::Direct(location) => Err(location),
        Answer::Refuse(refusal) => Err(refusal.name().to_owned()),
    }
}

#[test]
fn a_host_speaks_for_itself_and_not_for_the_zone() {
    let widgets = name_of(&rules(), "widgets.test");
    let head = answered(
        WIDGET,
        &["sec-fetch-dest: iframe"],
        200,
        &[
            "content-type: text/html",
            "set-cookie: a=b; Domain=x.assets.test",
            "strict-transport-security: max-age=1; includeSubDomains",
            "alt-svc: h3=\":443\"",
            "nel: {}",
            "report-to: {}",
            "reporting-endpoints: a=\"/b\"",
            "clear-site-data: \"*\"",
            "service-worker-allowed: /",
            "www-authenticate: Basic",
            "refresh: 0;url=https://evil.test/",
            "link: </a.css>; rel=preload",
            "content-security-policy: default-src 'self'",
            "x-frame-options: DENY",
            "cross-origin-resource-policy: same-origin",
            "access-control-allow-origin: https://widgets.test",
            "timing-allow-origin: https://widgets.test",
        ],
    );
    let head = head.unwrap();
    let mut names: Vec<_> = head.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    let want = [
        "access-control-allow-origin",
        "content-security-policy",
        "content-type",
        "cross-origin-resource-policy",
        "timing-allow-origin",
        "x-frame-options",
    ];
    assert_eq!(names, want);
    assert_eq!(head["access-control-allow-origin"], widgets);
    assert_eq!(head["timing-allow-origin"], widgets);
    assert_eq!(head["cross-origin-resource-policy"], "same-origin");
}

#[test]
fn a_host_without_documents_is_sandboxed_and_not_sniffed() {
    let pictures = "https://pictures.test:8443/pub/a";
    let svg = ["content-type: image/svg+xml", "content-security-policy: x"];
    let head = answered(pictures, &[], 200, &svg).unwrap();
    let policy = head["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("sandbox"), "{policy}");
    assert_eq!(head["x-content-type-options"], "nosniff");
    let refused = answered(pictures, &[], 200, &["content-type: text/html"]);
    assert_eq!(refused.unwrap_err(), "type");
}

#[test]
fn redirects_are_the_browsers_to_follow() {
    let rules = rules();
    let widgets = name_of(&rules, "widgets.test");
    let pictures = name_of(&rules, "pictures.test:8443");
    let loaded = ["sec-fetch-dest: image"];
    let to = |load: &[&str], location: &str| {
        let location = format!("location: {location}");
        let head = answered("https://widgets.test/a/b", load, 302, &[&location])?;
        Ok::<_, String>(head["location"].to_str().unwrap().to_owned())
    };
    assert_eq!(to(&[], "c?d#e").unwrap(), format!("{widgets}/a/c?d#e"));
    assert_eq!(
        to(&[], "https://widgets.test/").unwrap(),
        format!("{widgets}/")
    );
    let other = "https://pictures.test:8443/pub/x";
    assert_eq!(to(&[], other).unwrap(), format!("{pictures}/pub/x"));
    let elsewhere = "https://elsewhere.test/x";
    assert_eq!(to(&loaded, elsewhere).unwrap(), elsewhere);
    assert_eq!(
        to(&[], elsewhere).unwrap_err(),
        "location",
        "an open redirect"
    );
    let moved = "https://cdn.test/x";
    assert_eq!(
        to(&loaded, moved).unwrap(),
        moved,
        "never under the site's name"
    );
    for bad in ["javascript:alert(1)", "https://a@widgets.test/", "data:,x"] {
        assert_eq!(to(&loaded, bad).unwrap_err(), "location", "{bad}");
    }
}

#[test]
fn errors_have_a_text_where_there_are_documents() {
    let html = ["content-type: text/html"];
    assert!(answered(WIDGET, &["sec-fetch-dest: iframe"], 404, &html).is_ok());
    let image = answered(WIDGET, &["sec-fetch-dest: image"], 404, &html);
    assert_eq!(image.unwrap_err(), "404");
    assert_eq!(answered(WIDGET, &[], 401, &html).unwrap_err(), "401");
    assert!(answered(WIDGET, &[], 204, &[]).is_ok());
}

#[test]
fn a_frame_of_a_named_host_says_why_it_stays() {
    let verdict = rules().verdict(&url("https://cdn.test/x.js"), Kind::Script, Finder::Named);
    assert_eq!(verdict, Verdict::Leave(Reason::NotNamed));
}
