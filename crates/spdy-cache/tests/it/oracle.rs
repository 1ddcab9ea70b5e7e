//! Comparison with another implementation, `http-cache-semantics` 3, on random heads: what is stored, and for how long it is fresh.
//!
//! They agree where neither follows a wish of its own. What is left out of the heads, and why it would differ:
//!
//! | left out | there | here |
//! | --- | --- | --- |
//! | capitals in directives | another directive | the same (RFC 9111 §5.2) |
//! | RFC 850 and asctime dates | unreadable | read (RFC 9110 §5.6.7) |
//! | `Age` and a `Date` that lies back | only `Age` counts | the larger (RFC 9111 §4.2.3) |
//! | `proxy-revalidate` | never fresh | fresh until it is stale (§5.2.2.8) |
//! | `immutable` without a lifetime | fresh for a day | states no lifetime (RFC 8246) |
//! | `private="x"`, `no-cache="x"` | as without the list | about those fields (§5.2.2.4, §5.2.2.7) |
//! | `Set-Cookie` | stored, never fresh without `public` | not stored |
//! | statuses not of RFC 7231 | not stored | stored, if they state a lifetime (§3) |
//! | `no-store` beside `must-understand` | not stored | stored, if understood (§5.2.2.3) |
//! | targeted fields, stale answers | unknown | RFC 9213, RFC 5861 |
//! | two different numbers for one directive | validated at once when stale | stale at once (§4.2.1) |
//!
//! It also calls storable what could never be used; we refuse that, so the comparison is of what it would *serve*.

use http_cache_semantics::{CacheOptions, CachePolicy};
use proptest::prelude::*;
use spdy_cache::freshness::Times;
use spdy_cache::lookup::{Lookup, lookup};
use spdy_cache::policy::{Heuristic, Policy};
use spdy_cache::storable::may_store;

use crate::support::{answer, at, date, get, now};

fn any_response() -> impl Strategy<Value = String> {
    let directive = prop_oneof![
        (0..200u32).prop_map(|seconds| format!("max-age={seconds}")),
        (0..200u32).prop_map(|seconds| format!("s-maxage={seconds}")),
        prop::sample::select(vec![
            "public",
            "private",
            "no-store",
            "no-cache",
            "must-revalidate",
            "foo",
            "bar=\"x\""
        ])
        .prop_map(String::from),
    ];
    let one_of_each = prop::collection::vec(directive, 0..4).prop_map(|mut directives| {
        directives.sort();
        directives.dedup_by_key(|directive| directive.split('=').next().unwrap().to_owned());
        directives
    });
    let expires = prop::option::of(-100..300i64);
    let modified = prop::option::of(0..5000i64);
    (one_of_each, expires, modified).prop_map(|(directives, expires, modified)| {
        let mut head = format!("date: {}\netag: \"a\"", date(0));
        if !directives.is_empty() {
            head += &format!("\ncache-control: {}", directives.join(", "));
        }
        if let Some(seconds) = expires {
            head += &format!("\nexpires: {}", date(seconds));
        }
        if let Some(seconds) = modified {
            head += &format!("\nlast-modified: {}", date(-seconds));
        }
        head
    })
}

fn any_request() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "",
        "",
        "cache-control: no-cache",
        "cache-control: max-age=50",
        "cache-control: min-fresh=50",
        "pragma: no-cache",
        "authorization: x",
    ])
    .prop_map(String::from)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn freshness_matches_the_reference_implementation(
        head in any_response(),
        first in prop::sample::select(vec!["", "", "authorization: x"]),
        request_text in any_request(),
        status in prop::sample::select(vec![200u16, 203, 204, 301, 302, 307, 404, 410, 501]),
        seconds in 0..400i64,
    ) {
        let policy = Policy {
            heuristic: Some(Heuristic { percent: 10, at_most: std::time::Duration::from_secs(1 << 30) }),
            clients_may_revalidate: true,
            ..Policy::site()
        };
        let (request, response) = (get(first), answer(status, &head));
        let options = CacheOptions { shared: true, ..CacheOptions::default() };
        let reference = CachePolicy::new_options(&request, &response, now(), options);
        let result = may_store(&policy, &request, &response, Times::at(now()));

        let second_request = get(&request_text);
        let they_serve = reference.is_storable() && reference.before_request(&second_request, at(seconds)).satisfies_without_revalidation();
        let stored = result.as_ref().ok();
        let we_serve = stored.is_some_and(|stored| {
            matches!(lookup(&policy, &second_request, &[stored], at(seconds)), Lookup::Fresh { .. })
        });
        // A request with credentials is answered by what is called shared; they do not look at it.
        let strict = request_text.starts_with("authorization") && they_serve && !we_serve;
        prop_assert!(strict || we_serve == they_serve, "{} at {} s, {:?}: {:?}", head, seconds, status, result);
        if let Some(stored) = stored.filter(|stored| !stored.control().no_cache.is_all()) {
            let ttl = u64::try_from(stored.ttl(at(seconds))).unwrap_or(0);
            prop_assert_eq!(ttl, reference.time_to_live(at(seconds)).as_secs(), "{} at {} s", head, seconds);
        }
    }
}
