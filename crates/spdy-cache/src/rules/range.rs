//! Byte ranges of completely stored responses (RFC 9110 §14).

use std::ops::Range;

/// The result of a `Range` field for a body of known length.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum RangeRequest {
    /// The whole body: there is no range, another unit, invalid syntax, too many ranges, or more bytes in total than the body has.
    Full,
    /// No range is within the body: 416.
    Unsatisfiable,
    /// These ranges, in the order of the request; none is empty or exceeds the end.
    Ranges(Vec<Range<u64>>),
}

/// The single range of a field, normalized; `None` if there are several, or none that is valid.
pub(crate) fn rewritten(field: &[u8]) -> Option<String> {
    let (unit, set) = field.split_at_checked(6)?;
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return None;
    }
    let specs = set.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let mut specs = specs.filter(|spec| !spec.is_empty());
    let spec = specs.next().filter(|_| specs.next().is_none())?;
    let dash = spec.iter().position(|byte| *byte == b'-')?;
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    Some(match (first.is_empty(), last.is_empty()) {
        (true, _) => format!("bytes=-{}", number(last)?),
        (false, true) => format!("bytes={}-", number(first)?),
        (false, false) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| format!("bytes={first}-{last}"))?
        }
    })
}

/// Parses `bytes=0-1,5-,-3` for a body of `len` bytes, with at most `max` ranges.
pub(crate) fn read(field: &[u8], len: u64, max: usize) -> RangeRequest {
    let Some((unit, set)) = field.split_at_checked(6) else {
        return RangeRequest::Full;
    };
    if !unit.eq_ignore_ascii_case(b"bytes=") {
        return RangeRequest::Full;
    }
    let specs = set.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let (mut ranges, mut count) = (Vec::new(), 0);
    for spec in specs.filter(|spec| !spec.is_empty()) {
        count += 1;
        match read_one(spec, len) {
            _ if count > max => return RangeRequest::Full,
            None => return RangeRequest::Full,
            Some(range) if range.is_empty() => {}
            Some(range) => ranges.push(range),
        }
    }
    // Overlapping ranges could make a server send more bytes than the body has (§14.2).
    let sum: u64 = ranges
        .iter()
        .fold(0, |sum, range| sum.saturating_add(range.end - range.start));
    match ranges.len() {
        _ if count == 0 => RangeRequest::Full,
        0 => RangeRequest::Unsatisfiable,
        2.. if sum > len => RangeRequest::Full,
        _ => RangeRequest::Ranges(ranges),
    }
}

/// Parses one range. An empty range is beyond the end; `None` is an invalid range.
fn read_one(spec: &[u8], len: u64) -> Option<Range<u64>> {
    let dash = spec.iter().position(|byte| *byte == b'-')?;
    let (first, last) = (&spec[..dash], &spec[dash + 1..]);
    if first.is_empty() {
        let suffix = number(last)?.min(len);
        return Some(len - suffix..len);
    }
    let first = number(first)?;
    let last = match last.is_empty() {
        true => u64::MAX,
        false => number(last)?,
    };
    if last < first {
        return None;
    }
    Some(first.min(len)..last.saturating_add(1).min(len))
}

/// Parses a number; on overflow, the largest one, which is beyond any end.
fn number(digits: &[u8]) -> Option<u64> {
    let all = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    all.then(|| {
        digits.iter().fold(0u64, |sum, digit| {
            sum.saturating_mul(10)
                .saturating_add(u64::from(digit - b'0'))
        })
    })
}
