//! Writes the frames that `session/write_order.rs` chose: encodes them, compresses header blocks, and counts them.

use bytes::{Bytes, BytesMut};
use spdy_frame::frame::{Data, Frame, Headers, RstStream, SynReply, SynStream};
use spdy_frame::head::{DataHead, FLAG_FIN, set_payload_len};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::kind::Kind;
use spdy_frame::stream_id::StreamId;

use crate::event::Event;
use crate::observe::Direction;
use crate::session::endpoint::Session;
use crate::state::stream::{Item, QueueState, State, Stream};

impl Session {
    /// Encodes a frame without a header block.
    pub(crate) fn put(&mut self, frame: &Frame, out: &mut BytesMut) -> bool {
        frame.encode(self.config.version, out);
        self.stats.frames_sent.count(frame.kind());
        self.observe(Direction::Sent, frame, None, 0);
        true
    }

    /// Writes the first item of a stream, if it needs no credit.
    pub(crate) fn write_head(&mut self, id: StreamId, out: &mut BytesMut) -> bool {
        let Some(stream) = self.streams.get_mut(id) else {
            return false;
        };
        stream.queue_state = QueueState::Unqueued;
        let Some(item) = stream.items.pop_front() else {
            return false;
        };
        let (associated_to, priority) = (stream.associated_to, stream.syn_priority);
        let unidirectional = stream.unidirectional;
        let fin = match item {
            Item::SynStream { headers, fin } => {
                stream.written = true;
                if self.config.settings_window_bytes.is_some() && !unidirectional {
                    self.widen_window(id);
                }
                self.stats.streams_opened += 1;
                self.put_block(&headers, out, |block| {
                    Frame::SynStream(SynStream {
                        stream_id: id,
                        associated_to,
                        priority,
                        fin,
                        unidirectional,
                        block,
                    })
                });
                fin
            }
            Item::SynReply { headers, fin } => {
                self.put_block(&headers, out, |block| {
                    Frame::SynReply(SynReply {
                        stream_id: id,
                        fin,
                        block,
                    })
                });
                fin
            }
            Item::Headers { headers, fin } => {
                self.put_block(&headers, out, |block| {
                    Frame::Headers(Headers {
                        stream_id: id,
                        fin,
                        block,
                    })
                });
                fin
            }
            Item::Data { bytes, fin } => {
                self.put(
                    &Frame::Data(Data {
                        stream_id: id,
                        payload: bytes,
                        fin,
                    }),
                    out,
                );
                fin
            }
            Item::Reset { status } => {
                self.reset(id, status);
                return self.write_reset(out);
            }
        };
        self.after_sent(id, fin);
        true
    }

    /// Writes the next RST_STREAM. Returns `false` if none is queued.
    pub(crate) fn write_reset(&mut self, out: &mut BytesMut) -> bool {
        let Some((stream_id, status)) = self.outbound.resets.pop_front() else {
            return false;
        };
        self.stats.resets_sent.count(status);
        self.put(&Frame::RstStream(RstStream { stream_id, status }), out)
    }

    /// Compresses a block and encodes its frame.
    fn put_block(
        &mut self,
        headers: &HeaderBlock,
        out: &mut BytesMut,
        frame: impl Fn(Bytes) -> Frame,
    ) {
        // The frame is encoded without its block. The block is then compressed directly after it.
        let without_block = frame(Bytes::new());
        let frame_at = out.len();
        without_block.encode(self.config.version, out);
        let block_at = out.len();
        let plain = self.deflater.deflate(headers, out);
        set_payload_len(&mut out[frame_at..]);

        self.stats.sent_block_plain_bytes += plain as u64;
        self.stats.sent_block_wire_bytes += (out.len() - block_at) as u64;
        self.stats.frames_sent.count(without_block.kind());
        if self.config.observer.is_some() {
            let frame = frame(Bytes::copy_from_slice(&out[block_at..]));
            self.observe(Direction::Sent, &frame, Some(headers), plain);
        }
    }

    /// Writes one DATA frame of up to `limit` bytes, which can contain several queued pieces.
    pub(crate) fn put_data(&mut self, id: StreamId, limit: usize, out: &mut BytesMut) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        let (len, fin) = measure(stream, limit);
        let priority = stream.priority;
        let flags = if fin { FLAG_FIN } else { 0 };
        DataHead {
            stream_id: id,
            flags,
            len,
        }
        .encode(out);
        let payload_at = out.len();
        let mut remaining = len;
        while remaining > 0 {
            let Some(Item::Data { bytes, .. }) = stream.items.front_mut() else {
                unreachable!("{remaining} more bytes of DATA expected in the queue of stream {id}")
            };
            if bytes.len() > remaining {
                out.extend_from_slice(&bytes.split_to(remaining));
                break;
            }
            remaining -= bytes.len();
            out.extend_from_slice(bytes);
            stream.items.pop_front();
        }
        stream.queued_bytes -= len;
        stream.send.spend(len);
        // occasional single bytes are not progress
        let still = stream.queued_bytes > 0;
        stream.starved = stream
            .starved
            .map(|(since, sent)| (since, sent + len))
            .filter(|(_, sent)| still && *sent < self.config.small_data_bytes);
        if stream.full && stream.queued_bytes <= self.config.send_buffer_bytes / 2 {
            stream.full = false;
            if !stream.end_queued {
                self.events.push_back(Event::Writable { id });
            }
        }
        self.outbound.data_bytes -= len;
        self.send.spend(len);
        self.stats.frames_sent.count(Kind::Data);
        self.stats.sent_data_bytes += len as u64;
        if self.config.observer.is_some() {
            let payload = Bytes::copy_from_slice(&out[payload_at..]);
            let frame = Frame::Data(Data {
                stream_id: id,
                payload,
                fin,
            });
            self.observe(Direction::Sent, &frame, None, 0);
        }
        self.deadlines
            .record_data_sent(len, self.config.small_data_bytes, self.now);
        self.pings.record_data_sent();
        self.after_sent(id, fin);
        self.outbound.scheduler.sent(priority);
    }

    /// To be called after a frame of stream `id` was written: updates its state, and queues its next item.
    fn after_sent(&mut self, id: StreamId, fin: bool) {
        let Some(stream) = self.streams.get_mut(id) else {
            return;
        };
        stream.apply_sent(fin);
        if !stream.state.sends()
            && let Some(discarded) = &mut stream.discarded
            && let Some(timeout) = self.config.discard_timeout
        {
            discarded.since = self.now;
            self.deadlines.look_at_streams(self.now + timeout);
        }
        match stream.reset_after_fin {
            _ if stream.state == State::Closed => self.closed(id),
            Some(status) if !stream.state.sends() => self.reset(id, status),
            _ => self.schedule(id),
        }
    }
}

/// Length of the DATA frame that the first items form within `limit` bytes, and whether it has FIN.
fn measure(stream: &Stream, limit: usize) -> (usize, bool) {
    let mut len = 0;
    for item in &stream.items {
        let Item::Data { bytes, fin } = item else {
            break;
        };
        if bytes.len() > limit - len {
            return (limit, false);
        }
        len += bytes.len();
        if *fin {
            return (len, true);
        }
    }
    (len, false)
}
