//! Options of the client's calls.

use std::time::Duration;

use spdy::Metrics;
use spdy::upgrade::{IDLE_TIMEOUT, Limits};

use crate::channels::Heartbeat;
use crate::protocol::{ChannelProtocol, RemoteCommand};
use crate::websocket::MAX_MESSAGE_BYTES;

/// A transport for requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    /// WebSocket: channels for exec and attach, SPDY inside of it for port-forward.
    WebSocket,
    /// SPDY by `Upgrade`.
    Spdy,
}

/// Choices of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the calls with a fallback try, one after the other. Default WebSocket, SPDY, as `kubectl`.
    pub transports: Vec<Transport>,
    /// Versions of exec and attach to offer over SPDY, the best first. Default all.
    pub remote_command: Vec<RemoteCommand>,
    /// Sub-protocols of exec and attach to offer over WebSocket, the best first. Default version 5 alone, as
    /// `kubectl`: the others have no message for the end of stdin.
    pub channels: Vec<ChannelProtocol>,
    /// What is taken of the server's HTTP.
    pub limits: Limits,
    /// Bytes of a message on a plain WebSocket; a longer one ends the connection (close 1009). As many wait
    /// to be read. Default 1 MiB: servers send pieces of 32 KiB.
    pub message_bytes: usize,
    /// From one PING to the next on a plain WebSocket; over SPDY, and SPDY inside of WebSocket, from the last
    /// that came to a PING. `None` sends none. Default 5 s, as client-go.
    pub ping_interval: Option<Duration>,
    /// How long the answer to a PING may take, while we read; then the connection is lost. Over SPDY any input is an
    /// answer. Default 60 s, as client-go on WebSocket.
    pub ping_timeout: Duration,
    /// The same over SPDY, while stdin waits to be accepted, or may be unread in front of the PING (64 KiB or more in
    /// all): servers that block on it, since the command pauses, do not read PING either. It counts from the last
    /// input: a command that writes may leave its stdin unread for ever. Without PINGs, the timeout of a fully silent
    /// connection. Default 4 h, in which the kubelet ends a silent session; TCP alone detects in some 15 min that the
    /// peer is gone. (client-go never gives up.)
    pub unread_timeout: Duration,
    /// How long the server may take to answer a stream. Default 30 s, as client-go.
    pub stream_timeout: Duration,
    /// Where SPDY sessions are counted, those inside of WebSocket too; plain WebSockets are none. Default
    /// `None`: nowhere.
    pub metrics: Option<Metrics>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            transports: vec![Transport::WebSocket, Transport::Spdy],
            remote_command: RemoteCommand::ALL.to_vec(),
            channels: vec![ChannelProtocol::V5],
            limits: Limits::default(),
            message_bytes: MAX_MESSAGE_BYTES,
            ping_interval: Some(Duration::from_secs(5)),
            ping_timeout: Duration::from_secs(60),
            unread_timeout: IDLE_TIMEOUT,
            stream_timeout: Duration::from_secs(30),
            metrics: None,
        }
    }
}

impl Options {
    /// How to detect a silent server.
    pub(super) fn heartbeat(&self) -> Option<Heartbeat> {
        let timeout = self.ping_timeout;
        self.ping_interval.map(|every| Heartbeat { every, timeout })
    }
}
