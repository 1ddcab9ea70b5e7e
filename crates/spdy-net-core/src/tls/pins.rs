//! Public-key pins: `sha256//` and the base64 of the SHA-256 of a SubjectPublicKeyInfo (RFC 7469 §2.4).

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64;
use rustls::pki_types::CertificateDer;
use rustls::server::ParsedCertificate;
use sha2::{Digest, Sha256};

use crate::tls::error::TlsSetupError;

/// The prefix of a pin as text, as in curl.
const PREFIX: &str = "sha256//";

/// The SHA-256 of a public key. Renewing a certificate with the same key does not change it.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Pin([u8; 32]);

impl Pin {
    /// The pin of the key in `certificate`.
    ///
    /// # Errors
    ///
    /// The bytes are not a certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, rustls::Error> {
        let parsed = ParsedCertificate::try_from(certificate)?;
        Ok(Self(
            Sha256::digest(parsed.subject_public_key_info()).into(),
        ))
    }
}

impl FromStr for Pin {
    type Err = TlsSetupError;

    fn from_str(text: &str) -> Result<Self, TlsSetupError> {
        text.strip_prefix(PREFIX)
            .and_then(|base64| BASE64.decode(base64.as_bytes()).ok())
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| TlsSetupError::Pin(text.to_owned()))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", BASE64.encode(&self.0))
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_reads_back_as_it_is_written() {
        let pin = Pin([7; 32]);
        assert_eq!(pin.to_string().parse::<Pin>().unwrap(), pin);
    }

    #[test]
    fn an_invalid_pin_is_an_error() {
        let short = format!("sha256//{}", BASE64.encode(&[0; 31]));
        for text in ["", "sha256/AAAA", "sha1//AAAA", "sha256//!", &short] {
            assert!(text.parse::<Pin>().is_err(), "{text:?}");
        }
    }
}
