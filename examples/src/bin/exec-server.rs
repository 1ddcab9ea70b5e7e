//! The exec server of a container runtime on `spdy-cri`. Commands run on a pseudo-terminal if the request has `tty`.
//!
//! ```sh
//! cargo run --manifest-path examples/Cargo.toml --bin exec-server -- 127.0.0.1:10350
//! ```
//!
//! The kubelet's gRPC call `Exec` asks a runtime for a URL. Here each line of stdin is such a call: `[-i] [-t] COMMAND`. The
//! answer is a URL that is valid once, for 1 min. Run the command at the URL from another terminal:
//!
//! ```sh
//! cargo run --manifest-path examples/Cargo.toml --bin exec-server -- run [-i] [-t] URL
//! ```

use std::convert::Infallible;
use std::process::{ExitStatus, Stdio, exit};
use std::{env, future};

use bytes::Bytes;
use futures_util::FutureExt;
use http::Request;
use pty_process::{ReadPty, Size, WritePty};
use spdy_cri::client::{self, Options};
use spdy_cri::{
    AttachRequest, Config, Connection, ExecRequest, ExitCode, Handler, HandlerError, Input, Output,
    ResizeEvents, SharedRuntime, StreamOptions, StreamingServer, Streams,
};
use tokio::io::{self, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

/// Runs the commands on this machine instead of in containers.
struct Host;

impl Handler for Host {
    async fn exec(&self, request: ExecRequest, streams: Streams) -> Result<ExitCode, HandlerError> {
        let (program, arguments) = request.command.split_first().ok_or("no command")?;
        // The future is dropped when the client is gone, and then the command must end.
        let mut command = Command::new(program);
        command.args(arguments).kill_on_drop(true);
        Ok(match request.stream_options.tty {
            true => on_terminal(command, streams).await?.into(),
            false => on_pipes(command, streams).await?.into(),
        })
    }

    async fn attach(&self, _: AttachRequest, _: Streams) -> Result<(), HandlerError> {
        Err("attach is not supported: use exec".into())
    }

    async fn port_forward(&self, _: String, _: u16, _: Connection) -> Result<(), HandlerError> {
        Err("port-forward is not supported".into())
    }
}

async fn on_pipes(mut command: Command, streams: Streams) -> Result<ExitStatus, HandlerError> {
    command.stdin(
        streams
            .stdin
            .as_ref()
            .map_or_else(Stdio::null, |_| Stdio::piped()),
    );
    command.stdout(
        streams
            .stdout
            .as_ref()
            .map_or_else(Stdio::null, |_| Stdio::piped()),
    );
    command.stderr(
        streams
            .stderr
            .as_ref()
            .map_or_else(Stdio::null, |_| Stdio::piped()),
    );
    let mut child = command.spawn()?;
    let stdin = copy(streams.stdin, child.stdin.take());
    let stdout = copy(child.stdout.take(), streams.stdout);
    let stderr = copy(child.stderr.take(), streams.stderr);
    tokio::select! {
        ended = async { tokio::try_join!(child.wait(), stdout, stderr) } => Ok(ended?.0),
        // The command may end before its input, or close its stdin.
        never = stdin.then(|_| future::pending::<Infallible>()) => match never {},
    }
}

/// Copies `from` to its end, and then ends `to` by dropping it.
async fn copy(
    from: Option<impl AsyncRead + Unpin>,
    to: Option<impl AsyncWrite + Unpin>,
) -> io::Result<()> {
    if let (Some(mut from), Some(mut to)) = (from, to) {
        io::copy(&mut from, &mut to).await?;
    }
    Ok(())
}

async fn on_terminal(command: Command, streams: Streams) -> Result<ExitStatus, HandlerError> {
    let (mut pty, pts) = pty_process::open()?;
    let mut child = pty_process::Command::from(command).spawn(pts)?;
    let (output, input) = pty.split();
    tokio::select! {
        read = read_terminal(output, streams.stdout) => read?,
        never = write_terminal(input, streams.stdin, streams.resize) => match never {},
    }
    Ok(child.wait().await?)
}

/// Copies output until the last process has closed the terminal. Reading fails then.
async fn read_terminal(mut terminal: ReadPty<'_>, mut stdout: Option<Output>) -> io::Result<()> {
    let mut buffer = [0; 8 * 1024];
    while let Ok(bytes @ 1..) = terminal.read(&mut buffer).await {
        if let Some(stdout) = &mut stdout {
            stdout.write_all(&buffer[..bytes]).await?;
        }
    }
    Ok(())
}

/// Copies stdin and applies sizes. A size does not wait for a command that reads no input.
async fn write_terminal(
    mut terminal: WritePty<'_>,
    mut stdin: Option<Input>,
    mut sizes: Option<ResizeEvents>,
) -> Infallible {
    let mut unwritten = Bytes::new();
    loop {
        let input = async { stdin.as_mut()?.receive().await?.ok() };
        let size = async { sizes.as_mut()?.next().await };
        // Writing fails after the command has ended. Its exit code is the result, not this error.
        tokio::select! {
            Some(size) = size => drop(terminal.resize(Size::new(size.height, size.width))),
            Some(piece) = input, if unwritten.is_empty() => unwritten = piece,
            Ok(_) = terminal.write_buf(&mut unwritten), if !unwritten.is_empty() => {}
            else => future::pending().await,
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), HandlerError> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        Some((address, [])) => serve(address).await,
        // `exit`, because a pending read of stdin would delay the end of the runtime.
        Some((mode, rest)) if mode == "run" => exit(run(&rest.join(" ")).await?.0.into()),
        _ => Err("usage: exec-server ADDRESS, or exec-server run [-i] [-t] URL".into()),
    }
}

/// Prints a URL for each command on stdin.
async fn serve(address: &str) -> Result<(), HandlerError> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    println!("listening on {address}");
    let (base, runtime) = (format!("http://{address}"), SharedRuntime::tokio());
    let server = StreamingServer::new(Host, &base, Config::default(), runtime)?;
    let urls = async {
        let mut lines = io::BufReader::new(io::stdin()).lines();
        while let Some(line) = lines.next_line().await? {
            let (stream_options, script) = parse(&line);
            let command = ["/bin/sh", "-c", script].map(str::to_owned).into();
            let request = ExecRequest {
                container: "host".to_owned(),
                command,
                stream_options,
            };
            println!("{}", server.exec_url(request)?);
        }
        Ok(())
    };
    tokio::join!(urls, server.serve(listener)).0
}

/// The streams that `[-i] [-t] REST` requests, and the rest. A terminal has no separate stderr.
fn parse(line: &str) -> (StreamOptions, &str) {
    let (mut streams, mut rest) = (StreamOptions::default(), line);
    loop {
        match rest.split_once(' ') {
            Some(("-i", after)) => (streams.stdin, rest) = (true, after),
            Some(("-t", after)) => (streams.tty, rest) = (true, after),
            _ => break,
        }
    }
    (streams.stdout, streams.stderr) = (true, !streams.tty);
    (streams, rest)
}

/// Runs the command at a URL with the streams of this process.
async fn run(line: &str) -> Result<ExitCode, HandlerError> {
    let (streams, url) = parse(line);
    let request = Request::post(url).body(())?;
    let server = request.uri().authority().ok_or("the URL has no host")?;
    let socket = TcpStream::connect(server.as_str()).await?;
    let runtime = SharedRuntime::tokio();
    let mut process = client::exec(socket, &request, streams, Options::default(), runtime).await?;
    tokio::spawn(copy(Some(io::stdin()), process.stdin.take()));
    let stdout = copy(process.stdout.take(), Some(io::stdout()));
    let stderr = copy(process.stderr.take(), Some(io::stderr()));
    tokio::try_join!(stdout, stderr)?;
    Ok(process.wait().await?)
}
