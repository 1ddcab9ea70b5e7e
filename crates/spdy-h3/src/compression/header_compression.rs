//! The encoder and the decoder of a connection, for all of its streams.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use spdy_net_core::header_bytes::HeaderByteCounters;
use spdy_session::observe::Direction;

use crate::code::Code;
use crate::compression::instruction_stream::InstructionStream;
use crate::compression::section_reader::SectionReader;
use crate::fault::Fault;
use crate::qpack::{
    Decoded, Decoder, Encoder, Field, InstructionError, MAX_TABLE_BYTES, SectionError,
};

/// Stream types (RFC 9204 §4.2).
const ENCODER_STREAM: u8 = 0x02;
const DECODER_STREAM: u8 = 0x03;

/// The settings of the peer that limit what we send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PeerSettings {
    /// Maximum size of a field section, bytes.
    pub(crate) max_field_section: u64,
    /// Maximum capacity of our dynamic table, bytes.
    pub(crate) qpack_max_table_capacity: u64,
    /// Maximum number of streams that wait for our insertions.
    pub(crate) qpack_blocked_streams: u64,
}

impl Default for PeerSettings {
    /// Until SETTINGS arrive, and for settings that they do not contain.
    fn default() -> Self {
        Self {
            max_field_section: u64::MAX,
            qpack_max_table_capacity: 0,
            qpack_blocked_streams: 0,
        }
    }
}

/// The header compression of a connection. Clones share it.
#[derive(Clone)]
pub(crate) struct HeaderCompression(Arc<Shared>);

struct Shared {
    sending: Mutex<Sending>,
    receiving: Mutex<Receiving>,
    /// Instructions of encoders count as header bytes.
    counters: Arc<HeaderByteCounters>,
}

struct Sending {
    encoder: Encoder,
    stream: InstructionStream,
    max_field_section: u64,
}

struct Receiving {
    decoder: Decoder,
    stream: InstructionStream,
    /// By stream: the Required Insert Count of the section that waits, and its task.
    waiting: BTreeMap<u64, (u64, Waker)>,
    /// True while instructions could be lost with rejected early data.
    is_held: bool,
}

impl Receiving {
    /// Sends the output of the decoder.
    fn send_output(&mut self) {
        if self.is_held {
            return;
        }
        let output = self.decoder.take_output();
        if !output.is_empty() {
            self.stream.send(&output);
        }
    }
}

impl HeaderCompression {
    /// The compression of `connection`, without a dynamic table until the peer's SETTINGS arrive.
    pub(crate) fn new(connection: &quinn::Connection, counters: Arc<HeaderByteCounters>) -> Self {
        let stream = |kind| InstructionStream::new(connection.clone(), kind);
        Self(Arc::new(Shared {
            sending: Mutex::new(Sending {
                encoder: Encoder::new(),
                stream: stream(ENCODER_STREAM),
                max_field_section: u64::MAX,
            }),
            receiving: Mutex::new(Receiving {
                decoder: Decoder::new(MAX_TABLE_BYTES),
                stream: stream(DECODER_STREAM),
                waiting: BTreeMap::new(),
                is_held: false,
            }),
            counters,
        }))
    }

    /// Sends no instructions of the decoder until [`release`](Self::release). The encoder has none before the peer's SETTINGS.
    pub(crate) fn hold(&self) {
        self.0.receiving.lock().is_held = true;
    }

    /// Sends the instructions that were held; if the early data was not `accepted`, they are for streams that do not exist.
    pub(crate) fn release(&self, accepted: bool) {
        let mut receiving = self.0.receiving.lock();
        receiving.is_held = false;
        if !accepted {
            receiving.decoder.take_output();
        }
        receiving.send_output();
    }

    /// Applies the peer's SETTINGS.
    pub(crate) fn apply(&self, settings: &PeerSettings) {
        let mut sending = self.0.sending.lock();
        sending.max_field_section = settings.max_field_section;
        sending.encoder.configure(
            settings.qpack_max_table_capacity,
            settings.qpack_blocked_streams,
        );
    }

    /// Maximum size of a field section that the peer accepts, bytes.
    pub(crate) fn max_field_section(&self) -> u64 {
        self.0.sending.lock().max_field_section
    }

    /// Encodes `fields` as the next section of `stream_id`, which must be sent. The instructions that it needs are sent.
    pub(crate) fn encode(&self, stream_id: u64, fields: &[Field]) -> Bytes {
        let mut sending = self.0.sending.lock();
        let Sending {
            encoder,
            stream,
            max_field_section,
        } = &mut *sending;
        encoder.encode(stream_id, fields, *max_field_section, |instructions| {
            self.0.counters.add(Direction::Sent, instructions.len());
            stream.send(&instructions)
        })
    }

    /// Decodes the sections of `stream_id`, of at most `limit` bytes.
    pub(crate) fn reader(&self, stream_id: u64, limit: usize) -> SectionReader {
        SectionReader::new(self.clone(), stream_id, limit)
    }

    /// Decodes a section of `stream_id`. While it needs insertions that have not arrived, the task of `cx` is woken with them.
    pub(super) fn poll_decode(
        &self,
        cx: &mut Context<'_>,
        stream_id: u64,
        section: &[u8],
        limit: usize,
    ) -> Poll<Result<Vec<Field>, SectionError>> {
        let mut receiving = self.0.receiving.lock();
        let inserted = receiving.decoder.insert_count();
        if let Some((required, waker)) = receiving.waiting.get_mut(&stream_id)
            && *required > inserted
        {
            waker.clone_from(cx.waker());
            return Poll::Pending;
        }
        receiving.waiting.remove(&stream_id);
        match receiving.decoder.decode(stream_id, section, limit) {
            Ok(Decoded::Fields(fields)) => {
                receiving.send_output();
                Poll::Ready(Ok(fields))
            }
            Ok(Decoded::Blocked { required }) => {
                let waker = cx.waker().clone();
                receiving.waiting.insert(stream_id, (required, waker));
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// No more sections of `stream_id` are decoded, although there may be some.
    pub(crate) fn cancel(&self, stream_id: u64) {
        let mut receiving = self.0.receiving.lock();
        receiving.waiting.remove(&stream_id);
        receiving.decoder.cancel(stream_id);
        receiving.send_output();
    }

    /// Reads bytes of the peer's encoder stream. Returns the number of instructions.
    pub(crate) fn read_encoder_stream(&self, bytes: &[u8]) -> Result<u32, Fault> {
        self.0.counters.add(Direction::Received, bytes.len());
        let mut receiving = self.0.receiving.lock();
        let read = receiving.decoder.read_instructions(bytes);
        let count = read.map_err(|error| fault(Code::QPACK_ENCODER_STREAM_ERROR, error))?;
        let inserted = receiving.decoder.insert_count();
        let waiting = receiving.waiting.values();
        let ready = waiting.filter(|(required, _)| *required <= inserted);
        let wakers: Vec<Waker> = ready.map(|(_, waker)| waker.clone()).collect();
        drop(receiving);
        wakers.into_iter().for_each(Waker::wake);
        Ok(count)
    }

    /// Reads bytes of the peer's decoder stream. Returns the number of instructions.
    pub(crate) fn read_decoder_stream(&self, bytes: &[u8]) -> Result<u32, Fault> {
        let read = self.0.sending.lock().encoder.read_instructions(bytes);
        read.map_err(|error| fault(Code::QPACK_DECODER_STREAM_ERROR, error))
    }

    /// Writes the instructions that QUIC did not accept at once. Returns an error of the connection.
    pub(crate) async fn drive(self) -> Fault {
        std::future::poll_fn(|cx| {
            {
                let mut sending = self.0.sending.lock();
                if let Poll::Ready(fault) = sending.stream.poll(cx) {
                    return Poll::Ready(fault);
                }
                if sending.stream.is_empty() {
                    sending.encoder.all_sent();
                }
            }
            self.0.receiving.lock().stream.poll(cx)
        })
        .await
    }
}

fn fault(code: Code, error: InstructionError) -> Fault {
    Fault::Connection(code, error.to_string())
}
