//! The Range header (RFC 9110 §14.2): one range of bytes; anything else is answered in full.

/// What a Range header asks for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Wanted {
    /// No range that we honour: the whole (RFC 9110 §14.2 lets a server ignore any of them).
    All,
    /// From this byte to before that one.
    Part { from: usize, until: usize },
    /// It begins past the end: 416.
    Nothing,
}

/// What `range` asks for of a body of `len` bytes.
pub(crate) fn read(range: &str, len: usize) -> Wanted {
    let Some((unit, set)) = range.split_once('=') else {
        return Wanted::All;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return Wanted::All;
    }
    let Some((first, last)) = set.trim().split_once('-') else {
        return Wanted::All;
    };
    match (number(first), number(last)) {
        (Number::None, Number::Is(suffix)) if suffix > 0 && len > 0 => Wanted::Part {
            from: len.saturating_sub(suffix),
            until: len,
        },
        (Number::None, Number::Is(_)) => Wanted::Nothing,
        (Number::Is(from), Number::None) if from < len => Wanted::Part { from, until: len },
        (Number::Is(from), Number::Is(last)) if from <= last && from < len => Wanted::Part {
            from,
            until: last.saturating_add(1).min(len),
        },
        (Number::Is(from), Number::Is(last)) if last < from => Wanted::All, // no range at all
        (Number::Is(_), Number::None | Number::Is(_)) => Wanted::Nothing,
        _ => Wanted::All,
    }
}

enum Number {
    None,
    Is(usize),
    Odd,
}

fn number(text: &str) -> Number {
    match text {
        "" => Number::None,
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            // More than fits is past any end.
            Number::Is(digits.parse().unwrap_or(usize::MAX))
        }
        _ => Number::Odd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_honoured_and_everything_odd_is_the_whole() {
        let part = |from, until| Wanted::Part { from, until };
        for (range, want) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=0-9", part(0, 10)),
            ("bytes=3-", part(3, 10)),
            ("bytes=3-99999999999999999999999", part(3, 10)),
            ("bytes=-4", part(6, 10)),
            ("bytes=-40", part(0, 10)),
            ("Bytes=9-9", part(9, 10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=99999999999999999999999-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=5-4", Wanted::All),
            ("bytes=0-1,3-4", Wanted::All),
            ("bytes=a-b", Wanted::All),
            ("bytes=-", Wanted::All),
            ("bytes", Wanted::All),
            ("lines=1-2", Wanted::All),
        ] {
            assert_eq!(read(range, 10), want, "{range}");
        }
        assert_eq!(read("bytes=-1", 0), Wanted::Nothing);
        assert_eq!(read("bytes=0-", 0), Wanted::Nothing);
    }
}
