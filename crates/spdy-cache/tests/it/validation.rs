//! Validation of stored answers, and its results.

use http::HeaderMap;
use spdy_cache::freshness::Times;
use spdy_cache::identity::IdentifiedUser;
use spdy_cache::lookup::{BypassReason, Lookup, lookup};
use spdy_cache::policy::Policy;
use spdy_cache::storable::{Uncacheable, may_store};
use spdy_cache::stored::Stored;
use spdy_cache::validate::{
    Conditional, HeadUpdate, MergeResult, head_update, merge, strip_conditions,
};

use crate::support::{answer, at, date, get, now, request};

const MODIFIED: &str = "Wed, 01 Jan 2020 00:00:00 GMT";

fn store(fields: &str) -> Stored {
    let fields = format!("cache-control: max-age=60\n{fields}");
    may_store(
        &Policy::site(),
        &get(""),
        &answer(200, &fields),
        Times::at(now()),
    )
    .unwrap()
}

fn merged(stored: &Stored, fields: &str) -> Option<MergeResult> {
    merge(
        &Policy::site(),
        stored,
        &get(""),
        &answer(304, fields),
        Times::at(at(100)),
    )
    .ok()
}

#[test]
fn revalidation_sends_all_origin_validators() {
    for (fields, expected) in [
        ("etag: \"a\"", "if-none-match: \"a\""),
        ("etag: W/\"a\"", "if-none-match: W/\"a\""),
        ("etag: bare", "if-none-match: bare"),
        (
            &format!("last-modified: {MODIFIED}"),
            &*format!("if-modified-since: {MODIFIED}"),
        ),
        (
            &format!("etag: \"a\"\nlast-modified: {MODIFIED}"),
            &format!("if-none-match: \"a\"\nif-modified-since: {MODIFIED}"),
        ),
        ("last-modified: yesterday", ""),
        ("etag: \"a\"\netag: \"b\"", ""),
    ] {
        let mut client_headers = HeaderMap::new();
        client_headers.insert("etag", "\"rewritten\"".parse().unwrap());
        for stored in [
            store(fields),
            store(fields).with_client_headers(client_headers),
        ] {
            let mut headers =
                get("x: 1\nrange: bytes=0-1\nif-none-match: \"mine\"\nif-range: \"mine\"").headers;
            Conditional::of(&stored).apply(&mut headers);
            assert_eq!(
                headers,
                get(&format!("x: 1\n{expected}")).headers,
                "{fields}"
            );
            assert_eq!(Conditional::of(&stored).is_empty(), expected.is_empty());
        }
    }
    let mut headers = get("x: 1\nrange: bytes=0-1\nif-modified-since: y").headers;
    strip_conditions(&mut headers);
    assert_eq!(headers, get("x: 1").headers);
}

#[test]
fn merge_304_refreshes_and_updates_fields() {
    let stored = store(&format!(
        "etag: \"a\"\nage: 50\ndate: {}\nx: 1\ny: 1\ny: 2\ncontent-type: text/a\ncontent-length: 7\ncontent-encoding: gzip",
        date(-50)
    ));
    let fields = format!(
        "etag: \"a\"\ndate: {}\ny: 3\nz: 4\ncontent-type: text/b\ncontent-length: 9\ncontent-encoding: br\n\
         content-md5: x\nconnection: q\nq: 1\nkeep-alive: 5\ncache-control: max-age=600",
        date(100)
    );
    let Some(MergeResult::Store(new)) = merged(&stored, &fields) else {
        panic!("not kept");
    };
    let expected = format!(
        "x: 1\ny: 3\nz: 4\netag: \"a\"\ndate: {}\ncontent-type: text/b\ncontent-length: 7\ncontent-encoding: gzip\n\
         cache-control: max-age=600",
        date(100)
    );
    assert_eq!(*new.headers(), answer(200, &expected).headers);
    assert_eq!((new.age(at(100)).as_secs(), new.ttl(at(100))), (0, 600));
    let result = lookup(&Policy::site(), &get(""), &[new], at(101));
    assert!(matches!(result, Lookup::Fresh { .. }), "{result:?}");
}

#[test]
fn mismatched_304_is_an_error() {
    let tagged = store(&format!("etag: \"a\"\nlast-modified: {MODIFIED}"));
    let weak = store("etag: W/\"a\"");
    let dated = store(&format!("last-modified: {MODIFIED}"));
    let last_modified = "last-modified: Thu, 02 Jan 2020 00:00:00 GMT";
    for (stored, fields, same) in [
        (&tagged, "etag: \"a\"", true),
        (&tagged, "etag: W/\"a\"", true),
        (&tagged, "etag: \"b\"", false),
        (&tagged, "etag: W/\"b\"", false),
        (&tagged, "", true),
        (&tagged, last_modified, false),
        (&tagged, &*format!("etag: \"a\"\n{last_modified}"), true),
        (&weak, "etag: W/\"a\"", true),
        (&weak, "etag: \"b\"", false),
        (&dated, &*format!("last-modified: {MODIFIED}"), true),
        (&dated, last_modified, false),
        (&dated, "etag: \"a\"", false),
        (&dated, "", true),
    ] {
        assert_eq!(
            merged(stored, fields).is_some(),
            same,
            "{:?} | {fields}",
            stored.headers()
        );
    }
}

#[test]
fn no_store_304_is_used_once() {
    let stored = store("etag: \"a\"");
    assert!(stored.memoized_check(|| true));
    for (fields, reason) in [
        ("cache-control: no-store", Uncacheable::NoStore),
        ("cache-control: private", Uncacheable::Private),
        ("set-cookie: a=b", Uncacheable::SetCookie),
        ("vary: *", Uncacheable::Vary),
    ] {
        let Some(MergeResult::UseOnce(response, actual_reason)) = merged(&stored, fields) else {
            panic!("{fields} is kept");
        };
        assert_eq!(actual_reason, reason, "{fields}");
        assert_eq!(response.headers()["etag"], "\"a\"");
        assert!(!response.memoized_check(|| false), "it was of other fields");
    }
    // A visitor's own fields do not affect what was stored before the request.
    let request = get("cookie: a=b\ncache-control: no-store");
    let merged = merge(
        &Policy::site(),
        &stored,
        &request,
        &answer(304, ""),
        Times::at(at(100)),
    );
    assert!(matches!(merged, Ok(MergeResult::Store(_))), "{merged:?}");
}

#[test]
fn merge_drops_client_headers() {
    let stored = store("etag: \"a\"").with_client_headers(HeaderMap::new());
    assert!(stored.served().is_empty());
    let Some(MergeResult::Store(new)) = merged(&stored, "etag: \"a\"") else {
        panic!("not kept");
    };
    assert_eq!(new.served()["etag"], "\"a\"");
}

#[test]
fn head_response_confirms_or_expires_stored_get() {
    let stored = store("etag: \"a\"\nx: 1");
    let case = |status, fields: &str| {
        let head = answer(status, fields);
        head_update(
            &Policy::site(),
            &stored,
            &request("HEAD", ""),
            &head,
            7,
            Times::at(at(100)),
        )
    };
    for (status, fields, expected) in [
        (200, "etag: \"a\"\ncache-control: max-age=9\nx: 2", "merged"),
        (200, "etag: \"a\"\ncontent-length: 7", "merged"),
        (200, "etag: \"a\"\ncontent-length: 8", "changed"),
        (200, "etag: \"b\"", "changed"),
        (
            200,
            "last-modified: Sun, 06 Nov 1994 08:49:37 GMT",
            "changed",
        ),
        (200, "cache-control: max-age=9", "nothing"),
        (410, "etag: \"a\"", "nothing"),
        (304, "etag: \"a\"", "nothing"),
    ] {
        let word = match case(status, fields) {
            HeadUpdate::Merged(merged) => {
                assert!(matches!(*merged, MergeResult::Store(_)), "{fields}");
                "merged"
            }
            HeadUpdate::Changed => "changed",
            HeadUpdate::Nothing => "nothing",
        };
        assert_eq!(word, expected, "{status} {fields}");
    }
    // The length of the rewritten body is unrelated to the origin's.
    let rewritten = store("etag: \"a\"").with_client_headers(HeaderMap::new());
    let head = answer(200, "etag: \"a\"\ncontent-length: 8");
    let case = head_update(
        &Policy::site(),
        &rewritten,
        &request("HEAD", ""),
        &head,
        7,
        Times::at(at(100)),
    );
    assert!(matches!(case, HeadUpdate::Merged(_)), "{case:?}");
}

/// Only `Authorization` counted, and a client with a certificate could put its fields into the response that all clients get.
#[test]
fn identified_user_is_treated_as_authorization() {
    let policy = Policy::site();
    let stored = store("etag: \"a\"");
    let by_connection = |mut head: http::request::Parts| {
        head.extensions.insert(IdentifiedUser);
        head
    };
    let times = Times::at(at(100));
    for (fields, is_shared) in [("", false), ("cache-control: public, max-age=60", true)] {
        for head in [by_connection(get("")), get("authorization: Basic YTph")] {
            let text = format!("etag: \"a\"\nx-user: a\n{fields}");
            let merged = merge(&policy, &stored, &head, &answer(304, &text), times);
            let is_merged = matches!(merged, Ok(MergeResult::Store(_)));
            assert_eq!(is_merged, is_shared, "304, {fields}");
            let updated = head_update(&policy, &stored, &head, &answer(200, &text), 100, times);
            let HeadUpdate::Merged(merged) = updated else {
                panic!("the validators are the same: {updated:?}");
            };
            let is_merged = matches!(*merged, MergeResult::Store(_));
            assert_eq!(is_merged, is_shared, "HEAD, {fields}");
            let text = format!("cache-control: max-age=60\n{fields}");
            let first = may_store(&policy, &head, &answer(200, &text), times);
            let expected = (!is_shared).then_some(Uncacheable::Authorization);
            assert_eq!(first.err(), expected, "200, {fields}");
        }
    }
    for stored in [&[][..], &[&stored]] {
        for head in [by_connection(get("")), get("authorization: Basic YTph")] {
            let result = lookup(&policy, &head, stored, now());
            assert_eq!(result, Lookup::Bypass(BypassReason::Authorization));
        }
    }
}

/// A 304 to a client with cookies could put that client's fields into the response that all clients get.
#[test]
fn validation_with_cookies_updates_the_lifetime_alone() {
    let policy = Policy::site();
    let stored = store("etag: \"a\"\nx-user: none");
    for (fields, user) in [("max-age=60", "none"), ("public, max-age=60", "a")] {
        let text = format!("etag: \"a\"\nx-user: a\ncache-control: {fields}");
        let merged = merge(
            &policy,
            &stored,
            &get("cookie: id=a"),
            &answer(304, &text),
            Times::at(at(100)),
        );
        let Ok(MergeResult::Store(merged)) = merged else {
            panic!("{merged:?}")
        };
        assert_eq!(merged.headers()["x-user"], user, "{fields}");
        assert_eq!(merged.headers()["cache-control"], fields);
    }
}
