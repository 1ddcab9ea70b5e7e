//! The configuration of `spdy accelerate`, read again while it runs: first all that can fail, then all that takes effect.

use std::net::SocketAddr;
use std::sync::Arc;

use spdy::runtime::SharedRuntime;
use spdy_dns::zones::{SharedZones, Zones};
use spdy_net::listen::trusted_proxies::SharedTrustedProxies;
use spdy_net::tls::certificates::LocalCa;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::response::server_timing::{SharedTiming, Timing};
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::upstream::client::Upstream;

use crate::commands::accelerate::acme::{self, Acme, CertificateUpdate, StaticCertificates};
use crate::commands::accelerate::certificate_files::{CertificateFiles, InvalidPair};
use crate::commands::accelerate::certificates::{self, ServedCertificates};
use crate::commands::accelerate::command::{self, Args};
use crate::commands::accelerate::operator::{AdminHandler, Credentials};
use crate::commands::accelerate::secrets::RandomSecret;
use crate::commands::accelerate::{origins, setup, stays};
use crate::commands::telemetry::{self, Telemetry};
use crate::printer::{BAD, DIM, Printer, chain};

/// What stays as it was when the program began.
#[derive(Clone, Copy)]
pub(super) struct Reloader<'a> {
    pub(super) args: &'a Args,
    pub(super) config: &'a Config,
    pub(super) chance: &'a RandomSecret,
    pub(super) authority: &'a Arc<LocalCa>,
    pub(super) zones: &'a SharedZones,
    pub(super) counters: &'a origins::OriginCounters,
    pub(super) listening: &'a [SocketAddr],
    pub(super) proxy: &'a Arc<Proxy>,
    pub(super) in_front: &'a SharedTrustedProxies,
    pub(super) telemetry: Option<&'a Telemetry>,
    pub(super) timing: &'a SharedTiming,
    pub(super) operator: Option<&'a AdminHandler>,
    pub(super) runtime: &'a SharedRuntime,
    pub(super) printer: &'a Printer,
}

impl Reloader<'_> {
    /// Applies the current configuration, or keeps the previous one if it is invalid, and prints which. Certificate files are read
    /// again in both cases, so that an invalid configuration lets none of them expire.
    pub(super) fn reload(&self, acme: &mut Acme) {
        match self.prepare(acme) {
            Ok(renewed) => {
                renewed.apply(self, acme);
                self.printer
                    .note(format_args!("{DIM}read the configuration anew{DIM:#}"));
            }
            // What runs goes on as it was.
            Err(error) => {
                self.printer.note(format_args!(
                    "{BAD}the configuration stays as it was{BAD:#}: {}",
                    chain(&error)
                ));
                if !acme.files.pairs().is_empty() {
                    self.renew_certificates(acme);
                    self.printer.note(format_args!(
                        "{DIM}read the certificates anew all the same{DIM:#}"
                    ));
                }
            }
        }
    }

    /// Reads the certificate files again and shows them. An invalid one keeps its previous certificate, with a note.
    pub(super) fn renew_certificates(&self, acme: &mut Acme) {
        let (files, stale) = acme.files.reread();
        match self.rest(acme, files) {
            Ok(rest) => acme.install_static(rest),
            Err(error) => self.printer.note(format_args!(
                "{BAD}the certificate stays as it was{BAD:#}: {}",
                chain(&error)
            )),
        }
        stale
            .iter()
            .for_each(|stale| stale.print_warning(self.printer));
        self.update_host_names(acme);
    }

    /// Lets pages use only those aliases that a certificate has now.
    pub(super) fn update_host_names(&self, acme: &Acme) {
        let withheld = acme.uncertified(&self.proxy.sites());
        if self.proxy.withhold_aliases(&withheld) {
            certificates::warn_withheld(&withheld, self.printer);
        }
    }

    /// The certificates without ACME for the next installation: `files`, or a newly generated one. The names come from the running sites,
    /// because the configuration file may be half written now.
    fn rest(&self, acme: &Acme, files: CertificateFiles) -> anyhow::Result<StaticCertificates> {
        acme.prepare_static(ServedCertificates::of(
            files,
            &self.proxy.sites(),
            self.authority,
        )?)
    }

    /// All that may be other by the configuration of now. Where is listened stays.
    fn prepare(&self, acme: &Acme) -> anyhow::Result<ReloadPlan> {
        let said = command::read(self.args)?;
        let config = stays::keep_listeners(self.config, &said);
        let sites = setup::compile(&config, self.chance)?;
        let (files, stale) = acme.files.reread_for(&config)?;
        let uncovered = certificates::uncovered(&files, &sites);
        let shown = ServedCertificates::of(files, &sites, self.authority)?;
        let names = acme::certificates(&config, &sites)?;
        let own = origins::own(&config, self.listening, self.printer);
        let (zones, counted, runtime) = (self.zones, self.counters, self.runtime);
        let tls = origins::tls(&config)?;
        let upstream = origins::upstream(&config, &tls, &sites, zones, own, counted, runtime)?;
        Ok(ReloadPlan {
            certificates: acme.prepare(&config, names, shown)?,
            stale,
            uncovered,
            zones: setup::zones(&config, &sites)?,
            upstream,
            spans: setup::telemetry(&config)?,
            timing: setup::timing(&config.timing)?,
            credentials: Credentials::read(&config)?,
            sites,
            config: said,
        })
    }
}

/// What the configuration comes to when it is read again, and cannot fail any more.
struct ReloadPlan {
    sites: Sites,
    upstream: Upstream,
    certificates: CertificateUpdate,
    /// Those that stay as they were.
    stale: Vec<InvalidPair>,
    /// Names that no certificate is for.
    uncovered: Vec<String>,
    zones: Zones,
    /// Where spans are sent.
    spans: Option<telemetry::Settings>,
    timing: Timing,
    /// The operator's.
    credentials: Option<Credentials>,
    /// The configuration as it is written.
    config: Config,
}

impl ReloadPlan {
    fn apply(self, again: &Reloader<'_>, acme: &mut Acme) {
        // First: names are proven in them.
        again.zones.replace(self.zones);
        acme.commit(self.certificates);
        self.stale
            .iter()
            .for_each(|stale| stale.print_warning(again.printer));
        setup::warn_sites(&self.sites, again.printer);
        certificates::warn_uncovered(&self.uncovered, again.printer);
        let withheld = acme.uncertified(&self.sites);
        certificates::warn_withheld(&withheld, again.printer);
        let sites = self.sites.without_aliases(&withheld);
        again.in_front.replace(sites.trusted_proxies().clone());
        again.proxy.replace(sites, self.upstream);
        again.timing.replace(self.timing);
        if let (Some(operator), Some(credentials)) = (again.operator, self.credentials) {
            operator.set_credentials(credentials);
        }
        Telemetry::reload(again.telemetry, self.spans, again.printer);
        stays::warn_changed(again.config, &self.config, again.printer);
    }
}
