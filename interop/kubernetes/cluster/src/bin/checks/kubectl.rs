//! kubectl, by SPDY or by WebSocket.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, ensure};
use pty_process::Size;
use rustix::termios::{Winsize, tcsetwinsize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::cases::{check_bytes, pattern};
use crate::client::{Client, Connection, Outcome, Terminal};
use crate::cluster::{Cluster, SHELL};

/// kubectl with one of its transports.
pub(crate) struct Kubectl {
    program: PathBuf,
    websocket: bool,
}

impl Kubectl {
    pub(crate) fn spdy(program: PathBuf) -> Self {
        let websocket = false;
        Self { program, websocket }
    }

    pub(crate) fn websocket(program: PathBuf) -> Self {
        let websocket = true;
        Self { program, websocket }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let websocket = self.websocket.to_string();
        command
            .args(arguments)
            .env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", &websocket)
            .env("KUBECTL_PORT_FORWARD_WEBSOCKETS", &websocket)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs kubectl with `stdin` to its end.
    async fn run(&self, arguments: &[&str], stdin: &[u8]) -> anyhow::Result<Outcome> {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let mut to = child.stdin.take().context("piped")?;
        let feed = async {
            let _ = to.write_all(stdin).await; // the command may read no more
            drop(to);
        };
        let (output, ()) = tokio::join!(child.wait_with_output(), feed);
        let output = output?;
        let text = String::from_utf8_lossy(&output.stderr);
        // kubectl's own message is the last line.
        let own = text.trim_end().rsplit('\n').next().unwrap_or_default();
        let is_own = own.starts_with("error: ") || own.starts_with("command terminated with ");
        let own = if is_own { own } else { "" };
        Ok(Outcome {
            stdout: output.stdout,
            stderr: text
                .trim_end_matches('\n')
                .strip_suffix(own)
                .filter(|_| is_own)
                .unwrap_or(&text)
                .into(),
            code: output.status.code().context("kubectl was killed")?,
            message: own.strip_prefix("error: ").unwrap_or(own).to_owned(),
        })
    }

    /// Starts kubectl on a terminal of its own.
    fn start_on_terminal(
        &self,
        arguments: &[&str],
        width: u16,
        height: u16,
    ) -> anyhow::Result<(Child, pty_process::Pty)> {
        let (pty, terminal) = pty_process::open()?;
        pty.resize(Size::new(height, width))?;
        let command = pty_process::Command::new(&self.program)
            .args(arguments)
            .env(
                "KUBECTL_REMOTE_COMMAND_WEBSOCKETS",
                self.websocket.to_string(),
            )
            .kill_on_drop(true);
        Ok((command.spawn(terminal)?, pty))
    }
}

/// The arguments of `kubectl exec`.
fn exec<'a>(options: &'a [&'a str], pod: &'a str, command: &[&'a str]) -> Vec<&'a str> {
    [&["exec"], options, &[pod, "--"], command].concat()
}

impl Client for Kubectl {
    fn name(&self) -> &'static str {
        match self.websocket {
            true => "kubectl, WebSocket",
            false => "kubectl, SPDY",
        }
    }

    async fn exec(&self, pod: &str, command: &[&str], stdin: &[u8]) -> anyhow::Result<Outcome> {
        self.run(&exec(&["-i"], pod, command), stdin).await
    }

    async fn attach(&self, pod: &str, stdin: &[u8]) -> anyhow::Result<Outcome> {
        self.run(&["attach", "-i", pod], stdin).await
    }

    async fn terminal(
        &self,
        pod: &str,
        command: &[&str],
        width: u16,
        height: u16,
    ) -> anyhow::Result<Terminal> {
        let arguments = exec(&["-it"], pod, command);
        let (mut child, pty) = self.start_on_terminal(&arguments, width, height)?;
        let resized = pty.as_fd().try_clone_to_owned()?;
        let (output, input) = pty.into_split();
        Ok(Terminal {
            output: Box::new(output),
            input: Box::new(input),
            resize: Box::new(move |width, height| {
                let size = Winsize {
                    ws_row: height,
                    ws_col: width,
                    ws_xpixel: 0,
                    ws_ypixel: 0,
                };
                Ok(tcsetwinsize(&resized, size)?)
            }),
            ended: Box::pin(async move {
                let status = child.wait().await?;
                status.code().context("kubectl was killed")
            }),
        })
    }

    async fn forward<F: Future<Output = anyhow::Result<()>>>(
        &self,
        pod: &str,
        port: u16,
        count: usize,
        check: impl FnOnce(Vec<Box<dyn Connection>>) -> F,
    ) -> anyhow::Result<()> {
        let mut command = self.command(&["port-forward", pod, &format!(":{port}")]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().context("piped")?;
        let mut lines = BufReader::new(stdout).lines();
        let line = lines.next_line().await?.context("kubectl ended")?;
        let address = line.strip_prefix("Forwarding from ");
        let address = address
            .and_then(|rest| rest.split(' ').next())
            .context(line.clone())?;
        let mut connections: Vec<Box<dyn Connection>> = Vec::new();
        for _ in 0..count {
            connections.push(Box::new(TcpStream::connect(address).await?));
        }
        check(connections).await?;
        child.kill().await?;
        Ok(())
    }

    fn start(
        &self,
        pod: &str,
        command: &[&str],
        tty: bool,
    ) -> anyhow::Result<(Child, Box<dyn Send>)> {
        if tty {
            let (child, pty) = self.start_on_terminal(&exec(&["-it"], pod, command), 80, 24)?;
            return Ok((child, Box::new(pty)));
        }
        let mut command = self.command(&exec(&["-i"], pod, command));
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok((command.spawn()?, Box::new(())))
    }

    async fn copy_both_ways(&self, cluster: &Cluster) -> anyhow::Result<String> {
        let folder = tempfile::tempdir()?;
        let (from, back) = (folder.path().join("from"), folder.path().join("back"));
        let path = |path: &std::path::Path| path.display().to_string();
        let content = pattern(5_000_000);
        tokio::fs::write(&from, &content).await?;
        let remote = format!("{SHELL}:copied");
        for pair in [[path(&from), remote.clone()], [remote, path(&back)]] {
            let outcome = self.run(&["cp", &pair[0], &pair[1]], b"").await?;
            ensure!(outcome.code == 0, "cp {pair:?}: {}", outcome.message);
        }
        let in_pod = cluster.pod_folder(SHELL).join("copied");
        check_bytes(&tokio::fs::read(&in_pod).await?, &content).context("in the pod")?;
        check_bytes(&tokio::fs::read(&back).await?, &content).context("back")?;
        tokio::fs::remove_file(in_pod).await?;
        Ok("yes".to_owned())
    }
}
