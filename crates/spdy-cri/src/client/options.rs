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
    /// WebSocket: channels for exec and attach, SPDY inside WebSocket for port-forward.
    WebSocket,
    /// SPDY by `Upgrade`.
    Spdy,
}

/// Options of a client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Transports that the calls with a fallback try, in order. Default WebSocket, SPDY, like `kubectl`.
    pub transports: Vec<Transport>,
    /// Versions of exec and attach to offer over SPDY, in order of preference. Default all.
    pub remote_command: Vec<RemoteCommand>,
    /// Sub-protocols of exec and attach to offer over WebSocket, in order of preference. Default only version 5, like `kubectl`:
    /// the others have no message for the end of stdin.
    pub channels: Vec<ChannelProtocol>,
    /// Limits of the server's HTTP.
    pub limits: Limits,
    /// Limit of a message on a plain WebSocket, bytes; a longer one ends the connection (close 1009). It is also the limit of
    /// unread bytes. Default 1 MiB: servers send pieces of 32 KiB.
    pub message_bytes: usize,
    /// Interval between two PINGs on a plain WebSocket; over SPDY, also inside WebSocket, the time from the last input to a PING.
    /// `None` sends none. Default 5 s, like client-go.
    pub ping_interval: Option<Duration>,
    /// Timeout for the answer to a PING, while we read; then the connection is lost. Over SPDY any input counts as an answer.
    /// Default 60 s, like client-go on WebSocket.
    pub ping_timeout: Duration,
    /// The same over SPDY, while stdin waits to be accepted, or may be unread before the PING (64 KiB or more in total): a
    /// server that blocks because the command pauses does not read PING either. It counts from the last input: a command that
    /// writes may leave its stdin unread forever. Without PINGs, it is the timeout of a completely silent connection. Default 4 h,
    /// after which the kubelet ends a silent session; TCP alone detects a dead peer after about 15 min. (client-go has no timeout.)
    pub unread_timeout: Duration,
    /// Timeout for the server's answer to a stream. Default 30 s, like client-go.
    pub stream_timeout: Duration,
    /// Counts SPDY sessions, also those inside WebSocket, but not plain WebSockets. Default `None`: no counts.
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
