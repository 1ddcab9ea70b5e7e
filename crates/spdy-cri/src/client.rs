//! The client: what `kubectl exec`, `attach` and `port-forward` do, against a runtime's URL or the API
//! server's.
//!
//! Each call takes a connection (TCP, or TLS with what proves who asks) and the request: method, URL,
//! headers. The API server wants POST to `/api/v1/namespaces/NS/pods/POD/exec?command=..&stdin=true&..`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::Request;
use spdy::client::{OpenOptions, Session};
use spdy::upgrade::{self, Channel, Limits, Upgraded};
use spdy::{HeaderBlock, SharedRuntime};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::error::ClientError;
use crate::protocol::{
    DATA, ERROR, PORT, PORT_FORWARD, REQUEST_ID, RESIZE, RemoteCommand, STDERR, STDIN, STDOUT,
    STREAM_TYPE,
};
use crate::request::Wanted;
use crate::resize::Resizer;
use crate::status::{self, ExitCode};
use crate::stdio::{Input, Output};
use crate::tunnel::Tunnel;

/// Bytes of the error stream that are kept; the rest is read and dropped.
const STATUS_BYTES: usize = 64 * 1024;

/// Choices of a client.
#[derive(Clone, Debug)]
pub struct Options {
    /// Versions of exec and attach to offer, the best first. Default all.
    pub remote_command: Vec<RemoteCommand>,
    /// What is taken of the server's HTTP.
    pub limits: Limits,
    /// How long the server may take to answer a stream. Default 30 s, as client-go.
    pub stream_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            remote_command: RemoteCommand::ALL.to_vec(),
            limits: Limits::default(),
            stream_timeout: Duration::from_secs(30),
        }
    }
}

/// A session, and what it takes to open streams on it.
#[derive(Debug)]
struct Streamer {
    session: Session,
    runtime: SharedRuntime,
    timeout: Duration,
}

impl Streamer {
    /// A session over `io`, which has switched.
    fn start<T>(io: T, options: &Options, runtime: SharedRuntime) -> Self
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (session, connection) = upgrade::client_builder().handshake(io, runtime.clone());
        connection.spawn();
        Self {
            session,
            runtime,
            timeout: options.stream_timeout,
        }
    }

    /// Opens a stream and waits for its answer: until then DATA on it would be dropped.
    async fn open(
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

    /// What `work` gives, or nothing if it takes longer than an answer may.
    async fn within<R>(&self, work: impl Future<Output = R>) -> Option<R> {
        let deadline = self.runtime.sleep_until(self.runtime.now() + self.timeout);
        match select(Box::pin(work), deadline).await {
            Either::Left((done, _)) => Some(done),
            Either::Right(((), _)) => None,
        }
    }
}

/// A command that runs on the other side. Take the streams out of it, and [`wait`](Self::wait).
///
/// Read stdout and stderr, or drop them: unread bytes stop the whole session.
#[derive(Debug)]
pub struct Process {
    /// Where it reads. Shut it down, or drop it, when there is no more.
    pub stdin: Option<Output>,
    /// What it says.
    pub stdout: Option<Input>,
    /// What it complains about.
    pub stderr: Option<Input>,
    /// Its terminal's size; none before version 3.
    pub resize: Option<Resizer>,
    version: RemoteCommand,
    error: Channel,
    /// The session ends with it.
    _streamer: Streamer,
}

impl Process {
    /// The version of the protocol spoken.
    #[must_use]
    pub fn version(&self) -> RemoteCommand {
        self.version
    }

    /// Waits for its end. What was not taken out is dropped: stdin is shut, output goes unread.
    ///
    /// # Errors
    ///
    /// [`ClientError::Remote`] if the runtime failed, or, before version 4, the command did.
    pub async fn wait(self) -> Result<ExitCode, ClientError> {
        let Self {
            version,
            mut error,
            _streamer,
            stdin,
            stdout,
            stderr,
            resize,
        } = self;
        drop((stdin, stdout, stderr, resize));
        let status = read_status(&mut error).await?;
        status::decode(version, &status)
    }
}

/// Runs a command. `request` asks for the URL with the same streams as `wanted`.
///
/// # Errors
///
/// Why it did not start.
pub async fn exec<T>(
    io: T,
    request: &Request<()>,
    wanted: Wanted,
    options: Options,
    runtime: SharedRuntime,
) -> Result<Process, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    wanted.check()?;
    let offers: Vec<_> = options
        .remote_command
        .iter()
        .map(|version| version.name())
        .collect();
    let upgraded = upgrade::connect(io, request, &offers, options.limits, &runtime).await?;
    let version = match upgraded.protocol() {
        // Servers of old name none, and speak the first.
        None => RemoteCommand::V1,
        Some(name) => RemoteCommand::from_name(name).ok_or_else(|| ClientError::Protocol {
            protocol: name.to_owned(),
        })?,
    };
    let streamer = Streamer::start(upgraded.into_io(), &options, runtime);
    // In the order of client-go; servers take any.
    let error = streamer.open(ERROR, &[]).await?;
    let stdin = match wanted.stdin {
        true => Some(Output(streamer.open(STDIN, &[]).await?)),
        false => None,
    };
    let stdout = match wanted.stdout {
        true => Some(Input(streamer.open(STDOUT, &[]).await?)),
        false => None,
    };
    let stderr = match wanted.stderr {
        true => Some(Input(streamer.open(STDERR, &[]).await?)),
        false => None,
    };
    let resize = match wanted.tty && version.has_resize() {
        true => Some(Resizer::new(streamer.open(RESIZE, &[]).await?)),
        false => None,
    };
    Ok(Process {
        stdin,
        stdout,
        stderr,
        resize,
        version,
        error,
        _streamer: streamer,
    })
}

/// Joins a process that runs: as [`exec`], at another URL.
///
/// # Errors
///
/// Why it did not start.
pub async fn attach<T>(
    io: T,
    request: &Request<()>,
    wanted: Wanted,
    options: Options,
    runtime: SharedRuntime,
) -> Result<Process, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    exec(io, request, wanted, options, runtime).await
}

/// A way to the ports of a pod.
#[derive(Debug)]
pub struct PortForward {
    streamer: Streamer,
    next_request: AtomicU64,
}

/// Opens a way to the ports of a pod.
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

/// As [`port_forward`], as SPDY inside WebSocket: through proxies that know no other upgrade. The API
/// server of Kubernetes 1.30 and later takes it.
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

    /// A new connection to `port`; as many at once as one likes.
    ///
    /// # Errors
    ///
    /// If the session has ended, or the server answers no stream. That nothing listens on `port` may come
    /// at once as [`ClientError::Remote`], but mostly comes later, from [`Forwarded::wait`].
    pub async fn connect(&self, port: u16) -> Result<Forwarded, ClientError> {
        let id = self.next_request.fetch_add(1, Ordering::Relaxed);
        let headers = [(PORT, port.to_string()), (REQUEST_ID, id.to_string())];
        let mut error = self.streamer.open(ERROR, &headers).await?;
        error.finish()?; // only the server has something to say on it
        match self.streamer.open(DATA, &headers).await {
            Ok(data) => Ok(Forwarded { data, error }),
            // The kubelet may find a port dead before it has answered the stream to it.
            Err(ClientError::Session(why)) if why.reset_status().is_some() => {
                match self.streamer.within(read_status(&mut error)).await {
                    Some(Ok(text)) if !text.is_empty() => Err(remote(&text)),
                    _ => Err(why.into()),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Whether it takes no new connections.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.streamer.session.is_closing()
    }
}

/// One forwarded connection.
#[derive(Debug)]
pub struct Forwarded {
    /// The bytes, both ways. Read it to its end before [`wait`](Self::wait).
    pub data: Channel,
    error: Channel,
}

impl Forwarded {
    /// Waits until the server says how it went.
    ///
    /// # Errors
    ///
    /// [`ClientError::Remote`] in the server's words: nothing listens there, or the connection failed.
    pub async fn wait(self) -> Result<(), ClientError> {
        let Self { data, mut error } = self;
        drop(data);
        match read_status(&mut error).await? {
            text if text.is_empty() => Ok(()),
            text => Err(remote(&text)),
        }
    }

    /// The data stream, and the error stream, whose text is empty after success.
    #[must_use]
    pub fn into_parts(self) -> (Channel, Input) {
        (self.data, Input(self.error))
    }
}

/// What the server complains about.
fn remote(text: &[u8]) -> ClientError {
    let message = String::from_utf8_lossy(text).into_owned();
    ClientError::Remote { message }
}

/// The error stream to its end.
async fn read_status(error: &mut Channel) -> Result<Bytes, ClientError> {
    let mut status = Vec::new();
    while let Some(bytes) = error.receive().await {
        let bytes = bytes?;
        let room = STATUS_BYTES - status.len();
        status.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
    Ok(status.into())
}
