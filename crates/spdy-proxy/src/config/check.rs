//! Checks whether a parsed configuration can work: each part by itself, and together with the others.

use std::collections::BTreeSet;

use url::Host;

use crate::config::access_log::AccessLogConfig;
use crate::config::acme::Challenge;
use crate::config::dns_name::is_in_zone;
use crate::config::error::{ConfigError, InvalidValue};
use crate::config::servers;
use crate::config::site::SiteConfig;
use crate::config::telemetry::TelemetryConfig;
use crate::config::{AdminConfig, Config};

impl Config {
    /// Checks the whole configuration and returns the first fault.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        self.protocols()?;
        let fault = self
            .check_listen()
            .or_else(|| self.cache.fault())
            .or_else(|| self.check_secret_file())
            .or_else(|| with_display_value(self.learn.fault()))
            .or_else(|| self.check_previous_secret())
            .or_else(|| self.upstream.fault())
            .or_else(|| with_display_value(self.limits.fault()))
            .or_else(|| with_display_value(self.websocket.fault()))
            .or_else(|| self.check_shared_cache());
        if fault.is_none() {
            self.check_sites()?;
        }
        let fault = fault
            .or_else(|| self.telemetry.as_ref().and_then(TelemetryConfig::fault))
            .or_else(|| self.access_log.as_ref().and_then(AccessLogConfig::fault))
            .or_else(|| self.check_acme());
        fault.map_or(Ok(()), |fault| Err(invalid(fault)))
    }

    fn check_listen(&self) -> Option<InvalidValue> {
        let (listen, dns, tls) = (&self.listen, &self.dns, &self.tls);
        if listen.tls().is_empty() && listen.plain.is_empty() {
            let expected = "an address under tls or plain";
            return Some(("listen", expected, format!("{:?}", listen.tls())));
        }
        if let Err(wrong) = listen.trusted_proxies() {
            let expected = "addresses and ranges, such as 10.0.0.0/8";
            return Some(("listen.trusted", expected, format!("{wrong:?}")));
        }
        if listen.proxy_protocol && listen.trusted.is_empty() {
            let expected =
                "listen.trusted to be set, because any other sender could claim any client address";
            return Some(("listen.proxy_protocol", expected, "true".to_owned()));
        }
        if let Some(fault) = self.check_client_certificates() {
            return Some(fault);
        }
        if let Some(wrong) = self.admin.as_ref().and_then(AdminConfig::invalid_host) {
            let expected = "hostnames without a port, such as metrics.internal";
            return Some(("admin.names", expected, format!("{wrong:?}")));
        }
        if !dns.listen.is_empty() && dns.zone.is_empty() {
            let expected = "at least one zone";
            return Some(("dns.zone", expected, format!("{:?}", dns.zone)));
        }
        if tls.certificate.is_some() != tls.key.is_some() {
            let expected = "both certificate and key, or neither";
            return Some(("tls", expected, format!("{tls:?}")));
        }
        let is_for_none = self.site.is_empty();
        is_for_none.then(|| ("site", "at least one", "0".to_owned()))
    }

    /// Client certificates need TLS, and if they are required, no request may come without it.
    fn check_client_certificates(&self) -> Option<InvalidValue> {
        const KEY: &str = "listen.client_certificates";
        let accepted = self.listen.client_certificates.as_ref()?;
        let found = || format!("{:?}", accepted.authorities);
        if self.listen.tls().is_empty() {
            return Some((KEY, "listen.tls to be set", found()));
        }
        if !accepted.required {
            return None;
        }
        let is_open = |site: &SiteConfig| !site.redirect_to_https;
        if !self.listen.plain.is_empty() && self.site.iter().any(is_open) {
            let expected =
                "redirect_to_https in each site, because listen.plain needs no certificate";
            return Some((KEY, expected, found()));
        }
        let acme = self.tls.acme.as_ref();
        acme.is_some_and(|acme| acme.challenge == Challenge::TlsAlpn01)
            .then(|| {
                let expected = "another tls.acme.challenge than tls-alpn-01, for which the authority connects without a certificate";
                (KEY, expected, found())
            })
    }

    /// Features whose entries are found by the secret need a secret that survives a restart.
    fn check_secret_file(&self) -> Option<InvalidValue> {
        if self.secret_file.is_some() {
            return None;
        }
        if let Some(disk) = &self.cache.disk {
            // The secret is part of the rules' tag: with another secret, earlier entries are not found.
            let expected =
                "secret_file to be set, so that stored responses are found after a restart";
            return Some(("cache.disk", expected, format!("{disk:?}")));
        }
        let mut zones = self.site.iter().flat_map(|site| &site.rewrite.names_under);
        let zone = zones.next()?;
        // Names are made with it, and stand in certificates and in DNS.
        let expected = "secret_file to be set, so that names stay the same after a restart";
        Some(("site.rewrite.names_under", expected, format!("{zone:?}")))
    }

    fn check_previous_secret(&self) -> Option<InvalidValue> {
        let former = self.former_secret_file.as_ref()?;
        let expected = "secret_file to be set to the new secret";
        let is_alone = self.secret_file.is_none();
        is_alone.then(|| ("former_secret_file", expected, format!("{former:?}")))
    }

    fn check_shared_cache(&self) -> Option<InvalidValue> {
        let shared = self.cache.shared.as_ref()?;
        if let Some((key, expected, found)) = shared.fault() {
            return Some((key, expected, format!("{found:?}")));
        }
        let expected = "secret_file to be set, the same on all machines";
        let is_without = self.secret_file.is_none();
        is_without.then(|| ("cache.shared", expected, format!("{:?}", shared.prefix)))
    }

    fn check_sites(&self) -> Result<(), ConfigError> {
        let mut names = BTreeSet::new();
        for site in &self.site {
            let fault = site.check_names(&mut names);
            let fault = fault
                .or_else(|| site.check_origin())
                .or_else(|| site.check_paths())
                .or_else(|| site.check_error_pages())
                .or_else(|| servers::fault(&site.servers, site.health.as_ref(), site.address))
                .or_else(|| self.check_site(site));
            if let Some(fault) = fault {
                let error = invalid(fault);
                return Err(match &site.file {
                    Some(file) => error.in_file(file),
                    None => error,
                });
            }
        }
        Ok(())
    }

    /// A fault in `site`, or between it and the other tables.
    fn check_site(&self, site: &SiteConfig) -> Option<InvalidValue> {
        let has_tls = !self.listen.tls().is_empty() || !self.listen.trusted.is_empty();
        if site.redirect_to_https && !has_tls {
            let expected = "listen.tls or listen.trusted to be set";
            return Some(("site.redirect_to_https", expected, "true".to_owned()));
        }
        let cache = &self.cache;
        if let Some(found) = site.cache_mib
            && !(1..=cache.memory_mib).contains(&found)
        {
            let expected = "1 to cache.memory_mib";
            return Some(("site.cache_mib", expected, found.to_string()));
        }
        if let Some(found) = site.disk_mib
            && (cache.disk.is_none() || !(1..=cache.disk_mib).contains(&found))
        {
            let expected = "1 to cache.disk_mib, and cache.disk";
            return Some(("site.disk_mib", expected, found.to_string()));
        }
        let max_s = self.upstream.head_timeout_s;
        let timeouts = site
            .rewrite
            .limits_of_hosts()
            .filter_map(|it| it.head_timeout_s);
        let found = timeouts.max().filter(|found| *found > max_s)?;
        let expected = "no more than upstream.head_timeout_s";
        Some((
            "site.rewrite limits.head_timeout_s",
            expected,
            found.to_string(),
        ))
    }

    fn check_acme(&self) -> Option<InvalidValue> {
        let acme = self.tls.acme.as_ref()?;
        if !acme.terms_of_service_agreed {
            let expected = "true, which states that you agree to the terms of the authority";
            return Some((
                "tls.acme.terms_of_service_agreed",
                expected,
                "false".to_owned(),
            ));
        }
        if let Some((certificate, _)) = self.tls.files().next() {
            let expected = "no tls.certificate beside it";
            return Some(("tls.acme", expected, format!("{certificate:?}")));
        }
        if acme.directory.scheme() != "https" || !acme.directory.has_host() {
            let expected = "an https URL";
            return Some(("tls.acme.directory", expected, acme.directory.to_string()));
        }
        if !(1..=99).contains(&acme.renew_percent) {
            let found = acme.renew_percent.to_string();
            return Some(("tls.acme.renew_percent", "1 to 99", found));
        }
        let is_mail = |address: &str| address.split('@').count() == 2 && !address.contains(':');
        if let Some(wrong) = acme.contact.iter().find(|address| !is_mail(address)) {
            let expected = "mail addresses, such as admin@site.test";
            return Some(("tls.acme.contact", expected, format!("{wrong:?}")));
        }
        if self.listen.tls().is_empty() {
            let expected = "listen.tls to be set";
            return Some(("tls.acme", expected, "none".to_owned()));
        }
        let names = || self.site.iter().flat_map(|site| &site.names);
        let is_name = |name: &String| matches!(Host::parse(name), Ok(Host::Domain(_)));
        if let Some(address) = names().find(|name| !is_name(name)) {
            let expected = "hostnames in site.names, no addresses";
            return Some(("tls.acme", expected, address.clone()));
        }
        let mut wildcards = self.site.iter().flat_map(SiteConfig::wildcards);
        if acme.challenge != Challenge::Dns01
            && let Some(wildcard) = wildcards.next()
        {
            let expected = "dns-01, which a wildcard in site.names needs";
            return Some(("tls.acme.challenge", expected, format!("{wildcard:?}")));
        }
        match acme.challenge {
            Challenge::TlsAlpn01 => None,
            Challenge::Http01 => {
                let listen = &self.listen;
                let speaks = listen
                    .protocols
                    .iter()
                    .any(|protocol| protocol == "http/1.1");
                (listen.plain.is_empty() || !speaks).then(|| {
                    let expected =
                        "listen.plain and http/1.1 in listen.protocols, which http-01 needs";
                    ("tls.acme.challenge", expected, format!("{listen:?}"))
                })
            }
            Challenge::Dns01 => {
                let expected = "names in zones of [dns], with dns.listen set, which dns-01 needs";
                if self.dns.listen.is_empty() {
                    return Some(("tls.acme.challenge", expected, "none".to_owned()));
                }
                let is_in_own_zone = |name: &str| {
                    let mut zones = self.dns.zone.iter();
                    zones.any(|zone| is_in_zone(&name.to_ascii_lowercase(), &zone.apex))
                };
                let sites = self.site.iter();
                let zones = sites.filter_map(|site| site.rewrite.names_under.as_ref());
                let elsewhere = names().chain(zones).find(|name| !is_in_own_zone(name))?;
                Some(("tls.acme.challenge", expected, elsewhere.clone()))
            }
        }
    }
}

fn invalid((key, expected, found): InvalidValue) -> ConfigError {
    ConfigError::InvalidValue {
        key: key.to_owned(),
        expected,
        found,
    }
}

/// A fault with a number as its value.
fn with_display_value<N: ToString>(
    fault: Option<(&'static str, &'static str, N)>,
) -> Option<InvalidValue> {
    let (key, expected, found) = fault?;
    Some((key, expected, found.to_string()))
}
