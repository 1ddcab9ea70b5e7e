//! Decides which stored responses are public. Only these give hints and pushes to a client, from what other clients requested.

use http::{HeaderMap, HeaderName, header};
use spdy_cache::lookup::Lookup;
use spdy_cache::memory_store::Object;
use spdy_cache::stored::Stored;

/// Request fields that a response may vary on and still be public: they describe a program, not a person.
///
/// A client chooses their values, and the response may repeat them. So the names in one variant are for requests that select this
/// variant only ([`PageResources`](crate::prefetch::page_resources::PageResources)).
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

/// In the extensions of a response: it is a public page, of this variant.
#[derive(Clone, Debug)]
pub(crate) struct PublicPage {
    /// What selects the variant ([`Stored::variant_of`]).
    pub(crate) variant: Vec<u8>,
    /// The identity of its text.
    pub(crate) text: Option<String>,
}

/// Whether any client may have `stored`: it may be stored, and does not depend on a cookie, token or other request field that may
/// identify a person.
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

/// Whether `stored` is public and the same for all clients: a client can change nothing in it but its content coding.
pub(crate) fn is_client_independent(stored: &Stored) -> bool {
    stored
        .selecting_names()
        .all(|name| *name == header::ACCEPT_ENCODING)
}

/// The public page among `variants` that the lookup `result` selected, if the client may have it before the origin has responded.
///
/// A stale page counts only if it was fresh once. If the origin decides for each request (`no-cache`, `max-age=0`, with or without `public`),
/// the origin decides which clients may have the page.
pub(crate) fn public_page<'v>(result: &Lookup, variants: &'v [Object]) -> Option<&'v Stored> {
    let stored = |index: usize| variants.get(index).map(Object::stored);
    match *result {
        Lookup::Fresh { index, .. } | Lookup::Stale { index, .. } => {
            stored(index).filter(|stored| is_public(stored))
        }
        Lookup::Revalidate { index, .. } => {
            stored(index).filter(|stored| is_public(stored) && was_ever_fresh(stored))
        }
        Lookup::Miss(_) | Lookup::Bypass(_) | Lookup::OnlyIfCached => None,
    }
}

/// Whether `stored` was ever fresh: caches could serve it without the origin.
fn was_ever_fresh(stored: &Stored) -> bool {
    !stored.control().no_cache.is_all() && !stored.lifetime().duration.is_zero()
}
