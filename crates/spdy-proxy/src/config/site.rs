//! The part of the configuration that is about one site: its names, its origin, and what is moved under it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use http::HeaderValue;
use http::header::InvalidHeaderValue;
use serde::Deserialize;
use spdy_rewrite::rules::site_names;
use url::{Host, Url};

use crate::config::error::InvalidValue;
use crate::config::servers::{HealthConfig, ServerConfig, is_origin_url, redact_origin};
use crate::config::site_path::SitePathConfig;

/// Statuses of the accelerator's own errors.
const ERROR_STATUSES: [u16; 10] = [400, 401, 403, 408, 429, 501, 502, 503, 504, 508];
/// Longest host name, without the final dot (RFC 1035 §3.1).
const MAX_NAME_BYTES: usize = 253;
/// Longest label of a host name (RFC 1035 §2.3.4).
const MAX_LABEL_BYTES: usize = 63;

/// One site.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteConfig {
    /// Names of the site. The first is complete; capabilities are bound to it. A wildcard (`*.example.com`) stands for one label; a
    /// complete name of any site has precedence over it. Wildcards are not possible with `keep_host`.
    pub names: Vec<String>,
    /// URL of its origin: scheme, host and optional port.
    pub origin: Url,
    /// Address of the origin, if its name leads elsewhere, such as to this accelerator. Default looked up.
    pub address: Option<IpAddr>,
    /// The servers of its origin, if there are several, or if the origin's name leads elsewhere. They get the name of `origin` as
    /// `Host`, and their certificates must be for it.
    #[serde(default)]
    pub servers: Vec<ServerConfig>,
    /// How the health of `servers` is checked. Optional: without it, a server that fails requests gets none for `upstream.rest_s`.
    pub health: Option<HealthConfig>,
    /// Whether to send the client's `Host` to the origin. The origin is still reached at the address of its own name,
    /// and must present a certificate for the client's host name. Default `false`.
    #[serde(default)]
    pub keep_host: bool,
    /// Whether WebSockets to its origin are allowed. Default `true`.
    #[serde(default = "yes")]
    pub websocket: bool,
    /// Whether to compress private responses that the origin did not compress, if the client accepts it. The compressed
    /// length can reveal a secret beside text that an attacker chooses (BREACH). Use it only if responses hold no
    /// lasting secrets. Default `false`.
    #[serde(default)]
    pub compress_private: bool,
    /// The site's share of `cache.memory_mib`. Range: at least 1. Default all.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub cache_mib: Option<usize>,
    /// The site's share of `cache.disk_mib`. Range: at least 1. Default all.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub disk_mib: Option<usize>,
    /// Whether requests without TLS are redirected to `https` with 308. Needs TLS in `listen`, or a proxy in `listen.trusted`.
    /// Default `false`.
    #[serde(default)]
    pub redirect_to_https: bool,
    /// `Strict-Transport-Security` (RFC 6797) of responses over TLS: browsers then use only TLS. Optional.
    pub hsts: Option<HstsConfig>,
    /// Files with the pages that clients get in place of the accelerator's own error messages, by status: `{ 503 = "busy.html" }`.
    /// Errors of the origin pass unchanged. Statuses: 400, 401, 403, 408, 429, 501 to 504, 508.
    #[serde(default)]
    pub error_pages: BTreeMap<String, PathBuf>,
    /// Rules for some paths: access, headers and storage.
    #[serde(default)]
    pub paths: Vec<SitePathConfig>,
    /// Which third-party hosts are proxied under the site's name.
    #[serde(default)]
    pub rewrite: spdy_rewrite::rules::config::Config,
    /// The file of `include` that has it; `None` for the main file. It is not in the file.
    #[serde(skip)]
    pub file: Option<PathBuf>,
}

/// `Strict-Transport-Security` of responses over TLS (RFC 6797).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HstsConfig {
    /// For how long a browser uses only TLS. 0 ends it.
    pub max_age_s: u32,
    /// Whether the names below the site's names are included. Default `false`.
    #[serde(default)]
    pub include_subdomains: bool,
    /// Whether browsers may have the site on the list that they ship with. Removal takes months. Default `false`.
    #[serde(default)]
    pub preload: bool,
}

impl HstsConfig {
    /// The value of the header.
    pub(crate) fn value(self) -> Result<HeaderValue, InvalidHeaderValue> {
        let subdomains = if self.include_subdomains {
            "; includeSubDomains"
        } else {
            ""
        };
        let preload = if self.preload { "; preload" } else { "" };
        let max_age_s = self.max_age_s;
        HeaderValue::try_from(format!("max-age={max_age_s}{subdomains}{preload}"))
    }

    /// The list of browsers accepts a site only with both (hstspreload.org).
    fn fault(self) -> Option<InvalidValue> {
        const YEAR_S: u32 = 31_536_000;
        let is_listable = self.include_subdomains && self.max_age_s >= YEAR_S;
        let expected = "include_subdomains, and max_age_s of at least 31536000";
        (self.preload && !is_listable).then(|| ("site.hsts.preload", expected, format!("{self:?}")))
    }
}

fn yes() -> bool {
    true
}

impl SiteConfig {
    /// A fault in its names, with those of other sites in `used_names`, to which it adds its own: the key, what is valid, and the value.
    pub(crate) fn check_names<'a>(
        &'a self,
        used_names: &mut BTreeSet<&'a str>,
    ) -> Option<InvalidValue> {
        if self.names.is_empty() {
            return Some(("site.names", "at least one", "0".to_owned()));
        }
        for (index, name) in self.names.iter().enumerate() {
            if index == 0 && site_names::wildcard_domain(name).is_some() {
                let expected = "a complete hostname before any wildcard";
                return Some(("site.names", expected, format!("{name:?}")));
            }
            if !is_name(name) && !is_wildcard(name) {
                let expected = "a complete hostname in lower case (letters, digits, '-' and '_' between dots), an address, or '*.' before a domain of one owner";
                return Some(("site.names", expected, format!("{name:?}")));
            }
            if !used_names.insert(name) {
                return Some((
                    "site.names",
                    "each name in one site only",
                    format!("{name:?}"),
                ));
            }
        }
        // An origin that gets any name would be looked up and contacted under any name.
        let is_kept = self.keep_host && self.wildcards().next().is_some();
        is_kept.then(|| {
            let expected = "false, because site.names has a wildcard";
            ("site.keep_host", expected, "true".to_owned())
        })
    }

    /// Its names that are wildcards.
    pub(crate) fn wildcards(&self) -> impl Iterator<Item = &String> {
        let names = self.names.iter();
        names.filter(|name| site_names::wildcard_domain(name).is_some())
    }

    /// Whether it has `host`, in lower case, under one of its names.
    #[must_use]
    pub fn has_name(&self, host: &str) -> bool {
        self.names
            .iter()
            .any(|name| site_names::matches(name, host))
    }

    /// A fault in its rules for paths or in `hsts`: the key, what is valid, and the value.
    pub(crate) fn check_paths(&self) -> Option<InvalidValue> {
        let mut used = BTreeSet::new();
        let mut paths = self.paths.iter();
        let fault = paths.find_map(|path| path.fault(&mut used));
        fault.or_else(|| self.hsts.and_then(HstsConfig::fault))
    }

    /// A fault in its error pages: the key, what is valid, and the value.
    pub(crate) fn check_error_pages(&self) -> Option<InvalidValue> {
        let is_own = |status: &str| {
            let status = status.parse::<u16>();
            status.is_ok_and(|status| ERROR_STATUSES.contains(&status))
        };
        let wrong = self.error_pages.keys().find(|status| !is_own(status))?;
        let expected = "400, 401, 403, 408, 429, 501 to 504 or 508";
        Some(("site.error_pages", expected, wrong.clone()))
    }

    /// A fault in its origin: the key, what is valid, and the value.
    pub(crate) fn check_origin(&self) -> Option<InvalidValue> {
        if is_origin_url(&self.origin) {
            return None;
        }
        let expected = "an http or https URL of a host, without a path or a user";
        let found = format!("{:?}", redact_origin(&self.origin).as_str());
        Some(("site.origin", expected, found))
    }
}

/// Whether `name` is a host name that a client can request, in normal form. A wildcard parses without an error, but would match no request.
fn is_name(name: &str) -> bool {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_label =
        |label: &str| (1..=MAX_LABEL_BYTES).contains(&label.len()) && label.chars().all(is_of_name);
    let is_plain = |host: &Host| match host {
        // As in `https://a.test./`.
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name.len() <= MAX_NAME_BYTES && name.split('.').all(is_label)
        }
        Host::Ipv4(_) | Host::Ipv6(_) => true,
    };
    Host::parse(name).is_ok_and(|host| is_plain(&host) && host.to_string() == *name)
}

/// Whether `name` is a wildcard below a domain of one owner, in normal form.
fn is_wildcard(name: &str) -> bool {
    site_names::wildcard_domain(name).is_some_and(|domain| {
        is_name(domain) && site_names::check_wildcard(name).is_ok() && !domain.ends_with('.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn fault(names: &str, origin: &str) -> Option<String> {
        let text = format!("[[site]]\nnames = [{names}]\norigin = '{origin}'\n");
        Config::parse(&text).err().map(|error| error.to_string())
    }

    #[test]
    fn site_names_are_complete_or_wildcards_of_one_owner() {
        let names = |name: &str| format!("'first.test', '{name}'");
        for name in [
            "a.test",
            "localhost",
            "a.test.",
            "x-1.a_b.test",
            "192.0.2.1",
            "[2001:db8::1]",
            "*.a.test",
            "*.b.a.test",
        ] {
            assert_eq!(fault(&names(name), "https://origin.test"), None, "{name}");
        }
        let long = format!("{}.test", "a".repeat(MAX_LABEL_BYTES + 1));
        let (many, parts) = ("a.".repeat(MAX_NAME_BYTES / 2), "a!b.test");
        let many = format!("{many}test");
        for name in [
            "*",
            "a.*.test",
            "A.test",
            "a.test..",
            "a..test",
            "",
            parts,
            &long,
            &many,
            "*.test",
            "*.co.uk",
            "*.A.test",
            "*.*.a.test",
            "*.192.0.2.1",
            "*a.test",
            "*.a.test.",
            "*.",
        ] {
            let message = fault(&names(name), "https://origin.test").expect("the name is rejected");
            assert!(message.contains("a complete hostname"), "{name}: {message}");
            assert!(message.ends_with(&format!("found {name:?}")), "{message}");
        }
    }

    #[test]
    fn a_wildcard_needs_a_complete_name_before_it_and_no_keep_host() {
        let message = fault("'*.a.test', 'a.test'", "https://o.test").expect("an error");
        let expected = "site.names: expected a complete hostname before any wildcard";
        assert!(message.starts_with(expected), "{message}");
        let text = "[[site]]\nnames = ['a.test', '*.a.test']\norigin = 'https://o.test'\n";
        let message = Config::parse(&format!("{text}keep_host = true\n")).expect_err("an error");
        let expected = "site.keep_host: expected false, because site.names has a wildcard";
        assert!(message.to_string().starts_with(expected), "{message}");
        let message = Config::parse(&format!("{text}{}", text.replace("'a.test'", "'b.test'")));
        let message = message.expect_err("an error").to_string();
        assert!(
            message.contains("one site only, found \"*.a.test\""),
            "{message}"
        );
    }

    /// Errors go to logs, which more people read than the configuration.
    #[test]
    fn origin_url_credentials_are_rejected_and_redacted() {
        for origin in [
            "https://user:secret@origin.test",
            "https://:secret@origin.test",
            "https://secret@origin.test",
            "ftp://user:secret@origin.test/",
        ] {
            let message = fault("'a.test'", origin).expect("the origin is rejected");
            assert!(message.contains("without a path or a user"), "{message}");
            assert!(message.contains("://origin.test"), "{message}");
            assert!(!message.contains("secret"), "{message}");
        }
        assert_eq!(fault("'a.test'", "https://origin.test:8443"), None);
    }
}
