//! A reference to a sheet that the page pins by a hash, which it may bear in an element or in a Link field.
//!
//! ```text
//!  another host's  rewritten, and known ──▶ moved, and pinned as it is served      not known ──▶ stays
//!  the site's own  rewritten, and known ──▶ pinned as it is served                 not known ──▶ asked for as it came
//! ```

use url::Url;

use crate::integrity::{self, Pinned};
use crate::kind::Kind;
use crate::reference::{Place, Reference};
use crate::referrer::Tells;
use crate::verdict::{Finder, Reason, Verdict};

/// What becomes of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Pin {
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
pub(crate) fn judge(place: &Place<'_>, text: &str, metadata: &str) -> Pin {
    let text = text.trim();
    let Ok(url) = place.base.join(text) else {
        return Pin::Stays;
    };
    let known = || {
        place
            .seen
            .map_or(Pinned::Unknown, |seen| seen.pinned(&url, metadata))
    };
    let is_pages_own = url.origin() == place.page.origin();
    let is_sites = place.finder == Finder::Site
        && (is_pages_own || url.origin() == place.rules.site().origin());
    if is_sites {
        if place.rules.move_nothing() || text.is_empty() {
            return Pin::Free(None);
        }
        return match known() {
            Pinned::Untouched => Pin::Free(None),
            Pinned::Rewritten(hash) => Pin::Free(Some(hash)),
            Pinned::Unknown => Pin::Marked {
                text: integrity::as_it_came(text),
                plain: url,
            },
        };
    }
    let verdict = place.rules.verdict(&url, Kind::Style, place.finder);
    match (verdict, known()) {
        (Verdict::Move(_), Pinned::Untouched) => Pin::Free(None),
        (Verdict::Move(_), Pinned::Rewritten(hash)) => Pin::Free(Some(hash)),
        // A named host's page reads its own sheets where it is itself.
        (Verdict::Move(_), Pinned::Unknown) if is_pages_own && !text.is_empty() => Pin::Marked {
            text: integrity::as_it_came(text),
            plain: url,
        },
        _ => Pin::Stays,
    }
}

/// Tells of the sheet at `plain` of the page's own host, that somebody may find out what is served of it.
pub(crate) fn unknown(plain: &Url) -> Reference {
    Reference {
        url: plain.to_string(),
        kind: Kind::Style,
        by_cors: false,
        tells: Tells::Everyone,
        outcome: Err(Reason::Integrity),
    }
}
