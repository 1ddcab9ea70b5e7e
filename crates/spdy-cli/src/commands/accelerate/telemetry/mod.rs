//! Spans of `spdy accelerate`, sent to a collector by OTLP over HTTP.
//!
//! ```text
//!  spdy-proxy ─ Span ─▶ queue.rs ── so many, or a second later ─▶ export_task.rs ─ otlp.rs ─▶ POST /v1/traces
//!                         full: dropped, and counted                 away: tried again for a minute, told once
//! ```
//!
//! OpenTelemetry's own batches and exporter are not used: they count no span that they drop, and do not say why a collector takes
//! none. The messages are theirs (`opentelemetry-proto`). Requests wait for nothing here.

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
