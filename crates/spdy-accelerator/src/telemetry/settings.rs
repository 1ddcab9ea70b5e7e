//! Where spans are sent, and how this program identifies itself to the collector: by the configuration, else by OpenTelemetry's
//! variables of the environment (*OTLP Exporter Configuration*, *General SDK Configuration*).

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::Uri;
use percent_encoding::percent_decode_str;
use spdy_net::tls::certificates::certificates_from_pem;
use spdy_net::tls::verify::{Roots, Trust};
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_proxy::config::telemetry::{EXPECTED_ENDPOINT, TelemetryConfig, endpoint_fault};
use spdy_proxy::telemetry::spans::Sampler;
use spdy_service::error::Usage;
use spdy_service::notice::Notices;
use url::Url;

use super::sampler;

/// The URL at which collectors listen for OTLP over HTTP by default.
const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:4318";
/// The path of spans below that URL.
const PATH: &str = "v1/traces";
/// Default name of this service.
const DEFAULT_SERVICE_NAME: &str = "spdy";
const SERVICE_NAME: &str = "service.name";

const ENDPOINT: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];
const HEADERS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    "OTEL_EXPORTER_OTLP_HEADERS",
];
const PROTOCOL: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
];

/// Everything that sending spans needs.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(super) config: TelemetryConfig,
    /// The URL that spans are sent to.
    pub(super) uri: Uri,
    /// Headers of each request.
    pub(super) headers: HeaderMap,
    pub(super) tls: ClientTls,
    /// Resource attributes of this program.
    pub(super) resource: Vec<(String, String)>,
    pub(super) timeout: Duration,
    /// Which traces are recorded.
    pub(super) sampler: Sampler,
    /// Reasons why variables of the environment are ignored.
    warnings: Vec<String>,
}

impl Settings {
    /// The settings of `config`, and of the environment for keys that `config` lacks.
    pub(crate) fn of(config: &TelemetryConfig) -> anyhow::Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self::read(config, &variable)
    }

    /// Prints warnings about settings that may be mistakes.
    pub(crate) fn report_warnings(&self, notices: &Notices) {
        for warning in &self.warnings {
            notices.warning("telemetry", format_args!(": {warning}"));
        }
    }

    fn read(
        config: &TelemetryConfig,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> anyhow::Result<Self> {
        let first = |names: [&'static str; 2]| {
            let mut names = names.into_iter();
            names.find_map(|name| Some((name, variable(name)?)))
        };
        if let Some((name, found)) = first(PROTOCOL).filter(|(_, found)| found != "http/protobuf") {
            let reason =
                format!("{name} in the environment: expected http/protobuf, found {found:?}");
            return Err(Usage(reason).into());
        }
        let headers = match &config.headers_file {
            Some(path) => headers_of_file(path)?,
            None => match first(HEADERS) {
                Some((name, list)) => headers_of_list(name, &list)?,
                None => HeaderMap::new(),
            },
        };
        let uri = endpoint(config.endpoint.as_ref(), first(ENDPOINT))?;
        if config.authority.is_some() && uri.scheme_str() != Some("https") {
            let reason = format!("telemetry.authority: expected an https endpoint, found {uri}");
            return Err(Usage(reason).into());
        }
        let (sampler, warnings) = sampler::read(config.sample, variable);
        Ok(Self {
            config: config.clone(),
            uri,
            headers,
            tls: tls(config.authority.as_deref())?,
            resource: resource(config.service_name.as_deref(), variable)?,
            timeout: config.timeout(),
            sampler,
            warnings,
        })
    }
}

fn endpoint(
    configured: Option<&Url>,
    variable: Option<(&'static str, String)>,
) -> anyhow::Result<Uri> {
    let (url, is_whole) = match (configured, variable) {
        (Some(url), _) => (url.clone(), false),
        (None, Some((name, value))) => {
            let wrong = |found: &str| {
                Usage(format!(
                    "{name} in the environment: expected {EXPECTED_ENDPOINT}, found {found}"
                ))
            };
            let url = Url::parse(&value).map_err(|_| wrong("no URL"))?;
            if let Some(found) = endpoint_fault(&url) {
                return Err(wrong(&found).into());
            }
            (url, name == ENDPOINT[0])
        }
        (None, None) => (Url::parse(DEFAULT_ENDPOINT)?, false),
    };
    // The variable for traces only is used unchanged; the path is added to all others.
    let whole = match is_whole {
        true => url.to_string(),
        false => format!("{}/{PATH}", url.as_str().trim_end_matches('/')),
    };
    Ok(whole.parse()?)
}

/// Reads fields from a file, one per line. Errors do not quote it, because it contains tokens.
fn headers_of_file(path: &Path) -> anyhow::Result<HeaderMap> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let mut headers = HeaderMap::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let field = line.split_once(':');
        let field = field.and_then(|(name, value)| field_of(name.trim(), value.trim()));
        let Some((name, value)) = field else {
            let (place, number) = (path.display(), number + 1);
            let reason = format!("{place}, line {number}: expected a header as Name: value");
            return Err(Usage(reason).into());
        };
        headers.append(name, value);
    }
    Ok(headers)
}

/// Fields as `name=value,name=value`, their values in percent-encoding.
fn headers_of_list(variable: &str, list: &str) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (number, (name, value)) in (1..).zip(pairs(variable, list)?) {
        let Some((name, value)) = field_of(&name, &value) else {
            // Does not print the value: `Name: value` may have a token before the first `=`.
            let reason = format!(
                "{variable} in the environment: expected name=value,name=value of headers; entry {number} is invalid"
            );
            return Err(Usage(reason).into());
        };
        headers.append(name, value);
    }
    Ok(headers)
}

fn field_of(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let mut value = HeaderValue::try_from(value).ok()?;
    value.set_sensitive(true);
    Some((HeaderName::try_from(name).ok()?, value))
}

/// `name=value,name=value`; an error shows no value.
fn pairs(variable: &str, list: &str) -> anyhow::Result<Vec<(String, String)>> {
    let members = list.split(',').map(str::trim).filter(|it| !it.is_empty());
    let members = members.map(|member| {
        let (name, value) = member.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        Some((name.trim().to_owned(), value.into_owned()))
    });
    members.collect::<Option<_>>().ok_or_else(|| {
        let expected = "expected percent-encoded name=value,name=value";
        Usage(format!("{variable} in the environment: {expected}")).into()
    })
}

/// The resource attributes of this program. Its name is from the configuration, from its own variable, from the list of attributes, or the
/// default.
fn resource(
    service: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> anyhow::Result<Vec<(String, String)>> {
    let list = "OTEL_RESOURCE_ATTRIBUTES";
    let mut all = match variable(list) {
        Some(value) => pairs(list, &value)?,
        None => Vec::new(),
    };
    let named = service.map(str::to_owned);
    let named = named.or_else(|| variable("OTEL_SERVICE_NAME"));
    let is_name = |(name, _): &(String, String)| name == SERVICE_NAME;
    if named.is_some() {
        all.retain(|pair| !is_name(pair));
    }
    if !all.iter().any(is_name) {
        let name = named.unwrap_or_else(|| DEFAULT_SERVICE_NAME.to_owned());
        all.push((SERVICE_NAME.to_owned(), name));
    }
    Ok(all)
}

fn tls(authority: Option<&Path>) -> anyhow::Result<ClientTls> {
    let mut authorities = Vec::new();
    if let Some(path) = authority {
        let pem = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        authorities = certificates_from_pem(&pem, &path.display().to_string())?;
    }
    let trust = Trust {
        roots: Roots::SystemPlus(authorities),
        ..Trust::default()
    };
    Ok(ClientTls::new(&trust, &TlsOptions::default())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(config: &TelemetryConfig, variables: &[(&str, &str)]) -> Result<Settings, String> {
        let variable = |name: &str| {
            let mut all = variables.iter();
            let found = all.find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        Settings::read(config, &variable).map_err(|error| error.to_string())
    }

    fn configured(endpoint: &str) -> TelemetryConfig {
        TelemetryConfig {
            endpoint: Some(endpoint.parse().expect("a URL")),
            ..TelemetryConfig::default()
        }
    }

    #[test]
    fn the_endpoint_is_from_configuration_then_traces_then_general_variable() {
        let nothing = TelemetryConfig::default();
        let all = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://all.test/otlp/");
        let traces = (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "http://t.test/as-it-is",
        );
        for (config, variables, expected) in [
            (&nothing, &[][..], "http://127.0.0.1:4318/v1/traces"),
            (&nothing, &[all], "https://all.test/otlp/v1/traces"),
            (&nothing, &[all, traces], "http://t.test/as-it-is"),
            (
                &configured("http://c.test"),
                &[all, traces],
                "http://c.test/v1/traces",
            ),
        ] {
            let settings = read(config, variables).expect("good ones");
            assert_eq!(settings.uri, expected, "{variables:?}");
        }
    }

    #[test]
    fn the_most_specific_service_name_wins() {
        let list = (
            "OTEL_RESOURCE_ATTRIBUTES",
            "service.name=listed, team=a%20b",
        );
        let name = ("OTEL_SERVICE_NAME", "named");
        let of = |service: Option<&str>, variables: &[(&str, &str)]| {
            let config = TelemetryConfig {
                service_name: service.map(str::to_owned),
                ..TelemetryConfig::default()
            };
            let mut all = read(&config, variables).expect("good ones").resource;
            all.sort();
            let all = all.iter().map(|(name, value)| format!("{name}={value}"));
            all.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of(None, &[]), "service.name=spdy");
        assert_eq!(of(None, &[list]), "service.name=listed team=a b");
        assert_eq!(of(None, &[list, name]), "service.name=named team=a b");
        assert_eq!(
            of(Some("mine"), &[list, name]),
            "service.name=mine team=a b"
        );
    }

    #[test]
    fn headers_are_from_the_file_else_from_the_environment() {
        let folder = tempfile::tempdir().expect("create a folder");
        let path = folder.path().join("headers");
        let variable = ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%3Db,x-other=c");
        let nothing = TelemetryConfig::default();
        let headers = read(&nothing, &[variable]).expect("good ones").headers;
        assert_eq!(headers["x-key"], "a=b");
        assert_eq!(headers["x-other"], "c");
        std::fs::write(&path, "Authorization: Bearer sesame\n\nx-tenant: 7\n").expect("written");
        let config = TelemetryConfig {
            headers_file: Some(path.clone()),
            ..nothing
        };
        let settings = read(&config, &[variable]).expect("good ones");
        let headers = &settings.headers;
        assert_eq!(headers["authorization"], "Bearer sesame");
        assert_eq!(headers["x-tenant"], "7");
        assert_eq!(headers.len(), 2);
        assert!(
            !format!("{settings:?}").contains("sesame"),
            "a secret is printed"
        );
        for wrong in ["sesame", "a b: sesame", "a: se\u{7}same"] {
            std::fs::write(&path, format!("x-tenant: 7\n{wrong}\n")).expect("written");
            let error = read(&config, &[]).expect_err("an invalid value");
            let expected = ", line 2: expected a header as Name: value";
            assert!(error.ends_with(expected), "{wrong:?}: {error}");
        }
    }

    #[test]
    fn invalid_variables_are_reported_by_name_without_secrets() {
        for (name, value, expected) in [
            (
                PROTOCOL[1],
                "grpc",
                "expected http/protobuf, found \"grpc\"",
            ),
            (ENDPOINT[1], "sesame", "found no URL"),
            (
                ENDPOINT[0],
                "http://me:sesame@c.test/",
                "found a URL with a user",
            ),
            (HEADERS[1], "sesame", "name=value,name=value"),
            (HEADERS[0], "a b=sesame", "entry 1 is invalid"),
            (
                HEADERS[0],
                "a=1,authorization: Bearer sesame==",
                "entry 2 is invalid",
            ),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                "a=%ff",
                "expected percent-encoded name=value",
            ),
        ] {
            let error = read(&TelemetryConfig::default(), &[(name, value)]);
            let error = error.expect_err("an invalid value");
            assert!(
                error.starts_with(&format!("{name} in the environment: ")),
                "{error}"
            );
            assert!(
                error.contains(expected) && !error.contains("sesame"),
                "{error}"
            );
        }
    }
}
