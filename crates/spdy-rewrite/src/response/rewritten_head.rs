//! The head of a rewritten response: headers that are no longer valid are removed, and the ETag is a new one.

use data_encoding::BASE64URL_NOPAD;
use http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, ETAG, HeaderMap, HeaderName, HeaderValue,
    LAST_MODIFIED,
};
use sha2::{Digest, Sha256};

use crate::rules::Rules;

/// True if the origin forbids changing the body (RFC 9111 §5.2.2.6).
pub fn has_no_transform(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CACHE_CONTROL).iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .any(|directive| directive.trim_ascii().eq_ignore_ascii_case(b"no-transform"))
}

/// Removes the origin's fields about its own bytes, and marks its ETag with the rules that rewrote them.
///
/// The same bytes with the same rules always have the same result, so a strong ETag stays strong. If the result depends on more
/// (`is_exact` false: on available style sheets), it becomes weak.
pub fn mark_etag(rules: &Rules, headers: &mut HeaderMap, is_exact: bool) {
    for name in [CONTENT_LENGTH, LAST_MODIFIED, ACCEPT_RANGES] {
        headers.remove(name);
    }
    for name in [
        "content-md5",
        "digest",
        "content-digest",
        "repr-digest",
        "unencoded-digest",
    ] {
        headers.remove(HeaderName::from_static(name));
    }
    let etag = headers
        .get(ETAG)
        .and_then(|etag| marked_etag(etag, rules.tag(), is_exact));
    headers.remove(ETAG);
    if let Some(etag) = etag {
        headers.insert(ETAG, etag);
    }
}

/// Sets an ETag from content and rules for a `body` in memory, if the origin sent none.
pub fn tag_body<'b>(
    rules: &Rules,
    headers: &mut HeaderMap,
    body: impl IntoIterator<Item = &'b [u8]>,
) {
    if headers.contains_key(ETAG) {
        return;
    }
    let mut hash = Sha256::new();
    body.into_iter().for_each(|piece| hash.update(piece));
    let hash = BASE64URL_NOPAD.encode(&hash.finalize()[..18]);
    let etag = HeaderValue::from_str(&format!("\"{hash}~{}\"", rules.tag()));
    headers.insert(ETAG, etag.expect("letters and digits"));
}

/// Adds the `facts` with which a page was rewritten to its ETag: other facts have another result.
pub fn add_facts_to_etag(headers: &mut HeaderMap, facts: &[u8]) {
    let hash = BASE64URL_NOPAD.encode(&Sha256::digest(facts)[..6]);
    let etag = headers.get(ETAG).and_then(|etag| {
        let text = etag.to_str().ok()?.strip_suffix('"')?;
        HeaderValue::from_str(&format!("{text}~{hash}\"")).ok()
    });
    if let Some(etag) = etag {
        headers.insert(ETAG, etag);
    }
}

fn marked_etag(etag: &HeaderValue, tag: &str, is_exact: bool) -> Option<HeaderValue> {
    let text = etag.to_str().ok()?;
    let opaque = text
        .strip_prefix("W/")
        .unwrap_or(text)
        .strip_prefix('"')?
        .strip_suffix('"')?;
    let is_weak = text.starts_with("W/") || !is_exact;
    let weak = if is_weak { "W/" } else { "" };
    HeaderValue::from_str(&format!("{weak}\"{opaque}~{tag}\"")).ok()
}

/// The origin's ETag within one of ours, for a client's If-None-Match to the origin; `None` if it was set by other rules.
pub fn original_etag(rules: &Rules, etag: &str) -> Option<String> {
    let (weak, rest) = etag
        .strip_prefix("W/")
        .map_or(("", etag), |rest| ("W/", rest));
    let opaque = rest.strip_prefix('"')?.strip_suffix('"')?;
    let opaque = opaque.strip_suffix(rules.tag())?.strip_suffix('~')?;
    Some(format!("{weak}\"{opaque}\""))
}
