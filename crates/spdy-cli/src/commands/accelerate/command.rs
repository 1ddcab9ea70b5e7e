//! `spdy accelerate`: a caching reverse proxy that folds a page's hosts into one session.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use spdy::Metrics;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_dns::serve::DnsServer;
use spdy_dns::zones::SharedZones;
use spdy_net::latch::Latch;
use spdy_net::limit::LimitHits;
use spdy_net::listen::ListenOptions;
use spdy_net::listen::inherited_sockets::InheritedSockets;
use spdy_net::listen::sockets::Sockets;
use spdy_net::listen::trusted_proxies::SharedTrustedProxies;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_net::tls::ClientTls;
use spdy_net::wall_clock::WallClock;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::response::server_timing::SharedTiming;
use spdy_proxy::sites::site_table::Sites;
use spdy_resolver::own_listeners::OwnListeners;
use spdy_valkey::config::Config as TierConfig;
use url::Url;

#[cfg(unix)]
use super::audit;
use super::certificates::acme::{self, Acme};
use super::certificates::served_certificates::{self, ServedCertificates};
use super::config_source::{environment, read_config};
use super::control::control_loop::ControlLoop;
use super::control::reload::Reloader;
use super::control::shutdown;
use super::control::succession::{self, Predecessor, Succession};
use super::origins::upstream::{OriginContext, OriginCounters};
use super::origins::{address_rules, upstream};
use super::server::admin_listener::AdminHandler;
use super::server::connection::ConnectionContext;
use super::server::listeners::{self, Listeners};
#[cfg(unix)]
use super::server::open_files;
use super::server::server_tasks::ServerTasks;
use super::shared_tier::SharedTier;
use super::start_plan::{StartPlan, plan};
use super::telemetry::Telemetry;
use super::{access_log, check, metrics, schema, setup, warnings};
use crate::args::parse::parse_address;
use crate::args::server_limits;
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::Printer;
use crate::service::digest_key::digest_key;
use crate::service::listen;

/// Arguments of `spdy accelerate`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Configuration file, TOML
    #[arg(value_name = "CONFIG", required_unless_present = "origin")]
    config: Option<PathBuf>,

    /// Accelerate this site with the default configuration
    #[arg(long, value_name = "URL", conflicts_with = "config")]
    origin: Option<Url>,

    /// Address for TLS connections, instead of `listen.tls`; port 0 lets the system choose
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    tls: Vec<SocketAddr>,

    /// Address for connections without TLS, instead of `listen.plain`; port 0 lets the system choose
    #[arg(long, value_name = "ADDR", value_parser = parse_address)]
    plain: Vec<SocketAddr>,

    /// Write the local authority's certificate to this file, for --cacert of a client or for a browser.
    ///
    /// Its key is stored beside it (ca.pem: ca.key.pem), so that the authority stays the same after a restart.
    #[arg(long, value_name = "FILE")]
    write_ca: Option<PathBuf>,

    /// Check the configuration, print the name of each proxied host, and exit
    #[arg(long)]
    check: bool,

    /// Log each response to stderr, or with --json to stdout
    #[arg(short, long)]
    verbose: bool,

    /// Print the listening addresses as one line of JSON; with --check, the sites and names
    #[arg(long)]
    json: bool,
}

/// Subcommands of `spdy accelerate`.
#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Predict what an accelerator does for a page: what it moves, what it leaves and why, and the time it saves
    ///
    /// Every resource of the page is processed with the accelerator's own rules and rewriter. The page is then loaded
    /// in virtual time: without an accelerator, through one that was just started, and through one that has the page in
    /// its cache. A URL is loaded by Chromium; without a browser, the page and the resources that its text names are
    /// fetched. The output names the method. Without --config, the audit lists every host whose listing moves
    /// something. The exit code is 1 if a load is incomplete.
    #[cfg(unix)]
    #[command(after_help = audit::EXAMPLES)]
    Audit(Box<audit::Args>),
    /// Print the JSON Schema of the configuration
    ///
    /// Editors with TOML support use it to complete and check keys. It contains the keys and their types. Only --check
    /// detects values that do not fit together, such as names, addresses and sizes.
    #[command(after_help = schema::EXAMPLES)]
    Schema(schema::Args),
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy accelerate --origin https://www.example.com --tls 127.0.0.1:8443 --write-ca ca.pem"
    "spdy accelerate site.toml --check"
    "spdy accelerate site.toml --verbose --json"
    "spdy accelerate audit https://www.example.com/"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    match &args.command {
        #[cfg(unix)]
        Some(Command::Audit(args)) => return audit::run(args, printer),
        Some(Command::Schema(args)) => return schema::run(args, printer),
        None => {}
    }
    let plan = plan(args.config()?)?;
    served_certificates::warn_uncovered(&plan.uncovered, printer);
    if args.config.is_some() {
        // For a look at a site of others, by `--origin`, that is how it is meant.
        warnings::warn_sites(&plan.sites, printer);
    }
    if let Some(spans) = &plan.spans {
        spans.print_warnings(printer);
    }
    warnings::warn_admin_address(&plan.config, printer);
    if args.check {
        warnings::warn_unreachable_hosts(&plan.config, printer)?;
        let shown = (&plan.sites, &plan.certificates);
        check::print(args.json, &plan.config, shown, printer)?;
        return Ok(Outcome::Done);
    }
    #[cfg(unix)]
    open_files::raise_limit(
        plan.config.limits.max_connections,
        plan.config.websocket.open,
        printer,
    );
    let handed = InheritedSockets::from_env();
    let handed = handed.context("cannot listen on an inherited socket")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    shutdown::run(runtime, accelerate(args, plan, handed, printer))?;
    Ok(Outcome::Done)
}

impl Args {
    /// The configuration, with the options of the command line applied.
    fn config(&self) -> anyhow::Result<Config> {
        let mut config = match (&self.config, &self.origin) {
            (Some(path), _) => read_config(path)?,
            (None, Some(origin)) => Config::for_origin(origin, &environment())
                .map_err(|error| Usage(error.to_string()))?,
            (None, None) => {
                return Err(Usage("expected a configuration file or --origin".to_owned()).into());
            }
        };
        if !self.tls.is_empty() || !self.plain.is_empty() {
            config.listen.tls = Some(self.tls.clone());
            config.listen.plain.clone_from(&self.plain);
        }
        if self.write_ca.is_some() {
            config.tls.write_authority.clone_from(&self.write_ca);
        }
        Ok(config)
    }
}

/// Opens the listeners, builds the proxy, and accepts clients when nothing can fail any more. Then handles signals until the
/// program must end.
async fn accelerate(
    args: &Args,
    plan: StartPlan,
    mut handed: InheritedSockets,
    printer: &Printer,
) -> anyhow::Result<()> {
    let (config, sites) = (&plan.config, plan.sites);
    let runtime = SharedRuntime::new(TokioRuntime::start());

    let protocols = config.protocols()?;
    let zones = SharedZones::new(plan.zones);
    let mut predecessor = Predecessor::of(&mut handed)?;
    let mut sockets = Sockets::new(handed);
    let (hits, counted) = (LimitHits::default(), Metrics::new());
    let mut listeners = Listeners::open(config, &protocols, &zones, &mut sockets, &hits, &runtime)?;
    listeners::close_unused(&mut sockets, printer);

    let authority = served_certificates::authority(config, printer)?;
    let shown = ServedCertificates::of(plan.certificates, &sites, &authority)?;
    let identities = shown.identities()?;
    let tls = setup::tls(&identities, &protocols)?;
    let options = options(config, &counted, &hits);
    if predecessor.is_none() {
        listen::listen_for_quic(&mut listeners.clients, &tls, &options, &runtime)?;
    }

    let names: Vec<String> = sites.names().map(str::to_owned).collect();
    let listening = listeners.addresses();
    let own = address_rules::own_listeners(config, &listening, printer);
    let mut acme = Acme::new(&identities, &zones, &runtime, printer);
    let certificates = acme::certificates(config, &sites)?;
    let certificates = acme.prepare(config, certificates, shown)?;
    let origins = OriginContext {
        zones: zones.clone(),
        counters: OriginCounters::default(),
        runtime: runtime.clone(),
    };
    let believed = &plan.origin_tls;
    let proxy = proxy(config, believed, sites, own, &origins)?;
    let timing = SharedTiming::new(plan.timing);
    let control_loop = ControlLoop::listen()?;

    if let Some(predecessor) = &mut predecessor {
        predecessor.request_cache().await;
    }
    let shared = attach_stores(config, plan.tier, &proxy).await?;
    let spans = plan.spans;
    let telemetry = spans.map(|settings| Telemetry::start(settings, &proxy, &runtime, printer));
    let telemetry = telemetry.transpose()?;
    let (shares, sends) = (shared.as_ref(), telemetry.as_ref());
    let operator = plan.credentials.map(|credentials| {
        let shown = metrics::AcceleratorCollector {
            proxy: proxy.clone(),
            origin_counters: origins.counters.clone(),
            names: listeners.names.as_ref().map(DnsServer::stats),
            shared: shares.map(|shared| shared.tier.clone()),
            certificates: acme.certificates.clone(),
            spans: sends.map(|telemetry| telemetry.queue.clone()),
        };
        let metrics = metrics::registry(shown, &counted, &hits);
        AdminHandler::new(credentials, &proxy, metrics)
    });
    let mut succession = Succession::listen(sockets)?;
    listeners.announce(&protocols, &names, args.json, printer)?;
    if let Some(telemetry) = sends {
        telemetry.announce();
    }

    // After everything that can fail, output included: from here on the predecessor is no fallback.
    if let Some(predecessor) = &mut predecessor {
        predecessor.request_connections().await;
    }
    succession::notify_ready();
    acme.commit(certificates);
    let withheld = acme.uncertified(&proxy.origins.sites());
    proxy.origins.withhold_aliases(&withheld);
    served_certificates::warn_withheld(&withheld, printer);
    let served = ConnectionContext {
        proxy: proxy.clone(),
        protocols: Protocol::over_tcp(&protocols),
        tls: Some(tls),
        options,
        runtime: runtime.clone(),
        stop: Latch::new(),
        cut_off: Latch::new(),
        alt_svc: None,
        log: access_log::log(args.verbose, args.json, printer),
        timing: timing.clone(),
        tokens: Some(acme.tokens.clone()),
    };
    let in_front = SharedTrustedProxies::new(proxy.origins.sites().trusted_proxies().clone());
    let limits = ListenOptions {
        trusted_proxies: in_front.clone(),
        drain_timed_out: served.cut_off.clone(),
        ..server_limits::listen_options(&config.limits, hits)
    };
    let datagrams = predecessor.map(Predecessor::left);
    let serving = ServerTasks::start(listeners, &served, operator.clone(), &limits, datagrams);

    let reloader = Reloader {
        read_config: &|| args.config(),
        config,
        random_secret: &plan.random_secret,
        authority: &authority,
        origins: &origins,
        listening: &listening,
        proxy: &proxy,
        in_front: &in_front,
        telemetry: sends,
        timing: &timing,
        operator: operator.as_ref(),
        printer,
    };
    let successor = control_loop
        .run(&reloader, &mut acme, &mut succession, printer)
        .await?;
    drop((succession, acme));
    serving.end(successor).await;
    shutdown::close(&proxy, shared, telemetry).await;
    Ok(())
}

/// Options of each connection. `counted` counts sessions, `hits` counts limits that clients reach.
fn options(config: &Config, counted: &Metrics, hits: &LimitHits) -> ServerOptions {
    ServerOptions {
        http2_push: config.learn.push,
        ..server_limits::connection_options(&config.limits, Some(counted.clone()), hits.clone())
    }
}

/// The proxy for `sites`. It connects to none of `own`.
fn proxy(
    config: &Config,
    believed: &ClientTls,
    sites: Sites,
    own: OwnListeners,
    origins: &OriginContext,
) -> anyhow::Result<Arc<Proxy>> {
    let upstream = upstream::upstream(config, believed, &sites, own, origins)?;
    let proxy = Proxy::new(
        sites,
        upstream,
        &config.cache,
        &config.learn,
        origins.runtime.clone(),
        WallClock::default(),
    );
    proxy.push_config.set_digest_key(digest_key()?);
    Ok(proxy)
}

/// Attaches the disk cache to `proxy`, then the shared tier, which is read from the position that the disk cache has stored.
async fn attach_stores(
    config: &Config,
    tier: Option<TierConfig>,
    proxy: &Arc<Proxy>,
) -> anyhow::Result<Option<SharedTier>> {
    if let Some(disk) = setup::disk(config)? {
        proxy.set_disk(disk);
    }
    SharedTier::start(config, tier, proxy).await
}
