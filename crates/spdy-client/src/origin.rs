//! An origin: scheme, host and port (RFC 6454 §4). Connections are shared within an origin, and between origins only with
//! [`ip_pooling`](crate::config::Config::ip_pooling). Requests without credentials have their own connections.

use std::fmt;

use http::{Request, Uri};

use crate::error::Error;

/// In the extensions of a request: it has no credentials, such as a browser's request for a font of another origin (Fetch
/// Standard, credentials mode `omit`).
///
/// It shares neither a connection nor a TLS session with requests that have credentials, so that a server cannot link the two.
/// Names are resolved for both together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct WithoutCredentials;

/// Scheme, host and port. The host is in lower case, an IPv6 address without brackets.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Origin {
    /// True for `https`, false for `http`.
    pub secure: bool,
    /// Name or address.
    pub host: String,
    /// Port, or the default port of the scheme.
    pub port: u16,
    /// True for the connections of requests [without credentials](WithoutCredentials).
    pub without_credentials: bool,
}

impl Origin {
    /// The origin of an absolute URI.
    ///
    /// # Errors
    ///
    /// The URI has no host, or a scheme other than `http` and `https`.
    pub fn of(uri: &Uri) -> Result<Self, Error> {
        let secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(Error::Uri(uri.to_string())),
        };
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| Error::Uri(uri.to_string()))?;
        let host = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_ascii_lowercase();
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        Ok(Self {
            secure,
            host,
            port,
            without_credentials: false,
        })
    }

    /// The origin of a request, whose URI must be absolute.
    ///
    /// # Errors
    ///
    /// Those of [`of`](Self::of).
    pub fn of_request<T>(request: &Request<T>) -> Result<Self, Error> {
        let origin = Self::of(request.uri())?;
        let marker = request.extensions().get::<WithoutCredentials>();
        Ok(Self {
            without_credentials: marker.is_some(),
            ..origin
        })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        match self.host.contains(':') {
            true => write!(f, "{scheme}://[{}]:{}", self.host, self.port),
            false => write!(f, "{scheme}://{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_scheme_host_and_port_in_one_spelling() {
        for (uri, expected) in [
            ("http://Example.org/a", "http://example.org:80"),
            ("https://example.org", "https://example.org:443"),
            (
                "https://u:p@example.org:8443/?q",
                "https://example.org:8443",
            ),
            ("http://[::1]:8080/", "http://[::1]:8080"),
        ] {
            assert_eq!(
                Origin::of(&uri.parse().unwrap()).unwrap().to_string(),
                expected
            );
        }
        for uri in ["/path", "ftp://example.org/", "example.org:80"] {
            assert!(Origin::of(&uri.parse().unwrap()).is_err(), "{uri}");
        }
    }
}
