//! The options of `spdy serve`, and the server that they start.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use serde::Serialize;
use spdy::Metrics;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_net::latch::Latch;
use spdy_net::limit::LimitHits;
use spdy_net::listen::allowed_hosts::AllowedHosts;
use spdy_net::listen::sockets::Sockets;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::protocol::Protocol;
use spdy_page::freshness;
use spdy_page::open::ImportOptions;
use spdy_server::directory::{Directory, DirectoryLimits};
use spdy_server::serve::{
    AccessLogEntry, Log, ServeConfig, ServerOptions, serve_connection, serve_quic,
};
use spdy_server::site::Site;
use spdy_server::site_pusher::SitePusher;
use spdy_service::client_limits;
use spdy_service::listen::{self, ListenerInfo, bind};
use spdy_service::metrics;
use spdy_service::signals::StopSignals;

use super::certificates::{CertificateArgs, server_tls};
use super::push::PushArgs;
use crate::args::parse::parse_address;
use crate::args::{BlockArgs, ServerLimitArgs, open_replica};
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::{BAD, BOLD, DIM, Printer};

/// Arguments of `spdy serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A shipped page (such as flags, portal, mineki), a replica, a .har or .warc file, or a folder
    #[arg(value_name = "REPLICA|DIR")]
    source: String,

    /// Address for TLS connections; port 0 lets the system choose [default: 127.0.0.1:8443, unless --plain is given]
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    tls: Option<SocketAddr>,

    /// Address for connections without TLS; port 0 lets the system choose [default: 127.0.0.1:8080, unless --tls is
    /// given]
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    plain: Option<SocketAddr>,

    /// Protocols to offer, best first.
    ///
    /// With h3, the TLS port also accepts QUIC over UDP. Without TLS, the first bytes of a connection decide. SPDY/3
    /// and SPDY/3.1 start alike there: with both listed, a client counts as SPDY/3 until it sends a WINDOW_UPDATE for
    /// the session. List only one of them for clients that send it late.
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "spdy/3.1,spdy/3,spdy/2,h2,http/1.1"
    )]
    protocols: Vec<Protocol>,

    /// Serve each recorded host at an address of its own, from the one after the listening address on
    #[arg(long)]
    per_host: bool,

    /// Shift the dates in response heads as if the page had been recorded now.
    ///
    /// Responses that were fresh when they were recorded are then fresh in a cache.
    #[arg(long)]
    as_of_now: bool,

    /// Let caches store responses without cache headers for this many seconds
    #[arg(long, value_name = "SECONDS")]
    max_age: Option<u32>,

    /// Delay each response by at least this many milliseconds, as a dynamic page would; at most 60000
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=60_000))]
    think: u32,

    /// Print the listening addresses as one line of JSON
    #[arg(long)]
    json: bool,

    /// Serve Prometheus metrics of SPDY sessions at http://ADDR/metrics; port 0 lets the system choose.
    ///
    /// Only requests to an IP address or to localhost are answered.
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    metrics: Option<SocketAddr>,

    /// Log each request to stderr
    #[arg(short, long)]
    verbose: bool,

    #[command(flatten)]
    blocks: BlockArgs,

    #[command(flatten)]
    certificates: CertificateArgs,

    #[command(flatten)]
    push: PushArgs,

    #[command(flatten)]
    limits: ServerLimitArgs,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy serve portal"
    "spdy serve page.har --tls 127.0.0.1:8443 --write-ca ca.pem"
    "spdy serve public/ --plain 127.0.0.1:0 --protocols spdy/3.1 --json"
    "spdy serve portal --push graph --protocols spdy/3.1 --verbose"
    "spdy serve portal --per-host --plain 127.0.0.1:8080 --verbose"
    "spdy serve portal --protocols h3,h2,http/1.1 --tls 127.0.0.1:8443"
    "spdy serve portal --as-of-now --max-age 3600 --think 150    slow origins for a cache"
    "spdy serve portal --metrics 127.0.0.1:9100"
};

/// The server is ready.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Ready<'a> {
    /// The listening addresses.
    listening: &'a [&'a ListenerInfo],
    /// The offered protocols, by their ALPN names.
    protocols: Vec<&'static str>,
    /// The hosts of the site.
    hosts: Vec<&'a str>,
    /// The host for requests with an unknown host; `null` if they get 404.
    default_host: Option<&'a str>,
    /// Number of URLs.
    targets: usize,
    /// The address of the metrics; `null` without --metrics.
    metrics: Option<SocketAddr>,
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let ServedSite {
        site,
        default_host,
        pushing,
    } = open_site(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(serve(args, Arc::new(site), default_host, pushing, printer))?;
    Ok(Outcome::Done)
}

/// The content of the server.
struct ServedSite {
    site: Site,
    /// Host of requests to a bare address.
    default_host: Option<String>,
    pushing: Option<Arc<SitePusher>>,
}

fn open_site(args: &Args) -> anyhow::Result<ServedSite> {
    let path = Path::new(&args.source);
    if path.is_dir() {
        let of_heads = args.as_of_now || args.max_age.is_some();
        if args.per_host || of_heads {
            let message =
                "--per-host, --as-of-now and --max-age are for recorded pages, not for folders";
            return Err(Usage(message.to_owned()).into());
        }
        let directory = Directory::read(path, &DirectoryLimits::default())
            .with_context(|| format!("cannot serve {}", path.display()))?;
        let site = Site::of_directory(directory);
        let pushing = args.push.pushing(&site, None)?;
        return Ok(ServedSite {
            site,
            default_host: None,
            pushing,
        });
    }
    let opened = open_replica(&args.source, &ImportOptions::default())?;
    let mut replica = opened.replica;
    if args.as_of_now && !freshness::shift_dates(&mut replica, SystemTime::now()) {
        let message = format!("--as-of-now: {} has no recording time", args.source);
        return Err(Usage(message).into());
    }
    if let Some(seconds) = args.max_age {
        freshness::set_default_lifetime(&mut replica, seconds);
    }
    let site = Site::of_replica(&replica);
    let host = replica.document().url.host_str().map(str::to_owned);
    let site = match &host {
        Some(host) => site.with_default_host(host),
        None => site,
    };
    let pushing = args.push.pushing(&site, Some(&replica))?;
    Ok(ServedSite {
        site,
        default_host: host,
        pushing,
    })
}

async fn serve(
    args: &Args,
    site: Arc<Site>,
    default_host: Option<String>,
    pushing: Option<Arc<SitePusher>>,
    printer: &Printer,
) -> anyhow::Result<()> {
    let hosts: Vec<String> = site.hosts().into_iter().map(|(host, _)| host).collect();
    let mut listeners = listen::bind_all(&listen::ListenSpec {
        plain: args.plain,
        tls: args.tls,
        hosts: args.per_host.then_some(&hosts[..]),
        protocols: &args.protocols,
    })?;
    let metrics = args.metrics.map(bind).transpose()?;
    let tls = match listeners.iter().any(|bound| bound.info.tls) {
        true => Some(server_tls(
            &args.certificates,
            &args.protocols,
            &hosts,
            &listeners,
            printer,
        )?),
        false => None,
    };
    let counted = metrics.is_some().then(Metrics::new);
    let hits = LimitHits::default();
    let limits = args.limits.config();
    let mut of_connections =
        client_limits::connection_options(&limits, counted.clone(), hits.clone());
    of_connections.spdy.push_form = args.push.form();
    of_connections.spdy.compression_window_bits = args.blocks.header_window;
    of_connections.spdy.flow_control = !args.limits.no_flow_control;
    let runtime = SharedRuntime::new(TokioRuntime::start());
    if let Some(tls) = tls
        .as_ref()
        .filter(|_| args.protocols.contains(&Protocol::Http3))
    {
        listen::bind_udp(&mut listeners, &mut Sockets::default())?;
        listen::listen_for_quic(&mut listeners, tls, &of_connections, &runtime)?;
    }
    let listening: Vec<&ListenerInfo> = listeners.iter().map(|bound| &bound.info).collect();
    // Before the announcement: a program that reads it may send the stop signal at once.
    let mut signals = StopSignals::listen()?;
    announce(
        args,
        &site,
        &hosts,
        default_host.as_deref(),
        &listening,
        metrics.as_ref().map(Listener::address),
        printer,
    )?;

    let stop = Latch::new();
    let listen_options = client_limits::listen_options(&limits, hits.clone());
    let config = ServeConfig {
        protocols: Protocol::over_tcp(&args.protocols),
        options: of_connections,
        stop: stop.clone(),
        log: args.verbose.then(|| log(printer)),
        pusher: pushing,
        min_response_time: Duration::from_millis(args.think.into()),
        ..ServeConfig::default()
    };
    let mut running = tokio::task::JoinSet::new();
    for bound in listeners {
        let config = ServeConfig {
            tls: tls.clone().filter(|_| bound.info.tls),
            alt_svc: bound.alt_svc(),
            ..config.clone()
        };
        if let Some(listener) = bound.quic {
            let (config, site, runtime) = (config.clone(), site.clone(), runtime.clone());
            let (options, stop) = (listen_options.clone(), stop.clone());
            running.spawn(listener.run(options, stop, move |incoming, from, slot| {
                let mut config = config.clone();
                config.options.slot = slot;
                config.from = Some(from.address.ip());
                serve_quic(incoming, site.clone(), config, runtime.clone())
            }));
        }
        if let Some(listener) = bound.tcp {
            let (site, runtime, stop) = (site.clone(), runtime.clone(), stop.clone());
            let options = listen_options.clone();
            running.spawn(listener.run(options, stop, move |io, from, slot| {
                let mut config = config.clone();
                config.options.slot = slot;
                config.from = Some(from.address.ip());
                serve_connection(io, site.clone(), config, runtime.clone())
            }));
        }
    }
    if let Some((listener, counted)) = metrics.zip(counted) {
        let (registry, runtime) = (metrics::registry(&counted, &hits), runtime.clone());
        let hosts = AllowedHosts::default();
        let answer = move |request| {
            let refusal = hosts.refusal(&request, "use an IP address or localhost");
            let response = refusal.unwrap_or_else(|| metrics::answer(&registry, &request));
            std::future::ready(response)
        };
        let (answer, ended) = (Arc::new(answer), stop.clone());
        let mut options = ListenOptions::default();
        options.admission = metrics::admission();
        running.spawn(listener.run(options, stop.clone(), move |io, _, slot| {
            let (answer, runtime, ended) = (answer.clone(), runtime.clone(), ended.clone());
            async move {
                let protocols = [Protocol::Http1];
                let mut options = ServerOptions::default();
                options.slot = slot;
                let serving = spdy_net::serve::serve_connection(
                    io, answer, &protocols, None, &options, &runtime, &ended,
                );
                if let Err(error) = serving.await {
                    tracing::debug!(%error, "serving the metrics failed");
                }
            }
        }));
    }
    signals.any().await?;
    printer.note(format_args!("{DIM}stopping{DIM:#}"));
    stop.set();
    while running.join_next().await.is_some() {}
    let stats = site.stats();
    printer.note(format_args!(
        "{DIM}served {} requests: {} not found, {} for unknown hosts{DIM:#}",
        stats.requests, stats.not_found, stats.misdirected
    ));
    for (limit, count) in hits.iter() {
        printer.note(format_args!(
            "{DIM}clients reached the limit {limit} {count} times{DIM:#}"
        ));
    }
    Ok(())
}

/// Prints the listening addresses and the content.
fn announce(
    args: &Args,
    site: &Site,
    hosts: &[String],
    default_host: Option<&str>,
    listening: &[&ListenerInfo],
    metrics: Option<SocketAddr>,
    printer: &Printer,
) -> anyhow::Result<()> {
    let protocols: Vec<_> = args
        .protocols
        .iter()
        .map(|protocol| protocol.alpn())
        .collect();
    for one in listening {
        let scheme = if one.tls { "https" } else { "http" };
        let here = args.protocols.iter();
        let here = here.filter(|protocol| one.quic || !protocol.is_over_quic());
        let here: Vec<_> = here.map(|protocol| protocol.alpn()).collect();
        let what = match &one.host {
            Some(host) => format!(" for {host}"),
            None => format!(" {DIM}({}){DIM:#}", here.join(", ")),
        };
        printer.note(format_args!(
            "listening on {BOLD}{scheme}://{}/{BOLD:#}{what}",
            one.address
        ));
    }
    let (targets, source) = (site.targets(), &args.source);
    match default_host {
        Some(host) => {
            printer.note(format_args!(
                "serving {targets} URLs of {source}; requests for IP addresses and localhost get {host}"
            ));
            printer.note(format_args!("{DIM}hosts: {}{DIM:#}", hosts.join(", ")));
        }
        None => printer.note(format_args!(
            "serving {targets} files of {source} for any hostname"
        )),
    }
    if let Some(address) = metrics {
        let path = metrics::PATH;
        printer.note(format_args!("metrics at http://{address}{path}"));
    }
    if args.json {
        printer.json(&Ready {
            listening,
            protocols,
            hosts: hosts.iter().map(String::as_str).collect(),
            default_host,
            targets,
            metrics,
        })?;
    }
    Ok(())
}

/// Logs a line for each response.
fn log(printer: &Printer) -> Log {
    let printer = printer.clone();
    Arc::new(move |served: &AccessLogEntry<'_>| {
        let AccessLogEntry {
            method,
            uri,
            headers: _,
            protocol,
            secure,
            priority,
            status,
            body_bytes,
            pushed,
            similar_to: _,
        } = served;
        let style = if status.is_client_error() || status.is_server_error() {
            BAD
        } else {
            BOLD
        };
        let tls = if *secure { " tls" } else { "" };
        let pushed = if *pushed { ", pushed" } else { "" };
        printer.note(format_args!(
            "{style}{}{style:#} {method} {uri} {DIM}{body_bytes} bytes, {protocol}{tls}, priority {priority}{pushed}{DIM:#}",
            status.as_str()
        ));
    })
}
