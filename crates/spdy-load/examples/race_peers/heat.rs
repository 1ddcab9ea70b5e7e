//! One cell of the race, in interleaved rounds, so that other work on the machine affects all contestants equally.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Uri, header};
use spdy_frame::compress::Compression;
use spdy_load::plan::{Expect, Length, Plan};
use spdy_load::process::Processes;
use spdy_load::report::Report;
use spdy_load::run::Progress;
use spdy_load::target::Target;
use spdy_net::protocol::Protocol;
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, TlsOptions};

use crate::course::{Cell, TransportKind};
use crate::servers::{Grid, Peer};
use crate::table::print_note;

/// Durations of a round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) seconds: Duration,
    pub(crate) warm_up: Duration,
    pub(crate) jit: Duration,
}

/// A number from each round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series(Vec<f64>);

impl Series {
    pub(crate) fn push(&mut self, number: f64) {
        self.0.push(number);
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        match sorted.len() {
            0 => f64::NAN,
            len if len % 2 == 1 => sorted[len / 2],
            len => (sorted[len / 2 - 1] + sorted[len / 2]) / 2.0,
        }
    }

    pub(crate) fn min(&self) -> f64 {
        self.sorted().first().copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn max(&self) -> f64 {
        self.sorted().last().copied().unwrap_or(f64::NAN)
    }

    /// Ratio to `other`, round by round.
    pub(crate) fn over(&self, other: &Self) -> Self {
        Self(self.0.iter().zip(&other.0).map(|(a, b)| a / b).collect())
    }
}

/// Results of one contestant.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) protocol: Protocol,
    /// Requests a second.
    pub(crate) rate: Series,
    /// CPU seconds of the server for 100,000 requests.
    pub(crate) cpu: Series,
    /// CPU seconds of the generator for 100,000 requests.
    pub(crate) own: Series,
    /// Milliseconds that 99 % of the requests did not exceed.
    pub(crate) p99: Series,
    /// Maximum memory, bytes.
    pub(crate) resident_bytes: u64,
    /// Wrong responses, and failed requests.
    pub(crate) wrong: u64,
}

/// Results of all contestants.
pub(crate) struct CellResult {
    pub(crate) rows: Vec<Row>,
}

impl CellResult {
    pub(crate) fn is_right(&self) -> bool {
        self.rows.iter().all(|row| row.wrong == 0)
    }
}

/// Runs all rounds of `cell`.
pub(crate) async fn run(
    cell: &Cell,
    grid: &Grid,
    rounds: u32,
    round: Round,
) -> Result<CellResult, String> {
    let peers = grid
        .peers
        .iter()
        .filter(|one| one.transport == cell.transport);
    let field: Vec<(&Peer, Row)> = peers.map(|one| (one, Row::of(one))).collect();
    let mut ready = Vec::with_capacity(field.len());
    for (contestant, row) in field {
        let server = &grid.servers[contestant.server];
        let warm_up = match server.is_virtual_machine {
            true => round.jit,
            false => round.warm_up,
        };
        let warm = load(contestant, cell, grid, warm_up, Duration::ZERO).await;
        match warm.and_then(|report| first_fault(&report)) {
            Ok(()) => ready.push((contestant, row)),
            Err(reason) => {
                let message = format!("{} ({cell}, {}): {reason}", row.name, row.protocol);
                // Another peer may fail; our own server may not.
                if row.name == "spdy" {
                    return Err(message);
                }
                print_note(&format!("{message}; it does not take part"));
            }
        }
    }
    for _ in 0..rounds {
        for (contestant, row) in &mut ready {
            let report = load(contestant, cell, grid, round.seconds, round.warm_up).await?;
            row.add(&report);
        }
    }
    let rows = ready.into_iter().map(|(_, row)| row).collect();
    Ok(CellResult { rows })
}

/// A contestant without responses, or with wrong ones, is excluded before the first round.
fn first_fault(report: &Report) -> Result<(), String> {
    if report.is_right() {
        return Ok(());
    }
    let fault = report
        .faults
        .values()
        .next()
        .map(|faults| faults.first.clone());
    let statuses = format!(
        "statuses {:?}, bodies {} B",
        report.statuses, report.body_bytes
    );
    Err(fault.unwrap_or(statuses))
}

async fn load(
    contestant: &Peer,
    cell: &Cell,
    grid: &Grid,
    seconds: Duration,
    warm_up: Duration,
) -> Result<Report, String> {
    let scheme = match contestant.transport {
        TransportKind::Plain => "http",
        TransportKind::Tls => "https",
    };
    let url = format!(
        "{scheme}://127.0.0.1:{}/{}",
        contestant.port, cell.file.name
    );
    let url: Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
    let mut headers = HeaderMap::new();
    let agent = concat!("spdy/", env!("CARGO_PKG_VERSION")).parse();
    headers.insert(
        header::USER_AGENT,
        agent.expect("the value is a valid header value"),
    );
    let target = Target::new(&[url], &Method::GET, &headers, Bytes::new());
    let trust = Trust {
        insecure: true,
        ..Trust::default()
    };
    let tls = ClientTls::new(&trust, &TlsOptions::default()).map_err(|e| e.to_string())?;
    let (sessions, streams) = cell.load.of(contestant.protocol);
    let plan = Plan {
        target: target.map_err(|error| error.to_string())?,
        protocol: Some(contestant.protocol),
        tls: tls.with_alpn(&[contestant.protocol]),
        sessions,
        streams: Some(streams),
        length: Length::Time(seconds),
        warm_up,
        rate: None,
        threads: 1,
        timeout: Duration::from_secs(10),
        connect_timeout: Duration::from_secs(10),
        expect: Expect {
            status: Some(200),
            body_bytes: Some(cell.file.bytes as u64),
        },
        stream_window_bytes: 1024 * 1024,
        session_window_bytes: 10 * 1024 * 1024,
        compression: Compression::CrimeSafe,
        compression_window_bits: None,
    };
    let pid = grid.servers[contestant.server].pid();
    let processes = Processes::by_id(pid).map_err(|error| error.to_string())?;
    let live = Arc::new(Progress::default());
    spdy_load::run::run(plan, Some(&processes), &live, std::future::pending())
        .await
        .map_err(|error| error.to_string())
}

impl Row {
    fn of(contestant: &Peer) -> Self {
        Self {
            name: contestant.name,
            protocol: contestant.protocol,
            rate: Series::default(),
            cpu: Series::default(),
            own: Series::default(),
            p99: Series::default(),
            resident_bytes: 0,
            wrong: 0,
        }
    }

    fn add(&mut self, report: &Report) {
        let per = |cpu: Option<Duration>| cpu.and_then(|cpu| report.per_100_000(cpu));
        self.rate.push(report.per_second(report.answered));
        self.cpu
            .0
            .push(per(report.usage.map(|usage| usage.cpu)).unwrap_or(f64::NAN));
        self.own.push(per(report.own_cpu).unwrap_or(f64::NAN));
        self.p99.push(report.latency.at(0.99).as_secs_f64() * 1e3);
        let peak = report.usage.map_or(0, |usage| usage.last.resident_bytes);
        self.resident_bytes = self.resident_bytes.max(peak);
        self.wrong += report.failed() + report.wrong_status + report.wrong_length;
    }
}
