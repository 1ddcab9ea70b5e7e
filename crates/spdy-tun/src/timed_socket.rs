//! Receives datagrams with the time at which the kernel received them.
//!
//! A receiver that waits for a core reads a datagram late, but gets the right time.

use std::io::{self, IoSliceMut};
use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

/// A UDP socket with receive timestamps.
#[derive(Debug)]
pub struct TimedSocket {
    socket: UdpSocket,
    control: Vec<u8>,
}

impl TimedSocket {
    /// Enables the kernel's timestamps for all datagrams that arrive at `socket` from now on.
    ///
    /// # Errors
    ///
    /// The kernel does not support it.
    pub fn new(socket: UdpSocket) -> io::Result<Self> {
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        let control = nix::cmsg_space!(TimeSpec);
        Ok(Self { socket, control })
    }

    /// Receives a datagram into `buffer`. Returns its length, and the time since the Unix epoch at which the kernel received it.
    ///
    /// # Errors
    ///
    /// Like `UdpSocket::recv`. `InvalidData` if the kernel set no timestamp.
    pub fn recv(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Duration)> {
        let mut parts = [IoSliceMut::new(buffer)];
        let received = recvmsg::<()>(
            self.socket.as_raw_fd(),
            &mut parts,
            Some(&mut self.control),
            MsgFlags::empty(),
        )?;
        let time = received.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
            _ => None,
        });
        let no_time = || {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the datagram has no receive timestamp",
            )
        };
        Ok((received.bytes, time.ok_or_else(no_time)?))
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Instant, SystemTime};

    use super::*;

    #[test]
    fn a_datagram_has_the_time_of_its_arrival_not_of_its_reading() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        let to = receiver.local_addr().unwrap();
        let mut receiver = TimedSocket::new(receiver).unwrap();
        let now = || SystemTime::UNIX_EPOCH.elapsed().unwrap();
        let mut buffer = [0; 16];
        // The kernel starts to set timestamps shortly after it was enabled, and reports the time of the read until then.
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            sender.send_to(b"early", to).unwrap();
            let sent = now();
            if receiver.recv(&mut buffer).unwrap().1 <= sent {
                break;
            }
            assert!(
                Instant::now() < deadline,
                "the timestamp is always the time of the read"
            );
        }
        let began = now();
        sender.send_to(b"first", to).unwrap();
        sender.send_to(b"second", to).unwrap();
        let sent = now();
        let (len, first) = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], b"first");
        let (len, second) = receiver.recv(&mut buffer).unwrap();
        assert_eq!(&buffer[..len], b"second");
        assert!(began <= first && first <= second && second <= sent);
    }
}
