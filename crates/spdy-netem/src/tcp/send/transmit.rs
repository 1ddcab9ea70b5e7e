//! Selects the next segment to send: a probe, a lost segment, or a new one.

use bytes::Bytes;
use spdy_clock::Instant;

use super::scoreboard::SentSegment;
use super::sender::{Fin, Sender, TimerKind};
use crate::tcp::recovery::ack::clock_ms;
use crate::tcp::recovery::recovery_state::{PendingProbe, Phase};

/// The part of a segment that the sender decides.
#[derive(Clone, Debug)]
pub(crate) struct OutgoingSegment {
    pub(crate) seq: u64,
    pub(crate) payload: Bytes,
    pub(crate) push: bool,
    pub(crate) fin: bool,
}

impl OutgoingSegment {
    fn of(sent: &SentSegment) -> Self {
        Self {
            seq: sent.seq,
            payload: sent.payload.clone(),
            push: sent.push,
            fin: sent.fin,
        }
    }
}

impl Sender {
    /// The next segment with data or FIN; `None` if nothing may be sent.
    pub(crate) fn poll_transmit(&mut self, now: Instant) -> Option<OutgoingSegment> {
        if std::mem::take(&mut self.is_probe_due)
            && let Some(probe) = self.send_probe(now)
        {
            return Some(probe);
        }
        if let Some(index) = self.next_resend() {
            return Some(self.resend(now, index));
        }
        if self.may_send_new() {
            return Some(self.send_new(now, true));
        }
        if std::mem::take(&mut self.hold_lost) && self.nxt <= self.high {
            // F-RTO needs new data, but there is none.
            self.frto = false;
            if let Some(index) = self.next_resend() {
                return Some(self.resend(now, index));
            }
        }
        self.end_burst(now);
        self.check_space();
        None
    }

    fn next_resend(&self) -> Option<usize> {
        let may = !self.hold_lost && self.in_flight() < self.cwnd.segments;
        if may { self.board.next_lost() } else { None }
    }

    fn may_send_new(&self) -> bool {
        self.in_flight() < self.cwnd.segments && self.window_admits_next()
    }

    fn send_new(&mut self, now: Instant, arms_probe: bool) -> OutgoingSegment {
        if self.in_flight() == 0 {
            self.congestion.on_resume(now, self.last_sent);
        }
        let was_empty = self.board.is_empty();
        let (payload, push) = self.buffer.take(self.mss_bytes).unwrap_or_default();
        let data_end = self.nxt + payload.len() as u64;
        // The FIN is sent with the last data if the peer's window includes it.
        let fin = self.fin == Fin::Queued
            && self.buffer.is_empty()
            && (payload.is_empty() || data_end < self.una + self.window_bytes);
        if fin {
            self.fin = Fin::Sent;
        }
        let sent = SentSegment {
            seq: self.nxt,
            end: data_end + u64::from(fin),
            payload,
            push: push || fin,
            fin,
            sent_at: now,
            sacked: false,
            lost: false,
            resent: false,
            ever_resent: false,
        };
        let outgoing = OutgoingSegment::of(&sent);
        self.nxt = sent.end;
        self.last_sent = now;
        self.board.push(sent);
        if self.phase == Phase::Recovery {
            self.reduction.sent += 1;
        }
        if was_empty
            || matches!(
                self.timer,
                Some((TimerKind::LossProbe | TimerKind::Persist, _))
            )
        {
            self.rearm_rto(now);
        }
        if arms_probe {
            self.schedule_probe(now, false);
        }
        self.burst_sent = true;
        outgoing
    }

    fn resend(&mut self, now: Instant, index: usize) -> OutgoingSegment {
        let outgoing = OutgoingSegment::of(self.board.resend(index, now, true));
        self.stats.retransmits += 1;
        self.note_resend(clock_ms(now));
        self.last_sent = now;
        if self.phase == Phase::Recovery {
            self.reduction.sent += 1;
        }
        if index == 0 && !matches!(self.timer, Some((TimerKind::Reorder, _))) {
            self.set_timer(TimerKind::Retransmit, now, self.rtt.rto());
        }
        outgoing
    }

    /// Sends a tail loss probe: new data beyond the window's limit, or the last segment again.
    fn send_probe(&mut self, now: Instant) -> Option<OutgoingSegment> {
        if self.window_admits_next() {
            let outgoing = self.send_new(now, false);
            self.probe = Some(PendingProbe {
                end: self.nxt,
                was_repeat: false,
            });
            return Some(outgoing);
        }
        let tail = self.board.tail_index()?;
        let outgoing = OutgoingSegment::of(self.board.resend(tail, now, false));
        self.stats.retransmits += 1;
        self.last_sent = now;
        self.probe = Some(PendingProbe {
            end: self.nxt,
            was_repeat: true,
        });
        Some(outgoing)
    }

    /// Ends a burst: records whether the window was its limit.
    fn end_burst(&mut self, now: Instant) {
        let is_full = self.in_flight() >= self.cwnd.segments;
        let sent = std::mem::take(&mut self.burst_sent);
        if sent || (is_full && self.has_unsent()) {
            let out = self.board.len();
            self.cwnd.note_use(self.una, self.nxt, out, is_full);
            let may_cut = self.config.slow_start_after_idle && self.phase == Phase::Open;
            // A full send buffer means that the application was not the limit.
            let may_cut = may_cut && !self.is_full;
            let initial = self.config.initial_window_segments;
            let after = may_cut.then(|| self.rtt.rto());
            let cut = self.cwnd.validate(now, out, initial, after);
            self.stats.idle_restarts += u64::from(cut);
        }
        self.check_persist(now);
    }
}
