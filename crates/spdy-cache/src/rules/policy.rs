//! What this cache is allowed and wished to do: the choices that RFC 9111 leaves to a cache.

use std::time::Duration;

use http::HeaderName;

/// What to do with an answer that sets a cookie.
///
/// RFC 9111 §7.3 leaves it open; a cookie that one visitor was given and all others receive is a session shared.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum SetCookie {
    /// It is not stored.
    #[default]
    Refuse,
    /// It is stored without its `Set-Cookie` fields: only the first client gets them.
    Strip,
    /// It is stored as it came.
    Store,
}

/// Heuristic freshness, for an answer that states none (RFC 9111 §4.2.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Heuristic {
    /// Part of the time since `Last-Modified` for which an answer counts as fresh, in percent; 10 is the RFC's example.
    pub percent: u32,
    /// Never longer than this.
    pub at_most: Duration,
}

/// The choices of one shared cache, or of one kind of what it keeps.
///
/// [`site`](Self::site) is for answers of the site's own origin, [`third_party`](Self::third_party) for resources that were moved there
/// from elsewhere: of those, none is stored longer than its owner states.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Fields that speak to this cache in place of `Cache-Control`, the first that is there wins (RFC 9213 §2.2).
    pub targets: Vec<HeaderName>,
    /// Guesses about freshness; `None` makes none.
    pub heuristic: Option<Heuristic>,
    /// Answers that set cookies.
    pub set_cookie: SetCookie,
    /// Whether an answer to a request with `Cookie` may be stored without `public`, `s-maxage` or a targeted field that allows it. RFC
    /// 9111 allows it; origins that forget `Vary` or `private` make it a leak.
    pub store_after_cookie: bool,
    /// Whether `no-cache`, `no-store`, `max-age`, `min-fresh` and `max-stale` of a request are obeyed, so that any client can make
    /// the origin work. They are advisory (RFC 9111 §5.2.1). `only-if-cached` is always obeyed: it costs nothing.
    pub clients_may_revalidate: bool,
    /// How long past its freshness an answer may be served while it is fetched again, if the origin sends no `stale-while-revalidate`
    /// (RFC 5861 §3).
    pub stale_while_revalidate: Duration,
    /// How long past its freshness an answer may be served when the origin fails, if the origin sends no `stale-if-error` (RFC 5861 §4).
    pub stale_if_error: Duration,
    /// Names that the `Vary` of an answer may have; with more it is not stored.
    pub max_vary_names: usize,
    /// Bytes that the head of an answer may have to be stored: names, values, and 32 a field.
    pub max_head_bytes: usize,
    /// Tags that an answer may have; with more it is not stored, since a purge could then miss it.
    pub max_tags: usize,
    /// The most ranges in a request; with more, it gets the whole (RFC 9110 §14.2).
    pub max_ranges: usize,
}

impl Policy {
    /// For answers of the site's own origin.
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

    /// For answers of others, that are served under the site's name: no guesses.
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
