//! Spans of `spdy accelerate`, sent to a collector by OTLP over HTTP.
//!
//! ```text
//! spdy-proxy ─ Span ─▶ queue.rs ── a full batch, or after 1 s ─▶ export_task.rs ─ otlp.rs ─▶ POST /v1/traces
//!                      full: the span is dropped and counted      unreachable: retried for 1 min, with one note
//! ```
//!
//! OpenTelemetry's own batch processor and exporter are not used: they do not count dropped spans, and do not report why a collector
//! rejects them. The messages are those of `opentelemetry-proto`. No request waits for telemetry.

mod export_task;
mod lifecycle;
mod otlp;
mod otlp_client;
mod queue;
mod sampler;
mod settings;

pub(super) use lifecycle::Telemetry;
pub(super) use queue::Queue;
pub(super) use settings::Settings;
