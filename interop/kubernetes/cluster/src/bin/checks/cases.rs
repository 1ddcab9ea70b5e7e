//! The cases. Each returns the text of its cell, or the reason why it failed.

use std::time::Instant;

use anyhow::{Context, ensure};
use futures_util::future::try_join_all;
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::client::{Client, Connection};
use crate::cluster::{Cluster, SHELL, processes};

const MB: usize = 1_000_000;
const YES: &str = "yes";

/// `len` bytes of which no part repeats soon.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let blocks = (0_u64..).map(|block| Sha256::digest(block.to_le_bytes()));
    blocks.take(len.div_ceil(32)).flatten().take(len).collect()
}

/// Compares by SHA-256.
pub(crate) fn check_bytes(found: &[u8], expected: &[u8]) -> anyhow::Result<()> {
    let same = Sha256::digest(found) == Sha256::digest(expected);
    ensure!(same, "{} bytes, expected {}", found.len(), expected.len());
    Ok(())
}

pub(crate) async fn bytes<C: Client>(_: &Cluster, client: &C) -> anyhow::Result<String> {
    let input = pattern(5 * MB);
    let outcome = client.exec(SHELL, &["cat"], &input).await?;
    check_bytes(&outcome.stdout, &input)?;
    ensure!(outcome.code == 0, "exit code {}", outcome.code);
    Ok(YES.to_owned())
}

pub(crate) async fn exit_codes<C: Client>(_: &Cluster, client: &C) -> anyhow::Result<String> {
    for (script, code) in [("exit 7", 7), ("kill -KILL $$", 137)] {
        let outcome = client.exec(SHELL, &["sh", "-c", script], b"").await?;
        ensure!(outcome.code == code, "{script}: exit code {}", outcome.code);
    }
    Ok(YES.to_owned())
}

pub(crate) async fn separate_outputs<C: Client>(_: &Cluster, client: &C) -> anyhow::Result<String> {
    let script = "for i in 1 2 3; do echo out $i; echo err $i >&2; done";
    let outcome = client.exec(SHELL, &["sh", "-c", script], b"").await?;
    check_bytes(&outcome.stdout, b"out 1\nout 2\nout 3\n").context("stdout")?;
    check_bytes(&outcome.stderr, b"err 1\nerr 2\nerr 3\n").context("stderr")?;
    Ok(YES.to_owned())
}

pub(crate) async fn not_found<C: Client>(_: &Cluster, client: &C) -> anyhow::Result<String> {
    let outcome = client.exec(SHELL, &["lss"], b"").await?;
    let expected = "Internal error occurred: error executing command in container: \
                    exec: \"lss\": executable file not found in $PATH";
    // The API server's translator from WebSocket to SPDY adds the first words again.
    ensure!(
        outcome.message.ends_with(expected),
        "message {:?}",
        outcome.message
    );
    ensure!(outcome.code == 1, "exit code {}", outcome.code);
    Ok(YES.to_owned())
}

pub(crate) async fn terminal<C: Client>(_: &Cluster, client: &C) -> anyhow::Result<String> {
    let script = "trap 'stty size' WINCH; stty size; while sleep 0.1; do :; done";
    let mut terminal = client
        .terminal(SHELL, &["sh", "-c", script], 100, 30)
        .await?;
    terminal.expect_line("30 100").await?;
    for (width, height) in [(132, 43), (80, 24)] {
        (terminal.resize)(width, height)?;
        terminal.expect_line(&format!("{height} {width}")).await?;
    }
    terminal.input.write_all(b"\x03").await?;
    let mut rest = Vec::new();
    let reading = async {
        let _ = terminal.output.read_to_end(&mut rest).await; // a terminal may end with an error
        Ok(())
    };
    let (code, ()) = tokio::try_join!(terminal.ended, reading)?;
    ensure!(code == 130, "exit code {code} after Ctrl-C, expected 130");
    Ok(YES.to_owned())
}

pub(crate) async fn attach<C: Client>(cluster: &Cluster, client: &C) -> anyhow::Result<String> {
    let pod = client
        .name()
        .replace(", ", "-")
        .replace(' ', "-")
        .to_ascii_lowercase();
    cluster.start_pod(&pod, &["cat"]).await?;
    let input = pattern(MB);
    let outcome = client.attach(&pod, &input).await?;
    check_bytes(&outcome.stdout, &input)?;
    ensure!(outcome.code == 0, "exit code {}", outcome.code);
    Ok(YES.to_owned())
}

pub(crate) async fn port_forward<C: Client>(_: &Cluster, client: &C) -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let echo = tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = socket.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
                let _ = to.shutdown().await;
            });
        }
    });
    let check = async |connections: Vec<Box<dyn Connection>>| {
        try_join_all(connections.into_iter().map(echo_bytes)).await?;
        Ok(())
    };
    let forwarded = client.forward(SHELL, port, 4, check).await;
    echo.abort();
    forwarded.map(|()| YES.to_owned())
}

/// Sends a megabyte, and reads it again.
async fn echo_bytes(connection: Box<dyn Connection>) -> anyhow::Result<()> {
    let (mut from, mut to) = tokio::io::split(connection);
    let (input, mut output) = (pattern(MB), vec![0; MB]);
    tokio::try_join!(from.read_exact(&mut output), to.write_all(&input))?;
    check_bytes(&output, &input)
}

pub(crate) async fn killed_clients<C: Client>(
    cluster: &Cluster,
    client: &C,
) -> anyhow::Result<String> {
    let before = processes(&cluster.pod_folder(SHELL));
    // The shell has a child; with a terminal, an interactive one has its job in a process group of its own.
    let plain = ["sh", "-c", "sleep 1000; true"];
    let interactive = ["sh", "-ic", "sleep 1000 & wait"];
    let mut clients = Vec::new();
    for number in 0..20 {
        let tty = number % 2 == 1;
        let command = if tty { interactive } else { plain };
        clients.push(client.start(SHELL, &command, tty)?);
    }
    cluster.wait_for_processes(SHELL, before + 40).await?;
    let start = Instant::now();
    for (child, _) in &mut clients {
        child.start_kill()?;
    }
    for (child, _) in &mut clients {
        child.wait().await?;
    }
    cluster.wait_for_processes(SHELL, before).await?;
    Ok(format!(
        "{YES}, within {:.1} s",
        start.elapsed().as_secs_f64()
    ))
}
