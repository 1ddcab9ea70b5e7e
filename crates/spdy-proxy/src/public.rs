//! Which stored answers anyone may have: only of these is one client told what another one's requests showed.

use http::{HeaderMap, HeaderName, header};
use spdy_cache::lookup::Lookup;
use spdy_cache::store::Object;
use spdy_cache::stored::Stored;

/// Request fields that an answer may vary on and still be public: they describe a program, not a person.
const PUBLIC_FIELDS: [HeaderName; 12] = [
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::HOST,
    header::ORIGIN,
    header::UPGRADE_INSECURE_REQUESTS,
    header::USER_AGENT,
    HeaderName::from_static("save-data"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
    HeaderName::from_static("x-requested-with"),
];

/// In the extensions of a response: it is a page that anyone may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PublicPage;

/// Whether anyone may have `stored`: it is stored at all, and not for the clients that send the same cookie, token or other
/// field that may tell a person.
pub(crate) fn is_public(stored: &Stored) -> bool {
    stored
        .selecting_names()
        .all(|name| PUBLIC_FIELDS.contains(name) || name.as_str().starts_with("sec-"))
}

/// Whether `headers` are those of a page.
pub(crate) fn is_html(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

/// Whether a lookup among `variants` that came to `found` shows that the client may have the page, before its origin is asked.
///
/// A stale page shows it only if its origin once let anyone have it without being asked: where the origin judges each
/// request (`no-cache`, `max-age=0`), who may have the page is not known before it has.
pub(crate) fn shows_public(found: &Lookup, variants: &[Object]) -> bool {
    let stored = |index: usize| variants.get(index).map(Object::stored);
    match *found {
        Lookup::Fresh { index, .. } | Lookup::Stale { index, .. } => {
            stored(index).is_some_and(is_public)
        }
        Lookup::Validate { index, .. } => {
            stored(index).is_some_and(|stored| is_public(stored) && was_open(stored))
        }
        Lookup::Miss(_) | Lookup::Bypass(_) | Lookup::OnlyIfCached => false,
    }
}

/// Whether the origin ever let anyone have `stored` without being asked.
fn was_open(stored: &Stored) -> bool {
    let control = stored.control();
    let was_fresh = !control.no_cache.is_everything() && !stored.lifetime().duration.is_zero();
    control.public || was_fresh
}
