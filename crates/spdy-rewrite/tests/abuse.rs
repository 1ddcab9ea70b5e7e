//! Everything that was ever thought of to make a proxy fetch what it should not, against the rules of one site.

mod support;

use std::collections::BTreeSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use http::Request;
use sha2::Sha256;
use spdy_rewrite::anonymous;
use spdy_rewrite::refusal::Refusal;
use support::{discovering, key, keys, rules, url};

const SITE: &str = "https://www.site.test";

/// A capability, made without the crate's help.
fn capability(kid: char, fill: u8, site: &str, origin: &str, target: Option<&str>) -> String {
    let mut message = format!("spdy-accel/1\0{site}\0{}", origin.replace(' ', "\0")).into_bytes();
    if let Some(target) = target {
        message.push(0);
        message.extend_from_slice(target.as_bytes());
    }
    let mut mac = Hmac::<Sha256>::new_from_slice(&[fill; 32]).unwrap();
    mac.update(&message);
    let code = URL_SAFE_NO_PAD.encode(&mac.finalize().into_bytes()[..18]);
    format!("{}{kid}{code}", if target.is_some() { 'u' } else { 'k' })
}

/// What stands for `word`, which was in braces.
fn filled(word: &str) -> String {
    let parts: Vec<_> = word.split(' ').collect();
    let https = |host: &str| format!("s {host} 443");
    match parts[..] {
        ["long"] => "a".repeat(8 * 1024),
        ["long1024"] => "a".repeat(1024),
        ["label64"] => "a".repeat(64),
        ["k", host] => capability('a', 1, SITE, &https(host), None),
        ["u", host, target] => capability('a', 1, SITE, &https(host), Some(target)),
        ["u-as-k", host, target] => {
            capability('a', 1, SITE, &https(host), Some(target)).replacen('u', "k", 1)
        }
        ["twin", host] => capability('a', 1, "https://www.twin.test", &https(host), None),
        ["other", host] => capability('a', 9, "https://www.twin.test", &https(host), None),
        ["dead", host] => capability('d', 4, SITE, &https(host), None),
        ["port", host] => capability('a', 1, SITE, &format!("s {host} 8443"), None),
        ["http", host] => capability('a', 1, SITE, &format!("p {host} 80"), None),
        _ => panic!("the vectors know no {{{word}}}"),
    }
}

/// `text` with its braces filled and its `\xNN` undone.
fn written(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\\x") {
            out.push(u8::from_str_radix(&after[..2], 16).unwrap());
            rest = &after[2..];
        } else if let Some(after) = rest.strip_prefix('{') {
            let (word, after) = after.split_once('}').unwrap();
            out.extend_from_slice(filled(word).as_bytes());
            rest = after;
        } else {
            out.push(first as u8);
            rest = &rest[1..];
        }
    }
    String::from_utf8(out).unwrap()
}

struct Case<'a> {
    name: &'a str,
    refusal: &'a str,
    method: &'a str,
    target: String,
    fields: Vec<(&'a str, String)>,
}

fn cases() -> Vec<Case<'static>> {
    let text = include_str!("../../../vectors/moved-urls/abuse.txt");
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let case = |line: &'static str| {
        let mut bars = line.split(" | ");
        let words = bars.next().unwrap().trim();
        let (name, words) = words.split_once(' ').unwrap();
        let (refusal, words) = words.trim_start().split_once(' ').unwrap();
        let (method, target) = words.trim_start().split_once(' ').unwrap();
        let field = |field: &'static str| {
            field
                .split_once(": ")
                .map(|(name, value)| (name, written(value)))
                .unwrap()
        };
        Case {
            name,
            refusal,
            method,
            target: written(target),
            fields: bars.map(field).collect(),
        }
    };
    lines.map(case).collect()
}

#[test]
fn every_abuse_is_refused_for_its_own_reason() {
    let (rules, cases) = (discovering(), cases());
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
            .and_then(|moved| anonymous::request(&rules, &moved, &request));
        match outcome {
            Ok(upstream) => panic!("{}: {} was opened: {upstream:?}", case.name, case.target),
            Err(refusal) => assert_eq!(refusal.name(), case.refusal, "{}: {refusal}", case.name),
        }
    }
}

#[test]
fn what_the_abuses_vary_is_good_by_itself() {
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
        let moved = rules
            .open(&target)
            .unwrap_or_else(|refusal| panic!("{target}: {refusal}"));
        let upstream = anonymous::request(&rules, &moved, &Request::new(())).unwrap();
        assert_eq!(upstream.method, "GET");
        assert!(target.ends_with(moved.target()), "{target}");
        assert_eq!(moved.path(), target);
    }
}

#[test]
fn without_discovery_no_capability_opens_an_unlisted_host() {
    let target = written("/.spdy/1/{k open.test}/s/open.test/a.png");
    let host = "open.test".to_owned();
    assert_eq!(rules().open(&target), Err(Refusal::NotListed { host }));
}

#[test]
fn a_capability_by_the_former_key_opens_until_that_is_dropped() {
    let target = format!(
        "/.spdy/1/{}/s/open.test/a.png",
        capability('o', 2, SITE, "s open.test 443", None)
    );
    assert!(discovering().open(&target).is_ok());
    let config = spdy_rewrite::config::Config {
        discover: true,
        ..support::config()
    };
    let dropped = spdy_rewrite::capability::Keys::new(key('a', 1), None).unwrap();
    let rules = support::compile(&config, dropped);
    assert_eq!(rules.open(&target), Err(Refusal::UnknownKey { kid: 'o' }));
    assert_eq!(keys().kids().collect::<String>(), "ao");
}

#[test]
fn a_target_may_be_as_long_as_the_limit_and_no_longer() {
    let head = "/.spdy/1/-/s/cdn.test/";
    let fits = format!("{head}{}", "a".repeat(8 * 1024 - head.len()));
    assert!(rules().open(&fits).is_ok());
    let refusal = Refusal::TooLong {
        most: 8 * 1024,
        got: 8 * 1024 + 1,
    };
    assert_eq!(rules().open(&format!("{fits}a")), Err(refusal));
    let long = url(&format!("https://cdn.test/{}", "a".repeat(8 * 1024)));
    let verdict = rules().verdict(
        &long,
        spdy_rewrite::kind::Kind::Image,
        spdy_rewrite::verdict::Finder::Site,
    );
    assert!(
        matches!(verdict, spdy_rewrite::verdict::Verdict::Leave(reason) if reason.name() == "too-long")
    );
}
