//! Capabilities: a word in a moved URL that only the site's own rewriter could have written.
//!
//! ```text
//!  k <kid> <24 characters>      this origin, for this site
//!  u <kid> <24 characters>      this URL, for this site
//!
//!  HMAC-SHA-256( "spdy-accel/1" 0 site 0 s|p 0 host 0 port [ 0 path?query ] )
//!  its first 144 bits, in base64url: 24 characters without padding
//! ```
//!
//! No field holds a NUL, so no two messages are the same bytes, and the longer one is never a `k`'s. Nothing else makes capabilities: no
//! interface gives them out. The name of the key at that time (`kid`) is not part of the message, and a program of another version may
//! use another name: it is valid with whichever live key it fits.

use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::rules::refusal::Refusal;

/// Bytes of the code that are used.
const CODE_BYTES: usize = 18;
/// Characters of the code in a URL.
const CODE_CHARS: usize = 24;
/// What a key may be called.
const KEY_ID_CHARS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What a capability stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Subject<'a> {
    pub(crate) site: &'a str,
    /// `s` or `p`.
    pub(crate) scheme: char,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    /// Path and query, where the capability is for one URL.
    pub(crate) target: Option<&'a str>,
}

/// A secret with the one letter or digit that names it in URLs.
#[derive(Clone)]
pub struct Key {
    kid: char,
    mac: Hmac<Sha256>,
}

/// Why a key cannot be one.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum KeyError {
    /// The name is not one ASCII letter or digit.
    #[error("key \"{0}\", want one ASCII letter or digit as its name")]
    Name(char),
    /// The secret could be guessed.
    #[error("a secret of {got} bytes, want at least {}", Key::MIN_SECRET_BYTES)]
    Short {
        /// Bytes that came.
        got: usize,
    },
}

impl Key {
    /// Bytes that a secret has at least.
    pub const MIN_SECRET_BYTES: usize = 32;

    /// A key of this name.
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
            return Err(KeyError::Short { got: secret.len() });
        }
        let mac = Hmac::new_from_slice(secret).expect("HMAC takes keys of any length");
        Ok(Self { kid, mac })
    }

    /// The key of a secret. Its name is derived from the secret, so it is the same on every server. One other secret in 62 has the same
    /// name.
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

    /// Its name.
    pub fn kid(&self) -> char {
        self.kid
    }

    fn mac(&self, subject: Subject<'_>) -> Hmac<Sha256> {
        self.mac_of(b"spdy-accel/1\0", subject)
    }

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

/// Shows which key it is, and nothing of the secret.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Key").field(&self.kid).finish()
    }
}

/// The key that makes capabilities, and the one before it, whose capabilities are in pages that are still stored.
#[derive(Clone, Debug)]
pub struct Keys {
    current: Key,
    previous: Option<Key>,
}

impl Keys {
    /// One key, or two while pages of the former's time are still about. Both may have one name.
    pub fn new(current: Key, former: Option<Key>) -> Self {
        Self {
            current,
            previous: former,
        }
    }

    /// The keys of these secrets.
    ///
    /// # Errors
    ///
    /// [`KeyError::Short`].
    pub fn from_secrets(current: &[u8], former: Option<&[u8]>) -> Result<Self, KeyError> {
        let former = former.map(Key::from_secret).transpose()?;
        Ok(Self::new(Key::from_secret(current)?, former))
    }

    /// The live keys, the current one first.
    fn live(&self) -> impl Iterator<Item = &Key> {
        std::iter::once(&self.current).chain(&self.previous)
    }

    /// The names of the live keys, the current one first.
    pub fn kids(&self) -> impl Iterator<Item = char> {
        self.live().map(Key::kid)
    }

    /// Some bytes that differ for another current key, and reveal nothing of it.
    pub(crate) fn fingerprint(&self) -> Vec<u8> {
        let mut mac = self.current.mac.clone();
        mac.update(b"spdy-accel/1 fingerprint");
        let mut bytes = mac.finalize().into_bytes().to_vec();
        bytes.push(self.current.kid as u8);
        bytes
    }

    /// The codes that a named host's labels are the beginnings of (`rules/host_aliases.rs`), the current key's first.
    pub(crate) fn name_codes<'k>(
        &'k self,
        subject: Subject<'k>,
    ) -> impl Iterator<Item = [u8; 32]> + 'k {
        let code = move |key: &Key| key.mac_of(b"spdy-accel/1 name\0", subject).finalize();
        self.live().map(move |key| code(key).into_bytes().into())
    }

    /// The capability for `subject`.
    pub(crate) fn sign(&self, subject: Subject<'_>) -> String {
        let mac = self.current.mac(subject).finalize().into_bytes();
        let letter = if subject.target.is_some() { 'u' } else { 'k' };
        let code = BASE64URL_NOPAD.encode(&mac[..CODE_BYTES]);
        format!("{letter}{}{code}", self.current.kid)
    }

    /// Accepts `word` if a live key made it for `subject`. The time of the comparison does not depend on where they differ.
    ///
    /// # Errors
    ///
    /// [`Refusal::CapabilityForm`], [`Refusal::UnknownKey`] or [`Refusal::Forged`].
    pub(crate) fn verify(&self, word: &str, subject: Subject<'_>) -> Result<(), Refusal> {
        let mut letters = word.chars();
        let letter = letters.next();
        let kid = letters.next().ok_or(Refusal::CapabilityForm)?;
        let code = letters.as_str();
        let wanted = if subject.target.is_some() { 'u' } else { 'k' };
        if letter != Some(wanted) || !kid.is_ascii_alphanumeric() || code.len() != CODE_CHARS {
            return Err(Refusal::CapabilityForm);
        }
        // 24 characters are 144 bits, without bits to spare: a code has one spelling.
        let code = BASE64URL_NOPAD
            .decode(code.as_bytes())
            .map_err(|_| Refusal::CapabilityForm)?;
        let made = |key: &Key| key.mac(subject).verify_truncated_left(&code).is_ok();
        if self.live().any(made) {
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

    /// Keys were called `1` by builds that did not name them by their secrets; their pages are still about.
    #[test]
    fn capability_of_live_secret_verifies_after_id_change() {
        let [first, second] = [key('1', 1), key('1', 2)].map(|key| Keys::new(key, None));
        let now = Keys::from_secrets(&[2; 32], Some(&[1; 32])).unwrap();
        assert!(now.kids().all(|kid| kid != '1'));
        for before in [&first, &second] {
            let word = before.sign(SUBJECT);
            assert_eq!(now.verify(&word, SUBJECT), Ok(()));
        }
        // And the other way, where machines are upgraded one by one.
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
            Some(KeyError::Short { got: 31 })
        );
        assert_eq!(format!("{:?}", key('a', 7)), "Key('a')");
    }

    /// The characters are a promise to pages that are stored elsewhere; these are Python's, by its `hmac`.
    #[test]
    fn capability_has_known_bytes() {
        let keys = Keys::new(key('a', 1), None);
        let word = keys.sign(SUBJECT);
        assert_eq!(word, "kaFaPWm2Q_4roaH67RQIQ98NcF");
    }
}
