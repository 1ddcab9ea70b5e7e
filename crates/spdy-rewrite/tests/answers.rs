//! Requests for moved resources as they go upstream, and answers as they come back: what passes, what does not.

mod support;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Request, StatusCode};
use spdy_rewrite::anonymous::{self, Load, Mode, Upstream};
use spdy_rewrite::config::{Config, HostConfig, Referrer};
use spdy_rewrite::hygiene::{self, Answer};
use spdy_rewrite::kind::Kind;
use spdy_rewrite::redirect::{Redirect, Trail};
use spdy_rewrite::rules::Rules;
use support::{discovering, rules};

const PAGE_LOADS_IMAGE: Load = Load {
    expected: Some(Kind::Image),
    mode: Mode::NoCors,
    is_subresource: true,
    is_read: true,
    is_same_origin: true,
};

fn fields(lines: &[&str]) -> HeaderMap {
    let field = |line: &&str| {
        let (name, value) = line.split_once(": ").unwrap();
        (
            name.parse::<HeaderName>().unwrap(),
            HeaderValue::from_str(value).unwrap(),
        )
    };
    lines
        .iter()
        .map(field)
        .collect::<Vec<_>>()
        .into_iter()
        .fold(HeaderMap::new(), |mut fields, (name, value)| {
            fields.append(name, value);
            fields
        })
}

fn told(headers: &HeaderMap) -> Vec<String> {
    let mut lines: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines
}

fn upstream(rules: &Rules, target: &str, lines: &[&str]) -> Upstream {
    let mut request = Request::new(());
    *request.headers_mut() = fields(lines);
    anonymous::request(rules, &rules.open(target).unwrap(), &request).unwrap()
}

#[test]
fn nothing_of_the_client_s_goes_upstream() {
    let upstream = upstream(
        &rules(),
        "/.spdy/1/-/s/cdn.test/a.png",
        &[
            "cookie: session=1",
            "authorization: Basic eA==",
            "origin: https://www.site.test",
            "referer: https://www.site.test/secret?token=1",
            "x-forwarded-for: 192.0.2.1",
            "forwarded: for=192.0.2.1",
            "x-original-url: /admin",
            "x-http-method-override: DELETE",
            "sec-ch-ua: x",
            "user-agent: Mozilla/5.0 Chrome/140.0.0.0",
            "accept: image/avif,image/webp,*/*",
            "accept-language: de",
            "accept-encoding: gzip, deflate, br, zstd",
            "if-none-match: \"x\"",
            "range: bytes=0-1",
            "sec-fetch-dest: image",
            "sec-fetch-mode: no-cors",
            "sec-fetch-site: same-origin",
            "cdn-loop: other",
            "te: trailers",
            "priority: u=1",
        ],
    );
    let want = [
        "accept-encoding: br, gzip",
        "accept: image/avif,image/webp,image/*,*/*;q=0.8",
        "cdn-loop: other, www.site.test",
        "referer: https://www.site.test/",
        "user-agent: Mozilla/5.0 (compatible; spdy-accelerate)",
        "via: 1.1 www.site.test",
    ];
    assert_eq!(told(&upstream.headers), want);
}

/// One that took Brotli alone was given gzip as well.
#[test]
fn no_coding_is_asked_for_that_the_client_does_not_take_but_of_sheets() {
    for (said, dest, told) in [
        ("gzip, br", "script", "br, gzip"),
        ("gzip, br;q=0", "script", "gzip"),
        ("br", "script", "identity"),
        ("br", "style", "br, gzip"),
    ] {
        let lines = [
            &format!("accept-encoding: {said}"),
            &format!("sec-fetch-dest: {dest}"),
        ];
        let lines = lines.map(String::as_str);
        let upstream = upstream(&rules(), "/.spdy/1/-/s/cdn.test/a", &lines);
        assert_eq!(upstream.headers["accept-encoding"], told, "{said}, {dest}");
    }
}

#[test]
fn a_load_that_the_page_may_read_names_the_site() {
    let rules = rules();
    let names_site = |lines: &[&str]| {
        let upstream = upstream(&rules, "/.spdy/1/-/s/cdn.test/a", lines);
        assert_eq!(
            upstream.load.sends_origin(),
            upstream.headers.contains_key("origin")
        );
        upstream
            .headers
            .get("origin")
            .map(|origin| origin.to_str().unwrap().to_owned())
    };
    let site = Some("https://www.site.test".to_owned());
    assert_eq!(
        names_site(&["sec-fetch-dest: font", "sec-fetch-mode: cors"]),
        site
    );
    assert_eq!(
        names_site(&["sec-fetch-dest: track", "sec-fetch-mode: same-origin"]),
        site
    );
    assert_eq!(
        names_site(&[]),
        site,
        "a client of before 2019 may be loading a font"
    );
    assert_eq!(
        names_site(&["sec-fetch-dest: image", "sec-fetch-mode: no-cors"]),
        None
    );
}

#[test]
fn the_referrer_is_told_as_a_browser_would_tell_it_across_origins() {
    let referer = |rules: &Rules, target: &str, lines: &[&str]| {
        upstream(rules, target, lines)
            .headers
            .contains_key("referer")
    };
    let sent = ["referer: https://www.site.test/a"];
    assert!(referer(&rules(), "/.spdy/1/-/s/cdn.test/a.png", &sent));
    assert!(
        !referer(&rules(), "/.spdy/1/-/s/cdn.test/a.png", &[]),
        "the browser said nothing"
    );
    assert!(
        !referer(&rules(), "/.spdy/1/-/p/plain.test/a.png", &sent),
        "never from TLS to none"
    );
    let silent = support::compile(
        &Config {
            referrer: Referrer::None,
            ..support::config()
        },
        support::keys(),
    );
    assert!(!referer(&silent, "/.spdy/1/-/s/cdn.test/a.png", &sent));
}

#[test]
fn language_and_browser_are_told_only_to_hosts_that_vary_on_them() {
    let config = Config {
        hosts: vec![HostConfig {
            accept_language: true,
            user_agent: true,
            ..HostConfig::passive("fonts.test")
        }],
        ..Config::default()
    };
    let rules = support::compile(&config, support::keys());
    let tell = |agent: &str| {
        let agent = format!("user-agent: {agent}");
        let upstream = upstream(
            &rules,
            "/.spdy/1/-/s/fonts.test/css",
            &["accept-language: de", &agent],
        );
        assert_eq!(upstream.headers["accept-language"], "de");
        upstream.headers["user-agent"].to_str().unwrap().to_owned()
    };
    let desktop = tell("Mozilla/5.0 (Windows NT 10.0) Chrome/141.0.7390.54 Safari/537.36");
    assert_eq!(
        desktop,
        tell("Mozilla/5.0 (X11) Gecko/20100101 Firefox/143.0"),
        "one class, one variant"
    );
    let mobile = tell("Mozilla/5.0 (Linux; Android 15; Pixel 9) Chrome/141.0 Mobile Safari/537.36");
    assert!(mobile.contains("Mobile") && mobile != desktop);
    assert!(tell("curl/8").contains("compatible"));
}

fn judged(target: &str, load: Load, status: u16, lines: &[&str]) -> Answer {
    let rules = discovering();
    let moved = rules.open(target).unwrap();
    hygiene::judge(
        &rules,
        &moved,
        load,
        StatusCode::from_u16(status).unwrap(),
        &fields(lines),
    )
}

/// In one word, for tables.
fn outcome(answer: Answer) -> String {
    match answer {
        Answer::Serve(_) => "serve".to_owned(),
        Answer::Bare(status) => status.as_u16().to_string(),
        Answer::Direct(url) => format!("direct {url}"),
        Answer::Refuse(refusal) => refusal.name().to_owned(),
    }
}

#[test]
fn a_third_party_does_not_speak_in_the_site_s_name() {
    let Answer::Serve(head) = judged(
        "/.spdy/1/-/s/cdn.test/a.png",
        PAGE_LOADS_IMAGE,
        200,
        &[
            "content-type: image/png",
            "content-length: 3",
            "etag: \"x\"",
            "cache-control: max-age=60",
            "vary: accept",
            "sourcemap: a.png.map",
            "content-disposition: attachment; filename=setup.exe",
            "set-cookie: a=1",
            "clear-site-data: \"*\"",
            "strict-transport-security: max-age=1",
            "alt-svc: h3=\":443\"",
            "nel: {}",
            "report-to: {}",
            "reporting-endpoints: a=\"https://x\"",
            "service-worker-allowed: /",
            "refresh: 0; url=https://evil.test/",
            "www-authenticate: Basic",
            "link: <https://evil.test/>; rel=preload",
            "public-key-pins: x",
            "origin-trial: x",
            "accept-ch: dpr",
            "critical-ch: dpr",
            "permissions-policy: x=*",
            "content-security-policy: default-src *",
            "access-control-allow-origin: *",
            "timing-allow-origin: *",
            "cross-origin-resource-policy: cross-origin",
            "x-content-type-options: sniff",
            "server-timing: x",
            "no-vary-search: params",
            "speculation-rules: \"/x.json\"",
            "something-of-tomorrow: x",
        ],
    ) else {
        panic!("an image is served");
    };
    let want = [
        "cache-control: max-age=60",
        "content-length: 3",
        "content-security-policy: sandbox; default-src 'none'; style-src 'unsafe-inline'",
        "content-type: image/png",
        "cross-origin-resource-policy: same-origin",
        "etag: \"x\"",
        "sourcemap: a.png.map",
        "vary: accept",
        "x-content-type-options: nosniff",
    ];
    assert_eq!(told(&head), want);
}

#[test]
fn a_source_map_elsewhere_is_not_named() {
    for map in [
        "https://evil.test/a.map",
        "//evil.test/a.map",
        "/a.map",
        "../../../x",
        "data:,x",
        "a/../../x",
        "\\x",
    ] {
        let map = format!("sourcemap: {map}");
        let Answer::Serve(head) = judged(
            "/.spdy/1/-/s/cdn.test/a.png",
            PAGE_LOADS_IMAGE,
            200,
            &["content-type: image/png", &map],
        ) else {
            panic!("an image is served");
        };
        assert!(!head.contains_key("sourcemap"), "{map}");
    }
}

#[test]
fn an_answer_is_served_as_what_it_was_asked_for_or_not_at_all() {
    let any = Load {
        expected: None,
        mode: Mode::Unknown,
        is_subresource: false,
        is_read: true,
        is_same_origin: true,
    };
    let of = |kind| Load {
        expected: Some(kind),
        mode: Mode::NoCors,
        is_subresource: true,
        is_read: true,
        is_same_origin: true,
    };
    let cdn = "/.spdy/1/-/s/cdn.test/a";
    let folder = "/.spdy/1/-/s/folder.test/lib/a";
    let rows: [(&str, Load, &str, &str); 18] = [
        (cdn, any, "image/png", "serve"),
        (cdn, any, "IMAGE/SVG+XML; charset=utf-8", "serve"),
        (cdn, any, "text/javascript", "serve"),
        (cdn, any, "text/html", "type"),
        (cdn, any, "text/html; charset=utf-8", "type"),
        (cdn, any, "application/xhtml+xml", "type"),
        (cdn, any, "text/xml", "type"),
        (cdn, any, "application/pdf", "type"),
        (cdn, any, "text/plain", "type"),
        (cdn, any, "image/png, text/html", "field"),
        (cdn, any, "", "type"),
        (cdn, of(Kind::Image), "text/html", "type"),
        (
            cdn,
            of(Kind::Image),
            "text/javascript",
            "direct https://cdn.test/a",
        ),
        (
            cdn,
            of(Kind::Script),
            "text/plain",
            "direct https://cdn.test/a",
        ),
        (cdn, of(Kind::Style), "text/css", "serve"),
        (folder, any, "image/gif", "serve"),
        (folder, any, "text/javascript", "type"),
        (
            folder,
            of(Kind::Image),
            "text/css",
            "direct https://folder.test/lib/a",
        ),
    ];
    for (target, load, content_type, want) in rows {
        let line = format!("content-type: {content_type}");
        assert_eq!(
            outcome(judged(target, load, 200, &[&line])),
            want,
            "{content_type} as {load:?}"
        );
    }
    let twice = ["content-type: image/png", "content-type: text/html"];
    assert_eq!(outcome(judged(cdn, any, 200, &twice)), "field");
    assert_eq!(outcome(judged(cdn, any, 200, &[])), "type");
}

#[test]
fn what_a_host_keeps_to_itself_is_asked_of_itself() {
    let cdn = "/.spdy/1/-/s/cdn.test/a";
    let stranger = Load {
        is_subresource: false,
        is_read: true,
        is_same_origin: true,
        ..PAGE_LOADS_IMAGE
    };
    for policy in ["same-origin", "same-site"] {
        let lines = [
            "content-type: image/png".to_owned(),
            format!("cross-origin-resource-policy: {policy}"),
        ];
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        assert_eq!(
            outcome(judged(cdn, PAGE_LOADS_IMAGE, 200, &lines)),
            "direct https://cdn.test/a"
        );
        // Who says nothing of what loads it may open it as a page, and the host answer him otherwise than us.
        assert_eq!(
            outcome(judged(cdn, stranger, 200, &lines)),
            "resource-policy"
        );
        let mut page = lines;
        page[0] = "content-type: text/html";
        assert_eq!(outcome(judged(cdn, stranger, 200, &page)), "type");
    }
}

#[test]
fn a_page_reads_what_the_host_lets_it_read() {
    let cdn = "/.spdy/1/-/s/cdn.test/a";
    let cors = Load {
        expected: Some(Kind::Font),
        mode: Mode::Cors,
        is_subresource: true,
        is_read: true,
        is_same_origin: true,
    };
    let old = Load {
        expected: None,
        mode: Mode::Unknown,
        is_subresource: false,
        is_read: true,
        is_same_origin: true,
    };
    let font = "content-type: font/woff2";
    let allowed = "access-control-allow-origin: *";
    let named = "access-control-allow-origin: https://www.site.test";
    let other = "access-control-allow-origin: https://other.test";
    assert_eq!(outcome(judged(cdn, cors, 200, &[font, allowed])), "serve");
    assert_eq!(outcome(judged(cdn, cors, 200, &[font, named])), "serve");
    assert_eq!(
        outcome(judged(cdn, cors, 200, &[font, other])),
        "direct https://cdn.test/a"
    );
    assert_eq!(
        outcome(judged(cdn, cors, 200, &[font])),
        "direct https://cdn.test/a"
    );
    assert_eq!(
        outcome(judged(cdn, cors, 200, &[font, allowed, named])),
        "direct https://cdn.test/a"
    );
    for kept in [font, "content-type: application/json"] {
        let answer = judged(cdn, old, 200, &[kept]);
        assert_eq!(outcome(answer), "cors", "{kept}");
    }
    assert_eq!(
        outcome(judged(cdn, old, 200, &["content-type: image/png"])),
        "serve"
    );
}

#[test]
fn a_script_of_the_page_reads_no_data_by_saying_that_it_will_not() {
    let fetched = Load {
        expected: None,
        mode: Mode::NoCors,
        is_subresource: true,
        is_read: true,
        is_same_origin: true,
    };
    for content_type in [
        "application/json",
        "font/woff2",
        "text/vtt",
        "application/wasm",
    ] {
        let line = format!("content-type: {content_type}");
        let answer = judged("/.spdy/1/-/s/cdn.test/a", fetched, 200, &[&line]);
        assert_eq!(
            outcome(answer),
            "direct https://cdn.test/a",
            "{content_type}"
        );
    }
}

#[test]
fn errors_are_told_without_their_pages_and_credentials_never_asked_for() {
    let cdn = "/.spdy/1/-/s/cdn.test/a";
    let html = "content-type: text/html";
    for (status, want) in [
        (404, "404"),
        (410, "410"),
        (500, "500"),
        (503, "503"),
        (429, "429"),
        (204, "204"),
        (401, "credentials"),
        (407, "credentials"),
        (302, "location"),
        (304, "serve"),
    ] {
        assert_eq!(
            outcome(judged(cdn, PAGE_LOADS_IMAGE, status, &[html])),
            want,
            "{status}"
        );
    }
}

#[test]
fn redirects_are_followed_where_the_rules_know_the_way() {
    let rules = discovering();
    let stranger = Load {
        is_subresource: false,
        is_read: true,
        is_same_origin: true,
        ..PAGE_LOADS_IMAGE
    };
    let runs = Load {
        expected: Some(Kind::Script),
        ..PAGE_LOADS_IMAGE
    };
    let open = |host: &str| {
        let url = support::url(&format!("https://{host}/a.png"));
        match rules.verdict(&url, Kind::Image, spdy_rewrite::verdict::Finder::Site) {
            spdy_rewrite::verdict::Verdict::Move(path) => path,
            leave => panic!("{leave:?}"),
        }
    };
    let (cdn, found, part) = (
        open("cdn.test"),
        open("open.test"),
        "/.spdy/1/-/s/folder.test/lib/a.png".to_owned(),
    );
    let script = "/.spdy/1/-/s/cdn.test/js/a.js".to_owned();
    let rows: [(&str, &str, Load, u32, &str); 23] = [
        (
            &part,
            "/lib/b.png",
            PAGE_LOADS_IMAGE,
            1,
            "follow https://folder.test/lib/b.png",
        ),
        (
            &part,
            "b.png#x",
            PAGE_LOADS_IMAGE,
            3,
            "follow https://folder.test/lib/b.png",
        ),
        (&part, "b.png", PAGE_LOADS_IMAGE, 4, "redirects"),
        (
            &part,
            "/secret.png",
            PAGE_LOADS_IMAGE,
            1,
            "direct https://folder.test/secret.png",
        ),
        (&part, "/secret.png", stranger, 1, "path-not-listed"),
        (
            &part,
            "https://a.wild.test/b.png",
            PAGE_LOADS_IMAGE,
            1,
            "follow https://a.wild.test/b.png",
        ),
        (
            &part,
            "https://stranger.test/b.png",
            PAGE_LOADS_IMAGE,
            1,
            "direct https://stranger.test/b.png",
        ),
        (
            &part,
            "https://stranger.test/b.png",
            stranger,
            1,
            "not-listed",
        ),
        (&part, "https://evil.test/b.png", stranger, 1, "denied"),
        (
            &part,
            "http://folder.test/lib/b.png",
            stranger,
            1,
            "port-not-listed",
        ),
        (
            &part,
            "https://folder.test:22/lib/b.png",
            stranger,
            1,
            "port-not-listed",
        ),
        (&part, "https://127.0.0.1/", stranger, 1, "address"),
        (
            &part,
            "https://www.site.test/logout",
            stranger,
            1,
            "own-host",
        ),
        (
            &part,
            "https://folder.test/lib/..%2fsecret",
            stranger,
            1,
            "encoded-slash",
        ),
        (
            &part,
            "javascript:alert(1)",
            PAGE_LOADS_IMAGE,
            1,
            "location",
        ),
        (&part, "file:///etc/passwd", PAGE_LOADS_IMAGE, 1, "location"),
        (
            &part,
            "https://u:p@folder.test/lib/b.png",
            PAGE_LOADS_IMAGE,
            1,
            "location",
        ),
        (
            &found,
            "/b.png",
            PAGE_LOADS_IMAGE,
            1,
            "follow https://open.test/b.png",
        ),
        (&found, "https://next.test/b.png", stranger, 1, "not-listed"),
        (
            &cdn,
            "https://shared.test/b.png",
            PAGE_LOADS_IMAGE,
            1,
            "follow https://shared.test/b.png",
        ),
        (&script, "b.js", runs, 1, "follow https://cdn.test/js/b.js"),
        (
            &script,
            "/v2/a.js",
            runs,
            1,
            "direct https://cdn.test/v2/a.js",
        ),
        (
            &script,
            "/v2/a.js",
            stranger,
            1,
            "follow https://cdn.test/v2/a.js",
        ),
    ];
    for (target, location, load, hop, want) in rows {
        let moved = rules.open(target).unwrap();
        let mut trail = Trail::default();
        for _ in 1..hop {
            let before = trail.decide(&rules, &moved, load, &fields(&["location: b.png"]));
            assert!(matches!(before, Redirect::Follow(_)), "{target}");
        }
        let line = format!("location: {location}");
        let got = match trail.decide(&rules, &moved, load, &fields(&[&line])) {
            Redirect::Follow(next) => format!("follow {}", next.url()),
            Redirect::Direct(url) => format!("direct {url}"),
            Redirect::Refuse(refusal) => refusal.name().to_owned(),
        };
        assert_eq!(got, want, "{target} to {location}");
    }
    let moved = rules.open(&part).unwrap();
    for lines in [&[][..], &["location: /lib/a.png", "location: /lib/b.png"]] {
        let decided = Trail::default().decide(&rules, &moved, PAGE_LOADS_IMAGE, &fields(lines));
        assert!(matches!(decided, Redirect::Refuse(refusal) if refusal.name() == "location"));
    }
}

#[test]
fn a_redirect_of_a_shared_host_is_no_way_to_its_scripts() {
    let rules = rules();
    let moved = rules.open("/.spdy/1/-/s/cdn.test/a").unwrap();
    let decided = Trail::default().decide(
        &rules,
        &moved,
        PAGE_LOADS_IMAGE,
        &fields(&["location: https://shared.test/x"]),
    );
    let Redirect::Follow(next) = decided else {
        panic!("{decided:?}")
    };
    assert!(next.kinds().has(Kind::Image) && !next.kinds().has(Kind::Script));
}

/// As browsers do it (Fetch, *CORS check*): what a page may read, each host on the way lets it read.
#[test]
fn a_page_reads_what_it_was_led_to_if_all_on_the_way_let_it() {
    let rules = rules();
    let cors = Load {
        expected: Some(Kind::Font),
        mode: Mode::Cors,
        is_subresource: true,
        is_read: true,
        is_same_origin: true,
    };
    let unknown = Load {
        expected: None,
        mode: Mode::Unknown,
        is_subresource: false,
        is_read: true,
        is_same_origin: true,
    };
    let (any, site, nobody) = (
        "access-control-allow-origin: *",
        "access-control-allow-origin: https://www.site.test",
        "access-control-allow-origin: null",
    );
    let (near, far) = (
        "location: /b.woff2",
        "location: https://img.wild.test/b.woff2",
    );
    let rows: [(&[&[&str]], &str, &str, &str); 9] = [
        (&[&[near, site]], site, "https://www.site.test", "yes"),
        (&[&[near, any]], any, "https://www.site.test", "yes"),
        (&[&[near]], any, "https://www.site.test", "no"),
        (&[&[near, nobody]], any, "https://www.site.test", "no"),
        (&[&[far, site]], any, "null", "yes"),
        (&[&[far, site]], nobody, "null", "yes"),
        (&[&[far, site]], site, "null", "no"),
        (&[&[far]], any, "null", "no"),
        (&[&[near, site], &[far, site]], any, "null", "yes"),
    ];
    for (hops, last, origin, want) in rows {
        for load in [cors, unknown] {
            let mut moved = rules.open("/.spdy/1/-/s/cdn.test/a.woff2").unwrap();
            let mut trail = Trail::default();
            let mut direct = None;
            for hop in hops {
                match trail.decide(&rules, &moved, load, &fields(hop)) {
                    Redirect::Follow(next) => moved = next,
                    Redirect::Direct(url) => direct = Some(url),
                    Redirect::Refuse(refusal) => panic!("{hops:?}: {refusal}"),
                }
            }
            let mut head = fields(&[last]);
            trail.amend(&mut head);
            if let Some(url) = direct {
                assert_eq!((load.mode, want), (Mode::Cors, "no"), "{hops:?}");
                assert_eq!(url, "https://cdn.test/a.woff2");
                continue;
            }
            assert_eq!(trail.origin(&rules), origin, "{hops:?}");
            head.insert("content-type", HeaderValue::from_static("font/woff2"));
            let font = rules.open("/.spdy/1/-/s/cdn.test/a.woff2").unwrap();
            let got = match hygiene::judge(&rules, &font, load, StatusCode::OK, &head) {
                Answer::Serve(_) => "yes",
                _ => "no",
            };
            assert_eq!(got, want, "{hops:?}, then {last}");
        }
    }
}
