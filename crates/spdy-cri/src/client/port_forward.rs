//! Port-forward.

use std::sync::atomic::{AtomicU64, Ordering};

use http::Request;
use spdy::SharedRuntime;
use spdy::upgrade::{self, Upgraded};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::options::Options;
use super::streamer::{Streamer, read_status, remote_error};
use crate::channels::port_forward::{directions, max_ports};
use crate::channels::{ChannelDirection, Channels};
use crate::error::{ClientError, RequestError, StreamError};
use crate::protocol::{ChannelProtocol, DATA, ERROR, PORT, PORT_FORWARD, REQUEST_ID};
use crate::stdio::{Connection, Input};
use crate::timeout::with_timeout;
use crate::tunnel::Tunnel;
use crate::websocket;

/// A session that forwards ports of a pod.
#[derive(Debug)]
pub struct PortForward {
    streamer: Streamer,
    next_request: AtomicU64,
}

/// Connects to the ports of a pod.
///
/// # Errors
///
/// Why the server did not switch.
pub async fn port_forward<T>(
    io: T,
    request: &Request<()>,
    options: Options,
    runtime: SharedRuntime,
) -> Result<PortForward, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let offers = [PORT_FORWARD];
    let upgraded: Upgraded<T> =
        upgrade::connect(io, request, &offers, options.limits, &runtime).await?;
    Ok(PortForward::start(upgraded.into_io(), &options, runtime))
}

/// Like [`port_forward`], as SPDY inside WebSocket: for proxies that support no other upgrade. The API server of Kubernetes 1.30
/// and later supports it.
///
/// # Errors
///
/// Why the server did not switch.
pub async fn port_forward_in_websocket<T>(
    io: T,
    request: &Request<()>,
    options: Options,
    runtime: SharedRuntime,
) -> Result<PortForward, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let tunnel = Tunnel::connect(io, request, PORT_FORWARD, options.limits, &runtime).await?;
    Ok(PortForward::start(tunnel, &options, runtime))
}

impl PortForward {
    fn start<T>(io: T, options: &Options, runtime: SharedRuntime) -> Self
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        Self {
            streamer: Streamer::start(io, options, runtime),
            next_request: AtomicU64::new(0),
        }
    }

    /// Opens a new connection to `port`. Any number may be open at once.
    ///
    /// # Errors
    ///
    /// The session has ended, or the server answers no stream. If nothing listens on `port`, the error may arrive at
    /// once as [`ClientError::Remote`], but usually later, from [`ForwardedConnection::wait`].
    pub async fn connect(&self, port: u16) -> Result<ForwardedConnection, ClientError> {
        let id = self.next_request.fetch_add(1, Ordering::Relaxed);
        let headers = [(PORT, port.to_string()), (REQUEST_ID, id.to_string())];
        let mut error = self.streamer.open(ERROR, &headers).await?;
        error.finish()?; // only the server sends on it
        match self.streamer.open(DATA, &headers).await {
            Ok(data) => Ok(ForwardedConnection {
                data: Connection::of_spdy(data),
                error: Input::of_spdy(error),
            }),
            // The kubelet may find that the port is closed before it has answered the stream.
            Err(ClientError::Session(StreamError::Spdy(reset)))
                if reset.reset_status().is_some() =>
            {
                let mut error = Input::of_spdy(error);
                match self.streamer.within(read_status(&mut error)).await {
                    Some(Ok(text)) if !text.is_empty() => Err(remote_error(&text)),
                    _ => Err(reset.into()),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// True if it accepts no new connections.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.streamer.session.is_closing()
    }
}

/// One forwarded connection.
#[derive(Debug)]
pub struct ForwardedConnection {
    /// The data, in both directions. Read it to its end before [`wait`](Self::wait).
    pub data: Connection,
    error: Input,
}

impl ForwardedConnection {
    /// Waits for the server's result.
    ///
    /// # Errors
    ///
    /// [`ClientError::Remote`] with the server's message: nothing listens on the port, or the connection failed.
    pub async fn wait(self) -> Result<(), ClientError> {
        let Self { data, mut error } = self;
        drop(data);
        match read_status(&mut error).await? {
            text if text.is_empty() => Ok(()),
            text => Err(remote_error(&text)),
        }
    }

    /// The data stream, and the error stream, whose text is empty after success.
    #[must_use]
    pub fn into_parts(self) -> (Connection, Input) {
        (self.data, self.error)
    }
}

/// Like [`port_forward`], over a plain WebSocket: one connection to each of `ports`, opened at the start, in that
/// order. The URL must be made for them, or name them in its query, `port=80,443`.
///
/// This is the old form, which the kubelet still serves and no Kubernetes client still uses. Its connections have no
/// half-close: the result of a port arrives when every port is done, or when all data is dropped.
///
/// # Errors
///
/// More ports than there are channels (127); the server did not switch; or it refused the ports.
pub async fn port_forward_in_channels<T>(
    io: T,
    request: &Request<()>,
    ports: &[u16],
    options: Options,
    runtime: SharedRuntime,
) -> Result<Vec<ForwardedConnection>, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let protocol = ChannelProtocol::V4;
    let (count, limit) = (ports.len(), max_ports(protocol));
    if count > limit {
        return Err(RequestError::TooManyPorts { count, limit }.into());
    }
    let (message_bytes, limits) = (options.message_bytes, options.limits);
    let offers = [protocol.name().to_owned()];
    let (socket, _) =
        websocket::connect(io, request, &offers, message_bytes, limits, &runtime).await?;
    let directions: Vec<_> = directions(ports)
        .into_iter()
        .map(ChannelDirection::reversed)
        .collect();
    let (channels, ends, held) = Channels::new(
        socket,
        protocol,
        &directions,
        true,
        message_bytes,
        runtime.clone(),
    );
    let channels = channels.with_heartbeat(options.heartbeat());
    runtime.spawn(channels.into_task());
    let mut ends = ends.into_iter();
    let mut forwarded = Vec::new();
    for &port in ports {
        let (Some(data), Some(error)) = (ends.next(), ends.next()) else {
            unreachable!("two lanes for each port");
        };
        let (Some(reader), Some(writer), Some(error)) = (data.reader, data.writer, error.reader)
        else {
            unreachable!("data is bidirectional, errors are read");
        };
        let mut data = Connection::of_channel(reader, writer);
        let mut error = Input::of_channel(error);
        let labels = async {
            Ok::<_, std::io::Error>((data.read_u16_le().await?, error.read_u16_le().await?))
        };
        let labels = with_timeout(&runtime, options.stream_timeout, labels).await;
        let late = ClientError::NoReply {
            stream: DATA,
            after: options.stream_timeout,
        };
        let (of_data, of_error) = labels.ok_or(late)??;
        if (of_data, of_error) != (port, port) {
            let message = format!(
                "expected port {port}, found {of_data} on the data channel and {of_error} on the error channel"
            );
            return Err(ClientError::Remote { message });
        }
        forwarded.push(ForwardedConnection { data, error });
    }
    drop(held); // it ends with the last connection
    Ok(forwarded)
}
