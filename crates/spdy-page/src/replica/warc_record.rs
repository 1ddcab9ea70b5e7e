//! WARC records: the container of archives, our own and others (WARC 1.0 and 1.1, ISO 28500).
//!
//! ```text
//! WARC/1.1␍␊                         version
//! WARC-Type: response␍␊              fields; Content-Length determines the length
//! Content-Length: 4711␍␊
//! ␍␊
//! 4711 bytes                         block: for an exchange a literal head and a body
//! ␍␊␍␊                               end of the record
//! ```
//!
//! In a `.warc.gz` every record is a separate gzip member; once decompressed, there is no difference.

use bytes::Bytes;

use crate::error::OpenError;
use crate::head::{Head, head_len};
use crate::limits::Limits;

/// One record, whose block shares memory with its file.
#[derive(Clone, Debug)]
pub(crate) struct WarcRecord {
    pub(crate) header: Bytes,
    pub(crate) block: Bytes,
}

impl WarcRecord {
    /// The first value of the field `name`, without surrounding white space and angle brackets.
    pub(crate) fn field(&self, name: &'static str) -> Option<&str> {
        let value = Head::parse(&self.header)?.value(name)?;
        // Some writers of 1.0 put URIs in angle brackets, which are in its grammar and not in its examples.
        Some(
            value
                .strip_prefix('<')
                .and_then(|value| value.strip_suffix('>'))
                .unwrap_or(value),
        )
    }

    /// `WARC-Type`, in lower case.
    pub(crate) fn kind(&self) -> String {
        self.field("WARC-Type")
            .unwrap_or_default()
            .to_ascii_lowercase()
    }
}

/// The records of `file`, which is already decompressed.
///
/// # Errors
///
/// [`OpenError::Warc`] if a record does not start with a version, has no length or ends beyond the file;
/// [`OpenError::Limit`] past `limits`.
pub(crate) fn read_all(file: &Bytes, limits: &Limits) -> Result<Vec<WarcRecord>, OpenError> {
    let mut records = Vec::new();
    let mut at = 0;
    loop {
        // Records end with two empty lines; more or fewer are accepted.
        while matches!(file.get(at), Some(b'\r' | b'\n')) {
            at += 1;
        }
        if at == file.len() {
            return Ok(records);
        }
        let number = records.len() + 1;
        let fault = |what: String| OpenError::Warc {
            record: number,
            what,
        };
        if number > limits.records {
            return Err(OpenError::Limit {
                what: "records",
                limit: limits.records,
            });
        }
        let rest = file.slice(at..);
        if !rest.starts_with(b"WARC/") {
            let seen = String::from_utf8_lossy(&rest[..rest.len().min(12)]).into_owned();
            return Err(fault(format!(
                "starts with {seen:?}, expected WARC/1.0 or WARC/1.1"
            )));
        }
        let scanned = rest.len().min(limits.head_bytes.saturating_add(1));
        let header_len = match head_len(&rest[..scanned]) {
            Some(len) if len <= limits.head_bytes => len,
            None if scanned == rest.len() && scanned <= limits.head_bytes => {
                return Err(fault("file ends inside the record's header".to_owned()));
            }
            _ => {
                return Err(OpenError::Limit {
                    what: "bytes in a record's header",
                    limit: limits.head_bytes,
                });
            }
        };
        let header = rest.slice(..header_len);
        let length = Head::parse(&header).and_then(|head| head.content_length());
        let length = length.ok_or_else(|| fault("Content-Length is missing".to_owned()))?;
        let remaining = rest.len() - header_len;
        let length = usize::try_from(length)
            .ok()
            .filter(|&length| length <= remaining)
            .ok_or_else(|| {
                fault(format!(
                    "block has {length} bytes, but only {remaining} bytes are left in the file"
                ))
            })?;
        let block = rest.slice(header_len..header_len + length);
        at += header_len + length;
        records.push(WarcRecord { header, block });
    }
}

/// Writes records, each as a gzip member if `gzip` is set.
pub(crate) struct Writer {
    out: Vec<u8>,
    gzip: bool,
}

impl Writer {
    pub(crate) fn new(gzip: bool) -> Self {
        Self {
            out: Vec::new(),
            gzip,
        }
    }

    /// Appends a record; `fields` without Content-Length.
    pub(crate) fn push(&mut self, fields: &[(&str, &str)], block: &[&[u8]]) {
        let mut record = Vec::new();
        record.extend_from_slice(b"WARC/1.1\r\n");
        for (name, value) in fields {
            record.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        let length: usize = block.iter().map(|part| part.len()).sum();
        record.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
        block.iter().for_each(|part| record.extend_from_slice(part));
        record.extend_from_slice(b"\r\n\r\n");
        if self.gzip {
            crate::coding::gzip_member(&record, &mut self.out);
        } else {
            self.out.extend_from_slice(&record);
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }
}

/// A body without its chunks (RFC 9112 §7.1) and trailer fields; `None` if it is not chunked.
///
/// Strict about sizes and ends, so that a body that a recorder has already unwrapped does not count as chunked.
pub(crate) fn unchunk(body: &Bytes) -> Option<Bytes> {
    let (mut out, mut at, mut only) = (Vec::new(), 0, None);
    loop {
        let line_end = at
            + body[at..]
                .iter()
                .take(1 << 12)
                .position(|&byte| byte == b'\n')?;
        let line = body[at..line_end].trim_ascii();
        let digits = line
            .split(|&byte| byte == b';')
            .next()
            .unwrap_or_default()
            .trim_ascii();
        if digits.is_empty() || digits.len() > 15 {
            return None;
        }
        let size = usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        at = line_end + 1;
        if size == 0 {
            // A body in a single chunk is shared, not copied.
            return Some(only.unwrap_or_else(|| Bytes::from(out)));
        }
        let chunk = at..at.checked_add(size)?;
        let data = body.get(chunk.clone())?;
        only = match only {
            None if out.is_empty() => Some(body.slice(chunk)),
            None => None,
            Some(first) => {
                out.extend_from_slice(&first);
                None
            }
        };
        if only.is_none() {
            out.extend_from_slice(data);
        }
        at += size;
        at += match &body[at..] {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] => 1,
            _ => return None,
        };
    }
}

/// The framing of a body as one chunk: the bytes before and after it.
pub(crate) fn chunk_frame(len: usize) -> (String, &'static str) {
    if len == 0 {
        (String::new(), "0\r\n\r\n")
    } else {
        (format!("{len:x}\r\n"), "\r\n0\r\n\r\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined_and_an_invalid_body_is_rejected() {
        let body = |text: &'static [u8]| Bytes::from_static(text);
        assert_eq!(
            unchunk(&body(b"3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nT: x\r\n\r\n")).unwrap(),
            "abcde"
        );
        assert_eq!(
            unchunk(&body(b"3\r\nabc\r\n1\r\nd\r\n1\r\ne\r\n0\r\n\r\n")).unwrap(),
            "abcde"
        );
        assert_eq!(
            unchunk(&body(
                b"0022\r\nabcdefghijklmnopqrstuvwxyz01234567\r\n0\r\n\r\n"
            ))
            .unwrap()
            .len(),
            34
        );
        assert_eq!(unchunk(&body(b"0\r\n\r\n")).unwrap(), "");
        assert_eq!(unchunk(&body(b"<html>\r\n")), None);
        assert_eq!(unchunk(&body(b"ffffffffffffffff\r\nabc")), None);
        assert_eq!(unchunk(&body(b"3\r\nabcd\r\n0\r\n\r\n")), None);
        assert_eq!(unchunk(&body(b"")), None);
        for len in [0, 1, 300] {
            let (before, after) = chunk_frame(len);
            let framed = [before.as_bytes(), &vec![b'x'; len], after.as_bytes()].concat();
            assert_eq!(unchunk(&Bytes::from(framed)).unwrap().len(), len);
        }
    }

    #[test]
    fn a_record_one_past_the_limit_and_a_header_one_byte_past_are_refused() {
        let mut writer = Writer::new(false);
        for _ in 0..3 {
            writer.push(&[("WARC-Type", "resource")], &[b"x"]);
        }
        let file = Bytes::from(writer.finish());
        let limits = |records, head_bytes| Limits {
            records,
            head_bytes,
            ..Limits::default()
        };
        let header = read_all(&file, &limits(3, 1000)).unwrap()[0].header.len();
        assert!(read_all(&file, &limits(3, header)).is_ok());
        assert!(matches!(
            read_all(&file, &limits(2, header)),
            Err(OpenError::Limit { limit: 2, .. })
        ));
        assert!(matches!(
            read_all(&file, &limits(3, header - 1)),
            Err(OpenError::Limit { .. })
        ));
    }
}
