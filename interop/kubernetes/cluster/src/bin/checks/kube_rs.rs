//! kube-rs, which uses WebSocket.

use std::process::{ExitCode, Stdio};

use anyhow::{Context, ensure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::client::{Client, Connection, Outcome, Terminal};
use crate::cluster::Cluster;

/// The first argument of [`hold`].
pub(crate) const HOLD: &str = "hold";

/// kube-rs in this process.
pub(crate) struct KubeRs {
    pods: Api<Pod>,
}

/// Reads what a command writes until its end.
async fn finish(mut process: AttachedProcess, stdin: &[u8]) -> anyhow::Result<Outcome> {
    let status = process.take_status().context("it was not taken yet")?;
    let mut to = process.stdin().context("stdin was requested")?;
    let mut from = process.stdout().context("stdout was requested")?;
    let mut errors = process.stderr().context("stderr was requested")?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let feed = async {
        let _ = to.write_all(stdin).await; // the command may read no more
        let _ = to.shutdown().await;
        Ok(0)
    };
    tokio::try_join!(
        feed,
        from.read_to_end(&mut stdout),
        errors.read_to_end(&mut stderr)
    )?;
    let (code, message) = read_status(status.await)?;
    Ok(Outcome {
        stdout,
        stderr,
        code,
        message,
    })
}

/// The exit code and, if the command did not run, 1 and the message.
fn read_status(status: Option<Status>) -> anyhow::Result<(i32, String)> {
    let status = status.context("no status")?;
    if status.status.as_deref() == Some("Success") {
        return Ok((0, String::new()));
    }
    let causes = status.details.and_then(|details| details.causes);
    let mut causes = causes.unwrap_or_default().into_iter();
    match causes.find(|cause| cause.reason.as_deref() == Some("ExitCode")) {
        Some(cause) => Ok((
            cause.message.context("no exit code")?.parse()?,
            String::new(),
        )),
        None => Ok((1, status.message.context("no message")?)),
    }
}

impl KubeRs {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self {
            pods: cluster.pods.clone(),
        }
    }
}

fn with_stdin() -> AttachParams {
    AttachParams::default().stdin(true)
}

fn with_terminal() -> AttachParams {
    AttachParams::interactive_tty()
}

impl Client for KubeRs {
    fn name(&self) -> &'static str {
        "kube-rs, WebSocket"
    }

    async fn exec(&self, pod: &str, command: &[&str], stdin: &[u8]) -> anyhow::Result<Outcome> {
        let command = command.iter().copied();
        finish(self.pods.exec(pod, command, &with_stdin()).await?, stdin).await
    }

    async fn attach(&self, pod: &str, stdin: &[u8]) -> anyhow::Result<Outcome> {
        finish(self.pods.attach(pod, &with_stdin()).await?, stdin).await
    }

    async fn terminal(
        &self,
        pod: &str,
        command: &[&str],
        width: u16,
        height: u16,
    ) -> anyhow::Result<Terminal> {
        let command = command.iter().copied();
        let mut process = self.pods.exec(pod, command, &with_terminal()).await?;
        let mut sizes = process
            .terminal_size()
            .context("a terminal was requested")?;
        sizes.try_send(TerminalSize { width, height })?;
        let status = process.take_status().context("it was not taken yet")?;
        Ok(Terminal {
            output: Box::new(process.stdout().context("stdout was requested")?),
            input: Box::new(process.stdin().context("stdin was requested")?),
            resize: Box::new(move |width, height| {
                Ok(sizes.try_send(TerminalSize { width, height })?)
            }),
            ended: Box::pin(async move {
                let code = read_status(status.await)?.0;
                drop(process);
                Ok(code)
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
        let (mut forwards, mut connections) = (Vec::new(), Vec::<Box<dyn Connection>>::new());
        for _ in 0..count {
            let mut forward = self.pods.portforward(pod, &[port]).await?;
            connections.push(Box::new(forward.take_stream(port).context("one stream")?));
            forwards.push(forward);
        }
        check(connections).await
    }

    fn start(
        &self,
        pod: &str,
        command: &[&str],
        tty: bool,
    ) -> anyhow::Result<(Child, Box<dyn Send>)> {
        let child = Command::new(std::env::current_exe()?)
            .args([HOLD, &tty.to_string(), pod])
            .args(command)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        Ok((child, Box::new(())))
    }

    async fn copy_both_ways(&self, _: &Cluster) -> anyhow::Result<String> {
        Ok("no such call".to_owned())
    }
}

/// A process of its own that runs a command until it is killed: `hold TTY POD COMMAND...`.
pub(crate) async fn hold(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<ExitCode> {
    let tty = arguments.next().as_deref() == Some("true");
    let pod = arguments.next().context("expected a pod")?;
    let pods: Api<Pod> = Api::default_namespaced(kube::Client::try_default().await?);
    let params = if tty { with_terminal() } else { with_stdin() };
    let command: Vec<_> = arguments.collect();
    let mut process = pods.exec(&pod, command, &params).await?;
    let status = process.take_status().context("it was not taken yet")?;
    let ended = status.await;
    ensure!(ended.is_none(), "the command ended: {ended:?}");
    Ok(ExitCode::FAILURE)
}
