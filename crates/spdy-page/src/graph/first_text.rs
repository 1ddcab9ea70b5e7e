//! The first text that a document shows.

use crate::graph::builder::text_of;
use crate::graph::html;
use crate::replica::{Exchange, Kind};

/// Elements whose text a browser does not show, or not as text of the page.
const UNSHOWN: [&[u8]; 8] = [
    b"script",
    b"style",
    b"noscript",
    b"template",
    b"title",
    b"iframe",
    b"svg",
    b"select",
];

/// Transferred bytes of the body of `exchange` up to the first text in the document's body; `None` if the document is not real or
/// has no such text. Style sheets are not evaluated: text that they hide counts.
#[must_use]
pub fn first_text(exchange: &Exchange) -> Option<u64> {
    if exchange.kind != Kind::Document {
        return None;
    }
    let decoded = text_of(exchange)?;
    let body = html::scan(&decoded.text).body?;
    let at = text_from(&decoded.text, body)?;
    Some(decoded.transferred_at(at))
}

/// The offset after the first character of `html` from `at` on that is text and not white space.
fn text_from(html: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let rest = html.get(at..)?;
        at += match rest.first()? {
            byte if byte.is_ascii_whitespace() => 1,
            b'&' if rest.starts_with(b"&nbsp;") => b"&nbsp;".len(),
            b'<' => markup_len(rest),
            _ => return Some(at + 1),
        };
    }
}

/// The length of the comment, tag or unshown element at the beginning of `html`.
fn markup_len(html: &[u8]) -> usize {
    let until = |from: usize, mark: &[u8]| {
        let rest = html.get(from..).unwrap_or_default();
        let mut windows = rest.windows(mark.len());
        let found = windows.position(|window| window.eq_ignore_ascii_case(mark));
        found.map_or(html.len(), |found| from + found)
    };
    if html.starts_with(b"<!--") {
        return until(b"<!--".len(), b"-->") + b"-->".len();
    }
    let tag = tag_len(html);
    let name = html[1..].split(|byte| !byte.is_ascii_alphanumeric()).next();
    let name = name.unwrap_or_default();
    if !UNSHOWN
        .iter()
        .any(|unshown| name.eq_ignore_ascii_case(unshown))
    {
        return tag;
    }
    // The end tag is separate markup.
    until(tag, &[b"</", name].concat())
}

/// The length of the tag at the beginning of `html`; a quoted value may contain `>`.
fn tag_len(html: &[u8]) -> usize {
    let mut quote = None;
    for (at, &byte) in html.iter().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    html.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_text_is_behind_markup_and_unshown_elements() {
        let before = |text: &'static str| {
            let url = "http://a.test/".parse().expect("the URL is valid");
            let exchange = Exchange::synthetic(url, Kind::Document, "text/html", text);
            first_text(&exchange).map(|at| &text[..at as usize])
        };
        let head = "<title>t</title><body>\n<!-- <p>no -->&nbsp;<script>'<p>no'</script><svg><text>no</text></svg>";
        assert_eq!(before("<title>t</title>"), None);
        assert_eq!(before("<body><img alt='a > b'> <script>no"), None);
        for (text, expected) in [
            ("<body>text", "<body>t"),
            ("<div title='>'><b>text</b>", "<div title='>'><b>t"),
        ] {
            assert_eq!(before(text), Some(expected));
        }
        let text: &'static str = Box::leak(format!("{head}<h1 class=\"a>\">text").into_boxed_str());
        assert_eq!(before(text).map(str::len), Some(text.len() - 3));
    }
}
