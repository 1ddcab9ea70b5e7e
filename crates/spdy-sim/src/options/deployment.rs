//! Deployment: the hosts that speak the protocol under test.
//!
//! New protocols were deployed host by host: a page's own servers spoke SPDY when those of its advertisements did not. The site of a
//! host follows from the public suffix list (<https://publicsuffix.org>) in the crate `psl2`: `www.bbc.co.uk` and `news.bbc.co.uk` are
//! one site, two names under `cloudfront.net` are two.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// The hosts that speak the protocol under test. The others speak HTTP/1.1, in TLS if the protocol under test uses TLS.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Deployment {
    /// Every host.
    #[default]
    All,
    /// Hosts of the site of the page's document.
    FirstParty,
}

impl Deployment {
    /// All values.
    pub const ALL: [Self; 2] = [Self::All, Self::FirstParty];

    /// The name on the command line and in experiments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::FirstParty => "first-party",
        }
    }

    /// True if `host` of a page on `own` speaks it.
    #[must_use]
    pub fn reaches(self, own: &str, host: &str) -> bool {
        match self {
            Self::All => true,
            Self::FirstParty => is_same_site(own, host),
        }
    }
}

impl fmt::Display for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no [`Deployment`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown deployment {0:?}: expected all or first-party")]
pub struct UnknownDeployment(pub String);

impl FromStr for Deployment {
    type Err = UnknownDeployment;

    fn from_str(name: &str) -> Result<Self, UnknownDeployment> {
        let found = Self::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| UnknownDeployment(name.to_owned()))
    }
}

/// The site of `host`, which is in lower case and ASCII as in a URL: its registrable domain, or the host itself if it has none, without the
/// brackets of an IPv6 address.
#[must_use]
pub fn site_of(host: &str) -> &str {
    // An IPv6 address has brackets in URLs, and none elsewhere.
    let host = host.trim_matches(['[', ']']);
    match host.parse::<IpAddr>() {
        // The list would treat an address as a name.
        Ok(_) => host,
        Err(_) => psl2::lookup(host)
            .and_then(|name| name.registrable_domain())
            .unwrap_or(host),
    }
}

/// True if two hosts are equal or have one registrable domain.
#[must_use]
pub fn is_same_site(one: &str, other: &str) -> bool {
    site_of(one) == site_of(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deployment_name_parses() {
        for deployment in Deployment::ALL {
            assert_eq!(deployment.name().parse(), Ok(deployment));
        }
        let unknown = "some".parse::<Deployment>().unwrap_err().to_string();
        for deployment in Deployment::ALL {
            assert!(unknown.contains(deployment.name()), "{unknown}");
        }
    }

    #[test]
    fn a_site_is_a_registrable_domain() {
        for (one, other, same) in [
            ("www.bbc.co.uk", "news.bbc.co.uk", true),
            ("bbc.co.uk", "static.news.bbc.co.uk", true),
            ("bbc.co.uk", "ft.co.uk", false),
            ("d1.cloudfront.net", "d2.cloudfront.net", false),
            ("www.cnn.com", "www.cnn.com.", true),
            ("cnn.com", "notcnn.com", false),
            ("host0.page.test", "host1.page.test", true),
            ("localhost", "localhost", true),
            ("a.localhost", "localhost", false),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "198.51.2.1", false),
            ("[2001:db8::1]", "[2001:db8::2]", false),
            ("[2001:db8::1]", "2001:db8::1", true),
        ] {
            assert_eq!(is_same_site(one, other), same, "{one} {other}");
            assert_eq!(is_same_site(other, one), same, "{other} {one}");
        }
    }
}
