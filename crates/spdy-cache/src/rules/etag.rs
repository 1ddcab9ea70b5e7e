//! Entity tags, and how they compare (RFC 9110 §8.8.3).
//!
//! Compared as bytes: origins send tags without quotes, and a tag that came so is sent back so. The one form
//! that is read is the `W/` in front.

use http::header::ETAG;
use http::{HeaderMap, HeaderValue};

use crate::rules::cache_control::split_unquoted;

/// An entity tag as it stood in a field.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct EntityTag<'a> {
    /// What stands behind `W/`, quotes and all.
    opaque: &'a [u8],
    pub(crate) weak: bool,
}

/// How tags are compared (RFC 9110 §8.8.3.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Comparison {
    /// Whether both mean the same.
    Weak,
    /// Whether both are the same bytes.
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

    /// The tag of `headers`; `None` without one, with an empty one, or with several that differ.
    pub(crate) fn of(headers: &'a HeaderMap) -> Option<Self> {
        let mut lines = headers.get_all(ETAG).iter().map(HeaderValue::as_bytes);
        let first = lines.next()?;
        let one = lines.all(|other| other == first);
        (one && !first.trim_ascii().is_empty()).then(|| Self::read(first))
    }

    /// Good enough for `If-None-Match`.
    pub(crate) fn weakly_matches(self, other: Self) -> bool {
        self.matches(other, Comparison::Weak)
    }

    /// Good enough to put bytes together.
    pub(crate) fn strongly_matches(self, other: Self) -> bool {
        self.matches(other, Comparison::Strong)
    }

    fn matches(self, other: EntityTag<'_>, comparison: Comparison) -> bool {
        match comparison {
            Comparison::Weak => self.opaque == other.opaque,
            Comparison::Strong => self.opaque == other.opaque && !self.weak && !other.weak,
        }
    }

    /// Whether a list of tags, over all its `lines`, has one like this, or is `*`.
    pub(crate) fn is_in<'b>(
        self,
        lines: impl Iterator<Item = &'b HeaderValue>,
        comparison: Comparison,
    ) -> bool {
        let mut found = false;
        for line in lines {
            // A quote that stays open is the rest of the line's own fault.
            split_unquoted(line.as_bytes(), b',', |tag| {
                let tag = tag.trim_ascii();
                found |= !tag.is_empty()
                    && (tag == b"*" || self.matches(EntityTag::read(tag), comparison));
            });
        }
        found
    }
}
