//! Configures the streaming server: its limits and options, with their defaults.

use std::time::Duration;

use spdy::Metrics;

use crate::protocol::{ChannelProtocol, RemoteCommand};
use crate::websocket::MAX_MESSAGE_BYTES;

/// Limits and options. A default is the kubelet's if the kubelet has the same setting.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// How long a URL is valid before it is used. Default 1 min.
    pub token_lifetime: Duration,
    /// Maximum number of URLs that are valid and unused at once; one more is [`RequestError::TooMany`](crate::RequestError::TooMany).
    /// Default 1000.
    pub max_tokens: usize,
    /// Longest time from the protocol switch to the last stream that the request requires. For each forwarded
    /// connection, also the longest time from its first stream to its second. Default 30 s.
    pub stream_creation_timeout: Duration,
    /// Longest time that a client may take to send the head of its HTTP request. Default 30 s.
    pub head_timeout: Duration,
    /// Largest head of an HTTP request, bytes; 8192 at least. Default 16 KiB.
    pub head_bytes: usize,
    /// Maximum number of connections that [`serve`](crate::StreamingServer::serve) has open at once; more wait to be accepted.
    /// Also the maximum number of sessions of each `respond`; one more gets 503. Default 1000.
    pub max_connections: usize,
    /// Maximum number of forwarded connections of one session that have only one of their two streams; one more is reset.
    /// Default 100.
    pub max_half_pairs: usize,
    /// Protocol versions of exec and attach that are accepted. Default 4 to 1, as in the kubelet. Clients offer 5
    /// first; leaving it out costs nothing, because over SPDY 5 differs from 4 only in its name.
    pub remote_command: Vec<RemoteCommand>,
    /// Whether port-forward is also served as SPDY inside WebSocket. Default `true`.
    pub tunnel: bool,
    /// Sub-protocols of plain WebSocket that are accepted; if empty, only SPDY is served. Default all: the
    /// kubelet's, and version 5.
    pub channels: Vec<ChannelProtocol>,
    /// Largest message on a plain WebSocket, bytes; a larger one ends the connection (close 1009). Up to the same
    /// number of bytes waits for the handler to read them. Default 1 MiB; the kubelet accepts 32 MiB.
    pub message_bytes: usize,
    /// Counts SPDY sessions, also those inside WebSocket, but not plain WebSockets. Default `None`: no counts.
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

/// A configuration that no server can have.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The base URL is not usable.
    #[error(
        "invalid base URL {url:?}: expected http://HOST:PORT or https://HOST:PORT, with or without a path"
    )]
    BaseUrl {
        /// The base URL that was configured.
        url: String,
    },
}
