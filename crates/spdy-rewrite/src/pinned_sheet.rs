//! A reference to a sheet that the page pins by a hash, which it may bear in an element or in a Link field.
//!
//! ```text
//!  another host's  rewritten, and known ──▶ moved, and pinned as it is served      not known ──▶ stays
//!  the site's own  rewritten, and known ──▶ pinned as it is served                 not known ──▶ asked for as it came
//! ```

use url::Url;

use crate::integrity::{self, IntegrityState};
use crate::kind::Kind;
use crate::reference::{Reference, ReferenceContext};
use crate::referrer::ReferrerScope;
use crate::verdict::{ReferenceSource, SkipReason, Verdict};

/// What becomes of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum IntegrityRewrite {
    /// What becomes of any other; and it pins this from now on, if that is another hash.
    Free(Option<String>),
    /// It is of the page's own host, and it is not known what is served of it: it is asked for so, with the mark that leaves its bytes.
    Marked {
        /// With the mark.
        text: String,
        /// Without it, to be known for the next page.
        plain: Url,
    },
    /// It stays where it is.
    Stays,
}

/// Judges `text`, a reference to a sheet that is pinned by `metadata`.
pub(crate) fn judge(place: &ReferenceContext<'_>, text: &str, metadata: &str) -> IntegrityRewrite {
    let text = text.trim();
    let Ok(mut url) = place.base.join(text) else {
        return IntegrityRewrite::Stays;
    };
    // The page requests it over `https`, by the URL that is written for it.
    let secure = place.site_url_over_https(&url, Kind::Style);
    let secure = secure.map(|target| place.site_path(&target));
    if let Some(secure) = secure.as_deref().and_then(|it| place.base.join(it).ok()) {
        url = secure;
    }
    let text = secure.as_deref().unwrap_or(text);
    let known = || {
        place
            .seen
            .map_or(IntegrityState::Unknown, |seen| seen.pinned(&url, metadata))
    };
    let is_pages_own = url.origin() == place.page.origin();
    if place.finder == ReferenceSource::Site && is_site_url(place, &url) {
        if place.rules.move_nothing() || text.is_empty() {
            return IntegrityRewrite::Free(None);
        }
        return match known() {
            IntegrityState::Untouched => IntegrityRewrite::Free(None),
            IntegrityState::Rewritten(hash) => IntegrityRewrite::Free(Some(hash)),
            IntegrityState::Unknown => IntegrityRewrite::Marked {
                text: integrity::as_it_came(text),
                plain: url,
            },
        };
    }
    let verdict = place.rules.verdict(&url, Kind::Style, place.finder);
    match (verdict, known()) {
        // It is what the page pins where it is, and nowhere else.
        (Verdict::Move(_), _) if place.guards(&url, Kind::Style) => IntegrityRewrite::Stays,
        (Verdict::Move(_), IntegrityState::Untouched) => IntegrityRewrite::Free(None),
        (Verdict::Move(_), IntegrityState::Rewritten(hash)) => IntegrityRewrite::Free(Some(hash)),
        // A named host's page reads its own sheets where it is itself.
        (Verdict::Move(_), IntegrityState::Unknown) if is_pages_own && !text.is_empty() => {
            IntegrityRewrite::Marked {
                text: integrity::as_it_came(text),
                plain: url,
            }
        }
        _ => IntegrityRewrite::Stays,
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

/// Tells of the sheet at `plain` of the page's own host, that somebody may find out what is served of it.
pub(crate) fn unknown(plain: &Url) -> Reference {
    Reference {
        url: plain.to_string(),
        kind: Kind::Style,
        by_cors: false,
        unhintable: true,
        is_candidate: false,
        tells: ReferrerScope::Everyone,
        outcome: Err(SkipReason::Integrity),
    }
}
