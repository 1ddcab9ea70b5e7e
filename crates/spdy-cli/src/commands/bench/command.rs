//! `spdy bench`: load for a server, how fast it answered, and what that cost it.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use spdy_frame::compress::Compression;
use spdy_load::plan::{Expect, Length, Plan};
use spdy_load::process::Processes;
use spdy_load::run::Progress;
use spdy_load::target::Target;
use spdy_net::protocol::Protocol;
use spdy_net::tls::verify::{Roots, Trust};
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_service::signals::StopSignals;

use super::progress::ProgressPrinter;
use super::report::print_report;
use crate::args::parse::{at_least_one, parse_http_url, parse_seconds};
use crate::args::{BlockArgs, RequestArgs};
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::Printer;

/// Time limit for opening a connection, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Receive window of a stream, bytes (SPDY/3, SPDY/3.1, HTTP/2).
const STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
/// Receive window of a session, bytes (SPDY/3.1, HTTP/2).
const SESSION_WINDOW_BYTES: u32 = 10 * 1024 * 1024;

/// Arguments of `spdy bench`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// URLs to request in turn, all of one origin
    #[arg(value_name = "URL", required = true, value_parser = parse_http_url::<Uri>)]
    urls: Vec<Uri>,

    /// Use this protocol: spdy/3.1, spdy/3, spdy/2, h2 or http/1.1.
    ///
    /// By default https:// negotiates it by ALPN, and http:// uses http/1.1. Without TLS the protocol is used by prior
    /// knowledge.
    #[arg(short, long, value_name = "NAME")]
    protocol: Option<Protocol>,

    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    load: BenchLoadArgs,

    #[command(flatten)]
    request: RequestArgs,

    #[command(flatten)]
    expect: ExpectArgs,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    connection: ConnectionArgs,
}

/// The load and its duration.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Load")]
struct BenchLoadArgs {
    /// Number of sessions (connections)
    #[arg(short = 'c', long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    sessions: NonZeroUsize,

    /// Requests in progress on each session; above 1, http/1.1 pipelines them [default: 100, http/1.1: 1]
    #[arg(short = 'm', long, value_name = "N", value_parser = at_least_one)]
    streams: Option<NonZeroUsize>,

    /// Measuring time in seconds
    #[arg(short = 't', long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    duration: Duration,

    /// Measure this number of requests instead of a time
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "duration", value_parser = clap::value_parser!(u64).range(1..))]
    requests: Option<u64>,

    /// Seconds of load before the measurement
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    warm_up: Option<Duration>,

    /// Start this many requests a second over all sessions, however slow the server is.
    ///
    /// Latency counts from the scheduled start. By default each response starts the next request.
    #[arg(long, value_name = "PER SECOND", value_parser = parse_rate)]
    rate: Option<f64>,

    /// Threads that share the sessions [default: one a session, at most one a core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    threads: Option<NonZeroUsize>,
}

/// The expected responses.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Responses")]
struct ExpectArgs {
    /// Status that every response must have [default: any 2xx or 3xx]
    #[arg(long, value_name = "STATUS", value_parser = clap::value_parser!(u16).range(100..=999))]
    expect_status: Option<u16>,

    /// Length in bytes that every body must have
    #[arg(long, value_name = "N")]
    expect_bytes: Option<u64>,

    /// Time limit for a response, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    timeout: Duration,
}

/// The processes whose CPU time and memory are measured.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
struct ServerArgs {
    /// Measure CPU time and memory of this process and its children
    #[arg(long, value_name = "PID", conflicts_with = "process")]
    pid: Option<u32>,

    /// Measure CPU time and memory of all processes of this name
    #[arg(long, value_name = "NAME")]
    process: Option<String>,
}

/// Trust and header compression.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Connection")]
struct ConnectionArgs {
    /// Trust only the authorities in this PEM file
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,

    /// Accept any certificate
    #[arg(short = 'k', long, conflicts_with = "cacert")]
    insecure: bool,

    #[command(flatten)]
    blocks: BlockArgs,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy bench -p spdy/3.1 http://127.0.0.1:8080/              100 requests in flight for 10 s"
    "spdy bench -c 32 -m 10 -p h2 -k https://127.0.0.1:8443/    32 sessions of 10"
    "spdy bench -n 100000 --pid 4711 --json http://127.0.0.1:8080/a http://127.0.0.1:8080/b"
    "spdy bench --rate 5000 --warm-up 5 --duration 30 http://127.0.0.1:8080/"
    "spdy bench -X POST -d @form --expect-status 204 --expect-bytes 0 http://127.0.0.1:8080/"
};

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.001..=1e9).contains(&rate) => Ok(rate),
        _ => Err("expected a rate in requests per second, from 0.001 to 1000000000".to_owned()),
    }
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let plan = plan(args)?;
    let processes = match (args.server.pid, &args.server.process) {
        (Some(pid), _) => Some(Processes::by_id(pid)?),
        (None, Some(name)) => Some(Processes::by_name(name)?),
        (None, None) => None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let report = runtime.block_on(async {
        let live = Arc::new(Progress::default());
        let mut watcher = ProgressPrinter::new(printer, &plan, live.clone());
        let mut signals = StopSignals::listen()?;
        let stop = async {
            // Without signals the run ends when it is over.
            if signals.any().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            report = spdy_load::run::run(plan.clone(), processes.as_ref(), &live, stop) => anyhow::Ok(report?),
            never = watcher.watch() => match never {},
        }
    })?;
    print_report(&report, &plan, args.json, printer)?;
    Ok(Outcome::done_if(report.is_right()))
}

fn plan(args: &Args) -> anyhow::Result<Plan> {
    let usage = |error: spdy_load::error::TargetError| Usage(error.to_string());
    let (method, headers) = (args.request.method(), args.request.headers(&[]));
    let body = args.request.body()?;
    let trust = Trust {
        roots: match &args.connection.cacert {
            Some(file) => Roots::File(file.clone()),
            None => Roots::System,
        },
        insecure: args.connection.insecure,
        ..Trust::default()
    };
    // A full handshake is measured as the time to set up a connection.
    let mut options = TlsOptions::default();
    options.resumption = false;
    if args.protocol == Some(Protocol::Http3) {
        let message =
            "`spdy bench` does not support h3: use http/1.1, h2, spdy/3.1, spdy/3 or spdy/2";
        return Err(Usage(message.to_owned()).into());
    }
    let offered = args
        .protocol
        .map_or(Protocol::ALL.to_vec(), |only| vec![only]);
    let target = Target::new(&args.urls, &method, &headers, body).map_err(usage)?;
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let sessions = args.load.sessions.get();
    Ok(Plan {
        protocol: args.protocol,
        tls: ClientTls::new(&trust, &options)?.with_alpn(&offered),
        sessions,
        streams: args.load.streams.map(NonZeroUsize::get),
        length: match args.load.requests {
            Some(requests) => Length::Requests(requests),
            None => Length::Time(args.load.duration),
        },
        warm_up: args.load.warm_up.unwrap_or_default(),
        rate: args.load.rate,
        threads: args
            .load
            .threads
            .map_or(sessions.min(cores), NonZeroUsize::get),
        timeout: args.expect.timeout,
        connect_timeout: CONNECT_TIMEOUT,
        expect: Expect {
            status: args.expect.expect_status,
            body_bytes: args.expect.expect_bytes,
        },
        stream_window_bytes: STREAM_WINDOW_BYTES,
        session_window_bytes: SESSION_WINDOW_BYTES,
        compression: Compression::CrimeSafe,
        compression_window_bits: args.connection.blocks.header_window,
        target,
    })
}
