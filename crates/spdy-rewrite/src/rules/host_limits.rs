//! Limits of the responses of one proxied host: size, time to the head, total time, and concurrent responses.
//!
//! Discovered hosts have the limits of the site, and listed hosts too, unless their entry overrides them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::rules::error::RulesError;

/// The maximum of a time, seconds.
const DAY_S: u64 = 24 * 60 * 60;
/// The maximum of `max_mib`: a PiB.
const MAX_MIB: u64 = 1 << 30;
/// The maximum of `fetches`.
const MAX_FETCHES: usize = 1 << 16;

/// Limits of a host as configured. A missing limit of a host is that of the site; a missing limit of the site is the
/// default.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitsConfig {
    /// The largest body. If `Content-Length` exceeds it, the browser gets 307 to the host if it states that a page
    /// loads the resource, else 404. Without a length, the body is cut off and the load fails. Range: 1 to 1073741824.
    /// Default 256.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1_073_741_824)))]
    pub max_mib: Option<u64>,
    /// Time to the response head, at most `upstream.head_timeout_s`. After it: 307 to the host if a page loads the resource,
    /// else 504. Range: 1 to 86400. Default `upstream.head_timeout_s`.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 86_400)))]
    pub head_timeout_s: Option<u64>,
    /// Time to the last byte. After it, the body is cut off and the load fails. Range: 1 to 86400. Default 1800.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 86_400)))]
    pub fetch_timeout_s: Option<u64>,
    /// Responses in progress from one host at a time. A further request waits `upstream.queue_timeout_s`, then gets 307
    /// to the host if a page loads the resource, else 503. Range: 1 to 65536. Default 256.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 65_536)))]
    pub fetches: Option<usize>,
}

impl LimitsConfig {
    /// True if none is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn or(self, general: &Self) -> Self {
        Self {
            max_mib: self.max_mib.or(general.max_mib),
            head_timeout_s: self.head_timeout_s.or(general.head_timeout_s),
            fetch_timeout_s: self.fetch_timeout_s.or(general.fetch_timeout_s),
            fetches: self.fetches.or(general.fetches),
        }
    }
}

/// The limits of one host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HostLimits {
    /// The largest body, in bytes.
    pub max_bytes: u64,
    /// Time to the response head; `None`: as for any origin.
    pub head_timeout: Option<Duration>,
    /// Time to the last byte.
    pub fetch_timeout: Duration,
    /// Responses in progress at a time.
    pub fetches: usize,
}

impl Default for HostLimits {
    /// 256 MiB, half an hour, 256 at a time.
    fn default() -> Self {
        Self {
            max_bytes: 256 << 20,
            head_timeout: None,
            fetch_timeout: Duration::from_secs(30 * 60),
            fetches: 256,
        }
    }
}

impl HostLimits {
    /// Combines the limits of `config` for a host with those of `general` for all hosts of the site.
    pub(crate) fn compile(
        config: &LimitsConfig,
        general: &LimitsConfig,
    ) -> Result<Self, RulesError> {
        let merged = config.or(general);
        let usual = Self::default();
        let within = |key, found: Option<u64>, most| match found {
            Some(found) if !(1..=most).contains(&found) => {
                Err(RulesError::Limit { key, found, most })
            }
            found => Ok(found),
        };
        let max_mib = within("max_mib", merged.max_mib, MAX_MIB)?;
        let head_timeout_s = within("head_timeout_s", merged.head_timeout_s, DAY_S)?;
        let fetch_timeout_s = within("fetch_timeout_s", merged.fetch_timeout_s, DAY_S)?;
        let fetches = merged.fetches.map(|fetches| fetches as u64);
        within("fetches", fetches, MAX_FETCHES as u64)?;
        Ok(Self {
            max_bytes: max_mib.map_or(usual.max_bytes, |mib| mib << 20),
            head_timeout: head_timeout_s.map(Duration::from_secs),
            fetch_timeout: fetch_timeout_s.map_or(usual.fetch_timeout, Duration::from_secs),
            fetches: merged.fetches.unwrap_or(usual.fetches),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_limits_fall_back_to_site_then_default() {
        let own = LimitsConfig {
            max_mib: Some(1),
            ..LimitsConfig::default()
        };
        let general = LimitsConfig {
            max_mib: Some(2),
            fetches: Some(3),
            ..LimitsConfig::default()
        };
        let limits = HostLimits::compile(&own, &general).expect("valid values");
        let expected = HostLimits {
            max_bytes: 1 << 20,
            fetches: 3,
            ..HostLimits::default()
        };
        assert_eq!(limits, expected);
    }

    #[test]
    fn zero_or_over_a_day_limit_is_an_error() {
        let general = LimitsConfig::default();
        let wrong = |config: LimitsConfig| {
            let error = HostLimits::compile(&config, &general);
            error.expect_err("invalid configuration").to_string()
        };
        let none = LimitsConfig {
            fetches: Some(0),
            ..general
        };
        assert_eq!(wrong(none), "limits.fetches: expected 1 to 65536, found 0");
        let long = LimitsConfig {
            fetch_timeout_s: Some(86_401),
            ..general
        };
        let message = "limits.fetch_timeout_s: expected 1 to 86400, found 86401";
        assert_eq!(wrong(long), message);
    }
}
