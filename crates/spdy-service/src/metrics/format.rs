//! The two texts in which Prometheus reads metrics: OpenMetrics, and its own older format.
//!
//! The two formats name counters differently. OpenMetrics describes the family `spdy_sessions`, whose samples are `spdy_sessions_total`; the
//! older format describes each name as it stands, so a program that reads it finds neither type nor help for `spdy_sessions_total`.

use std::fmt::Write;

use http::{HeaderMap, header};

/// A text format for metrics.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// The text format of Prometheus, 0.0.4.
    Prometheus,
}

impl Format {
    /// The format that a client prefers by `Accept`; OpenMetrics if it has no preference (RFC 9110 §12.5.1).
    pub(super) fn preferred(headers: &HeaderMap) -> Self {
        let lines = headers.get_all(header::ACCEPT).iter();
        let ranges: Vec<_> = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(','))
            .map(media_range)
            .collect();
        let openmetrics = quality(&ranges, "application", "openmetrics-text");
        match quality(&ranges, "text", "plain") > openmetrics {
            true => Self::Prometheus,
            false => Self::OpenMetrics,
        }
    }

    /// The media type.
    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// `openmetrics`, a text of OpenMetrics, in this format.
    pub(super) fn of_openmetrics(self, openmetrics: String) -> String {
        match self {
            Self::OpenMetrics => openmetrics,
            Self::Prometheus => to_prometheus(&openmetrics),
        }
    }
}

/// A media range of `Accept`, in lower case, and its quality.
fn media_range(text: &str) -> (String, f32) {
    let mut parameters = text.split(';').map(str::trim);
    let range = parameters.next().unwrap_or_default().to_ascii_lowercase();
    let quality = parameters
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("q"))
        .map_or(1.0, |(_, value)| value.trim().parse().unwrap_or(0.0));
    (range, quality)
}

/// The quality of a media type: that of the most specific range, and of several for the same type the highest.
fn quality(ranges: &[(String, f32)], kind: &str, subtype: &str) -> f32 {
    let of = |range: String| {
        let qualities = ranges.iter().filter(|(it, _)| *it == range);
        qualities.map(|(_, quality)| *quality).reduce(f32::max)
    };
    of(format!("{kind}/{subtype}"))
        .or_else(|| of(format!("{kind}/*")))
        .or_else(|| of("*/*".to_owned()))
        .unwrap_or(0.0)
}

/// A text of OpenMetrics with counters, gauges and histograms in the older format.
fn to_prometheus(openmetrics: &str) -> String {
    let mut text = String::with_capacity(openmetrics.len());
    // The help of a family stands before its type, by which it is named here.
    let mut help = None;
    for line in openmetrics.lines() {
        let mut words = line.splitn(4, ' ');
        let described = match (words.next(), words.next()) {
            (Some("#"), Some(what @ ("HELP" | "TYPE" | "UNIT"))) => {
                words.next().map(|name| (what, name, words.next()))
            }
            _ => None,
        };
        match described {
            Some(("HELP", name, info)) => help = Some((name, info.unwrap_or_default())),
            Some(("TYPE", name, kind)) => {
                let kind = kind.unwrap_or("untyped");
                let suffix = if kind == "counter" { "_total" } else { "" };
                if let Some((_, info)) = help.take().filter(|(of, _)| *of == name) {
                    let _ = writeln!(text, "# HELP {name}{suffix} {info}");
                }
                let _ = writeln!(text, "# TYPE {name}{suffix} {kind}");
            }
            Some(_) => {}
            None if line == "# EOF" => {}
            None => {
                text.push_str(line);
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_the_format_that_it_prefers() {
        use Format::{OpenMetrics, Prometheus};
        for (accept, expected) in [
            ("", OpenMetrics),
            ("*/*", OpenMetrics),
            ("text/plain", Prometheus),
            ("Text/Plain; version=0.0.4", Prometheus),
            ("text/*, */*;q=0.1", Prometheus),
            ("application/openmetrics-text", OpenMetrics),
            ("application/openmetrics-text, text/plain", OpenMetrics),
            (
                "application/openmetrics-text;q=0.2, text/plain;q=0.3",
                Prometheus,
            ),
            ("application/openmetrics-text;q=0, */*", Prometheus),
            ("text/plain;q=nonsense, */*;q=0.5", OpenMetrics),
            ("application/json", OpenMetrics),
            // What Prometheus 2 and 3 send.
            (
                "application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            (
                "application/vnd.google.protobuf;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Prometheus,
            ),
        ] {
            let mut headers = HeaderMap::new();
            if !accept.is_empty() {
                headers.insert(header::ACCEPT, accept.parse().expect("text"));
            }
            assert_eq!(Format::preferred(&headers), expected, "{accept}");
        }
    }

    #[test]
    fn in_the_older_format_each_name_has_its_type_and_help() {
        let openmetrics = "# HELP a Counted things.\n# TYPE a counter\na_total{x=\"# HELP\"} 1\n\
                           # HELP b Held, in bytes.\n# TYPE b gauge\n# UNIT b bytes\nb 2\n\
                           # TYPE c histogram\nc_sum 0.5\nc_count 1\nc_bucket{le=\"+Inf\"} 1\n# EOF\n";
        let expected = "# HELP a_total Counted things.\n# TYPE a_total counter\na_total{x=\"# HELP\"} 1\n\
                        # HELP b Held, in bytes.\n# TYPE b gauge\nb 2\n\
                        # TYPE c histogram\nc_sum 0.5\nc_count 1\nc_bucket{le=\"+Inf\"} 1\n";
        let format = Format::Prometheus;
        assert_eq!(format.of_openmetrics(openmetrics.to_owned()), expected);
        let format = Format::OpenMetrics;
        assert_eq!(format.of_openmetrics(openmetrics.to_owned()), openmetrics);
    }
}
