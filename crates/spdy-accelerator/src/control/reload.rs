//! Reloads the configuration of a running `spdy accelerate`: first everything that can fail, then everything that takes effect.

use std::net::SocketAddr;
use std::sync::Arc;

use spdy_dns::zones::Zones;
use spdy_net::listen::trusted_proxies::SharedTrustedProxies;
use spdy_net::tls::ClientCertificates;
use spdy_net::tls::certificates::LocalCa;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::response::server_timing::{SharedTiming, Timing};
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::upstream::client::Upstream;
use spdy_service::error::chain;
use spdy_service::notice::Notices;

use super::restart_only;
use crate::access_log::lifecycle::AccessLog;
use crate::certificates::acme::{self, Acme, CertificateUpdate, StaticCertificates};
use crate::certificates::certificate_files::{CertificateFiles, InvalidPair};
use crate::certificates::served_certificates::{self, ServedCertificates};
use crate::origins::address_rules;
use crate::origins::upstream::{self, OriginContext};
use crate::secrets::RandomSecret;
use crate::server::admin_listener::{AdminHandler, Credentials};
use crate::telemetry::{self, Telemetry};
use crate::{setup, warnings};

/// The parts of the running program that a reload uses. They are the same for all reloads: `config` is that of the start.
#[derive(Clone, Copy)]
pub(crate) struct Reloader<'a> {
    /// Reads the configuration again, with the options of the command line applied.
    pub(crate) read_config: &'a dyn Fn() -> anyhow::Result<Config>,
    pub(crate) config: &'a Config,
    pub(crate) random_secret: &'a RandomSecret,
    pub(crate) authority: &'a Arc<LocalCa>,
    pub(crate) origins: &'a OriginContext,
    pub(crate) listening: &'a [SocketAddr],
    pub(crate) proxy: &'a Arc<Proxy>,
    pub(crate) in_front: &'a SharedTrustedProxies,
    /// The certificates of clients, if they were requested at the start.
    pub(crate) client_certificates: Option<&'a ClientCertificates>,
    pub(crate) telemetry: Option<&'a Telemetry>,
    pub(crate) timing: &'a SharedTiming,
    pub(crate) access_log: &'a AccessLog,
    pub(crate) operator: Option<&'a AdminHandler>,
    pub(crate) notices: &'a Notices,
}

impl Reloader<'_> {
    /// Applies the current configuration, or keeps the previous one if it is invalid, and prints which. Certificate files are read
    /// again in both cases, so that an invalid configuration lets none of them expire.
    pub(crate) fn reload(&self, acme: &mut Acme) {
        match self.prepare(acme) {
            Ok(renewed) => {
                renewed.apply(self, acme);
                self.notices.info("reloaded the configuration");
            }
            // The running configuration is unchanged.
            Err(error) => {
                self.notices.error(
                    "cannot reload the configuration",
                    format_args!(", so the previous one stays: {}", chain(&error)),
                );
                if !acme.files.pairs().is_empty() {
                    self.renew_certificates(acme);
                    self.notices.info("reloaded only the certificates");
                }
            }
        }
    }

    /// Reads the certificate files again and shows them. An invalid one keeps its previous certificate, with a note.
    pub(crate) fn renew_certificates(&self, acme: &mut Acme) {
        let (files, stale) = acme.files.reread();
        match self.rest(acme, files) {
            Ok(rest) => acme.install_static(rest),
            Err(error) => self.notices.error(
                "cannot reload the certificate",
                format_args!(", so the previous one stays: {}", chain(&error)),
            ),
        }
        stale.iter().for_each(|stale| stale.report(self.notices));
        self.update_host_names(acme);
    }

    /// Lets pages use only those aliases that a certificate has now.
    pub(crate) fn update_host_names(&self, acme: &Acme) {
        let withheld = acme.uncertified(&self.proxy.origins.sites());
        if self.proxy.origins.withhold_aliases(&withheld) {
            served_certificates::warn_withheld(&withheld, self.notices);
        }
    }

    /// The certificates without ACME for the next installation: `files`, or a newly generated one. The names come from the running sites,
    /// because the configuration file may be half written now.
    fn rest(&self, acme: &Acme, files: CertificateFiles) -> anyhow::Result<StaticCertificates> {
        acme.prepare_static(ServedCertificates::of(
            files,
            &self.proxy.origins.sites(),
            self.authority,
        )?)
    }

    /// Checks and builds everything that the current configuration can change. The listeners stay.
    fn prepare(&self, acme: &Acme) -> anyhow::Result<ReloadPlan> {
        let written = (self.read_config)()?;
        let config = restart_only::keep_listeners(self.config, &written);
        let sites = setup::compile(&config, self.random_secret)?;
        let (files, stale) = acme.files.reread_for(&config)?;
        let uncovered = served_certificates::uncovered(&files, &sites);
        let shown = ServedCertificates::of(files, &sites, self.authority)?;
        let names = acme::certificates(&config, &sites)?;
        let own = address_rules::own_listeners(&config, self.listening, self.notices);
        let tls = upstream::tls(&config)?;
        let upstream = upstream::upstream(&config, &tls, &sites, own, self.origins)?;
        Ok(ReloadPlan {
            client_certificates: setup::client_certificates(&config)?,
            certificates: acme.prepare(&config, names, shown)?,
            stale,
            uncovered,
            zones: setup::zones(&config, &sites)?,
            upstream,
            spans: setup::telemetry(&config)?,
            timing: setup::timing(&config.timing)?,
            credentials: Credentials::read(&config)?,
            sites,
            config: written,
        })
    }
}

/// The parts of a new configuration, after all checks that can fail.
struct ReloadPlan {
    sites: Sites,
    upstream: Upstream,
    /// The certificates of clients.
    client_certificates: Option<ClientCertificates>,
    certificates: CertificateUpdate,
    /// Certificate files that are invalid now: their previous certificates stay.
    stale: Vec<InvalidPair>,
    /// Names that no certificate covers.
    uncovered: Vec<String>,
    zones: Zones,
    /// Where spans are sent.
    spans: Option<telemetry::Settings>,
    timing: Timing,
    /// The credentials of the operator.
    credentials: Option<Credentials>,
    /// The configuration as it is written.
    config: Config,
}

impl ReloadPlan {
    fn apply(self, reloader: &Reloader<'_>, acme: &mut Acme) {
        // The zones are first, because ACME proves names in them.
        reloader.origins.zones.replace(self.zones);
        acme.commit(self.certificates);
        if let (Some(served), Some(now)) = (reloader.client_certificates, &self.client_certificates)
        {
            served.replace(now);
        }
        self.stale
            .iter()
            .for_each(|stale| stale.report(reloader.notices));
        warnings::warn_sites(&self.sites, reloader.notices);
        served_certificates::warn_uncovered(&self.uncovered, reloader.notices);
        let withheld = acme.uncertified(&self.sites);
        served_certificates::warn_withheld(&withheld, reloader.notices);
        let sites = self.sites.without_aliases(&withheld);
        reloader.in_front.replace(sites.trusted_proxies().clone());
        reloader.proxy.replace(sites, self.upstream);
        reloader.timing.replace(self.timing);
        reloader.access_log.reload(self.config.access_log.as_ref());
        if let (Some(operator), Some(credentials)) = (reloader.operator, self.credentials) {
            operator.set_credentials(credentials);
        }
        Telemetry::reload(reloader.telemetry, self.spans, reloader.notices);
        restart_only::warn_changed(reloader.config, &self.config, reloader.notices);
    }
}
