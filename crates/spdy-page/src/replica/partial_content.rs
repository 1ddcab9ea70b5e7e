//! The parts of one representation in a replica: the ranges and validators of its 206 responses.
//!
//! A browser requests media with `Range`, so a recording has 206 responses for them. Together they may be the whole representation;
//! otherwise the replica has only these bytes. Parts are joined if RFC 9110 §15.3.7.3 allows it: with the same complete length and
//! the same strong validator.

use bytes::{Bytes, BytesMut};

use crate::head::Head;
use crate::replica::Exchange;

/// A `Content-Range` of bytes (RFC 9110 §14.4).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct ContentRange {
    /// Offset of the first byte.
    pub first: u64,
    /// Offset of the last byte, inclusive.
    pub last: u64,
    /// Length of the representation; `None` if it is unknown (`*`).
    pub complete: Option<u64>,
}

impl ContentRange {
    /// Parses `bytes 0-99/1000` or `bytes 0-99/*`; `None` for anything else.
    #[must_use]
    pub fn parse(value: &str) -> Option<Self> {
        let (unit, rest) = value.trim().split_once(' ')?;
        let (range, complete) = rest.trim().split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let complete = match complete {
            "*" => None,
            number => Some(number.parse().ok()?),
        };
        let range = Self {
            first: first.parse().ok()?,
            last: last.parse().ok()?,
            complete,
        };
        let is_valid = unit.eq_ignore_ascii_case("bytes")
            && range.first <= range.last
            && range.last < u64::MAX
            && complete.is_none_or(|complete| range.last < complete);
        is_valid.then_some(range)
    }

    /// The range of `exchange`, if it is a GET with a 206 response and a valid Content-Range.
    #[must_use]
    pub fn of(exchange: &Exchange) -> Option<Self> {
        let head = Head::parse(&exchange.response_head)?;
        let is_part = exchange.method == http::Method::GET && head.status() == Some(206);
        Self::parse(head.value("content-range").filter(|_| is_part)?)
    }
}

/// The recorded parts of one representation.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Parts {
    complete: Option<u64>,
    /// `ETag`, else `Last-Modified`.
    validator: Option<Vec<u8>>,
    /// Offset and bytes of each.
    pieces: Vec<(u64, Bytes)>,
}

impl Parts {
    /// The part in `exchange`; `None` if it is invalid or empty.
    ///
    /// A body shorter than its `Content-Range` was cut off: only the received bytes are the part.
    #[must_use]
    pub fn of(exchange: &Exchange) -> Option<Self> {
        let range = ContentRange::of(exchange)?;
        let announced = usize::try_from(range.last - range.first).unwrap_or(usize::MAX);
        let len = announced.saturating_add(1).min(exchange.body.len());
        let piece = (range.first, exchange.body.slice(..len));
        (len > 0).then(|| Self {
            complete: range.complete,
            validator: validator(exchange),
            pieces: vec![piece],
        })
    }

    /// Adds the pieces of `other` if its length and validator are the same, so that one head describes both.
    ///
    /// Call [`merge`](Self::merge) after the last.
    pub fn add(&mut self, other: &Self) {
        if (self.complete, &self.validator) == (other.complete, &other.validator) {
            self.pieces.extend(other.pieces.iter().cloned());
        }
    }

    /// Joins pieces that touch or overlap, if a strong validator proves that they are of the same representation. For
    /// bytes that are in two pieces, the piece that begins first is used.
    pub fn merge(&mut self) {
        let is_strong = |validator: &Vec<u8>| !validator.starts_with(b"W/");
        if !self.validator.as_ref().is_some_and(is_strong) {
            return;
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.sort_by_key(|(first, piece)| (*first, std::cmp::Reverse(piece.len())));
        let mut run: Vec<Bytes> = Vec::new();
        let (mut begin, mut end) = (0, 0);
        for (first, piece) in pieces {
            if run.is_empty() || first > end {
                self.pieces.extend(joined(begin, &mut run));
                (begin, end) = (first, first);
            }
            let overlap = usize::try_from(end - first).unwrap_or(usize::MAX);
            if overlap < piece.len() {
                end = first + piece.len() as u64;
                run.push(piece.slice(overlap..));
            }
        }
        self.pieces.extend(joined(begin, &mut run));
    }

    /// Length of the representation, if a response states it.
    #[must_use]
    pub fn complete(&self) -> Option<u64> {
        self.complete
    }

    /// All bytes of the representation, if one piece has them.
    #[must_use]
    pub fn whole(&self) -> Option<&Bytes> {
        let mut pieces = self.pieces.iter();
        let (_, piece) = pieces
            .find(|(first, piece)| *first == 0 && self.complete == Some(piece.len() as u64))?;
        Some(piece)
    }

    /// The bytes from `first` on without a gap: the most that one piece has; `None` if that byte is missing.
    #[must_use]
    pub fn from(&self, first: u64) -> Option<Bytes> {
        let pieces = self.pieces.iter().filter_map(|(begin, piece)| {
            let skipped = usize::try_from(first.checked_sub(*begin)?).ok()?;
            (skipped < piece.len()).then(|| piece.slice(skipped..))
        });
        pieces.max_by_key(Bytes::len)
    }
}

/// `bytes 0-99, 200-299 of 1000`.
impl std::fmt::Display for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("bytes ")?;
        for (number, (first, piece)) in self.pieces.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(f, "{comma}{first}-{}", first + piece.len() as u64 - 1)?;
        }
        match self.complete {
            Some(complete) => write!(f, " of {complete}"),
            None => f.write_str(" of an unknown number"),
        }
    }
}

/// `run` as one piece that begins at `begin`; `None` if there is nothing.
fn joined(begin: u64, run: &mut Vec<Bytes>) -> Option<(u64, Bytes)> {
    let mut run = std::mem::take(run);
    match run.len() {
        0 => None,
        1 => Some((begin, run.remove(0))),
        _ => {
            let mut all = BytesMut::with_capacity(run.iter().map(Bytes::len).sum());
            run.iter().for_each(|piece| all.extend_from_slice(piece));
            Some((begin, all.freeze()))
        }
    }
}

/// The validator that identifies the representation in the response of `exchange`.
fn validator(exchange: &Exchange) -> Option<Vec<u8>> {
    let head = Head::parse(&exchange.response_head)?;
    let values = ["etag", "last-modified"].map(|name| head.values(name).next());
    values.into_iter().flatten().next().map(<[u8]>::to_vec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head;
    use crate::replica::Kind;

    /// A 206 with `range` and `body`; `tag` is its ETag.
    fn part(range: &str, tag: &str, body: &'static str) -> Option<Parts> {
        let url = "http://a.test/film".parse().expect("the URL is valid");
        let mut exchange = Exchange::synthetic(url, Kind::Media, "video/mp4", body);
        let fields = [("Content-Range", range), ("ETag", tag)];
        exchange.response_head = head::synthesize("HTTP/1.1 206 Partial Content", fields);
        Parts::of(&exchange)
    }

    fn merged(parts: &[(&str, &str, &'static str)]) -> Parts {
        let mut parts = parts.iter().map(|(range, tag, body)| {
            part(range, tag, body).expect("the exchange is a valid part")
        });
        let mut all = parts.next().expect("there is at least one part");
        parts.for_each(|other| all.add(&other));
        all.merge();
        all
    }

    #[test]
    fn only_a_valid_content_range_is_parsed() {
        let range = |first, last, complete| {
            Some(ContentRange {
                first,
                last,
                complete,
            })
        };
        for (value, expected) in [
            ("bytes 0-9/10", range(0, 9, Some(10))),
            ("Bytes 3-4/*", range(3, 4, None)),
            ("bytes 0-10/10", None),
            ("bytes 4-3/10", None),
            ("bytes */10", None),
            ("bytes=0-9/10", None),
            ("items 0-9/10", None),
            ("bytes 0-9", None),
            ("bytes 0-99999999999999999999/*", None),
            ("bytes 0-18446744073709551615/*", None),
            ("", None),
        ] {
            assert_eq!(ContentRange::parse(value), expected, "{value}");
        }
    }

    #[test]
    fn parts_of_one_representation_are_put_together() {
        let whole = merged(&[
            ("bytes 4-9/10", "\"a\"", "456789"),
            ("bytes 0-2/10", "\"a\"", "012"),
            ("bytes 2-4/10", "\"a\"", "234"),
            ("bytes 3-3/10", "\"a\"", "3"),
        ]);
        assert_eq!(whole.whole().map(|all| &all[..]), Some(&b"0123456789"[..]));
        let gap = merged(&[
            ("bytes 0-2/10", "\"a\"", "012"),
            ("bytes 4-9/10", "\"a\"", "456789"),
        ]);
        assert_eq!(gap.whole(), None);
        assert_eq!(gap.to_string(), "bytes 0-2, 4-9 of 10");
        assert_eq!(gap.from(1).as_deref(), Some(&b"12"[..]));
        assert_eq!((gap.from(3), gap.from(10)), (None, None));
    }

    #[test]
    fn parts_that_may_be_of_two_representations_are_not_merged() {
        for (tag, range) in [
            ("\"b\"", "bytes 5-9/10"),
            ("W/\"a\"", "bytes 5-9/10"),
            ("\"a\"", "bytes 5-9/11"),
            ("\"a\"", "bytes 5-9/*"),
        ] {
            let parts = merged(&[("bytes 0-4/10", "\"a\"", "01234"), (range, tag, "56789")]);
            assert_eq!(parts.to_string(), "bytes 0-4 of 10", "{tag} {range}");
        }
        let weak = [
            ("bytes 0-4/10", "W/\"a\"", "01234"),
            ("bytes 5-9/10", "W/\"a\"", "56789"),
        ];
        let weak = merged(&weak);
        assert_eq!(weak.whole(), None, "weak tags prove no bytes");
        // The part that begins earlier ends first.
        let overlapping = merged(&[
            ("bytes 0-4/10", "W/\"a\"", "01234"),
            ("bytes 3-9/10", "W/\"a\"", "3456789"),
        ]);
        assert_eq!(overlapping.from(3).as_deref(), Some(&b"3456789"[..]));
        assert_eq!(overlapping.from(1).as_deref(), Some(&b"1234"[..]));
        assert_eq!(weak.to_string(), "bytes 0-4, 5-9 of 10");
    }

    #[test]
    fn a_part_has_the_received_bytes_and_no_more() {
        let cut = part("bytes 0-9/10", "\"a\"", "0123").expect("the exchange is a valid part");
        assert_eq!(cut.to_string(), "bytes 0-3 of 10");
        let long = part("bytes 0-1/2", "\"a\"", "0123").expect("the exchange is a valid part");
        assert_eq!(long.whole().map(|all| &all[..]), Some(&b"01"[..]));
        assert_eq!(part("bytes 0-9/10", "\"a\"", ""), None);
    }
}
