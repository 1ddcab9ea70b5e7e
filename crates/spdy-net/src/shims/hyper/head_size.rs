//! The size of a head that hyper has read. hyper checks it only while it waits for more of a head, so it accepts a head
//! whose last bytes come in the read that passes the limit, and rejects the same head in smaller pieces.
//!
//! hyper has `max_header_size` for servers since 1.12. It is not used: a head over that limit would be refused before
//! its method and target can be reported to the handler, and the same value would also limit chunked trailers.

use http::HeaderMap;

/// What stands in a line beside a field's name and value: `: ` and the line's end.
const LINE_OVERHEAD: usize = 4;
/// The fields that hyper takes in one head.
pub(crate) const MAX_FIELDS: usize = 100;

/// Whether a head whose first line has `first_line` bytes is larger than `max_head_bytes`.
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
