//! Entry points for bytes without QUIC, for the fuzz targets in `fuzz/`.

use bytes::Bytes;
use http::{HeaderMap, Request, Response};

use crate::control::ControlState;
use crate::fault::Fault;
use crate::fields;
use crate::frame::{FrameDecoder, FrameEvent, StreamKind};
use crate::qpack::{self, Decoded, Decoder, Encoder};
use crate::role::Role;

/// Maximum frame length on a control stream, bytes.
pub const MAX_CONTROL_FRAME_BYTES: u64 = super::frame::MAX_CONTROL_FRAME_BYTES;

/// A header field, as in a block.
pub type Field = (Bytes, Bytes);

/// The content of a stream: DATA joined, with type 0, other frames by their types.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct DecodedStream {
    /// Types and payloads.
    pub frames: Vec<(u64, Vec<u8>)>,
    /// The events of a control stream.
    pub events: Vec<String>,
    /// The error, unless the stream was read to its end.
    pub fault: Option<String>,
}

impl DecodedStream {
    fn push(&mut self, piece: &FrameEvent) {
        let (kind, bytes) = match piece {
            FrameEvent::Data(data) => (0, data),
            FrameEvent::Headers(block) => (1, block),
            FrameEvent::Frame(kind, payload) => (*kind, payload),
        };
        match self.frames.last_mut() {
            Some((0, so_far)) if kind == 0 => so_far.extend_from_slice(bytes),
            _ => self.frames.push((kind, bytes.to_vec())),
        }
    }

    fn read(
        chunks: &[&[u8]],
        place: StreamKind,
        mut on: impl FnMut(&mut Self, FrameEvent) -> Result<(), Fault>,
    ) -> Self {
        let (mut cutter, mut stream) = (FrameDecoder::new(place, None), Self::default());
        let mut read = || {
            for chunk in chunks {
                cutter.push(Bytes::copy_from_slice(chunk));
                while let Some(piece) = cutter.next()? {
                    stream.push(&piece);
                    on(&mut stream, piece)?;
                }
            }
            cutter.ended()
        };
        let read = read();
        stream.fault = read.err().map(|fault| fault.to_string());
        stream
    }

    /// Reads a request stream that arrives in `chunks`.
    #[must_use]
    pub fn of_exchange(chunks: &[&[u8]], max_head_bytes: usize) -> Self {
        let place = StreamKind::Request {
            role: Role::Server,
            max_head_bytes,
        };
        Self::read(chunks, place, |_, _| Ok(()))
    }

    /// Reads a control stream after its type, as a client or a server.
    #[must_use]
    pub fn of_control(chunks: &[&[u8]], by_client: bool) -> Self {
        let role = if by_client {
            Role::Client
        } else {
            Role::Server
        };
        let mut control_state = ControlState::new(role);
        Self::read(chunks, StreamKind::Control, |stream, piece| {
            let event = control_state.handle(piece)?;
            stream
                .events
                .extend(event.map(|event| format!("{event:?}")));
            Ok(())
        })
    }
}

/// Encodes a whole frame.
#[must_use]
pub fn frame(kind: u64, payload: &[u8]) -> Bytes {
    super::frame::frame(kind, payload)
}

fn plain(fields: Vec<qpack::Field>) -> Vec<Field> {
    fields.into_iter().map(|it| (it.name, it.value)).collect()
}

fn lines(fields: Vec<Field>) -> Vec<qpack::Field> {
    let line = |(name, value)| qpack::Field::new(name, value);
    fields.into_iter().map(line).collect()
}

/// Decodes the fields of a header block without a dynamic table.
///
/// # Errors
///
/// The block is invalid, refers to the dynamic table, or has more than `limit` bytes.
pub fn decode(block: &[u8], limit: usize) -> Result<Vec<Field>, String> {
    let fields = TableDecoder::default().section(0, block, limit)?;
    fields.ok_or_else(|| "blocked".to_owned())
}

/// Encodes `fields` as a header block without a dynamic table.
#[must_use]
pub fn encode(fields: &[Field]) -> Bytes {
    TableEncoder::new(0, 0).section(0, fields, true).1
}

/// The size of `fields`, bytes.
#[must_use]
pub fn section_len(fields: &[Field]) -> u64 {
    qpack::section_len(&lines(fields.to_vec()))
}

/// The QPACK decoder of a connection.
#[derive(Debug)]
pub struct TableDecoder(Decoder);

impl Default for TableDecoder {
    /// With the capacity that our SETTINGS allow.
    fn default() -> Self {
        Self::new(qpack::MAX_TABLE_BYTES)
    }
}

impl TableDecoder {
    /// A decoder that allows a table of `capacity` bytes.
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self(Decoder::new(capacity))
    }

    /// Reads bytes of the encoder stream, and returns the number of instructions.
    ///
    /// # Errors
    ///
    /// An instruction is invalid.
    pub fn instructions(&mut self, bytes: &[u8]) -> Result<u32, String> {
        let read = self.0.read_instructions(bytes);
        read.map_err(|error| error.to_string())
    }

    /// Decodes a section of `stream`; `None` if it must wait for insertions.
    ///
    /// # Errors
    ///
    /// The section is invalid, or exceeds `limit` bytes, or too many wait.
    pub fn section(
        &mut self,
        stream: u64,
        section: &[u8],
        limit: usize,
    ) -> Result<Option<Vec<Field>>, String> {
        match self.0.decode(stream, section, limit) {
            Ok(Decoded::Fields(fields)) => Ok(Some(plain(fields))),
            Ok(Decoded::Blocked { .. }) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Number of insertions so far.
    #[must_use]
    pub fn insert_count(&self) -> u64 {
        self.0.insert_count()
    }

    /// Reads no more sections of `stream`.
    pub fn cancel(&mut self, stream: u64) {
        self.0.cancel(stream);
    }

    /// The bytes for the decoder stream.
    pub fn output(&mut self) -> Bytes {
        self.0.take_output()
    }
}

/// The QPACK encoder of a connection.
#[derive(Debug)]
pub struct TableEncoder(Encoder);

impl TableEncoder {
    /// An encoder for a peer that allows a table of `capacity` bytes and `blocked` streams that wait.
    #[must_use]
    pub fn new(capacity: u64, blocked: u64) -> Self {
        let mut encoder = Encoder::new();
        encoder.configure(capacity, blocked);
        Self(encoder)
    }

    /// Encodes a section of `stream`. Returns instructions, which QUIC accepts if `accepted`, and the section.
    pub fn section(&mut self, stream: u64, fields: &[Field], accepted: bool) -> (Bytes, Bytes) {
        let mut instructions = Bytes::new();
        let send = |bytes| {
            instructions = bytes;
            accepted
        };
        let fields = lines(fields.to_vec());
        let section = self.0.encode(stream, &fields, u64::MAX, send);
        (instructions, section)
    }

    /// QUIC has accepted all instructions so far.
    pub fn all_sent(&mut self) {
        self.0.all_sent();
    }

    /// Reads bytes of the peer's decoder stream, and returns the number of instructions.
    ///
    /// # Errors
    ///
    /// An instruction is invalid.
    pub fn acknowledgments(&mut self, bytes: &[u8]) -> Result<u32, String> {
        let read = self.0.read_instructions(bytes);
        read.map_err(|error| error.to_string())
    }
}

/// Parses the request with the head `fields`.
#[must_use]
pub fn request(fields: Vec<Field>) -> Option<Request<()>> {
    let head = fields::request(lines(fields)).ok()?;
    Some(Request::from_parts(head, ()))
}

/// The fields of a request.
#[must_use]
pub fn of_request(request: Request<()>) -> Vec<Field> {
    plain(fields::encode_request(&request.into_parts().0))
}

/// Parses the response with the head `fields`.
#[must_use]
pub fn response(fields: Vec<Field>) -> Option<Response<()>> {
    let head = fields::response(lines(fields)).ok()?;
    Some(Response::from_parts(head, ()))
}

/// The fields of a response.
#[must_use]
pub fn of_response(response: Response<()>) -> Vec<Field> {
    plain(fields::encode_response(&response.into_parts().0))
}

/// Parses the trailers `fields`.
#[must_use]
pub fn trailers(fields: Vec<Field>) -> Option<HeaderMap> {
    fields::decode_trailers(lines(fields)).ok()
}
