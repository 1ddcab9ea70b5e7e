//! The part of the configuration for spans: which are made, what they contain, and where they are sent.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use url::Url;

use crate::telemetry::spans::{Sampler, SpanRules};

/// Spans that may wait to be sent, at most: some hundred MiB.
const MAX_QUEUE: usize = 65_536;

/// Spans of requests, sent to a collector by OTLP over HTTP. Environment variables (`OTEL_EXPORTER_OTLP_ENDPOINT` and
/// others) set keys that are not set here. Without this table, no spans are recorded.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TelemetryConfig {
    /// The collector. `/v1/traces` is added. Default `http://127.0.0.1:4318`.
    pub endpoint: Option<Url>,
    /// Fraction of the traces started here that are recorded. Range: 0 to 1. Default `OTEL_TRACES_SAMPLER`, else 1.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 1)))]
    pub sample: Option<f64>,
    /// Whether a client's `traceparent` is trusted: its trace continues here, and is recorded if the client records it.
    /// Otherwise a trace begins with each request and links to the client's. Default `false`.
    pub trust_clients: bool,
    /// Whether spans contain the queries of URLs, which may hold secrets. Default `false`.
    pub queries: bool,
    /// The service name for the collector. Default `spdy`.
    pub service_name: Option<String>,
    /// A file with fields for the collector, such as tokens: one `Name: value` on each line. SIGHUP reads it again.
    pub headers_file: Option<PathBuf>,
    /// PEM of the authority that signs the collector's certificate. Default the system's.
    pub authority: Option<PathBuf>,
    /// Spans that wait to be sent. Above it, spans are dropped and counted. Range: 1 to 65536. Default 2048.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 65_536)))]
    pub queue: usize,
    /// Time for the collector to respond. Range: at least 1. Default 10.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub timeout_s: u64,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            endpoint: None,
            sample: None,
            trust_clients: false,
            queries: false,
            service_name: None,
            headers_file: None,
            authority: None,
            queue: 2048,
            timeout_s: 10,
        }
    }
}

impl TelemetryConfig {
    /// Of which requests there are spans: of those that `sampler` chooses.
    #[must_use]
    pub fn rules(&self, sampler: Sampler) -> SpanRules {
        SpanRules {
            sampler,
            trust_clients: self.trust_clients,
            record_queries: self.queries,
        }
    }

    /// How long the collector may take to answer.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_s)
    }

    /// A fault in it: the key, what is valid, and the value.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str, String)> {
        if let Some(endpoint) = &self.endpoint
            && let Some(found) = endpoint_fault(endpoint)
        {
            return Some(("telemetry.endpoint", EXPECTED_ENDPOINT, found));
        }
        if let Some(sample) = self.sample.filter(|part| !(0.0..=1.0).contains(part)) {
            let expected = "a number from 0 to 1";
            return Some(("telemetry.sample", expected, sample.to_string()));
        }
        if self.service_name.as_deref() == Some("") {
            return Some(("telemetry.service_name", "a name", "none".to_owned()));
        }
        if !(1..=MAX_QUEUE).contains(&self.queue) {
            return Some(("telemetry.queue", "1 to 65536", self.queue.to_string()));
        }
        if self.timeout_s == 0 {
            return Some(("telemetry.timeout_s", "1 or more", "0".to_owned()));
        }
        None
    }
}

/// What an endpoint is.
pub const EXPECTED_ENDPOINT: &str =
    "an http or https URL of a collector, without a user, a password, a query or a fragment";

/// What `endpoint` is instead, as far as it may be shown: there is a password in it, perhaps.
#[must_use]
pub fn endpoint_fault(endpoint: &Url) -> Option<String> {
    if !endpoint.username().is_empty() || endpoint.password().is_some() {
        return Some("a URL with a user (use headers_file for credentials)".to_owned());
    }
    let is_good = matches!(endpoint.scheme(), "http" | "https")
        && endpoint.has_host()
        && endpoint.query().is_none()
        && endpoint.fragment().is_none();
    (!is_good).then(|| format!("{:?}", endpoint.as_str()))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    fn read(keys: &str) -> Result<Config, String> {
        let site = "[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n";
        Config::parse(&format!("{keys}\n{site}")).map_err(|error| error.to_string())
    }

    #[test]
    fn empty_telemetry_table_uses_defaults_and_no_table_disables() {
        let config = read("[telemetry]").unwrap().telemetry.unwrap();
        assert_eq!(
            (config.sample, config.queue, config.timeout_s),
            (None, 2048, 10)
        );
        assert!(!config.trust_clients && !config.queries);
        assert_eq!(read("").unwrap().telemetry, None);
    }

    #[test]
    fn invalid_telemetry_error_names_key_and_hides_password() {
        for (line, expected) in [
            (
                "sample = 1.5",
                "telemetry.sample: expected a number from 0 to 1, found 1.5",
            ),
            (
                "sample = -0.1",
                "telemetry.sample: expected a number from 0 to 1, found -0.1",
            ),
            (
                "sample = nan",
                "telemetry.sample: expected a number from 0 to 1, found NaN",
            ),
            ("queue = 0", "telemetry.queue: expected 1 to 65536, found 0"),
            (
                "queue = 65537",
                "telemetry.queue: expected 1 to 65536, found 65537",
            ),
            (
                "timeout_s = 0",
                "telemetry.timeout_s: expected 1 or more, found 0",
            ),
            (
                "service_name = ''",
                "telemetry.service_name: expected a name, found none",
            ),
            (
                "endpoint = 'grpc://c.test:4317'",
                "telemetry.endpoint: expected an http or https URL",
            ),
            (
                "endpoint = 'http://c.test/?key=1'",
                "telemetry.endpoint: expected an http or https URL",
            ),
            (
                "endpoint = 'http://me:sesame@c.test'",
                "telemetry.endpoint: expected an http or https URL",
            ),
            ("protocol = 'grpc'", "unknown field `protocol`"),
        ] {
            let error = read(&format!("[telemetry]\n{line}")).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
            assert!(!error.contains("sesame"), "{line}: {error}");
        }
    }
}
