//! Reports a client's streams to observers, and counts the bytes of header blocks.

use std::sync::Arc;

use bytes::Bytes;
use spdy_net_core::header_bytes::HeaderByteCounters;
use spdy_net_core::tap::{ConnectionTap, TapEvent};
use spdy_session::observe::Direction;

use crate::frame::kind;
use crate::qpack::Field;

/// An observed stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamObserver {
    pub(crate) stream_id: u64,
    pub(crate) counters: Arc<HeaderByteCounters>,
    pub(crate) tap: Option<ConnectionTap>,
}

impl StreamObserver {
    /// Reports the head of a frame.
    pub(crate) fn frame(&self, direction: Direction, kind: u64, len_bytes: u64) {
        if kind == kind::HEADERS {
            let len = usize::try_from(len_bytes).unwrap_or(usize::MAX);
            self.counters.add(direction, len);
        }
        if let Some(tap) = &self.tap {
            let stream_id = self.stream_id;
            tap.emit(
                direction,
                &TapEvent::Http3Frame {
                    stream_id,
                    kind,
                    len_bytes,
                },
            );
        }
    }

    /// Reports a header list.
    pub(crate) fn headers(&self, direction: Direction, fields: &[Field]) {
        if let Some(tap) = &self.tap {
            let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
            let fields: Vec<_> = fields
                .iter()
                .map(|it| (text(&it.name), text(&it.value)))
                .collect();
            let stream_id = self.stream_id;
            tap.emit(
                direction,
                &TapEvent::Http3Headers {
                    stream_id,
                    fields: &fields,
                },
            );
        }
    }
}
