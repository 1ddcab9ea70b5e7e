//! What `spdy accelerate` is made of, out of its configuration: sockets, identities, sites, origins.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use spdy::runtime::SharedRuntime;
use spdy_dns::guard::AddressRules;
use spdy_dns::guarded_network::GuardedNetwork;
use spdy_dns::resolver::Resolver;
use spdy_dns::resolver::config::{ResolverConfig, system_servers};
use spdy_dns::zones::{SharedZones, Zones};
use spdy_net::certificates::{Identity, KeyKind, LocalCa, certificates_from_pem};
use spdy_net::handed::HandedSockets;
use spdy_net::network::{SharedNetwork, SystemNetwork};
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_net::verify::{Roots, Trust};
use spdy_proxy::config::{Config, TimingConfig};
use spdy_proxy::disk::Disk;
use spdy_proxy::named_records;
use spdy_proxy::sites::Sites;
use spdy_proxy::timing::Timing;
use spdy_proxy::token::Token;
use spdy_proxy::upstream::Upstream;

use crate::commands::Usage;
use crate::commands::serve_listen::{self, Door, Listening};
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

/// The sockets: those that were `handed` over, and others where there is none.
pub(super) fn bind(config: &Config, handed: &mut HandedSockets) -> anyhow::Result<Vec<Door>> {
    let wanted = [(&config.listen.tls, true), (&config.listen.plain, false)];
    let mut doors = Vec::new();
    for (addresses, tls) in wanted {
        for &address in addresses {
            let listener = serve_listen::bind_or_take(address, handed)?;
            doors.push(Door {
                about: Listening {
                    address: listener.address(),
                    tls,
                    quic: false,
                    host: None,
                },
                tcp: Some(listener),
                quic: None,
            });
        }
    }
    Ok(doors)
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

/// Origins, and the guard before those of others.
pub(super) fn upstream(
    config: &Config,
    sites: &Sites,
    zones: &SharedZones,
    own: Vec<SocketAddr>,
    runtime: &SharedRuntime,
) -> anyhow::Result<Upstream> {
    let servers = match config.dns.servers.is_empty() {
        // A system without a list of them has another way, which is taken then.
        true => system_servers().unwrap_or_default(),
        false => config.dns.servers.clone(),
    };
    let config = &config.upstream;
    let mut allow = Vec::new();
    for range in &config.allow_addresses {
        allow.push(range.parse().map_err(|_| {
            let what = "upstream.allow_addresses";
            Usage(format!("{what}: want a range as 10.0.0.0/8, got {range:?}"))
        })?);
    }
    let mut rules = AddressRules {
        allow,
        own,
        ..AddressRules::default()
    };
    rules.ports.extend(&config.allow_ports);
    let mut authorities = Vec::new();
    for path in &config.authorities {
        let pem = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        authorities.extend(certificates_from_pem(&pem, &path.display().to_string())?);
    }
    let trust = Trust {
        roots: Roots::SystemAnd(authorities),
        ..Trust::default()
    };
    let tls = ClientTls::new(&trust, &TlsOptions::default())?;
    let network: SharedNetwork = Arc::new(SystemNetwork);
    let names = ResolverConfig {
        servers,
        ..ResolverConfig::default()
    };
    let names = Resolver::new(network.clone(), runtime.clone(), names, zones.clone());
    let guarded = GuardedNetwork::with_names(Arc::new(names), network.clone(), rules);
    let guarded: SharedNetwork = Arc::new(guarded);
    Ok(Upstream::new(
        config,
        Some(&tls),
        sites,
        network,
        guarded,
        runtime,
    ))
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
