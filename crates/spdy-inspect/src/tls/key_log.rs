//! The file of `SSLKEYLOGFILE` (RFC 9850): `LABEL client-random secret`, in hexadecimal, one per line.

use std::collections::HashMap;

/// The random of a ClientHello, which identifies its connection.
pub(crate) type Random = [u8; 32];

/// Maximum length of a secret: the master secret of TLS 1.2 and SHA-384 both have 48 bytes.
const SECRET_BYTES: usize = 48;

/// Secrets by connection.
#[derive(Clone, Default)]
pub struct KeyLog {
    secrets: HashMap<(Random, Label), Vec<u8>>,
}

/// The use of a secret.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Label {
    /// TLS 1.2's master secret.
    Master,
    ClientHandshake,
    ServerHandshake,
    ClientTraffic,
    ServerTraffic,
}

impl Label {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "CLIENT_RANDOM" => Self::Master,
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Self::ClientHandshake,
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Self::ServerHandshake,
            "CLIENT_TRAFFIC_SECRET_0" => Self::ClientTraffic,
            "SERVER_TRAFFIC_SECRET_0" => Self::ServerTraffic,
            _ => return None,
        })
    }
}

/// Secrets are not logged.
impl std::fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeyLog({} secrets)", self.secrets.len())
    }
}

impl KeyLog {
    /// Adds the secrets of `text`, up to `limit` in all. Returns the number of used lines. Comments, unknown labels and invalid lines
    /// are skipped.
    pub fn add(&mut self, text: &[u8], limit: usize) -> usize {
        let mut used = 0;
        for line in text.split(|&byte| byte == b'\n' || byte == b'\r') {
            if self.secrets.len() >= limit {
                break;
            }
            let line = std::str::from_utf8(line).unwrap_or_default();
            let mut fields = line.split_ascii_whitespace();
            let (Some(label), Some(random), Some(secret)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let random = hex(random).and_then(|random| Random::try_from(random).ok());
            let secret = hex(secret).filter(|secret| secret.len() <= SECRET_BYTES);
            if let (Some(label), Some(random), Some(secret)) = (Label::of(label), random, secret) {
                self.secrets.insert((random, label), secret);
                used += 1;
            }
        }
        used
    }

    /// Number of secrets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.secrets.len()
    }

    /// True without secrets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    pub(crate) fn secret(&self, random: &Random, label: Label) -> Option<&[u8]> {
        self.secrets.get(&(*random, label)).map(Vec::as_slice)
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) || digits.len() > 2 * SECRET_BYTES {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    digits.chunks_exact(2).map(pair).collect()
}
