//! A program that runs until the test ends.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use spdy::client::Session;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::UnboundedSender;

/// Fails a test that hangs. No test waits for it.
const HANG: Duration = Duration::from_secs(60);

pub(crate) struct Program {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    pub(crate) fn start(path: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(path)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is a pipe");
        Self {
            child,
            stdin,
            lines: BufReader::new(stdout).lines(),
        }
    }

    /// Starts a server; returns it with its address.
    pub(crate) async fn serve(path: &str, arguments: &[&str]) -> (Self, String) {
        let mut program = Self::start(path, arguments);
        let line = program.line().await;
        let address = line
            .strip_prefix("listening on ")
            .expect("the first line has the address");
        (program, address.to_owned())
    }

    /// The next line of stdout.
    pub(crate) async fn line(&mut self) -> String {
        let line = in_time(self.lines.next_line())
            .await
            .expect("stdout is text");
        line.expect("the program prints another line")
    }

    /// Sends `line` and a line feed to stdin.
    pub(crate) async fn write_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .await
            .expect("the program reads stdin");
    }

    /// Closes stdin.
    pub(crate) fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Sends SIGTERM.
    pub(crate) async fn terminate(&self) {
        let id = self.child.id().expect("the program runs").to_string();
        let status = Command::new("sh")
            .args(["-c", "kill -TERM \"$0\"", &id])
            .status()
            .await;
        assert!(status.expect("there is a shell").success());
    }

    /// The remaining lines of stdout, and how the program ended.
    pub(crate) async fn end(mut self) -> (Vec<String>, ExitStatus) {
        let mut lines = Vec::new();
        while let Some(line) = in_time(self.lines.next_line())
            .await
            .expect("stdout is text")
        {
            lines.push(line);
        }
        (
            lines,
            in_time(self.child.wait())
                .await
                .expect("the program can be waited for"),
        )
    }
}

/// The output of `step`.
pub(crate) async fn in_time<F: Future>(step: F) -> F::Output {
    tokio::time::timeout(HANG, step)
        .await
        .expect("no step hangs")
}

/// A client's session with the server at `address`.
pub(crate) async fn session(address: &str) -> Session {
    let socket = TcpStream::connect(address)
        .await
        .expect("the server accepts");
    let (session, connection) = spdy::client::handshake(socket);
    connection.spawn();
    session
}

/// Part of a body: reports that the body was dropped.
#[derive(Debug)]
pub(crate) struct OnDrop(pub(crate) UnboundedSender<()>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        // An error means that the test has ended.
        let _ = self.0.send(());
    }
}

/// Bytes that differ from place to place.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    (0..len)
        .map(|place| (place * 7 + place / 256) as u8)
        .collect()
}
