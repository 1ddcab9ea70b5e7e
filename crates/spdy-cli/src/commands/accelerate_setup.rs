//! What `spdy accelerate` is made of, out of its configuration: sites, identities, what is told to whom.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use spdy_dns::zones::Zones;
use spdy_net::certificates::{Identity, KeyKind, LocalCa};
use spdy_net::identities::Identities;
use spdy_net::protocol::Protocol;
use spdy_net::tls::{ServerTls, TlsOptions};
use spdy_proxy::config::{Config, TimingConfig};
use spdy_proxy::disk::Disk;
use spdy_proxy::named_records;
use spdy_proxy::sites::Sites;
use spdy_proxy::timing::Timing;
use spdy_proxy::token::Token;

use crate::commands::Usage;
use crate::commands::telemetry;
use crate::printer::{BAD, DIM, Printer};

/// Characters of a token.
const LEAST_TOKEN: usize = 16;
/// Bytes of the secret that capabilities are made with.
const SECRET_BYTES: usize = 32;

/// How long a certificate made on the spot is valid: browsers and Mozilla's guidelines want no more than a year.
const LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// Valid for clients whose clock is so much behind.
const CLOCK_SKEW: Duration = Duration::from_secs(24 * 60 * 60);
/// How often certificates are made anew, or read again where they are given.
pub(super) const RENEWAL: Duration = Duration::from_secs(24 * 60 * 60);

/// The sites, whose capabilities are made with `secret`.
pub(super) fn compile(config: &Config, secret: &[u8]) -> anyhow::Result<Sites> {
    let sites = Sites::compile(config, secret).map_err(|error| Usage(error.to_string()))?;
    Ok(sites)
}

/// Tells of what may not be meant.
pub(super) fn doubt(sites: &Sites, printer: &Printer) {
    for site in sites.doubtful() {
        printer.note(format_args!(
            "{BAD}site {site}{BAD:#}: its origin has a name that is answered for here, and no address: where that name leads back \
             here, every request ends with 508; say `address`"
        ));
    }
}

/// What capabilities are made with: the operator's, or one that lives as long as the program.
pub(super) fn secret(config: &Config) -> anyhow::Result<Vec<u8>> {
    let Some(path) = &config.secret_file else {
        let mut secret = vec![0; SECRET_BYTES];
        getrandom::fill(&mut secret).map_err(|error| anyhow::anyhow!("no chance: {error}"))?;
        return Ok(secret);
    };
    let secret = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let len = secret.trim_ascii().len();
    if len < SECRET_BYTES {
        let what = path.display();
        let why = format!("{what}: want a secret of {SECRET_BYTES} bytes or more, got {len}");
        return Err(Usage(why).into());
    }
    Ok(secret.trim_ascii().to_vec())
}

/// The tier on a disk, if one is wanted.
pub(super) fn disk(config: &Config) -> anyhow::Result<Option<Disk>> {
    let Some(folder) = &config.cache.disk else {
        return Ok(None);
    };
    let disk = Disk::open(folder, (config.cache.disk_mib as u64) << 20);
    let disk = disk.with_context(|| format!("cannot keep anything in {}", folder.display()))?;
    Ok(Some(disk))
}

/// The certificate that was given, or one of `authority` for every name that is answered for.
pub(super) fn identity(
    config: &Config,
    sites: &Sites,
    authority: &LocalCa,
) -> anyhow::Result<Identity> {
    if let (Some(certificate), Some(key)) = (&config.tls.certificate, &config.tls.key) {
        return Ok(Identity::from_files(certificate, key)?);
    }
    let names = sites.names().chain(sites.names_of_others());
    let names: Vec<String> = names.map(str::to_owned).collect();
    let addresses = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
    let now = SystemTime::now();
    let identity = authority.issue_for(&names, &addresses, now - CLOCK_SKEW..now + LIFETIME);
    identity.context("cannot make a certificate")
}

/// The authority that signs where no certificate is given.
pub(super) fn authority(config: &Config, printer: &Printer) -> anyhow::Result<LocalCa> {
    let authority = LocalCa::generate(KeyKind::EcdsaP256)?;
    if let Some(path) = &config.tls.write_authority {
        let path = (path, path.display());
        std::fs::write(path.0, authority.pem())
            .with_context(|| format!("cannot write {}", path.1))?;
        printer.note(format_args!(
            "{DIM}wrote the authority to {}{DIM:#}",
            path.1
        ));
    }
    Ok(authority)
}

/// TLS as clients meet it at every door: it shows `identities`, and proves names to an authority that asks.
pub(super) fn tls(identities: &Identities, protocols: &[Protocol]) -> anyhow::Result<ServerTls> {
    let tls = ServerTls::of(identities, protocols, &TlsOptions::default())?;
    Ok(tls.with_growing_records().proving())
}

/// The zones that are answered for, with the names that other hosts have for `sites`.
pub(super) fn zones(config: &Config, sites: &Sites) -> anyhow::Result<Zones> {
    Zones::new(&named_records::zones(config, sites))
        .map_err(|error| Usage(format!("dns.zone: {error}")).into())
}

/// Who is told where the time of an answer went.
pub(super) fn timing(config: &TimingConfig) -> anyhow::Result<Timing> {
    let token = config.token_file.as_deref().map(token).transpose()?;
    Ok(Timing {
        token: token.as_deref().map(Token::new),
        everyone: config.everyone,
    })
}

/// Where spans are sent, if that is wanted.
pub(super) fn telemetry(config: &Config) -> anyhow::Result<Option<telemetry::Settings>> {
    let telemetry = config.telemetry.as_ref();
    telemetry.map(telemetry::Settings::of).transpose()
}

/// A token: the first line of a file.
pub(super) fn token(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path);
    let text = text.with_context(|| format!("cannot read {}", path.display()))?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.len() < LEAST_TOKEN {
        let (what, got) = (path.display(), token.len());
        let why = format!("{what}: want a token of {LEAST_TOKEN} characters or more, got {got}");
        return Err(Usage(why).into());
    }
    Ok(token.to_owned())
}
