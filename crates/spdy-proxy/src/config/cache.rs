//! The part of the configuration for the cache: what is stored, where, and for which clients.

use std::path::PathBuf;

use serde::Deserialize;

use crate::config::shared_cache::SharedConfig;

/// The longest that requests may wait for the first of them, seconds.
const DAY_S: u64 = 24 * 60 * 60;

/// What is stored.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheConfig {
    /// Memory for all of it, MiB. Default 256.
    pub memory_mib: usize,
    /// The largest stored body, MiB. Default 32.
    pub object_mib: usize,
    /// Memory for bodies in flight to the cache, beyond 64 KiB of each, MiB. A body that finds no memory there is not stored, and is read
    /// from its origin at its client's pace. Default as much as `memory_mib`.
    pub in_flight_mib: Option<usize>,
    /// A folder of its own for a cache that survives a restart; `None`: memory alone. Requires a `secret_file`: under another secret
    /// nothing is found again.
    pub disk: Option<PathBuf>,
    /// Room for all files there, MiB. Default 4096.
    pub disk_mib: usize,
    /// A cluster of Valkey or Redis through which several machines share what they keep; `None`: each for itself. Wants a
    /// `secret_file`, the same on all of them.
    pub shared: Option<SharedConfig>,
    /// Stores answers to requests with cookies even if they are not marked as public (`public`, `s-maxage`). Default no: origins forget to
    /// mark an answer as private.
    pub after_cookies: bool,
    /// Timeout for a body that is to be stored. After it, the body is not stored: readers get the rest at the origin's pace, and without
    /// readers the fetch is aborted. Default 600.
    pub fetch_timeout_s: u64,
    /// How long requests for one resource wait for the head of the first answer before one more request goes to the origin, and then
    /// another after each such time. The first answer is for all. A request that has waited `upstream.head_timeout_s` fails: the origin
    /// does not answer. Default 10.
    pub lock_age_s: u64,
    /// Requests per second of one client (an IPv4 address, a /56 of IPv6) that the cache does not answer, so that an origin is contacted;
    /// up to five seconds' worth at once. Default 500; 0: no limit, as behind a balancer that hides its clients.
    pub misses_per_second: u32,
    /// MiB that range requests of one client (an IPv4 address, a /56 of IPv6) may have origins send beyond what the client takes itself: a
    /// range from the first byte has the whole resource fetched, to be stored. A 64th of it is refilled each second. Past it, ranges are
    /// passed through to the origin. Default 64; 0: no limit, as behind a balancer that hides its clients.
    pub range_fill_mib: usize,
    /// Clients may have what is fresh fetched again, by `Cache-Control: no-cache`. Default no: a reload would then reach the
    /// origin.
    pub obey_reload: bool,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            memory_mib: 256,
            object_mib: 32,
            in_flight_mib: None,
            disk: None,
            disk_mib: 4096,
            shared: None,
            after_cookies: false,
            fetch_timeout_s: 600,
            lock_age_s: 10,
            misses_per_second: 500,
            range_fill_mib: 64,
            obey_reload: false,
        }
    }
}

impl CacheConfig {
    /// Memory for bodies in flight to the cache, MiB.
    #[must_use]
    pub fn in_flight_mib(&self) -> usize {
        self.in_flight_mib.unwrap_or(self.memory_mib)
    }

    /// A key with an invalid value: the key, what is valid, and the value.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str, String)> {
        let (key, got) = ("cache.object_mib", self.object_mib.to_string());
        if self.object_mib > self.memory_mib {
            return Some((key, "no more than cache.memory_mib", got));
        }
        let in_flight_mib = self.in_flight_mib();
        if self.object_mib > in_flight_mib {
            let want = "no less than cache.object_mib";
            return Some(("cache.in_flight_mib", want, in_flight_mib.to_string()));
        }
        if self.disk.is_some() && self.object_mib > self.disk_mib {
            return Some((key, "no more than cache.disk_mib", got));
        }
        if !(1..=DAY_S).contains(&self.lock_age_s) {
            let got = self.lock_age_s.to_string();
            return Some(("cache.lock_age_s", "1 to 86400", got));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const SITE: &str = "[[site]]\nnames = ['www.site.test']\norigin = 'http://origin.test'\n";

    #[test]
    fn coalesce_timeout_accepts_one_second_to_one_day() {
        let read = |key: &str| Config::parse(&format!("[cache]\n{key}\n{SITE}"));
        for (key, seconds) in [("", 10), ("lock_age_s = 86400", 86_400)] {
            let config = read(key).expect("it can work");
            assert_eq!(config.cache.lock_age_s, seconds, "{key:?}");
        }
        for got in ["0", "86401"] {
            let error = read(&format!("lock_age_s = {got}")).expect_err("it cannot work");
            let said = format!("cache.lock_age_s: want 1 to 86400, got {got}");
            assert_eq!(error.to_string(), said);
        }
    }
}
