//! The purpose of a link, in a `link` element or a Link header.

use crate::kind::Kind;

/// What a browser does with a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LinkUse {
    /// It fetches a resource of this kind.
    Fetch(Kind),
    /// It fetches a module. The import map must come before the first module.
    Module,
    /// It connects to the host, and does nothing else.
    Connect,
    /// It fetches nothing, or a document, or a resource that is never moved.
    Other,
}

/// What links of these relations (`rel`) and this destination (`as`) are for.
pub(crate) fn of(rel: &str, destination: Option<&str>) -> LinkUse {
    let has = |word: &str| {
        rel.split_ascii_whitespace()
            .any(|rel| rel.eq_ignore_ascii_case(word))
    };
    let destination = destination.map(|destination| destination.trim().to_ascii_lowercase());
    let destination = destination
        .as_deref()
        .filter(|destination| !destination.is_empty());
    if has("stylesheet") {
        LinkUse::Fetch(Kind::Style)
    } else if has("modulepreload") {
        match destination {
            None | Some("script") => LinkUse::Module,
            _ => LinkUse::Other,
        }
    } else if has("preload") || has("prefetch") {
        destination
            .and_then(Kind::from_destination)
            .map_or(LinkUse::Other, LinkUse::Fetch)
    } else if [
        "icon",
        "apple-touch-icon",
        "apple-touch-icon-precomposed",
        "mask-icon",
        "fluid-icon",
    ]
    .iter()
    .any(|icon| has(icon))
    {
        LinkUse::Fetch(Kind::Image)
    } else if (has("preconnect") || has("dns-prefetch"))
        && rel.split_ascii_whitespace().all(|word| {
            word.eq_ignore_ascii_case("preconnect") || word.eq_ignore_ascii_case("dns-prefetch")
        })
    {
        LinkUse::Connect
    } else {
        LinkUse::Other
    }
}
