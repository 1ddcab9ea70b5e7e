//! Redirects of other hosts: which are followed, which are passed on, and how the hops restrict the final
//! answer.

use http::StatusCode;
use http::header::HeaderValue;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::request::anonymize::{FetchMode, Load};
use spdy_rewrite::response::redirect::{Redirect, RedirectState};
use spdy_rewrite::response::sanitize_response::{self, SanitizedResponse};
use spdy_rewrite::rules::verdict::{ReferenceSource, Verdict};

use crate::support::fields::{PAGE_LOADS_IMAGE, fields};
use crate::support::{self, discovering, rules};

#[test]
fn redirects_within_rules_are_followed() {
    let rules = discovering();
    let stranger = Load {
        is_subresource: false,
        is_safe_method: true,
        is_same_origin: true,
        ..PAGE_LOADS_IMAGE
    };
    let runs = Load {
        expected: Some(Kind::Script),
        ..PAGE_LOADS_IMAGE
    };
    let open = |host: &str| {
        let url = support::url(&format!("https://{host}/a.png"));
        match rules.verdict(&url, Kind::Image, ReferenceSource::Site) {
            Verdict::Rewrite(path) => path,
            leave => panic!("{leave:?}"),
        }
    };
    let (cdn, discovered, part) = (
        open("cdn.test"),
        open("open.test"),
        "/.spdy/1/-/s/folder.test/lib/a.png".to_owned(),
    );
    let script = "/.spdy/1/-/s/cdn.test/js/a.js".to_owned();
    let rows: [(&str, &str, Load, u32, &str); 24] = [
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
            "site-host",
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
            &discovered,
            "/b.png",
            PAGE_LOADS_IMAGE,
            1,
            "follow https://open.test/b.png",
        ),
        (
            &discovered,
            "https://next.test/b.png",
            stranger,
            1,
            "not-listed",
        ),
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
            "pass /.spdy/1/-/s/cdn.test/v2/a.js",
        ),
        (
            &script,
            "https://shared.test/v2/a.js",
            runs,
            1,
            "direct https://shared.test/v2/a.js",
        ),
        (
            &script,
            "/v2/a.js",
            stranger,
            1,
            "follow https://cdn.test/v2/a.js",
        ),
    ];
    for (target, location, load, hop, expected) in rows {
        let proxied = rules.open(target).unwrap();
        let mut trail = RedirectState::default();
        for _ in 1..hop {
            let before = trail.decide(&rules, &proxied, load, &fields(&["location: b.png"]));
            assert!(matches!(before, Redirect::Follow(_)), "{target}");
        }
        let line = format!("location: {location}");
        let actual = match trail.decide(&rules, &proxied, load, &fields(&[&line])) {
            Redirect::Follow(next) => format!("follow {}", next.url()),
            Redirect::Pass(path) => format!("pass {path}"),
            Redirect::Direct(url) => format!("direct {url}"),
            Redirect::Refuse(refusal) => refusal.name().to_owned(),
        };
        assert_eq!(actual, expected, "{target} to {location}");
    }
    let proxied = rules.open(&part).unwrap();
    for lines in [&[][..], &["location: /lib/a.png", "location: /lib/b.png"]] {
        let decided =
            RedirectState::default().decide(&rules, &proxied, PAGE_LOADS_IMAGE, &fields(lines));
        assert!(matches!(decided, Redirect::Refuse(refusal) if refusal.name() == "location"));
    }
}

#[test]
fn redirect_cannot_reach_public_cdn_scripts() {
    let rules = rules();
    let proxied = rules.open("/.spdy/1/-/s/cdn.test/a").unwrap();
    let decided = RedirectState::default().decide(
        &rules,
        &proxied,
        PAGE_LOADS_IMAGE,
        &fields(&["location: https://shared.test/x"]),
    );
    let Redirect::Follow(next) = decided else {
        panic!("{decided:?}")
    };
    assert!(next.kinds().has(Kind::Image) && !next.kinds().has(Kind::Script));
}

/// The capability of a script of a shared host is for its URL alone, so the redirect gets another one.
#[test]
fn passed_redirect_of_a_shared_host_can_be_opened() {
    let rules = rules();
    let url = support::url("https://shared.test/lib@1");
    let Verdict::Rewrite(path) = rules.verdict(&url, Kind::Script, ReferenceSource::Site) else {
        panic!("the host is listed")
    };
    let moved = rules.open(&path).unwrap();
    let load = Load {
        expected: Some(Kind::Script),
        ..PAGE_LOADS_IMAGE
    };
    let location = fields(&["location: /lib@1.2.3/lib.js"]);
    let Redirect::Pass(path) = RedirectState::default().decide(&rules, &moved, load, &location)
    else {
        panic!("the redirect is passed")
    };
    let opened = rules.open(&path).unwrap();
    assert_eq!(
        opened.url().as_str(),
        "https://shared.test/lib@1.2.3/lib.js"
    );
}

/// As browsers do it (Fetch, *CORS check*): what a page may read, each host on the way lets it read.
#[test]
fn cors_response_is_readable_if_every_hop_allows_it() {
    let rules = rules();
    let cors = Load {
        expected: Some(Kind::Font),
        mode: FetchMode::Cors,
        is_subresource: true,
        is_safe_method: true,
        is_same_origin: true,
    };
    let unknown = Load {
        expected: None,
        mode: FetchMode::Unknown,
        is_subresource: false,
        is_safe_method: true,
        is_same_origin: true,
    };
    let (any, site, null_origin) = (
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
        (&[&[near, null_origin]], any, "https://www.site.test", "no"),
        (&[&[far, site]], any, "null", "yes"),
        (&[&[far, site]], null_origin, "null", "yes"),
        (&[&[far, site]], site, "null", "no"),
        (&[&[far]], any, "null", "no"),
        (&[&[near, site], &[far, site]], any, "null", "yes"),
    ];
    for (hops, last, origin, expected) in rows {
        for load in [cors, unknown] {
            let mut proxied = rules.open("/.spdy/1/-/s/cdn.test/a.woff2").unwrap();
            let mut trail = RedirectState::default();
            let mut direct = None;
            for hop in hops {
                match trail.decide(&rules, &proxied, load, &fields(hop)) {
                    Redirect::Follow(next) => proxied = next,
                    Redirect::Direct(url) => direct = Some(url),
                    Redirect::Pass(path) => panic!("{hops:?}: {path}"),
                    Redirect::Refuse(refusal) => panic!("{hops:?}: {refusal}"),
                }
            }
            let mut head = fields(&[last]);
            trail.amend(&mut head);
            if let Some(url) = direct {
                assert_eq!((load.mode, expected), (FetchMode::Cors, "no"), "{hops:?}");
                assert_eq!(url, "https://cdn.test/a.woff2");
                continue;
            }
            assert_eq!(trail.origin(&rules), origin, "{hops:?}");
            head.insert("content-type", HeaderValue::from_static("font/woff2"));
            let font = rules.open("/.spdy/1/-/s/cdn.test/a.woff2").unwrap();
            let actual =
                match sanitize_response::sanitize(&rules, &font, load, StatusCode::OK, &head) {
                    SanitizedResponse::Serve(_) => "yes",
                    _ => "no",
                };
            assert_eq!(actual, expected, "{hops:?}, then {last}");
        }
    }
}
