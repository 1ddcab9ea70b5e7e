//! Which flow an IP packet belongs to.

use spdy_netem::queue::FlowKey;

/// First of the bytes that name a flow in an IPv4 header: protocol, and both addresses.
const PROTOCOL: usize = 9;
const ADDRESSES: std::ops::Range<usize> = 12..20;
/// TCP and UDP have both ports in the first bytes after the IP header.
const PORTS_LEN: usize = 4;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The flow of an IPv4 packet: its protocol and addresses, and ports if it has them. A later fragment has no ports.
pub(crate) fn flow_of(packet: &[u8]) -> FlowKey {
    let protocol = packet.get(PROTOCOL).copied().unwrap_or_default();
    let addresses = packet.get(ADDRESSES).unwrap_or_default();
    let header_len = packet
        .first()
        .map_or(0, |first| usize::from(first & 0x0f) * 4);
    let is_later_fragment = packet
        .get(6..8)
        .is_some_and(|it| (it[0] & 0x1f, it[1]) != (0, 0));
    let ports = match protocol {
        TCP | UDP if !is_later_fragment => packet.get(header_len..header_len + PORTS_LEN),
        _ => None,
    };
    let bytes = [&[protocol], addresses, ports.unwrap_or_default()];
    FlowKey::of_headers(bytes.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(protocol: u8, to: u8, port: u8) -> Vec<u8> {
        let mut packet = vec![0; 40];
        (packet[0], packet[9], packet[19], packet[23]) = (0x45, protocol, to, port);
        packet
    }

    #[test]
    fn protocol_addresses_and_ports_make_a_flow() {
        let flow = |protocol, to, port| flow_of(&packet(protocol, to, port));
        assert_eq!(flow(TCP, 1, 80), flow(TCP, 1, 80));
        assert_ne!(flow(TCP, 1, 80), flow(UDP, 1, 80));
        assert_ne!(flow(TCP, 1, 80), flow(TCP, 2, 80));
        assert_ne!(flow(TCP, 1, 80), flow(TCP, 1, 81));
        assert_eq!(flow(1, 1, 80), flow(1, 1, 81), "ICMP has no ports");
    }

    #[test]
    fn a_packet_that_is_too_short_has_a_flow() {
        for len in 0..24 {
            let _ = flow_of(&packet(TCP, 1, 80)[..len]);
        }
    }
}
