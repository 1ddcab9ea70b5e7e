use std::path::PathBuf;

use http::Request;
use spdy_cri::client::{self, Options, Process};
use spdy_cri::{ClientError, ExitCode, SharedRuntime, StreamOptions, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::unix::pipe;
use tokio::process::Command;

use crate::support::{Program, in_time, pattern};

const PROGRAM: &str = env!("CARGO_BIN_EXE_exec-server");
const OUTPUT: StreamOptions = StreamOptions {
    stdin: false,
    stdout: true,
    stderr: true,
    tty: false,
};
const PIPES: StreamOptions = StreamOptions {
    stdin: true,
    ..OUTPUT
};
const TERMINAL: StreamOptions = StreamOptions {
    stderr: false,
    tty: true,
    ..PIPES
};

struct Server {
    program: Program,
    address: String,
}

impl Server {
    async fn start() -> Self {
        let (program, address) = Program::serve(PROGRAM, &["127.0.0.1:0"]).await;
        Self { program, address }
    }

    async fn url(&mut self, line: &str) -> String {
        self.program.write_line(line).await;
        self.program.line().await
    }

    async fn run(&self, url: &str, streams: StreamOptions) -> Result<Process, ClientError> {
        let socket = TcpStream::connect(&self.address)
            .await
            .expect("the server accepts");
        let request = Request::post(url).body(()).expect("a valid URL");
        in_time(client::exec(
            socket,
            &request,
            streams,
            Options::default(),
            SharedRuntime::tokio(),
        ))
        .await
    }

    async fn exec(&mut self, line: &str, streams: StreamOptions) -> Process {
        let url = self.url(line).await;
        self.run(&url, streams).await.expect("the command starts")
    }
}

async fn text_of(stream: Option<impl AsyncReadExt + Unpin>) -> String {
    let mut text = String::new();
    let mut stream = stream.expect("the stream was requested");
    in_time(stream.read_to_string(&mut text))
        .await
        .expect("the stream ends in order");
    text
}

#[tokio::test]
async fn output_and_exit_codes_arrive() {
    let mut server = Server::start().await;
    let mut process = server.exec("echo out; echo err >&2; exit 7", OUTPUT).await;
    assert_eq!(text_of(process.stdout.take()).await, "out\n");
    assert_eq!(text_of(process.stderr.take()).await, "err\n");
    assert_eq!(
        in_time(process.wait()).await.expect("an exit code"),
        ExitCode(7)
    );

    let mut with_input = server.exec("-i exit 4", PIPES).await;
    let stdin = with_input.stdin.take();
    assert_eq!(
        in_time(with_input.wait()).await.expect("an exit code"),
        ExitCode(4)
    );
    drop(stdin);

    let killed = server.exec("kill -KILL $$", OUTPUT).await;
    assert_eq!(
        in_time(killed.wait()).await.expect("an exit code"),
        ExitCode(137)
    );
}

#[tokio::test]
async fn a_megabyte_through_a_command_is_unchanged() {
    let mut server = Server::start().await;
    let mut process = server.exec("-i cat", PIPES).await;
    let (mut stdin, mut stdout) = (
        process.stdin.take().expect("stdin"),
        process.stdout.take().expect("stdout"),
    );
    let sent = pattern(1 << 20);
    let write = async {
        stdin.write_all(&sent).await?;
        stdin.shutdown().await
    };
    let mut received = Vec::new();
    let (written, read) =
        in_time(async { tokio::join!(write, stdout.read_to_end(&mut received)) }).await;
    written.expect("the command reads all");
    read.expect("the command writes all");
    assert!(received == sent, "the output differs");
    assert_eq!(
        in_time(process.wait()).await.expect("an exit code"),
        ExitCode::SUCCESS
    );
}

#[tokio::test]
async fn a_command_on_a_terminal_reads_keys_and_sizes() {
    let mut server = Server::start().await;
    // `read` is interrupted by the signal of a new size, and the shell then runs the trap.
    let script = "-i -t test -t 0 && test -t 1 && test -t 2 || exit 1; stty -echo; trap 'stty size' WINCH; echo ready; \
                  while read -r line || :; do case $line in end) exit 3;; ?*) echo \"read $line\";; esac; done";
    let mut process = server.exec(script, TERMINAL).await;
    let mut stdout = process.stdout.take().expect("stdout");
    let mut stdin = process.stdin.take().expect("stdin");
    let mut resize = process.resize.take().expect("a terminal has sizes");
    let mut seen = String::new();
    let mut until = async |wanted: &str| {
        while !seen.contains(wanted) {
            let piece = in_time(stdout.receive())
                .await
                .expect("more output")
                .expect("no error");
            seen.push_str(&String::from_utf8_lossy(&piece));
        }
        seen.clear();
    };
    until("ready\r\n").await;
    for (width, height, printed) in [(100, 40, "40 100\r\n"), (132, 43, "43 132\r\n")] {
        resize
            .resize(TerminalSize { width, height })
            .await
            .expect("the command runs");
        until(printed).await;
    }
    stdin.write_all(b"hello\n").await.expect("the command runs");
    until("read hello\r\n").await;
    stdin.write_all(b"end\n").await.expect("the command runs");
    assert_eq!(
        in_time(process.wait()).await.expect("an exit code"),
        ExitCode(3)
    );
}

#[tokio::test]
async fn a_command_ends_when_its_client_is_gone() {
    let mut server = Server::start().await;
    for (options, streams) in [("-i", PIPES), ("-i -t", TERMINAL)] {
        // The command has the only writing end of a pipe: reading ends when the command does.
        let path = fifo(options).await;
        let mut reader = pipe::OpenOptions::new()
            .open_receiver(&path)
            .expect("the pipe can be read");
        let line = format!(
            "{options} exec 3>'{}'; echo ready; exec cat",
            path.display()
        );
        let mut process = server.exec(&line, streams).await;
        let mut stdout = process.stdout.take().expect("stdout");
        in_time(stdout.receive())
            .await
            .expect("a line")
            .expect("no error");
        std::fs::remove_file(&path).expect("the pipe has a name");
        drop((process, stdout));
        let mut rest = Vec::new();
        in_time(reader.read_to_end(&mut rest))
            .await
            .expect("the pipe ends in order");
        assert!(rest.is_empty());
    }
}

async fn fifo(name: &str) -> PathBuf {
    let name = name.replace([' ', '-'], "");
    let path = std::env::temp_dir().join(format!("spdy-examples-{}-{name}", std::process::id()));
    let status = Command::new("mkfifo")
        .arg(&path)
        .status()
        .await
        .expect("there is mkfifo");
    assert!(status.success());
    path
}

#[tokio::test]
async fn the_program_is_its_own_client_and_a_url_is_valid_once() {
    let mut server = Server::start().await;
    let url = server.url("-i tr a-z A-Z; exit 5").await;
    let mut client = Program::start(PROGRAM, &["run", "-i", &url]);
    client.write_line("hello").await;
    client.end_input();
    let (lines, status) = client.end().await;
    assert_eq!(
        (lines.as_slice(), status.code()),
        (&["HELLO".to_owned()][..], Some(5))
    );
    let again = server.run(&url, PIPES).await;
    assert!(matches!(again, Err(ClientError::Upgrade(_))), "{again:?}");
}
