//! Decodes and encodes the character references of attribute values (HTML §13.2.5.73).
//!
//! lol_html returns values as they are in the source. HTML has 2231 names. Only those that need no semicolon, and XML's,
//! are decoded. A value with another name is left to the browser, because a URL that is decoded differently is a
//! different URL.

use std::borrow::Cow;

/// The names of U+00A0 to U+00FF in their order, which need no semicolon.
const LATIN_1: [&str; 96] = [
    "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf",
    "laquo", "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro",
    "para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest",
    "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave", "Eacute",
    "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute",
    "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute",
    "THORN", "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil",
    "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc", "iuml", "eth", "ntilde",
    "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash", "ugrave", "uacute", "ucirc",
    "uuml", "yacute", "thorn", "yuml",
];

/// The characters of the numbers 0x80 to 0x9f: those of windows-1252, if it has one.
const C1: [u32; 32] = [
    0x20ac, 0x81, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039,
    0x0152, 0x8d, 0x017d, 0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014,
    0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d, 0x017e, 0x0178,
];

/// The value that a browser reads in `source`; `None` if it has an entity name that this table lacks.
pub fn decode(source: &str) -> Option<Cow<'_, str>> {
    let Some(first) = source.find('&') else {
        return Some(source.into());
    };
    let mut out = String::with_capacity(source.len());
    out.push_str(&source[..first]);
    let mut rest = &source[first..];
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let (character, len) = reference(after)?;
        match character {
            Some(character) => out.push(character),
            None => out.push_str(&rest[at..=at + len]),
        }
        rest = &after[len..];
    }
    out.push_str(rest);
    Some(out.into())
}

/// The character reference after an ampersand, and its length in bytes. The character is `None` if there is no
/// reference; the result is `None` if the reference is unknown here.
fn reference(after: &str) -> Option<(Option<char>, usize)> {
    if let Some(digits) = after.strip_prefix('#') {
        return Some(
            numeric(digits).map_or((None, 0), |(character, len)| (Some(character), len + 1)),
        );
    }
    let len = after.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let name = &after[..len];
    match (after.as_bytes().get(len), named(name)) {
        _ if len == 0 => Some((None, 0)),
        (Some(b';'), Some(character)) => Some((Some(character), len + 1)),
        (Some(b';'), None) if name == "apos" => Some((Some('\''), len + 1)),
        (Some(b';'), None) => None,
        // In attributes `&copy=` is not a character reference.
        (Some(b'='), _) | (_, None) => Some((None, len)),
        (_, Some(character)) => Some((Some(character), len)),
    }
}

/// A name that needs no semicolon.
fn named(name: &str) -> Option<char> {
    match name {
        "amp" | "AMP" => Some('&'),
        "lt" | "LT" => Some('<'),
        "gt" | "GT" => Some('>'),
        "quot" | "QUOT" => Some('"'),
        "COPY" => Some('\u{a9}'),
        "REG" => Some('\u{ae}'),
        _ => {
            let at = LATIN_1.iter().position(|entry| *entry == name)?;
            char::from_u32(0xa0 + u32::try_from(at).ok()?)
        }
    }
}

fn numeric(digits: &str) -> Option<(char, usize)> {
    let (radix, start) = match digits.as_bytes().first() {
        Some(b'x' | b'X') => (16, 1),
        _ => (10, 0),
    };
    let len = digits[start..]
        .bytes()
        .take_while(|byte| char::from(*byte).is_digit(radix))
        .count();
    if len == 0 {
        return None;
    }
    let end = start + len;
    let code = digits[start..end].chars().try_fold(0_u32, |code, digit| {
        code.checked_mul(radix)?.checked_add(digit.to_digit(radix)?)
    });
    let character = match code {
        Some(code @ 0x80..=0x9f) => char::from_u32(C1[code as usize - 0x80]),
        Some(0) | None => None,
        Some(code) => char::from_u32(code),
    };
    let semicolon = usize::from(digits.as_bytes().get(end) == Some(&b';'));
    Some((
        character.unwrap_or(char::REPLACEMENT_CHARACTER),
        end + semicolon,
    ))
}

/// `value` as it is written between double quotes; the caller writes the quotes.
pub fn encode(value: &str) -> Cow<'_, str> {
    match value.contains('&') {
        true => value.replace('&', "&amp;").into(),
        false => value.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribute_entities_decode_like_browsers() {
        for (source, expected) in [
            ("a&amp;b&#38;c&#x26;d&e=1", "a&b&c&d&e=1"),
            ("?a=1&copy=2&copy2&copy", "?a=1&copy=2&copy2\u{a9}"),
            ("&lt;&gt;&quot;&apos;&QUOT", "<>\"'\""),
            (
                "&#128;&#0;&#xd800;&#x110000;&#99999999999;",
                "\u{20ac}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
            ("&#65&#x42C", "A\u{42c}"),
            ("&;&#;&#x;& &", "&;&#;&#x;& &"),
            ("&y&ampx", "&y&ampx"),
            ("&yuml;&nbsp.&not/", "\u{ff}\u{a0}.\u{ac}/"),
        ] {
            assert_eq!(decode(source).as_deref(), Some(expected), "{source}");
        }
    }

    #[test]
    fn unknown_entity_is_undecodable() {
        assert_eq!(decode("https:&sol;&sol;cdn.test"), None);
        assert_eq!(decode("&nothing;"), None);
    }

    #[test]
    fn encode_then_decode_is_identity() {
        for value in ["a&b", "&amp;", "&copy", "?a&b=\"c\"<'>", "\u{e4}&#38;"] {
            assert_eq!(decode(&encode(value)).as_deref(), Some(value));
        }
    }
}
