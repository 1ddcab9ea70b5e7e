//! The admission limits and their defaults.

use std::time::Duration;

/// Limits for each address, and for all together. 0 is no limit, except for `connections`. An IPv6 /48 has twice the limits of an
/// address.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct AdmissionLimits {
    /// Limit of open connections in total. Default 16,384.
    pub connections: usize,
    /// Whether an idle connection is closed for a waiting one when all slots are taken. Default `true`.
    pub evict_idle: bool,
    /// Limit of open connections of one address. Default 4096: many clients may share an address.
    pub per_address: u32,
    /// Limit of new connections of one address per second, on average; a burst may be five times as large. Default 1000.
    pub rate: u32,
    /// Limit of connections of one address that were closed for abuse in `abuse_window`. When it is reached, the address is blocked
    /// until the window is over. Default 10.
    pub abuses: u32,
    /// The window in which abuses are counted. Default 60 s.
    pub abuse_window: Duration,
    /// Limit of addresses with a record. Those without open connections are removed first. Default 65,536.
    pub addresses: usize,
}

impl Default for AdmissionLimits {
    fn default() -> Self {
        Self {
            connections: 16 * 1024,
            evict_idle: true,
            per_address: 4096,
            rate: 1000,
            abuses: 10,
            abuse_window: Duration::from_secs(60),
            addresses: 64 * 1024,
        }
    }
}
