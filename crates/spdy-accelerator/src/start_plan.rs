//! The parts of a start that are built from the configuration before anything is opened.

use spdy_dns::zones::Zones;
use spdy_net::tls::{ClientCertificates, ClientTls};
use spdy_proxy::config::Config;
use spdy_proxy::response::server_timing::Timing;
use spdy_proxy::sites::site_table::Sites;
use spdy_resolver::own_listeners::OwnListeners;
use spdy_service::notice::Notices;
use spdy_valkey::config::Config as TierConfig;

use crate::certificates::certificate_files::CertificateFiles;
use crate::certificates::{acme, served_certificates};
use crate::origins::{address_rules, upstream};
use crate::secrets::RandomSecret;
use crate::server::admin_listener::Credentials;
use crate::{setup, shared_tier, telemetry, warnings};

/// Everything that a start needs from the configuration before it opens anything.
pub struct StartPlan {
    pub(crate) config: Config,
    /// The secret of capabilities if the operator has none.
    pub(crate) random_secret: RandomSecret,
    pub(crate) sites: Sites,
    /// The zones of the DNS server.
    pub(crate) zones: Zones,
    /// The certificates from files.
    pub(crate) certificates: CertificateFiles,
    /// Names of sites that none of these certificates covers. Empty if there are no certificates from files.
    pub(crate) uncovered: Vec<String>,
    /// The certificates of clients, if they are requested.
    pub(crate) client_certificates: Option<ClientCertificates>,
    /// TLS to origins, with the trusted authorities.
    pub(crate) origin_tls: ClientTls,
    pub(crate) timing: Timing,
    /// The credentials of the operator, if there is an admin listener.
    pub(crate) credentials: Option<Credentials>,
    /// The shared tier, if configured.
    pub(crate) tier: Option<TierConfig>,
    /// Where spans are sent, if configured.
    pub(crate) spans: Option<telemetry::Settings>,
}

impl StartPlan {
    /// Checks `config`: everything that can fail before a socket is opened.
    ///
    /// # Errors
    ///
    /// The configuration is wrong ([`Usage`](spdy_service::error::Usage)), or a file that it names cannot be read.
    pub fn new(config: Config) -> anyhow::Result<Self> {
        let random_secret = RandomSecret::generate()?;
        let sites = setup::compile(&config, &random_secret)?;
        let zones = setup::zones(&config, &sites)?;
        acme::certificates(&config, &sites)?;
        acme::check_files(&config)?;
        let certificates = CertificateFiles::read(&config)?;
        served_certificates::check(&config, &certificates, &sites)?;
        let uncovered = served_certificates::uncovered(&certificates, &sites);
        let spans = setup::telemetry(&config)?;
        address_rules::rules(&config, &sites, OwnListeners::default())?;
        Ok(Self {
            client_certificates: setup::client_certificates(&config)?,
            origin_tls: upstream::tls(&config)?,
            timing: setup::timing(&config.timing)?,
            credentials: Credentials::read(&config)?,
            tier: shared_tier::tier(&config)?,
            config,
            random_secret,
            sites,
            zones,
            certificates,
            uncovered,
            spans,
        })
    }

    /// The names of all sites.
    pub fn site_names(&self) -> impl Iterator<Item = &str> {
        self.sites.names()
    }

    /// Reports settings of the program that are valid but may be mistakes.
    pub fn report_warnings(&self, notices: &Notices) {
        served_certificates::warn_uncovered(&self.uncovered, notices);
        if let Some(spans) = &self.spans {
            spans.report_warnings(notices);
        }
        warnings::warn_admin_address(&self.config, notices);
    }

    /// Reports settings of sites that are valid but may be mistakes.
    pub fn report_site_warnings(&self, notices: &Notices) {
        warnings::warn_sites(&self.sites, notices);
    }

    /// Reports each listed host that cannot be reached with this configuration.
    ///
    /// # Errors
    ///
    /// `[upstream]` has an invalid address range.
    pub fn report_unreachable_hosts(&self, notices: &Notices) -> anyhow::Result<()> {
        warnings::warn_unreachable_hosts(&self.config, notices)
    }
}
