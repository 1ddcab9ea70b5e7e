//! Counters, latency histograms, spans, access log and page reports.

pub mod access_log;
pub mod counters;
pub mod histogram;
pub mod origin_latency;
pub mod page_report;
pub mod page_reports;
pub mod recorders;
pub mod shared_access_log;
pub mod site_counters;
pub mod span_attributes;
pub mod spans;
pub mod trace_context;
