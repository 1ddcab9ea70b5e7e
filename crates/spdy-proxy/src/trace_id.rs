//! The trace that a request belongs to (W3C Trace Context, *traceparent Header*): told in the log, so that a line can be found from a trace.
//!
//! ```text
//! traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//!              version  trace id, not all zeros      parent id      flags
//! ```
//!
//! No span is made here, so `traceparent` and `tracestate` go on to the site's own origin as they came; hosts of others, which are asked
//! in nobody's name, get neither.

use http::header::{HeaderMap, HeaderName};

/// The field.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Bytes of version 00; later ones may go on after another dash.
const LEN: usize = 55;

/// The trace id in `headers`: 32 digits. Nothing where the field cannot be read, or is there twice.
#[must_use]
pub fn trace_id(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(&TRACEPARENT).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    let value = value.to_str().ok()?;
    let mut parts = value.split('-');
    let (version, trace, parent, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, len| {
        let mut digits = text.bytes();
        text.len() == len && digits.all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_zero = |text: &str| text.bytes().all(|byte| byte == b'0');
    let is_good = is_hex(version, 2)
        && version != "ff"
        && (version != "00" || value.len() == LEN)
        && is_hex(trace, 32)
        && !is_zero(trace)
        && is_hex(parent, 16)
        && !is_zero(parent)
        && is_hex(flags, 2);
    is_good.then_some(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn read(values: &[&str]) -> Option<String> {
        let values = values
            .iter()
            .map(|value| (TRACEPARENT, value.parse().unwrap()));
        trace_id(&values.collect()).map(str::to_owned)
    }

    #[test]
    fn a_trace_is_known_by_its_id_and_what_is_none_by_nothing() {
        let good = format!("00-{TRACE}-00f067aa0ba902b7-01");
        assert_eq!(read(&[&good]).as_deref(), Some(TRACE));
        let later = format!("cc-{TRACE}-00f067aa0ba902b7-01-more");
        assert_eq!(read(&[&later]).as_deref(), Some(TRACE));
        for wrong in [
            "",
            "00",
            &good[..54],
            &format!("{good}0"),
            &format!("{good}-more"),
            &format!("ff-{TRACE}-00f067aa0ba902b7-01"),
            &format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            &format!("00-{TRACE}-0000000000000000-01"),
            &good.to_uppercase(),
        ] {
            assert_eq!(read(&[wrong]), None, "{wrong:?}");
        }
        assert_eq!(read(&[]), None);
        assert_eq!(read(&[&good, &good]), None);
    }
}
