//! Builds a header block with one allocation for all of its text.

use bytes::{BufMut, BytesMut};
use http::HeaderMap;
use http::header::{self, HeaderName};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

use crate::names::{Names, is_hop_by_hop, listed_in_connection};

/// Names and values in the order of the wire, written one behind the other.
pub(crate) struct BlockWriter {
    text: BytesMut,
    /// Where each name and each value ends.
    ends: Vec<(usize, usize)>,
}

impl BlockWriter {
    /// With room for the first line and for all of `headers`.
    pub(crate) fn for_headers(headers: &HeaderMap) -> Self {
        Self {
            text: BytesMut::with_capacity(64 * (headers.len() + 5)),
            ends: Vec::with_capacity(headers.len() + 5),
        }
    }

    /// Appends a pair whose value is `parts`, one behind the other.
    pub(crate) fn pair(&mut self, name: &str, parts: &[&[u8]]) {
        self.text.put_slice(name.as_bytes());
        let name_end = self.text.len();
        for part in parts {
            self.text.put_slice(part);
        }
        self.ends.push((name_end, self.text.len()));
    }

    /// Appends the headers of a message that may travel in `version`, repeated fields joined by NUL.
    ///
    /// Crumbs of a cookie are joined by `; `: one value is what Chromium sent and every server reads.
    pub(crate) fn headers(&mut self, version: Version, headers: &HeaderMap) {
        let names = Names::of(version);
        let hop = listed_in_connection(headers);
        for name in headers.keys() {
            if stays_here(version, names, name) || hop.contains(name) {
                continue;
            }
            let separator: &[u8] = if *name == header::COOKIE {
                b"; "
            } else {
                b"\0"
            };
            let start = self.text.len();
            self.text.put_slice(name.as_str().as_bytes());
            let name_end = self.text.len();
            for value in headers.get_all(name) {
                // A component between NULs is never empty (SPDY/3.1 §2.6.10).
                if !value.is_empty() {
                    if self.text.len() > name_end {
                        self.text.put_slice(separator);
                    }
                    self.text.put_slice(value.as_bytes());
                }
            }
            if self.text.len() == name_end && version == Version::V2 {
                self.text.truncate(start); // no empty values in SPDY/2
            } else {
                self.ends.push((name_end, self.text.len()));
            }
        }
    }

    /// The block.
    pub(crate) fn finish(self) -> HeaderBlock {
        let text = self.text.freeze();
        let mut block = HeaderBlock::new();
        let mut start = 0;
        for (name_end, value_end) in self.ends {
            block.push(text.slice(start..name_end), text.slice(name_end..value_end));
            start = value_end;
        }
        block
    }
}

/// Whether a message's header must not be sent.
fn stays_here(version: Version, names: &Names, name: &HeaderName) -> bool {
    // `host` travels as `:host`; in SPDY/2 it is the authority itself, already written.
    *name == header::HOST
        || is_hop_by_hop(name.as_str().as_bytes())
        || (version == Version::V2 && names.contains(name.as_str()))
}
