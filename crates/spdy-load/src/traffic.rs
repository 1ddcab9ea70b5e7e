//! Counts bytes of all connections of a thread; for HTTP/2, those of header blocks separately.

use std::cell::Cell;
use std::rc::Rc;

use spdy_net::shims::wire_observer::{ByteObserver, FrameScanner, ObservedIo};
use spdy_session::observe::Direction;

/// Bytes so far, without TLS: these are the bytes of the protocol.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Bytes {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) headers_sent: u64,
    pub(crate) headers_received: u64,
}

impl Bytes {
    /// Bytes since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            received: self.received - earlier.received,
            headers_sent: self.headers_sent - earlier.headers_sent,
            headers_received: self.headers_received - earlier.headers_received,
        }
    }

    /// The sum of both.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            received: self.received + other.received,
            headers_sent: self.headers_sent + other.headers_sent,
            headers_received: self.headers_received + other.headers_received,
        }
    }
}

/// The counters of one thread.
#[derive(Debug, Default)]
pub(crate) struct Traffic(Cell<Bytes>);

impl Traffic {
    pub(crate) fn read(&self) -> Bytes {
        self.0.get()
    }

    pub(crate) fn add(&self, more: Bytes) {
        self.0.set(self.0.get().plus(more));
    }
}

/// A connection that counts its bytes.
pub(crate) type CountingIo = ObservedIo<TrafficCounter>;

/// Counts the bytes of one connection.
pub(crate) struct TrafficCounter {
    traffic: Rc<Traffic>,
    /// Frame scanners for sent and for received bytes.
    scanners: Option<Box<[FrameScanner; 2]>>,
}

impl TrafficCounter {
    /// Counts all bytes.
    pub(crate) fn new(traffic: Rc<Traffic>) -> Self {
        Self {
            traffic,
            scanners: None,
        }
    }

    /// Also counts the payloads of HEADERS and CONTINUATION.
    pub(crate) fn http2(traffic: Rc<Traffic>) -> Self {
        Self {
            scanners: Some(Box::new([
                FrameScanner::for_client(),
                FrameScanner::default(),
            ])),
            ..Self::new(traffic)
        }
    }

    fn header_bytes(&mut self, direction: usize, bytes: &[u8]) -> u64 {
        let mut len = 0;
        if let Some(scanners) = &mut self.scanners {
            scanners[direction].scan(bytes, |frame, _| {
                if matches!(frame.kind, 1 | 5 | 9) {
                    len += frame.len_bytes as u64;
                }
            });
        }
        len
    }
}

impl ByteObserver for TrafficCounter {
    fn observe(&mut self, direction: Direction, bytes: &[u8]) {
        let len = bytes.len() as u64;
        let passed = match direction {
            Direction::Sent => Bytes {
                sent: len,
                headers_sent: self.header_bytes(0, bytes),
                ..Bytes::default()
            },
            Direction::Received => Bytes {
                received: len,
                headers_received: self.header_bytes(1, bytes),
                ..Bytes::default()
            },
        };
        self.traffic.add(passed);
    }
}
