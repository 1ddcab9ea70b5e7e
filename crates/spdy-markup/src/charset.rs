//! Finds the encoding of a page or a style sheet, as far as URLs depend on it: is ASCII certain, and is it UTF-8?
//!
//! Decoding keeps every byte: well-formed UTF-8 is decoded as UTF-8, and everything else as windows-1252, which has one
//! character for each of the 256 bytes. URLs are nearly always ASCII. The meaning of a URL
//! that is not ASCII is certain in UTF-8 only.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Bytes of a page in which a `meta` may state the encoding (HTML §13.2.3.2).
pub const PRESCAN_BYTES: usize = 1024;

/// How the bytes of a text may be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Charset {
    /// Not readable: ASCII characters are not encoded as their own bytes.
    Opaque,
    /// UTF-8.
    Utf8,
    /// One byte per character: ASCII bytes are certain.
    SingleByte,
    /// Several bytes per character, of which the later ones may be ASCII bytes.
    MultiByte,
}

impl Charset {
    fn of_encoding(encoding: &'static Encoding) -> Self {
        if !encoding.is_ascii_compatible() {
            Self::Opaque
        } else if encoding == UTF_8 {
            Self::Utf8
        } else if encoding.is_single_byte() {
            Self::SingleByte
        } else {
            Self::MultiByte
        }
    }

    fn of_label(label: &str) -> Option<Self> {
        Encoding::for_label(label.trim().as_bytes()).map(Self::of_encoding)
    }

    fn of_bom(bytes: &[u8]) -> Option<Self> {
        Encoding::for_bom(bytes).map(|(encoding, _)| Self::of_encoding(encoding))
    }

    /// How the bytes of a sheet may be read.
    pub fn of_stylesheet(bytes: &[u8], declared: Option<&str>) -> Self {
        Self::of_encoding(encoding_of_sheet(bytes, declared))
    }

    /// The encoding of a page by BOM and Content-Type, if they state it.
    pub fn of_page(bytes: &[u8], declared: Option<&str>) -> Option<Self> {
        Self::of_bom(bytes).or_else(|| declared.and_then(Self::of_label))
    }

    /// The encoding in a `meta` among the first bytes of a page; without one, the page is read byte for byte.
    pub fn of_meta(start: &[u8]) -> Self {
        let start = &start[..start.len().min(PRESCAN_BYTES)];
        Self::from_meta(start).unwrap_or(Self::SingleByte)
    }

    /// Like [`of_meta`](Self::of_meta) while more of the first bytes may follow: `None` until a complete tag states the encoding.
    pub fn of_whole_meta(start: &[u8]) -> Option<Self> {
        let start = &start[..start.len().min(PRESCAN_BYTES)];
        let end = start.iter().rposition(|byte| *byte == b'>')?;
        Self::from_meta(&start[..end])
    }

    fn from_meta(start: &[u8]) -> Option<Self> {
        let lower = start.to_ascii_lowercase();
        let mut from = 0;
        while let Some(at) = find(&lower[from..], b"charset") {
            from += at + b"charset".len();
            let tag = lower[..from]
                .iter()
                .rposition(|byte| *byte == b'<')
                .unwrap_or(0);
            if !lower[tag..].starts_with(b"<meta") {
                continue;
            }
            let rest = lower[from..].trim_ascii_start();
            let Some(rest) = rest.strip_prefix(b"=") else {
                continue;
            };
            let rest = rest.trim_ascii_start();
            let rest = rest
                .strip_prefix(b"\"")
                .or(rest.strip_prefix(b"'"))
                .unwrap_or(rest);
            let end = rest
                .iter()
                .position(|byte| !byte.is_ascii_alphanumeric() && !b"-_:.".contains(byte))
                .unwrap_or(rest.len());
            let label = String::from_utf8_lossy(&rest[..end]);
            if let Some(encoding) = Encoding::for_label(label.as_bytes()) {
                // A page that states in ASCII that it is UTF-16 is UTF-8 (HTML §13.2.3.2).
                let is_utf_16 = encoding.name().starts_with("UTF-16");
                return Some(match is_utf_16 {
                    true => Self::Utf8,
                    false => Self::of_encoding(encoding),
                });
            }
        }
        None
    }

    /// `bytes` as text from which [`encode`](Self::encode) makes the same bytes; `None` if ASCII is not certain.
    pub fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self {
            Self::Opaque => None,
            Self::MultiByte if !bytes.is_ascii() => None,
            Self::Utf8 => match std::str::from_utf8(bytes) {
                Ok(text) => Some(text.into()),
                // A page may still be processed; only its ASCII is certain.
                Err(_) => None,
            },
            Self::SingleByte | Self::MultiByte => Some(latin1_text(bytes)),
        }
    }

    /// The bytes of a text that [`decode`](Self::decode) returned and that was changed in ASCII only.
    pub fn encode(self, text: String) -> Vec<u8> {
        match self {
            Self::Utf8 => text.into_bytes(),
            _ => bytes_of(&text),
        }
    }

    /// The characters of an attribute value that was read byte for byte, as windows-1252; `None` if they are not certain.
    pub fn decode_attribute(self, value: &str) -> Option<Cow<'_, str>> {
        if value.is_ascii() {
            return Some(value.into());
        }
        match self {
            Self::Utf8 => String::from_utf8(bytes_of(value)).ok().map(Into::into),
            _ => None,
        }
    }

    /// The reverse of [`decode_attribute`](Self::decode_attribute).
    pub fn encode_attribute<'m>(self, meant: impl Into<Cow<'m, str>>) -> Cow<'m, str> {
        let meant = meant.into();
        match meant.is_ascii() {
            true => meant,
            false => latin1_text(meant.as_bytes()).into_owned().into(),
        }
    }
}

/// The encoding of a sheet (CSS Syntax §3.2): its BOM, its Content-Type, its `@charset`, or UTF-8.
pub fn encoding_of_sheet(bytes: &[u8], declared: Option<&str>) -> &'static Encoding {
    let rule = || {
        let rest = bytes.strip_prefix(b"@charset \"")?;
        let rest = &rest[..rest.len().min(PRESCAN_BYTES)];
        let end = rest.windows(2).position(|two| two == b"\";")?;
        let encoding = Encoding::for_label(&rest[..end])?;
        // A sheet that states in ASCII that it is UTF-16 is read as UTF-8.
        Some(match encoding.name().starts_with("UTF-16") {
            true => UTF_8,
            false => encoding,
        })
    };
    Encoding::for_bom(bytes)
        .map(|(encoding, _)| encoding)
        .or_else(|| Encoding::for_label(declared?.trim().as_bytes()))
        .or_else(rule)
        .unwrap_or(UTF_8)
}

/// One character for each byte.
fn latin1_text(bytes: &[u8]) -> Cow<'_, str> {
    WINDOWS_1252.decode_without_bom_handling(bytes).0
}

fn bytes_of(text: &str) -> Vec<u8> {
    WINDOWS_1252.encode(text).0.into_owned()
}

fn find(text: &[u8], mark: &[u8]) -> Option<usize> {
    text.windows(mark.len()).position(|window| window == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_round_trips_through_text() {
        let all: Vec<u8> = (0..=255).collect();
        let text = Charset::SingleByte.decode(&all).unwrap();
        assert_eq!(text.chars().count(), all.len());
        assert_eq!(Charset::SingleByte.encode(text.into_owned()), all);
        for unreadable in [Charset::Opaque, Charset::Utf8, Charset::MultiByte] {
            assert_eq!(unreadable.decode(&all), None, "{unreadable:?}");
        }
    }

    #[test]
    fn stylesheet_encoding_is_bom_then_declaration_then_rule() {
        for (bytes, declared, expected) in [
            (
                &b"\xef\xbb\xbf@charset \"koi8-r\";"[..],
                Some("shift_jis"),
                Charset::Utf8,
            ),
            (
                b"@charset \"koi8-r\";",
                Some("shift_jis"),
                Charset::MultiByte,
            ),
            (b"@charset \"koi8-r\";", Some("none"), Charset::SingleByte),
            (b"@charset \"utf-16\";", None, Charset::Utf8),
            (b"a{}", Some(" UTF-16 "), Charset::Opaque),
            (b"a{}", None, Charset::Utf8),
        ] {
            let found = Charset::of_stylesheet(bytes, declared);
            assert_eq!(found, expected, "{declared:?}");
        }
    }

    #[test]
    fn page_encoding_is_bom_then_declaration_or_meta() {
        let bom = b"\xff\xfe<\0";
        assert_eq!(Charset::of_page(bom, Some("utf-8")), Some(Charset::Opaque));
        assert_eq!(Charset::of_page(b"<p>", Some("utf-8")), Some(Charset::Utf8));
        assert_eq!(Charset::of_page(b"<p>", None), None);
        let meta =
            b"<p charset=koi8-r><META http-equiv=x content='text/html; charset = Shift_JIS'>";
        assert_eq!(Charset::of_meta(meta), Charset::MultiByte);
        assert_eq!(Charset::of_meta(b"<meta charset=utf-16>"), Charset::Utf8);
        assert_eq!(Charset::of_whole_meta(b"<p><meta charset=utf-8"), None);
        let late = [&b" ".repeat(PRESCAN_BYTES)[..], b"<meta charset=utf-8>"].concat();
        assert_eq!(Charset::of_meta(&late), Charset::SingleByte);
    }
}
