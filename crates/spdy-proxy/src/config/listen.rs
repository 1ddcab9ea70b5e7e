//! The part of the configuration for listeners: where clients connect, and which certificates they get.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::{Path, PathBuf};

use http::HeaderValue;
use serde::Deserialize;
use spdy_net::listen::trusted_proxies::{ProxyProtocolOptions, TrustedProxies};
use spdy_server::alt_svc;
use url::Url;

use crate::config::acme::AcmeConfig;

const HTTPS_PORT: u16 = 443;
/// The TLS address if the configuration has no listening address.
const DEFAULT_TLS: [SocketAddr; 1] = [SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 8443))];

/// Where clients connect.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListenConfig {
    /// Addresses for TLS, and for QUIC if `h3` is among the protocols. Default `["127.0.0.1:8443"]`, or none if `plain` is
    /// set.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<SocketAddr>"))]
    pub tls: Option<Vec<SocketAddr>>,
    /// Addresses for connections without TLS.
    pub plain: Vec<SocketAddr>,
    /// Protocols, best first: `spdy/3.1`, `spdy/3`, `spdy/2`, `h3`, `h2`, `http/1.1`.
    pub protocols: Vec<String>,
    /// The port that clients use, if a port redirection is in front (also for UDP, with `h3`). Default the listener's
    /// port.
    pub public_port: Option<u16>,
    /// Addresses that lead to this machine but that no interface has, as behind a balancer. The accelerator never
    /// connects to an origin at these addresses.
    pub public_addresses: Vec<IpAddr>,
    /// Addresses and ranges (`10.0.0.0/8`) of proxies in front, whose `X-Forwarded-For` and `X-Forwarded-Proto` are
    /// trusted. No other host may reach the listeners from these addresses. Limits for each client do not apply to
    /// them. If `tls` is empty, TLS ends at these proxies.
    pub trusted: Vec<String>,
    /// Whether each TCP connection of a trusted proxy begins with a PROXY protocol header, version 1 or 2. The header names
    /// the client that limits apply to. `X-Forwarded-For` and `X-Forwarded-Proto` are then ignored. Default `false`.
    pub proxy_protocol: bool,
    /// Which certificates clients may show on the listeners with TLS, also over QUIC. Origins get them in `Client-Cert`. Default: none
    /// is requested.
    pub client_certificates: Option<ClientCertificatesConfig>,
    /// Whether connections start with the congestion window that earlier ones from the same network have reached. Over TCP this needs
    /// Linux 5.15 and the capabilities CAP_BPF and CAP_NET_ADMIN. Default `true`, but not over TCP if a filter of system calls is active: it
    /// may end programs that load BPF.
    pub remember_windows: Option<bool>,
}

/// The certificates of clients (mutual TLS).
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientCertificatesConfig {
    /// The certificates of the authorities that sign those of clients, PEM. A reload reads it again.
    pub authorities: PathBuf,
    /// Whether the handshake of a client without a certificate fails. With `false`, its requests have no `Client-Cert`. Default `true`.
    #[serde(default = "yes")]
    pub required: bool,
}

fn yes() -> bool {
    true
}

impl Default for ListenConfig {
    fn default() -> Self {
        Self {
            tls: None,
            plain: Vec::new(),
            protocols: ["spdy/3.1", "h3", "h2", "http/1.1"]
                .map(str::to_owned)
                .to_vec(),
            public_port: None,
            public_addresses: Vec::new(),
            trusted: Vec::new(),
            proxy_protocol: false,
            client_certificates: None,
            remember_windows: None,
        }
    }
}

impl ListenConfig {
    /// The addresses for TLS.
    #[must_use]
    pub fn tls(&self) -> &[SocketAddr] {
        match &self.tls {
            Some(tls) => tls,
            None if self.plain.is_empty() => &DEFAULT_TLS,
            None => &[],
        }
    }

    /// The URL of the site `name` as browsers see it. It is an https URL if the accelerator or a proxy in front of it
    /// ends TLS.
    pub(crate) fn site_url(&self, name: &str) -> Result<Url, url::ParseError> {
        let (scheme, address, usual) = match (self.tls().first(), self.trusted.is_empty()) {
            (Some(tls), _) => ("https", Some(tls), HTTPS_PORT),
            (None, false) => ("https", None, HTTPS_PORT), // of those in front
            (None, true) => ("http", self.plain.first(), 80),
        };
        let port = address.map_or(usual, SocketAddr::port);
        Url::parse(&match self.public_port.unwrap_or(port) {
            port if port == usual || port == 0 => format!("{scheme}://{name}/"),
            port => format!("{scheme}://{name}:{port}/"),
        })
    }

    /// The proxies whose statements about clients are trusted.
    ///
    /// # Errors
    ///
    /// An entry of `trusted` that is no address.
    pub(crate) fn trusted_proxies(&self) -> Result<TrustedProxies, &String> {
        let in_front = TrustedProxies::read(&self.trusted)?;
        let tls_port = self.tls().is_empty();
        let public_port = self.public_port.filter(|port| *port != 0);
        let tls_port = tls_port.then(|| public_port.unwrap_or(HTTPS_PORT));
        if !self.proxy_protocol {
            return Ok(in_front);
        }
        let mut options = ProxyProtocolOptions::default();
        options.tls_port = tls_port;
        Ok(in_front.with_proxy_protocol(options))
    }

    /// `Alt-Svc` with the public port of HTTP/3, if it is configured; otherwise the port is that of the listener that the client used.
    pub(crate) fn alt_svc(&self) -> Option<HeaderValue> {
        let public_port = self.public_port.filter(|port| *port != 0);
        public_port.map(alt_svc::h3_at)
    }
}

/// The accelerator's certificates.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlsConfig {
    /// Certificate chain, PEM, leaf first. Without one, a local authority signs a certificate for each site.
    pub certificate: Option<PathBuf>,
    /// Private key of `certificate`, PEM.
    pub key: Option<PathBuf>,
    /// A further certificate, for clients that request a name in it. A client that requests another name gets
    /// `tls.certificate`, else the first of these.
    pub certificates: Vec<CertificateFiles>,
    /// A file for the local authority's certificate, for clients to trust it. Its key is stored beside it (`ca.pem`:
    /// `ca.key.pem`), so that the authority stays the same. Without a folder for it, each start makes another authority.
    /// Default `spdy/ca.pem` in the user's data folder.
    pub write_authority: Option<PathBuf>,
    /// Certificates for the names of all sites from an ACME authority (RFC 8555). Until the first has arrived, the local
    /// authority signs one. Optional.
    pub acme: Option<AcmeConfig>,
}

/// A certificate and its key, in files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CertificateFiles {
    /// Certificate chain, PEM, leaf first.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

impl TlsConfig {
    /// The certificates from files with their keys, in the order of the configuration.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &Path)> {
        let first = self.certificate.as_deref().zip(self.key.as_deref());
        let more = self.certificates.iter();
        let more = more.map(|files| (files.certificate.as_path(), files.key.as_path()));
        first.into_iter().chain(more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_terminated_upstream_uses_the_public_port() {
        let trusted = ["10.0.0.0/8".to_owned()];
        let plain = vec![SocketAddr::from(([127, 0, 0, 1], 8080))];
        for (tls, public_port, expected) in [
            (vec![], None, Some(443)),
            (vec![], Some(0), Some(443)),
            (vec![], Some(8443), Some(8443)),
            (plain.clone(), None, None),
        ] {
            let listen = ListenConfig {
                tls: Some(tls),
                plain: plain.clone(),
                public_port,
                trusted: trusted.to_vec(),
                proxy_protocol: true,
                ..ListenConfig::default()
            };
            let mut options = ProxyProtocolOptions::default();
            options.tls_port = expected;
            let in_front = TrustedProxies::read(&trusted);
            let expected = in_front.map(|in_front| in_front.with_proxy_protocol(options));
            assert_eq!(listen.trusted_proxies(), expected, "{public_port:?}");
        }
    }

    #[test]
    fn tls_listens_by_default_only_without_plain() {
        let localhost = |port| SocketAddr::from(([127, 0, 0, 1], port));
        for (tls, plain, expected) in [
            (None, vec![], vec![localhost(8443)]),
            (None, vec![localhost(80)], vec![]),
            (
                Some(vec![localhost(443)]),
                vec![localhost(80)],
                vec![localhost(443)],
            ),
            (Some(vec![]), vec![localhost(80)], vec![]),
        ] {
            let listen = ListenConfig {
                tls,
                plain,
                ..ListenConfig::default()
            };
            assert_eq!(listen.tls(), expected, "{listen:?}");
        }
    }

    #[test]
    fn site_url_is_the_one_clients_use() {
        let all = |address: &str| vec![address.parse().expect("an address")];
        for (tls, trusted, public_port, expected) in [
            (true, false, None, "https://a.test:8443/"),
            (true, true, Some(443), "https://a.test/"),
            (false, false, None, "http://a.test:8080/"),
            (false, false, Some(80), "http://a.test/"),
            // TLS ends before.
            (false, true, None, "https://a.test/"),
            (false, true, Some(8443), "https://a.test:8443/"),
        ] {
            let listen = ListenConfig {
                tls: tls.then(|| all("0.0.0.0:8443")),
                plain: all("0.0.0.0:8080"),
                trusted: Vec::from_iter(trusted.then(|| "10.0.0.0/8".to_owned())),
                public_port,
                ..ListenConfig::default()
            };
            let url = listen.site_url("a.test").expect("a URL");
            assert_eq!(url.as_str(), expected, "{tls}, {trusted}, {public_port:?}");
        }
    }
}
