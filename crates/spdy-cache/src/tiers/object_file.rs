//! The file format of one object, for a tier on disk, and the checks when it is read.
//!
//! ```text
//!   0   8  "spdyobj" 02
//!   8   4  H   length of the head
//!  12   8  B   length of the body
//!  20   H  head: key, status, times, fields, served fields, note, selecting fields
//!  20+H 32 SHA-256 of all before: the seal
//!  then, for each 64 KiB of the body and the rest:
//!       ≤ 64 KiB  bytes
//!       32        SHA-256 of the seal, the chunk's number, and its bytes
//! ```
//!
//! Numbers are big-endian. The length of the whole file follows from its first 20 bytes, so a truncated file is detected by its
//! size. Each chunk is checked separately before any byte of it is served, so that ranges and long bodies need not be read
//! completely. A chunk of another file, or from another position in this file, fails the check.
//!
//! Derived values (freshness, directives) are not written. They are computed when the file is read, by the current policy. The tier
//! opens, writes, renames and syncs files: this module only handles their bytes.

use std::ops::Range;
use std::time::{Duration, SystemTime};

use bytes::{Buf, BufMut, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use sha2::{Digest, Sha256};

use crate::body::{Body, BodyBuilder, CHUNK_BYTES};
use crate::key::Key;
use crate::rules::cache_control::ResponseControl;
use crate::rules::freshness::{Times, since};
use crate::rules::policy::Policy;
use crate::rules::stored::{Stored, StoredParts};
use crate::rules::vary::SelectingField;

const MAGIC: [u8; 8] = *b"spdyobj\x02";
const DIGEST_BYTES: usize = 32;

/// Bytes at the start of a file that contain the lengths of its head and its body.
pub const PREFIX_BYTES: usize = 20;

/// Maximum length of a head, bytes.
pub const MAX_HEAD_BYTES: usize = 1 << 20;

/// Why bytes are not an object's file.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file ends too early.
    #[error("found {found} bytes, expected {expected}")]
    Short {
        /// Required bytes.
        expected: u64,
        /// Available bytes.
        found: u64,
    },
    /// Another kind of file, or another version.
    #[error("not an object file of version 2")]
    Magic,
    /// The head length exceeds the limit.
    #[error("head has {found} bytes, expected at most {MAX_HEAD_BYTES}")]
    HeadLength {
        /// The length in the file.
        found: u32,
    },
    /// The body length is impossible.
    #[error("invalid body length {found}")]
    BodyLength {
        /// The length in the file.
        found: u64,
    },
    /// The seal does not match the bytes before it.
    #[error("the checksum of the head does not match")]
    Seal,
    /// The seal matches, but the head is invalid: written by another program, or by a bug.
    #[error("invalid head: {0}")]
    Head(&'static str),
    /// A chunk does not match its digest.
    #[error("the checksum of chunk {index} does not match")]
    Chunk {
        /// Index of the chunk.
        index: u64,
    },
}

/// The positions of the parts of a file, from its first [`PREFIX_BYTES`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Layout {
    head_len: u64,
    body_len: u64,
}

impl Layout {
    /// Reads the prefix of a file.
    ///
    /// # Errors
    ///
    /// [`FileError::Short`], [`FileError::Magic`], [`FileError::HeadLength`] or [`FileError::BodyLength`].
    pub fn decode(prefix: &[u8]) -> Result<Self, FileError> {
        let mut rest = at_least(prefix, PREFIX_BYTES as u64)?;
        if rest.copy_to_bytes(MAGIC.len())[..] != MAGIC {
            return Err(FileError::Magic);
        }
        let (head_len, body_len) = (rest.get_u32(), rest.get_u64());
        if head_len as usize > MAX_HEAD_BYTES {
            return Err(FileError::HeadLength { found: head_len });
        }
        if body_len > u64::MAX / 4 {
            return Err(FileError::BodyLength { found: body_len });
        }
        Ok(Self {
            head_len: head_len.into(),
            body_len,
        })
    }

    /// Length of the whole file, bytes; a file with another length is truncated or damaged.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.body_start() + self.body_len + self.chunks() * DIGEST_BYTES as u64
    }

    /// Length of prefix, head and seal, bytes: the input of [`OpenObject::decode`].
    #[must_use]
    pub fn body_start(&self) -> u64 {
        PREFIX_BYTES as u64 + self.head_len + DIGEST_BYTES as u64
    }

    /// Length of the body, bytes.
    #[must_use]
    pub fn body_len(&self) -> u64 {
        self.body_len
    }

    /// Number of chunks of the body.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.body_len.div_ceil(CHUNK_BYTES as u64)
    }

    /// The position of a chunk and its digest in the file.
    ///
    /// # Panics
    ///
    /// If there is no such chunk.
    #[must_use]
    pub fn chunk(&self, index: u64) -> Range<u64> {
        assert!(index < self.chunks(), "chunk {index} of {}", self.chunks());
        let whole = (CHUNK_BYTES + DIGEST_BYTES) as u64;
        let start = self.body_start() + index * whole;
        start..(start + whole).min(self.file_len())
    }
}

/// An object whose head was read and checked.
#[derive(Clone, Debug)]
pub struct OpenObject {
    /// The key under which it is stored.
    pub key: Key,
    /// The head and everything derived from it.
    pub stored: Stored,
    /// The position of the body.
    pub layout: Layout,
    seal: [u8; DIGEST_BYTES],
}

impl OpenObject {
    /// Decodes the first [`Layout::body_start`] bytes of a file; bytes after them are ignored.
    ///
    /// # Errors
    ///
    /// Any byte that differs from what was written is detected.
    pub fn decode(policy: &Policy, start: &[u8]) -> Result<Self, FileError> {
        let layout = Layout::decode(start)?;
        let start = at_least(start, layout.body_start())?;
        let (sealed, seal) = start.split_at(start.len() - DIGEST_BYTES);
        if Sha256::digest(sealed)[..] != *seal {
            return Err(FileError::Seal);
        }
        let (key, facts, expired_at) =
            read_head(&sealed[PREFIX_BYTES..]).map_err(FileError::Head)?;
        let control = ResponseControl::parse(&facts.headers, &policy.targets);
        let stored = Stored::new(policy, facts, control);
        if let Some(at) = expired_at {
            stored.expire(at);
        }
        Ok(Self {
            key,
            stored,
            layout,
            seal: seal
                .try_into()
                .expect("the seal was split off at its length"),
        })
    }

    /// Checks a chunk and returns its bytes; `bytes` are those of its [`Layout::chunk`].
    ///
    /// # Errors
    ///
    /// [`FileError::Short`] or [`FileError::Chunk`].
    ///
    /// # Panics
    ///
    /// If there is no such chunk.
    pub fn check_chunk<'a>(&self, index: u64, bytes: &'a [u8]) -> Result<&'a [u8], FileError> {
        let range = self.layout.chunk(index);
        let bytes = at_least(bytes, range.end - range.start)?;
        let (chunk, digest) = bytes.split_at(bytes.len() - DIGEST_BYTES);
        match chunk_digest(&self.seal, index, chunk)[..] == *digest {
            true => Ok(chunk),
            false => Err(FileError::Chunk { index }),
        }
    }

    /// Checks and returns the whole body, from all bytes of a file.
    ///
    /// # Errors
    ///
    /// [`FileError::Short`] or [`FileError::Chunk`].
    pub fn body(&self, file: &[u8]) -> Result<Body, FileError> {
        let file = at_least(file, self.layout.file_len())?;
        let mut body = BodyBuilder::new(self.layout.body_len);
        for index in 0..self.layout.chunks() {
            let range = self.layout.chunk(index);
            let chunk = self.check_chunk(index, &file[range.start as usize..range.end as usize])?;
            body.push(chunk)
                .expect("the chunks add up to the body length");
        }
        Ok(body.finish())
    }
}

/// Encodes a file in pieces, to be written in order.
#[derive(Debug, Clone)]
pub struct Encoder {
    seal: [u8; DIGEST_BYTES],
    next: u64,
}

impl Encoder {
    /// Begins a file: its prefix, head and seal. `None` if the head has more than [`MAX_HEAD_BYTES`].
    #[must_use]
    pub fn new(key: &Key, stored: &Stored, body_len: u64) -> Option<(Self, Bytes)> {
        let mut head = Vec::new();
        write_head(key, stored, &mut head);
        if head.len() > MAX_HEAD_BYTES {
            return None;
        }
        let mut start = Vec::with_capacity(PREFIX_BYTES + head.len() + DIGEST_BYTES);
        start.put_slice(&MAGIC);
        start.put_u32(u32::try_from(head.len()).expect("the head was checked against the limit"));
        start.put_u64(body_len);
        start.put_slice(&head);
        let seal: [u8; DIGEST_BYTES] = Sha256::digest(&start).into();
        start.put_slice(&seal);
        Some((Self { seal, next: 0 }, start.into()))
    }

    /// The digest to write after the next chunk. Every chunk except the last has [`CHUNK_BYTES`].
    #[must_use]
    pub fn chunk_digest(&mut self, chunk: &[u8]) -> [u8; DIGEST_BYTES] {
        let digest = chunk_digest(&self.seal, self.next, chunk);
        self.next += 1;
        digest
    }

    /// Encodes a whole file. `None`, as in [`new`](Self::new).
    #[must_use]
    pub fn whole(key: &Key, stored: &Stored, body: &Body) -> Option<Vec<u8>> {
        let (mut encoder, start) = Self::new(key, stored, body.len())?;
        let mut file = start.to_vec();
        for chunk in body.chunks() {
            file.extend_from_slice(chunk);
            file.extend_from_slice(&encoder.chunk_digest(chunk));
        }
        Some(file)
    }
}

/// The file name of `stored` under `key`. A response that replaces it has the same name; any other response has another name.
///
/// 64 hexadecimal digits, of which the first 32 depend only on the key.
#[must_use]
pub fn file_name(key: &Key, stored: &Stored) -> String {
    let of_key = Sha256::digest(key.as_bytes());
    let mut selecting = Sha256::new();
    for field in &stored.facts.selecting {
        let lines = field.is_named().then_some(field.normal_form());
        for part in [Some(field.name.as_str().as_bytes()), lines] {
            let len = part.map_or(u64::MAX, |part| part.len() as u64);
            selecting.update(len.to_be_bytes());
            selecting.update(part.unwrap_or_default());
        }
    }
    let digest = selecting.finalize();
    let digits = of_key[..16].iter().chain(&digest[..16]);
    digits.map(|byte| format!("{byte:02x}")).collect()
}

fn chunk_digest(seal: &[u8; DIGEST_BYTES], index: u64, chunk: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut digest = Sha256::new();
    digest.update(seal);
    digest.update(index.to_be_bytes());
    digest.update(chunk);
    digest.finalize().into()
}

/// The first `expected` bytes.
fn at_least(bytes: &[u8], expected: u64) -> Result<&[u8], FileError> {
    let found = bytes.len() as u64;
    let short = FileError::Short { expected, found };
    let len = usize::try_from(expected).map_err(|_| short)?;
    bytes.get(..len).ok_or(short)
}

fn write_head(key: &Key, stored: &Stored, out: &mut Vec<u8>) {
    let facts = &stored.facts;
    write_bytes(key.as_bytes(), out);
    out.put_u16(facts.status.as_u16());
    out.put_u64(nanos(facts.times.requested));
    out.put_u64(nanos(facts.times.received));
    out.put_u64(stored.expired_at().map_or(0, nanos));
    write_fields(&facts.headers, out);
    out.put_u8(facts.served.is_some().into());
    if let Some(served) = &facts.served {
        write_fields(served, out);
    }
    write_bytes(&facts.note, out);
    write_count(facts.selecting.len(), out);
    for field in &facts.selecting {
        write_bytes(field.name.as_str().as_bytes(), out);
        write_count(field.lines.len(), out);
        field
            .lines
            .iter()
            .for_each(|line| write_bytes(line.as_bytes(), out));
    }
}

fn read_head(head: &[u8]) -> Result<(Key, StoredParts, Option<SystemTime>), &'static str> {
    let mut rest = HeadReader(head);
    let key = Key::from_bytes(Bytes::copy_from_slice(rest.bytes()?)).ok_or("key")?;
    let status = StatusCode::from_u16(rest.fixed(2)?.get_u16()).map_err(|_| "status")?;
    let times = Times {
        requested: time(rest.fixed(8)?.get_u64()),
        received: time(rest.fixed(8)?.get_u64()),
    };
    let expired_at = match rest.fixed(8)?.get_u64() {
        0 => None,
        at => Some(time(at)),
    };
    let headers = rest.fields()?;
    let served = match rest.fixed(1)? {
        [0] => None,
        [1] => Some(Box::new(rest.fields()?)),
        _ => return Err("flag"),
    };
    let note = rest.bytes()?.into();
    let mut selecting = Vec::new();
    for _ in 0..rest.count()? {
        let name = rest.name()?;
        let lines: Result<Vec<_>, _> = (0..rest.count()?).map(|_| rest.value()).collect();
        selecting.push(SelectingField::new(name, lines?));
    }
    if !rest.0.is_empty() {
        return Err("bytes behind it");
    }
    let facts = StoredParts {
        status,
        headers,
        served,
        note,
        selecting,
        times,
    };
    Ok((key, facts, expired_at))
}

fn write_count(count: usize, out: &mut Vec<u8>) {
    out.put_u32(u32::try_from(count).expect("objects in memory have fewer than 2^32 items"));
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    write_count(bytes.len(), out);
    out.put_slice(bytes);
}

fn write_fields(headers: &HeaderMap, out: &mut Vec<u8>) {
    write_count(headers.len(), out);
    for (name, value) in headers {
        write_bytes(name.as_str().as_bytes(), out);
        write_bytes(value.as_bytes(), out);
    }
}

/// The rest of a head.
struct HeadReader<'a>(&'a [u8]);

impl<'a> HeadReader<'a> {
    fn fixed(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let (bytes, rest) = self.0.split_at_checked(len).ok_or("short")?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Reads a count of items that use at least one byte each.
    fn count(&mut self) -> Result<usize, &'static str> {
        let count = self.fixed(4)?.get_u32() as usize;
        if count > self.0.len() {
            Err("count")
        } else {
            Ok(count)
        }
    }

    fn bytes(&mut self) -> Result<&'a [u8], &'static str> {
        let len = self.count()?;
        self.fixed(len)
    }

    fn name(&mut self) -> Result<HeaderName, &'static str> {
        HeaderName::from_bytes(self.bytes()?).map_err(|_| "name")
    }

    fn value(&mut self) -> Result<HeaderValue, &'static str> {
        HeaderValue::from_bytes(self.bytes()?).map_err(|_| "value")
    }

    fn fields(&mut self) -> Result<HeaderMap, &'static str> {
        let mut headers = HeaderMap::new();
        for _ in 0..self.count()? {
            let name = self.name()?;
            headers
                .try_append(name, self.value()?)
                .map_err(|_| "fields")?;
        }
        Ok(headers)
    }
}

/// Nanoseconds since 1970; our clock always shows a time between then and 2554.
fn nanos(time: SystemTime) -> u64 {
    since(time, SystemTime::UNIX_EPOCH)
        .as_nanos()
        .try_into()
        .unwrap_or(u64::MAX)
}

fn time(nanos: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos)
}
