//! Cache directives: `Cache-Control` of requests and responses, and targeted fields (RFC 9111 §5.2, RFC 9213).
//!
//! A malformed directive is read in the stricter way. A lifetime that is not a number, or that two directives define differently,
//! is zero (encouraged by RFC 9111 §4.2.1), and a restriction applies in any spelling. Names are compared without case, and an
//! argument may be quoted or not.

use std::time::Duration;

use http::header::{CACHE_CONTROL, PRAGMA};
use http::{HeaderMap, HeaderName};

/// The longest lifetime, in seconds; larger values are reduced to it (RFC 9111 §1.2.2).
pub const MAX_SECONDS: u64 = 1 << 31;

/// The argument of a directive in seconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Seconds {
    /// The directive is absent.
    #[default]
    Absent,
    /// A number of seconds, at most [`MAX_SECONDS`].
    Value(u64),
    /// The argument is not a number; or there are two different ones.
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

    /// The value as a lifetime: an invalid one is zero.
    #[must_use]
    pub fn lifetime(self) -> Option<Duration> {
        match self {
            Self::Absent => None,
            Self::Value(seconds) => Some(Duration::from_secs(seconds)),
            Self::Unreadable => Some(Duration::ZERO),
        }
    }

    /// The value, if it is a valid number.
    #[must_use]
    pub fn value(self) -> Option<Duration> {
        match self {
            Self::Value(seconds) => Some(Duration::from_secs(seconds)),
            Self::Absent | Self::Unreadable => None,
        }
    }
}

/// The scope of `no-cache` and `private`, which may be limited to some fields.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub enum FieldScope {
    /// The directive is absent.
    #[default]
    None,
    /// Only these fields.
    Fields(Vec<HeaderName>),
    /// The whole response.
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
            // No valid field name: apply it to the whole response, to be safe.
            _ if named.is_empty() => *self = Self::All,
            Self::None => *self = Self::Fields(named),
            Self::Fields(fields) => fields.extend(named),
        }
    }

    /// True if it applies to the whole response.
    #[must_use]
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }

    /// The fields to which it applies, if it is not the whole response.
    #[must_use]
    pub fn fields(&self) -> &[HeaderName] {
        match self {
            Self::Fields(fields) => fields,
            Self::None | Self::All => &[],
        }
    }
}

/// The directives of a response for this cache.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ResponseControl {
    /// True if they are from a targeted field: `Cache-Control` and `Expires` are then not for this cache (RFC 9213 §2.2).
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
    /// Parses the directives in `headers`: the first of `targets` that is present and valid, otherwise `Cache-Control`.
    #[must_use]
    pub fn parse(headers: &HeaderMap, targets: &[HeaderName]) -> Self {
        targets
            .iter()
            .find_map(|target| Self::targeted(headers, target))
            .unwrap_or_else(|| Self::plain(headers))
    }

    /// Fields that are only for the first client, while the rest is for all (RFC 9111 §5.2.2.4, §5.2.2.7).
    pub fn private_fields(&self) -> impl Iterator<Item = &HeaderName> {
        let (private, no_cache) = (self.private.fields(), self.no_cache.fields());
        private.iter().chain(no_cache)
    }

    fn plain(headers: &HeaderMap) -> Self {
        let mut control = Self::default();
        for_each_directive(headers, |name, argument| control.add(name, argument));
        control
    }

    /// `None` if the field is missing, empty, or not a dictionary (RFC 9213 §2.1).
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
                // A negative number of seconds is ignored, like a value of another type.
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

    /// Sets the directive `name`, which is in lower case.
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

/// The cache directives of a request (RFC 9111 §5.2.1).
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
    /// RFC 9111 §5.2.1.2; without an argument, any age is accepted.
    pub max_stale: Seconds,
    /// RFC 5861 §4.
    pub stale_if_error: Seconds,
}

impl RequestControl {
    /// Parses the directives in the `headers` of a request.
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

/// The argument after the `=` of a directive.
#[derive(Clone, Copy, Debug)]
enum Argument<'a> {
    None,
    Text(&'a [u8]),
    /// There are spaces around the `=`, or the line has an unclosed quote.
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
            // An unclosed quote may hide a restriction: read the directives after it, but accept no numbers.
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

/// The content of a quoted string; `None` if `text` is not one.
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

/// Calls `each` with the parts of `line` between `separator`s outside quoted strings. If a quote is open at the end, returns
/// `false` without the last part.
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
