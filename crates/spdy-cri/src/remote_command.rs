//! Exec and attach over a session: collects the streams, runs the command, reports the status.
//!
//! ```text
//!  client                                    server
//!    | SYN_STREAM streamtype: error     --->   |  SYN_REPLY at once, to each
//!    | SYN_STREAM stdin, stdout, ...    --->   |  all there? the handler starts
//!    | DATA on stdin, FIN               --->   |
//!    |                                  <---   |  DATA on stdout and stderr
//!    |                                  <---   |  it returned: FIN and CANCEL on each of its streams
//!    |                                  <---   |  status on error, FIN and CANCEL
//!    |                                  <---   |  GOAWAY, the end
//! ```

use std::future::Future;
use std::time::Duration;

use spdy::server::{Accept, Incoming};
use spdy::upgrade::Channel;
use spdy::{HeaderBlock, RstStatus, SharedRuntime};

use crate::handler::Streams;
use crate::protocol::{ERROR, RESIZE, RemoteCommand, STDERR, STDIN, STDOUT, STREAM_TYPE};
use crate::request::StreamOptions;
use crate::resize::ResizeEvents;
use crate::status::{self, ExitCode};
use crate::stdio::{Input, Output};

/// The streams that were opened.
#[derive(Debug, Default)]
struct OpenStreams {
    error: Option<Channel>,
    stdin: Option<Channel>,
    stdout: Option<Channel>,
    stderr: Option<Channel>,
    resize: Option<Channel>,
}

impl OpenStreams {
    fn slot(&mut self, kind: &[u8]) -> Option<&mut Option<Channel>> {
        let slots = [
            (ERROR, &mut self.error),
            (STDIN, &mut self.stdin),
            (STDOUT, &mut self.stdout),
            (STDERR, &mut self.stderr),
            (RESIZE, &mut self.resize),
        ];
        let mut slots = slots.into_iter();
        Some(slots.find(|(name, _)| name.as_bytes() == kind)?.1)
    }

    /// Answers a stream and stores it; a stream of unknown type, or the second of its type, is reset.
    fn take(&mut self, incoming: Incoming) {
        let kind = header(&incoming, STREAM_TYPE).unwrap_or_default();
        match self.slot(&kind) {
            Some(slot @ None) => match incoming.accept_raw(&HeaderBlock::new()) {
                Ok(stream) => *slot = Some(Channel::new(stream)),
                Err(error) => tracing::debug!(%error, "stream ended before it got a reply"),
            },
            _ => incoming.reject(RstStatus::CANCEL),
        }
    }

    /// A required stream that is not open yet.
    fn missing(
        &self,
        version: RemoteCommand,
        stream_options: StreamOptions,
    ) -> Option<&'static str> {
        [
            (ERROR, true, &self.error),
            (STDIN, stream_options.stdin, &self.stdin),
            (STDOUT, stream_options.stdout, &self.stdout),
            (STDERR, stream_options.stderr, &self.stderr),
            (
                RESIZE,
                stream_options.tty && version.has_resize(),
                &self.resize,
            ),
        ]
        .into_iter()
        .find(|(_, is_required, stream)| *is_required && stream.is_none())
        .map(|(name, _, _)| name)
    }
}

/// The value of a stream's header.
pub(crate) fn header(incoming: &Incoming, name: &str) -> Option<bytes::Bytes> {
    let headers = incoming.headers();
    headers.get(name).map(|value| headers.share(value))
}

/// Serves one session until it ends.
pub(crate) async fn serve<F>(
    mut accept: Accept,
    version: RemoteCommand,
    stream_options: StreamOptions,
    timeout: Duration,
    runtime: &SharedRuntime,
    run: impl FnOnce(Streams) -> F,
) where
    F: Future<Output = Result<ExitCode, String>>,
{
    let session = accept.handle();
    let mut open_streams = OpenStreams::default();
    let mut deadline = runtime.sleep_until(runtime.now() + timeout);
    while let Some(missing) = open_streams.missing(version, stream_options) {
        tokio::select! {
            incoming = accept.next() => match incoming {
                Some(incoming) => open_streams.take(incoming),
                None => return, // the client has disconnected
            },
            () = &mut deadline => {
                tracing::debug!(missing, "the client did not open all streams");
                let late = format!("no {missing} stream within {timeout:?}");
                write_status(open_streams.error.take(), version, &Err(late)).await;
                drop(open_streams);
                session.shutdown();
                session.closed().await;
                return;
            }
        }
    }
    let OpenStreams {
        error,
        mut stdin,
        stdout,
        stderr,
        resize,
    } = open_streams;
    if let Some(stdin) = stdin.as_mut().filter(|_| version == RemoteCommand::V1) {
        // Clients of the first version wait for it; clients of later versions treat it as the end of the command.
        let _ = stdin.finish();
    }
    // Streams that were opened without a request are dropped here.
    let streams = Streams {
        stdin: stdin.filter(|_| stream_options.stdin).map(Input::of_spdy),
        stdout: stdout
            .filter(|_| stream_options.stdout)
            .map(Output::of_spdy),
        stderr: stderr
            .filter(|_| stream_options.stderr)
            .map(Output::of_spdy),
        resize: resize
            .filter(|_| stream_options.tty)
            .map(|sizes| ResizeEvents::new(Input::of_spdy(sizes))),
    };
    let ended = tokio::select! {
        ended = run(streams) => ended,
        () = refuse_all(&mut accept) => return, // the client has disconnected
    };
    write_status(error, version, &ended).await;
    session.shutdown();
    session.closed().await;
}

/// Resets all further streams of the client, until the session ends.
async fn refuse_all(accept: &mut Accept) {
    while let Some(incoming) = accept.next().await {
        incoming.reject(RstStatus::CANCEL);
    }
}

/// Writes the status, and ends the error stream.
async fn write_status(
    error: Option<Channel>,
    version: RemoteCommand,
    ended: &Result<ExitCode, String>,
) {
    let status = status::encode(version, ended);
    if let Some(mut error) = error
        && !status.is_empty()
        && let Err(send_error) = error.send(status.into()).await
    {
        tracing::debug!(error = %send_error, "cannot report the exit status of the command");
    }
}
