//! Hosts with an alias: their names, what is rewritten to them, and what is opened under them.

use spdy_rewrite::kind::Kind;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::capability::{Key, Keys};
use spdy_rewrite::rules::config::{Config, HostConfig, Scheme};
use spdy_rewrite::rules::error::RulesError;
use spdy_rewrite::rules::host_aliases::check_cookie_isolation;
use spdy_rewrite::rules::verdict::{ReferenceSource, SkipReason, Verdict};

use crate::support::aliases::{config, name_of, rules};
use crate::support::{key, keys, url};

const SITE: &str = "https://www.site.test";

#[test]
fn alias_is_bound_to_site_scheme_host_and_port() {
    let rules = rules();
    let name = name_of(&rules, "widgets.test");
    let label = name.strip_prefix("https://").unwrap();
    let (label, zone) = label.split_once('.').unwrap();
    assert_eq!((label.len(), zone), (16, "x.assets.test"));
    let plain = |byte: u8| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte);
    assert!(label.bytes().all(plain), "{label}");

    let keys = || Keys::new(key('a', 1), None);
    let of = |site: &str, host: HostConfig, keys: Keys| {
        let config = Config {
            hosts: vec![host],
            ..config()
        };
        let rules = Rules::compile(&url(site), &config, Some(keys)).unwrap();
        let named = rules.aliases().next().unwrap();
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
        of(SITE, widgets(), Keys::new(key('a', 9), None)),
    ];
    for other in others {
        assert_ne!(other, label);
    }
}

/// Browsers refuse what no certificate has.
#[test]
fn withheld_alias_opens_but_is_not_written() {
    let all = rules();
    let widgets = url("https://widgets.test/a.png");
    let name = name_of(&all, "widgets.test");
    let name = name.strip_prefix("https://").unwrap();
    let aliases = all.aliases().filter(|alias| alias.host() == "widgets.test");
    let withheld = aliases.map(|alias| alias.name().to_owned()).collect();
    let rules = all.without_aliases(&withheld);
    for kind in [Kind::Image, Kind::Script, Kind::Document, Kind::Worker] {
        for finder in [ReferenceSource::Site, ReferenceSource::Alias] {
            let skipped = Verdict::Skip(SkipReason::NoCertificate);
            assert_eq!(rules.verdict(&widgets, kind, finder), skipped, "{kind}");
        }
    }
    let named = rules.named(name).expect("a response");
    assert!(rules.open_alias(named, "/a.png").is_ok());
    let pictures = url("https://pictures.test:8443/pub/a.png");
    let verdict = |rules: &Rules, url| rules.verdict(url, Kind::Image, ReferenceSource::Site);
    assert_eq!(verdict(&rules, &pictures), verdict(&all, &pictures));
    let unnamed = url("https://cdn.test/frame.html");
    let skipped = rules.verdict(&unnamed, Kind::Document, ReferenceSource::Site);
    assert_eq!(skipped, Verdict::Skip(SkipReason::Document));

    // Pages of then are not those of now, and what was learned of them is.
    assert_ne!(rules.tag(), all.tag());
    assert!(rules.is_same_but_for_keys(&all));
    let again = rules.without_aliases(&["other.x.assets.test".to_owned()].into());
    assert_eq!(again.tag(), all.tag());
    assert_eq!(verdict(&again, &widgets), verdict(&all, &widgets));
}

#[test]
fn previous_alias_is_written_while_current_is_withheld() {
    let [old, new] = [key('a', 1), key('b', 2)];
    let rules = |current: &Key, former: Option<&Key>| {
        let keys = Keys::new(current.clone(), former.cloned());
        Rules::compile(&url(SITE), &config(), Some(keys)).unwrap()
    };
    let [before, after] = [&old, &new].map(|key| name_of(&rules(key, None), "widgets.test"));
    let host = after.strip_prefix("https://").unwrap();
    let rolled = rules(&new, Some(&old)).without_aliases(&[host.to_owned()].into());
    assert_eq!(name_of(&rolled, "widgets.test"), before);
}

/// Pages of its time are still about, and name it.
#[test]
fn previous_alias_opens_but_is_not_written() {
    let [old, new] = [key('a', 1), key('b', 2)];
    let rules = |current: &Key, former: Option<&Key>| {
        let keys = Keys::new(current.clone(), former.cloned());
        Rules::compile(&url(SITE), &config(), Some(keys)).unwrap()
    };
    let before = name_of(&rules(&old, None), "widgets.test");
    let rolled = rules(&new, Some(&old));
    let written = name_of(&rolled, "widgets.test");
    assert_eq!(written, name_of(&rules(&new, None), "widgets.test"));
    assert_ne!(written, before);
    for name in [&written, &before] {
        let host = name.strip_prefix("https://").unwrap();
        let named = rolled.named(host).expect("a response");
        assert_eq!(
            (named.original_origin(), named.origin()),
            ("https://widgets.test".to_owned(), &name[..])
        );
        assert!(rolled.open_alias(named, "/a.png").is_ok());
    }
    let host = before.strip_prefix("https://").unwrap();
    assert_eq!(rules(&new, None).named(host), None);
}

/// The characters are a promise to certificates and zones that others keep; these are Python's, by its `hmac` and `base64`.
#[test]
fn alias_label_has_expected_bytes() {
    assert_eq!(
        name_of(&rules(), "widgets.test"),
        "https://2bbr4hfibigp2qnu.x.assets.test"
    );
}

#[test]
fn alias_uses_the_site_port() {
    let site = url("https://www.site.test:8443");
    let rules = Rules::compile(&site, &config(), Some(keys())).unwrap();
    let origin = name_of(&rules, "widgets.test");
    assert!(origin.ends_with(".x.assets.test:8443"), "{origin}");
}

#[track_caller]
fn is_wrong(config: &Config, keys: Option<Keys>, message: &str) {
    let error = Rules::compile(&url(SITE), config, keys).expect_err(message);
    assert!(error.to_string().contains(message), "{error}");
}

#[test]
fn cookies_are_isolated_only_between_known_registrable_domains() {
    let is_isolated = |name: &str| check_cookie_isolation("x.assets.test", name).is_ok();
    for name in [
        "site.test",
        "www.site.test",
        "localhost",
        "192.0.2.1",
        "[::1]",
    ] {
        assert!(is_isolated(name), "{name}");
    }
    // The last ones are no names in lower case and ASCII.
    for name in [
        "assets.test",
        "y.assets.test",
        "y.assets.test.",
        "Y.site.test",
        "bücher.test",
        "a..test",
    ] {
        assert!(!is_isolated(name), "{name}");
    }
}

#[test]
fn invalid_alias_config_is_an_error() {
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
    for public_suffix in ["test", "co.uk", "github.io", "kawasaki.jp"] {
        is_wrong(
            &zone(public_suffix),
            Some(keys()),
            "anyone can register a name there",
        );
    }
    is_wrong(&zone("X.assets.test"), Some(keys()), "lower-case hostname");
    is_wrong(&zone("192.0.2.1"), Some(keys()), "address");
    is_wrong(&zone(&"a.".repeat(118)), Some(keys()), "names_under");
    let hosts = |hosts: Vec<HostConfig>| Config { hosts, ..config() };
    let named = HostConfig::named;
    is_wrong(&hosts(vec![]), Some(keys()), "no host has mode");
    is_wrong(
        &hosts(vec![named("*.widgets.test")]),
        Some(keys()),
        "expected one host",
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
    is_wrong(&nowhere, Some(keys()), "expected `names_under`");
    let own = Config {
        own_hosts: vec!["*.assets.test".to_owned()],
        ..config()
    };
    is_wrong(&own, Some(keys()), "same registrable domain as assets.test");
    for kind in [Kind::Document, Kind::Worker] {
        let config = hosts(vec![HostConfig {
            kinds: vec![Kind::Image, kind],
            ..HostConfig::passive("cdn.test")
        }]);
        let error = Rules::compile(&url(SITE), &config, Some(keys())).unwrap_err();
        let host = "cdn.test".to_owned();
        assert_eq!(error, RulesError::NeedsAlias { host, kind });
    }
}

#[test]
fn alias_url_keeps_path_query_and_fragment() {
    let rules = rules();
    let verdict = |text: &str, kind| rules.verdict(&url(text), kind, ReferenceSource::Site);
    let widgets = name_of(&rules, "widgets.test");
    for rest in ["/", "/a/b.html?c=d&e#f", "/a%2fb", "/?"] {
        let expected = Verdict::Rewrite(format!("{widgets}{rest}"));
        assert_eq!(
            verdict(&format!("https://widgets.test{rest}"), Kind::Document),
            expected
        );
    }
    let pictures = name_of(&rules, "pictures.test:8443");
    assert_eq!(
        verdict("https://pictures.test:8443/pub/a.png", Kind::Image),
        Verdict::Rewrite(format!("{pictures}/pub/a.png"))
    );
    let skip_reason = |text: &str, kind| match verdict(text, kind) {
        Verdict::Skip(reason) => reason.name(),
        Verdict::Rewrite(to) => panic!("{text} went to {to}"),
    };
    assert_eq!(
        skip_reason("https://pictures.test:8443/a.png", Kind::Image),
        "path-not-listed"
    );
    assert_eq!(
        skip_reason("https://pictures.test:8443/pub/a.js", Kind::Script),
        "kind-not-listed"
    );
    assert_eq!(
        skip_reason("https://widgets.test/.spdy/1/-/s/cdn.test/", Kind::Image),
        "nested"
    );
    assert_eq!(
        skip_reason("https://cdn.test/frame.html", Kind::Document),
        "document"
    );
    assert_eq!(
        skip_reason(&format!("{widgets}/a.png"), Kind::Image),
        "site-host"
    );
}

#[test]
fn aliased_host_has_no_proxied_path() {
    let refusal = rules().open("/.spdy/1/-/s/widgets.test/a.png").unwrap_err();
    assert_eq!(refusal.name(), "has-alias");
}

#[test]
fn alias_url_round_trips() {
    let rules = rules();
    let named = rules.alias_of(&url("https://widgets.test/")).unwrap();
    let alias_url = rules.open_alias(named, "/a/b.png?c").unwrap();
    assert_eq!(alias_url.url().as_str(), "https://widgets.test/a/b.png?c");
    assert_eq!(alias_url.path(), format!("{}/a/b.png?c", named.origin()));
    assert!(alias_url.is_alias());
    for (target, reason) in [
        ("/a/../b", "dot-segment"),
        ("/a/%2e%2E/b", "dot-segment"),
        ("/.spdy/1/-/s/cdn.test/a", "nested"),
        ("/.well-known/acme-challenge/a", "well-known"),
        ("/.well-known/pki-validation/a.txt", "well-known"),
        ("/x;%2f..%2f.well-known/acme-challenge/a", "well-known"),
        (
            "/x%3b%252f..%252f.well-known/acme-challenge/a",
            "well-known",
        ),
        ("/x%2f..%2f.well-known/acme-challenge/a", "well-known"),
        ("/.well-known%2f%2f..%2fa", "well-known"),
        ("/.well-known;%2fa%2f..%2f../a", "well-known"),
        ("/x;%2f.spdy/1/-/s/cdn.test/a", "nested"),
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
        let refusal = rules.open_alias(named, target).expect_err(target);
        assert_eq!(refusal.name(), reason, "{target}");
    }
    let long = format!("/{}", "a".repeat(8 * 1024));
    assert_eq!(
        rules.open_alias(named, &long).unwrap_err().name(),
        "too-long"
    );
}

#[test]
fn unchanged_alias_frame_has_a_reason() {
    let verdict = rules().verdict(
        &url("https://cdn.test/x.js"),
        Kind::Script,
        ReferenceSource::Alias,
    );
    assert_eq!(verdict, Verdict::Skip(SkipReason::NoAlias));
}
