//! Starts commands in the fake runtime, over SPDY and over a WebSocket, and reads their output.

use spdy_cri::client::{self, Options, Process};
use spdy_cri::{ClientError, Config, ExecRequest, Input, RemoteCommand, StreamingServer};
use tokio::io::AsyncReadExt;

use super::{FakeRuntime, dial, post, runtime};

/// A server of every version of the protocol.
pub(crate) fn all_versions() -> Config {
    let mut config = Config::default();
    config.remote_command = RemoteCommand::ALL.to_vec();
    config
}

/// Starts a command over SPDY.
pub(crate) async fn start(
    server: &StreamingServer<FakeRuntime>,
    request: ExecRequest,
    options: Options,
) -> Result<Process, ClientError> {
    let streams = request.stream_options;
    let url = server.exec_url(request).expect("a URL");
    client::exec(dial(server), &post(&url), streams, options, runtime()).await
}

/// Starts a command over a WebSocket.
pub(crate) async fn start_in_websocket(
    server: &StreamingServer<FakeRuntime>,
    request: ExecRequest,
    options: Options,
) -> Result<Process, ClientError> {
    let streams = request.stream_options;
    let url = server.exec_url(request).expect("a URL");
    client::exec_in_websocket(dial(server), &post(&url), streams, options, runtime()).await
}

/// Reads `input` to its end.
pub(crate) async fn text(input: Option<Input>) -> String {
    let mut text = String::new();
    let mut input = input.expect("the stream was requested");
    input.read_to_string(&mut text).await.expect("an end");
    text
}
