//! Encodes spans as OTLP (*OTLP Specification*, `opentelemetry/proto/trace/v1/trace.proto`), and decodes the response.

use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::{self, Link};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{self as wire, ResourceSpans, ScopeSpans, Status};
use prost::Message;
use spdy_clock::Instant;
use spdy_proxy::telemetry::spans::{AttributeValue, Span, SpanKind};
use spdy_proxy::telemetry::trace_context::SpanContext;

/// The conventions that names of attributes follow.
const SCHEMA: &str = "https://opentelemetry.io/schemas/1.37.0";
/// A bit of `flags`: [`IS_REMOTE`] is valid (*SpanFlags*).
const HAS_IS_REMOTE: u32 = 0x100;
/// A bit of `flags`: the parent span is of another program.
const IS_REMOTE: u32 = 0x200;

/// A wall-clock time, and the same instant of the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct WallClockAnchor {
    pub(super) at: Instant,
    pub(super) was: SystemTime,
}

impl WallClockAnchor {
    /// Nanoseconds since 1970 at `instant`.
    fn nanos(self, instant: Instant) -> u64 {
        let now = self.was.duration_since(UNIX_EPOCH).unwrap_or_default();
        let then = match instant < self.at {
            true => now.saturating_sub(self.at - instant),
            false => now + (instant - self.at),
        };
        u64::try_from(then.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The OTLP message with `spans` of the resource `resource`.
pub(super) fn request(
    resource: &[(String, String)],
    spans: &[Span],
    wall_clock: WallClockAnchor,
) -> Bytes {
    let text = |text: &str| Any::StringValue(text.to_owned());
    let attributes = resource
        .iter()
        .map(|(name, value)| attribute(name, text(value)));
    let scope = InstrumentationScope {
        name: "spdy".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    };
    let spans = ScopeSpans {
        scope: Some(scope),
        spans: spans.iter().map(|span| to_wire(span, wall_clock)).collect(),
        schema_url: SCHEMA.to_owned(),
    };
    let all = ResourceSpans {
        resource: Some(Resource {
            attributes: attributes.collect(),
            ..Resource::default()
        }),
        scope_spans: vec![spans],
        ..ResourceSpans::default()
    };
    let request = ExportTraceServiceRequest {
        resource_spans: vec![all],
    };
    request.encode_to_vec().into()
}

/// How many spans a collector rejected, and why (*Partial Success*). An answer that cannot be decoded counts as no rejection.
pub(super) fn rejected(answer: &[u8]) -> (usize, String) {
    let answer = ExportTraceServiceResponse::decode(answer).unwrap_or_default();
    let partial = answer.partial_success.unwrap_or_default();
    let rejected = usize::try_from(partial.rejected_spans).unwrap_or_default();
    (rejected, partial.error_message)
}

fn to_wire(span: &Span, wall_clock: WallClockAnchor) -> wire::Span {
    let kind = match span.kind {
        SpanKind::Server => span::SpanKind::Server,
        SpanKind::Client => span::SpanKind::Client,
        SpanKind::Internal => span::SpanKind::Internal,
    };
    let recorded = span.attributes.iter();
    let mut attributes: Vec<KeyValue> = recorded
        .map(|(name, value)| attribute(name, any(value)))
        .collect();
    let status = span.error.as_ref().map(|error| {
        attributes.push(attribute("error.type", Any::StringValue(error.to_string())));
        Status {
            code: StatusCode::Error.into(),
            ..Status::default()
        }
    });
    wire::Span {
        trace_id: span.context.trace_id.to_bytes().to_vec(),
        span_id: span.context.span_id.to_bytes().to_vec(),
        trace_state: state(&span.context),
        parent_span_id: span
            .parent
            .map_or_else(Vec::new, |parent| parent.to_bytes().to_vec()),
        flags: flags(&span.context, span.is_parent_remote),
        name: span.name.to_owned(),
        kind: kind.into(),
        start_time_unix_nano: wall_clock.nanos(span.began),
        end_time_unix_nano: wall_clock.nanos(span.ended),
        attributes,
        links: span.link.iter().map(link).collect(),
        status,
        ..wire::Span::default()
    }
}

fn link(to: &SpanContext) -> Link {
    Link {
        trace_id: to.trace_id.to_bytes().to_vec(),
        span_id: to.span_id.to_bytes().to_vec(),
        trace_state: state(to),
        flags: u32::from(to.is_sampled),
        ..Link::default()
    }
}

fn flags(context: &SpanContext, is_remote: bool) -> u32 {
    let remote = if is_remote { IS_REMOTE } else { 0 };
    u32::from(context.is_sampled) | HAS_IS_REMOTE | remote
}

fn state(context: &SpanContext) -> String {
    let state = context.state.as_ref().and_then(|state| state.to_str().ok());
    state.unwrap_or_default().to_owned()
}

fn any(value: &AttributeValue) -> Any {
    match value {
        AttributeValue::Text(text) => Any::StringValue(text.to_string()),
        AttributeValue::Int(number) => Any::IntValue(*number),
        AttributeValue::Float(number) => Any::DoubleValue(*number),
        AttributeValue::Bool(is_so) => Any::BoolValue(*is_so),
    }
}

fn attribute(name: &str, value: Any) -> KeyValue {
    KeyValue {
        key: name.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess;

    use super::*;

    #[test]
    fn instants_are_encoded_as_wall_time() {
        let wall_clock = WallClockAnchor {
            at: Instant::ZERO + Duration::from_secs(5),
            was: UNIX_EPOCH + Duration::from_secs(100),
        };
        let of = |ms| wall_clock.nanos(Instant::ZERO + Duration::from_millis(ms));
        assert_eq!(
            (of(4_500), of(5_000), of(5_001)),
            (99_500_000_000, 100_000_000_000, 100_001_000_000)
        );
    }

    #[test]
    fn rejected_span_counts_are_decoded_and_garbage_ignored() {
        let answer = ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans: 3,
                error_message: "too many".to_owned(),
            }),
        };
        assert_eq!(
            rejected(&answer.encode_to_vec()),
            (3, "too many".to_owned())
        );
        for nothing in [&b""[..], b"\xff\xff\xff", b"{}"] {
            assert_eq!(rejected(nothing), (0, String::new()));
        }
    }
}
