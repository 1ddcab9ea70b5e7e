//! The result of `spdy bench`, as a page or as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use spdy_load::plan::Plan;
use spdy_load::report::{LatencyHistogram, Report};

use crate::output::{BAD, BOLD, DIM, Printer, escape};

/// Percentiles that are printed.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// The result of a load.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct BenchSummary<'a> {
    /// The protocol, by its ALPN name.
    protocol: &'static str,
    /// True if the sessions use TLS.
    tls: bool,
    /// Number of open sessions when the load began.
    sessions: usize,
    /// Number of requests in flight on each session.
    streams: usize,
    /// Requested rate, requests per second; `null` if the load is not limited.
    rate: Option<f64>,
    /// Duration of the run.
    seconds: f64,
    /// True if the run was ended early by a signal.
    stopped: bool,
    /// True if no request failed and every response was as expected.
    right: bool,
    /// Number of complete responses, with any status and length.
    requests: u64,
    /// Complete responses per second.
    requests_per_second: f64,
    /// Number of responses, by status.
    statuses: &'a BTreeMap<u16, u64>,
    /// Responses with an unexpected status.
    wrong_status: u64,
    /// Responses with the expected status and an unexpected length.
    wrong_length: u64,
    /// Requests without a response and failed connections, by kind.
    errors: BTreeMap<&'static str, Error<'a>>,
    /// Requests that were sent again on another connection, because the server had not begun with them.
    resent: u64,
    /// Connections that replaced ended ones.
    reconnects: u64,
    /// Requests in flight at the end of the run.
    unfinished: u64,
    /// Transferred bytes.
    bytes: Bytes,
    /// From the (intended) start of a request to the end of its response, milliseconds.
    latency_ms: LatencySummary,
    /// From the first packet of a connection to the end of the TLS handshake, milliseconds.
    set_up_ms: LatencySummary,
    /// CPU time and memory of the server; `null` without --pid.
    server: Option<Server>,
    /// CPU time of this program; `null` if the system does not report it.
    own_cpu_seconds: Option<f64>,
}

/// Errors of one kind.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Error<'a> {
    /// Number of these errors.
    count: u64,
    /// The first of them, in words.
    first: &'a str,
}

/// Transferred bytes.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Bytes {
    /// Bytes of response bodies.
    bodies: u64,
    /// Bytes that were sent, without TLS.
    sent: u64,
    /// Bytes that were received, without TLS.
    received: u64,
    /// Bytes of sent headers on the wire.
    sent_headers: u64,
    /// Bytes of received headers on the wire.
    received_headers: u64,
    /// Received bytes per second.
    received_per_second: f64,
}

/// A distribution of times, milliseconds.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct LatencySummary {
    /// Mean, milliseconds.
    mean: f64,
    /// Median, milliseconds.
    p50: f64,
    /// 90th percentile, milliseconds.
    p90: f64,
    /// 99th percentile, milliseconds.
    p99: f64,
    /// 99.9th percentile, milliseconds.
    #[serde(rename = "p99.9")]
    p999: f64,
    /// Maximum, milliseconds.
    max: f64,
}

impl LatencySummary {
    fn of(times: &LatencyHistogram) -> Self {
        let [p50, p90, p99, p999] = QUANTILES.map(|(_, quantile)| ms(times.at(quantile)));
        Self {
            mean: ms(times.mean()),
            p50,
            p90,
            p99,
            p999,
            max: ms(times.max()),
        }
    }
}

/// CPU time and memory of the processes of the server.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Server {
    /// Number of processes.
    processes: usize,
    /// User and system time during the run.
    cpu_seconds: f64,
    /// CPU time for 100,000 requests; `null` without requests.
    cpu_seconds_per_100000: Option<f64>,
    /// Resident memory at the end of the run.
    resident_bytes: u64,
    /// Sum of the largest resident memory of each process.
    peak_bytes: u64,
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// Prints the result.
pub(crate) fn print_report(
    report: &Report,
    plan: &Plan,
    json: bool,
    printer: &Printer,
) -> anyhow::Result<()> {
    match json {
        true => printer.json(&of(report, plan)),
        false => page(report, plan, printer),
    }
}

fn of<'a>(report: &'a Report, plan: &Plan) -> BenchSummary<'a> {
    let error = |faults: &'a spdy_load::report::Faults| Error {
        count: faults.count,
        first: &faults.first,
    };
    BenchSummary {
        protocol: report.protocol.alpn(),
        tls: plan.target.is_secure(),
        sessions: report.sessions,
        streams: report.streams,
        rate: plan.rate,
        seconds: report.elapsed.as_secs_f64(),
        stopped: report.stopped,
        right: report.is_right(),
        requests: report.answered,
        requests_per_second: report.per_second(report.answered),
        statuses: &report.statuses,
        wrong_status: report.wrong_status,
        wrong_length: report.wrong_length,
        errors: report
            .faults
            .iter()
            .map(|(kind, faults)| (kind.name(), error(faults)))
            .collect(),
        resent: report.resent,
        reconnects: report.reconnects,
        unfinished: report.unfinished,
        bytes: Bytes {
            bodies: report.body_bytes,
            sent: report.sent_bytes,
            received: report.received_bytes,
            sent_headers: report.sent_header_bytes,
            received_headers: report.received_header_bytes,
            received_per_second: report.per_second(report.received_bytes),
        },
        latency_ms: LatencySummary::of(&report.latency),
        set_up_ms: LatencySummary::of(&report.set_up),
        server: report.usage.map(|usage| Server {
            processes: usage.last.processes,
            cpu_seconds: usage.cpu.as_secs_f64(),
            cpu_seconds_per_100000: report.per_100_000(usage.cpu),
            resident_bytes: usage.last.resident_bytes,
            peak_bytes: usage.last.peak_bytes,
        }),
        own_cpu_seconds: report.own_cpu.map(|cpu| cpu.as_secs_f64()),
    }
}

fn page(report: &Report, plan: &Plan, printer: &Printer) -> anyhow::Result<()> {
    let row = |name: &str, text: String| printer.line(format_args!("{DIM}{name:<12}{DIM:#}{text}"));
    let tls = if plan.target.is_secure() {
        " over TLS"
    } else {
        ""
    };
    let pace = plan
        .rate
        .map_or(String::new(), |rate| format!(", target {rate} requests/s"));
    row(
        "load",
        format!(
            "{}{tls}, {} sessions of {} streams{pace}, {:.2} s{}",
            report.protocol,
            report.sessions,
            report.streams,
            report.elapsed.as_secs_f64(),
            if report.stopped {
                ", stopped early"
            } else {
                ""
            },
        ),
    )?;
    row(
        "requests",
        format!(
            "{BOLD}{:.0}{BOLD:#} per second, {} in total{}",
            report.per_second(report.answered),
            report.answered,
            statuses(report),
        ),
    )?;
    row("latency", times(&report.latency))?;
    row("set-up", times(&report.set_up))?;
    row(
        "received",
        bytes(report, report.received_bytes, report.received_header_bytes),
    )?;
    row(
        "sent",
        bytes(report, report.sent_bytes, report.sent_header_bytes),
    )?;
    if let Some(usage) = report.usage {
        let per = report.per_100_000(usage.cpu).map_or(String::new(), |per| {
            format!(", {BOLD}{per:.3}{BOLD:#} for 100,000 requests")
        });
        row(
            "server CPU",
            format!("{:.2} s{per}", usage.cpu.as_secs_f64()),
        )?;
        row(
            "server RSS",
            format!(
                "{}, at most {}; {} processes",
                size(usage.last.resident_bytes as f64),
                size(usage.last.peak_bytes as f64),
                usage.last.processes,
            ),
        )?;
    }
    if let Some(cpu) = report.own_cpu {
        let per = report.per_100_000(cpu).map_or(String::new(), |per| {
            format!(", {per:.3} for 100,000 requests")
        });
        row("own CPU", format!("{:.2} s{per}", cpu.as_secs_f64()))?;
    }
    if report.resent + report.reconnects > 0 {
        row(
            "reconnects",
            format!("{}, {} requests retried", report.reconnects, report.resent),
        )?;
    }
    let bad = |text: String| row("wrong", format!("{BAD}{text}{BAD:#}"));
    if report.wrong_status > 0 {
        bad(format!(
            "{} responses with an unexpected status",
            report.wrong_status
        ))?;
    }
    if report.wrong_length > 0 {
        bad(format!(
            "{} bodies with an unexpected length",
            report.wrong_length
        ))?;
    }
    for (kind, faults) in &report.faults {
        let text = format!(
            "{} {kind}, the first: {}",
            faults.count,
            escape(&faults.first)
        );
        row("errors", format!("{BAD}{text}{BAD:#}"))?;
    }
    Ok(())
}

fn statuses(report: &Report) -> String {
    report
        .statuses
        .iter()
        .map(|(status, count)| format!(", {count} x {status}"))
        .collect()
}

fn times(times: &LatencyHistogram) -> String {
    let mut text = String::new();
    for (name, quantile) in QUANTILES {
        let _ = write!(text, "{name} {}, ", duration(times.at(quantile)));
    }
    text + &format!("max {}", duration(times.max()))
}

fn bytes(report: &Report, count: u64, headers: u64) -> String {
    let each = match report.answered {
        0 => String::new(),
        answered => format!(
            ", headers {:.1} B per request",
            headers as f64 / answered as f64
        ),
    };
    format!(
        "{}/s, {} in total{each}",
        size(report.per_second(count)),
        size(count as f64)
    )
}

/// Formats a duration with three digits and a unit.
fn duration(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    let (number, unit) = match micros {
        micros if micros < 1e3 => (micros, "µs"),
        micros if micros < 1e6 => (micros / 1e3, "ms"),
        micros => (micros / 1e6, "s"),
    };
    format!("{} {unit}", three_digits(number))
}

/// Formats a size with three digits and a unit.
fn size(bytes: f64) -> String {
    let (number, unit) = match bytes {
        bytes if bytes < 1e3 => return format!("{bytes:.0} B"),
        bytes if bytes < 1e6 => (bytes / 1e3, "kB"),
        bytes if bytes < 1e9 => (bytes / 1e6, "MB"),
        bytes => (bytes / 1e9, "GB"),
    };
    format!("{} {unit}", three_digits(number))
}

fn three_digits(number: f64) -> String {
    match number {
        number if number < 10.0 => format!("{number:.2}"),
        number if number < 100.0 => format!("{number:.1}"),
        number => format!("{number:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_have_three_digits() {
        let micros = Duration::from_micros;
        let shown = [0, 7, 999, 12_345, 100_000, 61_000_000].map(|time| duration(micros(time)));
        assert_eq!(
            shown,
            [
                "0.00 µs", "7.00 µs", "999 µs", "12.3 ms", "100 ms", "61.0 s"
            ]
        );
        let shown = [0.0, 999.0, 1234.0, 56_780_000.0, 9.1e9].map(size);
        assert_eq!(shown, ["0 B", "999 B", "1.23 kB", "56.8 MB", "9.10 GB"]);
    }
}
