//! Decrypts records: from a secret to keys (RFC 5246 §6.3, RFC 8446 §7), and from keys to plain bytes.
//!
//! ```text
//!                      nonce                                       additional data
//! 1.2 AES-GCM    salt:4 | explicit:8, before the bytes             sequence:8 type version plain length
//! 1.2 ChaCha20   iv:12 xor sequence                                the same
//! 1.3            iv:12 xor sequence                                the record's head
//! ```

use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use aws_lc_rs::hkdf::{HKDF_SHA256, HKDF_SHA384, KeyType, Prk};
use aws_lc_rs::tls_prf;

use crate::direction::Direction;

/// Bytes of the authentication tag of every supported suite.
const TAG: usize = 16;
/// The explicit part of the nonce in TLS 1.2's AES-GCM.
const EXPLICIT: usize = 8;

/// A supported cipher suite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suite {
    sha384: bool,
    aead: &'static Algorithm,
}

impl Suite {
    /// The suite with this registered number.
    pub(crate) fn of(number: u16) -> Option<Self> {
        let (sha384, aead) = match number {
            0x1301 | 0x009c | 0x009e | 0xc02b | 0xc02f => (false, &AES_128_GCM),
            0x1302 | 0x009d | 0x009f | 0xc02c | 0xc030 => (true, &AES_256_GCM),
            0x1303 | 0xcca8 | 0xcca9 | 0xccaa => (false, &CHACHA20_POLY1305),
            _ => return None,
        };
        Some(Self { sha384, aead })
    }

    fn hash_len(self) -> usize {
        if self.sha384 { 48 } else { 32 }
    }

    fn is_chacha(self) -> bool {
        self.aead == &CHACHA20_POLY1305
    }
}

/// Decrypts the records of one direction, in their order.
pub(crate) struct RecordDecryptor {
    suite: Suite,
    key: LessSafeKey,
    /// 12 bytes, or 4 of salt.
    iv: [u8; 12],
    sequence: u64,
    /// TLS 1.3's secret, from which the next one is derived.
    secret: Option<Vec<u8>>,
}

impl std::fmt::Debug for RecordDecryptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Opener({:?}, record {})", self.suite.aead, self.sequence)
    }
}

struct Len(usize);

impl KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}

/// HKDF-Expand-Label without a context (RFC 8446 §7.1).
fn expand(suite: Suite, secret: &[u8], label: &str, len: usize) -> Option<Vec<u8>> {
    let algorithm = if suite.sha384 {
        HKDF_SHA384
    } else {
        HKDF_SHA256
    };
    let label = format!("tls13 {label}");
    let (len_bytes, label_len) = ((len as u16).to_be_bytes(), [label.len() as u8]);
    let info: [&[u8]; 4] = [&len_bytes, &label_len, label.as_bytes(), &[0]];
    let mut out = vec![0; len];
    let prk = Prk::new_less_safe(algorithm, secret);
    prk.expand(&info, Len(len)).ok()?.fill(&mut out).ok()?;
    Some(out)
}

fn key(suite: Suite, bytes: &[u8]) -> Option<LessSafeKey> {
    UnboundKey::new(suite.aead, bytes)
        .ok()
        .map(LessSafeKey::new)
}

impl RecordDecryptor {
    /// For TLS 1.3; `None` if the secret does not fit the suite.
    pub(crate) fn of_13(suite: Suite, secret: &[u8]) -> Option<Self> {
        if secret.len() != suite.hash_len() {
            return None;
        }
        let bytes = expand(suite, secret, "key", suite.aead.key_len())?;
        Some(Self {
            suite,
            key: key(suite, &bytes)?,
            iv: expand(suite, secret, "iv", 12)?.try_into().ok()?,
            sequence: 0,
            secret: Some(secret.to_vec()),
        })
    }

    /// For TLS 1.2, in `direction`.
    pub(crate) fn of_12(
        suite: Suite,
        master: &[u8],
        client_random: &[u8],
        server_random: &[u8],
        direction: Direction,
    ) -> Option<Self> {
        let key_len = suite.aead.key_len();
        let iv_len = if suite.is_chacha() { 12 } else { 4 };
        let prf = match suite.sha384 {
            true => &tls_prf::P_SHA384,
            false => &tls_prf::P_SHA256,
        };
        let seed = [server_random, client_random].concat();
        let secret = tls_prf::Secret::new(prf, master).ok()?;
        // client key, server key, client iv, server iv: AEAD suites have no MAC keys.
        let block = secret
            .derive(b"key expansion", &seed, 2 * (key_len + iv_len))
            .ok()?;
        let block = block.as_ref();
        let which = direction.index();
        let mut iv = [0; 12];
        let iv_at = 2 * key_len + which * iv_len;
        iv[..iv_len].copy_from_slice(block.get(iv_at..iv_at + iv_len)?);
        Some(Self {
            suite,
            key: key(suite, block.get(which * key_len..(which + 1) * key_len)?)?,
            iv,
            sequence: 0,
            secret: None,
        })
    }

    /// The keys after a KeyUpdate.
    pub(crate) fn next_keys(&self) -> Option<Self> {
        let secret = self.secret.as_ref()?;
        let next = expand(self.suite, secret, "traffic upd", self.suite.hash_len())?;
        Self::of_13(self.suite, &next)
    }

    /// Plain bytes of application data in a record of `len` bytes without padding.
    pub(crate) fn plain_len(&self, len: usize) -> usize {
        let around = match (self.secret.is_some(), self.suite.is_chacha()) {
            (true, _) => TAG + 1,
            (false, true) => TAG,
            (false, false) => TAG + EXPLICIT,
        };
        len.saturating_sub(around)
    }

    /// Skips a missing record.
    pub(crate) fn skip_record(&mut self) {
        self.sequence += 1;
    }

    /// Type and plain bytes of the next record. On failure returns `None` and changes nothing.
    pub(crate) fn open(&mut self, head: [u8; 5], body: &[u8]) -> Option<(u8, Vec<u8>)> {
        let mut nonce = self.iv;
        let sequence = self.sequence.to_be_bytes();
        let gcm_12 = self.secret.is_none() && !self.suite.is_chacha();
        let sealed = if gcm_12 {
            let (explicit, sealed) = body.split_at_checked(EXPLICIT)?;
            nonce[4..].copy_from_slice(explicit);
            sealed
        } else {
            for (byte, number) in nonce[4..].iter_mut().zip(sequence) {
                *byte ^= number;
            }
            body
        };
        let plain_len = sealed.len().checked_sub(TAG)?;
        let mut aad = Vec::with_capacity(13);
        if self.secret.is_none() {
            aad.extend_from_slice(&sequence);
            aad.extend_from_slice(&head[..3]);
            aad.extend_from_slice(&(plain_len as u16).to_be_bytes());
        } else {
            aad.extend_from_slice(&head);
        }
        let mut plain = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key
            .open_in_place(nonce, Aad::from(&aad), &mut plain)
            .ok()?;
        plain.truncate(plain_len);
        self.sequence += 1;
        if self.secret.is_none() {
            return Some((head[0], plain));
        }
        // The type is the last byte that is not padding (RFC 8446 §5.4).
        let end = plain.iter().rposition(|&byte| byte != 0)?;
        let kind = plain[end];
        plain.truncate(end);
        Some((kind, plain))
    }
}
