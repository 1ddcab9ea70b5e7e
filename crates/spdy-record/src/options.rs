//! How a page is to be recorded.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use spdy_page::limits::Limits;

/// How a page is to be recorded.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// The browser; without one, Chromium or Chrome is looked for in PATH.
    pub browser: Option<PathBuf>,
    /// Arguments that it is given after ours.
    pub browser_arguments: Vec<String>,
    /// The longest that a page may take until it is quiet; what came until then is kept.
    pub timeout: Duration,
    /// How long nothing may move after the load event until the page counts as quiet.
    pub settle: Duration,
    /// Addresses that the browser shall believe names to have.
    pub resolve: Vec<Resolve>,
    /// Take any certificate.
    pub insecure: bool,
    /// Give scripts a clock and chance that are the same each time.
    pub pin: bool,
    /// Origins, `HOST:PORT`, that are asked over HTTP/3 and nothing else, under certificates of any authority that the browser was
    /// told to believe in. With none of them QUIC is off.
    pub force_quic: Vec<String>,
    /// Take a picture of the window when the page is quiet.
    pub screenshot: bool,
    /// Keep the secrets of TLS and QUIC.
    pub key_log: bool,
    /// Bounds of the log, and of what is made of it.
    pub limits: Limits,
    /// Bytes of one message of the browser.
    pub message_bytes: usize,
    /// Bytes of the secrets; what is past them is not kept.
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
            key_log: false,
            limits: Limits::default(),
            message_bytes: 64 << 20,
            key_log_bytes: 16 << 20,
        }
    }
}

/// The address that a host (or a pattern with `*`) has at a port, written `HOST:PORT:ADDRESS` as curl writes it.
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

/// What is no [`Resolve`].
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
        // The browser's rules are a list with commas, and words between spaces.
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
