//! Builds the parts of `spdy accelerate` from its configuration: sites, zones, disk, TLS, timing, telemetry.

use std::path::Path;

use anyhow::Context;
use spdy_dns::zones::Zones;
use spdy_net::protocol::Protocol;
use spdy_net::tls::identities::Identities;
use spdy_net::tls::{ClientCertificates, ServerTls, TlsOptions};
use spdy_proxy::cache::disk::store::DiskStore;
use spdy_proxy::config::{Config, TimingConfig};
use spdy_proxy::response::server_timing::Timing;
use spdy_proxy::sites::alias_dns_records;
use spdy_proxy::sites::site_table::Sites;
use spdy_proxy::token::Token;
use spdy_service::error::Usage;

use super::secrets::{self, RandomSecret};
use super::telemetry;

/// Characters of a token.
const MIN_TOKEN_CHARS: usize = 16;

/// The sites. Their capabilities use the operator's current secrets, or `random_secret`.
pub(crate) fn compile(config: &Config, random_secret: &RandomSecret) -> anyhow::Result<Sites> {
    let keys = secrets::keys(config, random_secret)?;
    let sites = Sites::compile(config, &keys).map_err(|error| {
        let mut sites = config.site.iter();
        let site = sites.find(|site| site.names.first().is_some_and(|name| name == error.site()));
        match site.and_then(|site| site.file.as_ref()) {
            Some(file) => Usage(format!("{}: {error}", file.display())),
            None => Usage(error.to_string()),
        }
    })?;
    Ok(sites)
}

/// The disk tier of the cache, if configured.
pub(crate) fn disk(config: &Config) -> anyhow::Result<Option<DiskStore>> {
    let Some(folder) = &config.cache.disk else {
        return Ok(None);
    };
    let disk = DiskStore::open(folder, (config.cache.disk_mib as u64) << 20);
    let disk =
        disk.with_context(|| format!("cannot open the disk cache in {}", folder.display()))?;
    Ok(Some(disk))
}

/// TLS for clients on every listener. It shows `identities`, and answers tls-alpn-01 challenges.
/// `accepted` are the certificates of clients.
pub(crate) fn tls(
    identities: &Identities,
    protocols: &[Protocol],
    accepted: Option<ClientCertificates>,
) -> anyhow::Result<ServerTls> {
    let mut options = TlsOptions::default();
    options.client_certificates = accepted;
    let tls = ServerTls::of(identities, protocols, &options)?;
    Ok(tls.with_dynamic_record_size().with_acme_challenges())
}

/// The certificates that clients may show, if configured.
pub(crate) fn client_certificates(config: &Config) -> anyhow::Result<Option<ClientCertificates>> {
    let Some(accepted) = &config.listen.client_certificates else {
        return Ok(None);
    };
    let (path, name) = (&accepted.authorities, accepted.authorities.display());
    let pem = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    let accepted = ClientCertificates::from_pem(&pem, &name.to_string(), accepted.required);
    accepted
        .map(Some)
        .map_err(|error| Usage(format!("listen.client_certificates: {error}")).into())
}

/// The zones of the DNS server, with the names that other hosts have for `sites`.
pub(crate) fn zones(config: &Config, sites: &Sites) -> anyhow::Result<Zones> {
    Zones::new(&alias_dns_records::with_alias_records(config, sites))
        .map_err(|error| Usage(format!("dns.zone: {error}")).into())
}

/// The clients that get a Server-Timing header.
pub(crate) fn timing(config: &TimingConfig) -> anyhow::Result<Timing> {
    let token = config.token_file.as_deref().map(token).transpose()?;
    Ok(Timing {
        token: token.as_deref().map(Token::new),
    })
}

/// Where spans are sent, if configured.
pub(crate) fn telemetry(config: &Config) -> anyhow::Result<Option<telemetry::Settings>> {
    let telemetry = config.telemetry.as_ref();
    telemetry.map(telemetry::Settings::of).transpose()
}

/// A token: the first line of a file.
pub(crate) fn token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.len() < MIN_TOKEN_CHARS {
        let (what, found) = (path.display(), token.len());
        let reason =
            format!("{what}: token has {found} characters, expected at least {MIN_TOKEN_CHARS}");
        return Err(Usage(reason).into());
    }
    Ok(token.to_owned())
}
