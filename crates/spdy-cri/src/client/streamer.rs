//! Shared parts of the client's calls: opening streams with a timeout, and reading the error stream.

use std::time::Duration;

use bytes::Bytes;
use spdy::client::{OpenOptions, Session};
use spdy::upgrade::{self, Channel};
use spdy::{HeaderBlock, SharedRuntime};
use tokio::io::{AsyncRead, AsyncWrite};

use super::options::Options;
use crate::error::ClientError;
use crate::protocol::STREAM_TYPE;
use crate::stdio::Input;
use crate::timeout::with_timeout;

/// Bytes of the error stream that are stored; the rest is read and dropped.
const STATUS_BYTES: usize = 64 * 1024;

/// A session, with the options for opening streams on it.
#[derive(Debug)]
pub(super) struct Streamer {
    pub(super) session: Session,
    runtime: SharedRuntime,
    timeout: Duration,
}

impl Streamer {
    /// Starts a session over `io`, after the switch.
    pub(super) fn start<T>(io: T, options: &Options, runtime: SharedRuntime) -> Self
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut builder =
            upgrade::client_builder().keepalive(options.ping_interval, options.ping_timeout);
        let config = builder.config_mut();
        config.keepalive_unread_timeout = options.unread_timeout;
        // if PINGs are sent, they detect a dead peer
        let pings = options.ping_interval.is_some();
        config.silence_timeout = (!pings).then_some(options.unread_timeout);
        if let Some(metrics) = &options.metrics {
            builder = builder.metrics(metrics);
        }
        let (session, connection) = builder.handshake(io, runtime.clone());
        connection.spawn();
        Self {
            session,
            runtime,
            timeout: options.stream_timeout,
        }
    }

    /// Opens a stream and waits for its answer: DATA that is sent before would be dropped.
    pub(super) async fn open(
        &self,
        kind: &'static str,
        more: &[(&'static str, String)],
    ) -> Result<Channel, ClientError> {
        let mut headers = HeaderBlock::new();
        headers.push(STREAM_TYPE, kind);
        for (name, value) in more {
            headers.push(*name, value.clone());
        }
        let opened = async {
            let stream = self.session.open(headers, OpenOptions::default()).await?;
            let mut channel = Channel::new(stream);
            channel.reply().await?;
            Ok(channel)
        };
        self.within(opened)
            .await
            .unwrap_or(Err(ClientError::NoReply {
                stream: kind,
                after: self.timeout,
            }))
    }

    /// The output of `work`, or `None` after the timeout for an answer.
    pub(super) async fn within<R>(&self, work: impl Future<Output = R>) -> Option<R> {
        with_timeout(&self.runtime, self.timeout, work).await
    }
}

/// The error with the server's message.
pub(super) fn remote_error(text: &[u8]) -> ClientError {
    let message = String::from_utf8_lossy(text).into_owned();
    ClientError::Remote { message }
}

/// Reads the error stream to its end.
pub(super) async fn read_status(error: &mut Input) -> Result<Bytes, ClientError> {
    match read_until_end(error).await {
        (status, None) => Ok(status),
        (_, Some(lost)) => Err(lost),
    }
}

/// Reads the error stream to its end. If that fails, returns the bytes so far and the error.
pub(super) async fn read_until_end(error: &mut Input) -> (Bytes, Option<ClientError>) {
    let mut status = Vec::new();
    while let Some(bytes) = error.receive().await {
        match bytes {
            Ok(bytes) => {
                let room = STATUS_BYTES - status.len();
                status.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            Err(lost) => return (status.into(), Some(lost.into())),
        }
    }
    (status.into(), None)
}
