//! A reference to a style sheet that the page pins by a hash, in an element or in a Link field.
//!
//! ```text
//!  another host's  rewritten, hash cached ──▶ moved, with the hash of the served bytes    no hash ──▶ stays
//!  the site's own  rewritten, hash cached ──▶ stays, with the hash of the served bytes    no hash ──▶ requested unrewritten
//! ```

use url::Url;

use crate::kind::Kind;
use crate::reference::integrity::{self, IntegrityState};
use crate::reference::{Reference, ReferenceContext};
use crate::referrer::ReferrerScope;
use crate::rules::verdict::{ReferenceSource, SkipReason, Verdict};

/// The decision about a pinned reference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum IntegrityRewrite {
    /// It is rewritten like any other reference; if present, this hash replaces the page's.
    Rewrite(Option<String>),
    /// It is on the page's own host, and the served bytes are unknown: it is requested with the mark that leaves its bytes
    /// unchanged.
    RequestUnrewritten {
        /// With the mark.
        text: String,
        /// Without the mark: the URL to fetch, so that the next page has the hash.
        plain: Url,
    },
    /// It stays unchanged.
    Skip,
}

/// Decides about `text`, a reference to a style sheet that is pinned by `metadata`.
pub(crate) fn plan_integrity(
    place: &ReferenceContext<'_>,
    text: &str,
    metadata: &str,
) -> IntegrityRewrite {
    let text = text.trim();
    let Ok(mut url) = place.base.join(text) else {
        return IntegrityRewrite::Skip;
    };
    // The page requests it over `https`, by the URL that will be written for it.
    let secure = place.site_url_over_https(&url, Kind::Style);
    let secure = secure.map(|target| place.site_path(&target));
    if let Some(secure) = secure.as_deref().and_then(|it| place.base.join(it).ok()) {
        url = secure;
    }
    let text = secure.as_deref().unwrap_or(text);
    let integrity_state = || {
        place.seen.map_or(IntegrityState::Unknown, |seen| {
            seen.stylesheet_integrity(&url, metadata)
        })
    };
    let is_pages_own = url.origin() == place.page.origin();
    if place.source == ReferenceSource::Site && is_site_url(place, &url) {
        if place.rules.is_empty() || text.is_empty() {
            return IntegrityRewrite::Rewrite(None);
        }
        return match integrity_state() {
            IntegrityState::Unchanged => IntegrityRewrite::Rewrite(None),
            IntegrityState::Rewritten(hash) => IntegrityRewrite::Rewrite(Some(hash)),
            IntegrityState::Unknown => IntegrityRewrite::RequestUnrewritten {
                text: integrity::mark_unrewritten(text),
                plain: url,
            },
        };
    }
    let verdict = place.rules.verdict(&url, Kind::Style, place.source);
    match (verdict, integrity_state()) {
        // It matches the page's hash on its host, but is not served under the site's name.
        (Verdict::Rewrite(_), _) if place.is_guarded(&url, Kind::Style) => IntegrityRewrite::Skip,
        (Verdict::Rewrite(_), IntegrityState::Unchanged) => IntegrityRewrite::Rewrite(None),
        (Verdict::Rewrite(_), IntegrityState::Rewritten(hash)) => {
            IntegrityRewrite::Rewrite(Some(hash))
        }
        // The page of a host with an alias loads its own style sheets from the alias.
        (Verdict::Rewrite(_), IntegrityState::Unknown) if is_pages_own && !text.is_empty() => {
            IntegrityRewrite::RequestUnrewritten {
                text: integrity::mark_unrewritten(text),
                plain: url,
            }
        }
        _ => IntegrityRewrite::Skip,
    }
}

/// True if the site itself serves `url`: under its URL, or under another of its names on the same port or on that of the page.
fn is_site_url(place: &ReferenceContext<'_>, url: &Url) -> bool {
    let door = |url: &Url| (url.scheme().to_owned(), url.port_or_known_default());
    let is_at = |home: &Url| {
        let is_name = url.host() == home.host() || place.rules.is_served_by_site(url);
        is_name && door(url) == door(home)
    };
    is_at(place.page) || is_at(place.rules.site())
}

/// Reports the style sheet at `plain` of the page's own host, so that the caller can fetch it and compute its hash.
pub(crate) fn unknown_stylesheet(plain: &Url) -> Reference {
    Reference {
        url: plain.to_string(),
        kind: Kind::Style,
        by_cors: false,
        cannot_preload: true,
        is_candidate: false,
        referrer_scope: ReferrerScope::All,
        outcome: Err(SkipReason::Integrity),
    }
}
