//! Cache directives: `Cache-Control` of requests and answers, and targeted fields (RFC 9111 §5.2, RFC 9213).
//!
//! A malformed directive is read as the stricter one: a lifetime that is no number, or that two directives give
//! differently, is zero (RFC 9111 §4.2.1 encourages that), and a restriction counts however it is written. Names
//! are compared in any case; a quoted argument is as good as a bare one.

use std::time::Duration;

use http::header::{CACHE_CONTROL, PRAGMA};
use http::{HeaderMap, HeaderName};

/// The longest lifetime there is, in seconds: what overflows counts as this (RFC 9111 §1.2.2).
pub const MAX_SECONDS: u64 = 1 << 31;

/// A directive's argument of seconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Seconds {
    /// Not there.
    #[default]
    Absent,
    /// There, with a number; at most [`MAX_SECONDS`].
    Value(u64),
    /// There, and no number; or twice, with two of them.
    Unreadable,
}

impl Seconds {
    fn add(&mut self, other: Self) {
        *self = match *self {
            Self::Absent => other,
            same if same == other => same,
            _ => Self::Unreadable,
        };
    }

    /// A lifetime: what cannot be read is none left.
    #[must_use]
    pub fn lifetime(self) -> Option<Duration> {
        match self {
            Self::Absent => None,
            Self::Value(seconds) => Some(Duration::from_secs(seconds)),
            Self::Unreadable => Some(Duration::ZERO),
        }
    }

    /// A number, where one was given that can be read.
    #[must_use]
    pub fn value(self) -> Option<Duration> {
        match self {
            Self::Value(seconds) => Some(Duration::from_secs(seconds)),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

/// `no-cache` and `private`, which may be about some fields alone.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum FieldScope {
    /// Not there.
    #[default]
    None,
    /// The named fields.
    Fields(Vec<HeaderName>),
    /// The whole answer.
    All,
}

impl FieldScope {
    fn add(&mut self, argument: Option<&[u8]>) {
        let named: Vec<HeaderName> = argument
            .unwrap_or_default()
            .split(|byte| *byte == b',')
            .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
            .collect();
        match self {
            Self::All => {}
            // No name that can be read: all of it, to be safe.
            _ if named.is_empty() => *self = Self::All,
            Self::None => *self = Self::Fields(named),
            Self::Fields(fields) => fields.extend(named),
        }
    }

    /// Whether the whole answer is meant.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }

    /// The fields that are meant, if it is not the whole.
    #[must_use]
    pub fn fields(&self) -> &[HeaderName] {
        match self {
            Self::Fields(fields) => fields,
            Self::None | Self::All => &[],
        }
    }
}

/// The directives of an answer for this cache.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ResponseControl {
    /// True if they are from a targeted field: `Cache-Control` and `Expires` are then not for us (RFC 9213
    /// §2.2).
    pub targeted: bool,
    /// RFC 9111 §5.2.2.10.
    pub s_maxage: Seconds,
    /// RFC 9111 §5.2.2.1.
    pub max_age: Seconds,
    /// RFC 5861 §3.
    pub stale_while_revalidate: Seconds,
    /// RFC 5861 §4.
    pub stale_if_error: Seconds,
    /// RFC 9111 §5.2.2.4.
    pub no_cache: FieldScope,
    /// RFC 9111 §5.2.2.7.
    pub private: FieldScope,
    /// RFC 9111 §5.2.2.5.
    pub no_store: bool,
    /// RFC 9111 §5.2.2.9.
    pub public: bool,
    /// RFC 9111 §5.2.2.2.
    pub must_revalidate: bool,
    /// RFC 9111 §5.2.2.8.
    pub proxy_revalidate: bool,
    /// RFC 9111 §5.2.2.3.
    pub must_understand: bool,
    /// RFC 8246.
    pub immutable: bool,
}

impl ResponseControl {
    /// The directives in `headers`, by the first of `targets` that is present and valid, else by
    /// `Cache-Control`.
    #[must_use]
    pub fn parse(headers: &HeaderMap, targets: &[HeaderName]) -> Self {
        targets
            .iter()
            .find_map(|target| Self::targeted(headers, target))
            .unwrap_or_else(|| Self::plain(headers))
    }

    /// Fields that are only for the first client, where the rest is for all (RFC 9111 §5.2.2.4, §5.2.2.7).
    pub fn private_fields(&self) -> impl Iterator<Item = &HeaderName> {
        let (private, no_cache) = (self.private.fields(), self.no_cache.fields());
        private.iter().chain(no_cache)
    }

    fn plain(headers: &HeaderMap) -> Self {
        let mut control = Self::default();
        for_each_directive(headers, |name, argument| control.add(name, argument));
        control
    }

    /// `None` if there is no such field, or it is empty, or no dictionary (RFC 9213 §2.1).
    fn targeted(headers: &HeaderMap, target: &HeaderName) -> Option<Self> {
        let mut lines = headers.get_all(target).iter();
        let mut text = lines.next()?.as_bytes().to_vec();
        for line in lines {
            text.extend_from_slice(b", ");
            text.extend_from_slice(line.as_bytes());
        }
        let members: sfv::Dictionary = sfv::Parser::new(&text).parse().ok()?;
        if members.is_empty() {
            return None;
        }
        let mut control = Self {
            targeted: true,
            ..Self::default()
        };
        for (name, member) in &members {
            let sfv::ListEntry::Item(item) = member else {
                continue;
            };
            let value = &item.bare_item;
            if let Some(number) = value.as_integer() {
                // Seconds are never less than none; what is, is ignored like another type.
                if let Ok(seconds) = u64::try_from(i64::from(number)) {
                    let seconds = seconds.min(MAX_SECONDS).to_string();
                    control.add(name.as_str().as_bytes(), Argument::Text(seconds.as_bytes()));
                }
            } else if value.as_boolean() == Some(true) {
                control.add_flag(name.as_str().as_bytes(), None);
            } else if let Some(text) = value.as_string() {
                control.add_flag(name.as_str().as_bytes(), Some(text.as_str().as_bytes()));
            }
        }
        Some(control)
    }

    fn add(&mut self, name: &[u8], argument: Argument<'_>) {
        let lower = name.to_ascii_lowercase();
        let seconds = match &lower[..] {
            b"s-maxage" => &mut self.s_maxage,
            b"max-age" => &mut self.max_age,
            b"stale-while-revalidate" => &mut self.stale_while_revalidate,
            b"stale-if-error" => &mut self.stale_if_error,
            _ => return self.add_flag(&lower, argument.text()),
        };
        seconds.add(argument.seconds());
    }

    /// `name` in lower case.
    fn add_flag(&mut self, name: &[u8], argument: Option<&[u8]>) {
        match name {
            b"no-cache" => self.no_cache.add(argument),
            b"private" => self.private.add(argument),
            b"no-store" => self.no_store = true,
            b"public" => self.public = true,
            b"must-revalidate" => self.must_revalidate = true,
            b"proxy-revalidate" => self.proxy_revalidate = true,
            b"must-understand" => self.must_understand = true,
            b"immutable" => self.immutable = true,
            _ => {}
        }
    }
}

/// The directives of a request for caches (RFC 9111 §5.2.1).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RequestControl {
    /// RFC 9111 §5.2.1.4; also `Pragma: no-cache` without `Cache-Control` (§5.4).
    pub no_cache: bool,
    /// RFC 9111 §5.2.1.5.
    pub no_store: bool,
    /// RFC 9111 §5.2.1.7.
    pub only_if_cached: bool,
    /// RFC 9111 §5.2.1.1.
    pub max_age: Seconds,
    /// RFC 9111 §5.2.1.3.
    pub min_fresh: Seconds,
    /// RFC 9111 §5.2.1.2; without an argument, whatever age.
    pub max_stale: Seconds,
    /// RFC 5861 §4.
    pub stale_if_error: Seconds,
}

impl RequestControl {
    /// The directives in `headers` of a request.
    #[must_use]
    pub fn parse(headers: &HeaderMap) -> Self {
        let mut control = Self::default();
        if !headers.contains_key(CACHE_CONTROL) {
            control.no_cache = headers
                .get_all(PRAGMA)
                .iter()
                .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
                .any(|part| part.trim_ascii().eq_ignore_ascii_case(b"no-cache"));
            return control;
        }
        for_each_directive(headers, |name, argument| {
            match &name.to_ascii_lowercase()[..] {
                b"no-cache" => control.no_cache = true,
                b"no-store" => control.no_store = true,
                b"only-if-cached" => control.only_if_cached = true,
                b"max-age" => control.max_age.add(argument.seconds()),
                b"min-fresh" => control.min_fresh.add(argument.seconds()),
                b"stale-if-error" => control.stale_if_error.add(argument.seconds()),
                b"max-stale" => control.max_stale.add(match argument {
                    Argument::None => Seconds::Value(MAX_SECONDS),
                    argument => argument.seconds(),
                }),
                _ => {}
            }
        });
        control
    }
}

/// What stands behind the `=` of a directive.
#[derive(Clone, Copy, Debug)]
enum Argument<'a> {
    None,
    Text(&'a [u8]),
    /// Spaces about the `=`, or in a line with a quote that never closes.
    Malformed(&'a [u8]),
}

impl<'a> Argument<'a> {
    fn text(self) -> Option<&'a [u8]> {
        match self {
            Self::None => None,
            Self::Text(text) | Self::Malformed(text) => Some(text),
        }
    }

    fn seconds(self) -> Seconds {
        match self {
            Self::Text(text) if !text.is_empty() && text.iter().all(u8::is_ascii_digit) => {
                let sum = text.iter().fold(0u64, |sum, digit| {
                    sum.saturating_mul(10)
                        .saturating_add(u64::from(digit - b'0'))
                });
                Seconds::Value(sum.min(MAX_SECONDS))
            }
            _ => Seconds::Unreadable,
        }
    }
}

fn for_each_directive(headers: &HeaderMap, mut each: impl FnMut(&[u8], Argument<'_>)) {
    for line in headers.get_all(CACHE_CONTROL) {
        let line = line.as_bytes();
        let closed = split_unquoted(line, b',', |directive| {
            read_directive(directive, true, &mut each);
        });
        if !closed {
            // A quote that never closes may hide a restriction: look behind it, and believe no number.
            for directive in line.split(|byte| *byte == b',') {
                read_directive(directive, false, &mut each);
            }
        }
    }
}

fn read_directive(directive: &[u8], well_formed: bool, each: &mut impl FnMut(&[u8], Argument<'_>)) {
    let directive = directive.trim_ascii();
    let Some(equals) = directive.iter().position(|byte| *byte == b'=') else {
        if !directive.is_empty() {
            each(directive, Argument::None);
        }
        return;
    };
    let (name, argument) = (&directive[..equals], &directive[equals + 1..]);
    let tight = name.trim_ascii_end().len() == name.len()
        && argument.trim_ascii_start().len() == argument.len();
    let unquoted = unquote(argument.trim_ascii());
    let text = unquoted.as_deref().unwrap_or(argument);
    let argument = match tight && well_formed {
        true => Argument::Text(text),
        false => Argument::Malformed(text),
    };
    each(name.trim_ascii_end(), argument);
}

/// What stands in a quoted string; `None` if `text` is not one.
fn unquote(text: &[u8]) -> Option<Vec<u8>> {
    let inner = text.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let mut plain = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return None,
            b'\\' => plain.push(*bytes.next()?),
            byte => plain.push(*byte),
        }
    }
    Some(plain)
}

/// Hands on the parts of `line` between `separator`s that stand in no quoted string. `false`, and nothing of the
/// last part, if a quote is open at the end.
pub(crate) fn split_unquoted(line: &[u8], separator: u8, mut each: impl FnMut(&[u8])) -> bool {
    let (mut start, mut quoted, mut escaped) = (0, false, false);
    for (at, byte) in line.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            byte if *byte == separator && !quoted => {
                each(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !quoted {
        each(&line[start..]);
    }
    !quoted
}
