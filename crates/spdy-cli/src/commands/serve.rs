//! `spdy serve`: a recorded page or a folder, over every protocol, from memory.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
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
use spdy_net::tls::certificates::{Identity, KeyKind, LocalCa};
use spdy_net::tls::{ServerTls, TlsOptions, TlsVersion};
use spdy_page::freshness;
use spdy_page::open::ImportOptions;
use spdy_server::directory::{Directory, DirectoryLimits};
use spdy_server::pushing::SitePusher;
use spdy_server::serve::{
    AccessLogEntry, Log, ServeConfig, ServerOptions, serve_connection, serve_quic,
};
use spdy_server::site::Site;

use crate::commands::header_args::BlockArgs;
use crate::commands::pages::open_replica;
use crate::commands::serve_limits::ServerLimitArgs;
use crate::commands::serve_listen::{self, BoundListener, ListenerInfo, bind, parse_address};
use crate::commands::serve_push::PushArgs;
use crate::commands::signals::StopSignals;
use crate::commands::{Outcome, Usage, serve_metrics};
use crate::help::examples;
use crate::printer::{BAD, BOLD, DIM, Printer};

/// What `spdy serve` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A shipped name (as flags, portal, mineki), a replica, a .har or .warc file, or a folder
    #[arg(value_name = "REPLICA|DIR")]
    source: String,

    /// Take TLS connections here; port 0 lets the system choose [default: 127.0.0.1:8443, unless --plain is given]
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    tls: Option<SocketAddr>,

    /// Take plain connections here; port 0 lets the system choose [default: 127.0.0.1:8080, unless --tls is given]
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    plain: Option<SocketAddr>,

    /// Spoken here, best first; h3 on the same port over UDP, beside TLS, if it is listed. On plain connections the first bytes tell; SPDY/3 and 3.1 look the same there: with both, a client counts as 3 until it gives the session credit. List one of them for clients that are late with that
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "spdy/3.1,spdy/3,spdy/2,h2,http/1.1"
    )]
    protocols: Vec<Protocol>,

    /// Answer for this recorded host when asked by address or as localhost [default: the page's own host]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Give each recorded host an address of its own, from the one after the listening address on
    #[arg(long)]
    per_host: bool,

    /// Over HTTP/1.1 give each recorded head byte for byte, status line and order of fields included; its Connection then decides over the connection [default: the same fields, written again]
    #[arg(long)]
    literal_heads: bool,

    /// Serve a recorded page as if it had been recorded now: dates in its heads are moved alike, so that what was fresh to a cache then is fresh
    #[arg(long, conflicts_with = "literal_heads")]
    as_of_now: bool,

    /// Let caches keep for this long what says nothing of that itself; seconds
    #[arg(long, value_name = "SECONDS", conflicts_with = "literal_heads")]
    max_age: Option<u32>,

    /// Let each answer take this long at least, as one that has to be made does; milliseconds, at most a minute
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=60_000))]
    think: u32,

    /// Tell where it listens as one line of JSON on stdout
    #[arg(long)]
    json: bool,

    /// Serve the counters of SPDY sessions to Prometheus at http://ADDR/metrics, to requests for an IP address or localhost; port 0 lets the system choose
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    metrics: Option<SocketAddr>,

    /// Tell each request on stderr
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

/// Who the server says it is.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Certificates")]
struct CertificateArgs {
    /// Certificate chain, PEM, leaf first; without one, it is made on the spot for every host served
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Write the certificate of the local authority here, for --cacert of a client or a browser to trust. Its key is kept beside it (ca.pem: ca.key.pem), so that it is the same after the next start
    #[arg(long, value_name = "FILE", conflicts_with = "cert")]
    write_ca: Option<PathBuf>,

    /// Key of the certificate made on the spot
    #[arg(
        long,
        value_name = "KIND",
        default_value = "ecdsa",
        conflicts_with = "cert"
    )]
    key_kind: KeyKindArg,

    /// Lowest version of TLS: 1.2 or 1.3
    #[arg(long, value_name = "VERSION", default_value = "1.2")]
    tls_min: TlsVersion,

    /// Highest version of TLS
    #[arg(long, value_name = "VERSION", default_value = "1.3")]
    tls_max: TlsVersion,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum KeyKindArg {
    /// ECDSA over P-256
    Ecdsa,
    /// RSA, 2048 bits
    Rsa,
    /// Ed25519; browsers refuse it
    Ed25519,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy serve portal"
    "spdy serve page.har --tls 127.0.0.1:8443 --write-ca ca.pem"
    "spdy serve public/ --plain 127.0.0.1:0 --protocols spdy/3.1 --json"
    "spdy serve portal --push graph --protocols spdy/3.1 --verbose"
    "spdy serve portal --per-host --plain 127.0.0.1:8080 --verbose"
    "spdy serve page.warc.gz --protocols http/1.1 --literal-heads"
    "spdy serve portal --protocols h3,h2,http/1.1 --tls 127.0.0.1:8443"
    "spdy serve portal --as-of-now --max-age 3600 --think 150    origins to a cache, which take their time"
    "spdy serve portal --metrics 127.0.0.1:9100"
};

/// The line of `--json`.
#[derive(Debug, Serialize)]
struct Ready<'a> {
    listening: &'a [&'a ListenerInfo],
    protocols: Vec<&'static str>,
    hosts: Vec<&'a str>,
    default_host: Option<&'a str>,
    targets: usize,
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

/// What is served.
struct ServedSite {
    site: Site,
    /// Answers for bare addresses.
    default_host: Option<String>,
    pushing: Option<Arc<SitePusher>>,
}

fn open_site(args: &Args) -> anyhow::Result<ServedSite> {
    let path = Path::new(&args.source);
    if path.is_dir() {
        let of_heads = args.literal_heads || args.as_of_now || args.max_age.is_some();
        if args.host.is_some() || args.per_host || of_heads {
            let why = "a folder has neither hosts nor heads: --host, --per-host, --literal-heads, --as-of-now and --max-age are for recorded pages";
            return Err(Usage(why.to_owned()).into());
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
        let why = format!(
            "--as-of-now: {} does not tell when it was recorded",
            args.source
        );
        return Err(Usage(why).into());
    }
    if let Some(seconds) = args.max_age {
        freshness::set_default_lifetime(&mut replica, seconds);
    }
    let site = match args.literal_heads {
        true => Site::of_replica_with_literal_heads(&replica),
        false => Site::of_replica(&replica),
    };
    let host = match &args.host {
        Some(host) => {
            let served = site
                .hosts()
                .iter()
                .any(|(name, _)| name.eq_ignore_ascii_case(host));
            if !served {
                let names: Vec<_> = site.hosts().into_iter().map(|(name, _)| name).collect();
                let why = format!("no host is called {host}; there are {}", names.join(", "));
                return Err(Usage(why).into());
            }
            Some(host.to_ascii_lowercase())
        }
        None => replica.document().url.host_str().map(str::to_owned),
    };
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
    let mut doors = serve_listen::bind_all(&serve_listen::ListenSpec {
        plain: args.plain,
        tls: args.tls,
        hosts: args.per_host.then_some(&hosts[..]),
        protocols: &args.protocols,
    })?;
    let metrics = args.metrics.map(bind).transpose()?;
    let tls = match doors.iter().any(|door| door.info.tls) {
        true => Some(server_tls(args, &hosts, &doors, printer)?),
        false => None,
    };
    let counted = metrics.is_some().then(Metrics::new);
    let hits = LimitHits::default();
    let of_connections = ServerOptions {
        push_form: args.push.form(),
        compression_window_bits: args.blocks.header_window,
        ..args.limits.of_connections(counted.clone(), hits.clone())
    };
    let runtime = SharedRuntime::new(TokioRuntime::start());
    if let Some(tls) = tls
        .as_ref()
        .filter(|_| args.protocols.contains(&Protocol::Http3))
    {
        serve_listen::bind_udp(&mut doors, &mut Sockets::default())?;
        serve_listen::listen_for_quic(&mut doors, tls, &of_connections, &runtime)?;
    }
    let listening: Vec<&ListenerInfo> = doors.iter().map(|door| &door.info).collect();
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
    let listen_options = args.limits.of_listeners(hits.clone());
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
    for door in doors {
        let config = ServeConfig {
            tls: tls.clone().filter(|_| door.info.tls),
            alt_svc: door.alt_svc(),
            ..config.clone()
        };
        if let Some(listener) = door.quic {
            let (config, site, runtime) = (config.clone(), site.clone(), runtime.clone());
            let (options, stop) = (listen_options.clone(), stop.clone());
            running.spawn(listener.run(options, stop, move |incoming, from, seat| {
                let mut config = config.clone();
                config.options.slot = seat;
                config.from = Some(from.address.ip());
                serve_quic(incoming, site.clone(), config, runtime.clone())
            }));
        }
        if let Some(listener) = door.tcp {
            let (site, runtime, stop) = (site.clone(), runtime.clone(), stop.clone());
            let options = listen_options.clone();
            running.spawn(listener.run(options, stop, move |io, from, seat| {
                let mut config = config.clone();
                config.options.slot = seat;
                config.from = Some(from.address.ip());
                serve_connection(io, site.clone(), config, runtime.clone())
            }));
        }
    }
    if let Some((listener, counted)) = metrics.zip(counted) {
        let (registry, runtime) = (serve_metrics::registry(&counted, &hits), runtime.clone());
        let hosts = AllowedHosts::default();
        let answer = move |request| {
            let refusal = hosts.refusal(&request, "use an IP address or localhost");
            let response = refusal.unwrap_or_else(|| serve_metrics::answer(&registry, &request));
            std::future::ready(response)
        };
        let (answer, ended) = (Arc::new(answer), stop.clone());
        let options = ListenOptions {
            admission: serve_metrics::admission(),
            ..ListenOptions::default()
        };
        running.spawn(listener.run(options, stop.clone(), move |io, _, seat| {
            let (answer, runtime, ended) = (answer.clone(), runtime.clone(), ended.clone());
            async move {
                let protocols = [Protocol::Http1];
                let options = ServerOptions {
                    slot: seat,
                    ..ServerOptions::default()
                };
                let serving = spdy_net::serve::serve_connection(
                    io, answer, &protocols, None, &options, &runtime, &ended,
                );
                if let Err(error) = serving.await {
                    tracing::debug!(%error, "a look at the metrics ended out of order");
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
        "{DIM}answered {} requests, {} of them not found, {} for other hosts{DIM:#}",
        stats.requests, stats.not_found, stats.misdirected
    ));
    for (limit, count) in hits.iter() {
        printer.note(format_args!(
            "{DIM}clients met {limit} {count} times{DIM:#}"
        ));
    }
    Ok(())
}

/// TLS for all listeners: the certificate given, or one for every name and address served.
fn server_tls(
    args: &Args,
    hosts: &[String],
    doors: &[BoundListener],
    printer: &Printer,
) -> anyhow::Result<ServerTls> {
    let choice = &args.certificates;
    let identity = match (&choice.cert, &choice.key) {
        (Some(cert), Some(key)) => Identity::from_files(cert, key)?,
        _ => {
            let kind = match choice.key_kind {
                KeyKindArg::Ecdsa => KeyKind::EcdsaP256,
                KeyKindArg::Rsa => KeyKind::Rsa2048,
                KeyKindArg::Ed25519 => KeyKind::Ed25519,
            };
            let ca = match &choice.write_ca {
                Some(path) => {
                    let ca = LocalCa::load_or_create(path, kind)?;
                    let key = LocalCa::key_file(path);
                    let (path, key) = (path.display(), key.display());
                    printer.note(format_args!(
                        "{DIM}the local authority is in {path}, its key in {key}{DIM:#}"
                    ));
                    ca
                }
                None => LocalCa::generate(kind)?,
            };
            let mut names = hosts.to_vec();
            names.push("localhost".to_owned());
            let mut addresses: Vec<IpAddr> = doors
                .iter()
                .map(|door| door.info.address.ip())
                .filter(|address| !address.is_unspecified())
                .collect();
            addresses.push(Ipv4Addr::LOCALHOST.into());
            addresses.push(std::net::Ipv6Addr::LOCALHOST.into());
            ca.issue(&names, &addresses)
                .context("cannot make a certificate")?
        }
    };
    let options = TlsOptions {
        min: choice.tls_min,
        max: choice.tls_max,
        ..TlsOptions::default()
    };
    let tls = ServerTls::new(&identity, &args.protocols, &options)?;
    Ok(tls.with_dynamic_record_size())
}

/// Says where it listens and what is served.
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
                "serving {targets} URLs of {source}; {host} answers for addresses and localhost"
            ));
            printer.note(format_args!("{DIM}hosts: {}{DIM:#}", hosts.join(", ")));
        }
        None => printer.note(format_args!(
            "serving {targets} files of {source} under any host name"
        )),
    }
    if args.literal_heads {
        let (answers, literal) = site.heads();
        printer.note(format_args!(
            "over HTTP/1.1 {literal} of {answers} heads go out as they were recorded"
        ));
    }
    if let Some(address) = metrics {
        let path = serve_metrics::PATH;
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

/// A line for each answer.
fn log(printer: &Printer) -> Log {
    let printer = printer.clone();
    Arc::new(move |served: &AccessLogEntry<'_>| {
        let AccessLogEntry {
            method,
            uri,
            protocol,
            secure,
            priority,
            status,
            body_bytes,
            pushed,
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
