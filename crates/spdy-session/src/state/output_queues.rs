//! The output queues, one for each kind of frame. `session/write_order.rs` chooses between them.

use std::collections::VecDeque;

use spdy_clock::Instant;
use spdy_frame::frame::Settings;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;

use crate::state::data_scheduler::Scheduler;
use crate::state::stream::{QueueState, Stream};

/// Queued output, by kind.
#[derive(Debug)]
pub(crate) struct OutputQueues {
    /// The initial SETTINGS was queued, or is never sent.
    pub(crate) initial_settings_done: bool,
    pub(crate) initial_settings: Option<Settings>,
    /// The session's window is to be opened to its full size, including everything consumed until then.
    pub(crate) opens_window: bool,
    /// Streams for which a WINDOW_UPDATE is due.
    pub(crate) window_updates: VecDeque<StreamId>,
    pub(crate) resets: VecDeque<(StreamId, RstStatus)>,
    /// Streams whose first item needs no credit.
    pub(crate) heads: VecDeque<StreamId>,
    pub(crate) scheduler: Scheduler,
    /// Streams with too little credit, which wait for more until `delay_until`.
    pub(crate) held: Vec<StreamId>,
    pub(crate) delay_until: Option<Instant>,
    /// DATA queued on all streams, bytes.
    pub(crate) data_bytes: usize,
}

impl OutputQueues {
    pub(crate) fn new(starvation_guard: u32) -> Self {
        Self {
            initial_settings_done: false,
            initial_settings: None,
            opens_window: false,
            window_updates: VecDeque::new(),
            resets: VecDeque::new(),
            heads: VecDeque::new(),
            scheduler: Scheduler::new(starvation_guard),
            held: Vec::new(),
            delay_until: None,
            data_bytes: 0,
        }
    }

    /// Number of streams in all queues.
    #[cfg(test)]
    pub(crate) fn queued_streams(&self) -> usize {
        self.heads.len() + self.scheduler.len() + self.held.len()
    }

    /// True if DATA waits for the transport, or for the session's window. A stream without credit of its own is in no queue: it has
    /// its own timeout.
    pub(crate) fn data_waits(&self) -> bool {
        let behind_a_head = !self.heads.is_empty() && self.data_bytes > 0;
        behind_a_head || !self.scheduler.is_empty() || !self.held.is_empty()
    }

    /// Removes a stream from its queue. Otherwise the queue would grow without limit while streams open and end and nothing can be
    /// written.
    pub(crate) fn forget(&mut self, stream: &Stream) {
        match stream.queue_state {
            QueueState::Unqueued => {}
            QueueState::Head => self.heads.retain(|&id| id != stream.id),
            QueueState::Data => self.scheduler.remove(stream.priority, stream.id),
            QueueState::Delayed => self.held.retain(|&id| id != stream.id),
        }
    }

    /// Puts a stream into the queue for its first item, if it is in no queue. Returns `false` if that item is DATA without credit:
    /// the stream is then in no queue until WINDOW_UPDATE.
    pub(crate) fn queue(&mut self, stream: &mut Stream, has_windows: bool) -> bool {
        if stream.queue_state != QueueState::Unqueued {
            return true;
        }
        match stream.first_is_head() {
            Some(true) => {
                stream.queue_state = QueueState::Head;
                self.heads.push_back(stream.id);
            }
            Some(false) if has_windows && stream.send.credit() == 0 => return false,
            Some(false) => {
                stream.queue_state = QueueState::Data;
                self.scheduler.push(stream.priority, stream.id);
            }
            None => {}
        }
        true
    }

    /// Queues a WINDOW_UPDATE if one is due for the stream.
    pub(crate) fn queue_grant(&mut self, stream: &mut Stream) {
        if stream.receive_window.is_update_due() && !stream.grant_queued {
            stream.grant_queued = true;
            self.window_updates.push_back(stream.id);
        }
    }

    /// Drops all output of streams except RST_STREAM, because the session ends in order.
    pub(crate) fn keep_resets_alone(&mut self) {
        self.initial_settings = None;
        self.opens_window = false;
        self.window_updates.clear();
        self.heads.clear();
        self.scheduler.clear();
        self.held.clear();
        self.delay_until = None;
        self.data_bytes = 0;
    }

    /// Drops all output of streams, because the session ends with an error.
    pub(crate) fn clear(&mut self) {
        self.keep_resets_alone();
        self.resets.clear();
    }
}
