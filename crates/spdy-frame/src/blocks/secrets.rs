//! Which header values are private, and which of them may repeat.
//!
//! The values of a [list of names](crate::public_headers) are public. All other values are private: they are written as
//! literals, and nothing is ever matched with them. The private values of a few names are sent again with every request.
//! These are split into pieces, and a long piece may be written as one repetition of an equal piece of the same name and
//! host:
//!
//! ```text
//! cookie                 a=1; sid=9f86d081884c7d65          each crumb is a piece
//!                        ^^^  ^^^^^^^^^^^^^^^^^^^^
//! set-cookie             sid=9f86d081884c7d65; path=/       each cookie is a piece; its standard attributes are public,
//!                        ^^^^^^^^^^^^^^^^^^^^               except a path that is not `/`
//! authorization,         Bearer 4f1c2ab98e77d033            the value is a piece
//! proxy-authorization    ^^^^^^^^^^^^^^^^^^^^^^^
//! referer                https://a.test/s/9f86d081884c7d65  the value is a piece, and may only repeat the last one
//!                        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
//! ```
//!
//! docs/reference/public-headers.md has the reasons for these names, and why no other is among them.

use crate::blocks::public_headers;
use crate::blocks::value_history::HistoryReach;
use crate::version::Version;

/// Which header values are separated from all others, and whether they may repeat as a whole.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Secrets {
    /// Every value is public.
    none: bool,
    whole_matches: bool,
}

impl Default for Secrets {
    /// All values except those of the [public names](public_headers::is_public), with whole matches.
    fn default() -> Self {
        Self {
            none: false,
            whole_matches: true,
        }
    }
}

impl Secrets {
    /// Minimum length of a piece that may repeat, bytes. The name of a cookie, the scheme of an authorization and the origin
    /// (`https://a.test/`) of a referer do not count.
    ///
    /// 16 hexadecimal digits are 2^64 guesses, 16 decimal digits 2^53. A shorter value, such as `lang=en` or a PIN, could
    /// be found by trying all values.
    pub const MIN_WHOLE_BYTES: usize = 16;

    /// Every value is public, except those that a block marks
    /// ([`HeaderBlock::mark_secret`](crate::header_block::HeaderBlock::mark_secret)). Use it only if one party writes all
    /// headers.
    #[must_use]
    pub fn none() -> Self {
        Self {
            none: true,
            whole_matches: true,
        }
    }

    /// Whether a piece of `cookie`, `set-cookie`, `authorization`, `proxy-authorization` or `referer` may be written as a
    /// repetition of an equal one. Default `true`.
    ///
    /// A repetition reveals to an eavesdropper that the two are equal. To use that, an attacker must put a guess into the *same
    /// header for the same host*, and then learns only whether the whole guess is right. Pieces shorter than
    /// [`MIN_WHOLE_BYTES`](Self::MIN_WHOLE_BYTES) and values that a block marks never repeat. With `false` no private value
    /// repeats: each request then costs all bytes of its cookies.
    #[must_use]
    pub fn whole_matches(mut self, allowed: bool) -> Self {
        self.whole_matches = allowed;
        self
    }

    /// True if the whole `value` of the private header `name` (in lower case) may be written as a repetition of an equal value for
    /// the same host: one crumb of a cookie, one `set-cookie` without attributes, an authorization, or a referer. A referer may only
    /// repeat the last one. For compression formats other than SPDY's.
    #[must_use]
    pub fn may_repeat(&self, name: &[u8], value: &[u8]) -> bool {
        let Some(repeatable) = Repeatable::of(name).filter(|_| self.whole_matches) else {
            return false;
        };
        let mut is_one_long_piece = false;
        repeatable.runs(value, |run| {
            is_one_long_piece =
                matches!(run, Run::Piece(piece, true) if piece.len() == value.len());
        });
        is_one_long_piece
    }

    /// How the value of `name` is written; `None` if it is public.
    #[inline]
    pub(crate) fn rule(&self, version: Version, name: &[u8]) -> Option<Rule> {
        if self.none || public_headers::is_public(version, name) {
            return None;
        }
        let repeatable = Repeatable::of(name).filter(|_| self.whole_matches);
        Some(repeatable.map_or(Rule::Literal, Rule::Pieces))
    }
}

/// How a private value is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Rule {
    /// As literals, always.
    Literal,
    /// In pieces; a long one may repeat.
    Pieces(Repeatable),
}

/// The headers whose values may repeat as a whole. Pieces of different headers are never compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Repeatable {
    Cookie,
    SetCookie,
    Authorization,
    ProxyAuthorization,
    Referer,
}

impl Repeatable {
    fn of(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"cookie" => Self::Cookie,
            b"set-cookie" => Self::SetCookie,
            b"authorization" => Self::Authorization,
            b"proxy-authorization" => Self::ProxyAuthorization,
            b"referer" => Self::Referer,
            _ => return None,
        })
    }

    /// Which earlier pieces a piece may repeat.
    ///
    /// Even a long URL of a page can often be guessed, and the response to a guess does not reveal that another request had it. So a
    /// referer repeats only the last one for its host: an attacker has one guess for each request of the victim.
    pub(crate) fn reach(self) -> HistoryReach {
        match self {
            Self::Referer => HistoryReach::Last,
            _ => HistoryReach::All,
        }
    }

    /// Splits `value` into runs. Their concatenation is `value`.
    pub(crate) fn runs<'a>(self, value: &'a [u8], mut take: impl FnMut(Run<'a>)) {
        for (index, component) in value.split(|byte| *byte == 0).enumerate() {
            if index > 0 {
                take(Run::Public(b"\0"));
            }
            match self {
                Self::Cookie => crumbs(component, &mut take),
                Self::SetCookie => cookie_and_attributes(component, &mut take),
                Self::Authorization | Self::ProxyAuthorization => {
                    piece(component, after_first(component, b' '), &mut take);
                }
                Self::Referer => piece(component, after_origin(component), &mut take),
            }
        }
    }
}

/// One run of a private value.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Run<'a> {
    /// A separator, or an attribute of a cookie.
    Public(&'a [u8]),
    /// Private text, and whether it is long enough to repeat.
    Piece(&'a [u8], bool),
}

/// Splits a cookie into its crumbs and their separators.
fn crumbs<'a>(mut rest: &'a [u8], take: &mut impl FnMut(Run<'a>)) {
    while !rest.is_empty() {
        let (crumb, after) = split_where(rest, |byte| byte == b';');
        piece(crumb, after_first(crumb, b'='), take);
        let (separator, next) = split_where(after, |byte| !matches!(byte, b';' | b' '));
        public(separator, take);
        rest = next;
    }
}

/// Splits a `set-cookie` into the cookie and its attributes.
fn cookie_and_attributes<'a>(text: &'a [u8], take: &mut impl FnMut(Run<'a>)) {
    let (cookie, mut rest) = split_where(text, |byte| byte == b';');
    piece(cookie, after_first(cookie, b'='), take);
    while let Some((_, after)) = rest.split_first() {
        let (attribute, next) = split_where(after, |byte| byte == b';');
        if is_public_attribute(attribute) {
            public(&rest[..=attribute.len()], take);
        } else {
            public(&rest[..1], take);
            piece(attribute, b"", take);
        }
        rest = next;
    }
}

/// Whether an attribute of a cookie reveals nothing about its user: a date, an age, a flag, or the host. A path is part of a
/// URL, and an unknown attribute may be anything.
fn is_public_attribute(attribute: &[u8]) -> bool {
    let (name, value) = split_where(attribute, |byte| byte == b'=');
    match name.trim_ascii().to_ascii_lowercase().as_slice() {
        b"domain" | b"expires" | b"httponly" | b"max-age" | b"samesite" | b"secure" => true,
        b"path" => value == b"=/",
        _ => false,
    }
}

/// Private text that may repeat only if `secret_part`, the part that an attacker does not know, is long enough.
fn piece<'a>(text: &'a [u8], secret_part: &[u8], take: &mut impl FnMut(Run<'a>)) {
    if !text.is_empty() {
        take(Run::Piece(
            text,
            secret_part.len() >= Secrets::MIN_WHOLE_BYTES,
        ));
    }
}

fn public<'a>(text: &'a [u8], take: &mut impl FnMut(Run<'a>)) {
    if !text.is_empty() {
        take(Run::Public(text));
    }
}

/// Splits `text` before the first byte for which `ends` is true.
fn split_where(text: &[u8], ends: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let at = text.iter().position(|byte| ends(*byte));
    text.split_at(at.unwrap_or(text.len()))
}

/// The part of `text` after the first `separator`, or all of `text` if there is none.
fn after_first(text: &[u8], separator: u8) -> &[u8] {
    match text.iter().position(|byte| *byte == separator) {
        Some(at) => &text[at + 1..],
        None => text,
    }
}

/// What follows `scheme://authority/` in the URL `text`: the part of a referer that an attacker may not know. Empty if there is
/// no authority.
fn after_origin(text: &[u8]) -> &[u8] {
    let ends_part = |byte| matches!(byte, b'/' | b'?' | b'#');
    let (scheme, rest) = split_where(text, ends_part);
    match rest.strip_prefix(b"//") {
        Some(rest) if scheme.ends_with(b":") => {
            let (_authority, page) = split_where(rest, ends_part);
            page.get(1..).unwrap_or_default()
        }
        _ => b"",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces have `!` in front, those that may repeat `!!`.
    fn marked(name: Repeatable, value: &str) -> Vec<String> {
        let mut marked = Vec::new();
        name.runs(value.as_bytes(), |run| {
            let (mark, bytes) = match run {
                Run::Public(bytes) => ("", bytes),
                Run::Piece(bytes, true) => ("!!", bytes),
                Run::Piece(bytes, false) => ("!", bytes),
            };
            marked.push(format!("{mark}{}", bytes.escape_ascii()));
        });
        marked
    }

    #[test]
    fn each_crumb_of_a_cookie_is_a_piece_and_separators_are_public() {
        let value = "a=1; sid=9f86d081884c7d65;b\0; c=";
        let expected = [
            "!a=1",
            "; ",
            "!!sid=9f86d081884c7d65",
            ";",
            "!b",
            "\\x00",
            "; ",
            "!c=",
        ];
        assert_eq!(marked(Repeatable::Cookie, value), expected);
        assert_eq!(marked(Repeatable::Cookie, "; ;"), ["; ;"]);
    }

    #[test]
    fn standard_attributes_of_a_set_cookie_are_public_and_others_are_not() {
        let value = "sid=9f86d081884c7d65; path=/; Secure\0a=1\0b=2; path=/u/4711;x; httponly";
        let expected = [
            "!!sid=9f86d081884c7d65",
            "; path=/",
            "; Secure",
            "\\x00",
            "!a=1",
            "\\x00",
            "!b=2",
            ";",
            "! path=/u/4711",
            ";",
            "!x",
            "; httponly",
        ];
        assert_eq!(marked(Repeatable::SetCookie, value), expected);
    }

    #[test]
    fn names_and_schemes_do_not_make_a_piece_long() {
        for (name, value, expected) in [
            (Repeatable::Authorization, "Bearer 0123456789abcde", "!"),
            (Repeatable::Authorization, "Bearer 0123456789abcdef", "!!"),
            (Repeatable::Cookie, "a-very-long-name-for-a=short-one", "!"),
        ] {
            assert_eq!(marked(name, value), [format!("{expected}{value}")]);
        }
    }

    #[test]
    fn the_origin_of_a_referer_does_not_make_it_long() {
        for (referer, expected) in [
            ("https://a.test/inbox/4711", "!"),
            (
                "https://a-very-long-name.of-a-host.test:8443/123456789012345",
                "!",
            ),
            ("https://a.test/1234567890123456", "!!"),
            ("https://a.test/123456789012345", "!"),
            ("https://a.test/?q=1234567890123456", "!!"),
            ("https://a.test", "!"),
            ("https://a-very-long-name.of-a-host.test", "!"),
            ("https://a-very-long-name.of-a-host.test/", "!"),
            ("https://a-very-long-name.of-a-host.test?12345", "!"),
            ("https://a.test?1234567890123456", "!!"),
            ("https://a.test#1234567890123456", "!!"),
            ("//a-very-long-name.of-a-host.test/4711", "!"),
            // The authority ends at the first `/`.
            ("https://a.test/4711://1234567890123456", "!!"),
            ("a-very-long-name.of-a-host.test/12345", "!"),
            ("/4711?from=https://a.test/1234567890123456", "!"),
            ("about:blank", "!"),
        ] {
            let actual = marked(Repeatable::Referer, referer);
            assert_eq!(actual, [format!("{expected}{referer}")]);
        }
    }

    #[test]
    fn a_value_may_repeat_if_it_is_one_long_piece() {
        let may_repeat = |name: &str, value: &str| {
            Secrets::default().may_repeat(name.as_bytes(), value.as_bytes())
        };
        assert!(may_repeat("cookie", "sid=9f86d081884c7d65"));
        assert!(!may_repeat("cookie", "sid=9f86d081884c7d6"));
        assert!(!may_repeat("cookie", "a=1; sid=9f86d081884c7d65"));
        assert!(!may_repeat("cookie", "sid=9f86d081884c7d65; a=1"));
        assert!(!may_repeat("x-csrf-token", "9f86d081884c7d65"));
        let never = Secrets::default().whole_matches(false);
        assert!(!never.may_repeat(b"cookie", b"sid=9f86d081884c7d65"));
    }

    #[test]
    fn unlisted_headers_are_private_and_five_may_repeat() {
        let rule = |secrets: Secrets, name: &str| secrets.rule(Version::V31, name.as_bytes());
        for name in ["x-csrf-token", ":path", "location", "Cookie", "unheard-of"] {
            assert_eq!(
                rule(Secrets::default(), name),
                Some(Rule::Literal),
                "{name}"
            );
        }
        let cookie = Some(Rule::Pieces(Repeatable::Cookie));
        assert_eq!(rule(Secrets::default(), "cookie"), cookie);
        let strict = Secrets::default().whole_matches(false);
        assert_eq!(rule(strict, "cookie"), Some(Rule::Literal));
        assert_eq!(rule(Secrets::default(), "accept"), None);
        assert_eq!(rule(Secrets::none(), "cookie"), None);
    }
}
