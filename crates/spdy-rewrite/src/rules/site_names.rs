//! The names of a site: complete ones, and wildcards, which stand for one label (`*.site.test`).

use crate::limits::MAX_LABEL_BYTES;
use crate::rules::host_name::HostPattern;

/// The domain below which the wildcard `name` is; `None` for a complete name.
#[must_use]
pub fn wildcard_domain(name: &str) -> Option<&str> {
    name.strip_prefix("*.")
}

/// `host`, in lower case, without its first label, if that is one that a wildcard may stand for. Anything else, such as a user before
/// the host, is no label.
#[must_use]
pub fn domain_above(host: &str) -> Option<&str> {
    let (label, domain) = host.split_once('.')?;
    let is_of_label = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    let is_label = (1..=MAX_LABEL_BYTES).contains(&label.len()) && label.bytes().all(is_of_label);
    is_label.then_some(domain)
}

/// Whether the site with the name `name` has `host`, in lower case, under it.
#[must_use]
pub fn matches(name: &str, host: &str) -> bool {
    match wildcard_domain(name) {
        Some(domain) => domain_above(host) == Some(domain),
        None => name == host,
    }
}

/// Checks that the wildcard `name` is below a domain of one owner.
///
/// # Errors
///
/// What is wrong.
pub fn check_wildcard(name: &str) -> Result<(), String> {
    HostPattern::parse(name).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_stands_for_one_valid_label() {
        let long = format!("{}.a.test", "x".repeat(MAX_LABEL_BYTES + 1));
        for (host, expected) in [
            ("b.a.test", true),
            ("xn--p1ai.a.test", true),
            ("a.test", false),
            (".a.test", false),
            ("c.b.a.test", false),
            ("user@b.a.test", false),
            ("user:pass@b.a.test", false),
            ("b%2e.a.test", false),
            ("*.a.test", false),
            ("b.a.test.", false),
            (&long, false),
        ] {
            assert_eq!(matches("*.a.test", host), expected, "{host}");
        }
        assert!(matches("a.test", "a.test") && !matches("a.test", "b.a.test"));
        assert!(check_wildcard("*.a.test").is_ok());
        assert!(check_wildcard("*.co.uk").is_err());
    }
}
