//! The few requests of rtnetlink(7) that set up a link: device up, address, routes.
//!
//! ```text
//!  nlmsghdr                               body              attributes, each padded to 4
//! +--------+------+-------+-----+-----+  +--------------+  +-----+------+-------+--
//! | length | type | flags | seq | pid |  | by its type  |  | len | type | value | ..
//! |   32   |  16  |  16   | 32  | 32  |  |              |  | 16  |  16  |       |
//! +--------+------+-------+-----+-----+  +--------------+  +-----+------+-------+--
//! ```
//!
//! Everything is in native byte order. The kernel answers each request with NLMSG_ERROR, whose number is 0 on success. A route sets
//! the congestion control and the initial window of its connections. The sysctl of a namespace accepts only algorithms that the
//! system allows for all users (often without cubic), a route accepts every available algorithm.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd as _, OwnedFd};

use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;

const REQUEST_ACK: u16 = 0x1 | 0x4;
const CREATE_REPLACE: u16 = 0x400 | 0x100;

const AF_INET: u8 = 2;
const IFF_UP: u32 = 1;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_METRICS: u16 = 8;
const RTAX_INITCWND: u16 = 11;
const RTAX_CC_ALGO: u16 = 16;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RT_SCOPE_HOST: u8 = 254;
const RTN_UNICAST: u8 = 1;
const RTN_LOCAL: u8 = 2;

/// Length of a `nlmsghdr`.
const HEAD_LEN: usize = 16;

/// A request under construction.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: u16, body: &[u8]) -> Self {
        let mut bytes = vec![0; 4]; // the length, set at the end
        bytes.extend(kind.to_ne_bytes());
        bytes.extend((REQUEST_ACK | flags).to_ne_bytes());
        bytes.extend([0; 8]); // requests are sent one at a time and need no sequence number; 0 is the kernel's own address
        bytes.extend(body);
        Self(bytes)
    }

    fn attribute(&mut self, kind: u16, value: &[u8]) {
        let len = u16::try_from(4 + value.len()).expect("the attribute value fits into 16 bits");
        self.0.extend(len.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let len = u32::try_from(self.0.len()).expect("the request length fits into 32 bits");
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0
    }
}

/// The destination of a route.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Destination {
    /// Every address without a more specific route.
    Everywhere,
    /// Only this address.
    Host(Ipv4Addr),
}

/// TCP settings of a route.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct RouteTcp<'a> {
    /// Name of the congestion control.
    pub(crate) congestion: &'a str,
    /// Segments of the initial window, if not the kernel's default.
    pub(crate) initial_window: Option<u32>,
}

fn link_up(index: u32, queue_len: Option<u32>, mtu: Option<u32>) -> Vec<u8> {
    let mut body = vec![0; 4]; // family, padding, type
    body.extend(index.to_ne_bytes());
    body.extend(IFF_UP.to_ne_bytes()); // flags
    body.extend(IFF_UP.to_ne_bytes()); // mask of the flags to change
    let mut message = Message::new(RTM_NEWLINK, 0, &body);
    if let Some(packets) = queue_len {
        message.attribute(IFLA_TXQLEN, &packets.to_ne_bytes());
    }
    if let Some(bytes) = mtu {
        message.attribute(IFLA_MTU, &bytes.to_ne_bytes());
    }
    message.finish()
}

fn address(index: u32, address: Ipv4Addr) -> Vec<u8> {
    let mut body = vec![AF_INET, 32, 0, 0]; // family, prefix, flags, scope
    body.extend(index.to_ne_bytes());
    let mut message = Message::new(RTM_NEWADDR, CREATE_REPLACE, &body);
    message.attribute(IFA_LOCAL, &address.octets());
    message.attribute(IFA_ADDRESS, &address.octets());
    message.finish()
}

fn route(to: Destination, index: u32, kind: u8, scope: u8, tcp: Option<&RouteTcp<'_>>) -> Vec<u8> {
    let prefix = match to {
        Destination::Everywhere => 0,
        Destination::Host(_) => 32,
    };
    let mut body = vec![AF_INET, prefix, 0, 0];
    body.extend([RT_TABLE_MAIN, RTPROT_STATIC, scope, kind]);
    body.extend([0; 4]); // flags
    let mut message = Message::new(RTM_NEWROUTE, CREATE_REPLACE, &body);
    if let Destination::Host(address) = to {
        message.attribute(RTA_DST, &address.octets());
    }
    message.attribute(RTA_OIF, &index.to_ne_bytes());
    if let Some(RouteTcp {
        congestion,
        initial_window,
    }) = tcp
    {
        let mut metrics = Message(Vec::new());
        metrics.attribute(RTAX_CC_ALGO, &[congestion.as_bytes(), &[0]].concat());
        if let Some(segments) = initial_window {
            metrics.attribute(RTAX_INITCWND, &segments.to_ne_bytes());
        }
        message.attribute(RTA_METRICS, &metrics.0);
    }
    message.finish()
}

/// A netlink socket for the routing tables of the namespace in which it was opened.
pub(crate) struct Netlink(OwnedFd);

impl Netlink {
    /// Opens the socket.
    pub(crate) fn open() -> io::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC;
        let family = AddressFamily::Netlink;
        Ok(Self(socket(
            family,
            SockType::Raw,
            flags,
            SockProtocol::NetlinkRoute,
        )?))
    }

    /// Sets a device up.
    pub(crate) fn up(
        &self,
        index: u32,
        queue_len: Option<u32>,
        mtu: Option<u32>,
    ) -> io::Result<()> {
        self.send_request(&link_up(index, queue_len, mtu))
    }

    /// Adds an address to a device, without a subnet.
    pub(crate) fn add_address(&self, index: u32, own: Ipv4Addr) -> io::Result<()> {
        self.send_request(&address(index, own))
    }

    /// Routes packets `to` through a device.
    pub(crate) fn add_route(
        &self,
        to: Destination,
        index: u32,
        tcp: &RouteTcp<'_>,
    ) -> io::Result<()> {
        self.send_request(&route(to, index, RTN_UNICAST, RT_SCOPE_LINK, Some(tcp)))
    }

    /// Routes every address without a more specific route to this host. `index` is that of the loopback device.
    pub(crate) fn own_everything(&self, index: u32) -> io::Result<()> {
        let everywhere = Destination::Everywhere;
        self.send_request(&route(everywhere, index, RTN_LOCAL, RT_SCOPE_HOST, None))
    }

    fn send_request(&self, request: &[u8]) -> io::Result<()> {
        let fd = self.0.as_raw_fd();
        send(fd, request, MsgFlags::empty())?;
        let mut answer = [0; 4_096];
        let len = recv(fd, &mut answer, MsgFlags::empty())?;
        read_answer(&answer[..len])
    }
}

/// Reads the result in an NLMSG_ERROR message.
fn read_answer(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|kind| kind.try_into().ok());
    let number = answer.get(HEAD_LEN..HEAD_LEN + 4);
    let number = number.and_then(|number| number.try_into().ok());
    match (kind.map(u16::from_ne_bytes), number.map(i32::from_ne_bytes)) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(number)) => Err(io::Error::from_raw_os_error(-number)),
        _ => Err(io::Error::other("the kernel's reply has no NLMSG_ERROR")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `ip route replace 198.19.0.1/32 dev <7> congctl cubic initcwnd 3` sends it, except for the protocol.
    #[test]
    fn a_route_carries_the_congestion_control_and_the_initial_window() {
        if cfg!(target_endian = "big") {
            return; // the bytes below are little-endian
        }
        let tcp = RouteTcp {
            congestion: "cubic",
            initial_window: Some(3),
        };
        let host = Destination::Host(Ipv4Addr::new(198, 19, 0, 1));
        let actual = route(host, 7, RTN_UNICAST, RT_SCOPE_LINK, Some(&tcp));
        #[rustfmt::skip]
        let expected = [
            68, 0, 0, 0,  24, 0,  5, 5,  0, 0, 0, 0,  0, 0, 0, 0,
            2, 32, 0, 0,  254, 4, 253, 1,  0, 0, 0, 0,
            8, 0, 1, 0,  198, 19, 0, 1,
            8, 0, 4, 0,  7, 0, 0, 0,
            24, 0, 8, 0,
                10, 0, 16, 0,  b'c', b'u', b'b', b'i', b'c', 0, 0, 0,
                8, 0, 11, 0,  3, 0, 0, 0,
        ];
        assert_eq!(actual, expected);
    }

    #[test]
    fn an_answer_is_done_or_the_kernels_reason() {
        let answer = |number: i32| {
            let mut bytes = vec![36, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            bytes.extend(number.to_ne_bytes());
            bytes
        };
        if cfg!(target_endian = "little") {
            assert!(read_answer(&answer(0)).is_ok());
            let refused = read_answer(&answer(-1)).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        }
        assert!(read_answer(&[0; 8]).is_err());
    }
}
