//! The decision for a request, given the stored answers.

use std::time::Duration;

use http::StatusCode;
use spdy_cache::freshness::Times;
use spdy_cache::lookup::{
    BypassReason, Failure, Lookup, MissReason, StaleReason, lookup, may_join_fetch,
    may_serve_on_error, may_share_with,
};
use spdy_cache::policy::Policy;
use spdy_cache::storable::{Uncacheable, may_share, may_store};
use spdy_cache::stored::Stored;

use crate::support::{answer, at, date, get, now, request};

/// Stored at [`now`], of a 200 to a GET with the fields of `request`.
fn store_for(request: &str, fields: &str) -> Stored {
    let stored = may_store(
        &Policy::site(),
        &get(request),
        &answer(200, fields),
        Times::at(now()),
    );
    stored.unwrap_or_else(|error| panic!("{fields}: {error}"))
}

fn store(fields: &str) -> Stored {
    store_for("", fields)
}

fn obedient() -> Policy {
    Policy {
        clients_may_revalidate: true,
        ..Policy::site()
    }
}

/// What is done, in a word.
fn done(policy: &Policy, request: &str, stored: &[Stored], seconds: i64) -> &'static str {
    match lookup(policy, &get(request), stored, at(seconds)) {
        Lookup::Fresh { stale: false, .. } => "fresh",
        Lookup::Fresh { stale: true, .. } => "stale, as asked",
        Lookup::Stale { .. } => "stale",
        Lookup::Revalidate {
            reason: StaleReason::Stale,
            ..
        } => "validate: stale",
        Lookup::Revalidate {
            reason: StaleReason::NoCache,
            ..
        } => "validate: no-cache",
        Lookup::Revalidate {
            reason: StaleReason::Request,
            ..
        } => "validate: request",
        Lookup::Miss(MissReason::Uri) => "miss",
        Lookup::Miss(MissReason::Vary) => "vary miss",
        Lookup::Bypass(BypassReason::Method) => "bypass: method",
        Lookup::Bypass(BypassReason::Precondition) => "bypass: precondition",
        Lookup::Bypass(BypassReason::Authorization) => "bypass: authorization",
        Lookup::Bypass(BypassReason::NoStore) => "bypass: no-store",
        Lookup::OnlyIfCached => "504",
    }
}

#[test]
fn response_is_fresh_until_lifetime_ends() {
    let stored = [store("cache-control: max-age=60\netag: \"a\"")];
    for (seconds, expected) in [
        (0, "fresh"),
        (59, "fresh"),
        (60, "validate: stale"),
        (-9, "fresh"),
    ] {
        assert_eq!(
            done(&Policy::site(), "", &stored, seconds),
            expected,
            "{seconds}"
        );
    }
}

#[test]
fn stale_response_is_served_only_if_allowed() {
    for (fields, seconds, expected) in [
        ("max-age=60, stale-while-revalidate=30", 90, "stale"),
        (
            "max-age=60, stale-while-revalidate=30",
            91,
            "validate: stale",
        ),
        ("s-maxage=60, stale-while-revalidate=30", 90, "stale"),
        (
            "max-age=60, stale-while-revalidate=30, must-revalidate",
            61,
            "validate: stale",
        ),
        (
            "max-age=60, stale-while-revalidate=30, proxy-revalidate",
            61,
            "validate: stale",
        ),
        (
            "max-age=60, stale-while-revalidate=30, no-cache",
            61,
            "validate: no-cache",
        ),
        (
            "max-age=60, stale-while-revalidate=x",
            61,
            "validate: stale",
        ),
        ("max-age=60, no-cache", 1, "validate: no-cache"),
        ("max-age=60, No-Cache", 1, "validate: no-cache"),
        ("max-age=60, no-cache=\"x\"", 1, "fresh"),
    ] {
        let stored = [store(&format!("etag: \"a\"\ncache-control: {fields}"))];
        assert_eq!(
            done(&Policy::site(), "", &stored, seconds),
            expected,
            "{fields} after {seconds} s"
        );
    }
    let generous = Policy {
        stale_while_revalidate: Duration::from_secs(30),
        ..Policy::site()
    };
    for (fields, expected) in [
        ("max-age=60", "stale"),
        ("max-age=60, stale-while-revalidate=0", "validate: stale"),
        ("s-maxage=60", "validate: stale"),
        ("max-age=60, must-revalidate", "validate: stale"),
    ] {
        let stored = [store(&format!("etag: \"a\"\ncache-control: {fields}"))];
        assert_eq!(done(&generous, "", &stored, 70), expected, "{fields}");
    }
}

#[test]
fn request_directives_apply_only_if_policy_allows() {
    for (request, fields, seconds, expected) in [
        (
            "cache-control: no-cache",
            "max-age=60",
            1,
            "validate: request",
        ),
        (
            "cache-control: No-Cache",
            "max-age=60",
            1,
            "validate: request",
        ),
        ("pragma: no-cache", "max-age=60", 1, "validate: request"),
        (
            "pragma: no-cache\ncache-control: foo",
            "max-age=60",
            1,
            "fresh",
        ),
        (
            "cache-control: max-age=0",
            "max-age=60",
            1,
            "validate: request",
        ),
        ("cache-control: max-age=10", "max-age=60", 10, "fresh"),
        (
            "cache-control: max-age=10",
            "max-age=60",
            11,
            "validate: request",
        ),
        (
            "cache-control: max-age=0",
            "max-age=60, immutable",
            1,
            "fresh",
        ),
        (
            "cache-control: no-cache",
            "max-age=60, immutable",
            1,
            "validate: request",
        ),
        (
            "cache-control: max-age=0",
            "max-age=60, immutable",
            61,
            "validate: request",
        ),
        ("cache-control: min-fresh=50", "max-age=60", 10, "fresh"),
        (
            "cache-control: min-fresh=50",
            "max-age=60",
            11,
            "validate: request",
        ),
        (
            "cache-control: max-stale",
            "max-age=60",
            9999,
            "stale, as asked",
        ),
        (
            "cache-control: max-stale=5",
            "max-age=60",
            65,
            "stale, as asked",
        ),
        (
            "cache-control: max-stale=5",
            "max-age=60",
            66,
            "validate: stale",
        ),
        (
            "cache-control: max-stale",
            "max-age=60, must-revalidate",
            61,
            "validate: stale",
        ),
        (
            "cache-control: max-stale",
            "s-maxage=60",
            61,
            "validate: stale",
        ),
        (
            "cache-control: no-store",
            "max-age=60",
            1,
            "bypass: no-store",
        ),
    ] {
        let stored = [store(&format!("etag: \"a\"\ncache-control: {fields}"))];
        let case = format!("{request} | {fields} after {seconds} s");
        assert_eq!(
            done(&obedient(), request, &stored, seconds),
            expected,
            "{case}"
        );
        let without_directives = if seconds < 60 {
            "fresh"
        } else {
            "validate: stale"
        };
        assert_eq!(
            done(&Policy::site(), request, &stored, seconds),
            without_directives,
            "{case}"
        );
    }
}

#[test]
fn only_if_cached_never_contacts_origin() {
    let stored = [store("cache-control: max-age=60\netag: \"a\"")];
    let only = "cache-control: only-if-cached";
    assert_eq!(done(&Policy::site(), only, &stored, 1), "fresh");
    assert_eq!(done(&Policy::site(), only, &stored, 61), "504");
    assert_eq!(done(&Policy::site(), only, &[], 0), "504");
    let stored = [store("cache-control: max-age=60, stale-while-revalidate=9")];
    assert_eq!(
        done(&Policy::site(), only, &stored, 61),
        "stale",
        "the client does not wait"
    );
}

#[test]
fn origin_only_preconditions_bypass() {
    let stored = [store("cache-control: max-age=60\netag: \"a\"")];
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "M-SEARCH"] {
        let result = lookup(&Policy::site(), &request(method, ""), &stored, at(1));
        assert_eq!(result, Lookup::Bypass(BypassReason::Method), "{method}");
    }
    for (fields, expected) in [
        ("if-match: \"a\"", "bypass: precondition"),
        ("if-unmodified-since: x", "bypass: precondition"),
        ("authorization: x", "bypass: authorization"),
        ("cookie: a=b", "fresh"),
        ("range: bytes=0-1", "fresh"),
    ] {
        assert_eq!(
            done(&Policy::site(), fields, &stored, 1),
            expected,
            "{fields}"
        );
    }
    let shared = [store("cache-control: max-age=60, public")];
    assert_eq!(
        done(&Policy::site(), "authorization: x", &shared, 1),
        "fresh"
    );
    assert_eq!(
        done(&Policy::site(), "authorization: x", &[], 1),
        "bypass: authorization"
    );
    let head = lookup(&Policy::site(), &request("HEAD", ""), &stored, at(1));
    assert!(matches!(head, Lookup::Fresh { .. }), "{head:?}");
}

#[test]
fn variant_matches_equal_selecting_fields() {
    for (vary, first, second, same) in [
        ("foo", "foo: 1", "foo: 1", true),
        ("foo", "foo: 1", "foo: 2", false),
        ("foo", "foo: 1", "", false),
        ("foo", "", "foo: 1", false),
        ("foo", "foo:", "", false),
        ("Foo", "foo: 1\nx: 1", "foo: 1\nx: 2", true),
        ("foo, bar", "foo: 1", "foo: 1", true),
        ("foo, bar", "foo: 1\nbar: 2", "bar: 2\nfoo: 1", true),
        ("foo\nvary: bar", "foo: 1\nbar: 2", "foo: 1\nbar: 3", false),
        ("foo", "foo: 1, 2", "foo: 1\nfoo: 2", true),
        ("foo", "foo: 1,2", "foo: 1 , 2", true),
        ("foo", "foo: \"1,2\"", "foo: \"1, 2\"", false),
        ("foo", "foo: \"1, 2", "foo: \"1,2", false),
        ("foo", "foo: a", "foo: A", false),
        (
            "user-agent",
            "user-agent: x (a,b)",
            "user-agent: x (a, b)",
            false,
        ),
        (
            "accept-language",
            "accept-language: en, de",
            "accept-language: de, EN",
            true,
        ),
        (
            "accept-language",
            "accept-language: en, de;q=0.5",
            "accept-language: de;q=0.5,en;q=1.0",
            true,
        ),
        (
            "accept-language",
            "accept-language: en, de;q=0.5",
            "accept-language: en;q=0.5, de",
            false,
        ),
        (
            "accept-encoding",
            "accept-encoding: gzip, br",
            "accept-encoding: br,gzip",
            true,
        ),
    ] {
        let stored = [store_for(
            first,
            &format!("cache-control: max-age=60\nvary: {vary}"),
        )];
        let expected = if same { "fresh" } else { "vary miss" };
        assert_eq!(
            done(&Policy::site(), second, &stored, 1),
            expected,
            "{vary} | {first} | {second}"
        );
    }
}

#[test]
fn newest_matching_variant_wins() {
    let named = |name: &str, seconds| {
        store(&format!(
            "x: {name}\ncache-control: max-age=60\ndate: {}",
            date(seconds)
        ))
    };
    let stored = [named("old", -20), named("new", -5), named("older", -30)];
    let result = lookup(&Policy::site(), &get(""), &stored, at(1));
    assert!(
        matches!(result, Lookup::Fresh { index: 1, age, .. } if age.as_secs() == 6),
        "{result:?}"
    );
}

#[test]
fn stale_on_error_respects_its_window() {
    let broken = Failure::Status(StatusCode::SERVICE_UNAVAILABLE);
    for (request, fields, seconds, failure, expected) in [
        ("", "max-age=60, stale-if-error=30", 90, broken, true),
        (
            "",
            "max-age=60, stale-if-error=30",
            90,
            Failure::Unreachable,
            true,
        ),
        (
            "",
            "max-age=60, stale-if-error=30",
            91,
            Failure::Unreachable,
            false,
        ),
        (
            "",
            "max-age=60, stale-if-error=30",
            61,
            Failure::Status(StatusCode::NOT_FOUND),
            false,
        ),
        (
            "",
            "max-age=60, stale-if-error=30",
            61,
            Failure::Status(StatusCode::NOT_IMPLEMENTED),
            false,
        ),
        ("", "max-age=60", 61, Failure::Unreachable, false),
        (
            "",
            "max-age=60, stale-if-error=30, must-revalidate",
            61,
            broken,
            false,
        ),
        ("", "s-maxage=60, stale-if-error=30", 61, broken, true),
        (
            "cache-control: stale-if-error=30",
            "max-age=60",
            61,
            broken,
            true,
        ),
        (
            "cache-control: stale-if-error=30",
            "s-maxage=60",
            61,
            broken,
            false,
        ),
    ] {
        let stored = store(&format!("etag: \"a\"\ncache-control: {fields}"));
        let case = format!("{request} | {fields} after {seconds} s");
        assert_eq!(
            may_serve_on_error(&obedient(), &get(request), &stored, failure, at(seconds)),
            expected,
            "{case}"
        );
        let Lookup::Revalidate { stale_if_error, .. } =
            lookup(&obedient(), &get(request), &[&stored], at(seconds))
        else {
            panic!("{case}");
        };
        let lasts = stale_if_error.is_some_and(|until| at(seconds) <= until);
        assert!(lasts || !expected, "{case}");
    }
    let generous = Policy {
        stale_if_error: Duration::from_secs(30),
        ..Policy::site()
    };
    for (fields, expected) in [
        ("max-age=60", true),
        ("s-maxage=60", false),
        ("max-age=60, stale-if-error=0", false),
    ] {
        let stored = store(&format!("etag: \"a\"\ncache-control: {fields}"));
        assert_eq!(
            may_serve_on_error(&generous, &get(""), &stored, broken, at(61)),
            expected,
            "{fields}"
        );
    }
}

#[test]
fn waiter_shares_only_a_matching_response() {
    let policy = obedient();
    for (leader, fields, waiter, expected) in [
        ("", "cache-control: max-age=60", "", true),
        ("", "cache-control: max-age=0\netag: \"a\"", "", false),
        ("", "cache-control: no-cache\netag: \"a\"", "", false),
        (
            "foo: 1",
            "cache-control: max-age=60\nvary: foo",
            "foo: 1",
            true,
        ),
        (
            "foo: 1",
            "cache-control: max-age=60\nvary: foo",
            "foo: 2",
            false,
        ),
        ("", "cache-control: max-age=60", "authorization: x", false),
        (
            "",
            "cache-control: max-age=60, public",
            "authorization: x",
            true,
        ),
        (
            "",
            "cache-control: max-age=60",
            "cache-control: no-cache",
            false,
        ),
        ("", "cache-control: max-age=60", "if-match: \"a\"", false),
    ] {
        let stored = store_for(leader, fields);
        assert_eq!(
            may_share_with(&policy, &stored, &get(waiter), now(), now()),
            expected,
            "{leader} | {fields} | {waiter}"
        );
    }
    for (fields, expected) in [
        ("", true),
        ("if-none-match: \"a\"", true),
        ("range: bytes=0-1", false),
        ("authorization: x", false),
        ("cache-control: no-cache", false),
        ("cache-control: only-if-cached", false),
    ] {
        assert_eq!(may_join_fetch(&policy, &get(fields)), expected, "{fields}");
    }
    assert!(
        !may_join_fetch(&policy, &request("HEAD", ""))
            && !may_join_fetch(&policy, &request("POST", ""))
    );
}

/// The answer took 3 s, and its lifetime is 2 s.
#[test]
fn response_stale_on_arrival_serves_earlier_requests() {
    let policy = Policy::site();
    let times = Times {
        requested: now(),
        received: at(3),
    };
    let shared = |fields: &str| may_share(&policy, &get(""), &answer(200, fields), times);
    for (fields, seconds, expected) in [
        ("cache-control: max-age=2", 0, true),
        ("cache-control: max-age=2", 1, true),
        ("cache-control: max-age=2", 2, false),
        // Requests made before the leader's, beside another leader.
        ("cache-control: max-age=2", -9, true),
        // Later requests contact the origin again.
        ("cache-control: max-age=2", 3, false),
        ("cache-control: s-maxage=2", 1, true),
        ("cache-control: max-age=2, must-revalidate", 1, true),
        ("cache-control: max-age=2\netag: \"a\"", 1, true),
        ("cache-control: max-age=2\nage: 1", 0, true),
        ("cache-control: max-age=2\nage: 1", 1, false),
        ("cache-control: max-age=2, no-cache\netag: \"a\"", 1, false),
        ("cache-control: max-age=0\netag: \"a\"", 0, false),
    ] {
        let stored = shared(fields).unwrap_or_else(|error| panic!("{fields}: {error}"));
        let actual = may_share_with(&policy, &stored, &get(""), at(seconds), at(3));
        assert_eq!(actual, expected, "{fields}, requested at {seconds} s");
        assert_eq!(
            stored.is_reusable(&policy),
            fields.contains("etag"),
            "{fields}"
        );
    }
    // These are not even shared with requests that wait.
    for (fields, reason) in [
        (
            "cache-control: max-age=2\nage: 2",
            Uncacheable::NeverReusable,
        ),
        ("cache-control: max-age=0", Uncacheable::NeverReusable),
        (
            "cache-control: no-cache, max-age=2",
            Uncacheable::NeverReusable,
        ),
        ("cache-control: private, max-age=2", Uncacheable::Private),
        ("cache-control: no-store, max-age=2", Uncacheable::NoStore),
    ] {
        assert_eq!(shared(fields).unwrap_err(), reason, "{fields}");
    }
    let stored = shared("cache-control: max-age=2").unwrap();
    stored.expire(at(3));
    assert!(
        !may_share_with(&policy, &stored, &get(""), at(1), at(3)),
        "purged"
    );
}
