//! Encodes counters and gauges for Prometheus.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// A counter; its name gets the suffix `_total`.
pub fn counter<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, MetricType::Counter)
}

/// A gauge.
pub fn gauge<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)
}

/// Adds one sample of a counter.
pub fn put(
    metric: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    count: u64,
) -> fmt::Result {
    metric
        .encode_family(labels)?
        .encode_counter::<NoLabelSet, _, u64>(&count, None)
}

/// Adds one sample of a gauge.
pub fn put_gauge(
    metric: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    now: u64,
) -> fmt::Result {
    metric.encode_family(labels)?.encode_gauge(&now)
}
