//! What a caller may choose.

use std::time::Duration;

use spdy::upgrade::Limits;

use crate::protocol::{ChannelProtocol, RemoteCommand};
use crate::websocket::MAX_MESSAGE_BYTES;

/// A way to ask.
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
    /// Sub-protocols of exec and attach to offer over WebSocket, the best first. Default version 5 alone,
    /// as `kubectl`: in the others the end of stdin cannot be told.
    pub channels: Vec<ChannelProtocol>,
    /// What is taken of the server's HTTP.
    pub limits: Limits,
    /// Bytes of a message on a plain WebSocket; a longer one ends the connection (close 1009). As many wait
    /// to be read. Default 1 MiB: servers send pieces of 32 KiB.
    pub message_bytes: usize,
    /// How long the server may take to answer a stream. Default 30 s, as client-go.
    pub stream_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            transports: vec![Transport::WebSocket, Transport::Spdy],
            remote_command: RemoteCommand::ALL.to_vec(),
            channels: vec![ChannelProtocol::V5],
            limits: Limits::default(),
            message_bytes: MAX_MESSAGE_BYTES,
            stream_timeout: Duration::from_secs(30),
        }
    }
}
