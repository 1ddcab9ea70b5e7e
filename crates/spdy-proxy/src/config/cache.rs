//! The part of the configuration for the cache: what is stored, where, and for which clients.

use std::path::PathBuf;

use serde::Deserialize;

use crate::config::shared_cache::SharedConfig;
use crate::images::convert::ImageConversion;

/// Largest `lock_age_s`, in seconds.
const DAY_S: u64 = 24 * 60 * 60;

/// The cache: its size, tiers and rules.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheConfig {
    /// Memory for stored responses. Default 256.
    pub memory_mib: usize,
    /// The largest body that is stored. Default 32.
    pub object_mib: usize,
    /// Memory for bodies that are being received and will be stored, except the first 64 KiB of each. Without free
    /// memory, a body is not stored, and is read from its origin at its client's pace. Default as much as `memory_mib`.
    pub in_flight_mib: Option<usize>,
    /// A folder for stored responses that survive a restart. Needs `secret_file`: with another secret no stored response is
    /// found again.
    pub disk: Option<PathBuf>,
    /// Space for all files in `disk`. Default 4096.
    pub disk_mib: usize,
    /// A cluster of Valkey or Redis through which several machines share stored responses. Needs `secret_file`, the same on
    /// all machines. Optional.
    pub shared: Option<SharedConfig>,
    /// Whether to store responses to requests with cookies if they are not explicitly public (`public`, `s-maxage`).
    /// Off by default because origins often do not mark private responses. Default `false`.
    pub after_cookies: bool,
    /// Time for a body that will be stored to arrive. After it, the response is passed on and not stored: clients get
    /// the rest at the origin's pace, and without clients the fetch is aborted. Default 600.
    pub fetch_timeout_s: u64,
    /// Time after which another waiting request is sent to a slow origin, and then one more after each such time. The
    /// first response answers all of them. A request fails after it has waited `upstream.head_timeout_s`. Range: 1 to
    /// 86400. Default 10.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 86_400)))]
    pub lock_age_s: u64,
    /// Requests a second of one client that the cache cannot answer, five seconds' worth at once. `0`: no limit, for
    /// use behind a balancer that hides its clients. Default 500.
    pub misses_per_second: u32,
    /// Data that range requests of one client may make origins send beyond what the client reads, because a range from
    /// the first byte fetches the whole response for the cache. A 64th is refilled each second. Above it, ranges are
    /// passed to the origin. `0`: no limit, for use behind a balancer that hides its clients. Default 64.
    pub range_fill_mib: usize,
    /// Whether stored texts that are requested again are compressed as small as Brotli can, by a thread that uses at most
    /// half a core. This includes texts that their origin has compressed. Default `true`.
    pub recompress: bool,
    /// Which stored images that are requested again are also sent as WebP, to clients that accept it: `"off"`,
    /// `"lossless"` (PNG images, with the same pixels) or `"lossy"` (also JPEG images, at quality 80). The thread that
    /// compresses texts converts them. Responses with such images get `Vary: Accept`. Default `"off"`.
    pub images: ImageConversion,
    /// Whether a client's `Cache-Control: no-cache` revalidates a fresh response. Default `false`.
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
            recompress: true,
            images: ImageConversion::Off,
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
        let (key, found) = ("cache.object_mib", self.object_mib.to_string());
        if self.object_mib > self.memory_mib {
            return Some((key, "no more than cache.memory_mib", found));
        }
        let in_flight_mib = self.in_flight_mib();
        if self.object_mib > in_flight_mib {
            let expected = "no less than cache.object_mib";
            return Some(("cache.in_flight_mib", expected, in_flight_mib.to_string()));
        }
        if self.disk.is_some() && self.object_mib > self.disk_mib {
            return Some((key, "no more than cache.disk_mib", found));
        }
        if !(1..=DAY_S).contains(&self.lock_age_s) {
            let found = self.lock_age_s.to_string();
            return Some(("cache.lock_age_s", "1 to 86400", found));
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
            let config = read(key).expect("valid configuration");
            assert_eq!(config.cache.lock_age_s, seconds, "{key:?}");
        }
        for found in ["0", "86401"] {
            let error = read(&format!("lock_age_s = {found}")).expect_err("invalid configuration");
            let message = format!("cache.lock_age_s: expected 1 to 86400, found {found}");
            assert_eq!(error.to_string(), message);
        }
    }
}
