//! What is kept and for how long: a head of an answer, and the verdict.

mod support;

use std::time::Duration;

use spdy_cache::freshness::{Source, Times};
use spdy_cache::policy::{self, Policy};
use spdy_cache::storable::{Uncacheable, may_store};
use support::{answer, date, get, now};

/// How long the answer with `fields` to a plain GET is fresh when it comes, or why it is not kept.
fn kept(fields: &str) -> Result<u64, Uncacheable> {
    kept_as(&Policy::site(), 200, "", fields)
}

fn kept_as(policy: &Policy, status: u16, request: &str, fields: &str) -> Result<u64, Uncacheable> {
    let stored = may_store(
        policy,
        &get(request),
        &answer(status, fields),
        Times::at(now()),
    )?;
    Ok(stored.ttl(now()).max(0).cast_unsigned())
}

#[test]
fn the_first_that_is_there_says_how_long() {
    let long = date(3600);
    for (fields, want) in [
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
        assert_eq!(kept(fields), want, "{fields}");
    }
}

#[test]
fn what_cannot_be_read_is_stale_at_once() {
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
        assert_eq!(kept(&format!("etag: \"a\"\n{fields}")), Ok(0), "{fields}");
        assert_eq!(kept(fields), Err(Uncacheable::NoUse), "{fields}");
    }
}

#[test]
fn dates_are_read_in_every_form_that_ever_was() {
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
            kept(&format!("expires: {expires}")) > Ok(300_000_000),
            "{expires}"
        );
    }
}

#[test]
fn what_is_not_for_all_is_not_kept() {
    use Uncacheable::{Authorization, Cookie, NoStore, Private, RequestNoStore, SetCookie, Vary};
    for (request, fields, why) in [
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
            kept_as(&Policy::site(), 200, request, fields),
            Err(why),
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
            kept_as(&Policy::site(), 200, request, fields),
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
fn guesses_are_for_statuses_that_allow_them_and_policies_that_make_them() {
    let modified = format!("last-modified: {}", date(-86_400));
    for status in [200, 203, 204, 404, 405, 410, 414, 501] {
        assert_eq!(
            kept_as(&Policy::site(), status, "", &modified),
            Ok(8640),
            "{status}"
        );
        assert_eq!(
            kept_as(&Policy::third_party(), status, "", &modified),
            Ok(0),
            "{status}"
        );
    }
    for status in [201, 202, 403, 502, 503, 504, 599] {
        let refused = Err(Uncacheable::NoFreshness);
        assert_eq!(
            kept_as(&Policy::site(), status, "", &modified),
            refused,
            "{status}"
        );
        let public = format!("{modified}\ncache-control: public");
        assert_eq!(
            kept_as(&Policy::site(), status, "", &public),
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
    assert_eq!(stored.lifetime().source, Source::Heuristic);
}

#[test]
fn age_counts_the_way_here_and_a_date_that_lies_back() {
    let times = Times {
        requested: now() - Duration::from_secs(4),
        received: now(),
    };
    for (fields, want) in [
        (String::from("age: 10"), 14),
        (format!("date: {}", date(-100)), 100),
        (format!("date: {}\nage: 200", date(-100)), 204),
        (format!("date: {}", date(100)), 4),
        (String::from("date: foo"), 4),
    ] {
        let head = answer(200, &format!("cache-control: max-age=1000\n{fields}"));
        let stored = may_store(&Policy::site(), &get(""), &head, times).unwrap();
        assert_eq!(stored.age(now()).as_secs(), want, "{fields}");
        assert_eq!(
            stored.age(now() + Duration::from_secs(7)).as_secs(),
            want + 7,
            "{fields}"
        );
        assert_eq!(
            stored.age(now() - Duration::from_secs(7)).as_secs(),
            want,
            "{fields}"
        );
    }
}
