//! Which responses are stored, and for how long: a response head, and the decision.

use std::time::Duration;

use spdy_cache::freshness::{LifetimeSource, Times};
use spdy_cache::policy::{self, Policy};
use spdy_cache::storable::{Uncacheable, may_store};

use crate::support::{answer, date, get, now};

/// How long the answer with `fields` to a plain GET is fresh when it comes, or why it is not
/// stored.
fn stored_ttl(fields: &str) -> Result<u64, Uncacheable> {
    stored_ttl_for(&Policy::site(), 200, "", fields)
}

fn stored_ttl_for(
    policy: &Policy,
    status: u16,
    request: &str,
    fields: &str,
) -> Result<u64, Uncacheable> {
    let stored = may_store(
        policy,
        &get(request),
        &answer(status, fields),
        Times::at(now()),
    )?;
    Ok(stored.ttl(now()).max(0).cast_unsigned())
}

#[test]
fn first_lifetime_source_wins() {
    let long = date(3600);
    for (fields, expected) in [
        ("cache-control: max-age=60", Ok(60)),
        ("cache-control: MaX-aGe=60", Ok(60)),
        ("cache-control: max-age=\"60\"", Ok(60)),
        ("cache-control: max-age=0060", Ok(60)),
        ("cache-control: foo, max-age=60", Ok(60)),
        ("cache-control: s-maxage=60, max-age=1", Ok(60)),
        (
            "cache-control: max-age=3600\ncache-control: s-maxage=1",
            Ok(1),
        ),
        ("cache-control: max-age=99999999999", Ok(1 << 31)),
        ("cache-control: x=\"max-age=3600\", max-age=5", Ok(5)),
        ("cache-control: x=\"a\\\"b, max-age=7\", max-age=5", Ok(5)),
        ("cache-control: max-age=60, max-age=60", Ok(60)),
        ("cache-control: max-age=60\nage: 10", Ok(50)),
        ("cache-control: max-age=60\nage: 10, 50", Ok(50)),
        ("cache-control: max-age=60\nage: 10\nage: 50", Ok(50)),
        ("cache-control: max-age=60\nage: ten", Ok(60)),
        ("cache-control: max-age=60\nage: -10", Ok(60)),
        ("cache-control: max-age=60\nage: 10.0", Ok(60)),
        (&format!("expires: {long}"), Ok(3600)),
        (&format!("cache-control: max-age=5\nexpires: {long}"), Ok(5)),
        (
            &format!("cdn-cache-control: max-age=9\ncache-control: no-store\nexpires: {long}"),
            Ok(9),
        ),
    ] {
        assert_eq!(stored_ttl(fields), expected, "{fields}");
    }
}

#[test]
fn unparsable_lifetime_is_stale() {
    let long = date(3600);
    for fields in [
        "cache-control: max-age=-60",
        "cache-control: max-age='60'",
        "cache-control: max-age=60.0",
        "cache-control: max-age=60s",
        "cache-control: max-age =60",
        "cache-control: max-age= 60",
        "cache-control: max-age=",
        "cache-control: max-age=60, max-age=30",
        "cache-control: x=\"open, max-age=60",
        "expires: 0",
        "expires: Thu, 18 Aug 2050 02:01:18 UTC",
        "expires: Thu, 18 Aug 50 02:01:18 GMT",
        "expires: Thu 18 Aug 2050 02:01:18 GMT",
        "expires: Thu, 18  Aug  2050 02:01:18 GMT",
        "expires: Thu, 18-Aug-2050 02:01:18 GMT",
        "expires: Thu, 18 Aug 2050 02.01.18 GMT",
        "expires: Thu, 18 Aug 2050 2:01:18 GMT",
        "expires: Thu, 18 Aug 2050 02:01:18 GMT\nexpires: Thu, 18 Aug 2050 02:01:19 GMT",
        &format!("cache-control: max-age=0\nexpires: {long}"),
        &format!("cdn-cache-control: max-age=0\nexpires: {long}"),
    ] {
        assert_eq!(
            stored_ttl(&format!("etag: \"a\"\n{fields}")),
            Ok(0),
            "{fields}"
        );
        assert_eq!(
            stored_ttl(fields),
            Err(Uncacheable::NeverReusable),
            "{fields}"
        );
    }
}

#[test]
fn all_http_date_forms_parse() {
    for expires in [
        "Tue, 19 Jan 2038 14:14:08 GMT",
        "Sun, 21 Nov 2286 04:46:39 GMT",
        "Thursday, 18-Aug-50 02:01:18 GMT",
        "Thu Aug  8 02:01:18 2050",
        "THU, 18 Aug 2050 02:01:18 GMT",
        "Thu, 18 AUG 2050 02:01:18 GMT",
        "Thu, 18 Aug 2050 02:01:18 gMT",
    ] {
        assert!(
            stored_ttl(&format!("expires: {expires}")) > Ok(300_000_000),
            "{expires}"
        );
    }
}

#[test]
fn private_responses_are_not_stored() {
    use Uncacheable::{Authorization, Cookie, NoStore, Private, RequestNoStore, SetCookie, Vary};
    for (request, fields, reason) in [
        ("", "cache-control: max-age=60, no-store", NoStore),
        ("", "cache-control: max-age=60, No-StOrE", NoStore),
        ("", "cache-control: private, max-age=60", Private),
        (
            "",
            "cdn-cache-control: private\ncache-control: max-age=60",
            Private,
        ),
        (
            "",
            "cdn-cache-control: no-store\ncache-control: max-age=60",
            NoStore,
        ),
        (
            "cache-control: no-store",
            "cache-control: max-age=60",
            RequestNoStore,
        ),
        (
            "authorization: x",
            "cache-control: max-age=60",
            Authorization,
        ),
        ("cookie: a=b", "cache-control: max-age=60", Cookie),
        ("", "cache-control: max-age=60\nset-cookie: a=b", SetCookie),
        ("", "cache-control: max-age=60\nvary: *", Vary),
        ("", "cache-control: max-age=60\nvary: a, *", Vary),
        ("", "cache-control: max-age=60\nvary:\nvary: *", Vary),
    ] {
        assert_eq!(
            stored_ttl_for(&Policy::site(), 200, request, fields),
            Err(reason),
            "{request} | {fields}"
        );
    }
    for (request, fields) in [
        ("authorization: x", "cache-control: max-age=60, public"),
        (
            "authorization: x",
            "cache-control: max-age=60, must-revalidate",
        ),
        ("authorization: x", "cache-control: s-maxage=60"),
        ("cookie: a=b", "cache-control: max-age=60, public"),
        ("cookie: a=b", "cache-control: s-maxage=60"),
        (
            "",
            "cache-control: max-age=60, no-cache=\"set-cookie\"\nset-cookie: a=b",
        ),
    ] {
        assert_eq!(
            stored_ttl_for(&Policy::site(), 200, request, fields),
            Ok(60),
            "{request} | {fields}"
        );
    }
    let strip = Policy {
        set_cookie: policy::SetCookie::Strip,
        ..Policy::site()
    };
    let fields = "cache-control: max-age=60\nset-cookie: a=b";
    let stored = may_store(&strip, &get(""), &answer(200, fields), Times::at(now())).unwrap();
    assert!(!stored.headers().contains_key("set-cookie"));
}

#[test]
fn heuristics_need_status_and_policy() {
    let modified = format!("last-modified: {}", date(-86_400));
    for status in [200, 203, 204, 404, 405, 410, 414, 501] {
        assert_eq!(
            stored_ttl_for(&Policy::site(), status, "", &modified),
            Ok(8640),
            "{status}"
        );
        assert_eq!(
            stored_ttl_for(&Policy::third_party(), status, "", &modified),
            Ok(0),
            "{status}"
        );
    }
    for status in [201, 202, 403, 502, 503, 504, 599] {
        let not_fresh = Err(Uncacheable::NoFreshness);
        assert_eq!(
            stored_ttl_for(&Policy::site(), status, "", &modified),
            not_fresh,
            "{status}"
        );
        let public = format!("{modified}\ncache-control: public");
        assert_eq!(
            stored_ttl_for(&Policy::site(), status, "", &public),
            Ok(8640),
            "{status}"
        );
    }
    let stored = may_store(
        &Policy::site(),
        &get(""),
        &answer(200, &modified),
        Times::at(now()),
    )
    .unwrap();
    assert_eq!(stored.lifetime().source, LifetimeSource::Heuristic);
}

#[test]
fn age_includes_delay_and_apparent_age() {
    let times = Times {
        requested: now() - Duration::from_secs(4),
        received: now(),
    };
    for (fields, expected) in [
        (String::from("age: 10"), 14),
        (format!("date: {}", date(-100)), 100),
        (format!("date: {}\nage: 200", date(-100)), 204),
        (format!("date: {}", date(100)), 4),
        (String::from("date: foo"), 4),
    ] {
        let head = answer(200, &format!("cache-control: max-age=1000\n{fields}"));
        let stored = may_store(&Policy::site(), &get(""), &head, times).unwrap();
        assert_eq!(stored.age(now()).as_secs(), expected, "{fields}");
        assert_eq!(
            stored.age(now() + Duration::from_secs(7)).as_secs(),
            expected + 7,
            "{fields}"
        );
        assert_eq!(
            stored.age(now() - Duration::from_secs(7)).as_secs(),
            expected,
            "{fields}"
        );
    }
}

#[test]
fn hop_by_hop_fields_are_not_stored() {
    let fields = "cache-control: max-age=60\nconnection: a, B\na: 1\nb: 2\nc: 3\nkeep-alive: 5\nproxy-authenticate: x\n\
                  proxy-authentication-info: x\nproxy-authorization: x\nproxy-connection: x\nte: x\ntrailer: x\n\
                  transfer-encoding: x\nupgrade: x";
    let stored = may_store(
        &Policy::site(),
        &get(""),
        &answer(200, fields),
        Times::at(now()),
    )
    .unwrap();
    let expected = format!("cache-control: max-age=60\nc: 3\ndate: {}", date(0));
    assert_eq!(*stored.headers(), answer(200, &expected).headers);
}

#[test]
fn private_fields_are_not_stored() {
    let fields =
        "cache-control: max-age=60, no-cache=\"a, b\", private=\"c\"\na: 1\nb: 2\nc: 3\nd: 4";
    let stored = may_store(
        &Policy::site(),
        &get(""),
        &answer(200, fields),
        Times::at(now()),
    )
    .unwrap();
    let names: Vec<&str> = stored
        .headers()
        .keys()
        .map(http::HeaderName::as_str)
        .collect();
    assert_eq!(names, ["cache-control", "d", "date"]);
    let client_stored = stored.with_client_headers(answer(200, fields).headers);
    let names: Vec<&str> = client_stored
        .served()
        .keys()
        .map(http::HeaderName::as_str)
        .collect();
    assert_eq!(names, ["cache-control", "d"]);
    for needed in ["private=\"vary\"", "no-cache=\"a, Content-Encoding\""] {
        let fields = format!("cache-control: max-age=60, {needed}\nvary: a");
        assert_eq!(stored_ttl(&fields), Err(Uncacheable::Private), "{needed}");
    }
    for directive in ["private=\"\"", "private=\" , (\"", "private=\"a\", private"] {
        let fields = format!("cache-control: max-age=60, {directive}");
        assert_eq!(
            stored_ttl(&fields),
            Err(Uncacheable::Private),
            "{directive}"
        );
    }
}

#[test]
fn must_understand_overrides_no_store_if_understood() {
    for (status, fields, expected) in [
        (
            200,
            "cache-control: max-age=60, must-understand, no-store",
            Ok(60),
        ),
        (451, "cache-control: max-age=60, must-understand", Ok(60)),
        (
            599,
            "cache-control: max-age=60, must-understand",
            Err(Uncacheable::NotUnderstood),
        ),
        (599, "cache-control: max-age=60", Ok(60)),
        (206, "cache-control: max-age=60", Err(Uncacheable::Status)),
        (304, "cache-control: max-age=60", Err(Uncacheable::Status)),
        (103, "cache-control: max-age=60", Err(Uncacheable::Status)),
    ] {
        assert_eq!(
            stored_ttl_for(&Policy::site(), status, "", fields),
            expected,
            "{status} {fields}"
        );
    }
}

#[test]
fn valid_targeted_field_replaces_cache_control() {
    for (fields, expected) in [
        (
            "cdn-cache-control: max-age=9\ncache-control: max-age=60",
            Ok(9),
        ),
        (
            "cdn-cache-control: max-age=9\ncdn-cache-control: foo\ncache-control: max-age=60",
            Ok(9),
        ),
        ("cdn-cache-control: foo, max-age=9", Ok(9)),
        ("cdn-cache-control: max-age=99999999999", Ok(1 << 31)),
        ("cdn-cache-control: max-age=9, s-maxage=5", Ok(5)),
        ("cdn-cache-control: max-age=9;x=1", Ok(9)),
        // No dictionary: it is as if it were not there.
        (
            "cdn-cache-control: max-age=9, &&&&\ncache-control: max-age=60",
            Ok(60),
        ),
        (
            "cdn-cache-control: MaX-aGe=9\ncache-control: max-age=60",
            Ok(60),
        ),
        (
            "cdn-cache-control: max-age= 9\ncache-control: max-age=60",
            Ok(60),
        ),
        ("cdn-cache-control:\ncache-control: max-age=60", Ok(60)),
        // Another type: that directive is as if it were not there, and the field still speaks.
        (
            "cdn-cache-control: max-age=\"9\"\ncache-control: max-age=60",
            Err(Uncacheable::NeverReusable),
        ),
        (
            "cdn-cache-control: max-age=-9\ncache-control: max-age=60",
            Err(Uncacheable::NeverReusable),
        ),
        ("cdn-cache-control: max-age=9, no-store=?0", Ok(9)),
        (
            "cdn-cache-control: max-age=9, no-store",
            Err(Uncacheable::NoStore),
        ),
    ] {
        assert_eq!(stored_ttl(fields), expected, "{fields}");
    }
    let two = Policy {
        targets: vec![
            "spdy-cache-control".parse().unwrap(),
            "cdn-cache-control".parse().unwrap(),
        ],
        ..Policy::site()
    };
    let both = "cdn-cache-control: max-age=9\nspdy-cache-control: max-age=8";
    assert_eq!(stored_ttl_for(&two, 200, "", both), Ok(8));
    assert_eq!(
        stored_ttl_for(&two, 200, "", "cdn-cache-control: max-age=9"),
        Ok(9)
    );
    assert_eq!(stored_ttl(both), Ok(9));
}

#[test]
fn limits_plus_one_are_not_stored() {
    let policy = Policy {
        max_vary_names: 3,
        max_head_bytes: 200,
        max_tags: 3,
        ..Policy::site()
    };
    let fresh = "cache-control: max-age=60";
    // A field counts its name, its value and 32 bytes: 13 + 10 + 32, then 1 + n + 32.
    let long = |bytes: usize| format!("{fresh}\nx: {}", "y".repeat(bytes));
    for (within, past, reason) in [
        (
            format!("{fresh}\nvary: a, b, c, A"),
            format!("{fresh}\nvary: a, b, c, d"),
            Uncacheable::VaryNames,
        ),
        (
            long(200 - 55 - 33),
            long(200 - 55 - 33 + 1),
            Uncacheable::HeadTooLarge,
        ),
        (
            format!("{fresh}\ncache-tag: a,b\ncache-groups: \"c\""),
            format!("{fresh}\ncache-tag: a,b\ncache-groups: \"c\", \"d\""),
            Uncacheable::Tags,
        ),
        (
            format!("{fresh}\nsurrogate-key: a b c"),
            format!("{fresh}\nsurrogate-key: a b c d"),
            Uncacheable::Tags,
        ),
    ] {
        assert_eq!(
            stored_ttl_for(&policy, 200, "", &within),
            Ok(60),
            "{within}"
        );
        assert_eq!(
            stored_ttl_for(&policy, 200, "", &past),
            Err(reason),
            "{past}"
        );
    }
}

#[test]
fn heuristic_lifetime_is_capped() {
    let modified = format!("last-modified: {}", date(-10 * 86_400));
    let bounded = Policy {
        heuristic: Some(policy::Heuristic {
            percent: 50,
            at_most: Duration::from_secs(1000),
        }),
        ..Policy::site()
    };
    assert_eq!(stored_ttl_for(&bounded, 200, "", &modified), Ok(1000));
    assert_eq!(
        stored_ttl_for(&bounded, 200, "", &format!("last-modified: {}", date(-100))),
        Ok(50)
    );
    assert_eq!(
        stored_ttl_for(&bounded, 200, "", &format!("last-modified: {}", date(100))),
        Ok(0)
    );
}
