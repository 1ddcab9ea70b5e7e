//! The key under which answers are stored, as bytes that are compared and never parsed again.
//!
//! ```text
//!  site 00 scheme 00 host 00 port 00 target 00 rules
//!  └──┬──┘                           │         └ tag of what rewrote the body: other rules find nothing of these
//!     │                              └ as it was asked, never decoded, never mended
//!     └ whose cache this is: no site finds what another stored
//! ```
//!
//! No part can hold a zero byte, so no two lists of parts read the same. What a purge names ([`Scope`]) is the
//! beginning of keys: a site, an origin, a prefix of targets, or one target under all rules.

use std::fmt;

use bytes::Bytes;

/// What a key is made of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct KeyParts<'a> {
    /// The site of the request.
    pub site: &'a str,
    /// `http` or `https`: the scheme of the resource, not of the client's connection.
    pub scheme: &'a str,
    /// Host of the resource, in lower case.
    pub host: &'a str,
    /// Port of the resource, the default one written out.
    pub port: u16,
    /// Path and query as they stood in the request.
    pub target: &'a str,
    /// Tag of the rules that rewrote the body; empty where nothing rewrites.
    pub rules: &'a str,
}

/// Names one URL of one site under one set of rules. `Vary` chooses among what is stored under it.
///
/// Cheap to clone. Ordered by bytes, so that all of a [`Scope`] stand together.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key(Bytes);

/// A part of a key held a zero byte, which no host, target or configured name has.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the {0} of a cache key contains a zero byte")]
pub struct ZeroByte(&'static str);

impl Key {
    /// Makes the key of `parts`.
    ///
    /// # Errors
    ///
    /// [`ZeroByte`] if a part holds one: it could be read as two parts.
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

    /// A key from bytes that [`as_bytes`](Self::as_bytes) gave; `None` if no key reads so.
    #[must_use]
    pub fn from_bytes(bytes: Bytes) -> Option<Self> {
        (bytes.iter().filter(|byte| **byte == 0).count() == ZEROS).then_some(Self(bytes))
    }

    /// Where the keys of a [`Scope::prefix`] begin in order: a bound of a range, and no key itself.
    #[must_use]
    pub fn range_start(prefix: Bytes) -> Self {
        Self(prefix)
    }

    /// All but the rules: the bytes of [`Scope::Url`], the same for all variants under whatever rules.
    #[must_use]
    pub fn url(&self) -> &[u8] {
        let end = self.0.iter().rposition(|byte| *byte == 0);
        &self.0[..end.map_or(self.0.len(), |at| at + 1)]
    }

    /// The part in front: the site.
    #[must_use]
    pub fn site(&self) -> &[u8] {
        self.0.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    /// The parts up to the port: the origin, seen from the site.
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

/// Zero bytes in a key.
const ZEROS: usize = 5;

/// What a purge is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scope<'a> {
    /// Everything of a site.
    Site(&'a str),
    /// Everything of one origin in a site: `site`, `scheme`, `host`, `port` of the parts.
    Origin(KeyParts<'a>),
    /// Every target that begins as `target` does, in that origin.
    Prefix(KeyParts<'a>),
    /// One URL: all variants, under whatever rules.
    Url(KeyParts<'a>),
}

impl Scope<'_> {
    /// The bytes with which every key of this scope begins, and no other.
    ///
    /// # Errors
    ///
    /// [`ZeroByte`] as for [`Key::new`].
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

/// Up to the port, with room for all of a key, and for no more: what is left over would have to be given back.
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

/// Every look into the cache makes a key: `write!` costs more than all else of it.
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
