//! Subresource integrity: whether bytes are what a page pinned, and what it pins once they are rewritten.
//!
//! A moved resource whose bytes are untouched keeps its hash. A sheet's bytes may be rewritten, so a pinned sheet is
//! moved only when it is known what became of it: the host's bytes are checked against the page's hash first, and
//! the hash of the rewritten ones is written in its place. Where they do not match, the browser is left to find that
//! out. No hash is ever taken away.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256, Sha384, Sha512};
use url::Url;

/// The algorithms of integrity, the weakest first.
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

    fn digest(self, body: &[u8]) -> Vec<u8> {
        match self {
            Self::Sha256 => Sha256::digest(body).to_vec(),
            Self::Sha384 => Sha384::digest(body).to_vec(),
            Self::Sha512 => Sha512::digest(body).to_vec(),
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

/// Whether a browser would take `body` for what `metadata` pins; metadata without a known hash pins nothing.
pub fn matches(metadata: &str, body: &[u8]) -> bool {
    strongest(metadata).is_none_or(|(algorithm, hashes)| {
        let digest = algorithm.digest(body);
        hashes.iter().any(|hash| {
            // Both alphabets occur, and browsers take both.
            let plain = hash.replace('-', "+").replace('_', "/");
            STANDARD.decode(plain).is_ok_and(|hash| hash == digest)
        })
    })
}

/// Whether metadata pins anything.
pub fn pins(metadata: &str) -> bool {
    strongest(metadata).is_some()
}

/// What is known of a sheet that a page pins.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Pinned {
    /// It is what the page pins, and is served so.
    Untouched,
    /// It is what the page pins, and is served rewritten, with this hash.
    Rewritten(String),
    /// It is not at hand, or not what the page pins.
    Unknown,
}

/// Compares what came of a host with what the page pins, and says what the page must pin from now on.
pub fn pinned(metadata: &str, original: &[u8], served: &[u8]) -> Pinned {
    match strongest(metadata) {
        Some(_) if !matches(metadata, original) => Pinned::Unknown,
        Some((algorithm, _)) if original != served => {
            let (_, start) = Algorithm::ALL[algorithm as usize];
            Pinned::Rewritten(format!(
                "{start}{}",
                STANDARD.encode(algorithm.digest(served))
            ))
        }
        _ => Pinned::Untouched,
    }
}

/// Who has sheets at hand: the cache.
pub trait KnownSheets: Send + Sync {
    /// What is known of the sheet at `url`, which a page pins by `metadata`; see [`pinned`].
    fn pinned(&self, url: &Url, metadata: &str) -> Pinned;
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made by `printf hello | openssl dgst -sha256 -binary | base64`, and so on.
    const HELLO_256: &str = "sha256-LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=";

    #[test]
    fn the_strongest_hash_decides() {
        assert!(matches(HELLO_256, b"hello"));
        assert!(!matches(HELLO_256, b"hallo"));
        assert!(
            matches(&format!("sha256-AAAA {HELLO_256}?x"), b"hello"),
            "one of several"
        );
        assert!(
            !matches(&format!("{HELLO_256} sha512-AAAA"), b"hello"),
            "the stronger one is wrong"
        );
        assert!(
            matches("md5-AAAA", b"hello") && matches("", b"hello"),
            "nothing is pinned"
        );
        assert!(!pins("md5-AAAA") && pins(HELLO_256));
    }

    #[test]
    fn a_rewritten_sheet_is_pinned_anew_by_the_same_algorithm() {
        assert_eq!(pinned(HELLO_256, b"hello", b"hello"), Pinned::Untouched);
        assert_eq!(pinned(HELLO_256, b"forged", b"hello"), Pinned::Unknown);
        let Pinned::Rewritten(hash) = pinned(HELLO_256, b"hello", b"hello, moved") else {
            panic!("it was rewritten");
        };
        assert!(hash.starts_with("sha256-") && matches(&hash, b"hello, moved"));
    }
}
