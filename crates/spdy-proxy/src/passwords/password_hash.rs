//! One hash of a password, as in a file of Apache's `htpasswd`.
//!
//! ```text
//! $2y$10$...           bcrypt            htpasswd -B
//! $5$...  $6$...       SHA-crypt         htpasswd -2, -5; openssl passwd -5, -6
//! {SHA}...             SHA-1, no salt    htpasswd -s
//! $apr1$...  $1$...    MD5               refused
//! ```

use std::fmt;

use data_encoding::BASE64;
use sha_crypt::{PasswordHashRef, PasswordVerifier, ShaCrypt};
use sha1::{Digest, Sha1};

use crate::token::constant_time_eq;

/// The highest cost of bcrypt: about a second of a CPU.
const MAX_BCRYPT_COST: u32 = 14;
/// The maximum number of rounds of SHA-crypt: about a second of a CPU.
const MAX_ROUNDS: u32 = 1_000_000;

/// One hash of a password. It is never printed.
#[derive(Clone)]
pub(crate) enum PasswordHash {
    Bcrypt(String),
    ShaCrypt(String),
    Sha1([u8; 20]),
}

/// Why a hash is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub(crate) enum UnsupportedHash {
    #[error("its hash is MD5, which is too fast to protect a password")]
    Md5,
    #[error("its hash is not valid")]
    Invalid,
    #[error("its bcrypt cost is more than {MAX_BCRYPT_COST}")]
    Cost,
    #[error("its hash has more than {MAX_ROUNDS} rounds")]
    Rounds,
    #[error("its password is not hashed, or by an unknown function")]
    Unknown,
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash")
    }
}

impl PasswordHash {
    /// The hash `text`.
    pub(crate) fn parse(text: &str) -> Result<Self, UnsupportedHash> {
        let is_any = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
        if is_any(&["$2y$", "$2b$", "$2a$"]) {
            let parts: Result<bcrypt::HashParts, _> = text.parse();
            let parts = parts.map_err(|_| UnsupportedHash::Invalid)?;
            return match parts.get_cost() {
                0..=MAX_BCRYPT_COST => Ok(Self::Bcrypt(text.to_owned())),
                _ => Err(UnsupportedHash::Cost),
            };
        }
        if is_any(&["$5$", "$6$"]) {
            PasswordHashRef::new(text).map_err(|_| UnsupportedHash::Invalid)?;
            let rounds = text
                .split('$')
                .find_map(|part| part.strip_prefix("rounds="));
            let rounds = rounds.map_or(Ok(0), str::parse::<u32>);
            return match rounds {
                Ok(0..=MAX_ROUNDS) => Ok(Self::ShaCrypt(text.to_owned())),
                Ok(_) => Err(UnsupportedHash::Rounds),
                Err(_) => Err(UnsupportedHash::Invalid),
            };
        }
        if let Some(encoded) = text.strip_prefix("{SHA}") {
            let digest = BASE64.decode(encoded.as_bytes()).ok();
            let digest = digest.and_then(|digest| digest.try_into().ok());
            return digest.map(Self::Sha1).ok_or(UnsupportedHash::Invalid);
        }
        match is_any(&["$apr1$", "$1$"]) {
            true => Err(UnsupportedHash::Md5),
            false => Err(UnsupportedHash::Unknown),
        }
    }

    /// Whether it takes microseconds, for any password.
    pub(crate) fn is_cheap(&self) -> bool {
        matches!(self, Self::Sha1(_))
    }

    /// Whether it is the hash of `password`. It takes as long for a wrong one as for the right one.
    pub(crate) fn verify(&self, password: &[u8]) -> bool {
        match self {
            Self::Bcrypt(hash) => bcrypt::verify(password, hash).unwrap_or(false),
            Self::ShaCrypt(hash) => ShaCrypt::default()
                .verify_password(password, hash.as_str())
                .is_ok(),
            Self::Sha1(hash) => constant_time_eq(hash, &Sha1::digest(password)),
        }
    }

    /// Its text, for a digest of it.
    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Bcrypt(hash) | Self::ShaCrypt(hash) => hash.as_bytes(),
            Self::Sha1(hash) => hash,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the password `secret`, by Python's bcrypt and hashlib, and by `openssl passwd -5` and `-6`.
    const HASHES: [&str; 4] = [
        "$2b$05$fPt4pBp/KDVTYaiUBDzZJ.Q8y.2T0iWP/PQzvSNdj6wAAOLO1TWbC",
        "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=",
        "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA",
        "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1",
    ];

    #[test]
    fn hashes_of_other_programs_match_their_password() {
        for text in HASHES {
            let hash = PasswordHash::parse(text).expect("a valid hash");
            assert!(hash.verify(b"secret"), "{text}");
            for wrong in [&b"secre"[..], b"", b"secret ", b"secret\0"] {
                assert!(!hash.verify(wrong), "{text}");
            }
        }
    }

    #[test]
    fn weak_expensive_and_invalid_hashes_are_refused() {
        for (text, expected) in [
            ("$apr1$abc$0123456789", UnsupportedHash::Md5),
            ("$1$abc$0123456789", UnsupportedHash::Md5),
            ("secret", UnsupportedHash::Unknown),
            ("", UnsupportedHash::Unknown),
            ("$2y$05$short", UnsupportedHash::Invalid),
            ("{SHA}AAAA", UnsupportedHash::Invalid),
            (
                &HASHES[0].replacen("$05$", "$15$", 1),
                UnsupportedHash::Cost,
            ),
            ("$6$rounds=1000001$salt$abc", UnsupportedHash::Rounds),
        ] {
            let refused = PasswordHash::parse(text).expect_err("it is refused");
            assert_eq!(refused, expected, "{text}");
        }
    }
}
