//! The example runtime: a pseudo-terminal, and the end of processes whose client left.

#[path = "../../examples/local_commands/mod.rs"]
mod local_commands;

use std::fs::read_to_string;
use std::path::PathBuf;
use std::time::Duration;

use local_commands::LocalCommands;
use spdy_cri::client::{self, Options, Process};
use spdy_cri::{Config, ExitCode, Input, StreamOptions, StreamingServer, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{PIPES, TERMINAL, exec, post, runtime};

/// Starts a script in `sh`.
async fn start(script: &str, stream_options: StreamOptions) -> Process {
    let commands = LocalCommands {
        directory: PathBuf::from("."),
    };
    let server = StreamingServer::new(commands, "http://runtime", Config::default(), runtime());
    let server = server.expect("a base URL");
    // A test in the background ignores SIGINT, and a shell that inherits this cannot change it.
    let command = ["env", "--default-signal=INT", "sh", "-c", script];
    let request = exec(&command, stream_options);
    let url = server.exec_url(request).expect("a URL");
    let (near, far) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move { server.serve_connection(far).await });
    let options = Options::default();
    let started = client::exec(near, &post(&url), stream_options, options, runtime()).await;
    started.expect("a process")
}

async fn line(from: &mut Input) -> String {
    let mut line = Vec::new();
    loop {
        match from.read_u8().await.expect("a line") {
            b'\n' => return String::from_utf8_lossy(&line).trim().to_owned(),
            byte => line.push(byte),
        }
    }
}

/// Waits until a process has ended: it is gone, or a zombie.
async fn ends(process: &str) {
    let limit = Duration::from_secs(20);
    let ended = async {
        while let Ok(stat) = read_to_string(format!("/proc/{process}/stat"))
            && !stat.contains(") Z ")
        {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(limit, ended).await;
    waited.unwrap_or_else(|_| panic!("process {process} still runs after {limit:?}"));
}

#[tokio::test]
async fn a_terminal_has_the_clients_sizes_and_its_ctrl_c() {
    let script = "trap 'stty size' WINCH; stty size; while sleep 0.1; do :; done";
    let mut process = start(script, TERMINAL).await;
    let mut resizer = process.resize.take().expect("a terminal");
    let mut stdout = process.stdout.take().expect("the stream was requested");
    for (width, height) in [(100, 30), (132, 43)] {
        let size = TerminalSize { width, height };
        resizer.resize(size).await.expect("sent");
        let expected = format!("{height} {width}");
        while line(&mut stdout).await != expected {} // the default size is first if the client's is late
    }
    let mut stdin = process.stdin.take().expect("the stream was requested");
    stdin.write_all(b"\x03").await.expect("written");
    stdout
        .read_to_end(&mut Vec::new())
        .await
        .expect("the shell ends");
    assert_eq!(
        process.wait().await.expect("a status"),
        ExitCode(130),
        "128 and SIGINT"
    );
}

#[tokio::test]
async fn the_processes_of_a_client_that_left_end_also_if_they_ignore_the_hang_up() {
    for stream_options in [PIPES, TERMINAL] {
        let script = "trap '' HUP; sleep 1000 & echo $$; echo $!; wait";
        let mut process = start(script, stream_options).await;
        let mut stdout = process.stdout.take().expect("the stream was requested");
        let (shell, job) = (line(&mut stdout).await, line(&mut stdout).await);
        drop((stdout, process));
        ends(&shell).await;
        ends(&job).await;
    }
}
