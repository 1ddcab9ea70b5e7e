//! Everything that a start of `spdy accelerate` takes from the configuration before it opens anything.

use spdy_dns::zones::Zones;
use spdy_net::tls::ClientTls;
use spdy_proxy::config::Config;
use spdy_proxy::response::server_timing::Timing;
use spdy_proxy::sites::site_table::Sites;
use spdy_resolver::own_listeners::OwnListeners;
use spdy_valkey::config::Config as TierConfig;

use super::certificates::certificate_files::CertificateFiles;
use super::certificates::{acme, served_certificates};
use super::origins::{address_rules, upstream};
use super::secrets::RandomSecret;
use super::server::admin_listener::Credentials;
use super::{setup, shared_tier, telemetry};

/// All that a start needs of the configuration before it opens anything.
pub(crate) struct StartPlan {
    pub(crate) config: Config,
    /// What capabilities are made with where the operator has no secret.
    pub(crate) random_secret: RandomSecret,
    pub(crate) sites: Sites,
    /// Names that are answered for.
    pub(crate) zones: Zones,
    /// Those out of files.
    pub(crate) certificates: CertificateFiles,
    /// Names of sites that none of them is for, where there are some.
    pub(crate) uncovered: Vec<String>,
    /// TLS to origins, with the trusted authorities.
    pub(crate) origin_tls: ClientTls,
    pub(crate) timing: Timing,
    /// The operator's, if there is a listener for one.
    pub(crate) credentials: Option<Credentials>,
    /// The shared tier, if configured.
    pub(crate) tier: Option<TierConfig>,
    /// Where spans are sent, if configured.
    pub(crate) spans: Option<telemetry::Settings>,
}

/// Checks `config`: everything that can fail before a socket is opened.
pub(crate) fn plan(config: Config) -> anyhow::Result<StartPlan> {
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
    Ok(StartPlan {
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
