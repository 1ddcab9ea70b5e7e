//! Text that cannot become markup, and numbers in readable units.

use std::fmt::{self, Display, Formatter, Write};

/// Maximum number of characters of a URL or a name; the rest becomes an ellipsis.
const MAX_TEXT_CHARS: usize = 160;
/// Maximum number of marks of an axis beside the 0.
const MARKS: f64 = 5.0;

/// Foreign text inside HTML, as content or in a quoted attribute.
///
/// Markup is escaped. Control characters become U+FFFD, and so do characters that change the direction of writing: with them, one URL
/// could look like another. A text of more than 160 characters is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a>(pub(super) &'a str);

impl Display for Text<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, char) in self.0.chars().enumerate() {
            if at == MAX_TEXT_CHARS {
                return f.write_char('…');
            }
            escape(f, char)?;
        }
        Ok(())
    }
}

/// The same for our own text with foreign names in it: not cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullText<'a>(pub(super) &'a str);

impl Display for FullText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|char| escape(f, char))
    }
}

/// Replaces characters that HTML and XML do not allow or that could deceive a reader.
fn escape(f: &mut Formatter<'_>, char: char) -> fmt::Result {
    match char {
        '&' => f.write_str("&amp;"),
        '<' => f.write_str("&lt;"),
        '>' => f.write_str("&gt;"),
        '"' => f.write_str("&quot;"),
        '\'' => f.write_str("&#39;"),
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            f.write_char('\u{fffd}')
        }
        '\u{fffe}' | '\u{ffff}' => f.write_char('\u{fffd}'),
        other if other.is_control() => f.write_char('\u{fffd}'),
        other => f.write_char(other),
    }
}

/// A count with thin spaces between thousands: 12 345.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count(pub(super) u64);

impl Display for Count {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let digits = self.0.to_string();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                f.write_char('\u{202f}')?;
            }
            f.write_char(digit)?;
        }
        Ok(())
    }
}

/// Milliseconds: without decimals from 100 on, with one decimal below.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Millis(pub(super) f64);

impl Display for Millis {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.0.is_finite() || self.0 < 0.0 {
            return f.write_str("–");
        }
        if self.0 < 99.95 {
            return write!(f, "{:.1}", self.0);
        }
        // Far below 2^53, and rounded.
        Count(self.0.round() as u64).fmt(f)
    }
}

/// Bytes in a unit that keeps the number short: 812 B, 45.1 kB, 1.25 MB.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes(pub(super) u64);

impl Display for Bytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match self.0 {
            0..1_000 => write!(f, "{}\u{202f}B", self.0),
            1_000..1_000_000 => write!(f, "{:.1}\u{202f}kB", bytes / 1e3),
            _ => write!(f, "{:.2}\u{202f}MB", bytes / 1e6),
        }
    }
}

/// A ratio with two decimals, as ×0.48.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio(pub(super) Option<f64>);

impl Display for Ratio {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(ratio) => write!(f, "×{ratio:.2}"),
            None => f.write_str("–"),
        }
    }
}

/// The unit of an axis of times.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TimeUnit {
    Milliseconds,
    Seconds,
}

impl TimeUnit {
    /// The unit of an axis that ends at `end_ms`.
    pub(crate) fn of(end_ms: f64) -> Self {
        if end_ms >= 1_000.0 {
            Self::Seconds
        } else {
            Self::Milliseconds
        }
    }

    /// Its symbol.
    pub(crate) const fn symbol(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
        }
    }

    /// Formats `ms` in this unit, without its symbol.
    pub(crate) fn format(self, ms: f64) -> String {
        let value = match self {
            Self::Milliseconds => ms,
            Self::Seconds => ms / 1_000.0,
        };
        // Marks of an axis are round numbers: further digits come from computing them.
        format!("{}", (value * 1e6).round() / 1e6)
    }
}

/// Positions of the marks of an axis from 0 to `end`: 3 to 6, at 1, 2 or 5 times a power of ten.
pub(crate) fn ticks(end: f64) -> Vec<f64> {
    if !end.is_finite() || end <= 0.0 {
        return vec![0.0];
    }
    let power = 10_f64.powf((end / MARKS).log10().floor());
    let wide_enough = |factor: &f64| end / (factor * power) <= MARKS;
    let step = [1.0, 2.0, 5.0]
        .into_iter()
        .find(wide_enough)
        .unwrap_or(10.0)
        * power;
    let count = (end / step).floor() as u32;
    (0..=count).map(|mark| f64::from(mark) * step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_end_an_element_or_an_attribute() {
        let hostile = "\"'><script>&\u{0}\u{202e}";
        assert_eq!(
            Text(hostile).to_string(),
            "&quot;&#39;&gt;&lt;script&gt;&amp;\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn text_is_cut_after_160_characters() {
        assert_eq!(Text(&"ä".repeat(160)).to_string(), "ä".repeat(160));
        assert_eq!(
            Text(&"ä".repeat(161)).to_string(),
            format!("{}…", "ä".repeat(160))
        );
    }

    #[test]
    fn numbers_are_short() {
        let shown = |text: String| text.replace('\u{202f}', " ");
        assert_eq!(shown(Count(1_234_567).to_string()), "1 234 567");
        assert_eq!(shown(Count(100).to_string()), "100");
        assert_eq!(
            [12.34, 99.96, 12_345.6].map(|ms| shown(Millis(ms).to_string())),
            ["12.3", "100", "12 346"]
        );
        assert_eq!(Millis(f64::NAN).to_string(), "–");
        assert_eq!(
            [999, 45_100, 1_250_000].map(|b| shown(Bytes(b).to_string())),
            ["999 B", "45.1 kB", "1.25 MB"]
        );
    }

    #[test]
    fn long_axes_are_marked_in_seconds() {
        let marks = [0.0, 500.0, 2_500.0];
        let of = |end: f64| marks.map(|ms| TimeUnit::of(end).format(ms));
        assert_eq!(of(999.0), ["0", "500", "2500"]);
        assert_eq!(of(3_000.0), ["0", "0.5", "2.5"]);
        assert_eq!(TimeUnit::Milliseconds.format(0.1 + 0.2), "0.3");
    }

    #[test]
    fn an_axis_has_three_to_six_marks() {
        for end in [0.3, 1.0, 7.0, 99.0, 1_000.0, 12_345.0, 9.99e6] {
            let marks = ticks(end);
            assert!((3..=6).contains(&marks.len()), "{end}: {marks:?}");
            assert!(
                marks.last().is_some_and(|last| *last <= end),
                "{end}: {marks:?}"
            );
        }
        assert_eq!(ticks(0.0), [0.0]);
    }
}
