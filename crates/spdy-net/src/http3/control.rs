//! The streams that carry no exchange: each side's control stream, and what else a peer may open (RFC 9114 §6.2).
//!
//! ```text
//!   ours    00 | SETTINGS .. | GOAWAY        when the connection is to end
//!   theirs  00 | SETTINGS .. | GOAWAY, PRIORITY_UPDATE, ..      once, and never closed
//!           01 a push: none is allowed       02, 03 QPACK: once each; without a dynamic table only a capacity of 0
//!                                            and cancellations are valid there
//!           others: not wanted, STOP_SENDING
//! ```

use std::pin::pin;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use octets::Octets;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::code::Code;
use super::fault::Fault;
use super::floods::FloodBudget;
use super::frame::{FrameEvent, FrameReader, StreamKind, frame, kind, put_varint};

// Settings (RFC 9114 §7.2.4.1, RFC 9204 §5).
const QPACK_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION: u64 = 0x6;
const QPACK_BLOCKED: u64 = 0x7;
/// Settings of HTTP/2 that must not come (RFC 9114 §7.2.4.1).
const HTTP2_SETTINGS: [u64; 5] = [0x0, 0x2, 0x3, 0x4, 0x5];
/// Unidirectional streams a peer may have open: it needs three, and may grease with another.
pub(crate) const MAX_UNI_STREAMS: u32 = 8;
/// Before all requests: what is said of the connection must not wait behind bodies.
const CONTROL_PRIORITY: i32 = i32::MAX;

/// Which side of the connection this is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Role {
    Client,
    Server,
}

/// What a peer said about the connection.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum ControlEvent {
    /// Field sections of at most so many bytes are taken.
    MaxFieldSection(u64),
    /// Streams from this one on will not be processed.
    Goaway(u64),
    /// The priority of this stream's response shall be that of this header field.
    Priority(u64, String),
}

/// Opens our control stream, says our settings, and GOAWAY with the id that `goaway` gives; holds the stream open
/// until it is dropped. Gives why that failed.
pub(super) async fn send_control_stream(
    connection: quinn::Connection,
    max_head_bytes: usize,
    goaway: oneshot::Receiver<u64>,
) -> Fault {
    let spoken = async {
        let mut stream = connection.open_uni().await?;
        let _ = stream.set_priority(CONTROL_PRIORITY); // of a stream that is just open
        let mut settings = BytesMut::new();
        for (id, value) in [
            (QPACK_CAPACITY, 0),
            (MAX_FIELD_SECTION, max_head_bytes as u64),
            (QPACK_BLOCKED, 0),
        ] {
            put_varint(&mut settings, id);
            put_varint(&mut settings, value);
        }
        let mut opening = BytesMut::new();
        put_varint(&mut opening, 0x00);
        opening.put_slice(&frame(kind::SETTINGS, &settings));
        write_all(&mut stream, &opening).await?;
        if let Ok(id) = goaway.await {
            let mut last = BytesMut::new();
            put_varint(&mut last, id);
            write_all(&mut stream, &frame(kind::GOAWAY, &last)).await?;
        }
        Err(match stream.stopped().await {
            Ok(_) => critical_fault("stopped"),
            Err(_) => connection.closed().await.into(),
        })
    };
    spoken.await.map_or_else(
        |fault| fault,
        |never: std::convert::Infallible| match never {},
    )
}

async fn write_all(stream: &mut quinn::SendStream, bytes: &[u8]) -> Result<(), Fault> {
    let written = stream.write_all(bytes).await;
    written.map_err(|error| match error.into() {
        Fault::Ended(_) => critical_fault("stopped"),
        other => other,
    })
}

fn critical_fault(deed: &str) -> Fault {
    let why = format!("the peer {deed} a stream that must stay");
    Fault::Connection(Code::CLOSED_CRITICAL_STREAM, why)
}

/// Hears every unidirectional stream of the peer, and tells `on` what it says, until something is wrong.
pub(super) async fn read_uni_streams(
    connection: quinn::Connection,
    role: Role,
    floods: Option<FloodBudget>,
    on: impl Fn(ControlEvent) + Send + Sync,
) -> Fault {
    let seen = Arc::new(Mutex::new([false; 3]));
    let mut open = FuturesUnordered::new();
    let mut accepted = Box::pin(futures_util::stream::unfold(connection, |it| async {
        Some((it.accept_uni().await, it))
    }));
    loop {
        let next = match select(accepted.next(), pin!(next_of(&mut open))).await {
            Either::Left((stream, _)) => stream.unwrap_or(Err(quinn::ConnectionError::Reset)),
            Either::Right((Err(fault), _)) => return fault,
            Either::Right((Ok(()), _)) => continue,
        };
        match next {
            Ok(stream) => open.push(read_uni_stream(
                stream,
                role,
                seen.clone(),
                floods.clone(),
                &on,
            )),
            Err(lost) => return lost.into(),
        }
    }
}

/// The next stream that ended; never, while there is none.
async fn next_of<F: Future>(open: &mut FuturesUnordered<F>) -> F::Output {
    match open.next().await {
        Some(ended) => ended,
        None => std::future::pending().await,
    }
}

/// Hears one stream to its end.
async fn read_uni_stream(
    mut stream: quinn::RecvStream,
    role: Role,
    seen: Arc<Mutex<[bool; 3]>>,
    floods: Option<FloodBudget>,
    on: &impl Fn(ControlEvent),
) -> Result<(), Fault> {
    let Some(kind) = read_varint(&mut stream).await? else {
        return count(&floods); // gone before it said what it is
    };
    let once = |which: usize| {
        let mut seen = seen.lock();
        match std::mem::replace(&mut seen[which], true) {
            false => Ok(()),
            true => {
                let why = format!("a second stream of type {kind}");
                Err(Fault::Connection(Code::STREAM_CREATION_ERROR, why))
            }
        }
    };
    match (kind, role) {
        (0x00, _) => {
            once(0)?;
            read_control_stream(stream, role, floods, on).await
        }
        (0x01, Role::Client) => {
            let why = "a push, and none was allowed".to_owned();
            Err(Fault::Connection(Code::ID_ERROR, why))
        }
        (0x01, Role::Server) => {
            let why = "a push from a client".to_owned();
            Err(Fault::Connection(Code::STREAM_CREATION_ERROR, why))
        }
        (0x02, _) => {
            once(1)?;
            read_qpack_encoder(stream, floods).await
        }
        (0x03, _) => {
            once(2)?;
            read_qpack_decoder(stream, floods).await
        }
        _ => {
            count(&floods)?;
            let _ = stream.stop(Code::STREAM_CREATION_ERROR.wire());
            Ok(())
        }
    }
}

fn critical_error(error: quinn::ReadError) -> Fault {
    match error.into() {
        Fault::Ended(_) => critical_fault("reset"),
        other => other,
    }
}

/// The integer that a stream begins with; `None` if the stream ends within it.
async fn read_varint(stream: &mut quinn::RecvStream) -> Result<Option<u64>, Fault> {
    let mut bytes = [0; 8];
    let mut len = 0;
    loop {
        if let Ok(value) = Octets::with_slice(&bytes[..len]).get_varint() {
            return Ok(Some(value));
        }
        // One byte at a time: the reader of that stream type needs the bytes that follow.
        match stream.read(&mut bytes[len..=len]).await {
            Ok(Some(1)) => len += 1,
            Ok(_) | Err(quinn::ReadError::Reset(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Something came that carries nothing.
fn count(floods: &Option<FloodBudget>) -> Result<(), Fault> {
    floods.as_ref().map_or(Ok(()), FloodBudget::empty_frame)
}

/// What comes next of one of QPACK's streams.
async fn next_chunk(
    stream: &mut quinn::RecvStream,
    floods: &Option<FloodBudget>,
) -> Result<Option<Bytes>, Fault> {
    let chunk = stream
        .read_chunk(1024, true)
        .await
        .map_err(critical_error)?;
    count(floods)?;
    Ok(chunk.map(|chunk| chunk.bytes))
}

async fn read_control_stream(
    stream: quinn::RecvStream,
    role: Role,
    floods: Option<FloodBudget>,
    on: &impl Fn(ControlEvent),
) -> Result<(), Fault> {
    let mut frames = FrameReader::new(stream, StreamKind::Control, None, Code::NO_ERROR)
        .with_flood_budget(floods);
    let mut hearing = ControlState::new(role);
    // `FrameReader` checks that SETTINGS come first, and once.
    loop {
        let next = frames.next().await.map_err(|fault| match fault {
            Fault::Ended(_) => critical_fault("reset"),
            other => other,
        })?;
        let piece = next.ok_or_else(|| critical_fault("closed"))?;
        hearing.handle(piece)?.into_iter().for_each(on);
    }
}

/// What a control stream said so far.
#[derive(Debug)]
pub(super) struct ControlState {
    role: Role,
    /// The last id of GOAWAY.
    goaway: u64,
    /// The last MAX_PUSH_ID.
    max_push_id: Option<u64>,
}

impl ControlState {
    /// Nothing yet, to `role`.
    pub(super) fn new(role: Role) -> Self {
        Self {
            role,
            goaway: u64::MAX,
            max_push_id: None,
        }
    }

    /// What the next frame says, if that is of interest.
    pub(super) fn handle(&mut self, piece: FrameEvent) -> Result<Option<ControlEvent>, Fault> {
        let FrameEvent::Frame(kind, payload) = piece else {
            panic!("on a control stream there are frames alone, not {piece:?}");
        };
        match (kind, self.role) {
            (kind::SETTINGS, _) => Ok(settings(&payload)?.map(ControlEvent::MaxFieldSection)),
            (kind::GOAWAY, role) => {
                let id = single_varint(&payload, "GOAWAY")?;
                if role == Role::Client && id % 4 != 0 {
                    let why = format!("GOAWAY with {id}, which is no request's stream");
                    return Err(Fault::Connection(Code::ID_ERROR, why));
                }
                if id > self.goaway {
                    let why = format!("GOAWAY with {id} after one with {}", self.goaway);
                    return Err(Fault::Connection(Code::ID_ERROR, why));
                }
                self.goaway = id;
                Ok(Some(ControlEvent::Goaway(id)))
            }
            (kind::PRIORITY_UPDATE, Role::Server) => {
                let mut read = Octets::with_slice(&payload);
                let id = read
                    .get_varint()
                    .map_err(|_| frame_error("PRIORITY_UPDATE"))?;
                if id % 4 != 0 {
                    let why = format!("a priority of stream {id}, which carries no request");
                    return Err(Fault::Connection(Code::ID_ERROR, why));
                }
                let field = String::from_utf8_lossy(&payload[read.off()..]).into_owned();
                Ok(Some(ControlEvent::Priority(id, field)))
            }
            (
                kind::PRIORITY_UPDATE | kind::PRIORITY_UPDATE_OF_PUSH | kind::MAX_PUSH_ID,
                Role::Client,
            ) => {
                let why = format!("a frame of type {kind:#x} from a server");
                Err(Fault::Connection(Code::FRAME_UNEXPECTED, why))
            }
            (kind::MAX_PUSH_ID, Role::Server) => {
                let id = single_varint(&payload, "MAX_PUSH_ID")?;
                if let Some(last) = self.max_push_id.replace(id)
                    && id < last
                {
                    let why = format!("MAX_PUSH_ID {id} after {last}: it must not decrease");
                    return Err(Fault::Connection(Code::ID_ERROR, why));
                }
                Ok(None)
            }
            // A server here promises no push, and a client here allows none: no ID is valid.
            (kind::CANCEL_PUSH, _) => {
                let id = single_varint(&payload, "CANCEL_PUSH")?;
                let why = format!("CANCEL_PUSH of push {id}, which does not exist");
                Err(Fault::Connection(Code::ID_ERROR, why))
            }
            (kind::PRIORITY_UPDATE_OF_PUSH, Role::Server) => {
                let id = Octets::with_slice(&payload).get_varint();
                let id = id.map_err(|_| frame_error("PRIORITY_UPDATE"))?;
                let why = format!("PRIORITY_UPDATE of push {id}, which does not exist");
                Err(Fault::Connection(Code::ID_ERROR, why))
            }
            _ => Ok(None),
        }
    }
}

/// The QPACK encoder's stream: it may set the capacity to zero, which it is, and insert nothing.
async fn read_qpack_encoder(
    mut stream: quinn::RecvStream,
    floods: Option<FloodBudget>,
) -> Result<(), Fault> {
    while let Some(bytes) = next_chunk(&mut stream, &floods).await? {
        if bytes.iter().any(|byte| *byte != 0b0010_0000) {
            let why = "an insertion into a dynamic table of no bytes".to_owned();
            return Err(Fault::Connection(Code::QPACK_ENCODER_STREAM_ERROR, why));
        }
    }
    Err(critical_fault("closed"))
}

/// The QPACK decoder's stream: it may cancel streams, and acknowledges nothing, for no block of ours uses a dynamic table.
async fn read_qpack_decoder(
    mut stream: quinn::RecvStream,
    floods: Option<FloodBudget>,
) -> Result<(), Fault> {
    let mut instructions = DecoderInstructions::default();
    while let Some(bytes) = next_chunk(&mut stream, &floods).await? {
        instructions.read(&bytes)?;
    }
    Err(critical_fault("closed"))
}

/// Reads a decoder's instructions, however they are split (RFC 9204 §4.4).
///
/// ```text
///   1 stream ID 7+     Section Acknowledgment
///   0 1 stream ID 6+   Stream Cancellation
///   0 0 increment 6+   Insert Count Increment
/// ```
#[derive(Debug, Default)]
struct DecoderInstructions {
    /// Bytes of a stream ID that came behind its first; `None` between instructions.
    continued: Option<u32>,
}

impl DecoderInstructions {
    /// The most bytes of an integer of 62 bits behind its first.
    const MAX_CONTINUED: u32 = 9;

    fn read(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        let error = |why: &str| {
            let code = Code::QPACK_DECODER_STREAM_ERROR;
            Err(Fault::Connection(code, why.to_owned()))
        };
        for &byte in bytes {
            self.continued = match (self.continued, byte) {
                (None, 0b1000_0000..) => {
                    let why = "Section Acknowledgment, but no field section used a dynamic table";
                    return error(why);
                }
                (None, 0b0100_0000..) => (byte & 0b0011_1111 == 0b0011_1111).then_some(0),
                (None, _) => {
                    return error("Insert Count Increment, but nothing was inserted");
                }
                (Some(Self::MAX_CONTINUED), _) => {
                    return error("Stream Cancellation of an ID of more than 62 bits");
                }
                (Some(_), 0..0b1000_0000) => None,
                (Some(continued), _) => Some(continued + 1),
            };
        }
        Ok(())
    }
}

fn frame_error(what: &str) -> Fault {
    Fault::Connection(Code::FRAME_ERROR, format!("{what} of a wrong length"))
}

/// The one integer that a frame of kind `what` consists of.
fn single_varint(payload: &Bytes, what: &str) -> Result<u64, Fault> {
    let mut read = Octets::with_slice(payload);
    match read.get_varint() {
        Ok(value) if read.cap() == 0 => Ok(value),
        _ => Err(frame_error(what)),
    }
}

/// The limit on field sections that SETTINGS name, if they do.
fn settings(payload: &Bytes) -> Result<Option<u64>, Fault> {
    let mut read = Octets::with_slice(payload);
    let (mut limit, mut seen) = (None, Vec::new());
    while read.cap() > 0 {
        let pair = (read.get_varint(), read.get_varint());
        let (Ok(id), Ok(value)) = pair else {
            return Err(frame_error("SETTINGS"));
        };
        if HTTP2_SETTINGS.contains(&id) || seen.contains(&id) {
            let why = format!("setting {id:#x}, which is of HTTP/2 or came twice");
            return Err(Fault::Connection(Code::SETTINGS_ERROR, why));
        }
        seen.push(id); // at most half of what a control frame may be long
        if id == MAX_FIELD_SECTION {
            limit = Some(value);
        }
    }
    Ok(limit)
}
