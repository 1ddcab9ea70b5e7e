//! Properties that hold for any head: bounds of staleness, ages, variants, dates, ranges; and that nothing panics.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::prelude::*;
use spdy_cache::date;
use spdy_cache::freshness::Times;
use spdy_cache::invalidate::invalidated_by;
use spdy_cache::lookup::{
    Failure, Lookup, lookup, may_join_fetch, may_serve_on_error, may_share_with,
};
use spdy_cache::policy::Policy;
use spdy_cache::response::{Payload, answer};
use spdy_cache::storable::may_store;
use spdy_cache::stored::Stored;
use spdy_cache::validate::{Conditional, head_update, merge};

use crate::support::{self, at, get, now};

/// An answer of known meaning: what is meant, and what is written.
#[derive(Clone, Debug)]
struct ResponseDirectives {
    max_age: Option<u32>,
    s_maxage: Option<u32>,
    expires_in: Option<i32>,
    swr: Option<u32>,
    sie: Option<u32>,
    must_revalidate: bool,
    no_cache: bool,
    age: u32,
    date_ago: u32,
    targeted: bool,
}

impl ResponseDirectives {
    fn any() -> impl Strategy<Value = Self> {
        let seconds = || prop::option::of(0..100u32);
        let times = (
            seconds(),
            seconds(),
            prop::option::of(-50..100i32),
            seconds(),
            seconds(),
        );
        (
            times,
            prop::bool::weighted(0.2),
            prop::bool::weighted(0.1),
            0..60u32,
            0..60u32,
            any::<bool>(),
        )
            .prop_map(
                |(
                    (max_age, s_maxage, expires_in, swr, sie),
                    must_revalidate,
                    no_cache,
                    age,
                    date_ago,
                    targeted,
                )| Self {
                    max_age,
                    s_maxage,
                    expires_in,
                    swr,
                    sie,
                    must_revalidate,
                    no_cache,
                    age,
                    date_ago,
                    targeted,
                },
            )
    }

    fn header_text(&self) -> String {
        let mut directives = vec![String::from("x=1")];
        let mut seconds = |name: &str, value: Option<u32>| {
            directives.extend(value.map(|value| format!("{name}={value}")));
        };
        seconds("max-age", self.max_age);
        seconds("s-maxage", self.s_maxage);
        seconds("stale-while-revalidate", self.swr);
        seconds("stale-if-error", self.sie);
        directives.extend(
            self.must_revalidate
                .then(|| String::from("must-revalidate")),
        );
        directives.extend(self.no_cache.then(|| String::from("no-cache")));
        let text = directives.join(", ");
        let field = match self.targeted {
            true => format!("cache-control: max-age=9999\ncdn-cache-control: {text}"),
            false => format!("cache-control: {text}"),
        };
        let date = i64::from(self.date_ago);
        let mut head = format!(
            "{field}\netag: \"a\"\nage: {}\ndate: {}",
            self.age,
            support::date(-date)
        );
        if let Some(expires) = self.expires_in {
            head += &format!("\nexpires: {}", support::date(i64::from(expires) - date));
        }
        head
    }

    /// How long it is fresh, by what is meant.
    fn lifetime(&self) -> i64 {
        let expires = self
            .expires_in
            .filter(|_| !self.targeted)
            .map(|seconds| seconds.max(0).unsigned_abs());
        self.s_maxage
            .or(self.max_age)
            .or(expires)
            .unwrap_or(0)
            .into()
    }

    fn age_at(&self, seconds: i64) -> i64 {
        i64::from(self.age.max(self.date_ago)) + seconds
    }

    fn window(&self, seconds: Option<u32>) -> i64 {
        match self.must_revalidate || self.no_cache {
            true => 0,
            false => seconds.unwrap_or(0).into(),
        }
    }
}

/// Text that looks like a field, or does not.
fn any_value() -> impl Strategy<Value = HeaderValue> {
    let piece = prop::sample::select(vec![
        "max-age",
        "s-maxage",
        "no-cache",
        "private",
        "stale-while-revalidate",
        "must-revalidate",
        "public",
        "=",
        "=",
        ",",
        ", ",
        "\"",
        "\\",
        " ",
        "0",
        "60",
        "99999999999999999999",
        "-1",
        "*",
        "W/",
        "a",
        "bytes=",
        "-",
        ";q=",
        "gzip",
        "GMT",
        "Thu, 18 Aug 2050 02:01:18 GMT",
        "?1",
        "(",
        ")",
        ";",
        ":",
        "accept",
        "cookie",
    ]);
    let text = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat().into_bytes());
    let raw = prop::collection::vec(0x20..=0xffu8, 0..40);
    prop_oneof![4 => text, 1 => raw]
        .prop_filter_map("no value", |bytes| HeaderValue::from_bytes(&bytes).ok())
}

fn any_fields() -> impl Strategy<Value = HeaderMap> {
    let name = prop::sample::select(vec![
        "cache-control",
        "cache-control",
        "cdn-cache-control",
        "expires",
        "age",
        "date",
        "etag",
        "last-modified",
        "vary",
        "connection",
        "pragma",
        "if-none-match",
        "if-modified-since",
        "range",
        "if-range",
        "accept-language",
        "cookie",
        "authorization",
        "set-cookie",
        "cache-tag",
        "surrogate-key",
        "cache-groups",
        "location",
        "content-location",
        "content-length",
        "content-type",
        "accept",
        "if-match",
    ]);
    prop::collection::vec((name, any_value()), 0..8).prop_map(|fields| {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            headers.append(HeaderName::from_static(name), value);
        }
        headers
    })
}

/// A policy that stores all that may be stored and obeys the directives of clients.
fn open() -> Policy {
    Policy {
        store_after_cookie: true,
        clients_may_revalidate: true,
        ..Policy::site()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// What is done at any moment is what the answer's own words come to, to the second.
    #[test]
    fn nothing_is_served_past_its_limits(directives in ResponseDirectives::any(), seconds in 0..250i64) {
        let policy = Policy { heuristic: None, ..Policy::site() };
        let stored = may_store(&policy, &get(""), &support::answer(200, &directives.header_text()), Times::at(now())).unwrap();
        let stale = directives.age_at(seconds) - directives.lifetime();
        let result = lookup(&policy, &get(""), &[&stored], at(seconds));
        let actual = match &result {
            Lookup::Fresh { .. } => "fresh",
            Lookup::Stale { .. } => "stale",
            Lookup::Revalidate { .. } => "validate",
            other => panic!("{other:?}"),
        };
        let expected = if directives.no_cache {
            "validate"
        } else if stale < 0 {
            "fresh"
        } else if directives.window(directives.swr) > 0 && stale <= directives.window(directives.swr) {
            "stale"
        } else {
            "validate"
        };
        prop_assert_eq!(actual, expected, "{} s: {:?}", seconds, stored);
        let serves = may_serve_on_error(&policy, &get(""), &stored, Failure::Unreachable, at(seconds));
        let allowed = directives.window(directives.sie) > 0 && stale <= directives.window(directives.sie);
        prop_assert_eq!(serves, allowed, "{} s: {:?}", seconds, stored);
        // A waiting request gets nothing that it would not get from a lookup now.
        let shares = may_share_with(&policy, &stored, &get(""), at(seconds), at(seconds));
        prop_assert_eq!(shares, expected == "fresh");
    }

    /// Time makes nothing younger, and the reported age is the age in calculations.
    #[test]
    fn ages_are_monotonic(directives in ResponseDirectives::any(), first in -100..500i64, more in 0..500i64) {
        let policy = open();
        let head = support::answer(200, &format!("{}\nlast-modified: {}", directives.header_text(), support::date(-9999)));
        let stored = may_store(&policy, &get(""), &head, Times::at(now())).unwrap();
        let (early, later) = (at(first), at(first + more));
        prop_assert!(stored.age(early) <= stored.age(later));
        prop_assert!(stored.ttl(early) >= stored.ttl(later));
        prop_assert!(stored.staleness(early) <= stored.staleness(later));
        let age = answer(&policy, &stored, &get(""), 7, later).head.headers["age"].to_str().unwrap().parse::<u64>();
        prop_assert_eq!(age, Ok(stored.age(later).as_secs()));
    }

    /// A stored answer is for the same request only. In an unknown field, only spaces around commas and lines
    /// make no difference.
    #[test]
    fn variants_are_distinguished(
        first in prop::collection::vec("[ab, \"]{0,6}", 0..3),
        second in prop::collection::vec("[ab, \"]{0,6}", 0..3),
    ) {
        let request = |lines: &[String]| {
            let mut request = get("");
            for line in lines {
                request.headers.append("foo", HeaderValue::from_str(line.trim()).unwrap());
            }
            request
        };
        let (first, second) = (request(&first), request(&second));
        let head = support::answer(200, "cache-control: max-age=60\nvary: foo");
        let stored = may_store(&open(), &first, &head, Times::at(now())).unwrap();
        prop_assert!(stored.matches(&first.headers));
        // Without its spaces and cuts, what is the same to us is the same text.
        let bare = |request: &http::request::Parts| {
            let lines = request.headers.get_all("foo").iter().map(|line| line.to_str().unwrap());
            lines.collect::<Vec<_>>().join(",").replace(' ', "")
        };
        if stored.matches(&second.headers) {
            prop_assert_eq!(bare(&first), bare(&second));
            prop_assert_eq!(first.headers.contains_key("foo"), second.headers.contains_key("foo"));
        }
        let second_stored = may_store(&open(), &second, &head, Times::at(now())).unwrap();
        prop_assert_eq!(stored.matches(&second.headers), second_stored.matches(&first.headers));
    }

    /// A date is read as it was written, in all three forms, and any other text is none or is one.
    #[test]
    fn dates_round_trip(seconds in 0..4_102_444_800u64, text in "[A-Za-z0-9,: -]{0,40}") {
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let http_date = httpdate::fmt_http_date(time);
        prop_assert_eq!(date::parse(http_date.as_bytes(), now()), Some(time));
        prop_assert_eq!(date::to_value(time), &*http_date);
        let (day, month, year, hour) = (&http_date[5..7], &http_date[8..11], &http_date[12..16], &http_date[17..25]);
        let asctime = format!("{} {month} {} {hour} {year}", &http_date[..3], day.replacen('0', " ", usize::from(day.starts_with('0'))));
        prop_assert_eq!(date::parse(asctime.as_bytes(), now()), Some(time), "{}", asctime);
        let near = time <= now() + Duration::from_secs(49 * 31_556_952) && time >= now() - Duration::from_secs(48 * 31_556_952);
        if near {
            let rfc850 = format!("Monday, {day}-{month}-{} {hour} GMT", &year[2..]);
            prop_assert_eq!(date::parse(rfc850.as_bytes(), now()), Some(time), "{}", rfc850);
        }
        if let (Some(parsed), Ok(reference)) = (date::parse(text.as_bytes(), now()), httpdate::parse_http_date(&text)) {
            prop_assert_eq!(parsed, reference);
        }
    }

    /// Ranges lie within the body, are not empty, and are no more bytes than there are.
    #[test]
    fn ranges_stay_within_body(
        value in any_value(),
        specs in prop::collection::vec("[0-9]{0,2}-[0-9]{0,3}", 0..5),
        len in 0..200u64,
    ) {
        let stored = may_store(&open(), &get(""), &support::answer(200, "cache-control: max-age=60"), Times::at(now())).unwrap();
        let mut request = get("");
        request.headers.insert("range", value);
        let typed = get(&format!("range: bytes={}", specs.join(",")));
        for request in [request, typed] {
            let response = answer(&open(), &stored, &request, len, now());
            let ranges = match response.body {
                Payload::None | Payload::Whole => Vec::new(),
                Payload::Range(range) => vec![range],
                Payload::Multipart { parts, .. } => parts.into_iter().map(|(_, range)| range).collect(),
            };
            prop_assert!(ranges.iter().all(|range| range.start < range.end && range.end <= len));
            prop_assert!(ranges.len() < 2 || ranges.iter().map(|range| range.end - range.start).sum::<u64>() <= len);
            prop_assert_eq!(response.head.status == 206, !ranges.is_empty());
        }
    }

    /// Any fields at all: every door takes them, and what follows from them agrees with itself.
    #[test]
    fn any_headers_are_accepted(
        request_headers in any_fields(),
        answered in any_fields(),
        later in any_fields(),
        status in prop::sample::select(vec![200u16, 204, 206, 301, 304, 404, 500, 599]),
        seconds in -10..10_000i64,
    ) {
        let policy = open();
        let mut request = get("");
        request.headers = request_headers;
        let mut head = support::answer(status, "");
        head.headers = answered;
        let mut fresh = support::answer(304, "");
        fresh.headers = later;
        let _ = (may_join_fetch(&policy, &request), lookup(&policy, &request, &[] as &[Stored], now()));
        let _ = invalidated_by(&http::Method::POST, &request.uri, head.status, &head.headers);
        let Ok(stored) = may_store(&policy, &request, &head, Times::at(now())) else {
            return Ok(());
        };
        prop_assert!(stored.matches(&request.headers));
        for name in ["connection", "set-cookie"] {
            prop_assert!(!stored.headers().contains_key(name), "{}", name);
        }
        let mut conditional = request.headers.clone();
        Conditional::of(&stored).apply(&mut conditional);
        prop_assert_eq!(conditional.contains_key("if-none-match") || conditional.contains_key("if-modified-since"),
            stored.has_validator());
        let result = lookup(&policy, &request, &[&stored], at(seconds));
        if matches!(result, Lookup::Fresh { stale: false, .. }) {
            prop_assert!(stored.staleness(at(seconds)).is_none(), "{:?}", stored);
        }
        prop_assert_eq!(&result, &lookup(&policy, &request, &[&stored, &stored][..1], at(seconds)));
        let response = answer(&policy, &stored, &request, 100, at(seconds));
        prop_assert!(response.head.headers.contains_key("age"));
        let times = Times::at(at(seconds));
        if let Ok(merged) = merge(&policy, &stored, &request, &fresh, times) {
            prop_assert_eq!(merged.stored().headers().get("etag"), stored.headers().get("etag"));
            prop_assert_eq!(merged.stored().headers().get("content-length"), stored.headers().get("content-length"));
        }
        fresh.status = http::StatusCode::OK;
        let _ = head_update(&policy, &stored, &request, &fresh, 100, times);
    }
}
