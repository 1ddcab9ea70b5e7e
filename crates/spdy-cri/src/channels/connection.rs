//! The connection of the channels: one future that reads and writes, and detects the end.
//!
//! ```text
//!  Writer --+                                       +--> Reader
//!  Writer --+--> outgoing --> encode --> WebSocket --> decode --+--> Reader
//!            write_room                    read_room
//! ```
//!
//! Both rooms are limits in bytes. While unread bytes of one channel fill the read room, nothing more is read from the socket: that
//! stops the sender, as it does at the kubelet.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use parking_lot::{Mutex, MutexGuard};
use spdy::runtime::BoxFuture;
use spdy::upgrade::IDLE_TIMEOUT;
use spdy::{Instant, SharedRuntime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::channel::{
    ENTRY_BYTES, MESSAGE_BYTES, QueuedPiece, Reader, ReceivedBytes, Writer, message_cost,
};
use super::codec::{self, BadMessage, Piece};
use crate::error::StreamError;
use crate::protocol::ChannelProtocol;
use crate::timeout::with_timeout;
use crate::websocket::normal_close;

/// Limit of bytes that writers may queue for the socket.
const WRITE_AHEAD: usize = 4 * (MESSAGE_BYTES + ENTRY_BYTES);
/// Timeout for the peer's answer to our close, the same as that for writing the end of a session.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Options for detecting a dead peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heartbeat {
    /// Interval between two PINGs.
    pub(crate) every: Duration,
    /// Timeout for the answer.
    pub(crate) timeout: Duration,
}

/// Direction of a channel, as seen from this side.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ChannelDirection {
    /// Not requested: input is discarded.
    Unused,
    /// From the peer.
    Read,
    /// To the peer.
    Write,
    /// Both directions.
    Both,
}

impl ChannelDirection {
    /// The direction of the same channel, as seen from the peer.
    pub(crate) fn reversed(self) -> Self {
        match self {
            Self::Read => Self::Write,
            Self::Write => Self::Read,
            Self::Unused | Self::Both => self,
        }
    }
}

/// Our ends of a channel.
#[derive(Debug)]
pub(crate) struct ChannelEnds {
    pub(crate) reader: Option<Reader>,
    pub(crate) writer: Option<Writer>,
}

/// Keeps a connection open although no writer exists.
#[derive(Debug)]
pub(crate) struct KeepOpen {
    _outgoing: UnboundedSender<QueuedPiece>,
}

/// A WebSocket with channels. Nothing is sent or received until [`run`](Self::run).
#[derive(Debug)]
pub(crate) struct Channels<T> {
    socket: WebSocketStream<T>,
    protocol: ChannelProtocol,
    incoming: Incoming,
    outgoing: UnboundedReceiver<QueuedPiece>,
    write_room: Arc<Semaphore>,
    heartbeat: Option<Heartbeat>,
    runtime: SharedRuntime,
}

/// Passes received pieces to the readers.
#[derive(Debug)]
struct Incoming {
    /// By channel number; `None` if there is no reader, or the peer has ended the channel.
    readers: Vec<Option<UnboundedSender<ReceivedBytes>>>,
    room: Arc<Semaphore>,
}

/// Why reading ended.
#[derive(Debug)]
enum ReadEnd {
    /// The peer closed abnormally, or the socket failed.
    Lost(String),
    /// The peer violated the protocol; the close frame states how.
    Broken { code: CloseCode, reason: String },
}

impl<T: AsyncRead + AsyncWrite + Unpin> Channels<T> {
    /// Creates channels over `socket`, for messages of up to `message_bytes`, and with the same limit of unread bytes.
    /// `sends_close`: the peer needs the end of a writer, which is sent if `protocol` supports it.
    pub(crate) fn new(
        socket: WebSocketStream<T>,
        protocol: ChannelProtocol,
        directions: &[ChannelDirection],
        sends_close: bool,
        message_bytes: usize,
        runtime: SharedRuntime,
    ) -> (Self, Vec<ChannelEnds>, KeepOpen) {
        let room = (message_bytes + ENTRY_BYTES).min(Semaphore::MAX_PERMITS);
        let mut incoming = Incoming {
            readers: Vec::new(),
            room: Arc::new(Semaphore::new(room)),
        };
        let write_room = Arc::new(Semaphore::new(WRITE_AHEAD));
        let (sender, outgoing) = unbounded_channel();
        let sends_close = sends_close && protocol.has_close();
        let mut ends = Vec::new();
        for (number, direction) in (0..=u8::MAX).zip(directions) {
            let reads = matches!(direction, ChannelDirection::Read | ChannelDirection::Both);
            let writes = matches!(direction, ChannelDirection::Write | ChannelDirection::Both);
            let (to_reader, arrived) = unbounded_channel();
            incoming.readers.push(reads.then_some(to_reader));
            let writer = writes
                .then(|| Writer::new(number, sends_close, sender.clone(), write_room.clone()));
            let reader = reads.then(|| Reader::new(arrived));
            ends.push(ChannelEnds { reader, writer });
        }
        let channels = Self {
            socket,
            protocol,
            incoming,
            outgoing,
            write_room,
            heartbeat: None,
            runtime,
        };
        let held = KeepOpen { _outgoing: sender };
        (channels, ends, held)
    }

    /// Sends PINGs to the peer.
    pub(crate) fn with_heartbeat(mut self, heartbeat: Option<Heartbeat>) -> Self {
        self.heartbeat = heartbeat;
        self
    }

    /// Runs until the peer has closed, or until everything is written and the close was answered.
    ///
    /// # Errors
    ///
    /// The same error as for readers: the connection was lost, or the peer violated the protocol.
    pub(crate) async fn run(self) -> Result<(), StreamError> {
        let Self {
            socket,
            protocol,
            mut incoming,
            outgoing,
            write_room,
            heartbeat,
            runtime,
        } = self;
        let (mut sink, mut stream) = socket.split();
        let activity = ActivityClock::new(&runtime);
        let ended = {
            let reading = read(&mut stream, protocol, &mut incoming, &activity);
            let mut reading = std::pin::pin!(reading);
            let every = heartbeat.map(|heartbeat| heartbeat.every);
            let writing = write(&mut sink, protocol, outgoing, &write_room, &activity, every);
            tokio::select! {
                ended = &mut reading => ended,
                written = writing => match written {
                    Ok(()) => match with_timeout(&runtime, CLOSE_TIMEOUT, reading).await {
                        Some(ended) => ended,
                        None => return Ok(()),
                    },
                    // The peer may have sent its close frame and the status before it stopped reading. If it did
                    // not, it may never send anything again.
                    Err(error) => match with_timeout(&runtime, CLOSE_TIMEOUT, reading).await {
                        Some(Ok(())) => Ok(()),
                        Some(Err(_)) | None => Err(ReadEnd::Lost(error.to_string())),
                    },
                },
                () = activity.wait_idle() => Err(ReadEnd::Broken {
                    code: CloseCode::Away,
                    reason: format!("nothing received for {IDLE_TIMEOUT:?}"),
                }),
                after = activity.wait_ping_timeout(heartbeat) => {
                    Err(ReadEnd::Lost(format!("no pong within {after:?}")))
                }
            }
        };
        write_room.close();
        let Err(fault) = ended else {
            incoming.readers.clear();
            // The peer's close is answered: reading further sends the answer, and waits for the end of the
            // connection.
            let rest = async { while let Some(Ok(_)) = stream.next().await {} };
            with_timeout(&runtime, CLOSE_TIMEOUT, rest).await;
            return Ok(());
        };
        let (message, code) = match fault {
            ReadEnd::Lost(message) => (message, None),
            ReadEnd::Broken {
                code,
                reason: message,
            } => (message, Some(code)),
        };
        let reason = message.chars().take(40).collect::<String>().into();
        let error = StreamError::WebSocket {
            reason: message.into(),
        };
        incoming.fail_all(&error);
        if let Some(code) = code {
            let close = Message::Close(Some(CloseFrame { code, reason }));
            let close_socket = async {
                if sink.send(close).await.is_ok()
                    && let Ok(socket) = sink.reunite(stream)
                {
                    drain(socket).await;
                }
            };
            with_timeout(&runtime, CLOSE_TIMEOUT, close_socket).await;
        }
        Err(error)
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin + Send + 'static> Channels<T> {
    /// Runs the connection as a task; its end is reported to its readers and writers.
    pub(crate) fn into_task(self) -> BoxFuture<()> {
        Box::pin(async {
            if let Err(error) = self.run().await {
                tracing::debug!(%error, "connection lost");
            }
        })
    }
}

/// Runs a connection and its application: when the connection has ended, both have.
pub(crate) async fn run_with<T>(channels: Channels<T>, application: impl Future<Output = ()>)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let application = async {
        application.await;
        // Its writers are gone: the connection sends its close frame by itself.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = channels.run() => if let Err(error) = ended {
            tracing::debug!(%error, "connection lost");
        },
        () = application => unreachable!("the future never completes"),
    }
}

/// Discards input until the peer closes: closing a socket with unread bytes resets it, and the peer would not get the close frame
/// with the reason.
async fn drain<T: AsyncRead + AsyncWrite + Unpin>(mut socket: WebSocketStream<T>) {
    let mut ignored = [0; 4096];
    while let Ok(1..) = socket.get_mut().read(&mut ignored).await {}
}

/// Reads until the peer's close.
async fn read<T: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut SplitStream<WebSocketStream<T>>,
    protocol: ChannelProtocol,
    incoming: &mut Incoming,
    activity: &ActivityClock<'_>,
) -> Result<(), ReadEnd> {
    loop {
        activity.record_reading();
        let message = stream.next().await;
        activity.record_message();
        let bytes: Bytes = match message {
            // The kubelet accepts either message kind for either codec.
            Some(Ok(Message::Binary(bytes))) => bytes,
            Some(Ok(Message::Text(text))) => text.into(),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Ok(Message::Close(Some(close)))) if close.code != CloseCode::Normal => {
                let (code, reason) = (close.code, close.reason);
                return Err(ReadEnd::Lost(format!("closed with {code} {reason}")));
            }
            Some(Ok(Message::Close(_))) => return Ok(()),
            Some(Err(error @ Error::Capacity(_))) => {
                let (code, reason) = (CloseCode::Size, error.to_string());
                return Err(ReadEnd::Broken { code, reason });
            }
            Some(Err(error)) => return Err(ReadEnd::Lost(error.to_string())),
            None => return Err(ReadEnd::Lost("it ended without a close frame".to_owned())),
        };
        match codec::decode(protocol, bytes) {
            Ok(None) => {}
            Ok(Some(piece)) => incoming.take(piece).await?,
            Err(error) => {
                let code = match error {
                    BadMessage::Base64 { .. } => CloseCode::Invalid,
                    BadMessage::Close { .. } => CloseCode::Protocol,
                };
                let reason = error.to_string();
                return Err(ReadEnd::Broken { code, reason });
            }
        }
    }
}

impl Incoming {
    /// Passes a piece to its reader, once it has a permit.
    async fn take(&mut self, piece: Piece) -> Result<(), ReadEnd> {
        match piece {
            Piece::Data { channel, data } => {
                let Some(Some(reader)) = self.readers.get(usize::from(channel)) else {
                    tracing::debug!(channel, bytes = data.len(), "data for an unknown channel");
                    return Ok(());
                };
                if data.is_empty() || reader.is_closed() {
                    return Ok(());
                }
                let room = self
                    .room
                    .clone()
                    .acquire_many_owned(message_cost(data.len()));
                let Ok(room) = room.await else {
                    unreachable!("the receive semaphore is never closed")
                };
                // The piece is dropped if its reader was dropped.
                let _ = reader.send(Ok((data, room)));
            }
            Piece::Close { channel } => match self.readers.get_mut(usize::from(channel)) {
                Some(reader) => *reader = None,
                None => {
                    let (code, reason) =
                        (CloseCode::Protocol, format!("unknown channel {channel}"));
                    return Err(ReadEnd::Broken { code, reason });
                }
            },
        }
        Ok(())
    }

    /// Passes the error to all readers except those that have ended.
    fn fail_all(self, error: &StreamError) {
        for reader in self.readers.into_iter().flatten() {
            let _ = reader.send(Err(error.clone()));
        }
    }
}

/// Writes until no writer exists, and then the close frame.
async fn write<T: AsyncRead + AsyncWrite + Unpin>(
    sink: &mut SplitSink<WebSocketStream<T>, Message>,
    protocol: ChannelProtocol,
    mut outgoing: UnboundedReceiver<QueuedPiece>,
    write_room: &Semaphore,
    activity: &ActivityClock<'_>,
    ping_every: Option<Duration>,
) -> Result<(), Error> {
    let runtime = activity.runtime;
    let mut next_ping = ping_every.map(|every| runtime.now() + every);
    let written = async {
        loop {
            let due = next_ping.map_or_else(never, |at| runtime.sleep_until(at));
            let next = match select(due, std::pin::pin!(outgoing.recv())).await {
                Either::Left(_) => None,
                Either::Right((next, _)) => Some(next),
            };
            let Some(mut next) = next else {
                sink.send(Message::Ping(Bytes::new())).await?;
                activity.record_ping();
                next_ping = ping_every.map(|every| runtime.now() + every);
                continue;
            };
            if next.is_none() {
                break;
            }
            while let Some(QueuedPiece { piece, _room }) = next {
                sink.feed(codec::encode(protocol, &piece)).await?;
                next = outgoing.try_recv().ok();
            }
            sink.flush().await?;
            activity.record_sent();
        }
        let close = Message::Close(Some(normal_close()));
        sink.send(close).await
    };
    let written = written.await;
    write_room.close(); // writers that wait for a permit get an error
    written
}

fn never() -> BoxFuture<()> {
    Box::pin(std::future::pending())
}

/// The time of the last message in either direction, including PINGs, and whether the peer owes a PONG.
struct ActivityClock<'r> {
    runtime: &'r SharedRuntime,
    state: Mutex<ActivityState>,
}

struct ActivityState {
    at: Instant,
    /// The first PING that we sent after the last input.
    pinged: Option<Instant>,
    /// True while the socket is read. While unread bytes fill the room, it is not read, and an answer may be unread.
    reads: bool,
}

impl<'r> ActivityClock<'r> {
    fn new(runtime: &'r SharedRuntime) -> Self {
        let state = Mutex::new(ActivityState {
            at: runtime.now(),
            pinged: None,
            reads: false,
        });
        Self { runtime, state }
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        self.state.lock()
    }

    /// Records that the next message is being waited for.
    fn record_reading(&self) {
        let mut state = self.state();
        state.reads = true;
        state.pinged = state.pinged.map(|_| self.runtime.now());
    }

    fn record_message(&self) {
        *self.state() = ActivityState {
            at: self.runtime.now(),
            pinged: None,
            reads: false,
        };
    }

    fn record_sent(&self) {
        self.state().at = self.runtime.now();
    }

    fn record_ping(&self) {
        let now = self.runtime.now();
        let mut state = self.state();
        state.at = now;
        state.pinged.get_or_insert(now);
    }

    /// Completes when nothing was sent or received for [`IDLE_TIMEOUT`].
    async fn wait_idle(&self) {
        loop {
            let due = self.state().at + IDLE_TIMEOUT;
            if self.runtime.now() >= due {
                return;
            }
            self.runtime.sleep_until(due).await;
        }
    }

    /// Ready when a PING was not answered within the timeout; returns the timeout.
    async fn wait_ping_timeout(&self, heartbeat: Option<Heartbeat>) -> Duration {
        let Some(Heartbeat { timeout, .. }) = heartbeat else {
            return std::future::pending().await;
        };
        loop {
            let now = self.runtime.now();
            let pinged = {
                let state = self.state();
                state.pinged.filter(|_| state.reads)
            };
            let due = pinged.unwrap_or(now) + timeout;
            if now >= due {
                return timeout;
            }
            self.runtime.sleep_until(due).await;
        }
    }
}
