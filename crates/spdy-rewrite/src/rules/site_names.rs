//! The names of a site: complete ones, and wildcards, which match one label (`*.site.test`).

use crate::limits::MAX_LABEL_BYTES;
use crate::rules::host_name::HostPattern;

/// The domain below which the wildcard `name` is; `None` for a complete name.
#[must_use]
pub fn wildcard_domain(name: &str) -> Option<&str> {
    name.strip_prefix("*.")
}

/// `host`, in lower case, without its first label, if a wildcard can match that label. Anything else, such as a user before the host, is
/// not a label.
#[must_use]
pub fn domain_above(host: &str) -> Option<&str> {
    let (label, domain) = host.split_once('.')?;
    let is_of_label = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    let is_label = (1..=MAX_LABEL_BYTES).contains(&label.len()) && label.bytes().all(is_of_label);
    is_label.then_some(domain)
}

/// Whether the site name `name` matches `host`, which is in lower case.
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
/// Why it is not.
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
