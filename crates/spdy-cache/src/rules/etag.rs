//! Entity tags and their comparison (RFC 9110 §8.8.3).
//!
//! Tags are compared as bytes: some origins send tags without quotes, and such a tag is returned unchanged. Only the prefix `W/` is
//! parsed.

use http::header::ETAG;
use http::{HeaderMap, HeaderValue};

use crate::rules::cache_control::split_unquoted;

/// An entity tag as in a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct EntityTag<'a> {
    /// The tag after `W/`, including quotes.
    opaque: &'a [u8],
    pub(crate) weak: bool,
}

/// How tags are compared (RFC 9110 §8.8.3.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Comparison {
    /// True if both have the same meaning.
    Weak,
    /// True if both identify the same bytes.
    Strong,
}

impl<'a> EntityTag<'a> {
    pub(crate) fn read(text: &'a [u8]) -> Self {
        let text = text.trim_ascii();
        match text.strip_prefix(b"W/") {
            Some(opaque) => Self { opaque, weak: true },
            None => Self {
                opaque: text,
                weak: false,
            },
        }
    }

    /// The tag in `headers`; `None` if it is missing or empty, or if there are several different ones.
    pub(crate) fn of(headers: &'a HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(ETAG).iter().map(HeaderValue::as_bytes);
        let first = lines.next()?;
        let one = lines.all(|other| other == first);
        (one && !first.trim_ascii().is_empty()).then(|| Self::read(first))
    }

    /// Weak comparison, as for `If-None-Match`.
    pub(crate) fn weakly_matches(self, other: Self) -> bool {
        self.matches(other, Comparison::Weak)
    }

    /// Strong comparison, which is required to combine ranges.
    pub(crate) fn strongly_matches(self, other: Self) -> bool {
        self.matches(other, Comparison::Strong)
    }

    fn matches(self, other: EntityTag<'_>, comparison: Comparison) -> bool {
        match comparison {
            Comparison::Weak => self.opaque == other.opaque,
            Comparison::Strong => self.opaque == other.opaque && !self.weak && !other.weak,
        }
    }

    /// True if a list of tags, over all its `lines`, contains this tag or is `*`.
    pub(crate) fn is_in<'b>(
        self,
        lines: impl Iterator<Item = &'b HeaderValue>,
        comparison: Comparison,
    ) -> bool {
        let mut found = false;
        for line in lines {
            // After an unclosed quote the rest of the line is ignored.
            split_unquoted(line.as_bytes(), b',', |tag| {
                let tag = tag.trim_ascii();
                found |= !tag.is_empty()
                    && (tag == b"*" || self.matches(EntityTag::read(tag), comparison));
            });
        }
        found
    }
}
