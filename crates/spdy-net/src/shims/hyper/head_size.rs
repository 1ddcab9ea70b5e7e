//! Checks the size of a head that hyper has read. hyper checks it only while it waits for more of the head, so it accepts a head
//! whose last bytes arrive in the read that exceeds the limit, and rejects the same head in smaller pieces.
//!
//! hyper has `max_header_size` for servers since 1.12. It is not used: a head over that limit would be refused before
//! its method and target can be reported to the handler, and the same value would also limit chunked trailers.

use http::HeaderMap;

/// Bytes of a line in addition to a field's name and value: `: ` and the end of the line.
const LINE_OVERHEAD: usize = 4;
/// hyper's limit of fields in one head.
pub(crate) const MAX_FIELDS: usize = 100;

/// True if a head whose first line has `first_line` bytes exceeds `max_head_bytes`.
pub(crate) fn is_too_large(first_line: usize, headers: &HeaderMap, max_head_bytes: usize) -> bool {
    let fields = headers.iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + LINE_OVERHEAD);
    first_line + fields.sum::<usize>() > max_head_bytes
}

/// The message of an error about a head that is too large.
pub(crate) fn limit_message(max_head_bytes: usize) -> String {
    format!(
        "http/1.1: the response head is too large, limit {max_head_bytes} bytes and {MAX_FIELDS} fields"
    )
}
