//! Tracks the send windows of HTTP/2 streams, and the bytes sent on them, by parsing the wire (RFC 9113 §6.9): h2 reports neither.

use spdy::runtime::SharedRuntime;
use spdy_session::observe::Direction;

use crate::shims::h2::write_scheduler::WriteScheduler;
use crate::shims::wire_observer::{ByteObserver, FrameHead, FrameScanner};

/// Frame types (RFC 9113 §6).
const DATA: u8 = 0;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
/// Flag of a SETTINGS frame.
const ACK: u8 = 1;
/// SETTINGS_INITIAL_WINDOW_SIZE.
const INITIAL_WINDOW_SIZE: u16 = 4;

/// Reports the frames of a connection to its [`WriteScheduler`].
pub(crate) struct WindowTracker {
    sent: FrameScanner,
    received: FrameScanner,
    scheduler: WriteScheduler,
    runtime: SharedRuntime,
}

impl WindowTracker {
    /// A tracker for a client's connection.
    pub(crate) fn for_client(turns: WriteScheduler, runtime: SharedRuntime) -> Self {
        Self {
            sent: FrameScanner::for_client(),
            received: FrameScanner::default(),
            scheduler: turns,
            runtime,
        }
    }

    /// A tracker for a server's connection.
    pub(crate) fn for_server(turns: WriteScheduler, runtime: SharedRuntime) -> Self {
        Self {
            sent: FrameScanner::default(),
            received: FrameScanner::for_client(),
            scheduler: turns,
            runtime,
        }
    }

    fn sent(&mut self, bytes: &[u8]) {
        let (turns, runtime) = (&self.scheduler, &self.runtime);
        let part = |frame: FrameHead, len| {
            if frame.kind == DATA && len > 0 {
                turns.record_sent(frame.stream_id, len, runtime.now());
            }
        };
        self.sent.scan_parts(bytes, part, |_, _| {});
    }

    fn received(&mut self, bytes: &[u8]) {
        let turns = &self.scheduler;
        self.received
            .scan(bytes, |frame, payload| match (frame.kind, payload) {
                (SETTINGS, entries) if frame.flags & ACK == 0 => {
                    let entries = entries.chunks_exact(6);
                    for entry in entries {
                        if u16::from_be_bytes([entry[0], entry[1]]) == INITIAL_WINDOW_SIZE {
                            let window = [entry[2], entry[3], entry[4], entry[5]];
                            turns.set_initial_window(u32::from_be_bytes(window));
                        }
                    }
                }
                (WINDOW_UPDATE, &[a, b, c, d]) if frame.stream_id != 0 => {
                    let bytes = u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff;
                    turns.add_credit(frame.stream_id, bytes);
                }
                (RST_STREAM, _) => turns.remove(frame.stream_id),
                _ => {}
            });
    }
}

impl ByteObserver for WindowTracker {
    fn observe(&mut self, direction: Direction, bytes: &[u8]) {
        match direction {
            Direction::Sent => self.sent(bytes),
            Direction::Received => self.received(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::{Context, Waker};

    use spdy::runtime::TokioRuntime;

    use super::*;
    use crate::shims::h2::write_scheduler::tests::{of, ready};
    use spdy_net_core::timing::block_reason::BlockReason;

    #[test]
    fn a_closed_stream_window_does_not_block_other_streams() {
        let turns = WriteScheduler::new();
        let (urgent, other) = (turns.open(1, of(0)), turns.open(3, of(7)));
        assert!(ready(&urgent));
        urgent.sent(65_535);
        assert!(ready(&urgent), "h2 itself limits this stream");
        assert!(ready(&other));
        window_update(&mut watch(&turns), 1, 1);
        assert!(!ready(&other), "one byte of window is enough");
    }

    fn watch(turns: &WriteScheduler) -> WindowTracker {
        let runtime = SharedRuntime::new(TokioRuntime::start());
        let mut watch = WindowTracker::for_server(turns.clone(), runtime);
        watch.observe(Direction::Received, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        watch
    }

    fn window_update(watch: &mut WindowTracker, stream_id: u32, delta: u32) {
        let frame = [
            &[0, 0, 4, 8, 0][..],
            &stream_id.to_be_bytes(),
            &delta.to_be_bytes(),
        ];
        watch.observe(Direction::Received, &frame.concat());
    }

    #[test]
    fn early_credit_counts_however_many_streams_got_late_credit_before() {
        let turns = WriteScheduler::new();
        let mut watch = watch(&turns);
        for nth in 0..=1024 {
            window_update(&mut watch, 2 * nth + 1, 1);
        }
        window_update(&mut watch, 9_001, 100_000);
        let (urgent, other) = (turns.open(9_001, of(0)), turns.open(9_003, of(7)));
        assert!(ready(&urgent));
        urgent.sent(65_535);
        assert!(!ready(&other), "the urgent stream has credit left");
    }

    #[test]
    fn settings_that_close_a_window_release_waiting_streams() {
        struct Flag(std::sync::atomic::AtomicBool);
        impl std::task::Wake for Flag {
            fn wake(self: Arc<Self>) {
                self.0.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        let turns = WriteScheduler::new();
        let mut watch = watch(&turns);
        let (urgent, other) = (turns.open(1, of(0)), turns.open(3, of(7)));
        assert!(ready(&urgent));
        urgent.sent(1_000);
        let flag = Arc::new(Flag(false.into()));
        let waker = Waker::from(flag.clone());
        assert!(
            other
                .poll_ready(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let settings = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 1, 0];
        watch.observe(Direction::Received, &settings);
        assert!(flag.0.load(std::sync::atomic::Ordering::Relaxed));
        assert!(ready(&other));
    }

    #[test]
    fn a_stream_waits_for_its_window_only_once_the_peer_has_had_all_of_it() {
        let turns = WriteScheduler::new();
        let mut watch = watch(&turns);
        let turn = turns.open(1, of(3));
        let awaited = || turn.block_reason(&mut Context::from_waker(Waker::noop()));
        let out = || match awaited() {
            BlockReason::Connection(outflow) => Some(outflow.bytes),
            BlockReason::Window => None,
        };
        turn.sent(65_535);
        assert_eq!(out(), Some(0), "all bytes are unsent");
        let mut data = vec![0, 0xff, 0xff, 0, 0, 0, 0, 0, 1];
        data.resize(9 + 0xffff, b'x');
        // The part of a frame that was sent counts.
        watch.observe(Direction::Sent, &data[..9 + 0xfffe]);
        assert_eq!(out(), Some(0xfffe));
        watch.observe(Direction::Sent, &data[9 + 0xfffe..]);
        assert_eq!(awaited(), BlockReason::Window);
        window_update(&mut watch, 1, 1);
        assert_eq!(out(), Some(0xffff));
        // A frame of another stream, which has no response here.
        watch.observe(Direction::Sent, &[0, 0, 2, 0, 0, 0, 0, 0, 3, 1, 1]);
        assert_eq!(out(), Some(0x1_0001));
    }
}
