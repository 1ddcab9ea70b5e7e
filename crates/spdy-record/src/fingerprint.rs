//! A hash of everything that a load fetched, to compare recordings of a page.
//!
//! It is of a set, and not of a list, because the order of responses depends on the network. Heads are omitted, because they contain
//! dates. So are the bodies of partial media (206): how many bytes a player reads before it requests another part depends on timing.

use std::collections::BTreeSet;
use std::fmt;

use sha2::{Digest, Sha256};
use spdy_page::replica::{Exchange, Kind, Replica};

/// A fetched resource.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct FetchedResource {
    /// The requested URL.
    pub url: String,
    /// The method of the request.
    pub method: String,
    /// The status of the response; 0 without a response.
    pub status: u16,
    /// SHA-256 of the body as transferred, in hexadecimal; that of an empty body without a response, and for partial media.
    pub body_sha256: String,
}

impl fmt::Display for FetchedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            url,
            method,
            status,
            body_sha256,
        } = self;
        write!(f, "{method} {url} {status} {}", &body_sha256[..12])
    }
}

/// Everything that a load fetched.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fingerprint {
    fetched: BTreeSet<FetchedResource>,
}

impl Fingerprint {
    /// The exchanges of `replica`, and its requests without a response.
    #[must_use]
    pub fn of(replica: &Replica) -> Self {
        Self::with_urls(replica, |exchange| exchange.url.to_string())
    }

    /// The same with `url_of` each exchange in place of its URL.
    #[must_use]
    pub fn with_urls(replica: &Replica, url_of: impl Fn(&Exchange) -> String) -> Self {
        let exchanges = replica.exchanges.iter().map(|exchange| FetchedResource {
            url: url_of(exchange),
            method: exchange.method.to_string(),
            status: exchange.status().unwrap_or(0),
            body_sha256: match (exchange.kind, exchange.status()) {
                (Kind::Media, Some(206)) => sha256(b""),
                _ => sha256(&exchange.body),
            },
        });
        let failures = replica.failures.iter().map(|failure| FetchedResource {
            url: failure.url.clone(),
            method: failure.method.clone(),
            status: 0,
            body_sha256: sha256(b""),
        });
        Self {
            fetched: exchanges.chain(failures).collect(),
        }
    }

    /// SHA-256 over the whole set, in hexadecimal.
    #[must_use]
    pub fn sha256(&self) -> String {
        let mut text = String::new();
        for fetched in &self.fetched {
            let FetchedResource {
                url,
                method,
                status,
                body_sha256,
            } = fetched;
            text.push_str(&format!("{method} {url} {status} {body_sha256}\n"));
        }
        sha256(text.as_bytes())
    }

    /// The resources of only this load, and those of only `other`.
    pub fn difference<'a>(
        &'a self,
        other: &'a Self,
    ) -> (Vec<&'a FetchedResource>, Vec<&'a FetchedResource>) {
        let only =
            |one: &'a Self, other: &'a Self| one.fetched.difference(&other.fetched).collect();
        (only(self, other), only(other, self))
    }
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_exchanges_changes_nothing_and_a_byte_of_a_body_does() {
        let replica = spdy_page::builtin::portal();
        let mut other = replica.clone();
        other.exchanges.reverse();
        let fingerprint = Fingerprint::of(&replica);
        assert_eq!(fingerprint, Fingerprint::of(&other));
        assert_eq!(fingerprint.sha256(), Fingerprint::of(&other).sha256());

        let body = [&replica.exchanges[0].body[..], b"x"].concat();
        other = replica;
        other.exchanges[0].body = body.into();
        other.exchanges.truncate(40);
        let changed = Fingerprint::of(&other);
        assert_ne!(fingerprint.sha256(), changed.sha256());
        let (only_first, only_second) = fingerprint.difference(&changed);
        assert_eq!((only_first.len(), only_second.len()), (5, 1));
        assert_eq!(only_second[0].url, "http://www.portal.test/");
    }

    #[test]
    fn the_bytes_of_partial_media_change_nothing_and_those_of_a_whole_file_do() {
        let with_media = |status: &str, parts: &[&'static str]| {
            let mut replica = spdy_page::builtin::portal();
            for part in parts {
                let url = "http://www.portal.test/v.mp4".parse().unwrap();
                let mut exchange = Exchange::synthetic(url, Kind::Media, "video/mp4", *part);
                let head = format!("HTTP/1.1 {status}\r\ncontent-type: video/mp4\r\n\r\n");
                exchange.response_head = head.into();
                replica.exchanges.push(exchange);
            }
            Fingerprint::of(&replica)
        };
        let part = "206 Partial Content";
        assert_eq!(
            with_media(part, &["one"]),
            with_media(part, &["other", "third"])
        );
        assert_ne!(
            with_media("200 OK", &["one"]),
            with_media("200 OK", &["other"])
        );
        assert_ne!(with_media(part, &["one"]), with_media(part, &[]));
    }
}
