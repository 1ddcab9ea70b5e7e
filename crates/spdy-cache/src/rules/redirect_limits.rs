//! Limits for a response that was reached by redirects and is stored under the first URL: it is fresh no longer than each redirect,
//! and only matches requests that all of them match.
//!
//! ```text
//!  /lib@latest.js   302  max-age=600                   ─┐
//!  /lib@1.2.3.js    200  max-age=31536000, immutable   ─┴▶  200  max-age=600, under /lib@latest.js
//! ```
//!
//! If each hop were stored separately, the rules for each would have this effect (RFC 9111 §3, §4.2). Here one object represents
//! all of them.

use std::time::SystemTime;

use http::header::{AGE, CACHE_CONTROL, DATE, EXPIRES, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, request, response};

use crate::rules::cache_control::{FieldScope, ResponseControl, Seconds};
use crate::rules::date;
use crate::rules::freshness;
use crate::rules::freshness::{Times, after, since};
use crate::rules::policy::Policy;
use crate::rules::storable::{Uncacheable, may_store};

/// The combined limits of the redirects so far.
#[derive(Clone, Debug, Default)]
pub struct RedirectLimits {
    /// When the first of them expires.
    until: Option<ExpiryTimes>,
    /// Why one of them may not be stored.
    refused: Option<Uncacheable>,
    restrictions: Restrictions,
    /// The `Vary` fields of all of them.
    vary: Vec<HeaderValue>,
}

/// When a response expires.
#[derive(Clone, Copy, Debug)]
struct ExpiryTimes {
    /// In this cache.
    shared: SystemTime,
    /// In a client's own cache.
    own: SystemTime,
}

/// Restrictions of any of the responses.
#[derive(Clone, Copy, Debug, Default)]
struct Restrictions {
    no_store: bool,
    no_cache: bool,
    private: bool,
    must_revalidate: bool,
    proxy_revalidate: bool,
}

impl Restrictions {
    fn add(&mut self, control: &ResponseControl) {
        self.no_store |= control.no_store;
        self.no_cache |= control.no_cache.is_all();
        self.private |= control.private.is_all();
        self.must_revalidate |= control.must_revalidate;
        self.proxy_revalidate |= control.proxy_revalidate;
    }
}

impl RedirectLimits {
    /// Adds one hop: `redirect` is the response to a request with the fields of `request`.
    pub fn add(
        &mut self,
        policy: &Policy,
        request: &request::Parts,
        redirect: &response::Parts,
        times: Times,
    ) {
        let (status, headers) = (redirect.status, &redirect.headers);
        self.restrictions.add(&ResponseControl::parse(headers, &[]));
        let until = ExpiryTimes::of(policy, status, headers, times);
        self.until = Some(self.until.map_or(until, |before| before.min(until)));
        self.vary.extend(headers.get_all(VARY).iter().cloned());
        if let Err(reason) = may_store(policy, request, redirect, times) {
            self.refused.get_or_insert(reason);
        } else if until.shared <= times.received {
            self.refused.get_or_insert(Uncacheable::NeverReusable);
        }
    }

    /// Why the final response may not be stored; `None` if it may.
    #[must_use]
    pub fn refused(&self) -> Option<Uncacheable> {
        self.refused
    }

    /// Merges the directives of all hops into the head of the final response: those for this cache, and those for
    /// caches of clients.
    ///
    /// A response without redirects is not changed.
    pub fn apply(
        &self,
        policy: &Policy,
        status: StatusCode,
        headers: &mut HeaderMap,
        times: Times,
    ) {
        let Some(before) = self.until else {
            return;
        };
        let control = ResponseControl::parse(headers, &[]);
        let mut combined = self.restrictions;
        combined.add(&control);
        let last = ExpiryTimes::of(policy, status, headers, times);
        let until = last.min(before);
        let remaining_secs = |until| since(until, times.received).as_secs();
        let mut directives = restrictions(combined, &control, headers);
        directives.push(format!("max-age={}", remaining_secs(until.own)));
        if remaining_secs(until.shared) != remaining_secs(until.own) {
            directives.push(format!("s-maxage={}", remaining_secs(until.shared)));
        }
        if control.immutable && until.own == last.own {
            directives.push("immutable".to_owned());
        }
        for name in policy.targets.iter().chain([&EXPIRES, &AGE]) {
            headers.remove(name);
        }
        let written = HeaderValue::try_from(directives.join(", "));
        headers.insert(CACHE_CONTROL, written.expect("directives are ASCII"));
        headers.insert(DATE, date::to_value(times.received));
        for value in &self.vary {
            headers.append(VARY, value.clone());
        }
    }
}

/// The directives of `control` and of all earlier hops, except lifetimes. Permission to serve stale is that of the
/// last hop only.
fn restrictions(
    combined: Restrictions,
    control: &ResponseControl,
    headers: &HeaderMap,
) -> Vec<String> {
    let scoped = |name: &str, is_set: bool, scope: &FieldScope| match scope.fields() {
        _ if is_set => Some(name.to_owned()),
        [] => None,
        fields => {
            let fields: Vec<_> = fields.iter().map(HeaderName::as_str).collect();
            Some(format!("{name}=\"{}\"", fields.join(", ")))
        }
    };
    let flag = |name: &str, is_set: bool| is_set.then(|| name.to_owned());
    let all = [
        flag("no-store", combined.no_store),
        scoped("no-cache", combined.no_cache, &control.no_cache),
        scoped("private", combined.private, &control.private),
        flag("must-revalidate", combined.must_revalidate),
        flag("proxy-revalidate", combined.proxy_revalidate),
        flag("no-transform", forbids_transform(headers)),
    ];
    all.into_iter().flatten().collect()
}

/// True if `no-transform` is set. A cache only passes it on (RFC 9111 §5.2.2.6).
fn forbids_transform(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(CACHE_CONTROL).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .any(|word| word.trim_ascii().eq_ignore_ascii_case(b"no-transform"))
}

impl ExpiryTimes {
    fn of(policy: &Policy, status: StatusCode, headers: &HeaderMap, times: Times) -> Self {
        let by = |control: &ResponseControl| {
            let lifetime = freshness::lifetime(policy, status, headers, control, times).duration;
            let age = freshness::initial_age(headers, times);
            let is_for_once =
                control.no_store || control.no_cache.is_all() || control.private.is_all();
            match is_for_once {
                true => times.received,
                false => after(times.received, lifetime.saturating_sub(age)),
            }
        };
        let own = ResponseControl {
            s_maxage: Seconds::Absent,
            private: FieldScope::None,
            ..ResponseControl::parse(headers, &[])
        };
        Self {
            shared: by(&ResponseControl::parse(headers, &policy.targets)),
            own: by(&own),
        }
    }

    fn min(self, other: Self) -> Self {
        Self {
            shared: self.shared.min(other.shared),
            own: self.own.min(other.own),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::{Request, Response};

    use super::*;

    type Fields<'f> = &'f [(&'f str, &'f str)];

    const NOW: Duration = Duration::from_secs(1_800_000_000);

    fn head(status: u16, lines: &[(&str, &str)]) -> response::Parts {
        let mut response = Response::builder().status(status);
        for (name, value) in lines {
            response = response.header(*name, *value);
        }
        response
            .body(())
            .expect("the response is valid")
            .into_parts()
            .0
    }

    /// The result for `last`, reached by `hops`: its Cache-Control and Vary, and why it is not stored.
    fn apply_redirects(
        hops: &[Fields<'_>],
        last: Fields<'_>,
    ) -> (String, String, Option<&'static str>) {
        let (policy, times) = (
            Policy::third_party(),
            Times::at(SystemTime::UNIX_EPOCH + NOW),
        );
        let request = Request::get("https://cdn.test/lib@latest.js");
        let request = request
            .body(())
            .expect("the request is valid")
            .into_parts()
            .0;
        let mut redirects = RedirectLimits::default();
        for hop in hops {
            redirects.add(&policy, &request, &head(302, hop), times);
        }
        let mut last = head(200, last);
        redirects.apply(&policy, last.status, &mut last.headers, times);
        let refused = redirects.refused();
        let stored = match refused {
            Some(reason) => Err(reason),
            None => may_store(&policy, &request, &last, times),
        };
        let text = |name: &HeaderName| {
            let lines = last.headers.get_all(name).iter();
            let lines: Vec<_> = lines.map(|line| line.to_str().unwrap()).collect();
            lines.join(", ")
        };
        let reason = stored.err().map(Uncacheable::token);
        (text(&CACHE_CONTROL), text(&VARY), reason)
    }

    #[test]
    fn redirected_response_is_fresh_no_longer_than_redirect() {
        const YEAR: (&str, &str) = ("cache-control", "max-age=31536000, immutable");
        let rows: [(&[Fields<'_>], Fields<'_>, &str, Option<&str>); 13] = [
            (&[], &[YEAR], "max-age=31536000, immutable", None),
            (&[&[]], &[YEAR], "max-age=0", Some("no-freshness")),
            (
                &[&[("cache-control", "no-store")]],
                &[YEAR],
                "no-store, max-age=0",
                Some("no-store"),
            ),
            (
                &[&[("cache-control", "private, max-age=60")]],
                &[YEAR],
                "private, max-age=60, s-maxage=0",
                Some("private"),
            ),
            (
                &[&[("cache-control", "no-cache, max-age=60"), ("etag", "\"a\"")]],
                &[YEAR],
                "no-cache, max-age=0",
                Some("never-reusable"),
            ),
            (
                &[&[("cache-control", "max-age=600")]],
                &[YEAR],
                "max-age=600",
                None,
            ),
            (
                &[&[("cache-control", "max-age=600"), ("age", "590")]],
                &[YEAR],
                "max-age=10",
                None,
            ),
            (
                &[
                    &[("cache-control", "max-age=600")],
                    &[("cache-control", "max-age=60, must-revalidate")],
                ],
                &[YEAR],
                "must-revalidate, max-age=60",
                None,
            ),
            (
                &[&[("cache-control", "max-age=600")]],
                &[
                    ("cache-control", "max-age=60, immutable, no-transform"),
                    ("age", "20"),
                ],
                "no-transform, max-age=40, immutable",
                None,
            ),
            (
                &[&[("cache-control", "max-age=0, s-maxage=600")]],
                &[YEAR],
                "max-age=0, s-maxage=600",
                None,
            ),
            (
                &[&[("cdn-cache-control", "max-age=600")]],
                &[("cache-control", "max-age=60")],
                "max-age=0, s-maxage=60",
                None,
            ),
            (
                &[&[("cache-control", "max-age=600")]],
                &[(
                    "cache-control",
                    "max-age=60, stale-while-revalidate=86400, private=\"x-user\"",
                )],
                "private=\"x-user\", max-age=60",
                None,
            ),
            (
                &[&[("expires", "Fri, 15 Jan 2027 08:10:00 GMT")]],
                &[YEAR],
                "max-age=600",
                None,
            ),
        ];
        for (hops, last, control, refused) in rows {
            let (cache_control, _, reason) = apply_redirects(hops, last);
            assert_eq!(
                (cache_control.as_str(), reason),
                (control, refused),
                "{hops:?}"
            );
        }
    }

    #[test]
    fn redirected_response_varies_on_all_hops() {
        let fresh = ("cache-control", "max-age=60");
        let (_, vary, reason) = apply_redirects(
            &[&[fresh, ("vary", "user-agent")]],
            &[fresh, ("vary", "accept")],
        );
        assert_eq!((vary.as_str(), reason), ("accept, user-agent", None));
        let (_, _, reason) = apply_redirects(&[&[fresh, ("vary", "*")]], &[fresh]);
        assert_eq!(reason, Some("vary"));
    }
}
