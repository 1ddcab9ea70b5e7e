//! Signs and verifies capabilities: words in moved URLs that only the site's own rewriter can write.
//!
//! ```text
//!  k <kid> <24 characters>      this origin, for this site
//!  u <kid> <24 characters>      this URL, for this site
//!
//!  HMAC-SHA-256( "spdy-accel/1" 0 site 0 s|p 0 host 0 port [ 0 path?query ] )
//!  its first 144 bits, in base64url: 24 characters without padding
//! ```
//!
//! No field contains a NUL, so different subjects have different messages, and a message with a path is never that of a `k`. Only the
//! rewriter makes capabilities: no interface returns one. The name of the key (`kid`) is not part of the message, and another version of
//! this program may name the same key differently. So a capability is valid if any live key verifies it.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::rules::refusal::Refusal;

/// Bytes of the HMAC that are used as the code.
const CODE_BYTES: usize = 18;
/// Characters of the code in a URL.
const CODE_CHARS: usize = 24;
/// The possible names of a key.
const KEY_ID_CHARS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What a capability allows to fetch, and for which site.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Subject<'a> {
    pub(crate) site: &'a str,
    /// `s` for https, `p` for http.
    pub(crate) scheme: char,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    /// Path and query, if the capability is for one URL; `None` if it is for the whole origin.
    pub(crate) target: Option<&'a str>,
}

/// A secret, with the letter or digit that names it in URLs.
#[derive(Clone)]
pub struct Key {
    kid: char,
    mac: Hmac<Sha256>,
}

/// A name or secret that no key can have.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeyError {
    /// The name is not one ASCII letter or digit.
    #[error("key name is \"{0}\", expected one ASCII letter or digit")]
    Name(char),
    /// The secret is so short that it could be guessed.
    #[error(
        "secret has {found} bytes, expected at least {}",
        Key::MIN_SECRET_BYTES
    )]
    Short {
        /// Bytes of the secret.
        found: usize,
    },
}

impl Key {
    /// Smallest secret, bytes.
    pub const MIN_SECRET_BYTES: usize = 32;

    /// Creates the key with the name `kid`.
    ///
    /// # Errors
    ///
    /// [`KeyError`] for a name that is not one letter or digit, or a secret shorter than
    /// [`MIN_SECRET_BYTES`](Self::MIN_SECRET_BYTES).
    pub fn new(kid: char, secret: &[u8]) -> Result<Self, KeyError> {
        if !kid.is_ascii_alphanumeric() {
            return Err(KeyError::Name(kid));
        }
        if secret.len() < Self::MIN_SECRET_BYTES {
            return Err(KeyError::Short {
                found: secret.len(),
            });
        }
        let mac = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        Ok(Self { kid, mac })
    }

    /// Creates a key whose name is derived from the secret, so that it is the same on every server. The name does not identify the secret:
    /// two different secrets have the same name with a probability of about 1 in 62.
    ///
    /// # Errors
    ///
    /// [`KeyError::Short`].
    pub fn from_secret(secret: &[u8]) -> Result<Self, KeyError> {
        let unnamed = Self::new('0', secret)?;
        let mut mac = unnamed.mac.clone();
        mac.update(b"spdy-accel/1 kid");
        let digest = mac.finalize().into_bytes();
        let kid = char::from(KEY_ID_CHARS[usize::from(digest[0]) % KEY_ID_CHARS.len()]);
        Ok(Self { kid, ..unnamed })
    }

    /// The key's name.
    pub fn kid(&self) -> char {
        self.kid
    }

    /// The HMAC of a capability for `subject`.
    fn mac(&self, subject: Subject<'_>) -> Hmac<Sha256> {
        self.mac_of(b"spdy-accel/1\0", subject)
    }

    /// The HMAC of `subject` for `purpose`, so that a code for one purpose is not valid for another.
    fn mac_of(&self, purpose: &[u8], subject: Subject<'_>) -> Hmac<Sha256> {
        let mut mac = self.mac.clone();
        mac.update(purpose);
        mac.update(subject.site.as_bytes());
        mac.update(&[0, subject.scheme as u8, 0]);
        mac.update(subject.host.as_bytes());
        mac.update(b"\0");
        mac.update(subject.port.to_string().as_bytes());
        if let Some(target) = subject.target {
            mac.update(b"\0");
            mac.update(target.as_bytes());
        }
        mac
    }
}

/// Prints the name only, because the secret must not appear in logs.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.kid).finish()
    }
}

/// The key that signs capabilities, and the previous one, whose capabilities are still in stored pages.
#[derive(Clone, Debug)]
pub struct Keys {
    current: Key,
    previous: Option<Key>,
}

impl Keys {
    /// Creates the keys. `previous` is needed as long as caches store pages with its capabilities. Both may have the same name.
    pub fn new(current: Key, previous: Option<Key>) -> Self {
        Self { current, previous }
    }

    /// Creates the keys from their secrets ([`Key::from_secret`]).
    ///
    /// # Errors
    ///
    /// [`KeyError::Short`].
    pub fn from_secrets(current: &[u8], previous: Option<&[u8]>) -> Result<Self, KeyError> {
        let previous = previous.map(Key::from_secret).transpose()?;
        Ok(Self::new(Key::from_secret(current)?, previous))
    }

    /// The live keys, the current one first.
    fn live(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.previous)
    }

    /// The names of the live keys, the current one first.
    pub fn kids(&self) -> impl Iterator<Item = char> {
        self.live().map(Key::kid)
    }

    /// Bytes that identify the current key, and reveal nothing of its secret.
    pub(crate) fn fingerprint(&self) -> Vec<u8> {
        let mut mac = self.current.mac.clone();
        mac.update(b"spdy-accel/1 fingerprint");
        let mut bytes = mac.finalize().into_bytes().to_vec();
        bytes.push(self.current.kid as u8);
        bytes
    }

    /// The codes whose first characters are the label of a host alias (`rules/host_aliases.rs`), that of the current key first.
    pub(crate) fn name_codes<'k>(
        &'k self,
        subject: Subject<'k>,
    ) -> impl Iterator<Item = [u8; 32]> + 'k {
        let code = move |key: &Key| key.mac_of(b"spdy-accel/1 name\0", subject).finalize();
        self.live().map(move |key| code(key).into_bytes().into())
    }

    /// Makes the capability for `subject` with the current key.
    pub(crate) fn sign(&self, subject: Subject<'_>) -> String {
        let mac = self.current.mac(subject).finalize().into_bytes();
        let scope = if subject.target.is_some() { 'u' } else { 'k' };
        let code = BASE64URL_NOPAD.encode(&mac[..CODE_BYTES]);
        format!("{scope}{}{code}", self.current.kid)
    }

    /// Verifies that a live key signed `word` for `subject`. The comparison takes constant time, so it does not reveal how much of a forged
    /// code is right.
    ///
    /// # Errors
    ///
    /// [`Refusal::CapabilityForm`], [`Refusal::UnknownKey`] or [`Refusal::InvalidCapability`].
    pub(crate) fn verify(&self, word: &str, subject: Subject<'_>) -> Result<(), Refusal> {
        let mut letters = word.chars();
        let scope = letters.next();
        let kid = letters.next().ok_or(Refusal::CapabilityForm)?;
        let code = letters.as_str();
        let expected = if subject.target.is_some() { 'u' } else { 'k' };
        if scope != Some(expected) || !kid.is_ascii_alphanumeric() || code.len() != CODE_CHARS {
            return Err(Refusal::CapabilityForm);
        }
        // 24 characters encode 144 bits without spare bits, so a code has only one spelling.
        let code = BASE64URL_NOPAD
            .decode(code.as_bytes())
            .map_err(|_| Refusal::CapabilityForm)?;
        let verifies = |key: &Key| key.mac(subject).verify_truncated_left(&code).is_ok();
        if self.live().any(verifies) {
            return Ok(());
        }
        Err(match self.kids().any(|live| live == kid) {
            true => Refusal::InvalidCapability { place: None },
            false => Refusal::UnknownKey { kid },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kid: char, fill: u8) -> Key {
        Key::new(kid, &[fill; 32]).unwrap()
    }

    const FORGED: Refusal = Refusal::InvalidCapability { place: None };

    const SUBJECT: Subject<'_> = Subject {
        site: "https://www.site.test",
        scheme: 's',
        host: "cdn.test",
        port: 443,
        target: None,
    };

    #[test]
    fn capability_is_bound_to_site_scheme_host_port_and_scope() {
        let keys = Keys::new(key('a', 1), None);
        let word = keys.sign(SUBJECT);
        assert_eq!(word.len(), 26);
        assert_eq!(keys.verify(&word, SUBJECT), Ok(()));
        let others = [
            Subject {
                site: "https://www.other.test",
                ..SUBJECT
            },
            Subject {
                scheme: 'p',
                ..SUBJECT
            },
            Subject {
                host: "cdn2.test",
                ..SUBJECT
            },
            Subject {
                port: 8443,
                ..SUBJECT
            },
        ];
        for other in others {
            assert_eq!(keys.verify(&word, other), Err(FORGED), "{other:?}");
        }
        let exact = Subject {
            target: Some("/a.js"),
            ..SUBJECT
        };
        assert_eq!(keys.verify(&word, exact), Err(Refusal::CapabilityForm));
        let renamed = word.replacen('k', "u", 1);
        assert_eq!(keys.verify(&renamed, exact), Err(FORGED));
        let exact_word = keys.sign(exact);
        let other = Subject {
            target: Some("/b.js"),
            ..SUBJECT
        };
        assert_eq!(keys.verify(&exact_word, exact), Ok(()));
        assert_eq!(keys.verify(&exact_word, other), Err(FORGED));
    }

    #[test]
    fn flipped_bit_invalidates_capability() {
        let keys = Keys::new(key('a', 1), None);
        let word = keys.sign(SUBJECT);
        let code = BASE64URL_NOPAD.decode(&word.as_bytes()[2..]).unwrap();
        for bit in 0..code.len() * 8 {
            let mut code = code.clone();
            code[bit / 8] ^= 1 << (bit % 8);
            let word = format!("ka{}", BASE64URL_NOPAD.encode(&code));
            assert_eq!(keys.verify(&word, SUBJECT), Err(FORGED), "bit {bit}");
        }
    }

    #[test]
    fn previous_key_verifies_and_removed_key_does_not() {
        let old = Keys::new(key('a', 1), None).sign(SUBJECT);
        let rolled = Keys::new(key('b', 2), Some(key('a', 1)));
        assert_eq!(rolled.verify(&old, SUBJECT), Ok(()));
        assert!(rolled.sign(SUBJECT).starts_with("kb"));
        let after = Keys::new(key('c', 3), Some(key('b', 2)));
        assert_eq!(
            after.verify(&old, SUBJECT),
            Err(Refusal::UnknownKey { kid: 'a' })
        );
        let other_secret = Keys::new(key('a', 9), None);
        assert_eq!(other_secret.verify(&old, SUBJECT), Err(FORGED));
    }

    #[test]
    fn key_id_derives_from_secret_and_verifies_under_any_id() {
        let of = |fill| Key::from_secret(&[fill; 32]).unwrap();
        assert_eq!(of(1).kid(), of(1).kid());
        let names: std::collections::BTreeSet<char> =
            (0..=255).map(|fill| of(fill).kid()).collect();
        assert!(names.len() > 50, "{names:?}");
        let namesake = (2..=255)
            .find(|&fill| of(fill).kid() == of(1).kid())
            .unwrap();
        for fill in [2, namesake] {
            let [old, new] = [[1; 32], [fill; 32]];
            let word = Keys::from_secrets(&old, None).unwrap().sign(SUBJECT);
            let rolled = Keys::from_secrets(&new, Some(&old)).unwrap();
            assert_eq!(rolled.verify(&word, SUBJECT), Ok(()));
            assert_eq!(rolled.verify(&rolled.sign(SUBJECT), SUBJECT), Ok(()));
            let over = Keys::from_secrets(&new, None).unwrap();
            assert!(over.verify(&word, SUBJECT).is_err());
        }
    }

    /// Earlier builds named every key `1`, and caches may still store their pages.
    #[test]
    fn capability_of_live_secret_verifies_after_id_change() {
        let [first, second] = [key('1', 1), key('1', 2)].map(|key| Keys::new(key, None));
        let now = Keys::from_secrets(&[2; 32], Some(&[1; 32])).unwrap();
        assert!(now.kids().all(|kid| kid != '1'));
        for before in [&first, &second] {
            let word = before.sign(SUBJECT);
            assert_eq!(now.verify(&word, SUBJECT), Ok(()));
        }
        // An old build must also accept capabilities of a new one, while machines are upgraded one by one.
        assert_eq!(second.verify(&now.sign(SUBJECT), SUBJECT), Ok(()));
        let word = Keys::new(key('1', 3), None).sign(SUBJECT);
        let unknown = Refusal::UnknownKey { kid: '1' };
        assert_eq!(now.verify(&word, SUBJECT), Err(unknown));
        assert_eq!(first.verify(&word, SUBJECT), Err(FORGED));
    }

    #[test]
    fn malformed_capability_is_rejected() {
        let keys = Keys::new(key('a', 1), None);
        let word = keys.sign(SUBJECT);
        for bad in [
            "",
            "k",
            "ka",
            "-",
            &word[..25],
            &format!("{word}A"),
            &format!("{}=", &word[..25]),
            "k\u{e4}",
        ] {
            assert_eq!(
                keys.verify(bad, SUBJECT),
                Err(Refusal::CapabilityForm),
                "{bad}"
            );
        }
    }

    #[test]
    fn key_needs_id_and_long_secret() {
        assert_eq!(Key::new('-', &[0; 32]).err(), Some(KeyError::Name('-')));
        assert_eq!(
            Key::new('a', &[0; 31]).err(),
            Some(KeyError::Short { found: 31 })
        );
        assert_eq!(format!("{:?}", key('a', 7)), "Key('a')");
    }

    /// Pages that are stored elsewhere contain capabilities, so their bytes must not change. The expected word is from Python's `hmac`.
    #[test]
    fn capability_has_expected_bytes() {
        let keys = Keys::new(key('a', 1), None);
        let word = keys.sign(SUBJECT);
        assert_eq!(word, "kaFaPWm2Q_4roaH67RQIQ98NcF");
    }
}
