//! The caching policy: the choices that RFC 9111 leaves to a cache.

use std::time::Duration;

use http::HeaderName;

/// How to handle a response that sets a cookie.
///
/// RFC 9111 §7.3 leaves it open. If a cookie for one visitor is served to all others, they share its session.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SetCookie {
    /// Do not store it.
    #[default]
    Refuse,
    /// Store it without its `Set-Cookie` fields: only the first client gets them.
    Strip,
    /// Store it unchanged.
    Store,
}

/// Heuristic freshness, for a response without explicit freshness (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Heuristic {
    /// Fraction of the time since `Last-Modified` for which a response counts as fresh, in percent; 10 is the RFC's example.
    pub percent: u32,
    /// Upper limit.
    pub at_most: Duration,
}

/// The choices of a shared cache, or for one kind of stored responses.
///
/// [`site`](Self::site) is for responses of the site's own origin. [`third_party`](Self::third_party) is for resources of other
/// origins that are served under the site's name: these are never stored for longer than their origin states.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Fields that replace `Cache-Control` for this cache; the first that is present is used (RFC 9213 §2.2).
    pub targets: Vec<HeaderName>,
    /// Heuristic freshness; `None` disables it.
    pub heuristic: Option<Heuristic>,
    /// How to handle responses that set cookies.
    pub set_cookie: SetCookie,
    /// Whether a response to a request with `Cookie` may be stored without `public`, `s-maxage` or a targeted field that allows it.
    /// RFC 9111 allows that; it leaks private data if the origin forgets `Vary` or `private`.
    pub store_after_cookie: bool,
    /// Whether `no-cache`, `no-store`, `max-age`, `min-fresh` and `max-stale` of a request are obeyed, so that any client can cause
    /// requests to the origin. They are advisory (RFC 9111 §5.2.1). `only-if-cached` is always obeyed, because it costs nothing.
    pub clients_may_revalidate: bool,
    /// How long after it became stale a response may be served while it is fetched again, if the origin sends no
    /// `stale-while-revalidate` (RFC 5861 §3).
    pub stale_while_revalidate: Duration,
    /// How long after it became stale a response may be served when the origin fails, if the origin sends no `stale-if-error` (RFC
    /// 5861 §4).
    pub stale_if_error: Duration,
    /// Limit of names in the `Vary` of a stored response; a response with more is not stored.
    pub max_vary_names: usize,
    /// Limit of the head of a stored response, bytes: names, values, and 32 for each field.
    pub max_head_bytes: usize,
    /// Limit of tags of a stored response; a response with more is not stored, because a purge could miss it.
    pub max_tags: usize,
    /// Limit of ranges in a request; a request with more gets the whole response (RFC 9110 §14.2).
    pub max_ranges: usize,
}

impl Policy {
    /// The policy for responses of the site's own origin.
    #[must_use]
    pub fn site() -> Self {
        Self {
            targets: vec![HeaderName::from_static("cdn-cache-control")],
            heuristic: Some(Heuristic {
                percent: 10,
                at_most: Duration::from_secs(24 * 60 * 60),
            }),
            set_cookie: SetCookie::Refuse,
            store_after_cookie: false,
            clients_may_revalidate: false,
            stale_while_revalidate: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            max_vary_names: 16,
            max_head_bytes: 64 * 1024,
            max_tags: 256,
            max_ranges: 16,
        }
    }

    /// The policy for responses of other origins that are served under the site's name: no heuristics.
    #[must_use]
    pub fn third_party() -> Self {
        Self {
            heuristic: None,
            ..Self::site()
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::site()
    }
}
