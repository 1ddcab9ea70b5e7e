//! Fields of requests and answers.

use http::header::{HeaderMap, HeaderName};
use spdy_rewrite::kind::Kind;
use spdy_rewrite::request::anonymize::{FetchMode, Load};

/// An image of a page of the site.
pub(crate) const PAGE_LOADS_IMAGE: Load = Load {
    expected: Some(Kind::Image),
    mode: FetchMode::NoCors,
    is_subresource: true,
    is_safe_method: true,
    is_same_origin: true,
};

/// Fields out of lines.
pub(crate) fn fields(lines: &[&str]) -> HeaderMap {
    let mut fields = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").unwrap();
        fields.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
    }
    fields
}

/// And lines out of fields, in order of the alphabet.
pub(crate) fn sorted_lines(headers: &HeaderMap) -> Vec<String> {
    let mut lines: Vec<_> = headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
        .collect();
    lines.sort();
    lines
}
