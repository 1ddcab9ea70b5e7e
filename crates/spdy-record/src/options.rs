//! Options of a recording.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use spdy_page::limits::Limits;

/// Options of a recording.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The browser; `None` searches PATH for Chromium or Chrome.
    pub browser: Option<PathBuf>,
    /// Additional arguments, after our own.
    pub browser_arguments: Vec<String>,
    /// Timeout until the page is quiet; data that arrived until then is recorded.
    pub timeout: Duration,
    /// Time without activity after the load event after which the page counts as quiet.
    pub settle: Duration,
    /// Addresses of names for the browser.
    pub resolve: Vec<Resolve>,
    /// Accept any certificate.
    pub insecure: bool,
    /// Give scripts a deterministic clock and deterministic randomness.
    pub pin: bool,
    /// Origins, `HOST:PORT`, that are requested only over HTTP/3, with certificates of any trusted authority. If it is empty, QUIC is
    /// disabled.
    pub force_quic: Vec<String>,
    /// Take a screenshot when the page is quiet.
    pub screenshot: bool,
    /// Take a screenshot whenever the window has changed during the load.
    pub screenshots: bool,
    /// Record the secrets of TLS and QUIC.
    pub key_log: bool,
    /// Limits on the log, and on its import.
    pub limits: Limits,
    /// Maximum bytes of one message of the browser.
    pub message_bytes: usize,
    /// Maximum bytes of the secrets; later ones are dropped.
    pub key_log_bytes: usize,
}

impl Default for RecordOptions {
    fn default() -> Self {
        Self {
            browser: None,
            browser_arguments: Vec::new(),
            timeout: Duration::from_secs(60),
            settle: Duration::from_secs(1),
            resolve: Vec::new(),
            insecure: false,
            pin: false,
            force_quic: Vec::new(),
            screenshot: false,
            screenshots: false,
            key_log: false,
            limits: Limits::default(),
            message_bytes: 64 << 20,
            key_log_bytes: 16 << 20,
        }
    }
}

/// The address of a host (or a pattern with `*`) at a port, written `HOST:PORT:ADDRESS` as in curl.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resolve {
    host: String,
    port: u16,
    address: IpAddr,
}

impl Resolve {
    /// Host or pattern, port, and address.
    #[must_use]
    pub fn parts(&self) -> (&str, u16, IpAddr) {
        (&self.host, self.port, self.address)
    }
}

/// A text that is no [`Resolve`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("invalid address mapping {0:?}: expected HOST:PORT:ADDRESS")]
pub struct ResolveParseError(String);

impl FromStr for Resolve {
    type Err = ResolveParseError;

    fn from_str(text: &str) -> Result<Self, ResolveParseError> {
        let no = || ResolveParseError(text.to_owned());
        let (host, rest) = text.split_once(':').ok_or_else(no)?;
        let (port, address) = rest.split_once(':').ok_or_else(no)?;
        let bare = address.trim_start_matches('[').trim_end_matches(']');
        // The browser's rules are separated by commas, and their words by spaces.
        let is_pattern = |byte: u8| byte.is_ascii_alphanumeric() || b"-._*".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_pattern) {
            return Err(no());
        }
        Ok(Self {
            host: host.to_owned(),
            port: port.parse().map_err(|_| no())?,
            address: bare.parse().map_err(|_| no())?,
        })
    }
}

/// As a rule of Chromium's `--host-resolver-rules`.
impl fmt::Display for Resolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            host,
            port,
            address,
        } = self;
        match address {
            IpAddr::V4(address) => write!(f, "MAP {host}:{port} {address}"),
            IpAddr::V6(address) => write!(f, "MAP {host}:{port} [{address}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_valid_resolve_options_become_resolver_rules() {
        let rule = |text: &str| text.parse::<Resolve>().map(|resolve| resolve.to_string());
        assert_eq!(
            rule("a.test:80:127.0.0.2").unwrap(),
            "MAP a.test:80 127.0.0.2"
        );
        assert_eq!(rule("*.test:443:[::1]").unwrap(), "MAP *.test:443 [::1]");
        assert_eq!(rule("*.test:443:::1").unwrap(), "MAP *.test:443 [::1]");
        for wrong in [
            "a.test",
            "a.test:80",
            "a:80:b.test",
            ":80:127.0.0.1",
            "a b:80:127.0.0.1",
            "a,EXCLUDE b:1:127.0.0.1",
            "a:x:127.0.0.1",
        ] {
            assert_eq!(
                rule(wrong),
                Err(ResolveParseError(wrong.to_owned())),
                "{wrong}"
            );
        }
    }
}
