//! What clients may have of a door, and its defaults.

use std::time::Duration;

/// What one address, and all together, may have. A 0 is no limit, but for `connections`. A /48 of IPv6 may have
/// twice what an address may.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionLimits {
    /// Connections open at once, from whomever. Default 16,384.
    pub connections: usize,
    /// With all places taken, whether a connection that has nothing to do is ended for one that waits. Default
    /// `true`.
    pub evict_idle: bool,
    /// Connections of one address open at once. Default 4096: many clients may share an address.
    pub per_address: u32,
    /// New connections of one address in a second, on average; in a burst, five seconds' worth.
    /// Default 1000.
    pub rate: u32,
    /// Connections of one address that were ended for abuse in `abuse_window`. With so many, the address
    /// is not heard until the window is over. Default 10.
    pub abuses: u32,
    /// Over how long abuses are counted. Default 60 s.
    pub abuse_window: Duration,
    /// Addresses that are remembered. Those that have nothing open are forgotten first. Default 65,536.
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
