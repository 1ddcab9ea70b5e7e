//! The Range header (RFC 9110 §14.2): one range of bytes; any other value gets the full response.

/// The range that a Range header requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum RangeSelection {
    /// No supported range: the whole body (RFC 9110 §14.2 allows a server to ignore any range).
    All,
    /// From the first byte to before the last.
    Part { from: usize, until: usize },
    /// It begins after the end: 416.
    Unsatisfiable,
}

/// Parses `range` for a body of `len` bytes.
pub(crate) fn read(range: &str, len: usize) -> RangeSelection {
    let Some((unit, set)) = range.split_once('=') else {
        return RangeSelection::All;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return RangeSelection::All;
    }
    let Some((first, last)) = set.trim().split_once('-') else {
        return RangeSelection::All;
    };
    match (number(first), number(last)) {
        (Number::None, Number::Is(suffix)) if suffix > 0 && len > 0 => RangeSelection::Part {
            from: len.saturating_sub(suffix),
            until: len,
        },
        (Number::None, Number::Is(_)) => RangeSelection::Unsatisfiable,
        (Number::Is(from), Number::None) if from < len => RangeSelection::Part { from, until: len },
        (Number::Is(from), Number::Is(last)) if from <= last && from < len => {
            RangeSelection::Part {
                from,
                until: last.saturating_add(1).min(len),
            }
        }
        (Number::Is(from), Number::Is(last)) if last < from => RangeSelection::All, // not a valid range
        (Number::Is(_), Number::None | Number::Is(_)) => RangeSelection::Unsatisfiable,
        _ => RangeSelection::All,
    }
}

enum Number {
    None,
    Is(usize),
    Invalid,
}

fn number(text: &str) -> Number {
    match text {
        "" => Number::None,
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            // A number that overflows is after any end.
            Number::Is(digits.parse().unwrap_or(usize::MAX))
        }
        _ => Number::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_served_and_other_values_get_the_full_response() {
        let part = |from, until| RangeSelection::Part { from, until };
        for (range, expected) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=0-9", part(0, 10)),
            ("bytes=3-", part(3, 10)),
            ("bytes=3-99999999999999999999999", part(3, 10)),
            ("bytes=-4", part(6, 10)),
            ("bytes=-40", part(0, 10)),
            ("Bytes=9-9", part(9, 10)),
            ("bytes=10-", RangeSelection::Unsatisfiable),
            (
                "bytes=99999999999999999999999-",
                RangeSelection::Unsatisfiable,
            ),
            ("bytes=-0", RangeSelection::Unsatisfiable),
            ("bytes=5-4", RangeSelection::All),
            ("bytes=0-1,3-4", RangeSelection::All),
            ("bytes=a-b", RangeSelection::All),
            ("bytes=-", RangeSelection::All),
            ("bytes", RangeSelection::All),
            ("lines=1-2", RangeSelection::All),
        ] {
            assert_eq!(read(range, 10), expected, "{range}");
        }
        assert_eq!(read("bytes=-1", 0), RangeSelection::Unsatisfiable);
        assert_eq!(read("bytes=0-", 0), RangeSelection::Unsatisfiable);
    }
}
