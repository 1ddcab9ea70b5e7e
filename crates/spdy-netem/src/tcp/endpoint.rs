//! The endpoint: its states, its public methods, and the order of segments.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use spdy_clock::Instant;

use super::config::TcpConfig;
use super::handshake::{FALLBACK_RTO, Handshake, SynTimeout};
use super::receive::receiver::Receiver;
use super::recovery::ack::clock_ms;
use super::send::sender::{Fin, Sender};
use super::send::transmit::OutgoingSegment;
use super::state::State;
use super::stats::TcpStats;
use crate::segment::{
    Flags, HEADERS_LEN_BYTES, MAX_SACK_BLOCKS, MSS_BYTES, MTU_BYTES, SackBlocks, Segment,
    SynOptions, TIMESTAMPS_LEN_BYTES, Timestamps,
};

/// One endpoint of a TCP connection: no socket, no clock, no task.
///
/// A driver reports events ([`handle_segment`](Self::handle_segment), [`handle_timeout`](Self::handle_timeout), or a method such as
/// [`write`](Self::write)), calls [`poll_transmit`](Self::poll_transmit) until it returns `None`, and calls again no later than
/// [`poll_timeout`](Self::poll_timeout). As in a kernel, segments that an event causes should be sent before the application is
/// notified: an urgent acknowledgement does not wait for a response.
#[derive(Clone, Debug)]
pub struct Tcp {
    config: TcpConfig,
    state: State,
    handshake: Handshake,
    sender: Sender,
    receiver: Receiver,
    /// `close` was called before the end of the handshake.
    closes_early: bool,
    /// An RST with this sequence number must be sent.
    reset_due: Option<u64>,
    error: Option<io::ErrorKind>,
}

impl Tcp {
    /// Active open: a SYN is ready.
    #[must_use]
    pub fn connect(config: TcpConfig, _now: Instant) -> Self {
        Self::new(config, State::SynSent, Handshake::opener(&config))
    }

    /// Passive open: pass the SYN to [`handle_segment`](Self::handle_segment).
    #[must_use]
    pub fn listen(config: TcpConfig, _now: Instant) -> Self {
        Self::new(config, State::Listen, Handshake::listener(&config))
    }

    fn new(config: TcpConfig, state: State, handshake: Handshake) -> Self {
        Self {
            config,
            state,
            handshake,
            sender: Sender::new(config),
            receiver: Receiver::new(&config),
            closes_early: false,
            reset_due: None,
            error: None,
        }
    }

    // --- events ---

    /// Handles a segment that arrived at `now`.
    pub fn handle_segment(&mut self, now: Instant, segment: Segment) {
        self.sender.stats.segments_received += 1;
        match self.state {
            State::Listen => self.handle_syn(&segment),
            State::SynSent => self.handle_syn_answer(now, &segment),
            State::SynReceived => self.handle_handshake_ack(now, segment),
            State::Closed => self.handle_stray(&segment),
            _ => self.handle_synchronised(now, segment),
        }
    }

    /// Responds to every segment for a closed endpoint with an RST (RFC 9293 §3.10.7.1). If there were only one and it were lost, the
    /// peer would repeat its last segment for a quarter of an hour.
    fn handle_stray(&mut self, segment: &Segment) {
        if segment.flags.ack && !segment.flags.rst {
            self.reset_due = Some(segment.ack);
        }
    }

    fn handle_syn(&mut self, segment: &Segment) {
        if segment.flags.rst || !segment.flags.syn || segment.flags.ack {
            return;
        }
        self.receiver.take_syn(segment);
        self.handshake.note_peer(segment);
        self.handshake.is_due = true;
        self.sender.set_window(segment.window_bytes);
        self.state = State::SynReceived;
    }

    fn handle_syn_answer(&mut self, now: Instant, segment: &Segment) {
        let acks_ours = segment.flags.ack && segment.ack == 1;
        if segment.flags.rst {
            if acks_ours {
                self.end(Some(io::ErrorKind::ConnectionRefused));
            }
            return;
        }
        if !acks_ours || !segment.flags.syn {
            return; // a simultaneous open is not modelled
        }
        self.receiver.take_syn(segment);
        self.handshake.note_peer(segment);
        self.establish(now, segment);
        self.receiver.delayed.is_due = true;
        self.receiver.delayed.is_urgent = true;
    }

    fn handle_handshake_ack(&mut self, now: Instant, segment: Segment) {
        if segment.flags.rst {
            self.end(Some(io::ErrorKind::ConnectionReset));
        } else if segment.flags.syn {
            self.handshake.is_due = true; // its SYN again: our response was lost, or is late
        } else if segment.flags.ack && segment.ack == 1 {
            self.establish(now, &segment);
            if segment.seq_len() > 0 || segment.seq > 1 {
                self.handle_synchronised(now, segment);
            }
        }
    }

    /// Ends the handshake, which `segment` completed.
    fn establish(&mut self, now: Instant, segment: &Segment) {
        let peer = self.handshake.peer.unwrap_or(SynOptions {
            mss_bytes: 536, // RFC 9293 §3.7.1: the default of a peer without the option
            sack: false,
            window_scale: None,
        });
        let clock = self.config.timestamps && self.handshake.peer_has_clock;
        let options = if clock { TIMESTAMPS_LEN_BYTES } else { 0 };
        let scale = self
            .config
            .window_scale
            .filter(|_| peer.window_scale.is_some());
        let echo_ms = segment
            .timestamps
            .map(|times| times.echo_ms)
            .filter(|_| clock);

        self.sender.sack = self.config.sack && peer.sack;
        self.sender.timestamps = clock;
        self.sender.set_window(segment.window_bytes);
        self.sender.window_seq = segment.seq;
        if self.handshake.was_hard(echo_ms) {
            self.sender.cwnd.segments = 1;
        }
        self.sender
            .start(now, peer.mss_bytes.min(MSS_BYTES) - options);
        match self.handshake.round_trip(now, echo_ms) {
            Some(trip) => {
                let us = u64::try_from(trip.as_micros()).unwrap_or(u64::MAX);
                self.sender.rtt.note_min(us);
                self.sender.rtt.sample(us, 1, 1);
            }
            None => self.sender.rtt.start_over(FALLBACK_RTO),
        }
        self.receiver.start(now, scale);
        self.handshake.timer = None;
        self.handshake.is_due = false;
        self.state = State::Established;
        if std::mem::take(&mut self.closes_early) {
            self.close(now);
        }
    }

    fn handle_synchronised(&mut self, now: Instant, segment: Segment) {
        if segment.flags.rst {
            if self.receiver.accepts(&segment) {
                self.end(Some(io::ErrorKind::ConnectionReset));
            }
            return;
        }
        if segment.flags.syn || !segment.flags.ack || !self.receiver.accepts(&segment) {
            self.receiver.refuse(&segment);
            return;
        }
        self.receiver.note_clock(&segment);
        let fin_was_out = self.sender.fin == Fin::Sent;
        self.sender.handle_ack(now, &segment);
        if fin_was_out && self.sender.fin == Fin::Acked {
            self.state = self.state.after_fin_acked();
        }
        let had_fin = self.receiver.fin_reached;
        let srtt = Some(self.sender.rtt.srtt_us())
            .filter(|us| *us > 0)
            .map(Duration::from_micros);
        self.receiver
            .take(now, segment, self.sender.rtt.rto(), srtt);
        if self.receiver.fin_reached && !had_fin {
            self.state = self.state.after_peer_fin();
            // Once we have also sent FIN, no segment of ours will carry the acknowledgement.
            self.receiver.delayed.is_urgent |= self.state != State::CloseWait;
        }
        if self.state == State::Closed {
            self.end(None);
        }
    }

    /// Handles the timer of [`poll_timeout`](Self::poll_timeout); does nothing before it.
    pub fn handle_timeout(&mut self, now: Instant) {
        match self.handshake.handle_timeout(now, self.config.max_rto) {
            SynTimeout::GaveUp => self.end(Some(io::ErrorKind::TimedOut)),
            SynTimeout::Resend | SynTimeout::Pending => {}
        }
        self.sender.handle_timeout(now);
        if self.sender.has_given_up() {
            self.end(Some(io::ErrorKind::TimedOut));
        }
        if self.receiver.delayed.on_timeout(now, self.sender.rtt.rto()) {
            self.sender.stats.delayed_acks += 1;
        }
    }

    // --- actions ---

    /// The next segment to send at `now`; `None` if there is none.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> {
        let segment = self.next_segment(now)?;
        self.sender.stats.segments_sent += 1;
        self.sender.stats.ip_bytes_sent += segment.ip_len_bytes() as u64;
        Some(segment)
    }

    fn next_segment(&mut self, now: Instant) -> Option<Segment> {
        if let Some(seq) = self.reset_due.take() {
            let flags = Flags {
                rst: true,
                ack: true,
                ..Flags::default()
            };
            return Some(self.empty_segment(seq, flags));
        }
        if self.handshake.is_due {
            return Some(self.syn(now));
        }
        if !self.state.is_synchronised() {
            return None;
        }
        if let Some(outgoing) = self.sender.poll_transmit(now) {
            self.receiver.delayed.on_data_sent(now);
            return Some(self.build_segment(now, outgoing));
        }
        let nothing = |seq| OutgoingSegment {
            seq,
            payload: Bytes::new(),
            push: false,
            fin: false,
        };
        if std::mem::take(&mut self.sender.is_window_probe_due) {
            // One before the acknowledged sequence number: never acceptable, so there is always a response.
            return Some(self.build_segment(now, nothing(self.sender.una - 1)));
        }
        if self.receiver.delayed.is_urgent {
            return Some(self.build_segment(now, nothing(self.sender.nxt)));
        }
        None
    }

    fn empty_segment(&self, seq: u64, flags: Flags) -> Segment {
        Segment {
            seq,
            ack: self.receiver.next,
            flags,
            window_bytes: 0,
            sack: SackBlocks::default(),
            timestamps: None,
            syn_options: None,
            payload: Bytes::new(),
        }
    }

    fn syn(&mut self, now: Instant) -> Segment {
        if self.handshake.on_sent(now) {
            self.sender.stats.syn_retransmits += 1;
        }
        let answers = self.state == State::SynReceived;
        let peer = self.handshake.peer;
        // A SYN-ACK has only options that the SYN offered.
        let clock = self.config.timestamps && (!answers || self.handshake.peer_has_clock);
        let sack = self.config.sack && peer.is_none_or(|peer| peer.sack);
        let scale = peer.is_none_or(|peer| peer.window_scale.is_some());
        let times = Timestamps {
            value_ms: clock_ms(now),
            echo_ms: self.receiver.peer_clock_ms,
        };
        Segment {
            window_bytes: self.receiver.syn_window(),
            timestamps: clock.then_some(times),
            syn_options: Some(SynOptions {
                mss_bytes: MSS_BYTES,
                sack,
                window_scale: self.config.window_scale.filter(|_| scale),
            }),
            ..self.empty_segment(
                0,
                Flags {
                    syn: true,
                    ack: answers,
                    ..Flags::default()
                },
            )
        }
    }

    /// Completes the sender's segment with the receiver's fields.
    fn build_segment(&mut self, now: Instant, outgoing: OutgoingSegment) -> Segment {
        let OutgoingSegment {
            seq,
            payload,
            push,
            fin,
        } = outgoing;
        let clock = self.sender.timestamps;
        let times = Timestamps {
            value_ms: clock_ms(now),
            echo_ms: self.receiver.peer_clock_ms,
        };
        let sack = match self.sender.sack {
            true => self
                .receiver
                .take_sack_blocks(sack_room(payload.len(), clock)),
            false => SackBlocks::default(),
        };
        let window_bytes = self.receiver.announce_window();
        self.receiver.on_ack_sent();
        Segment {
            window_bytes,
            sack,
            timestamps: clock.then_some(times),
            payload,
            ..self.empty_segment(
                seq,
                Flags {
                    ack: true,
                    psh: push,
                    fin,
                    ..Flags::default()
                },
            )
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let sender = self.sender.timer.map(|(_, at)| at);
        let receiver = self.receiver.delayed.timer;
        [self.handshake.timer, sender, receiver]
            .into_iter()
            .flatten()
            .min()
    }

    // --- the application ---

    /// True after the handshake; stays `true` to the end.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.state.is_synchronised() || (self.state == State::Closed && self.sender.nxt > 0)
    }

    /// Bytes that [`write`](Self::write) would accept now. 0 before the end of the handshake, after [`close`](Self::close), and, once
    /// a write was cut short, until a third of the send buffer is free again. The buffer follows twice the congestion window, within
    /// the limits of the config.
    #[must_use]
    pub fn send_capacity(&self) -> usize {
        match self.state {
            State::Established | State::CloseWait => self.sender.capacity_bytes(),
            _ => 0,
        }
    }

    /// Writes as much of `bytes` as fits. Returns the number of bytes.
    pub fn write(&mut self, now: Instant, bytes: &[u8]) -> usize {
        match self.state {
            State::Established | State::CloseWait => self.sender.write(now, bytes),
            _ => 0,
        }
    }

    /// Removes up to `max` received bytes, in order; the window opens again. Returns one segment's payload at a time, without a copy:
    /// call it until it is empty to read everything.
    pub fn read(&mut self, now: Instant, max: usize) -> Bytes {
        let bytes = self.receiver.read(now, max);
        if !self.state.is_synchronised() {
            self.receiver.stop();
        }
        bytes
    }

    /// Bytes that [`read`](Self::read) can return.
    #[must_use]
    pub fn readable_bytes(&self) -> usize {
        self.receiver.ready_bytes()
    }

    /// The peer sent FIN and everything before it was read.
    #[must_use]
    pub fn is_read_closed(&self) -> bool {
        self.receiver.fin_reached && self.receiver.ready_bytes() == 0
    }

    /// Sends FIN after the written data. Reading continues.
    pub fn close(&mut self, _now: Instant) {
        match self.state {
            State::Listen | State::SynSent => self.end(None),
            State::SynReceived => self.closes_early = true,
            State::Established | State::CloseWait => {
                self.sender.queue_fin();
                self.state = self.state.after_close();
            }
            _ => {}
        }
    }

    /// Sends RST: the connection ends at once.
    pub fn abort(&mut self, _now: Instant) {
        if self.state.is_synchronised() && self.state != State::TimeWait {
            self.reset_due = Some(self.sender.nxt);
        } else if self.state == State::SynReceived {
            self.reset_due = Some(1);
        }
        self.end(None);
    }

    /// Both sides have ended (or reset): nothing more is sent without a segment from the peer.
    ///
    /// The side that closed first still responds to a repeated FIN, so keep passing it segments while the other side is open.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed | State::TimeWait)
    }

    /// The peer reset or refused the connection, or repetitions of SYN or data ran out.
    #[must_use]
    pub fn error(&self) -> Option<io::ErrorKind> {
        self.error
    }

    fn end(&mut self, error: Option<io::ErrorKind>) {
        self.state = State::Closed;
        self.error = self.error.or(error);
        self.handshake.timer = None;
        self.handshake.is_due = false;
        self.sender.clear();
        self.receiver.stop();
    }

    // --- observable state ---

    /// State of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Its counters.
    #[must_use]
    pub fn stats(&self) -> TcpStats {
        self.sender.stats
    }

    /// Its settings.
    #[must_use]
    pub fn config(&self) -> &TcpConfig {
        &self.config
    }

    /// Smoothed round trip; `None` before the first sample.
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        Some(self.sender.rtt.srtt_us())
            .filter(|us| *us > 0)
            .map(Duration::from_micros)
    }

    /// Congestion window, segments.
    #[must_use]
    pub fn window_segments(&self) -> u32 {
        self.sender.cwnd.segments
    }

    /// Sets the congestion window of an established connection that has sent no data, segments. False, and no change, after that.
    pub fn set_initial_window(&mut self, segments: u32) -> bool {
        let has_sent_nothing = self.is_established() && self.sender.nxt == 1;
        if has_sent_nothing {
            self.sender.cwnd.segments = segments;
        }
        has_sent_nothing
    }

    /// Bytes written and never sent.
    #[must_use]
    pub fn unsent_bytes(&self) -> usize {
        self.sender.buffer.len_bytes()
    }

    /// Sequence numbers sent and not acknowledged.
    #[must_use]
    pub fn unacknowledged_bytes(&self) -> u64 {
        self.sender.nxt - self.sender.una
    }
}

/// SACK blocks that fit beside a payload: the option has 4 bytes and 8 for each block, and all options together at most 40.
fn sack_room(payload_len: usize, clock: bool) -> usize {
    let clock = if clock { TIMESTAMPS_LEN_BYTES } else { 0 };
    let in_packet = (MTU_BYTES - HEADERS_LEN_BYTES - clock).saturating_sub(payload_len);
    let in_options = 40 - clock;
    (in_packet.min(in_options).saturating_sub(4) / 8).min(MAX_SACK_BLOCKS)
}
