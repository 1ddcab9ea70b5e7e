//! Entry points for bytes without QUIC, for the fuzz targets in `fuzz/`.

use bytes::Bytes;
use http::{HeaderMap, Request, Response};

use crate::control::ControlState;
use crate::fault::Fault;
use crate::fields;
use crate::fields::qpack;
use crate::frame::{FrameDecoder, FrameEvent, StreamKind};
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

/// Decodes the fields of a header block.
///
/// # Errors
///
/// The block is invalid, or has more than `limit` bytes.
pub fn decode(block: &[u8], limit: usize) -> Result<Vec<Field>, String> {
    qpack::decode(block, limit).map_err(|error| error.to_string())
}

/// Encodes `fields` as a header block.
#[must_use]
pub fn encode(fields: &[Field]) -> Bytes {
    qpack::encode(fields)
}

/// The size of `fields`, bytes.
#[must_use]
pub fn section_len(fields: &[Field]) -> u64 {
    qpack::section_len(fields)
}

/// Parses the request with the head `fields`.
#[must_use]
pub fn request(fields: Vec<Field>) -> Option<Request<()>> {
    let head = fields::request(fields).ok()?;
    Some(Request::from_parts(head, ()))
}

/// The fields of a request.
#[must_use]
pub fn of_request(request: Request<()>) -> Vec<Field> {
    fields::encode_request(&request.into_parts().0)
}

/// Parses the response with the head `fields`.
#[must_use]
pub fn response(fields: Vec<Field>) -> Option<Response<()>> {
    let head = fields::response(fields).ok()?;
    Some(Response::from_parts(head, ()))
}

/// The fields of a response.
#[must_use]
pub fn of_response(response: Response<()>) -> Vec<Field> {
    fields::encode_response(&response.into_parts().0)
}

/// Parses the trailers `fields`.
#[must_use]
pub fn trailers(fields: Vec<Field>) -> Option<HeaderMap> {
    fields::decode_trailers(fields).ok()
}
