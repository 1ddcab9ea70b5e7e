//! Parses the unencrypted messages of a handshake (RFC 8446 §4.1, RFC 7301 §3.1).

use super::key_log::Random;

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const EARLY_DATA: u16 = 42;
const SUPPORTED_VERSIONS: u16 = 43;

/// The random of a ServerHello that is a HelloRetryRequest: SHA-256 of that word (RFC 8446 §4.1.3).
const RETRY: Random = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
];

#[derive(Clone, Debug)]
pub(crate) struct ClientHello {
    pub(crate) random: Random,
    pub(crate) server_name: Option<String>,
    pub(crate) alpn: Vec<String>,
    pub(crate) early_data: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ServerHello {
    pub(crate) random: Random,
    pub(crate) suite: u16,
    /// True for 1.3; else 1.2, or an older version without a supported suite.
    pub(crate) is_13: bool,
    pub(crate) alpn: Option<String>,
}

impl ServerHello {
    pub(crate) fn is_retry(&self) -> bool {
        self.random == RETRY
    }
}

/// Removes numbers and vectors from the front.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|one| one[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|two| u16::from_be_bytes([two[0], two[1]]))
    }

    fn short(&mut self) -> Option<&'a [u8]> {
        let len = self.u8()?;
        self.take(usize::from(len))
    }

    fn long(&mut self) -> Option<&'a [u8]> {
        let len = self.u16()?;
        self.take(usize::from(len))
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn extensions(block: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut cursor = Cursor(block);
    std::iter::from_fn(move || Some((cursor.u16()?, cursor.long()?)))
}

fn protocols(extension: &[u8]) -> Vec<String> {
    let mut list = Cursor(Cursor(extension).long().unwrap_or_default());
    std::iter::from_fn(|| list.short()).map(text).collect()
}

impl ClientHello {
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(body);
        cursor.u16()?;
        let random = cursor.take(32)?.try_into().ok()?;
        cursor.short()?;
        cursor.long()?;
        cursor.short()?;
        let mut hello = Self {
            random,
            server_name: None,
            alpn: Vec::new(),
            early_data: false,
        };
        for (kind, content) in extensions(cursor.long().unwrap_or_default()) {
            match kind {
                SERVER_NAME => {
                    let mut list = Cursor(Cursor(content).long().unwrap_or_default());
                    if list.u8() == Some(0) {
                        hello.server_name = list.long().map(text);
                    }
                }
                ALPN => hello.alpn = protocols(content),
                EARLY_DATA => hello.early_data = true,
                _ => {}
            }
        }
        Some(hello)
    }
}

impl ServerHello {
    pub(crate) fn decode(body: &[u8]) -> Option<Self> {
        let mut cursor = Cursor(body);
        cursor.u16()?;
        let random = cursor.take(32)?.try_into().ok()?;
        cursor.short()?;
        let suite = cursor.u16()?;
        cursor.u8()?;
        let mut hello = Self {
            random,
            suite,
            is_13: false,
            alpn: None,
        };
        for (kind, content) in extensions(cursor.long().unwrap_or_default()) {
            match kind {
                SUPPORTED_VERSIONS => hello.is_13 = content == [3, 4],
                ALPN => hello.alpn = protocols(content).into_iter().next(),
                _ => {}
            }
        }
        Some(hello)
    }
}

/// ALPN from the body of EncryptedExtensions.
pub(crate) fn encrypted_alpn(body: &[u8]) -> Option<String> {
    let block = Cursor(body).long()?;
    let (_, content) = extensions(block).find(|(kind, _)| *kind == ALPN)?;
    protocols(content).into_iter().next()
}
