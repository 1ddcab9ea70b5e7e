//! What a certificate says: until when it is valid, and for which names.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;

use crate::error::AcmeError;

/// What stands in a certificate, as far as it matters here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Facts {
    /// From when, and until when (RFC 5280 §4.1.2.5).
    pub validity: Range<SystemTime>,
    /// The names of hosts, in lower case.
    pub names: Vec<String>,
}

impl Facts {
    /// Reads `certificate`.
    ///
    /// # Errors
    ///
    /// It is none, or says that it ends before it begins.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, AcmeError> {
        let wrong = |why: String| AcmeError::Certificate { why };
        let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
            .map_err(|error| wrong(error.to_string()))?;
        let at = |seconds: i64| {
            let since = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
            UNIX_EPOCH + since
        };
        let validity = parsed.validity();
        let validity = at(validity.not_before.timestamp())..at(validity.not_after.timestamp());
        if validity.is_empty() {
            return Err(wrong(format!("valid from {}", shown(&validity))));
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

    /// Whether it is good for `name`, which may be a wildcard itself.
    #[must_use]
    pub fn covers(&self, name: &str) -> bool {
        let parent = name.split_once('.').map(|(_, parent)| parent);
        self.names.iter().any(|known| {
            let wild = known.strip_prefix("*.");
            known == name || (wild.is_some() && wild == parent && !name.starts_with("*."))
        })
    }
}

/// Both ends, for people.
pub(crate) fn shown(validity: &Range<SystemTime>) -> String {
    let [from, until] = [validity.start, validity.end].map(httpdate::fmt_http_date);
    format!("{from} until {until}")
}

#[cfg(test)]
mod tests {
    use spdy_net::certificates::{KeyKind, LocalCa};

    use super::*;

    #[test]
    fn a_certificate_says_until_when_and_for_whom() {
        let ca = LocalCa::generate(KeyKind::EcdsaP256).unwrap();
        let from = UNIX_EPOCH + Duration::from_secs(1_795_000_000);
        let validity = from..from + Duration::from_secs(90 * 86_400);
        let names = ["a.test", "*.b.test"].map(str::to_owned);
        let here = [[127, 0, 0, 1].into()];
        let issued = ca.issue_for(&names, &here, validity.clone()).unwrap();
        let facts = Facts::of(&issued.chain[0]).unwrap();
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
        assert!(Facts::of(&CertificateDer::from(vec![0x30, 3, 2, 1, 1])).is_err());
    }
}
