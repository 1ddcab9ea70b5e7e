//! Checks whether a parsed configuration can work: each part by itself, and together with the others.

use std::collections::BTreeSet;

use crate::config::telemetry::TelemetryConfig;
use crate::config::{AdminConfig, Config, ConfigError};

/// A key with an invalid value: the key, what is valid, and the value.
type InvalidValue = (&'static str, &'static str, String);

impl Config {
    /// Checks all of it, and returns the first fault.
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
            .or_else(|| self.check_shared_cache())
            .or_else(|| self.check_sites())
            .or_else(|| self.telemetry.as_ref().and_then(TelemetryConfig::fault))
            .or_else(|| self.tls.acme.as_ref().and_then(|acme| acme.fault(self)));
        match fault {
            None => Ok(()),
            Some((what, want, got)) => {
                let what = what.to_owned();
                Err(ConfigError::InvalidValue { what, want, got })
            }
        }
    }

    fn check_listen(&self) -> Option<InvalidValue> {
        let (listen, dns, tls) = (&self.listen, &self.dns, &self.tls);
        if listen.tls().is_empty() && listen.plain.is_empty() {
            let want = "an address under tls or plain";
            return Some(("listen", want, format!("{:?}", listen.tls())));
        }
        if let Err(wrong) = listen.trusted_proxies() {
            let want = "addresses and ranges, as 10.0.0.0/8";
            return Some(("listen.trusted", want, format!("{wrong:?}")));
        }
        if listen.proxy_protocol && listen.trusted.is_empty() {
            let want = "listen.trusted beside it: who else speaks it could name any client";
            return Some(("listen.proxy_protocol", want, "true".to_owned()));
        }
        if let Some(wrong) = self.admin.as_ref().and_then(AdminConfig::invalid_host) {
            let want = "host names without a port, as metrics.internal";
            return Some(("admin.names", want, format!("{wrong:?}")));
        }
        if !dns.listen.is_empty() && dns.zone.is_empty() {
            let want = "at least one to answer for";
            return Some(("dns.zone", want, format!("{:?}", dns.zone)));
        }
        if tls.certificate.is_some() != tls.key.is_some() {
            let want = "both certificate and key, or neither";
            return Some(("tls", want, format!("{tls:?}")));
        }
        let is_for_none = self.site.is_empty();
        is_for_none.then(|| ("site", "at least one", "0".to_owned()))
    }

    /// Entries that are found again by the secret require one that outlives the program.
    fn check_secret_file(&self) -> Option<InvalidValue> {
        if self.secret_file.is_some() {
            return None;
        }
        if let Some(disk) = &self.cache.disk {
            // The secret is part of the rules' tag: with another secret, earlier entries are not found.
            let want = "a secret_file beside it, so that what is kept is found again";
            return Some(("cache.disk", want, format!("{disk:?}")));
        }
        let mut zones = self.site.iter().flat_map(|site| &site.rewrite.names_under);
        let zone = zones.next()?;
        // Names are made with it, and stand in certificates and in DNS.
        let want = "a secret_file beside it, so that names stay what they are";
        Some(("site.rewrite.names_under", want, format!("{zone:?}")))
    }

    fn check_previous_secret(&self) -> Option<InvalidValue> {
        let former = self.former_secret_file.as_ref()?;
        let want = "a secret_file beside it, which took its place";
        let is_alone = self.secret_file.is_none();
        is_alone.then(|| ("former_secret_file", want, format!("{former:?}")))
    }

    fn check_shared_cache(&self) -> Option<InvalidValue> {
        let shared = self.cache.shared.as_ref()?;
        if let Some((what, want, got)) = shared.fault() {
            return Some((what, want, format!("{got:?}")));
        }
        let want = "a secret_file beside it, the same on all machines";
        let is_without = self.secret_file.is_none();
        is_without.then(|| ("cache.shared", want, format!("{:?}", shared.prefix)))
    }

    fn check_sites(&self) -> Option<InvalidValue> {
        let mut names = BTreeSet::new();
        self.site.iter().find_map(|site| {
            let fault = site.check_names(&mut names);
            fault.or_else(|| site.fault(self))
        })
    }
}

/// A fault with a number as its value.
fn with_display_value<N: ToString>(
    fault: Option<(&'static str, &'static str, N)>,
) -> Option<InvalidValue> {
    let (what, want, got) = fault?;
    Some((what, want, got.to_string()))
}
