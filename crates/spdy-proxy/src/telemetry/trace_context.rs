//! The trace that a request belongs to, and its span there (W3C Trace Context, *traceparent Header*).
//!
//! ```text
//! traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
//!              version  trace id, not all zeros      parent id      flags, the lowest: sampled
//! ```
//!
//! If spans are off, `traceparent` and `tracestate` go on to the site's own origin unchanged. If spans are on (`telemetry/spans.rs`), the
//! origin gets the span of its own fetch instead. Other hosts get neither: their requests identify no client.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The field.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Vendor data of tracing systems, sent together with it.
pub const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Bytes of version 00; later ones may go on after another dash.
const LEN: usize = 55;
/// The longest `tracestate` of a client that is passed on, in bytes: the length that all should support (*tracestate Limits*).
pub const STATE_BYTES: usize = 512;

/// The ID of a trace: 16 bytes, not all zeros.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TraceId(NonZeroU128);

/// The ID of a span: 8 bytes, not all zeros.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SpanId(NonZeroU64);

impl TraceId {
    /// The ID for a random `number`; 0, which is not a valid ID, becomes 1.
    #[must_use]
    pub fn of(number: u128) -> Self {
        Self(NonZeroU128::new(number).unwrap_or(NonZeroU128::MIN))
    }

    /// The number.
    #[must_use]
    pub fn number(self) -> u128 {
        self.0.get()
    }

    /// As on the wire.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0.get().to_be_bytes()
    }
}

impl SpanId {
    /// The ID for a random `number`; 0, which is not a valid ID, becomes 1.
    #[must_use]
    pub fn of(number: u64) -> Self {
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }

    /// As on the wire.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 8] {
        self.0.get().to_be_bytes()
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The identity of a span for other programs: the parent of spans that it causes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SpanContext {
    /// The trace.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
    /// The caller that began the trace requests that it is recorded.
    pub is_sampled: bool,
    /// The value of `tracestate`, of at most [`STATE_BYTES`].
    pub state: Option<HeaderValue>,
}

impl SpanContext {
    /// The context in `headers`. `None` if `traceparent` cannot be read, or occurs twice.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
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
        let is_good = is_hex(version, 2)
            && version != "ff"
            && (version != "00" || value.len() == LEN)
            && is_hex(trace, 32)
            && is_hex(parent, 16)
            && is_hex(flags, 2);
        if !is_good {
            return None;
        }
        let trace = NonZeroU128::new(u128::from_str_radix(trace, 16).ok()?)?;
        let parent = NonZeroU64::new(u64::from_str_radix(parent, 16).ok()?)?;
        Some(Self {
            trace_id: TraceId(trace),
            span_id: SpanId(parent),
            is_sampled: u8::from_str_radix(flags, 16).ok()? & 1 == 1,
            state: state(headers),
        })
    }

    /// The value of `traceparent` that names it.
    #[must_use]
    pub fn traceparent(&self) -> HeaderValue {
        let (trace, span, flags) = (self.trace_id, self.span_id, u8::from(self.is_sampled));
        let value = format!("00-{trace}-{span}-{flags:02x}");
        HeaderValue::try_from(value).expect("digits and dashes are visible ASCII")
    }

    /// Sets the context in `headers`, in place of what they had.
    pub(crate) fn set_headers(&self, headers: &mut HeaderMap) {
        headers.insert(TRACEPARENT, self.traceparent());
        match &self.state {
            Some(state) => headers.insert(TRACESTATE, state.clone()),
            None => headers.remove(TRACESTATE),
        };
    }
}

/// All fields `tracestate` as one; `None` if that is too long to be passed on.
fn state(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut values = headers.get_all(&TRACESTATE).iter();
    let first = values.next()?;
    let rest: Vec<&[u8]> = values.map(HeaderValue::as_bytes).collect();
    let joined = match rest.is_empty() {
        true => first.clone(),
        false => {
            let all = std::iter::once(first.as_bytes()).chain(rest);
            HeaderValue::from_bytes(&all.collect::<Vec<_>>().join(&b","[..])).ok()?
        }
    };
    (joined.len() <= STATE_BYTES).then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn read(values: &[&str]) -> Option<SpanContext> {
        let values = values
            .iter()
            .map(|value| (TRACEPARENT, value.parse().unwrap()));
        SpanContext::of(&values.collect())
    }

    #[test]
    fn traceparent_parses_only_valid_ids() {
        let good = format!("00-{TRACE}-00f067aa0ba902b7-01");
        let context = read(&[&good]).unwrap();
        assert_eq!(context.trace_id.to_string(), TRACE);
        assert_eq!(context.span_id.to_string(), "00f067aa0ba902b7");
        assert!(context.is_sampled);
        assert_eq!(context.traceparent(), good);
        let later = format!("cc-{TRACE}-00f067aa0ba902b7-02-more");
        let context = read(&[&later]).unwrap();
        assert_eq!(context.trace_id.to_string(), TRACE);
        assert!(!context.is_sampled);
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

    #[test]
    fn tracestate_lines_are_joined_and_long_ones_dropped() {
        let with = |states: &[&str]| {
            let mut headers = HeaderMap::new();
            let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
            headers.insert(TRACEPARENT, parent.parse().unwrap());
            for state in states {
                headers.append(TRACESTATE, state.parse().unwrap());
            }
            let context = SpanContext::of(&headers).unwrap();
            context.set_headers(&mut headers);
            headers.get(TRACESTATE).cloned()
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&["a=1", "b=2"]).unwrap(), "a=1,b=2");
        let longest = "a".repeat(STATE_BYTES);
        assert_eq!(with(&[&longest]).unwrap(), longest.as_str());
        assert_eq!(with(&[&format!("{longest}a")]), None);
    }
}
