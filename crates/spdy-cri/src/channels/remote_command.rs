//! Exec and attach over channels, in the server.

use bytes::Bytes;
use spdy::SharedRuntime;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{ChannelDirection, ChannelEnds, Channels, run_with};
use crate::handler::Streams;
use crate::protocol::ChannelProtocol;
use crate::request::StreamOptions;
use crate::resize::ResizeEvents;
use crate::status::{self, ExitCode};
use crate::stdio::{Input, Output};
use crate::websocket;

/// The channels of exec and attach in order, as seen from the side that runs the command.
pub(crate) fn directions(stream_options: StreamOptions) -> [ChannelDirection; 5] {
    let if_enabled = |enabled, direction| {
        if enabled {
            direction
        } else {
            ChannelDirection::Unused
        }
    };
    [
        if_enabled(stream_options.stdin, ChannelDirection::Read),
        if_enabled(stream_options.stdout, ChannelDirection::Write),
        if_enabled(stream_options.stderr, ChannelDirection::Write),
        ChannelDirection::Write,
        if_enabled(stream_options.tty, ChannelDirection::Read),
    ]
}

/// Splits the ends into stdin, stdout, stderr, status, sizes.
pub(crate) fn split_five(ends: Vec<ChannelEnds>) -> [ChannelEnds; 5] {
    match ends.try_into() {
        Ok(five) => five,
        Err(ends) => unreachable!("expected the ends of five lanes, found {}", ends.len()),
    }
}

/// Serves one connection after its 101, until it ends.
pub(crate) async fn serve<T, F>(
    io: T,
    protocol: ChannelProtocol,
    stream_options: StreamOptions,
    message_bytes: usize,
    runtime: &SharedRuntime,
    run: impl FnOnce(Streams) -> F,
) where
    T: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = Result<ExitCode, String>>,
{
    let socket = websocket::server(io, message_bytes).await;
    let (directions, runtime) = (directions(stream_options), runtime.clone());
    let (channels, ends, held) =
        Channels::new(socket, protocol, &directions, false, message_bytes, runtime);
    drop(held); // the status is written last
    let [stdin, stdout, stderr, status, resize] = split_five(ends);
    let mut status = status.writer.map(Output::of_channel);
    let mut streams = Streams {
        stdin: stdin.reader.map(Input::of_channel),
        stdout: stdout.writer.map(Output::of_channel),
        stderr: stderr.writer.map(Output::of_channel),
        resize: resize
            .reader
            .map(|sizes| ResizeEvents::new(Input::of_channel(sizes))),
    };
    let application = async {
        // Announces that the command runs, on the first existing one of stdout, stderr and status, like the kubelet.
        let first = [&mut streams.stdout, &mut streams.stderr, &mut status];
        if let Some(first) = first.into_iter().flatten().next()
            && first.send(Bytes::new()).await.is_err()
        {
            return;
        }
        let ended = run(streams).await;
        let text = status::encode(protocol.version(), &ended);
        if let Some(mut status) = status
            && !text.is_empty()
            && let Err(error) = status.send(text.into()).await
        {
            tracing::debug!(%error, "cannot report the exit status of the command");
        }
    };
    run_with(channels, application).await;
}
