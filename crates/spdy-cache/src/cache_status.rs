//! `Cache-Status`: how a cache handled a request, for diagnosis (RFC 9211).
//!
//! ```text
//!  Cache-Status: spdy; hit; ttl=376
//!  Cache-Status: spdy; fwd=stale; fwd-status=304; stored; ttl=600
//!  Cache-Status: spdy; fwd=uri-miss; fwd-status=200; collapsed; detail=no-store
//! ```

use std::borrow::Cow;
use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

/// The name of the field.
pub static CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// Why a request was forwarded to the origin (RFC 9211 §2.2).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Forward {
    /// The cache was configured not to handle the request.
    Bypass,
    /// The method requires it.
    Method,
    /// Nothing was stored for the URI.
    UriMiss,
    /// The stored responses did not match by `Vary`.
    VaryMiss,
    /// No stored response could be used, without a more precise reason.
    Miss,
    /// The stored response was fresh, but the request required a fresher one.
    Request,
    /// The stored response was stale.
    Stale,
    /// The stored response was partial.
    Partial,
}

impl Forward {
    /// The token of the RFC.
    #[must_use]
    pub fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::VaryMiss => "vary-miss",
            Self::Miss => "miss",
            Self::Request => "request",
            Self::Stale => "stale",
            Self::Partial => "partial",
        }
    }
}

/// Initial capacity, enough for most members.
const USUAL_BYTES: usize = 48;

/// One cache's member of the field. It never contains the key, which reveals how sites are distinguished.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CacheStatus {
    cache: Cow<'static, str>,
    forward: Option<Forward>,
    forward_status: Option<StatusCode>,
    stored: bool,
    collapsed: bool,
    ttl: Option<i64>,
    detail: Option<String>,
}

impl CacheStatus {
    /// A hit in the cache `cache`: its name or that of its host.
    #[must_use]
    pub fn hit(cache: impl Into<Cow<'static, str>>) -> Self {
        Self {
            cache: cache.into(),
            ..Self::default()
        }
    }

    /// A request that was forwarded, with the reason.
    #[must_use]
    pub fn forwarded(cache: impl Into<Cow<'static, str>>, forward: Forward) -> Self {
        Self {
            forward: Some(forward),
            ..Self::hit(cache)
        }
    }

    /// Sets the status of the origin's response, if it differs from what the client gets (RFC 9211 §2.3).
    #[must_use]
    pub fn forward_status(mut self, status: StatusCode) -> Self {
        self.forward_status = Some(status);
        self
    }

    /// Sets the seconds for which the response stays fresh, negative if it is stale (RFC 9211 §2.4).
    #[must_use]
    pub fn ttl(mut self, seconds: i64) -> Self {
        self.ttl = Some(seconds);
        self
    }

    /// Sets that the origin's response was stored (RFC 9211 §2.5).
    #[must_use]
    pub fn stored(mut self, stored: bool) -> Self {
        self.stored = stored;
        self
    }

    /// Sets that the request was coalesced with another request (RFC 9211 §2.6).
    #[must_use]
    pub fn collapsed(mut self, collapsed: bool) -> Self {
        self.collapsed = collapsed;
        self
    }

    /// Sets a detail (RFC 9211 §2.8), without the characters that a structured string cannot contain.
    #[must_use]
    pub fn detail(mut self, detail: &str) -> Self {
        self.detail = Some(detail.to_owned());
        self
    }

    /// The member as a field value.
    #[must_use]
    pub fn value(&self) -> HeaderValue {
        let mut text = String::with_capacity(USUAL_BYTES);
        self.write(&mut text)
            .expect("writing to a String never fails");
        HeaderValue::try_from(text).expect("tokens and strings are ASCII")
    }

    /// Appends this member after those of caches nearer to the origin (RFC 9211 §2).
    pub fn append_to(&self, headers: &mut HeaderMap) {
        headers.append(CACHE_STATUS.clone(), self.value());
    }
}

impl fmt::Display for CacheStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f)
    }
}

impl CacheStatus {
    /// Written without `format!`, because each hit writes one, and `format!` costs more than the content.
    fn write(&self, to: &mut impl fmt::Write) -> fmt::Result {
        write_item(to, &self.cache)?;
        match self.forward {
            None => to.write_str("; hit")?,
            Some(forward) => {
                to.write_str("; fwd=")?;
                to.write_str(forward.token())?;
            }
        }
        if let (Some(status), Some(_)) = (&self.forward_status, self.forward) {
            to.write_str("; fwd-status=")?;
            to.write_str(status.as_str())?;
        }
        if let Some(seconds) = self.ttl {
            to.write_str("; ttl=")?;
            write_number(to, seconds)?;
        }
        for (name, _) in [("; stored", self.stored), ("; collapsed", self.collapsed)]
            .into_iter()
            .filter(|(_, is_set)| *is_set && self.forward.is_some())
        {
            to.write_str(name)?;
        }
        if let Some(detail) = &self.detail {
            to.write_str("; detail=")?;
            write_item(to, detail)?;
        }
        Ok(())
    }
}

fn write_number(to: &mut impl fmt::Write, number: i64) -> fmt::Result {
    if number < 0 {
        to.write_char('-')?;
    }
    write_digits(to, number.unsigned_abs())
}

fn write_digits(to: &mut impl fmt::Write, number: u64) -> fmt::Result {
    if number >= 10 {
        write_digits(to, number / 10)?;
    }
    to.write_char(char::from(b'0' + (number % 10) as u8))
}

/// Writes `text` as a token if it is one, otherwise as a string (RFC 9651 §3.3.3, §3.3.4).
fn write_item(f: &mut impl fmt::Write, text: &str) -> fmt::Result {
    let mut bytes = text.bytes();
    let starts = bytes
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == b'*');
    if starts
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte))
    {
        return f.write_str(text);
    }
    f.write_char('"')?;
    for char in text.chars().filter(|char| (' '..='~').contains(char)) {
        if matches!(char, '"' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(char)?;
    }
    f.write_char('"')
}
