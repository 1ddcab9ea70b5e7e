//! What is remembered of the paths to clients. Without I/O and clock: `now` is an argument.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use spdy_clock::Instant;

/// The initial window of a network of which nothing is remembered, packets (RFC 6928).
pub const DEFAULT_INITIAL_WINDOW: u32 = 10;
/// The largest initial window, packets: 90 kB.
pub const MAX_INITIAL_WINDOW: u32 = 64;
/// Limit of remembered networks. Above it, the one whose window was reached longest ago is evicted.
pub const MAX_NETWORKS: usize = 4096;
/// A window that no connection has reached again for this long is forgotten.
const MAX_AGE: Duration = Duration::from_secs(60 * 60);
/// Prefix lengths of a network, IPv4 and IPv6. Its addresses usually share the slowest part of the path.
const NETWORK_BITS: (u32, u32) = (24, 48);

/// The congestion window of a connection at one moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WindowSample {
    /// The congestion window, packets.
    pub window_packets: u32,
    /// True if packets were sent again since the previous sample of the connection.
    pub has_losses: bool,
}

/// The largest congestion windows of connections, by the network of the client.
#[derive(Clone, Debug, Default)]
pub struct WindowMemory {
    networks: BTreeMap<IpAddr, ReachedWindow>,
}

/// A window that a connection of a network has reached.
#[derive(Clone, Copy, Debug)]
struct ReachedWindow {
    packets: u32,
    at: Instant,
}

impl WindowMemory {
    /// Records a sample of a connection to `client`. A window that is at least as large as the remembered one replaces it. A smaller one
    /// after a loss lowers it, at most to half: the loss may be that of one client that has left.
    pub fn record(&mut self, now: Instant, client: IpAddr, sample: WindowSample) {
        let network = network_of(client);
        let packets = sample.window_packets.min(2 * MAX_INITIAL_WINDOW);
        match self.networks.get_mut(&network) {
            Some(reached) if packets >= reached.packets || now - reached.at > MAX_AGE => {
                *reached = ReachedWindow { packets, at: now };
            }
            Some(reached) if sample.has_losses => {
                reached.packets = packets.max(reached.packets / 2);
            }
            Some(_) => {}
            None if initial_window(packets) > DEFAULT_INITIAL_WINDOW => {
                self.make_room();
                let reached = ReachedWindow { packets, at: now };
                self.networks.insert(network, reached);
            }
            None => {}
        }
    }

    /// The initial window of a connection to `client`, packets: [`DEFAULT_INITIAL_WINDOW`] to [`MAX_INITIAL_WINDOW`].
    ///
    /// It is half of the remembered window: the path is known to have delivered that much in one round trip, and other
    /// connections may use it now.
    #[must_use]
    pub fn initial_window(&self, now: Instant, client: IpAddr) -> u32 {
        match self.networks.get(&network_of(client)) {
            Some(reached) if now - reached.at <= MAX_AGE => initial_window(reached.packets),
            _ => DEFAULT_INITIAL_WINDOW,
        }
    }

    fn make_room(&mut self) {
        if self.networks.len() < MAX_NETWORKS {
            return;
        }
        let oldest = self.networks.iter().min_by_key(|(_, reached)| reached.at);
        if let Some((&network, _)) = oldest {
            self.networks.remove(&network);
        }
    }
}

fn initial_window(reached_packets: u32) -> u32 {
    (reached_packets / 2).clamp(DEFAULT_INITIAL_WINDOW, MAX_INITIAL_WINDOW)
}

fn network_of(client: IpAddr) -> IpAddr {
    let (v4_bits, v6_bits) = NETWORK_BITS;
    match client.to_canonical() {
        IpAddr::V4(address) => {
            Ipv4Addr::from(u32::from(address) & (u32::MAX << (32 - v4_bits))).into()
        }
        IpAddr::V6(address) => {
            Ipv6Addr::from(u128::from(address) & (u128::MAX << (128 - v6_bits))).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 7));

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn sample(window_packets: u32, has_losses: bool) -> WindowSample {
        WindowSample {
            window_packets,
            has_losses,
        }
    }

    fn reached(window_packets: u32) -> WindowMemory {
        let mut memory = WindowMemory::default();
        memory.record(at(0), CLIENT, sample(window_packets, false));
        memory
    }

    #[test]
    fn next_connection_starts_with_half_of_the_reached_window() {
        assert_eq!(reached(80).initial_window(at(1), CLIENT), 40);
    }

    #[test]
    fn initial_window_is_never_less_than_ten_or_more_than_the_limit() {
        assert_eq!(WindowMemory::default().initial_window(at(0), CLIENT), 10);
        assert_eq!(reached(14).initial_window(at(1), CLIENT), 10);
        assert_eq!(reached(100_000).initial_window(at(1), CLIENT), 64);
    }

    #[test]
    fn window_is_shared_by_a_network_and_by_no_other() {
        let memory = reached(80);
        let window = |client: &str| memory.initial_window(at(1), client.parse().unwrap());
        assert_eq!(window("203.0.113.250"), 40);
        assert_eq!(window("::ffff:203.0.113.250"), 40);
        assert_eq!(window("203.0.114.7"), 10);
        let mut memory = WindowMemory::default();
        memory.record(at(0), "2001:db8:1:2::3".parse().unwrap(), sample(80, false));
        let window = |client: &str| memory.initial_window(at(1), client.parse().unwrap());
        assert_eq!(window("2001:db8:1:ffff::"), 40);
        assert_eq!(window("2001:db8:2:2::3"), 10);
    }

    #[test]
    fn small_responses_do_not_lower_the_window_and_a_loss_does() {
        let mut memory = reached(80);
        memory.record(at(1), CLIENT, sample(12, false));
        assert_eq!(memory.initial_window(at(2), CLIENT), 40);
        memory.record(at(3), CLIENT, sample(50, true));
        assert_eq!(memory.initial_window(at(4), CLIENT), 25);
        memory.record(at(5), CLIENT, sample(1, true));
        assert_eq!(memory.initial_window(at(6), CLIENT), 12);
        memory.record(at(7), CLIENT, sample(1, true));
        assert_eq!(memory.initial_window(at(8), CLIENT), 10);
    }

    #[test]
    fn window_is_forgotten_an_hour_after_it_was_last_reached() {
        let mut memory = reached(80);
        memory.record(at(1800), CLIENT, sample(79, false));
        assert_eq!(memory.initial_window(at(3600), CLIENT), 40);
        assert_eq!(memory.initial_window(at(3601), CLIENT), 10);
        memory.record(at(3602), CLIENT, sample(60, false));
        assert_eq!(memory.initial_window(at(7202), CLIENT), 30);
    }

    #[test]
    fn one_network_past_the_limit_replaces_the_oldest() {
        let mut memory = WindowMemory::default();
        let client = |number: usize| IpAddr::V4(Ipv4Addr::from((number as u32) << 8));
        for number in 0..=MAX_NETWORKS {
            memory.record(at(number as u64), client(number), sample(80, false));
        }
        let now = at(MAX_NETWORKS as u64);
        assert_eq!(memory.networks.len(), MAX_NETWORKS);
        assert!(!memory.networks.contains_key(&client(0)));
        assert_eq!(memory.initial_window(now, client(MAX_NETWORKS)), 40);
        // A network for which a larger initial window is not needed is not stored.
        memory.record(now, client(MAX_NETWORKS + 1), sample(20, false));
        assert!(memory.networks.contains_key(&client(1)));
    }
}
