//! The control streams: writes ours, and reads the peer's (RFC 9114 §6.2.1).
//!
//! ```text
//!   ours    00 | SETTINGS .. | GOAWAY        when the connection is to end
//!   theirs  00 | SETTINGS .. | GOAWAY, PRIORITY_UPDATE, ..      once, and never closed
//! ```

use std::pin::pin;

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::future::{Either, select};
use octets::Octets;
use spdy::runtime::BoxFuture;
use tokio::sync::oneshot;

use crate::code::Code;
use crate::compression::PeerSettings;
use crate::control::critical_stream::critical_fault;
use crate::fault::Fault;
use crate::flood_budget::FloodBudget;
use crate::frame::{FrameEvent, FrameReader, StreamKind, frame, kind, put_varint};
use crate::qpack::{MAX_BLOCKED_STREAMS, MAX_TABLE_BYTES};
use crate::role::Role;

// Settings (RFC 9114 §7.2.4.1, RFC 9204 §5).
const QPACK_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION: u64 = 0x6;
const QPACK_BLOCKED: u64 = 0x7;
/// Settings of HTTP/2 that are not allowed (RFC 9114 §7.2.4.1).
const HTTP2_SETTINGS: [u64; 5] = [0x0, 0x2, 0x3, 0x4, 0x5];
/// Higher than all requests, so that control frames do not wait behind bodies.
pub(crate) const CONTROL_PRIORITY: i32 = i32::MAX;

/// An event of the peer's control stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ControlEvent {
    /// The settings of the peer.
    Settings(PeerSettings),
    /// Streams from this one on will not be processed.
    Goaway(u64),
    /// The priority of this stream's response is the value of this header field.
    Priority(u64, String),
}

/// Our control stream. It stays open until this is dropped.
pub(crate) struct OwnControlStream {
    /// Sends the stream, and completes with the reason why that failed.
    sending: BoxFuture<Fault>,
    goaway: oneshot::Sender<u64>,
}

impl OwnControlStream {
    /// Opens our control stream and sends our SETTINGS, as soon as the rest is polled.
    pub(crate) fn start(connection: &quinn::Connection, max_head_bytes: usize) -> Self {
        let (goaway, receiver) = oneshot::channel();
        let sending = send_control_stream(connection.clone(), max_head_bytes, receiver);
        Self {
            sending: Box::pin(sending),
            goaway,
        }
    }

    /// Sends while `other` runs.
    pub(crate) async fn while_sent<F: Future>(&mut self, other: F) -> F::Output {
        let mut other = pin!(other);
        match select(&mut self.sending, &mut other).await {
            Either::Left((fault, _)) => {
                self.sending = Box::pin(std::future::ready(fault)); // reported later
                other.await
            }
            Either::Right((output, _)) => output,
        }
    }

    /// The future that sends, and the sender of the ID for GOAWAY.
    pub(crate) fn into_parts(self) -> (BoxFuture<Fault>, oneshot::Sender<u64>) {
        (self.sending, self.goaway)
    }
}

/// Opens our control stream, sends our SETTINGS, and GOAWAY with the ID from `goaway`. Keeps the stream open until it is dropped.
/// Returns why that failed.
async fn send_control_stream(
    connection: quinn::Connection,
    max_head_bytes: usize,
    goaway: oneshot::Receiver<u64>,
) -> Fault {
    let spoken = async {
        let mut stream = connection.open_uni().await?;
        let _ = stream.set_priority(CONTROL_PRIORITY); // fails only for a stream that is gone
        let mut settings = BytesMut::new();
        for (id, value) in [
            (QPACK_CAPACITY, MAX_TABLE_BYTES),
            (MAX_FIELD_SECTION, max_head_bytes as u64),
            (QPACK_BLOCKED, MAX_BLOCKED_STREAMS as u64),
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

pub(crate) async fn read_control_stream(
    stream: quinn::RecvStream,
    role: Role,
    floods: Option<FloodBudget>,
    on: &impl Fn(ControlEvent),
) -> Result<(), Fault> {
    let mut frames = FrameReader::new(stream, StreamKind::Control, None, Code::NO_ERROR)
        .with_flood_budget(floods);
    let mut hearing = ControlState::new(role);
    // `FrameReader` checks that SETTINGS is the first frame, and occurs once.
    loop {
        let next = frames.next().await.map_err(|fault| match fault {
            Fault::Ended(_) => critical_fault("reset"),
            other => other,
        })?;
        let piece = next.ok_or_else(|| critical_fault("closed"))?;
        hearing.handle(piece)?.into_iter().for_each(on);
    }
}

/// The state of the peer's control stream.
#[derive(Debug)]
pub(crate) struct ControlState {
    role: Role,
    /// The last ID of GOAWAY.
    goaway: u64,
    /// The last MAX_PUSH_ID.
    max_push_id: Option<u64>,
}

impl ControlState {
    /// The state before the first frame; `role` is that of the receiver.
    pub(crate) fn new(role: Role) -> Self {
        Self {
            role,
            goaway: u64::MAX,
            max_push_id: None,
        }
    }

    /// Handles the next frame. Returns its event, if it has one.
    pub(crate) fn handle(&mut self, piece: FrameEvent) -> Result<Option<ControlEvent>, Fault> {
        let FrameEvent::Frame(kind, payload) = piece else {
            panic!("expected only frames on a control stream, found {piece:?}");
        };
        match (kind, self.role) {
            (kind::SETTINGS, _) => Ok(Some(ControlEvent::Settings(settings(&payload)?))),
            (kind::GOAWAY, role) => {
                let id = single_varint(&payload, "GOAWAY")?;
                if role == Role::Client && id % 4 != 0 {
                    let reason = format!("GOAWAY with {id}, which is not a request stream");
                    return Err(Fault::Connection(Code::ID_ERROR, reason));
                }
                if id > self.goaway {
                    let reason = format!("GOAWAY with {id} after one with {}", self.goaway);
                    return Err(Fault::Connection(Code::ID_ERROR, reason));
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
                    let reason = format!("PRIORITY_UPDATE of {id}, which is not a request stream");
                    return Err(Fault::Connection(Code::ID_ERROR, reason));
                }
                let field = String::from_utf8_lossy(&payload[read.off()..]).into_owned();
                Ok(Some(ControlEvent::Priority(id, field)))
            }
            (
                kind::PRIORITY_UPDATE | kind::PRIORITY_UPDATE_OF_PUSH | kind::MAX_PUSH_ID,
                Role::Client,
            ) => {
                let reason = format!("unexpected frame of type {kind:#x} from a server");
                Err(Fault::Connection(Code::FRAME_UNEXPECTED, reason))
            }
            (kind::MAX_PUSH_ID, Role::Server) => {
                let id = single_varint(&payload, "MAX_PUSH_ID")?;
                if let Some(last) = self.max_push_id.replace(id)
                    && id < last
                {
                    let reason = format!("MAX_PUSH_ID {id} after {last}: it must not decrease");
                    return Err(Fault::Connection(Code::ID_ERROR, reason));
                }
                Ok(None)
            }
            // A server here sends no push, and a client here allows none: no ID is valid.
            (kind::CANCEL_PUSH, _) => {
                let id = single_varint(&payload, "CANCEL_PUSH")?;
                let reason = format!("CANCEL_PUSH of push {id}, which does not exist");
                Err(Fault::Connection(Code::ID_ERROR, reason))
            }
            (kind::PRIORITY_UPDATE_OF_PUSH, Role::Server) => {
                let id = Octets::with_slice(&payload).get_varint();
                let id = id.map_err(|_| frame_error("PRIORITY_UPDATE"))?;
                let reason = format!("PRIORITY_UPDATE of push {id}, which does not exist");
                Err(Fault::Connection(Code::ID_ERROR, reason))
            }
            _ => Ok(None),
        }
    }
}

fn frame_error(what: &str) -> Fault {
    Fault::Connection(Code::FRAME_ERROR, format!("{what} has a wrong length"))
}

/// Parses the payload of a frame of kind `what` that is a single integer.
fn single_varint(payload: &Bytes, what: &str) -> Result<u64, Fault> {
    let mut read = Octets::with_slice(payload);
    match read.get_varint() {
        Ok(value) if read.cap() == 0 => Ok(value),
        _ => Err(frame_error(what)),
    }
}

/// The settings in SETTINGS that matter here.
fn settings(payload: &Bytes) -> Result<PeerSettings, Fault> {
    let mut read = Octets::with_slice(payload);
    let (mut settings, mut seen) = (PeerSettings::default(), Vec::new());
    while read.cap() > 0 {
        let pair = (read.get_varint(), read.get_varint());
        let (Ok(id), Ok(value)) = pair else {
            return Err(frame_error("SETTINGS"));
        };
        if HTTP2_SETTINGS.contains(&id) || seen.contains(&id) {
            let reason = format!("setting {id:#x} is reserved for HTTP/2 or occurs twice");
            return Err(Fault::Connection(Code::SETTINGS_ERROR, reason));
        }
        seen.push(id); // limited, because a control frame has a maximum length
        match id {
            MAX_FIELD_SECTION => settings.max_field_section = value,
            QPACK_CAPACITY => settings.qpack_max_table_capacity = value,
            QPACK_BLOCKED => settings.qpack_blocked_streams = value,
            _ => {}
        }
    }
    Ok(settings)
}
