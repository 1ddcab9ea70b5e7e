//! Formats text for the terminal: counts, and foreign text with its control characters escaped.

use std::borrow::Cow;

/// Formats a count with its noun: `1 stream`, `3 streams`.
pub(crate) fn format_count(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Replaces each control character of `text` by an escape such as `\n` or `\u{1b}`, so that a recorded page, a peer or a client cannot send
/// commands to the terminal.
///
/// A backslash stays as it is, so the result is for display only: a line feed and a literal `\n` look the same.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char.is_control() {
            true => escaped.extend(char.escape_default()),
            false => escaped.push(char),
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped_and_nothing_else() {
        assert_eq!(escape("a\u{1b}[2Jb\n\u{9b}"), r"a\u{1b}[2Jb\n\u{9b}");
        let plain = "\"日本\" \\ é";
        assert!(matches!(escape(plain), Cow::Borrowed(text) if text == plain));
    }
}
