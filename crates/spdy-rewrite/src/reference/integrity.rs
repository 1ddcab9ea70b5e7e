//! Subresource integrity: checks bytes against the hash in a page, and computes the hash of the rewritten bytes.
//!
//! A proxied resource with unchanged bytes keeps its hash. A style sheet's bytes may be rewritten, so a pinned style sheet is
//! proxied only after its rewritten bytes were seen: the host's bytes are checked against the page's hash first, and that is
//! replaced by the hash of the rewritten bytes. If they do not match, the reference is unchanged, and the browser detects the
//! error. A hash is never removed.

use data_encoding::BASE64;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// The hash algorithms of integrity, the weakest first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Algorithm {
    Sha256,
    Sha384,
    Sha512,
}

impl Algorithm {
    const ALL: [(Self, &'static str); 3] = [
        (Self::Sha256, "sha256-"),
        (Self::Sha384, "sha384-"),
        (Self::Sha512, "sha512-"),
    ];
}

/// The digests of a body by all algorithms.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Digests {
    sha256: [u8; 32],
    sha384: [u8; 48],
    sha512: [u8; 64],
}

impl Digests {
    /// The digests of `body`, without its content coding.
    pub fn of(body: &[u8]) -> Self {
        Self {
            sha256: Sha256::digest(body).into(),
            sha384: Sha384::digest(body).into(),
            sha512: Sha512::digest(body).into(),
        }
    }

    /// The digests as one token, which [`parse_token`](Self::parse_token) parses.
    pub fn to_token(&self) -> String {
        let all: [&[u8]; 3] = [&self.sha256, &self.sha384, &self.sha512];
        BASE64.encode(&all.concat())
    }

    /// Parses a token of [`to_token`](Self::to_token); `None` if it is invalid.
    pub fn parse_token(word: &str) -> Option<Self> {
        let all = BASE64.decode(word.as_bytes()).ok()?;
        let (sha256, rest) = all.split_first_chunk()?;
        let (sha384, rest) = rest.split_first_chunk()?;
        Some(Self {
            sha256: *sha256,
            sha384: *sha384,
            sha512: rest.try_into().ok()?,
        })
    }

    fn by(&self, algorithm: Algorithm) -> &[u8] {
        match algorithm {
            Algorithm::Sha256 => &self.sha256,
            Algorithm::Sha384 => &self.sha384,
            Algorithm::Sha512 => &self.sha512,
        }
    }
}

/// The strongest hashes of `metadata`, as browsers choose them (SRI §3.3.4).
fn strongest(metadata: &str) -> Option<(Algorithm, Vec<&str>)> {
    let hashes: Vec<_> = metadata
        .split_ascii_whitespace()
        .filter_map(|hash| {
            let hash = hash.split('?').next().unwrap_or_default();
            Algorithm::ALL
                .iter()
                .find_map(|(algorithm, start)| Some((*algorithm, hash.strip_prefix(start)?)))
        })
        .collect();
    let best = hashes.iter().map(|(algorithm, _)| *algorithm).max()?;
    let of_best = hashes
        .into_iter()
        .filter(|(algorithm, _)| *algorithm == best);
    Some((best, of_best.map(|(_, hash)| hash).collect()))
}

/// True if a browser would accept the body for `metadata`; metadata without a supported hash accepts any body.
pub fn matches(metadata: &str, body: &Digests) -> bool {
    strongest(metadata).is_none_or(|(algorithm, hashes)| {
        let digest = body.by(algorithm);
        hashes.iter().any(|hash| {
            // Both base64 alphabets occur, and browsers accept both.
            let plain = hash.replace('-', "+").replace('_', "/");
            plain == BASE64.encode(digest)
        })
    })
}

/// True if metadata has a supported hash.
pub fn has_integrity(metadata: &str) -> bool {
    strongest(metadata).is_some()
}

/// The state of a sheet that a page pins.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum IntegrityState {
    /// It matches the hash, and is served unchanged.
    Unchanged,
    /// It matches the hash, and is served rewritten, with this new hash.
    Rewritten(String),
    /// It is not available, or does not match the hash.
    Unknown,
}

/// Compares the host's bytes with the page's pin, and returns what the page must pin from now on.
pub fn integrity_state(metadata: &str, original: &Digests, served: &Digests) -> IntegrityState {
    match strongest(metadata) {
        Some(_) if !matches(metadata, original) => IntegrityState::Unknown,
        Some((algorithm, _)) if original != served => {
            let (_, start) = Algorithm::ALL[algorithm as usize];
            IntegrityState::Rewritten(format!("{start}{}", BASE64.encode(served.by(algorithm))))
        }
        _ => IntegrityState::Unchanged,
    }
}

/// The last member of a query that requests a resource of the site unchanged from its origin.
const UNREWRITTEN_QUERY: &str = "spdy=off";

/// Adds the mark that requests a resource unchanged from its origin to `url`, a reference as written, unless it has the mark
/// already.
pub fn mark_unrewritten(url: &str) -> String {
    let (url, fragment) = url.split_at(url.find('#').unwrap_or(url.len()));
    if strip_unrewritten_mark(url).is_some() {
        return format!("{url}{fragment}");
    }
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{UNREWRITTEN_QUERY}{fragment}")
}

/// The target without that mark; `None` if `target` has none.
pub fn strip_unrewritten_mark(target: &str) -> Option<&str> {
    target
        .strip_suffix(UNREWRITTEN_QUERY)?
        .strip_suffix(['?', '&'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &[u8]) -> Digests {
        Digests::of(body)
    }

    // Made by `printf hello | openssl dgst -sha256 -binary | base64`, and so on.
    const HELLO_256: &str = "sha256-LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=";

    #[test]
    fn strongest_hash_decides() {
        assert!(matches(HELLO_256, &of(b"hello")));
        assert!(!matches(HELLO_256, &of(b"hallo")));
        assert!(
            matches(&format!("sha256-AAAA {HELLO_256}?x"), &of(b"hello")),
            "one of several"
        );
        assert!(
            !matches(&format!("{HELLO_256} sha512-AAAA"), &of(b"hello")),
            "the stronger one is wrong"
        );
        assert!(
            matches("md5-AAAA", &of(b"hello")) && matches("", &of(b"hello")),
            "nothing is pinned"
        );
        assert!(!has_integrity("md5-AAAA") && has_integrity(HELLO_256));
    }

    #[test]
    fn digests_round_trip() {
        let digests = of(b"hello");
        let word = digests.to_token();
        assert_eq!(Digests::parse_token(&word), Some(digests));
        for other in ["", "AAAA", "*", &word[4..], &[&word, "AAAA"].concat()] {
            assert_eq!(Digests::parse_token(other), None, "{other}");
        }
    }

    #[test]
    fn unrewritten_mark_goes_before_fragment_and_round_trips() {
        for (plain, marked) in [
            ("/a.css", "/a.css?spdy=off"),
            ("a.css?v=1", "a.css?v=1&spdy=off"),
            ("/?", "/?&spdy=off"),
        ] {
            assert_eq!(mark_unrewritten(plain), marked);
            assert_eq!(strip_unrewritten_mark(marked), Some(plain));
            assert_eq!(mark_unrewritten(marked), marked, "it was marked again");
        }
        for fragment in ["/a.css#x?y", "/a.css?spdy=off#x?y"] {
            assert_eq!(mark_unrewritten(fragment), "/a.css?spdy=off#x?y");
        }
        for other in ["/a.css", "/spdy=off", "/a?xspdy=off", "/a?spdy=off&v=1"] {
            assert_eq!(strip_unrewritten_mark(other), None, "{other}");
        }
    }

    #[test]
    fn rewritten_stylesheet_is_pinned_with_same_algorithm() {
        assert_eq!(
            integrity_state(HELLO_256, &of(b"hello"), &of(b"hello")),
            IntegrityState::Unchanged
        );
        assert_eq!(
            integrity_state(HELLO_256, &of(b"forged"), &of(b"hello")),
            IntegrityState::Unknown
        );
        let IntegrityState::Rewritten(hash) =
            integrity_state(HELLO_256, &of(b"hello"), &of(b"hello, moved"))
        else {
            panic!("it was rewritten");
        };
        assert!(hash.starts_with("sha256-") && matches(&hash, &of(b"hello, moved")));
    }
}
