//! Runs the accelerator until a signal ends it.

use std::sync::Arc;

use anyhow::Context;
use spdy::Metrics;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_dns::serve::DnsServer;
use spdy_dns::zones::SharedZones;
use spdy_net::congestion::RememberedWindows;
use spdy_net::latch::Latch;
use spdy_net::limit::LimitHits;
use spdy_net::listen::inherited_sockets::InheritedSockets;
use spdy_net::listen::sockets::Sockets;
use spdy_net::listen::trusted_proxies::SharedTrustedProxies;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_net::tls::ClientTls;
use spdy_net::wall_clock::WallClock;
use spdy_proxy::config::Config;
use spdy_proxy::images::convert::ImageConversion;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::response::server_timing::SharedTiming;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::telemetry::access_log::AccessLog as ResponseReceiver;
use spdy_proxy::telemetry::page_reports::PageObserver;
use spdy_resolver::own_listeners::OwnListeners;
use spdy_server::session_history::DigestKey;
use spdy_service::notice::Notices;
use spdy_service::{client_limits, listen, random};
use spdy_valkey::config::Config as TierConfig;

use crate::access_log::lifecycle::AccessLog;
use crate::certificates::acme::{self, Acme};
use crate::certificates::served_certificates::{self, ServedCertificates};
use crate::control::control_loop::ControlLoop;
use crate::control::reload::Reloader;
use crate::control::shutdown;
use crate::control::succession::{self, Predecessor, Succession};
#[cfg(target_os = "linux")]
use crate::initial_window::InitialWindowOption;
use crate::origins::upstream::{OriginContext, OriginCounters};
use crate::origins::{address_rules, upstream};
use crate::server::admin_listener::AdminHandler;
use crate::server::connection::ConnectionContext;
use crate::server::listeners::{self, Listeners, Ready};
#[cfg(unix)]
use crate::server::open_files;
use crate::server::server_tasks::ServerTasks;
use crate::shared_tier::SharedTier;
use crate::start_plan::StartPlan;
use crate::telemetry::Telemetry;
use crate::{metrics, setup};

/// Options of a run, in addition to its [`StartPlan`].
pub struct RunOptions<'a> {
    /// Reads the configuration again, for a reload.
    pub read_config: &'a dyn Fn() -> anyhow::Result<Config>,
    /// Called once, when everything that can fail has succeeded and before the first connection is accepted.
    pub on_ready: &'a dyn Fn(&Ready<'_>) -> anyhow::Result<()>,
    /// Called with each response, in addition to the file of `[access_log]`.
    pub access_log: Option<ResponseReceiver>,
    /// Called with the report of each page that was rewritten.
    pub on_page: Option<PageObserver>,
    /// Receives notices for the operator.
    pub notices: Notices,
}

/// Runs the accelerator. Returns when a signal ended it, or when a successor has taken over and the last connection has ended.
///
/// # Errors
///
/// It cannot start: a listener, a certificate, the disk cache or [`RunOptions::on_ready`] failed.
pub fn run(plan: StartPlan, options: RunOptions<'_>) -> anyhow::Result<()> {
    #[cfg(unix)]
    open_files::raise_limit(&plan.config, &options.notices);
    let handed = InheritedSockets::from_env();
    let handed = handed.context("cannot listen on an inherited socket")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    shutdown::run(runtime, accelerate(plan, options, handed))
}

/// Opens the listeners, builds the proxy, and accepts clients when nothing can fail any more. Then handles signals until the
/// program must end.
async fn accelerate(
    plan: StartPlan,
    run_options: RunOptions<'_>,
    mut handed: InheritedSockets,
) -> anyhow::Result<()> {
    let notices = &run_options.notices;
    let (config, sites) = (&plan.config, plan.sites);
    let runtime = SharedRuntime::new(TokioRuntime::start());

    let protocols = config.protocols()?;
    let zones = SharedZones::new(plan.zones);
    let mut predecessor = Predecessor::of(&mut handed)?;
    let mut sockets = Sockets::new(handed);
    let (hits, counted) = (LimitHits::default(), Metrics::new());
    let mut listeners = Listeners::open(config, &protocols, &zones, &mut sockets, &hits, &runtime)?;
    listeners::close_unused(&mut sockets, notices);

    let authority = served_certificates::authority(config, notices)?;
    let shown = ServedCertificates::of(plan.certificates, &sites, &authority)?;
    let identities = shown.identities()?;
    let accepted = plan.client_certificates.clone();
    let tls = setup::tls(&identities, &protocols, accepted)?;
    let options = options(config, &counted, &hits);
    if predecessor.is_none() {
        listen::listen_for_quic(&mut listeners.clients, &tls, &options, &runtime)?;
    }

    let names: Vec<String> = sites.names().map(str::to_owned).collect();
    let listening = listeners.addresses();
    let own = address_rules::own_listeners(config, &listening, notices);
    let mut acme = Acme::new(&identities, &zones, &runtime, notices);
    let certificates = acme::certificates(config, &sites)?;
    let certificates = acme.prepare(config, certificates, shown)?;
    let origins = OriginContext {
        zones: zones.clone(),
        counters: OriginCounters::default(),
        runtime: runtime.clone(),
    };
    let believed = &plan.origin_tls;
    let proxy = proxy(config, believed, sites, own, &origins)?;
    if let Some(observer) = &run_options.on_page {
        proxy.pages.reports.observe(observer.clone());
    }
    let timing = SharedTiming::new(plan.timing);
    let control_loop = ControlLoop::listen()?;

    if let Some(predecessor) = &mut predecessor {
        predecessor.request_cache().await;
    }
    let shared = attach_stores(config, plan.tier, &proxy).await?;
    let spans = plan.spans;
    let telemetry = spans.map(|settings| Telemetry::start(settings, &proxy, &runtime, notices));
    let telemetry = telemetry.transpose()?;
    let (shares, sends) = (shared.as_ref(), telemetry.as_ref());
    let log = AccessLog::start(config.access_log.as_ref(), run_options.access_log, notices);
    let operator = plan.credentials.map(|credentials| {
        let shown = metrics::AcceleratorCollector {
            proxy: proxy.clone(),
            origin_counters: origins.counters.clone(),
            names: listeners.names.as_ref().map(DnsServer::stats),
            shared: shares.map(|shared| shared.tier.clone()),
            certificates: acme.certificates.clone(),
            spans: sends.map(|telemetry| telemetry.queue.clone()),
            log_lines: log.lines.clone(),
        };
        let metrics = metrics::registry(shown, &counted, &hits);
        AdminHandler::new(credentials, &proxy, metrics, acme.certificates.clone())
    });
    let mut succession = Succession::listen(sockets)?;
    let remember = config.listen.remember_windows;
    let windows = (remember != Some(false)).then(|| RememberedWindows::new(runtime.clone()));
    #[cfg(target_os = "linux")]
    let _initial_window = InitialWindowOption::attach(remember, notices);
    (run_options.on_ready)(&listeners.ready(&protocols, &names))?;
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
    served_certificates::warn_withheld(&withheld, notices);
    let served = ConnectionContext {
        proxy: proxy.clone(),
        protocols: Protocol::over_tcp(&protocols),
        tls: Some(tls),
        options,
        runtime: runtime.clone(),
        stop: Latch::new(),
        cut_off: Latch::new(),
        alt_svc: None,
        log: log.shared.clone(),
        timing: timing.clone(),
        tokens: Some(acme.tokens.clone()),
    };
    let in_front = SharedTrustedProxies::new(proxy.origins.sites().trusted_proxies().clone());
    let mut limits = client_limits::listen_options(&config.limits, hits);
    limits.trusted_proxies = in_front.clone();
    limits.drain_timed_out = served.cut_off.clone();
    limits.windows = windows;
    let datagrams = predecessor.map(Predecessor::left);
    let serving = ServerTasks::start(listeners, &served, operator.clone(), &limits, datagrams);

    let reloader = Reloader {
        read_config: run_options.read_config,
        config,
        random_secret: &plan.random_secret,
        authority: &authority,
        origins: &origins,
        listening: &listening,
        proxy: &proxy,
        in_front: &in_front,
        client_certificates: plan.client_certificates.as_ref(),
        telemetry: sends,
        timing: &timing,
        access_log: &log,
        operator: operator.as_ref(),
        notices,
    };
    let successor = control_loop
        .run(&reloader, &mut acme, &mut succession, notices)
        .await?;
    drop((succession, acme));
    serving.end(successor).await;
    log.end().await;
    shutdown::close(&proxy, shared, telemetry).await;
    Ok(())
}

/// Options of each connection. `counted` counts sessions, `hits` counts limits that clients reach.
fn options(config: &Config, counted: &Metrics, hits: &LimitHits) -> ServerOptions {
    let mut server =
        client_limits::connection_options(&config.limits, Some(counted.clone()), hits.clone());
    server.http2_push = config.learn.push;
    server.spdy.send_trailers = true; // the proxy drops those that a client does not accept
    server
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
    proxy
        .push_config
        .set_digest_key(DigestKey(random::bytes()?));
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
    let (texts, images) = (config.cache.recompress, config.cache.images);
    if texts || images != ImageConversion::Off {
        let started = proxy.start_recompression(texts, images);
        started.context("cannot start the thread that makes stored bodies smaller")?;
    }
    SharedTier::start(config, tier, proxy).await
}
