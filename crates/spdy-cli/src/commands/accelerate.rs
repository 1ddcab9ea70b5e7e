//! `spdy accelerate`: a caching reverse proxy that folds a page's hosts into one session.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use http::Request;
use serde::Serialize;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy::{Body, Metrics};
use spdy_dns::serve::{DnsServer, ServeLimits};
use spdy_dns::zones::{SharedZones, Zones};
use spdy_net::calendar::Calendar;
use spdy_net::certificates::{Identity, LocalCa};
use spdy_net::handed::HandedSockets;
use spdy_net::identities::Identities;
use spdy_net::latch::Latch;
use spdy_net::limit::LimitHits;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_net::tls::{ServerTls, TlsOptions};
use spdy_proxy::admin::Admin;
use spdy_proxy::config::Config;
use spdy_proxy::config_env;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::sites::Sites;
use spdy_proxy::token::Token;
use spdy_proxy::upstream::Upstream;
use url::Url;

use crate::commands::accelerate_acme::{self, Acme};
#[cfg(unix)]
use crate::commands::accelerate_audit;
use crate::commands::accelerate_served::{Served, conduct};
use crate::commands::accelerate_shared::Shared;
use crate::commands::serve_limits::Limits;
use crate::commands::serve_listen::{self, Listening};
use crate::commands::signals::{Reloads, Signals};
use crate::commands::{
    Outcome, Usage, accelerate_end, accelerate_log, accelerate_metrics, accelerate_names,
    accelerate_schema, accelerate_setup, serve_metrics,
};
use crate::help::examples;
use crate::printer::{BAD, BOLD, DIM, Printer};

/// What `spdy accelerate` is asked.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// The configuration, TOML
    #[arg(value_name = "CONFIG", required_unless_present = "origin")]
    config: Option<PathBuf>,

    /// Accelerate this site with everything at its default
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    origin: Option<Url>,

    /// Take TLS connections here, instead of where the configuration says; port 0 lets the system choose
    #[arg(long, value_name = "ADDR")]
    tls: Vec<SocketAddr>,

    /// Take plain connections here, likewise
    #[arg(long, value_name = "ADDR")]
    plain: Vec<SocketAddr>,

    /// Write the authority that signed the certificate made on the spot: what --cacert of a client wants
    #[arg(long, value_name = "FILE")]
    write_ca: Option<PathBuf>,

    /// Say what is wrong with the configuration, and which names hosts have, and end
    #[arg(long)]
    check: bool,

    /// Tell each answer: on stderr, with --json on stdout
    #[arg(short, long)]
    verbose: bool,

    /// Tell where it listens as one line of JSON on stdout; with --check, sites and names
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    limits: Limits,
}

/// What else is asked of an accelerator than to run.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Say what an accelerator would do for a page: what moves, what stays and why, and what that saves
    ///
    /// Every resource of the page goes through the rules and the rewriter that ship. The page is then loaded in virtual time: by a client
    /// that asks every host itself, through an accelerator that was just started, and through one that has the page. A URL is loaded by
    /// Chromium, if there is one, else its text and what that names are fetched; which of the two it was is told. Without
    /// --config all is listed that listing moves. The exit code is 1 if a load did not get all of its page.
    #[cfg(unix)]
    #[command(after_help = accelerate_audit::EXAMPLES)]
    Audit(Box<accelerate_audit::Args>),
    /// Print the JSON Schema of the configuration
    ///
    /// Editors that know TOML complete and check by it. What it says of a key is what the program reads; that names, addresses and
    /// sizes go together, --check alone knows.
    #[command(after_help = accelerate_schema::EXAMPLES)]
    Schema(accelerate_schema::Args),
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy accelerate --origin https://www.example.com --tls 127.0.0.1:8443 --write-ca ca.pem"
    "spdy accelerate site.toml --check"
    "spdy accelerate site.toml --verbose --json"
    "spdy accelerate audit https://www.example.com/"
};

/// The line of `--json`.
#[derive(Debug, Serialize)]
struct Ready<'a> {
    listening: &'a [&'a Listening],
    admin: Option<SocketAddr>,
    dns: &'a [SocketAddr],
    protocols: Vec<&'static str>,
    sites: Vec<&'a str>,
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    match &args.command {
        #[cfg(unix)]
        Some(Command::Audit(args)) => return accelerate_audit::run(args, printer),
        Some(Command::Schema(args)) => return accelerate_schema::run(args, printer),
        None => {}
    }
    let config = read(args)?;
    let secret = accelerate_setup::secret(&config)?;
    let sites = accelerate_setup::compile(&config, &secret)?;
    accelerate_acme::certificates(&config, &sites)?;
    if args.config.is_some() {
        // For a look at a site of others, by `--origin`, that is how it is meant.
        accelerate_setup::doubt(&sites, printer);
    }
    if args.check {
        accelerate_names::check(args.json, &config, &sites, printer)?;
        return Ok(Outcome::Done);
    }
    let handed = HandedSockets::of_environment();
    let handed = handed.context("cannot listen on a socket that was handed over")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    let accelerating = accelerate(args, &config, &secret, sites, handed, printer);
    accelerate_end::run(runtime, accelerating)?;
    Ok(Outcome::Done)
}

/// The configuration at `path`.
pub(super) fn read_config(path: &Path) -> anyhow::Result<Config> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let config = Config::read_with(&text, &environment());
    Ok(config.map_err(|error| Usage(format!("{}: {error}", path.display())))?)
}

/// Keys of the configuration out of the environment.
fn environment() -> BTreeMap<String, String> {
    let variables = std::env::vars_os();
    config_env::of_environment(
        variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }),
    )
}

/// The configuration, with what the command line says instead.
fn read(args: &Args) -> anyhow::Result<Config> {
    let mut config = match (&args.config, &args.origin) {
        (Some(path), _) => read_config(path)?,
        (None, Some(origin)) => {
            Config::of_origin(origin, &environment()).map_err(|error| Usage(error.to_string()))?
        }
        (None, None) => return Err(Usage("want a configuration, or --origin".to_owned()).into()),
    };
    if !args.tls.is_empty() || !args.plain.is_empty() {
        config.listen.tls.clone_from(&args.tls);
        config.listen.plain.clone_from(&args.plain);
    }
    if args.write_ca.is_some() {
        config.tls.write_authority.clone_from(&args.write_ca);
    }
    Ok(config)
}

async fn accelerate(
    args: &Args,
    config: &Config,
    secret: &[u8],
    sites: Sites,
    mut handed: HandedSockets,
    printer: &Printer,
) -> anyhow::Result<()> {
    let protocols = config.protocols()?;
    let mut doors = accelerate_setup::bind(config, &mut handed)?;
    let admin = config.admin.as_ref();
    let admin = admin
        .map(|admin| serve_listen::bind_or_take(admin.address, &mut handed))
        .transpose()?;
    let authority = accelerate_setup::authority(config, printer)?;
    let identity = accelerate_setup::identity(config, &sites, &authority)?;
    let identities = Identities::new(&[], &identity, &TlsOptions::default())?;
    let tls =
        ServerTls::of(&identities, &protocols, &TlsOptions::default())?.with_growing_records();
    let tls = tls.proving();
    let (hits, counted) = (LimitHits::default(), Metrics::new());
    let options = ServerOptions {
        http2_push: config.learn.push,
        ..args
            .limits
            .of_connections(Some(counted.clone()), hits.clone())
    };
    let runtime = SharedRuntime::new(TokioRuntime::start());
    if protocols.contains(&Protocol::Http3) && !config.listen.tls.is_empty() {
        serve_listen::bind_quic(&mut doors, &tls, &options, &runtime, &mut handed)?;
    }
    for address in handed.left() {
        printer.note(format_args!(
            "{BAD}nobody listens at {address}{BAD:#}: its socket was handed over, but the configuration does not name it"
        ));
    }
    let zones = SharedZones::new(accelerate_setup::zones(config, &sites)?);
    let names_server = match &config.dns.listen[..] {
        [] => None,
        addresses => Some(
            DnsServer::bind(
                addresses,
                zones.clone(),
                ServeLimits::default(),
                runtime.clone(),
            )
            .with_context(|| format!("cannot answer for names at {addresses:?}"))?,
        ),
    };
    let mut acme = Acme::new(&identities, &zones, &runtime, printer);
    let own: Vec<SocketAddr> = doors.iter().map(|door| door.about.address).collect();
    let upstream = accelerate_setup::upstream(config, &sites, &zones, own.clone(), &runtime)?;
    let names: Vec<String> = sites.names().map(str::to_owned).collect();
    let certificates = accelerate_acme::certificates(config, &sites)?;
    let proxy = Proxy::new(
        sites,
        upstream,
        &config.cache,
        &config.learn,
        runtime.clone(),
        Calendar::default(),
    );
    if let Some(disk) = accelerate_setup::disk(config)? {
        proxy.keep_on(disk);
    }
    let shared = Shared::start(config, &proxy).await?;
    let operator = match &config.admin {
        Some(admin) => {
            let metrics = accelerate_metrics::registry(
                &proxy,
                shared.as_ref(),
                &acme.certificates,
                &counted,
                &hits,
            );
            let metrics = move |request: &Request<Body>| serve_metrics::answer(&metrics, request);
            let token = Token::new(&accelerate_setup::token(&admin.token_file)?);
            Some(Arc::new(Admin::new(
                proxy.clone(),
                token,
                Arc::new(metrics),
            )))
        }
        None => None,
    };
    let mut signals = Signals::listen()?;
    let mut reloads = Reloads::listen()?;
    let listening: Vec<&Listening> = doors.iter().map(|door| &door.about).collect();
    let answering = names_server.as_ref().map(DnsServer::addresses);
    let answering = answering.unwrap_or_default();
    announce(
        args,
        &protocols,
        (&names, &answering),
        &listening,
        admin.as_ref(),
        printer,
    )?;

    acme.apply(config, certificates)?;
    acme.show_rest(config, &identity)?;
    let stop = Latch::new();
    let listen_options = args.limits.of_listeners(hits);
    let mut running = tokio::task::JoinSet::new();
    let served = Served {
        proxy: proxy.clone(),
        protocols: Protocol::over_tcp(&protocols),
        tls: None,
        options,
        runtime: runtime.clone(),
        stop: stop.clone(),
        alt_svc: None,
        log: accelerate_log::log(args.verbose, args.json, printer),
        timing: accelerate_setup::timing(&config.timing)?,
        tokens: None,
    };
    for door in doors {
        let served = Served {
            tls: door.about.tls.then(|| tls.clone()),
            alt_svc: door.alt_svc(),
            tokens: (!door.about.tls).then(|| acme.tokens.clone()),
            ..served.clone()
        };
        if let Some(listener) = door.quic {
            let (served, options) = (served.clone(), listen_options.clone());
            running.spawn(
                listener.run(options, stop.clone(), move |incoming, from, seat| {
                    served.clone().quic(incoming, from, seat)
                }),
            );
        }
        if let Some(listener) = door.tcp {
            let (served, options) = (served.clone(), listen_options.clone());
            running.spawn(listener.run(options, stop.clone(), move |io, from, seat| {
                served.clone().tcp(io, from, seat)
            }));
        }
    }
    if let Some((listener, operator)) = admin.zip(operator) {
        let (runtime, ended) = (runtime.clone(), stop.clone());
        let options = ListenOptions {
            admission: serve_metrics::admission(),
            ..ListenOptions::default()
        };
        running.spawn(listener.run(options, stop.clone(), move |io, _, seat| {
            let (operator, runtime, ended) = (operator.clone(), runtime.clone(), ended.clone());
            async move {
                let options = ServerOptions {
                    seat,
                    ..ServerOptions::default()
                };
                let serving = spdy_net::serve::serve_connection(
                    io,
                    operator,
                    &[Protocol::Http1],
                    None,
                    &options,
                    &runtime,
                    &ended,
                );
                conduct(serving.await)
            }
        }));
    }
    if let Some(server) = names_server {
        running.spawn(server.run(stop.clone()));
    }
    let renewals = tokio::time::Instant::now() + accelerate_setup::RENEWAL;
    let mut renewals = tokio::time::interval_at(renewals, accelerate_setup::RENEWAL);
    loop {
        tokio::select! {
            ended = signals.any() => {
                ended?;
                break;
            }
            () = reloads.next() => {
                let renewed = renew(args, secret, &authority, &zones, own.clone(), &runtime);
                let renewed = renewed.and_then(|renewed| {
                    renewed.take_effect(&zones, &mut acme, &proxy, printer)
                });
                match renewed {
                    Ok(()) => printer.note(format_args!("{DIM}read the configuration anew{DIM:#}")),
                    // What runs goes on as it was.
                    Err(error) => printer.note(format_args!("{BAD}the configuration stays as it was{BAD:#}: {error:#}")),
                }
            }
            _ = renewals.tick() => {
                let renewed = identity_anew(args, secret, &authority);
                let shown = renewed.and_then(|(config, identity)| acme.show_rest(&config, &identity));
                if let Err(error) = shown {
                    printer.note(format_args!("{BAD}the certificate stays as it was{BAD:#}: {error:#}"));
                }
            }
        }
    }
    printer.note(format_args!("{DIM}stopping{DIM:#}"));
    stop.set();
    while running.join_next().await.is_some() {}
    accelerate_end::end(&proxy, shared).await;
    Ok(())
}

/// The certificate as it is to be from now on: made anew, or read again.
fn identity_anew(
    args: &Args,
    secret: &[u8],
    authority: &LocalCa,
) -> anyhow::Result<(Config, Identity)> {
    let config = read(args)?;
    let sites = accelerate_setup::compile(&config, secret)?;
    let identity = accelerate_setup::identity(&config, &sites, authority)?;
    Ok((config, identity))
}

/// What the configuration comes to when it is read again: sites, origins and certificates may be others now. Where is listened
/// stays.
struct Renewed {
    config: Config,
    sites: Sites,
    upstream: Upstream,
    identity: Identity,
    zones: Zones,
}

fn renew(
    args: &Args,
    secret: &[u8],
    authority: &LocalCa,
    zones: &SharedZones,
    own: Vec<SocketAddr>,
    runtime: &SharedRuntime,
) -> anyhow::Result<Renewed> {
    let config = read(args)?;
    let sites = accelerate_setup::compile(&config, secret)?;
    Ok(Renewed {
        identity: accelerate_setup::identity(&config, &sites, authority)?,
        zones: accelerate_setup::zones(&config, &sites)?,
        upstream: accelerate_setup::upstream(&config, &sites, zones, own, runtime)?,
        sites,
        config,
    })
}

impl Renewed {
    /// All of it, or nothing.
    fn take_effect(
        self,
        zones: &SharedZones,
        acme: &mut Acme,
        proxy: &Proxy,
        printer: &Printer,
    ) -> anyhow::Result<()> {
        let before = zones.now();
        // First: names are proven in them.
        zones.replace(self.zones);
        let certificates = accelerate_acme::certificates(&self.config, &self.sites);
        let applied = certificates.and_then(|names| acme.apply(&self.config, names));
        if let Err(error) = applied {
            zones.replace(Zones::clone(&before));
            return Err(error);
        }
        acme.show_rest(&self.config, &self.identity)?;
        accelerate_setup::doubt(&self.sites, printer);
        proxy.replace(self.sites, self.upstream);
        Ok(())
    }
}

/// Says where it listens, and for whom.
fn announce(
    args: &Args,
    protocols: &[Protocol],
    (names, dns): (&[String], &[SocketAddr]),
    listening: &[&Listening],
    admin: Option<&Listener>,
    printer: &Printer,
) -> anyhow::Result<()> {
    for one in listening {
        let scheme = if one.tls { "https" } else { "http" };
        let here = protocols.iter();
        let here = here.filter(|protocol| one.quic || !protocol.is_over_quic());
        let here: Vec<_> = here.map(|protocol| protocol.alpn()).collect();
        printer.note(format_args!(
            "listening on {BOLD}{scheme}://{}/{BOLD:#} {DIM}({}){DIM:#}",
            one.address,
            here.join(", ")
        ));
    }
    printer.note(format_args!("accelerating {}", names.join(", ")));
    for address in dns {
        printer.note(format_args!(
            "answering for names on {BOLD}{address}{BOLD:#}"
        ));
    }
    let admin = admin.map(Listener::address);
    if let Some(address) = admin {
        printer.note(format_args!(
            "{DIM}the operator's door is http://{address}/{DIM:#}"
        ));
    }
    if args.json {
        printer.json(&Ready {
            listening,
            admin,
            dns,
            protocols: protocols.iter().map(|protocol| protocol.alpn()).collect(),
            sites: names.iter().map(String::as_str).collect(),
        })?;
    }
    Ok(())
}
