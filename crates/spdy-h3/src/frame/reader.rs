//! Reads the frames of one QUIC stream.

use std::pin::pin;
use std::task::{Context, Poll, Waker, ready};

use crate::code::Code;
use crate::compression::SectionReader;
use crate::fault::Fault;
use crate::flood_budget::FloodBudget;
use crate::frame::decoder::{FrameDecoder, FrameEvent, StreamKind};
use crate::qpack::Field;
use crate::stream_observer::StreamObserver;

/// Maximum number of bytes taken from QUIC at once.
const CHUNK_BYTES: usize = 64 * 1024;

/// Reads the frames of one stream.
#[derive(Debug)]
pub(crate) struct FrameReader {
    recv: quinn::RecvStream,
    cutter: FrameDecoder,
    is_over: bool,
    /// An error that was not returned to the reader yet: QUIC reports it once, and afterwards only an end.
    pending_fault: Option<Fault>,
    /// The error code of STOP_SENDING if the rest is not read.
    stop_code: Code,
    /// Decodes header blocks; `None` on a control stream.
    sections: Option<SectionReader>,
}

impl FrameReader {
    /// Reads `recv`. `parting` is the error code of STOP_SENDING if it is not read to its end.
    pub(crate) fn new(
        recv: quinn::RecvStream,
        place: StreamKind,
        watch: Option<StreamObserver>,
        parting: Code,
    ) -> Self {
        Self {
            recv,
            cutter: FrameDecoder::new(place, watch),
            is_over: false,
            pending_fault: None,
            stop_code: parting,
            sections: None,
        }
    }

    /// Counts frames that carry nothing in `floods`.
    pub(crate) fn with_flood_budget(mut self, floods: Option<FloodBudget>) -> Self {
        self.cutter.floods = floods;
        self
    }

    /// Decodes header blocks with `sections`.
    pub(crate) fn with_sections(mut self, sections: SectionReader) -> Self {
        self.sections = Some(sections);
        self
    }

    /// Decodes a header block of this stream. While it waits for the dynamic table, the same block is passed again.
    pub(crate) fn poll_fields(
        &mut self,
        cx: &mut Context<'_>,
        block: &[u8],
    ) -> Poll<Result<Vec<Field>, Fault>> {
        let sections = self.sections.as_mut();
        let sections = sections.expect("header blocks are on request streams");
        sections.poll_decode(cx, block)
    }

    /// The stream has ended in order.
    fn end(&mut self) {
        self.is_over = true;
        self.sections.iter_mut().for_each(SectionReader::end);
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<FrameEvent>, Fault> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Like [`next`](Self::next). Must not be called after an error.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<FrameEvent>, Fault>> {
        loop {
            if let Some(piece) = self.cutter.next()? {
                return Poll::Ready(Ok(Some(piece)));
            }
            if let Some(fault) = self.pending_fault.take() {
                return Poll::Ready(Err(fault));
            }
            if self.is_over {
                return Poll::Ready(self.cutter.ended().map(|()| None));
            }
            let chunk = ready!(pin!(self.recv.read_chunk(CHUNK_BYTES, true)).poll(cx));
            match chunk {
                Ok(Some(chunk)) => self.cutter.push(chunk.bytes),
                Ok(None) => self.end(),
                Err(error) => {
                    self.is_over = true; // there is nothing left to stop
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
    }

    /// True if the stream is at its end, without waiting for more bytes.
    pub(crate) fn is_at_end(&mut self) -> bool {
        if self.is_over || !self.cutter.is_between() {
            return self.is_over && self.pending_fault.is_none();
        }
        let mut cx = Context::from_waker(Waker::noop());
        let polled = pin!(self.recv.read_chunk(CHUNK_BYTES, true)).poll(&mut cx);
        match polled {
            Poll::Ready(Ok(Some(chunk))) => self.cutter.push(chunk.bytes),
            Poll::Ready(Ok(None)) => self.end(),
            Poll::Ready(Err(error)) => {
                (self.is_over, self.pending_fault) = (true, Some(error.into())); // there is nothing left to stop
            }
            Poll::Pending => {}
        }
        self.is_over && self.pending_fault.is_none()
    }

    /// Sets the error code of STOP_SENDING, for a drop before the end.
    pub(crate) fn stop_with(&mut self, code: Code) {
        self.stop_code = code;
    }
}

impl Drop for FrameReader {
    fn drop(&mut self) {
        if !self.is_over {
            let _ = self.recv.stop(self.stop_code.wire()); // a lost connection has nothing to stop
        }
    }
}
