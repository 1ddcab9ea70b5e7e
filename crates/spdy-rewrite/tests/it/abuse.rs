//! Everything that was ever thought of to make a proxy fetch what it should not, against the rules of one site.

use std::collections::BTreeSet;

use http::Request;
use spdy_rewrite::request::anonymize;
use spdy_rewrite::rules::refusal::Refusal;

use crate::support::corpus::{self, SITE, capability, cases};
use crate::support::{self, discovering, key, keys, rules, url};

fn written(text: &str) -> String {
    corpus::written(text, 'a')
}

#[test]
fn each_abuse_is_refused_with_its_reason() {
    let (rules, cases) = (discovering(), cases('a'));
    assert!(cases.len() >= 80, "{} cases", cases.len());
    let mut names = BTreeSet::new();
    for case in cases {
        assert!(names.insert(case.name), "{} stands twice", case.name);
        let mut request = Request::builder().method(case.method);
        for (name, value) in &case.fields {
            request = request.header(*name, value);
        }
        let request = request.body(()).unwrap();
        let outcome = rules
            .open(&case.target)
            .and_then(|proxied| anonymize::request(&rules, &proxied, &request));
        match outcome {
            Ok(upstream) => panic!("{}: {} was opened: {upstream:?}", case.name, case.target),
            Err(refusal) => assert_eq!(refusal.name(), case.refusal, "{}: {refusal}", case.name),
        }
    }
}

#[test]
fn unmodified_base_of_abuses_is_accepted() {
    let rules = discovering();
    for target in [
        "/.spdy/1/-/s/cdn.test/a.png".to_owned(),
        "/.spdy/1/-/s/cdn.test/".to_owned(),
        "/.spdy/1/-/s/cdn.test/a%2fb.png?x=/.spdy/&y=%2e%2e".to_owned(),
        "/.spdy/1/-/s/folder.test/lib/a.png".to_owned(),
        "/.spdy/1/-/s/a.wild.test/a.png".to_owned(),
        "/.spdy/1/-/s/port.test~8443/a.png".to_owned(),
        "/.spdy/1/-/p/plain.test/a.png".to_owned(),
        written("/.spdy/1/{k open.test}/s/open.test/a.png"),
        written("/.spdy/1/{u shared.test /lib.js}/s/shared.test/lib.js"),
    ] {
        let proxied = rules
            .open(&target)
            .unwrap_or_else(|refusal| panic!("{target}: {refusal}"));
        let upstream = anonymize::request(&rules, &proxied, &Request::new(())).unwrap();
        assert_eq!(upstream.method, "GET");
        assert!(target.ends_with(proxied.target()), "{target}");
        assert_eq!(proxied.path(), target);
    }
}

/// A moved script's neighbours are under its head, capability and all; another host's head leads nowhere.
#[test]
fn refused_neighbor_of_listed_resource_has_host_url() {
    let rules = discovering();
    for (target, place) in [
        (
            "/.spdy/1/-/s/folder.test/shared/x.js",
            Some("https://folder.test/shared/x.js"),
        ),
        (
            "/.spdy/1/{u shared.test /ace.js}/s/shared.test/mode-json.js?v=1",
            Some("https://shared.test/mode-json.js?v=1"),
        ),
        ("/.spdy/1/{k open.test}/s/shared.test/mode-json.js", None),
        ("/.spdy/1/{k open.test}/s/other.test/a.png", None),
        ("/.spdy/1/{u shared.test /ace.js}/s/other.test/a.js", None),
        ("/.spdy/1/-/s/other.test/a.js", None),
        ("/.spdy/1/-/s/evil.test/a.js", None),
        ("/.spdy/1/-/s/img.site.test/a.js", None),
        ("/.spdy/1/-/s/port.test/a.js", None),
    ] {
        let refusal = rules.open(&written(target)).unwrap_err();
        assert_eq!(refusal.place(false), place, "{target}: {refusal}");
        assert_eq!(refusal.place(true), None, "{target}: {refusal}");
    }
}

#[test]
fn without_discovery_unlisted_host_is_refused() {
    let target = written("/.spdy/1/{k open.test}/s/open.test/a.png");
    let host = "open.test".to_owned();
    assert_eq!(rules().open(&target), Err(Refusal::NotListed { host }));
}

#[test]
fn capability_of_previous_key_works_until_removed() {
    let target = format!(
        "/.spdy/1/{}/s/open.test/a.png",
        capability('o', 2, SITE, "s open.test 443", None)
    );
    assert!(discovering().open(&target).is_ok());
    let config = spdy_rewrite::rules::config::Config {
        discover: true,
        ..support::config()
    };
    let dropped = spdy_rewrite::rules::capability::Keys::new(key('a', 1), None);
    let rules = support::compile(&config, dropped);
    assert_eq!(rules.open(&target), Err(Refusal::UnknownKey { kid: 'o' }));
    assert_eq!(keys().kids().collect::<String>(), "ao");
}

#[test]
fn target_length_is_limited() {
    let head = "/.spdy/1/-/s/cdn.test/";
    let fits = format!("{head}{}", "a".repeat(8 * 1024 - head.len()));
    assert!(rules().open(&fits).is_ok());
    let refusal = Refusal::TooLong {
        most: 8 * 1024,
        found: 8 * 1024 + 1,
    };
    assert_eq!(rules().open(&format!("{fits}a")), Err(refusal));
    let long = url(&format!("https://cdn.test/{}", "a".repeat(8 * 1024)));
    let verdict = rules().verdict(
        &long,
        spdy_rewrite::kind::Kind::Image,
        spdy_rewrite::rules::verdict::ReferenceSource::Site,
    );
    assert!(
        matches!(verdict, spdy_rewrite::rules::verdict::Verdict::Skip(reason) if reason.name() == "too-long")
    );
}
