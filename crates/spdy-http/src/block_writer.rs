//! Builds the header block of a message.

use http::HeaderMap;
use http::header::{self, HeaderName};
use spdy_frame::header_block::{BlockBuilder, HeaderBlock};
use spdy_frame::version::Version;

use crate::header_names::{Names, is_hop_by_hop, listed_in_connection};

/// Names and values in the order of the wire.
pub(crate) struct BlockWriter(BlockBuilder);

impl BlockWriter {
    /// Allocates enough for the first line and for `headers` of usual size.
    pub(crate) fn for_headers(headers: &HeaderMap) -> Self {
        Self(BlockBuilder::with_capacity(48 * (headers.len() + 5)))
    }

    /// Appends a pair whose value is the concatenation of `parts`.
    pub(crate) fn pair(&mut self, name: &str, parts: &[&[u8]]) {
        self.0.pair(name.as_bytes(), b"");
        for part in parts {
            self.0.extend_value(part);
        }
    }

    /// Appends the headers of a message that may be sent in `version`, with repeated fields joined by NUL.
    ///
    /// A value that [is sensitive](http::HeaderValue::is_sensitive) marks its name as secret.
    ///
    /// Cookie crumbs are joined by `; `: Chromium sent one value, and every server accepts it. SPDY/2 has no empty values.
    pub(crate) fn headers(&mut self, version: Version, headers: &HeaderMap) {
        let names = Names::of(version);
        let hop = listed_in_connection(headers);
        let mut last: Option<&HeaderName> = None;
        let mut is_empty = true;
        for (name, value) in headers {
            let is_unsendable = value.is_empty() && version == Version::V2;
            if is_unsendable || is_not_sent(version, names, name) || hop.contains(name) {
                continue;
            }
            if value.is_sensitive() {
                self.0.mark_secret(name.as_str().as_bytes());
            }
            // Values of one name are adjacent.
            if last != Some(name) {
                self.0.pair(name.as_str().as_bytes(), value.as_bytes());
                (last, is_empty) = (Some(name), value.is_empty());
            } else if !value.is_empty() {
                // A component between NULs is never empty (SPDY/3.1 §2.6.10).
                if !is_empty {
                    let crumbs = *name == header::COOKIE;
                    self.0.extend_value(if crumbs { b"; " } else { b"\0" });
                }
                self.0.extend_value(value.as_bytes());
                is_empty = false;
            }
        }
    }

    /// The block.
    pub(crate) fn finish(self) -> HeaderBlock {
        self.0.finish()
    }
}

/// True if a header of a message must not be sent.
fn is_not_sent(version: Version, names: &Names, name: &HeaderName) -> bool {
    // `host` is sent as `:host`; in SPDY/2 it is the authority itself, which was already written.
    *name == header::HOST
        || is_hop_by_hop(name.as_str().as_bytes())
        || (version == Version::V2 && names.contains(name.as_str()))
}
