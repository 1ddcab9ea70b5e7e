//! Every limit and choice of the streaming server, with its name and its default.

use std::time::Duration;

use spdy::Metrics;

use crate::protocol::{ChannelProtocol, RemoteCommand};
use crate::websocket::MAX_MESSAGE_BYTES;

/// Limits and choices; the defaults are the kubelet's where it has the same.
#[derive(Clone, Debug)]
pub struct Config {
    /// How long a URL may wait to be used. Default 1 min.
    pub token_lifetime: Duration,
    /// URLs that may wait at once; one more is [`RequestError::TooMany`](crate::RequestError::TooMany).
    /// Default 1000.
    pub max_tokens: usize,
    /// From the switch to the last stream that the request requires; and, for each forwarded connection,
    /// from its first stream to its second. Default 30 s.
    pub stream_creation_timeout: Duration,
    /// How long HTTP may take to send its head. Default 30 s.
    pub head_timeout: Duration,
    /// Bytes of an HTTP head, 8192 at least. Default 16 KiB.
    pub head_bytes: usize,
    /// Connections that [`serve`](crate::StreamingServer::serve) has at once; more wait to be accepted.
    /// Default 1000.
    pub max_connections: usize,
    /// Forwarded connections of one session that have one stream of two; one more is reset. Default 100.
    pub max_half_pairs: usize,
    /// Versions of exec and attach that are accepted. Default 4 to 1, as the kubelet: clients offer 5
    /// first, which over SPDY is 4 under another name.
    pub remote_command: Vec<RemoteCommand>,
    /// Whether port-forward is also served as SPDY inside WebSocket. Default `true`.
    pub tunnel: bool,
    /// Sub-protocols of plain WebSocket that are accepted; none for SPDY alone. Default all: the kubelet's,
    /// and version 5.
    pub channels: Vec<ChannelProtocol>,
    /// Bytes of a message on a plain WebSocket; a longer one ends the connection (close 1009). As many wait
    /// for the handler to read them. Default 1 MiB; the kubelet takes 32 MiB.
    pub message_bytes: usize,
    /// Where SPDY sessions are counted, those inside of WebSocket too; plain WebSockets are none. Default
    /// `None`: nowhere.
    pub metrics: Option<Metrics>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            token_lifetime: Duration::from_secs(60),
            max_tokens: 1000,
            stream_creation_timeout: Duration::from_secs(30),
            head_timeout: Duration::from_secs(30),
            head_bytes: 16 * 1024,
            max_connections: 1000,
            max_half_pairs: 100,
            remote_command: vec![
                RemoteCommand::V4,
                RemoteCommand::V3,
                RemoteCommand::V2,
                RemoteCommand::V1,
            ],
            tunnel: true,
            channels: ChannelProtocol::ALL.to_vec(),
            message_bytes: MAX_MESSAGE_BYTES,
            metrics: None,
        }
    }
}

/// Why a server cannot be made so.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The base of the URLs is none.
    #[error(
        "{url:?} is no base of urls: want http://HOST:PORT or https://HOST:PORT, with or without a path"
    )]
    BaseUrl {
        /// What was given.
        url: String,
    },
}
