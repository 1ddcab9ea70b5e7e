//! An era of TCP, with its options.

use std::time::Duration;

/// Growth of the window after slow start, and its reduction on a loss.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CongestionControl {
    /// RFC 9438: a cubic of the time since the last loss; falls to 0.7.
    Cubic,
    /// RFC 5681: a segment a round trip; falls to a half.
    Reno,
}

/// When a segment counts as lost before the retransmission timer expires.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LossDetection {
    /// RFC 8985: a later segment was delivered, and a reordering window has passed.
    Rack,
    /// RFC 6675: three segments above it were selectively acknowledged (three duplicate
    /// acknowledgements, if SACK is off).
    DupAck,
}

/// An era with its options. Each is of one side only; those that need both sides (timestamps, SACK, window scale) are negotiated in
/// the handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TcpConfig {
    /// Segments that may be sent before the first acknowledgement. 10 since Linux 2.6.39 (RFC 6928), 3 before (RFC 3390).
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
    /// Shift of the windows that this side announces; without it they are at most 65,535 bytes.
    pub window_scale: Option<u8>,
    /// Detection of losses. RACK is Linux's default since 4.18.
    pub loss_detection: LossDetection,
    /// Tail loss probe (RFC 8985 §7): since 3.10.
    pub tlp: bool,
    /// Proportional rate reduction in recovery (RFC 6937): since 3.2. Without it the window shrinks by one segment for every two
    /// acknowledgements.
    pub prr: bool,
    /// F-RTO (RFC 5682): after a timeout send new data first, to detect whether it was spurious.
    pub frto: bool,
    /// Undoing a window reduction whose retransmissions proved unnecessary, by timestamps (RFC 3522) or duplicate SACKs.
    pub undo: bool,
    /// Returning to the initial window after an idle timeout (RFC 2861).
    pub slow_start_after_idle: bool,
    /// Timers are never early, and far ones are coarse: since 4.8. Before, each fired at a tick, up to 4 ms early.
    pub coarse_timers: bool,
    /// First timeout of a SYN, and of data without a round-trip sample. 1 s since 3.1 (RFC 6298),
    /// 3 s before.
    pub initial_rto: Duration,
    /// Minimum variance term of the timeout; Linux has 200 ms where RFC 6298 has 1 s.
    pub min_rto: Duration,
    /// Maximum of the exponential back-off.
    pub max_rto: Duration,
    /// Repetitions of a SYN before the client gives up.
    pub syn_retries: u32,
    /// Number of repetitions at equal intervals before the interval doubles: 4 since 6.5, none before.
    pub syn_linear_retries: u32,
    /// Repetitions of a SYN-ACK before the server gives up.
    pub syn_ack_retries: u32,
    /// Consecutive repetitions of data, or window probes, without a response before an open connection is given up. Linux limits the time
    /// instead: to the time of this number of repetitions with a timeout of 200 ms, 924.6 s for 15. With longer timeouts it repeats less
    /// often.
    pub data_retries: u32,
    /// Whether acknowledgements are delayed.
    pub delayed_ack: bool,
    /// Minimum delay of an acknowledgement, and the usual one.
    pub delayed_ack_min: Duration,
    /// Maximum delay of an acknowledgement.
    pub delayed_ack_max: Duration,
    /// Segments at the start that are acknowledged at once, so that the sender's window grows.
    pub quick_acks: u32,
    /// Receive window announced at first, bytes.
    pub initial_receive_window_bytes: u64,
    /// Initial size of the receive buffer, bytes; the window grows to this as segments arrive. Linux counts its own overhead; Linux
    /// 6.18 announces 80 KiB for full segments on a plain link.
    pub receive_buffer_bytes: u64,
    /// Maximum size by autotuning, bytes; equal to `receive_buffer_bytes` disables it.
    pub max_receive_buffer_bytes: u64,
    /// Minimum size of the send buffer, bytes.
    pub min_send_buffer_bytes: usize,
    /// Maximum size as the window grows, bytes.
    pub max_send_buffer_bytes: usize,
    /// Size of the send buffer for each segment of twice the congestion window, bytes. Linux reserves the maximum cost of a segment,
    /// 4,352 bytes since 3.13: 87,040 bytes for a window of ten. The buffer grows only after a writer has filled it.
    pub send_buffer_segment_bytes: usize,
    /// Memory of a chunk of the send buffer in addition to its data, bytes: 960 in Linux 6.18 (`sk_buff` and its head). A sent chunk has
    /// two segments or more, an unsent one up to 64 KB.
    pub send_buffer_overhead_bytes: usize,
    /// Limit on bytes that were written but not sent, like Linux's `TCP_NOTSENT_LOWAT`. With `None`, its default, only the send
    /// buffer limits them; an urgent byte may then wait behind a whole buffer.
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
            coarse_timers: true,
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
            send_buffer_overhead_bytes: 960,
            notsent_lowat_bytes: None,
        }
    }

    /// Linux 3.2 to 3.9 (2012-13), the servers that spoke SPDY: initial window 10, a SYN timer of 1 s, CUBIC with HyStart and PRR,
    /// but neither tail loss probes nor RACK, and a receive window that begins at ten segments. Early retransmit (3.5) is not
    /// modelled.
    #[must_use]
    pub const fn y2013() -> Self {
        Self {
            loss_detection: LossDetection::DupAck,
            tlp: false,
            coarse_timers: false,
            syn_retries: 5,
            syn_linear_retries: 0,
            initial_receive_window_bytes: 10 * 1_460,
            // Sent chunks have up to 64 KB too (before Linux 3.12), so their cost is small.
            send_buffer_overhead_bytes: 0,
            ..Self::today()
        }
    }

    /// Linux 2.6.2x (2008-09), the servers of the first SPDY measurements: initial window 3, a SYN timer of 3 s, CUBIC without
    /// HyStart, recovery by duplicate acknowledgements and rate halving, a receive window that begins at four segments. Not compared
    /// with a machine of that year.
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
