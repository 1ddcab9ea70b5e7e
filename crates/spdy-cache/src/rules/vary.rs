//! Decides which requests a response matches, by `Vary` and the fields that it lists (RFC 9111 §4.1).
//!
//! The selecting fields of the request are stored unchanged and normalized. Another request matches the variant if each of these
//! fields is equal: first compared unchanged, which is cheap, then normalized:
//!
//! | field | differences that are ignored |
//! | --- | --- |
//! | `Accept-Language`, `-Encoding`, `-Charset` | case, spaces, the order of members with equal preference |
//! | `User-Agent`, `Cookie`, `Authorization`, `Referer`, `From` | nothing: a comma in them separates no list |
//! | every other | spaces about commas, and how the list was cut into lines |

use http::header::{
    ACCEPT_CHARSET, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, COOKIE, FROM, REFERER,
    USER_AGENT, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::rules::cache_control::split_unquoted;

/// The names that `Vary` lists, in lower case without duplicates. `None` if it contains `*` or an invalid name: such a response
/// matches no other request.
pub(crate) fn names(headers: &HeaderMap) -> Option<Vec<HeaderName>> {
    let mut names = Vec::new();
    for line in headers.get_all(VARY) {
        for name in line.as_bytes().split(|byte| *byte == b',') {
            let name = name.trim_ascii();
            if name.is_empty() {
                continue;
            }
            // `*` is a token, so it would be accepted as a name.
            let name = Some(name)
                .filter(|name| *name != b"*")
                .and_then(|name| HeaderName::from_bytes(name).ok())?;
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    Some(names)
}

/// One field of the request for which a response was stored. Two are equal if their values have the same meaning.
#[derive(Clone, Debug)]
pub(crate) struct SelectingField {
    pub(crate) name: HeaderName,
    /// The lines, unchanged.
    pub(crate) lines: Vec<HeaderValue>,
    normal: Vec<u8>,
}

impl PartialEq for SelectingField {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.is_named(), &self.normal)
            == (&other.name, other.is_named(), &other.normal)
    }
}

impl SelectingField {
    pub(crate) fn new(name: HeaderName, lines: Vec<HeaderValue>) -> Self {
        let normal = normal_form(&name, lines.iter());
        Self {
            name,
            lines,
            normal,
        }
    }

    pub(crate) fn of_request(name: HeaderName, headers: &HeaderMap) -> Self {
        let lines = headers.get_all(&name).iter().cloned().collect();
        Self::new(name, lines)
    }

    /// True if `headers` of another request have the same value.
    pub(crate) fn matches(&self, headers: &HeaderMap) -> bool {
        let lines = headers.get_all(&self.name);
        if lines.iter().eq(&self.lines) {
            return true;
        }
        // A missing field differs from an empty one.
        let present = lines.iter().next().is_some();
        present && self.is_named() && normal_form(&self.name, lines.iter()) == self.normal
    }

    /// True if the request had the field.
    pub(crate) fn is_named(&self) -> bool {
        !self.lines.is_empty()
    }

    pub(crate) fn normal_form(&self) -> &[u8] {
        &self.normal
    }

    /// Memory that it uses, bytes.
    pub(crate) fn weight(&self) -> usize {
        let lines: usize = self.lines.iter().map(HeaderValue::len).sum();
        self.name.as_str().len() + lines + self.normal.len() + size_of::<Self>()
    }
}

fn normal_form<'a>(name: &HeaderName, lines: impl Iterator<Item = &'a HeaderValue>) -> Vec<u8> {
    if [USER_AGENT, COOKIE, AUTHORIZATION, REFERER, FROM].contains(name) {
        return joined(lines.map(|line| line.as_bytes().to_vec()));
    }
    let mut members = Vec::new();
    for line in lines {
        let line = line.as_bytes();
        let before = members.len();
        if !split_unquoted(line, b',', |part| members.push(part.trim_ascii().to_vec())) {
            members.truncate(before);
            members.push(line.to_vec());
        }
    }
    if [ACCEPT_LANGUAGE, ACCEPT_ENCODING, ACCEPT_CHARSET].contains(name) {
        members = members.iter().map(|member| preference(member)).collect();
        members.sort();
        members.dedup();
    }
    joined(members.into_iter())
}

fn joined(members: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut all = Vec::new();
    for (at, member) in members.enumerate() {
        if at > 0 {
            all.push(b',');
        }
        all.extend_from_slice(&member);
    }
    all
}

/// Normalizes a member such as `de;q=0.5`. A `q` of 1 is removed, because it is the default.
fn preference(member: &[u8]) -> Vec<u8> {
    let lower = member.to_ascii_lowercase();
    let parts = lower.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    let significant = parts
        .filter(|part| ![&b"q=1"[..], b"q=1.", b"q=1.0", b"q=1.00", b"q=1.000"].contains(part));
    significant.collect::<Vec<_>>().join(&b';')
}
