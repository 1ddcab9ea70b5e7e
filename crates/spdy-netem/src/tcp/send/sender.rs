//! The sending half: written data, data in flight, and its timer.
//!
//! ```text
//!             three segments delivered above,            acknowledged up to where
//!   +------+  or one and a reordering window  +--------+ it began
//!   | Open | -------------------------------> |Recovery| ------------------> Open
//!   +------+    (Disorder: delivered out      +--------+
//!      |         of order, not yet a loss)        |
//!      | retransmission timer                     | retransmission timer
//!      v                                          v
//!   +------+  acknowledged up to where it began, or proved needless
//!   | Loss | ------------------------------------------------------> Open
//!   +------+
//! ```
//!
//! One timer has four uses, as in Linux: at any time it is a retransmission timer, a tail loss probe, RACK's reordering timer, or the
//! probe of a zero window.

use std::time::Duration;

use spdy_clock::Instant;

use super::scoreboard::Scoreboard;
use super::send_buffer::SendBuffer;
use crate::tcp::config::TcpConfig;
use crate::tcp::congestion::algorithm::Congestion;
use crate::tcp::congestion::window::Cwnd;
use crate::tcp::jiffies;
use crate::tcp::recovery::recovery_state::{PendingProbe, Phase, Rack, Reduction, Undo};
use crate::tcp::recovery::rtt::RttEstimator;
use crate::tcp::stats::TcpStats;

/// Number of duplicate acknowledgements, or of segments delivered above, that indicate a loss.
pub(crate) const DUPLICATE_THRESHOLD: u32 = 3;
/// Maximum size of a chunk of the send buffer: the maximum IP packet less Linux's reserve for headers.
const MAX_CHUNK_BYTES: usize = 65_215;

/// The current use of the timer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TimerKind {
    Retransmit,
    LossProbe,
    Reorder,
    Persist,
}

/// State of the FIN.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fin {
    NotYet,
    Queued,
    Sent,
    Acked,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pub(crate) config: TcpConfig,
    pub(crate) stats: TcpStats,
    /// Payload of a full segment, without the options of every segment.
    pub(crate) mss_bytes: usize,
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,

    pub(crate) una: u64,
    pub(crate) nxt: u64,
    /// The peer's window beyond `una`, and the sequence number of its segment.
    pub(crate) window_bytes: u64,
    pub(crate) window_seq: u64,
    /// The largest window so far.
    max_window_bytes: u64,
    pub(crate) buffer: SendBuffer,
    pub(crate) board: Scoreboard,
    pub(crate) fin: Fin,
    /// The buffer is full, and stores no further chunk, when buffer and scoreboard with their overhead have this size.
    buffer_limit_bytes: usize,
    /// Size of the last chunk after the last write.
    last_chunk_bytes: usize,
    /// A write was cut short; no further one until a third of the buffer is free.
    pub(crate) is_full: bool,

    pub(crate) cwnd: Cwnd,
    pub(crate) congestion: Congestion,
    pub(crate) rtt: RttEstimator,
    pub(crate) phase: Phase,
    /// Recovery or Loss end when this is acknowledged.
    pub(crate) high: u64,
    /// One past the highest byte that was selectively acknowledged.
    pub(crate) highest_sacked: u64,
    /// Number of segments delivered above that indicate a loss; larger after reordering.
    pub(crate) reordering: u32,
    /// Duplicate acknowledgements in place of selective ones, if SACK is off.
    pub(crate) duplicates: u32,
    pub(crate) reduction: Reduction,
    pub(crate) undo: Undo,
    pub(crate) rack: Rack,
    pub(crate) probe: Option<PendingProbe>,
    pub(crate) is_probe_due: bool,
    pub(crate) is_window_probe_due: bool,
    pub(crate) persist_backoff: u32,
    /// Window probes since the last acknowledgement, even one without new data.
    pub(crate) probes_unanswered: u32,
    /// The limit of window probes was exceeded.
    pub(crate) gave_up_probing: bool,
    /// F-RTO is active: after the first acknowledgement following a timeout, new data is sent first.
    pub(crate) frto: bool,
    /// Lost segments wait for the next acknowledgement.
    pub(crate) hold_lost: bool,
    /// Timeouts since the last acknowledgement.
    pub(crate) timeouts_in_row: u32,
    pub(crate) timer: Option<(TimerKind, Instant)>,
    pub(crate) last_sent: Instant,
    /// New data was sent since the end of the last burst.
    pub(crate) burst_sent: bool,
    /// An acknowledgement arrived since the last check for free space.
    pub(crate) is_space_check_due: bool,
}

impl Sender {
    pub(crate) fn new(config: TcpConfig) -> Self {
        Self {
            config,
            stats: TcpStats::default(),
            mss_bytes: 0,
            sack: false,
            timestamps: false,
            una: 0,
            nxt: 0,
            window_bytes: 0,
            window_seq: 0,
            buffer: SendBuffer::default(),
            board: Scoreboard::default(),
            fin: Fin::NotYet,
            buffer_limit_bytes: 0,
            last_chunk_bytes: 0,
            max_window_bytes: 0,
            is_full: false,
            cwnd: Cwnd::new(config.initial_window_segments),
            congestion: Congestion::new(&config),
            rtt: RttEstimator::new(config.initial_rto, config.min_rto, config.max_rto),
            phase: Phase::Open,
            high: 0,
            highest_sacked: 0,
            reordering: DUPLICATE_THRESHOLD,
            duplicates: 0,
            reduction: Reduction::default(),
            undo: Undo::default(),
            rack: Rack::new(),
            probe: None,
            is_probe_due: false,
            is_window_probe_due: false,
            persist_backoff: 0,
            probes_unanswered: 0,
            gave_up_probing: false,
            frto: false,
            hold_lost: false,
            timeouts_in_row: 0,
            timer: None,
            last_sent: Instant::ZERO,
            burst_sent: false,
            is_space_check_due: false,
        }
    }

    /// Ends the handshake: data may be sent from sequence number 1.
    pub(crate) fn start(&mut self, now: Instant, mss_bytes: usize) {
        (self.una, self.nxt) = (1, 1);
        self.mss_bytes = mss_bytes;
        self.last_sent = now;
        self.cwnd.start(now);
        self.congestion.start(now, self.nxt);
        self.grow_buffer();
    }

    /// Updates the peer's window.
    pub(crate) fn set_window(&mut self, window_bytes: u64) {
        self.window_bytes = window_bytes;
        self.max_window_bytes = self.max_window_bytes.max(window_bytes);
    }

    // --- data of the application ---

    /// Bytes in the buffer with their overhead, sent or not.
    fn held_bytes(&self) -> usize {
        let sent = usize::try_from(self.nxt - self.una).unwrap_or(usize::MAX);
        let unsent = self.buffer.len_bytes();
        let chunks = unsent.div_ceil(self.chunk_bytes()) + self.sent_chunks();
        unsent + sent + chunks * self.config.send_buffer_overhead_bytes
    }

    /// Maximum size of an unsent chunk (Linux's `tcp_xmit_size_goal`).
    fn chunk_bytes(&self) -> usize {
        let half_window = usize::try_from(self.max_window_bytes / 2).unwrap_or(usize::MAX);
        let mss_bytes = self.mss_bytes.max(1);
        (half_window.min(MAX_CHUNK_BYTES) / mss_bytes).max(1) * mss_bytes
    }

    /// Number of sent chunks that are not acknowledged. A chunk has what Linux would pace in a millisecond, twice or 1.2 times the
    /// window in a round trip, and at least two segments (`tcp_tso_autosize`).
    fn sent_chunks(&self) -> usize {
        let cwnd = u64::from(self.cwnd.segments);
        let percent = match cwnd < u64::from(self.cwnd.threshold) / 2 {
            true => 200,
            false => 120,
        };
        let of_one = cwnd * percent * 10 / self.rtt.srtt_us().max(1);
        let of_one = usize::try_from(of_one).unwrap_or(usize::MAX).max(2);
        (self.board.len() as usize).div_ceil(of_one)
    }

    /// Called after each burst: after an acknowledgement, a buffer that a writer has filled grows, unless the window is the limit
    /// (Linux's `tcp_check_space`).
    pub(crate) fn check_space(&mut self) {
        if !std::mem::take(&mut self.is_space_check_due) || !self.is_full {
            return;
        }
        if self.in_flight() < self.cwnd.segments {
            self.grow_buffer();
        }
        self.is_full = !self.has_room_again();
    }

    /// Grows the buffer to twice the window; it never shrinks.
    fn grow_buffer(&mut self) {
        let segments = self.cwnd.segments.max(self.config.initial_window_segments);
        let target_bytes = (segments.max(self.reordering + 1) as usize)
            .saturating_mul(2 * self.config.send_buffer_segment_bytes);
        let most = self.config.max_send_buffer_bytes;
        let target_bytes = target_bytes
            .max(self.config.min_send_buffer_bytes)
            .min(most);
        self.buffer_limit_bytes = self.buffer_limit_bytes.max(target_bytes);
    }

    /// As in Linux: a writer that filled the buffer is woken when a third of it is free, and with a limit on unsent bytes when they
    /// are below half of it.
    fn has_room_again(&self) -> bool {
        let low = self
            .config
            .notsent_lowat_bytes
            .is_none_or(|most| self.buffer.len_bytes() * 2 < most);
        low && self.held_bytes() * 3 <= self.buffer_limit_bytes * 2
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.admit(usize::MAX).0
    }

    /// The number of bytes that a write of `wanted` bytes stores, and the size of the last unsent chunk after it. As in Linux's
    /// `tcp_sendmsg_locked`, a write first fills the last chunk. It then stores whole chunks until the buffer is full.
    fn admit(&self, wanted: usize) -> (usize, usize) {
        let (mut admitted, mut last) = (0, self.last_chunk_bytes.min(self.buffer.len_bytes()));
        if self.fin != Fin::NotYet || self.is_full {
            return (admitted, last);
        }
        let chunk_bytes = self.chunk_bytes();
        let mut held = self.held_bytes();
        let most_unsent = self.config.notsent_lowat_bytes.unwrap_or(usize::MAX);
        let mut room = match last {
            0 => 0,
            last => chunk_bytes.saturating_sub(last),
        };
        loop {
            let now = room.min(wanted - admitted);
            (admitted, last, held) = (admitted + now, last + now, held + now);
            let unsent = self.buffer.len_bytes() + admitted;
            let is_full = held >= self.buffer_limit_bytes || unsent >= most_unsent;
            if admitted == wanted || is_full {
                return (admitted, last);
            }
            held += self.config.send_buffer_overhead_bytes;
            (last, room) = (0, chunk_bytes);
        }
    }

    pub(crate) fn write(&mut self, now: Instant, bytes: &[u8]) -> usize {
        let (admitted, last) = self.admit(bytes.len());
        if admitted > 0 {
            self.restart_after_idle(now);
            self.buffer.write(&bytes[..admitted], self.mss_bytes);
            self.last_chunk_bytes = last;
        }
        self.is_full |= admitted < bytes.len();
        admitted
    }

    pub(crate) fn queue_fin(&mut self) {
        if self.fin == Fin::NotYet {
            self.fin = Fin::Queued;
        }
    }

    /// Once for each idle time: the parts of a vectored write are written one after the other before the first segment is sent.
    fn restart_after_idle(&mut self, now: Instant) {
        let (idle, rto) = (jiffies::between(self.last_sent, now), self.rtt.rto());
        let is_idle = self.board.is_empty() && self.buffer.is_empty();
        if self.config.slow_start_after_idle && is_idle && idle > rto {
            let cut = self
                .cwnd
                .restart(now, idle, rto, self.config.initial_window_segments);
            self.stats.idle_restarts += u64::from(cut);
        }
    }

    // --- segments that may be sent ---

    pub(crate) fn has_unsent(&self) -> bool {
        !self.buffer.is_empty() || self.fin == Fin::Queued
    }

    /// Sequence numbers of the next new segment, if there is one.
    pub(crate) fn next_seq_len(&self) -> Option<u64> {
        match self.buffer.next_len(self.mss_bytes) {
            Some(len) => Some(len as u64),
            None if self.fin == Fin::Queued => Some(1),
            None => None,
        }
    }

    /// True if the whole next segment is in the peer's window: parts are not sent.
    pub(crate) fn window_admits_next(&self) -> bool {
        let end = self.una + self.window_bytes;
        self.next_seq_len().is_some_and(|len| self.nxt + len <= end)
    }

    /// Number of segments delivered above the first gap, with or without SACK.
    pub(crate) fn sacked(&self) -> u32 {
        if self.sack {
            self.board.sacked()
        } else {
            self.duplicates
        }
    }

    /// Segments believed to be in the network.
    pub(crate) fn in_flight(&self) -> u32 {
        self.board.in_flight().saturating_sub(self.duplicates)
    }

    // --- the timer ---

    /// Sets the timer at `now` for `wait`.
    pub(crate) fn set_timer(&mut self, kind: TimerKind, now: Instant, wait: Duration) {
        self.timer = Some((kind, jiffies::timer(now, wait, self.config.coarse_timers)));
    }

    /// Remaining time of the retransmission timeout of the first segment.
    pub(crate) fn remaining_rto(&self, now: Instant) -> Duration {
        let head = self.board.head().map_or(now, |head| head.sent_at);
        (head + self.rtt.rto()) - now
    }

    /// Arms the retransmission timer for the data in flight, or disarms it.
    pub(crate) fn rearm_rto(&mut self, now: Instant) {
        if self.board.is_empty() {
            self.timer = None;
            return;
        }
        // The elapsed time of a probe or reordering timer counts.
        let delay = match self.timer {
            Some((TimerKind::Reorder | TimerKind::LossProbe, _)) => {
                self.remaining_rto(now).max(Duration::from_millis(1))
            }
            _ => self.rtt.rto(),
        };
        self.set_timer(TimerKind::Retransmit, now, delay);
    }

    /// Handles the timer.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let Some((kind, _)) = self.timer.take_if(|(_, at)| *at <= now) else {
            return;
        };
        match kind {
            TimerKind::Retransmit => self.on_rto(now),
            TimerKind::LossProbe => self.on_probe_timeout(now),
            TimerKind::Reorder => self.on_reorder_timeout(now),
            TimerKind::Persist => self.on_persist_timeout(now),
        }
    }

    /// Drops all data and timers: the connection has ended.
    pub(crate) fn clear(&mut self) {
        self.buffer.clear();
        self.board.clear();
        self.timer = None;
        self.is_probe_due = false;
        self.is_window_probe_due = false;
    }
}
