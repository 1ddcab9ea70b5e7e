//! The interface that a container runtime implements.

use std::future::Future;

use crate::request::{AttachRequest, ExecRequest};
use crate::resize::ResizeEvents;
use crate::status::ExitCode;
use crate::stdio::{Connection, Input, Output};

/// Why the runtime failed; the text is sent to the client.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// The streams of a process that were requested. Each ends when it is dropped.
#[derive(Debug)]
pub struct Streams {
    /// Input from the client. Read it, or drop it: unread bytes block the whole session.
    pub stdin: Option<Input>,
    /// Standard output of the process.
    pub stdout: Option<Output>,
    /// Standard error of the process; never with a terminal.
    pub stderr: Option<Output>,
    /// Sizes of the terminal, the first soon after the start; not available before version 3.
    pub resize: Option<ResizeEvents>,
}

/// The runtime behind a [`StreamingServer`](crate::StreamingServer).
///
/// Each call runs at once, in its own task. The future is dropped when its client is gone: everything that it started must end with
/// it. Streams that it passed to other tasks should end when it returns, because the session waits for them.
pub trait Handler: Send + Sync + 'static {
    /// Runs a command to its end.
    fn exec(
        &self,
        request: ExecRequest,
        streams: Streams,
    ) -> impl Future<Output = Result<ExitCode, HandlerError>> + Send;

    /// Attaches to the process that a container runs, until it ends or the client leaves.
    fn attach(
        &self,
        request: AttachRequest,
        streams: Streams,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;

    /// Connects `connection` to a port in a pod, until either ends.
    fn port_forward(
        &self,
        sandbox: String,
        port: u16,
        connection: Connection,
    ) -> impl Future<Output = Result<(), HandlerError>> + Send;
}
