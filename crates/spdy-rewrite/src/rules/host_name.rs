//! Host names: their canonical form, patterns, and the names that no public host has.

use url::{Host, Url};

use crate::limits::{MAX_HOST_BYTES, MAX_LABEL_BYTES};
use crate::rules::refusal::Refusal;

/// Checks that `name` is a host name in canonical form: A-labels, lower case, no trailing dot, and not an address.
///
/// # Errors
///
/// [`Refusal::Address`] for an address in any spelling, [`Refusal::Host`] otherwise.
pub(crate) fn check(name: &str) -> Result<(), Refusal> {
    let wrong = || Refusal::Host {
        found: name.to_owned(),
    };
    // Brackets, and everything that the URL standard parses as an IPv4 address: 127.1, 0x7f000001, 2130706433.
    match Url::parse(&format!("http://{name}/")).map(|url| url.host().map(|host| host.to_owned())) {
        Ok(Some(Host::Ipv4(_) | Host::Ipv6(_))) => {
            return Err(Refusal::Address {
                found: name.to_owned(),
            });
        }
        Ok(Some(Host::Domain(canonical))) if canonical == name => {}
        _ => return Err(wrong()),
    }
    check_labels(name)
}

/// The same for a name from the URL standard's serialiser: rejects names that it allows but that no host has.
///
/// # Errors
///
/// [`Refusal::Host`].
pub(crate) fn check_labels(name: &str) -> Result<(), Refusal> {
    let is_label = |label: &str| {
        (1..=MAX_LABEL_BYTES).contains(&label.len())
            && label
                .bytes()
                .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'))
    };
    if name.len() <= MAX_HOST_BYTES && name.split('.').all(is_label) {
        Ok(())
    } else {
        Err(Refusal::Host {
            found: name.to_owned(),
        })
    }
}

/// Names of private hosts, never of public ones (RFC 6761, RFC 6762, RFC 7686, RFC 8375, ICANN's `internal`).
const PRIVATE: [&str; 8] = [
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "onion",
    "invalid",
    "home.arpa",
];

/// True if no public host has this name. The operator may list such a name; a page may not name one.
pub(crate) fn is_private(name: &str) -> bool {
    !name.contains('.') || PRIVATE.iter().any(|zone| is_in_zone(name, zone))
}

/// True if `name` is `zone` or below it.
pub(crate) fn is_in_zone(name: &str, zone: &str) -> bool {
    name.strip_suffix(zone)
        .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// True if `name` and all names below it have one owner: neither it nor a name below it is on the public suffix list, where anyone can
/// register.
pub(crate) fn has_one_owner(name: &str) -> bool {
    let is_public = |name: &str| psl2::lookup(name).is_none_or(|name| name.is_public_suffix());
    // `*.kawasaki.jp` is on the list, which makes `kawasaki.jp` itself a name like any other.
    !is_public(name) && !is_public(&format!("x.{name}"))
}

/// A host name, or all names with one more label (`*.cdn.test`), as in a certificate.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum HostPattern {
    /// This name only.
    Exact(String),
    /// Any single label below this name.
    Wildcard(String),
}

impl HostPattern {
    /// Parses a pattern of the operator; names that are not ASCII are converted to A-labels.
    ///
    /// # Errors
    ///
    /// The error, for the message about the configuration.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (wild, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        let canonical = match Host::parse(name) {
            Ok(Host::Domain(name)) => name,
            Ok(_) => return Err("expected a hostname, found an address".to_owned()),
            Err(fault) => return Err(fault.to_string()),
        };
        check(&canonical).map_err(|fault| fault.to_string())?;
        if !wild {
            return Ok(Self::Exact(canonical));
        }
        // `*.com` and `*.github.io` would match the hosts of many owners.
        match has_one_owner(&canonical) {
            true => Ok(Self::Wildcard(canonical)),
            false => Err(format!(
                "anyone can register a name under {canonical}: expected a wildcard below a domain of one owner"
            )),
        }
    }

    /// The name, or the parent domain of a wildcard.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Exact(name) | Self::Wildcard(name) => name,
        }
    }

    /// True if the pattern matches `host`.
    pub(crate) fn matches(&self, host: &str) -> bool {
        match self {
            Self::Exact(name) => name == host,
            Self::Wildcard(zone) => host
                .strip_suffix(zone.as_str())
                .and_then(|rest| rest.strip_suffix('.'))
                .is_some_and(|label| !label.is_empty() && !label.contains('.')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_name_has_one_canonical_form() {
        for good in ["a.test", "xn--bcher-kva.test", "a-b.c_d.test", "1.a.test"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for address in [
            "127.0.0.1",
            "127.1",
            "0x7f000001",
            "2130706433",
            "[::1]",
            "0177.0.0.1",
        ] {
            assert!(
                matches!(check(address), Err(Refusal::Address { .. })),
                "{address}"
            );
        }
        let long = format!("{}.test", "a".repeat(64));
        for bad in [
            "",
            ".",
            "A.test",
            "a.test.",
            "a..test",
            "b\u{fc}cher.test",
            "a b.test",
            &long,
            "a.test:1",
            "u@a.test",
        ] {
            assert!(
                matches!(check(bad), Err(Refusal::Host { .. })),
                "{bad}: {:?}",
                check(bad)
            );
        }
        let of_bytes = |len: usize| {
            format!(
                "{}.{}",
                vec!["abcdefg"; 31].join("."),
                "a".repeat(len - 248)
            )
        };
        assert_eq!(check(&of_bytes(253)), Ok(()));
        assert!(check(&of_bytes(254)).is_err());
    }

    #[test]
    fn wildcard_matches_one_label() {
        let pattern = HostPattern::parse("*.cdn.test").unwrap();
        assert!(pattern.matches("a.cdn.test"));
        for other in ["cdn.test", "a.b.cdn.test", "acdn.test", ".cdn.test"] {
            assert!(!pattern.matches(other), "{other}");
        }
        for bad in [
            "*.test",
            "*.co.uk",
            "*.github.io",
            "*",
            "*.*.cdn.test",
            "a.*.test",
            "*.10.0.0.1",
        ] {
            assert!(HostPattern::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(
            HostPattern::parse("B\u{dc}cher.test"),
            Ok(HostPattern::Exact("xn--bcher-kva.test".to_owned()))
        );
    }

    #[test]
    fn private_names_are_recognized() {
        for private in [
            "printer",
            "localhost",
            "a.localhost",
            "metadata.google.internal",
            "nas.local",
            "x.home.arpa",
        ] {
            assert!(is_private(private), "{private}");
        }
        for public in ["a.test", "notlocalhost.example", "internal.example"] {
            assert!(!is_private(public), "{public}");
        }
    }
}
