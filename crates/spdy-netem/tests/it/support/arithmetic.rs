//! The time of a download over an idle, loss-free link, calculated without code of the model.
//!
//! ```text
//!  opener       SYN                ACK, request                          round 1       round 2
//!     \______________  SYN-ACK  ___/\______________   ACK, w1 segments  ____________________
//!                    \_________/                    \__________________/
//! ```
//!
//! The response's segments are sent in rounds: 10 segments, then 20, 40 and so on, because every acknowledged segment releases two. A
//! round begins when the acknowledgement of the last round's first segment arrives: after its serialisation, the round trip, and the
//! acknowledgement's own serialisation. A round that is still being serialised when the next begins fills the link, and from then on
//! only the rate counts. Propagation is half the round trip in each direction. Every packet is counted with its headers: 60 bytes
//! with SYN, else 52 and payload.

/// One cell: rates in bits per second, round trip in nanoseconds, request and response in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) up_bps: u64,
    pub(crate) down_bps: u64,
    pub(crate) rtt_ns: u64,
    pub(crate) request: u64,
    pub(crate) answer: u64,
}

/// Payload of a full segment with timestamps, and the heads of any.
const FULL: u64 = 1_448;
const HEADS: u64 = 52;
const SYN: u64 = 60;
const FIRST_ROUND: u64 = 10;

fn wire_ns(bytes: u64, bps: u64) -> u64 {
    bytes * 8 * 1_000_000_000 / bps
}

impl Cell {
    /// When the whole request has arrived.
    pub(crate) fn request_arrives_ns(&self) -> u64 {
        assert!(self.request <= FULL, "one segment");
        let opening = wire_ns(SYN, self.up_bps) + wire_ns(SYN, self.down_bps) + self.rtt_ns;
        let up = wire_ns(HEADS, self.up_bps) + wire_ns(HEADS + self.request, self.up_bps);
        opening + up + self.rtt_ns / 2
    }

    /// When the last byte of the response has arrived.
    pub(crate) fn done_ns(&self) -> u64 {
        let segments = self.answer.div_ceil(FULL);
        let last = HEADS + self.answer - (segments - 1) * FULL;
        let full_ns = wire_ns(HEADS + FULL, self.down_bps);
        let ack_ns = wire_ns(HEADS, self.up_bps);
        // The request is acknowledged by itself before the first segment.
        let mut round_starts = self.request_arrives_ns() + wire_ns(HEADS, self.down_bps);
        let (mut left, mut window) = (segments, FIRST_ROUND);
        while left > window {
            let next = round_starts + full_ns + self.rtt_ns + ack_ns;
            if round_starts + window * full_ns >= next {
                break; // the link is full from here on
            }
            left -= window;
            window *= 2;
            round_starts = next;
        }
        round_starts + (left - 1) * full_ns + wire_ns(last, self.down_bps) + self.rtt_ns / 2
    }

    /// True if the response fits the first round, in which no acknowledgement matters.
    pub(crate) fn is_one_round(&self) -> bool {
        self.answer <= FIRST_ROUND * FULL
    }
}
