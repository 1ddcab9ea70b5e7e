//! `X-Associated-Content`, by which an application requests pushes from mod_spdy.
//!
//! ```text
//! X-Associated-Content: "/style.css":1, "/script.js" : 2, "/image.png"
//!                        URL         priority (0 to 7, or the lowest)
//! ```
//!
//! As in mod_spdy, parsing stops at the first error: earlier items are valid.

use spdy_frame::priority::Priority;

/// The URLs of a header value, unchanged, with their priorities; priorities out of range are clamped.
#[must_use]
pub fn parse_associated_content(value: &str) -> AssociatedContent<'_> {
    AssociatedContent(value)
}

/// See [`parse_associated_content`].
#[derive(Clone, Debug)]
pub struct AssociatedContent<'a>(&'a str);

impl<'a> Iterator for AssociatedContent<'a> {
    type Item = (&'a str, Priority);

    fn next(&mut self) -> Option<Self::Item> {
        let read = read_one(self.0);
        let (item, rest) = read.unzip();
        self.0 = rest.unwrap_or_default();
        item
    }
}

fn read_one(text: &str) -> Option<((&str, Priority), &str)> {
    let text = text.trim_ascii_start();
    let (url, rest) = text.strip_prefix('"')?.split_once('"')?;
    let rest = rest.trim_ascii_start();
    let (priority, rest) = match rest.strip_prefix(':') {
        None => (Priority::LOWEST, rest),
        Some(rest) => {
            let rest = rest.trim_ascii_start();
            let unsigned = rest.strip_prefix(['-', '+']).unwrap_or(rest);
            let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            let (number, rest) = rest.split_at(rest.len() - unsigned.len() + digits);
            let negative = number.starts_with('-');
            // A number that overflows is too large, or too small.
            let level = number
                .parse()
                .unwrap_or(if negative { i64::MIN } else { i64::MAX });
            let highest = i64::from(Priority::LOWEST.level());
            let level = u8::try_from(level.clamp(0, highest)).unwrap_or_default();
            (Priority::new(level), rest.trim_ascii_start())
        }
    };
    match rest.strip_prefix(',') {
        Some(rest) => Some(((url, priority), rest)),
        None if rest.is_empty() => Some(((url, priority), rest)),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Vec<(&str, u8)> {
        parse_associated_content(value)
            .map(|(url, priority)| (url, priority.level()))
            .collect()
    }

    #[test]
    fn urls_and_priorities_are_parsed_and_numbers_are_clamped() {
        assert_eq!(
            read("\"/a.css\":1 ,\"b,:c\" : 99999999999999999999, \"/d\",\"/e\":-3"),
            [("/a.css", 1), ("b,:c", 7), ("/d", 7), ("/e", 0)]
        );
        assert_eq!(read("\"/a\":+2"), [("/a", 2)]);
    }

    #[test]
    fn a_syntax_error_ends_the_list() {
        for (value, expected) in [
            ("\"/a\", /b", 1),
            ("\"/a\", \"/b", 1),
            ("\"/a\":x", 0),
            ("\"/a\" \"/b\"", 0),
            ("", 0),
            ("\"", 0),
            ("\"/a\",", 1),
            ("\"/a\":1:2, \"/b\"", 0),
        ] {
            assert_eq!(read(value).len(), expected, "{value}");
        }
    }
}
