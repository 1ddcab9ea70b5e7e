//! A reference to a sheet that the page pins by a hash, which it may bear in an element or in a Link field.
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

/// What becomes of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum IntegrityRewrite {
    /// What becomes of any other; and it pins this from now on, if that is another hash.
    Rewrite(Option<String>),
    /// It is of the page's own host, and the served bytes are unknown: it is requested with the mark that leaves its bytes.
    RequestUnrewritten {
        /// With the mark.
        text: String,
        /// Without the mark: the URL to fetch, so that the next page has the hash.
        plain: Url,
    },
    /// It stays where it is.
    Skip,
}

/// Judges `text`, a reference to a sheet that is pinned by `metadata`.
pub(crate) fn plan_integrity(
    place: &ReferenceContext<'_>,
    text: &str,
    metadata: &str,
) -> IntegrityRewrite {
    let text = text.trim();
    let Ok(mut url) = place.base.join(text) else {
        return IntegrityRewrite::Skip;
    };
    // The page requests it over `https`, by the URL that is written for it.
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
        // It is what the page pins where it is, and nowhere else.
        (Verdict::Rewrite(_), _) if place.is_guarded(&url, Kind::Style) => IntegrityRewrite::Skip,
        (Verdict::Rewrite(_), IntegrityState::Unchanged) => IntegrityRewrite::Rewrite(None),
        (Verdict::Rewrite(_), IntegrityState::Rewritten(hash)) => {
            IntegrityRewrite::Rewrite(Some(hash))
        }
        // A named host's page reads its own sheets where it is itself.
        (Verdict::Rewrite(_), IntegrityState::Unknown) if is_pages_own && !text.is_empty() => {
            IntegrityRewrite::RequestUnrewritten {
                text: integrity::mark_unrewritten(text),
                plain: url,
            }
        }
        _ => IntegrityRewrite::Skip,
    }
}

/// Whether the site itself serves `url`: under its URL, or under another of its names at the same door or at the page's.
fn is_site_url(place: &ReferenceContext<'_>, url: &Url) -> bool {
    let door = |url: &Url| (url.scheme().to_owned(), url.port_or_known_default());
    let is_at = |home: &Url| {
        let is_name = url.host() == home.host() || place.rules.is_served_by_site(url);
        is_name && door(url) == door(home)
    };
    is_at(place.page) || is_at(place.rules.site())
}

/// Reports the sheet at `plain` of the page's own host, so that the caller can find out what is served of it.
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
