//! Recorded capacity of a link: the instants at which it could carry a packet.
//!
//! The format is mahimahi's (Netravali et al., USENIX ATC 2015). Each line is a time in milliseconds, at which the link delivers up to
//! [`OPPORTUNITY_BYTES`]. After its last line a trace begins again.
//!
//! ```text
//! trace file     0  5  5  9
//! time, ms       0    5  5       9    14 14      18             the last time is also the length of a repetition
//! opportunity    |    |  |       |    |  |       |
//! queue          [ A ][ B ][C..]      [..C][D]                  a packet may use the rest of the next opportunity
//! ```
//!
//! Several small packets share an opportunity, and a packet that does not fit into the rest of one continues in the next. An opportunity
//! that comes when no packet waits is lost.

use std::fmt;
use std::sync::Arc;

use spdy_clock::Instant;

/// Bytes that an opportunity carries: the MTU, and mahimahi's header of a TUN device.
pub const OPPORTUNITY_BYTES: usize = 1_504;
/// Header of a TUN device. mahimahi counts it in the length of each packet.
pub const TUN_HEADER_BYTES: usize = 4;
/// Maximum lines of a trace: 24 hours at 1.4 Mbit/s, or 86 s at 1.4 Gbit/s.
pub const MAX_OPPORTUNITIES: usize = 10_000_000;

/// Maximum time in a trace, 24 days: [`Trace::slowed`] doubles it.
const MAX_TIME_MS: u32 = u32::MAX / 2;

const NANOS_PER_MS: u64 = 1_000_000;

/// The opportunities of a link, with the name of their file. Copies share memory.
#[derive(Clone, Eq, PartialEq)]
pub struct Trace {
    name: Arc<str>,
    /// In order; at least one, and the last is not 0.
    at_ms: Arc<[u32]>,
}

/// A text that is not a trace.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A line is not a time.
    #[error("line {line}: found {found:?}, expected a time in milliseconds, such as 17")]
    NotATime {
        /// Its number, from 1.
        line: usize,
        /// Its first characters.
        found: String,
    },
    /// A time is before its predecessor.
    #[error("line {line}: found {found}, expected at least {previous}, the time before it")]
    Unordered {
        /// Its number, from 1.
        line: usize,
        /// The time.
        found: u32,
        /// The time before it.
        previous: u32,
    },
    /// There is no line.
    #[error("the trace is empty: expected a time in milliseconds on each line")]
    Empty,
    /// All times are 0.
    #[error("line {line}: the last time is 0, expected the length of the trace in milliseconds")]
    NoDuration {
        /// The number of the last line, from 1.
        line: usize,
    },
    /// There are too many lines.
    #[error("the trace has more than {MAX_OPPORTUNITIES} lines")]
    TooLong,
}

impl Trace {
    /// Parses the content of the file `name`.
    ///
    /// # Errors
    ///
    /// The first wrong line.
    pub fn parse(name: &str, text: &str) -> Result<Self, TraceError> {
        /// Characters of a wrong line in an error.
        const SHOWN: usize = 20;
        let mut at_ms = Vec::new();
        let mut previous = 0;
        for (number, text) in text.lines().enumerate() {
            let line = number + 1;
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            let time = text
                .parse()
                .ok()
                .filter(|ms| is_number && *ms <= MAX_TIME_MS);
            let Some(found) = time else {
                let found = text.chars().take(SHOWN).collect();
                return Err(TraceError::NotATime { line, found });
            };
            if found < previous {
                return Err(TraceError::Unordered {
                    line,
                    found,
                    previous,
                });
            }
            if at_ms.len() == MAX_OPPORTUNITIES {
                return Err(TraceError::TooLong);
            }
            at_ms.push(found);
            previous = found;
        }
        match at_ms.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoDuration { line: at_ms.len() }),
            Some(_) => Ok(Self {
                name: name.into(),
                at_ms: at_ms.into(),
            }),
        }
    }

    /// Name of its file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its mean rate, bits per second.
    #[must_use]
    pub fn mean_bps(&self) -> u64 {
        let bits = (self.at_ms.len() * OPPORTUNITY_BYTES * 8) as u64;
        bits * 1_000 / self.period_ms()
    }

    /// The same opportunities over twice the time: half the rate.
    #[must_use]
    pub fn slowed(&self) -> Self {
        Self {
            name: self.name.clone(),
            at_ms: self.at_ms.iter().map(|ms| ms * 2).collect(),
        }
    }

    fn period_ms(&self) -> u64 {
        self.at_ms.last().copied().map_or(1, u64::from)
    }
}

/// Without its up to millions of times.
impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opportunities = self.at_ms.len();
        write!(f, "Trace({:?}, {opportunities} opportunities)", self.name)
    }
}

/// Sends packets one after the other at the opportunities of a trace.
#[derive(Clone, Debug)]
pub struct TraceSender {
    trace: Trace,
    /// Time 0 of the trace: the first packet of the path. `None` before it.
    origin: Option<Instant>,
    /// Repetitions before the next opportunity.
    repetition: u64,
    /// The next opportunity.
    next: usize,
    /// Bytes that it can still carry, at least 1.
    left_bytes: usize,
    busy_until: Instant,
}

impl TraceSender {
    /// An idle link.
    #[must_use]
    pub const fn new(trace: Trace) -> Self {
        Self {
            trace,
            origin: None,
            repetition: 0,
            next: 0,
            left_bytes: OPPORTUNITY_BYTES,
            busy_until: Instant::ZERO,
        }
    }

    /// Begins the trace at `now`, if it has not begun.
    pub fn begin(&mut self, now: Instant) {
        self.origin.get_or_insert(now);
    }

    /// True if a packet that arrives at `now` would wait for another.
    #[must_use]
    pub const fn is_busy(&self, now: Instant) -> bool {
        self.busy_until.as_nanos() > now.as_nanos()
    }

    /// Notes that no packet waited before `now`: opportunities until then are lost, including one at `now`.
    pub fn idle_until(&mut self, now: Instant) {
        if self.next_start() > now {
            return;
        }
        let period_ms = self.trace.period_ms();
        let origin = self.origin.unwrap_or_default();
        let passed_ms = (now - origin).as_nanos() as u64 / NANOS_PER_MS; // both are nanoseconds in 64 bits
        self.repetition = passed_ms / period_ms;
        let within_ms = passed_ms % period_ms;
        self.next = (self.trace.at_ms).partition_point(|at_ms| u64::from(*at_ms) <= within_ms);
        self.left_bytes = OPPORTUNITY_BYTES;
    }

    /// First instant at which a packet that waits can be sent.
    #[must_use]
    pub fn next_start(&self) -> Instant {
        let at_ms = u64::from(self.trace.at_ms[self.next]);
        let since_origin_ms = self.repetition.saturating_mul(self.trace.period_ms()) + at_ms;
        let origin_ns = self.origin.unwrap_or_default().as_nanos();
        Instant::from_nanos(origin_ns.saturating_add(since_origin_ms.saturating_mul(NANOS_PER_MS)))
    }

    /// Departure time of a packet of `len_bytes` that is sent directly after its predecessor.
    pub fn transmit(&mut self, len_bytes: usize) -> Instant {
        let mut bytes = len_bytes + TUN_HEADER_BYTES;
        loop {
            let at = self.next_start();
            let sent = bytes.min(self.left_bytes);
            bytes -= sent;
            self.left_bytes -= sent;
            if self.left_bytes == 0 {
                self.left_bytes = OPPORTUNITY_BYTES;
                self.next += 1;
                if self.next == self.trace.at_ms.len() {
                    (self.next, self.repetition) = (0, self.repetition + 1);
                }
            }
            if bytes == 0 {
                self.busy_until = at;
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> Trace {
        Trace::parse("test", text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
    }

    /// Departures in ms of packets, given as arrival in ms and length.
    fn departures(text: &str, offers: &[(u64, usize)]) -> Vec<u64> {
        let mut sender = TraceSender::new(trace(text));
        let mut depart = |&(ms, len_bytes): &(u64, usize)| {
            let now = Instant::from_millis(ms);
            sender.begin(now);
            sender.idle_until(now);
            sender.transmit(len_bytes).as_micros() / 1_000
        };
        offers.iter().map(&mut depart).collect()
    }

    #[test]
    fn a_full_packet_uses_one_opportunity_and_the_trace_repeats() {
        let full = vec![(0, 1_500); 8];
        // The opportunity at the instant of an arrival has passed.
        assert_eq!(
            departures("0\n5\n5\n9\n", &full),
            [5, 5, 9, 9, 14, 14, 18, 18]
        );
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_span_two() {
        // 376 bytes with the header: four in an opportunity.
        assert_eq!(departures("5\n9\n", &[(0, 372); 5]), [5, 5, 5, 5, 9]);
        assert_eq!(departures("5\n9\n", &[(0, 748), (0, 1_500)]), [5, 9]);
    }

    #[test]
    fn an_opportunity_without_a_waiting_packet_is_lost() {
        assert_eq!(
            departures("5\n9\n", &[(0, 40), (5, 40), (6, 40), (30, 40)]),
            [5, 9, 9, 32]
        );
    }

    #[test]
    fn a_trace_begins_with_the_first_packet() {
        assert_eq!(departures("5\n9\n", &[(1_000, 40)]), [1_005]);
    }

    #[test]
    fn a_busy_link_has_the_mean_rate_of_its_trace() {
        let uneven = trace("1\n1\n1\n50\n51\n100\n");
        let mut sender = TraceSender::new(uneven.clone());
        sender.begin(Instant::ZERO);
        let last = (0..6_000).map(|_| sender.transmit(1_500)).last();
        assert_eq!(last, Some(Instant::from_millis(100 * 1_000)));
        assert_eq!(uneven.mean_bps(), 6 * 1_504 * 8 * 10);
        assert_eq!(uneven.slowed().mean_bps(), 6 * 1_504 * 8 * 5);
    }

    #[test]
    fn an_error_names_the_line_and_what_was_expected() {
        let error = |text| Trace::parse("test", text).unwrap_err().to_string();
        assert!(error("").starts_with("the trace is empty"));
        assert!(error("1\nx2\n").starts_with("line 2: found \"x2\", expected a time"));
        assert!(error("1\n\n2\n").starts_with("line 2: found \"\""));
        assert!(error("+1\n").starts_with("line 1: found \"+1\""));
        assert!(error("4294967296\n").starts_with("line 1"));
        assert!(error("1\n5\n4\n").starts_with("line 3: found 4, expected at least 5"));
        assert!(error("0\n0\n").starts_with("line 2: the last time is 0"));
        let many = "1\n".repeat(MAX_OPPORTUNITIES + 1);
        assert!(error(&many).ends_with("more than 10000000 lines"));
    }

    #[test]
    fn debug_output_leaves_out_the_times() {
        let printed = format!("{:?}", trace("5\n9\n"));
        assert_eq!(printed, "Trace(\"test\", 2 opportunities)");
    }
}
