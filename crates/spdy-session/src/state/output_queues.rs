//! The queues of what waits to be written, one a kind of frame. `session/write_order.rs` decides between them.

use std::collections::VecDeque;

use bytes::BytesMut;
use spdy_clock::Instant;
use spdy_frame::frame::Settings;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;

use crate::state::data_scheduler::Scheduler;
use crate::state::stream::{QueueState, Stream};

/// What waits to be written, by kind.
#[derive(Debug)]
pub(crate) struct OutputQueues {
    /// The greeting was queued, or never will be.
    pub(crate) initial_settings_done: bool,
    pub(crate) initial_settings: Option<Settings>,
    /// The session's window is to be opened as far as it goes, whatever was consumed by then.
    pub(crate) opens_window: bool,
    /// Streams that are owed a WINDOW_UPDATE.
    pub(crate) window_updates: VecDeque<StreamId>,
    pub(crate) resets: VecDeque<(StreamId, RstStatus)>,
    /// Streams whose first item needs no credit.
    pub(crate) heads: VecDeque<StreamId>,
    pub(crate) scheduler: Scheduler,
    /// Streams that wait for more credit than a few bytes, and until when.
    pub(crate) held: Vec<StreamId>,
    pub(crate) delay_until: Option<Instant>,
    /// DATA queued on all streams, bytes.
    pub(crate) data_bytes: usize,
    /// Where header blocks are compressed.
    pub(crate) scratch: BytesMut,
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
            scratch: BytesMut::new(),
        }
    }

    /// How many places in queues are taken.
    #[cfg(test)]
    pub(crate) fn queued_streams(&self) -> usize {
        self.heads.len() + self.scheduler.len() + self.held.len()
    }

    /// Whether DATA waits for the transport, or for the session's window. That of streams without credit of their own
    /// stands in no queue: each of them has its own time.
    pub(crate) fn data_waits(&self) -> bool {
        let behind_a_head = !self.heads.is_empty() && self.data_bytes > 0;
        behind_a_head || !self.scheduler.is_empty() || !self.held.is_empty()
    }

    /// Takes a stream out of the queue that it stands in: one whose streams come and go while nothing
    /// can be written would grow for ever.
    pub(crate) fn forget(&mut self, stream: &Stream) {
        match stream.queue_state {
            QueueState::Unqueued => {}
            QueueState::Head => self.heads.retain(|&id| id != stream.id),
            QueueState::Data => self.scheduler.remove(stream.priority, stream.id),
            QueueState::Delayed => self.held.retain(|&id| id != stream.id),
        }
    }

    /// Queues a WINDOW_UPDATE, if the stream is owed one that is worth it.
    pub(crate) fn queue_grant(&mut self, stream: &mut Stream) {
        if stream.receive_window.is_update_due() && !stream.grant_queued {
            stream.grant_queued = true;
            self.window_updates.push_back(stream.id);
        }
    }

    /// Drops all but RST_STREAM: the session ends in order.
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

    /// Drops everything: the session ends with a fault.
    pub(crate) fn clear(&mut self) {
        self.keep_resets_alone();
        self.resets.clear();
    }
}
