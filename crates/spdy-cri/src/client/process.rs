//! Exec and attach.

use http::Request;
use spdy::SharedRuntime;
use spdy::upgrade;
use tokio::io::{AsyncRead, AsyncWrite};

use super::options::Options;
use super::streamer::{Streamer, read_until_end};
use crate::channels::remote_command::{directions, split_five};
use crate::channels::{ChannelDirection, Channels, KeepOpen};
use crate::error::{ClientError, StreamError};
use crate::protocol::{ChannelProtocol, ERROR, RESIZE, RemoteCommand, STDERR, STDIN, STDOUT};
use crate::request::StreamOptions;
use crate::resize::Resizer;
use crate::status::{self, ExitCode};
use crate::stdio::{Input, Output};
use crate::websocket;

/// A command that runs on the other side. Take its streams, and [`wait`](Self::wait) for it.
///
/// Read stdout and stderr, or drop them: unread bytes block the whole session.
#[derive(Debug)]
pub struct Process {
    /// Its standard input. Shut it down, or drop it, at the end of the input.
    pub stdin: Option<Output>,
    /// Its standard output.
    pub stdout: Option<Input>,
    /// Its standard error.
    pub stderr: Option<Input>,
    /// Size of its terminal; over SPDY not available before version 3.
    pub resize: Option<Resizer>,
    version: RemoteCommand,
    error: Input,
    /// Dropping it ends the session.
    _session: ProcessSession,
}

/// The transport of a process.
#[derive(Debug)]
#[expect(dead_code, reason = "dropping the value ends the connection")]
enum ProcessSession {
    Spdy(Streamer),
    WebSocket(KeepOpen),
}

impl Process {
    /// The version of the protocol.
    #[must_use]
    pub fn version(&self) -> RemoteCommand {
        self.version
    }

    /// Waits for the end of the command. Streams that were not taken are dropped: stdin ends, output is discarded.
    ///
    /// # Errors
    ///
    /// [`ClientError::Remote`] if the runtime failed, or, before version 4, the command did.
    pub async fn wait(self) -> Result<ExitCode, ClientError> {
        let Self {
            version,
            mut error,
            _session,
            stdin,
            stdout,
            stderr,
            resize,
        } = self;
        drop((stdin, stdout, stderr, resize));
        // The kubelet closes its connection directly after the status. If it has unread input then, the API server's proxy gets a reset,
        // and may lose what follows: the end of the stream. (A WebSocket has its own close frame.)
        match read_until_end(&mut error).await {
            (status, None) => status::decode(version, &status),
            (status, Some(ClientError::Session(StreamError::Spdy(_))))
                if status::is_complete(version, &status) =>
            {
                status::decode(version, &status)
            }
            (_, Some(lost)) => Err(lost),
        }
    }
}

/// Runs a command. `request` must name the same streams in its URL as `stream_options`.
///
/// # Errors
///
/// The command did not start.
pub async fn exec<T>(
    io: T,
    request: &Request<()>,
    stream_options: StreamOptions,
    options: Options,
    runtime: SharedRuntime,
) -> Result<Process, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    stream_options.check()?;
    let offers: Vec<_> = options
        .remote_command
        .iter()
        .map(|version| version.name())
        .collect();
    let upgraded = upgrade::connect(io, request, &offers, options.limits, &runtime).await?;
    let version = match upgraded.protocol() {
        // Old servers send no version, and use the first.
        None => RemoteCommand::V1,
        Some(name) => RemoteCommand::from_name(name).ok_or_else(|| ClientError::Protocol {
            protocol: name.to_owned(),
        })?,
    };
    let streamer = Streamer::start(upgraded.into_io(), &options, runtime);
    // In the order of client-go; servers accept any order.
    let error = Input::of_spdy(streamer.open(ERROR, &[]).await?);
    let stdin = match stream_options.stdin {
        true => Some(Output::of_spdy(streamer.open(STDIN, &[]).await?)),
        false => None,
    };
    let stdout = match stream_options.stdout {
        true => Some(Input::of_spdy(streamer.open(STDOUT, &[]).await?)),
        false => None,
    };
    let stderr = match stream_options.stderr {
        true => Some(Input::of_spdy(streamer.open(STDERR, &[]).await?)),
        false => None,
    };
    let resize = match stream_options.tty && version.has_resize() {
        true => {
            let sizes = streamer.open(RESIZE, &[]).await?;
            Some(Resizer::new(Output::of_spdy(sizes)))
        }
        false => None,
    };
    Ok(Process {
        stdin,
        stdout,
        stderr,
        resize,
        version,
        error,
        _session: ProcessSession::Spdy(streamer),
    })
}

/// Attaches to a running process: like [`exec`], at another URL.
///
/// # Errors
///
/// The process cannot be attached.
pub async fn attach<T>(
    io: T,
    request: &Request<()>,
    stream_options: StreamOptions,
    options: Options,
    runtime: SharedRuntime,
) -> Result<Process, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    exec(io, request, stream_options, options, runtime).await
}

/// Like [`exec`], over a plain WebSocket: the method is always GET. From version 5 on, stdin ends when it is shut down or dropped; in
/// earlier versions only the process ends it.
///
/// # Errors
///
/// The command did not start.
pub async fn exec_in_websocket<T>(
    io: T,
    request: &Request<()>,
    stream_options: StreamOptions,
    options: Options,
    runtime: SharedRuntime,
) -> Result<Process, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    stream_options.check()?;
    let offers = options
        .channels
        .iter()
        .map(|channel_protocol| channel_protocol.name().to_owned());
    let offers: Vec<_> = offers.collect();
    let (message_bytes, heartbeat) = (options.message_bytes, options.heartbeat());
    let connecting = websocket::connect(
        io,
        request,
        &offers,
        message_bytes,
        options.limits,
        &runtime,
    );
    let (socket, chosen) = connecting.await?;
    let protocol = match chosen.as_str() {
        "" => ChannelProtocol::V1, // as if nothing was offered
        name => {
            ChannelProtocol::from_name(name).ok_or(ClientError::Protocol { protocol: chosen })?
        }
    };
    let directions = directions(stream_options).map(ChannelDirection::reversed);
    let (channels, ends, held) = Channels::new(
        socket,
        protocol,
        &directions,
        true,
        message_bytes,
        runtime.clone(),
    );
    let channels = channels.with_heartbeat(heartbeat);
    runtime.spawn(channels.into_task());
    let [stdin, stdout, stderr, status, resize] = split_five(ends);
    let Some(error) = status.reader else {
        unreachable!("the status stream is always read");
    };
    Ok(Process {
        stdin: stdin.writer.map(Output::of_channel),
        stdout: stdout.reader.map(Input::of_channel),
        stderr: stderr.reader.map(Input::of_channel),
        resize: resize
            .writer
            .map(|sizes| Resizer::new(Output::of_channel(sizes))),
        version: protocol.version(),
        error: Input::of_channel(error),
        _session: ProcessSession::WebSocket(held),
    })
}

/// Attaches to a running process: like [`exec_in_websocket`], at another URL.
///
/// # Errors
///
/// The process cannot be attached.
pub async fn attach_in_websocket<T>(
    io: T,
    request: &Request<()>,
    stream_options: StreamOptions,
    options: Options,
    runtime: SharedRuntime,
) -> Result<Process, ClientError>
where
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    exec_in_websocket(io, request, stream_options, options, runtime).await
}
