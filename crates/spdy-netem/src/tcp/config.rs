//! An era of TCP, and its switches.

use std::time::Duration;

/// How the window grows after slow start, and how far it falls on a loss.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CongestionControl {
    /// RFC 9438: a cubic of the time since the last loss; falls to 0.7.
    Cubic,
    /// RFC 5681: a segment a round trip; falls to a half.
    Reno,
}

/// What makes a segment count as lost before the retransmission timer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LossDetection {
    /// RFC 8985: something sent later was delivered, and a reordering window has passed.
    Rack,
    /// RFC 6675: three segments above it were selectively acknowledged (three duplicate
    /// acknowledgements, if SACK is off).
    DupAck,
}

/// An era and its switches. Everything is one side's own; what needs both (timestamps, SACK, window
/// scale) is agreed in the handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TcpConfig {
    /// Segments that may be sent before the first acknowledgement. 10 since Linux 2.6.39 (RFC 6928),
    /// 3 before (RFC 3390).
    pub initial_window_segments: u32,
    /// Congestion control; CUBIC is Linux's default since 2.6.19.
    pub congestion: CongestionControl,
    /// CUBIC's early end of slow start, by trains of acknowledgements and by delay; since 2.6.29.
    pub hystart: bool,
    /// Selective acknowledgements, and duplicate ones (RFC 2018, RFC 2883).
    pub sack: bool,
    /// The timestamp option: 12 bytes on each segment, a round-trip sample from each
    /// acknowledgement, and the Eifel detection of spurious retransmissions.
    pub timestamps: bool,
    /// Shift of the windows that this side announces; `None` caps them at 65,535 bytes.
    pub window_scale: Option<u8>,
    /// How losses are found. RACK is Linux's default since 4.18.
    pub loss_detection: LossDetection,
    /// Tail loss probe (RFC 8985 §7): since 3.10.
    pub tlp: bool,
    /// Proportional rate reduction in recovery (RFC 6937): since 3.2. Without it the window gives
    /// way by one segment for every two acknowledgements.
    pub prr: bool,
    /// F-RTO (RFC 5682): after a timeout try new data first, to see whether it was spurious.
    pub frto: bool,
    /// Undoing a window reduction whose retransmissions proved needless, by timestamps (RFC 3522)
    /// or duplicate SACKs.
    pub undo: bool,
    /// Falling back to the initial window after an idle timeout (RFC 2861).
    pub slow_start_after_idle: bool,
    /// First timeout of a SYN, and of data without a round-trip sample. 1 s since 3.1 (RFC 6298),
    /// 3 s before.
    pub initial_rto: Duration,
    /// Least part of the timeout that stands for variance; Linux has 200 ms where RFC 6298 says 1 s.
    pub min_rto: Duration,
    /// Most that back-off reaches.
    pub max_rto: Duration,
    /// Repetitions of a SYN before the opener gives up.
    pub syn_retries: u32,
    /// How many of the first repetitions come at equal distances, before they double: 4 since 6.5,
    /// none before.
    pub syn_linear_retries: u32,
    /// Repetitions of a SYN-ACK before the listener gives up.
    pub syn_ack_retries: u32,
    /// Repetitions of data, or window probes, in a row without an answer before an open connection is given up. Linux
    /// goes by time instead: as long as so many take from a timeout of 200 ms on, 924.6 s of 15, which are fewer of longer ones.
    pub data_retries: u32,
    /// Whether acknowledgements are delayed at all.
    pub delayed_ack: bool,
    /// Shortest delay of an acknowledgement, and the usual one.
    pub delayed_ack_min: Duration,
    /// Longest delay of an acknowledgement.
    pub delayed_ack_max: Duration,
    /// Segments that are acknowledged at once at the start, so that the sender's window grows.
    pub quick_acks: u32,
    /// Receive window announced at first, bytes.
    pub initial_receive_window_bytes: u64,
    /// What the receive buffer takes at first, bytes; the window grows to this as segments come. Linux
    /// counts its own overhead; 80 KiB is what 6.18 announces for full segments on a plain link.
    pub receive_buffer_bytes: u64,
    /// What autotuning may make of it, bytes; equal to `receive_buffer_bytes` turns it off.
    pub max_receive_buffer_bytes: u64,
    /// What the send buffer takes at least, bytes.
    pub min_send_buffer_bytes: usize,
    /// What it may grow to as the window grows, bytes.
    pub max_send_buffer_bytes: usize,
    /// What the send buffer grants for each segment of twice the congestion window, bytes. Linux
    /// grants what a segment could cost it at worst, 4,352 since 3.13, which holds three times as much
    /// when it is filled by large writes: 87,040 bytes for a window of ten.
    pub send_buffer_segment_bytes: usize,
    /// Limit on bytes that were written but never sent, as Linux's `TCP_NOTSENT_LOWAT`. `None`, its
    /// default, leaves the send buffer alone to limit; then an urgent byte may stand behind a whole
    /// buffer of others.
    pub notsent_lowat_bytes: Option<usize>,
}

impl TcpConfig {
    /// Linux 6.x with its default settings.
    #[must_use]
    pub const fn today() -> Self {
        Self {
            initial_window_segments: 10,
            congestion: CongestionControl::Cubic,
            hystart: true,
            sack: true,
            timestamps: true,
            window_scale: Some(7),
            loss_detection: LossDetection::Rack,
            tlp: true,
            prr: true,
            frto: true,
            undo: true,
            slow_start_after_idle: true,
            initial_rto: Duration::from_secs(1),
            min_rto: Duration::from_millis(200),
            max_rto: Duration::from_secs(120),
            syn_retries: 6,
            syn_linear_retries: 4,
            syn_ack_retries: 5,
            data_retries: 15,
            delayed_ack: true,
            delayed_ack_min: Duration::from_millis(40),
            delayed_ack_max: Duration::from_millis(200),
            quick_acks: 16,
            initial_receive_window_bytes: 64 * 1024,
            receive_buffer_bytes: 80 * 1024,
            max_receive_buffer_bytes: 6 * 1024 * 1024,
            min_send_buffer_bytes: 16 * 1024,
            max_send_buffer_bytes: 4 * 1024 * 1024,
            send_buffer_segment_bytes: 4_352,
            notsent_lowat_bytes: None,
        }
    }

    /// Linux 3.2 to 3.9 (2012-13), the servers that spoke SPDY: initial window 10, a SYN timer of
    /// 1 s, CUBIC with HyStart and PRR, but neither tail loss probes nor RACK, and a receive window
    /// that starts at ten segments. Early retransmit (3.5) is not modelled.
    #[must_use]
    pub const fn y2013() -> Self {
        Self {
            loss_detection: LossDetection::DupAck,
            tlp: false,
            syn_retries: 5,
            syn_linear_retries: 0,
            initial_receive_window_bytes: 10 * 1_460,
            ..Self::today()
        }
    }

    /// Linux 2.6.2x (2008-09), the servers that SPDY was first measured on: initial window 3, a SYN
    /// timer of 3 s, CUBIC without HyStart, recovery by duplicate acknowledgements and rate halving,
    /// a receive window that starts at four segments. Not checked against a machine of that year.
    #[must_use]
    pub const fn y2009() -> Self {
        Self {
            initial_window_segments: 3,
            hystart: false,
            prr: false,
            frto: false,
            initial_rto: Duration::from_secs(3),
            initial_receive_window_bytes: 4 * 1_460,
            max_receive_buffer_bytes: 4 * 1024 * 1024,
            send_buffer_segment_bytes: 1_448,
            ..Self::y2013()
        }
    }
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self::today()
    }
}
