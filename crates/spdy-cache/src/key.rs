//! The key under which responses are stored, as bytes that are compared and never parsed.
//!
//! ```text
//!  site 00 scheme 00 host 00 port 00 target 00 rules
//!  └──┬──┘                           │         └ tag of the rules that rewrote the body: other rules have other keys
//!     │                              └ as requested, never decoded, never normalized
//!     └ the owner: a site never gets a response that another site stored
//! ```
//!
//! No part can contain a zero byte, so different parts always make different keys. The [`Scope`] of a purge is a prefix of keys: a
//! site, an origin, a prefix of targets, or one target with any rules.

use std::fmt;

use bytes::Bytes;

/// The parts of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyParts<'a> {
    /// The site of the request.
    pub site: &'a str,
    /// `http` or `https`: the scheme of the resource, not of the client's connection.
    pub scheme: &'a str,
    /// Host of the resource, in lower case.
    pub host: &'a str,
    /// Port of the resource, also if it is the default.
    pub port: u16,
    /// Path and query, unchanged from the request.
    pub target: &'a str,
    /// Tag of the rules that rewrote the body; empty if it is not rewritten.
    pub rules: &'a str,
}

/// Identifies one URL of one site under one set of rules. `Vary` selects among the responses stored under it.
///
/// Cheap to clone. Ordered by bytes, so that all keys of a [`Scope`] are adjacent.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key(Bytes);

/// A part of a key contained a zero byte, which no host, target or configured name has.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the {0} of a cache key contains a zero byte")]
pub struct ZeroByte(&'static str);

impl Key {
    /// Builds the key of `parts`.
    ///
    /// # Errors
    ///
    /// [`ZeroByte`] if a part contains one: it could be read as two parts.
    pub fn new(parts: &KeyParts<'_>) -> Result<Self, ZeroByte> {
        let mut bytes = start(parts)?;
        bytes.extend_from_slice(checked("target", parts.target)?);
        bytes.push(0);
        bytes.extend_from_slice(checked("rules", parts.rules)?);
        Ok(Self(bytes.into_boxed_slice().into()))
    }

    /// The bytes, for a tier that names files or shards by them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key with these bytes, from [`as_bytes`](Self::as_bytes); `None` if they are not a valid key.
    #[must_use]
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        (bytes.iter().filter(|byte| **byte == 0).count() == ZEROS).then_some(Self(bytes))
    }

    /// The lower bound of the keys with a [`Scope::prefix`]; it is not a valid key itself.
    #[must_use]
    pub fn range_start(prefix: Bytes) -> Self {
        Self(prefix)
    }

    /// All parts except the rules: the bytes of [`Scope::Url`], which are the same for all variants and rules.
    #[must_use]
    pub fn url(&self) -> &[u8] {
        let end = self.0.iter().rposition(|byte| *byte == 0);
        &self.0[..end.map_or(self.0.len(), |at| at + 1)]
    }

    /// The first part: the site.
    #[must_use]
    pub fn site(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// The parts up to the port: the origin within the site.
    #[must_use]
    pub fn origin(&self) -> &[u8] {
        let mut zeros = self.0.iter().enumerate().filter(|(_, byte)| **byte == 0);
        &self.0[..zeros.nth(3).map_or(self.0.len(), |(at, _)| at)]
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0.escape_ascii())
    }
}

/// Number of zero bytes in a key.
const ZEROS: usize = 5;

/// The scope of a purge.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope<'a> {
    /// All responses of a site.
    Site(&'a str),
    /// All responses of one origin in a site: `site`, `scheme`, `host`, `port` of the parts.
    Origin(KeyParts<'a>),
    /// All responses of that origin whose target begins with `target`.
    Prefix(KeyParts<'a>),
    /// One URL: all variants, with any rules.
    Url(KeyParts<'a>),
}

impl Scope<'_> {
    /// The prefix of all keys of this scope, and of no other keys.
    ///
    /// # Errors
    ///
    /// [`ZeroByte`], as in [`Key::new`].
    pub fn prefix(&self) -> Result<Vec<u8>, ZeroByte> {
        match self {
            Self::Site(site) => {
                let mut bytes = checked("site", site)?.to_vec();
                bytes.push(0);
                Ok(bytes)
            }
            Self::Origin(at) => start(at),
            Self::Prefix(at) => {
                let mut bytes = start(at)?;
                bytes.extend_from_slice(checked("target", at.target)?);
                Ok(bytes)
            }
            Self::Url(at) => {
                let mut bytes = Self::Prefix(*at).prefix()?;
                bytes.push(0);
                Ok(bytes)
            }
        }
    }
}

/// Writes the parts up to the port. The capacity is exactly that of the whole key, so that it need not be reallocated.
fn start(parts: &KeyParts<'_>) -> Result<Vec<u8>, ZeroByte> {
    let named = [
        ("site", parts.site),
        ("scheme", parts.scheme),
        ("host", parts.host),
    ];
    let len: usize = named.iter().map(|(_, part)| part.len()).sum();
    let digits = parts.port.checked_ilog10().unwrap_or(0) as usize + 1;
    let room = len + digits + parts.target.len() + parts.rules.len() + ZEROS;
    let mut bytes = Vec::with_capacity(room);
    for (name, part) in named {
        bytes.extend_from_slice(checked(name, part)?);
        bytes.push(0);
    }
    push_digits(&mut bytes, parts.port);
    bytes.push(0);
    Ok(bytes)
}

/// Appends decimal digits. Every lookup builds a key, and `write!` would cost more than the rest of it.
fn push_digits(bytes: &mut Vec<u8>, number: u16) {
    if number >= 10 {
        push_digits(bytes, number / 10);
    }
    bytes.push(b'0' + (number % 10) as u8);
}

fn checked<'a>(name: &'static str, part: &'a str) -> Result<&'a [u8], ZeroByte> {
    match part.as_bytes().contains(&0) {
        true => Err(ZeroByte(name)),
        false => Ok(part.as_bytes()),
    }
}
