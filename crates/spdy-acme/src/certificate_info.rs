//! Reads a certificate: its validity and its names.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use spdy_net::tls::certificates::Identity;
use x509_parser::extensions::GeneralName;

use crate::error::AcmeError;

/// Minimum remaining validity of a new certificate: with less, one order would follow another.
pub const MIN_REMAINING: Duration = Duration::from_secs(5 * 60);
/// Maximum accepted validity: a certificate that is never renewed keeps its key for ever. Browsers accept 398 days, internal
/// authorities use more.
pub const MAX_LIFETIME: Duration = Duration::from_secs(3653 * 24 * 60 * 60);
/// How far in the future the validity may begin, because clocks differ.
pub const CLOCK_SKEW: Duration = Duration::from_secs(60 * 60);

/// The parts of a certificate that are needed here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateInfo {
    /// Begin and end of the validity (RFC 5280 §4.1.2.5).
    pub validity: Range<SystemTime>,
    /// Host names, in lower case.
    pub names: Vec<String>,
}

impl CertificateInfo {
    /// Reads `certificate`.
    ///
    /// # Errors
    ///
    /// It is not a certificate, or it ends before it begins.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, AcmeError> {
        let wrong = |reason: String| AcmeError::Certificate { reason };
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
            .map_err(|error| wrong(error.to_string()))?;
        let at = |seconds: i64| {
            let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
            UNIX_EPOCH + since
        };
        let validity = parsed.validity();
        let validity = at(validity.not_before.timestamp())..at(validity.not_after.timestamp());
        if validity.is_empty() {
            return Err(wrong(format!("valid from {}", format_validity(&validity))));
        }
        let names = parsed.subject_alternative_name();
        let names = names.map_err(|error| wrong(error.to_string()))?;
        let names = names
            .into_iter()
            .flat_map(|names| &names.value.general_names)
            .filter_map(|name| match name {
                GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
                _ => None,
            });
        Ok(Self {
            validity,
            names: names.collect(),
        })
    }

    /// Reads the leaf certificate of `identity`.
    ///
    /// # Errors
    ///
    /// The chain is empty, or as in [`of`](Self::of).
    pub fn parse_leaf(identity: &Identity) -> Result<Self, AcmeError> {
        let leaf = identity.chain.first();
        let leaf = leaf.ok_or_else(|| AcmeError::Certificate {
            reason: "the chain is empty".to_owned(),
        })?;
        Self::of(leaf)
    }

    /// Checks that the certificate can be served for `names` from `now` on.
    ///
    /// # Errors
    ///
    /// It has other names. It is not valid at `now`, with a tolerance of [`CLOCK_SKEW`], or for [`MIN_REMAINING`]
    /// after it. It is valid for more than [`MAX_LIFETIME`].
    pub fn check(&self, names: &[String], now: SystemTime) -> Result<(), AcmeError> {
        let Range { start, end } = self.validity;
        let reason = if !names.iter().all(|name| self.covers(name)) {
            let (expected, found) = (names.join(", "), self.names.join(", "));
            format!("expected a certificate for {expected}, found one for {found}")
        } else if start > now + CLOCK_SKEW || end < now + MIN_REMAINING {
            let (now, minutes) = (httpdate::fmt_http_date(now), MIN_REMAINING.as_secs() / 60);
            let found = format_validity(&self.validity);
            format!(
                "expected a certificate that is valid at {now} and {minutes} min longer, found validity from {found}"
            )
        } else if start + MAX_LIFETIME < end {
            let (days, found) = (
                MAX_LIFETIME.as_secs() / 86_400,
                format_validity(&self.validity),
            );
            format!("expected a validity of at most {days} days, found from {found}")
        } else {
            return Ok(());
        };
        Err(AcmeError::Certificate { reason })
    }

    /// True if it covers `name`, which may be a wildcard.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        let parent = name.split_once('.').map(|(_, parent)| parent);
        self.names.iter().any(|pattern| {
            let suffix = pattern.strip_prefix("*.");
            pattern == name || (suffix.is_some() && suffix == parent && !name.starts_with("*."))
        })
    }
}

/// Formats begin and end for messages.
fn format_validity(validity: &Range<SystemTime>) -> String {
    let [from, until] = [validity.start, validity.end].map(httpdate::fmt_http_date);
    format!("{from} until {until}")
}

#[cfg(test)]
mod tests {
    use spdy_net::tls::certificates::{KeyKind, LocalCa};

    use super::*;

    #[test]
    fn certificate_has_validity_and_names() {
        let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
        let from = UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let validity = from..from + Duration::from_secs(90 * 86_400);
        let names = ["a.test", "*.b.test"].map(str::to_owned);
        let here = [[127, 0, 0, 1].into()];
        let issued = ca.issue_for(&names, &here, validity.clone()).unwrap();
        let facts = CertificateInfo::of(&issued.chain[0]).unwrap();
        assert_eq!(facts.validity, validity);
        assert_eq!(facts.names, names);
        for (name, is_covered) in [
            ("a.test", true),
            ("c.b.test", true),
            ("*.b.test", true),
            ("b.test", false),
            ("d.c.b.test", false),
            ("*.c.b.test", false),
            ("c.test", false),
        ] {
            assert_eq!(facts.covers(name), is_covered, "{name}");
        }
        assert!(CertificateInfo::of(&CertificateDer::from(vec![0x30, 3, 2, 1, 1])).is_err());
    }
    #[test]
    fn certificate_times_are_limited() {
        let (second, now) = (Duration::from_secs(1), UNIX_EPOCH + CLOCK_SKEW * 500_000);
        let names = ["a.test".to_owned()];
        let fit = |validity: Range<SystemTime>| {
            let facts = CertificateInfo {
                validity,
                names: names.to_vec(),
            };
            match facts.check(&names, now) {
                Ok(()) => String::new(),
                Err(error) => error.to_string(),
            }
        };
        let (soon, late) = (now + MIN_REMAINING, now + MAX_LIFETIME);
        for good in [now - second..soon, now + CLOCK_SKEW..late, now..late] {
            assert_eq!(fit(good), "");
        }
        for (validity, expected) in [
            (now - second..soon - second, "valid at "),
            (now - MIN_REMAINING..now - second, "valid at "),
            (now + CLOCK_SKEW + second..late, "valid at "),
            (
                now..late + second,
                "expected a validity of at most 3653 days, found from ",
            ),
            (
                now..UNIX_EPOCH + 8000 * MAX_LIFETIME / 10,
                "at most 3653 days",
            ),
        ] {
            let message = fit(validity.clone());
            assert!(message.contains(expected), "{validity:?}: {message:?}");
        }
    }
}
