//! How large a head is that hyper has read. hyper looks only while it waits for more of a head: one whose end comes in the read that
//! brings it past the limit would pass, and the same head would not when it comes in smaller pieces.

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

/// Says what came and what is taken.
pub(crate) fn too_large(max_head_bytes: usize) -> String {
    format!(
        "http/1.1: the head of the answer is too large, want at most {max_head_bytes} bytes and {MAX_FIELDS} fields"
    )
}
