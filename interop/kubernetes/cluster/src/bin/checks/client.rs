//! What a client of the API server can do, in terms that kubectl and kube-rs share.

use std::time::Duration;

use anyhow::Context;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::process::Child;
use tokio::time::timeout;

use crate::cluster::Cluster;

/// Longest time until a terminal shows a line.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The end of a command.
pub(crate) struct Outcome {
    pub(crate) stdout: Vec<u8>,
    /// Without the client's own messages.
    pub(crate) stderr: Vec<u8>,
    /// The exit code, or that of the client if the command did not run.
    pub(crate) code: i32,
    /// The client's message, if the command did not run.
    pub(crate) message: String,
}

/// A command on a terminal.
pub(crate) struct Terminal {
    pub(crate) output: Box<dyn AsyncRead + Unpin + Send>,
    pub(crate) input: Box<dyn AsyncWrite + Unpin + Send>,
    /// Changes its width and height.
    pub(crate) resize: Box<dyn FnMut(u16, u16) -> anyhow::Result<()> + Send>,
    /// Completes with the exit code.
    pub(crate) ended: BoxFuture<'static, anyhow::Result<i32>>,
}

impl Terminal {
    /// Reads until a line is `expected`.
    pub(crate) async fn expect_line(&mut self, expected: &str) -> anyhow::Result<()> {
        let mut line = Vec::new();
        let reading = async {
            loop {
                match self.output.read_u8().await? {
                    b'\n' if line.trim_ascii() == expected.as_bytes() => return anyhow::Ok(()),
                    b'\n' => line.clear(),
                    byte => line.push(byte),
                }
            }
        };
        let read = timeout(TIMEOUT, reading).await;
        read.with_context(|| format!("no line {expected:?}"))?
    }
}

/// A connection to a port.
pub(crate) trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Connection for T {}

/// A client of the API server.
pub(crate) trait Client {
    /// The name of its column.
    fn name(&self) -> &'static str;

    /// Runs a command in the container of `pod`.
    async fn exec(&self, pod: &str, command: &[&str], stdin: &[u8]) -> anyhow::Result<Outcome>;

    /// Attaches to the process of `pod` until that ends.
    async fn attach(&self, pod: &str, stdin: &[u8]) -> anyhow::Result<Outcome>;

    /// Runs a command on a terminal of `width` and `height`.
    async fn terminal(
        &self,
        pod: &str,
        command: &[&str],
        width: u16,
        height: u16,
    ) -> anyhow::Result<Terminal>;

    /// Opens `count` connections to a port of `pod`, and runs `check` with them before the forwarding ends.
    async fn forward<F: Future<Output = anyhow::Result<()>>>(
        &self,
        pod: &str,
        port: u16,
        count: usize,
        check: impl FnOnce(Vec<Box<dyn Connection>>) -> F,
    ) -> anyhow::Result<()>;

    /// Starts a process of its own that runs a command, to be killed. The second value is kept until then.
    fn start(
        &self,
        pod: &str,
        command: &[&str],
        tty: bool,
    ) -> anyhow::Result<(Child, Box<dyn Send>)>;

    /// Copies a file into a pod and back, if the client has such a command.
    async fn copy_both_ways(&self, cluster: &Cluster) -> anyhow::Result<String>;
}
