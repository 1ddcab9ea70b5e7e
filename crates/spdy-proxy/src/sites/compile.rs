//! Compiles the sites of a configuration: their rules, origins and error pages.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::capability::Keys;
use spdy_rewrite::rules::config::Config as Rewrite;
use spdy_rewrite::rules::error::RulesError;
use spdy_rewrite::rules::host_aliases;
use spdy_rewrite::rules::site_names;

use crate::config::Config;
use crate::config::servers::ServerConfig;
use crate::config::site::SiteConfig;
use crate::sites::error_pages::ErrorPages;
use crate::sites::path_rules::{PathRuleError, PathRules};
use crate::sites::site::{Site, SiteServer};
use crate::sites::site_table::Sites;

/// Why a site cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// Its rules are invalid.
    #[error("site {site}: {error}")]
    Rules {
        /// Its first name.
        site: String,
        /// The error.
        error: RulesError,
    },
    /// Its name does not make a valid URL.
    #[error("site {site}: {error}")]
    Name {
        /// Its first name.
        site: String,
        /// The error.
        error: url::ParseError,
    },
    /// An error page cannot be read.
    #[error("site {site}: error_pages: cannot read {path}: {error}", path = path.display())]
    ErrorPage {
        /// Its first name.
        site: String,
        /// The file.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A rule for a path cannot be used.
    #[error("site {site}: {error}")]
    Path {
        /// Its first name.
        site: String,
        /// The error.
        error: PathRuleError,
    },
    /// A name of a site shares cookies with the zone of the aliases.
    #[error("site {site}: names_under \"{zone}\": {reason}")]
    Zone {
        /// Its first name.
        site: String,
        /// The zone.
        zone: String,
        /// The error.
        reason: String,
    },
}

impl SiteError {
    /// The first name of the site.
    #[must_use]
    pub fn site(&self) -> &str {
        match self {
            Self::Rules { site, .. }
            | Self::Name { site, .. }
            | Self::Zone { site, .. }
            | Self::Path { site, .. }
            | Self::ErrorPage { site, .. } => site,
        }
    }
}

impl Sites {
    /// Compiles the sites of `config`. `keys` makes and checks the capabilities in URLs. Browsers still have URLs from before a restart, so the
    /// keys must stay the same.
    ///
    /// # Errors
    ///
    /// [`SiteError`], with the site.
    pub fn compile(config: &Config, keys: &Keys) -> Result<Self, SiteError> {
        Self::compile_with(config, keys, Ok)
    }

    /// Compiles the sites with proxied URLs in the form of the paper, `/HOST/PATH`, for experiments. Only listed hosts have them. They hide the
    /// site's own paths of the same name, and lose schemes and ports.
    ///
    /// # Errors
    ///
    /// [`SiteError`], with the site.
    pub fn compile_with_literal_urls(config: &Config, keys: &Keys) -> Result<Self, SiteError> {
        Self::compile_with(config, keys, Rules::with_literal_urls)
    }

    fn compile_with(
        config: &Config,
        keys: &Keys,
        form: fn(Rules) -> Result<Rules, RulesError>,
    ) -> Result<Self, SiteError> {
        let mut sites = Self {
            alt_svc: config.listen.alt_svc(),
            trusted_proxies: Arc::new(config.listen.trusted_proxies().unwrap_or_default()), // it was checked
            ..Self::default()
        };
        for site in &config.site {
            let name = site.names.first().cloned().unwrap_or_default();
            let public = config.listen.site_url(&name);
            let public = public.map_err(|error| SiteError::Name {
                site: name.clone(),
                error,
            })?;
            let rules = Rules::compile(&public, &with_site_names(site), Some(keys.clone()));
            let rules = rules.and_then(form).map_err(|error| SiteError::Rules {
                site: name.clone(),
                error,
            })?;
            check_cookie_isolation(config, site)?;
            let error_pages = ErrorPages::read(&site.error_pages);
            let error_pages = error_pages.map_err(|(path, error)| SiteError::ErrorPage {
                site: name.clone(),
                path,
                error,
            })?;
            let paths = PathRules::compile(&site.paths, &site.origin);
            let paths = paths.map_err(|error| SiteError::Path {
                site: name.clone(),
                error,
            })?;
            sites.resolve(site);
            let compiled = Arc::new(Site {
                name,
                names: site.names.clone(),
                origin: site.origin.clone(),
                preserve_host: site.keep_host,
                servers: site.servers.iter().filter_map(compile_server).collect(),
                health: site.health.clone(),
                compress_private: site.compress_private,
                websocket: site.websocket.then_some(config.websocket),
                redirects_to_https: site.redirect_to_https,
                hsts: site.hsts.and_then(|hsts| hsts.value().ok()),
                error_pages,
                paths,
                quotas: (site.cache_mib.map(mib), site.disk_mib.map(mib)),
                rules: Arc::new(rules),
                pages: Arc::default(),
                counters: Arc::default(),
            });
            for named in compiled.rules.aliases() {
                let name = named.name().to_owned();
                sites.by_alias.insert(name, compiled.clone());
            }
            for name in &site.names {
                match site_names::wildcard_domain(name) {
                    Some(domain) => {
                        let entry = (name.clone(), compiled.clone());
                        sites.by_wildcard.insert(domain.to_owned(), entry);
                    }
                    None => {
                        sites.by_name.insert(name.clone(), compiled.clone());
                    }
                }
            }
        }
        let resolve = &config.upstream.resolve;
        let is_placed = |host: &str| resolve.keys().any(|name| name.eq_ignore_ascii_case(host));
        let is_own_name = |host: &str| sites.find(host).is_some() && !is_placed(host);
        let looping = config.site.iter().filter(|site| {
            site.address.is_none()
                && site.servers.is_empty()
                && site.origin.host_str().is_some_and(is_own_name)
        });
        sites.possible_loops = looping
            .filter_map(|site| site.names.first().cloned())
            .collect();
        Ok(sites)
    }

    fn resolve(&mut self, site: &SiteConfig) {
        let host = site.origin.host_str().unwrap_or_default();
        let Some(address) = site.address else {
            // The site's names resolve to this proxy; the origin is at the address of its own name.
            let names = site
                .names
                .iter()
                .filter(|name| site.keep_host && *name != host);
            let names = names.map(|name| (name.clone(), host.to_owned()));
            self.connect_hosts.extend(names);
            return;
        };
        let port = site.origin.port_or_known_default();
        let names = site.names.iter().filter(|_| site.keep_host);
        let names = names.map(String::as_str).chain([host]);
        for name in names {
            self.addresses.push((name.to_owned(), port, address));
        }
    }
}

/// The server of a checked configuration.
fn compile_server(server: &ServerConfig) -> Option<SiteServer> {
    Some(SiteServer {
        address: server.address.parse().ok()?,
        weight: server.weight,
    })
}

fn mib(mib: usize) -> u64 {
    (mib as u64) << 20
}

/// The rewrite rules for `site`, with every name of the site among its own hosts: the proxy would request resources of these hosts from
/// itself. Addresses are never proxied.
fn with_site_names(site: &SiteConfig) -> Rewrite {
    let mut rewrite = site.rewrite.clone();
    let is_domain = |name: &&String| matches!(url::Host::parse(name), Ok(url::Host::Domain(_)));
    let others = site.names.iter().skip(1).filter(is_domain);
    rewrite.own_hosts.extend(others.cloned());
    rewrite.site_names.clone_from(&site.names);
    rewrite
}

/// Checks that no site shares cookies with the zone of the aliases of `site`.
fn check_cookie_isolation(config: &Config, site: &SiteConfig) -> Result<(), SiteError> {
    let Some(zone) = &site.rewrite.names_under else {
        return Ok(());
    };
    for name in config.site.iter().flat_map(|site| &site.names) {
        let name = site_names::wildcard_domain(name).unwrap_or(name);
        host_aliases::check_cookie_isolation(zone, name).map_err(|reason| SiteError::Zone {
            site: site.names.first().cloned().unwrap_or_default(),
            zone: zone.clone(),
            reason,
        })?;
    }
    Ok(())
}
