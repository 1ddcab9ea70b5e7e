//! The part of the configuration that is about certificates by ACME.

use std::path::PathBuf;

use serde::Deserialize;
use url::Url;

/// Certificates for the names of all sites, from an ACME authority (RFC 8555).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcmeConfig {
    /// URL of the authority's directory. Let's Encrypt has another for tests:
    /// `https://acme-staging-v02.api.letsencrypt.org/directory`.
    #[serde(default = "AcmeConfig::default_directory")]
    pub directory: Url,
    /// A folder for the account, keys and certificates. Each machine needs its own.
    pub folder: PathBuf,
    /// Must be `true`: you have read the authority's terms of service and agree to them. Default `false`.
    #[serde(default)]
    pub terms_of_service_agreed: bool,
    /// How to prove control of the names. Default `tls-alpn-01`.
    #[serde(default)]
    pub challenge: Challenge,
    /// Mail addresses for the authority, sent when the account is created.
    #[serde(default)]
    pub contact: Vec<String>,
    /// The certificate profile, if the authority has several. Default the authority's choice.
    pub profile: Option<String>,
    /// PEM of the authority that signs the ACME server's own certificate. Default the public authorities.
    pub authority: Option<PathBuf>,
    /// A certificate is renewed when this percentage of its validity is left, or earlier if the authority requests it (RFC
    /// 9773). Range: 1 to 99. Default 33.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 99)))]
    #[serde(default = "AcmeConfig::default_renew_percent")]
    pub renew_percent: u8,
    /// The account at the authority, if it requires an external account binding (RFC 8555 §7.3.4). Optional.
    pub external_account: Option<ExternalAccount>,
}

/// How control of a name is proven.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Challenge {
    /// The authority connects to port 443, which must lead to an address of `listen.tls` (RFC 8737).
    #[default]
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01,
    /// The authority connects to port 80, which must lead to an address of `listen.plain` (RFC 8555 §8.3).
    #[serde(rename = "http-01")]
    Http01,
    /// The authority looks up a TXT record in a zone of `[dns]` (RFC 8555 §8.4).
    #[serde(rename = "dns-01")]
    Dns01,
}

/// An account that the authority issued by other means (RFC 8555 §7.3.4).
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExternalAccount {
    /// The key identifier from the authority.
    pub id: String,
    /// A file with the key of the account, in base64url.
    pub key_file: PathBuf,
}

impl AcmeConfig {
    fn default_directory() -> Url {
        let url = "https://acme-v02.api.letsencrypt.org/directory";
        Url::parse(url).expect("the constant is a valid URL")
    }

    fn default_renew_percent() -> u8 {
        33
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const SITE: &str = "[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n";
    const GOOD: &str = "folder = '/acme'\nterms_of_service_agreed = true\n";

    #[test]
    fn acme_has_defaults_but_terms_must_be_agreed() {
        let read = |more: &str| Config::parse(&format!("[tls.acme]\n{more}{SITE}"));
        let acme = read(GOOD).expect("a valid value").tls.acme;
        let acme = acme.expect("the body has arrived");
        assert_eq!(acme.challenge, Challenge::TlsAlpn01);
        assert_eq!(
            acme.directory.host_str(),
            Some("acme-v02.api.letsencrypt.org")
        );
        let error = read("folder = '/acme'\n").expect_err("the terms are not agreed to");
        assert!(error.to_string().contains("terms"), "{error}");
    }

    #[test]
    fn unusable_acme_config_is_rejected_with_key() {
        for (text, expected) in [
            (
                format!("[tls.acme]\n{GOOD}directory = 'http://acme.test/'\n{SITE}"),
                "tls.acme.directory",
            ),
            (
                format!("[tls.acme]\n{GOOD}renew_percent = 100\n{SITE}"),
                "tls.acme.renew_percent",
            ),
            (
                format!("[tls.acme]\n{GOOD}contact = ['mailto:a@b.test']\n{SITE}"),
                "tls.acme.contact",
            ),
            (
                format!("[tls.acme]\n{GOOD}challenge = 'http-01'\n{SITE}"),
                "listen.plain",
            ),
            (
                format!(
                    "[listen]\ntls = ['127.0.0.1:2']\nplain = ['127.0.0.1:1']\nprotocols = ['h2']\n[tls.acme]\n{GOOD}challenge = 'http-01'\n{SITE}"
                ),
                "http/1.1 in listen.protocols",
            ),
            (
                format!("[tls.acme]\n{GOOD}challenge = 'dns-01'\n{SITE}"),
                "zones of [dns]",
            ),
            (
                format!("[tls.acme]\n{GOOD}challenge = 'tls-sni-01'\n{SITE}"),
                "unknown variant",
            ),
            (
                format!("[tls]\ncertificate = 'c'\nkey = 'k'\n[tls.acme]\n{GOOD}{SITE}"),
                "no tls.certificate",
            ),
            (
                format!(
                    "[tls]\ncertificates = [{{ certificate = 'c', key = 'k' }}]\n[tls.acme]\n{GOOD}{SITE}"
                ),
                "no tls.certificate",
            ),
            (
                format!("[listen]\ntls = []\nplain = ['127.0.0.1:1']\n[tls.acme]\n{GOOD}{SITE}"),
                "listen.tls",
            ),
            (
                format!("[tls.acme]\n{GOOD}{}", SITE.replace("a.test", "192.0.2.1")),
                "no addresses",
            ),
            (
                format!(
                    "[tls.acme]\n{GOOD}{}",
                    SITE.replace("'a.test'", "'a.test', '*.a.test'")
                ),
                "expected dns-01, which a wildcard in site.names needs, found \"*.a.test\"",
            ),
        ] {
            let error = Config::parse(&text).expect_err("invalid configuration");
            assert!(error.to_string().contains(expected), "{text}\n{error}");
        }
    }

    #[test]
    fn dns_01_requires_own_zones() {
        let zone = "[[dns.zone]]\napex = 'a.test'\nname_servers = ['ns.c.test']\n";
        let dns = |site: &str| {
            let listen = "[dns]\nlisten = ['127.0.0.1:0']\n";
            let acme = format!("[tls.acme]\n{GOOD}challenge = 'dns-01'\n");
            Config::parse(&format!("{acme}{listen}{zone}{site}"))
        };
        dns(SITE).expect("the apex");
        dns(&SITE.replace("a.test", "www.a.test")).expect("the name is below the apex");
        dns(&SITE.replace("a.test", "ba.test")).expect_err("another's");
        let wildcard = |name: &str| SITE.replace("'a.test'", &format!("'a.test', '{name}'"));
        dns(&wildcard("*.a.test")).expect("the domain of the wildcard is the apex");
        dns(&wildcard("*.ba.test")).expect_err("another's");
    }

    /// Names of zones are compared without regard to case (RFC 4343 §3).
    #[test]
    fn dns_01_zone_match_ignores_case() {
        let zone = "[[dns.zone]]\napex = 'A.Test.'\nname_servers = ['ns.c.test']\n";
        let listen = "[dns]\nlisten = ['127.0.0.1:0']\n";
        let acme = format!("[tls.acme]\n{GOOD}challenge = 'dns-01'\n");
        Config::parse(&format!("{acme}{listen}{zone}{SITE}")).expect("the apex");
    }
}
