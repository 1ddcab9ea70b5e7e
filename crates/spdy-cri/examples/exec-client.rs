//! `kubectl exec`, without Kubernetes: runs a command at `cri-exec-server`, or at any URL that takes the
//! upgrade, and ends with the command's exit code.
//!
//! ```text
//! exec-client [-i] [-t] [-w] HOST:PORT COMMAND [ARGUMENT]...    asks cri-exec-server for a URL
//! exec-client [-i] [-t] [-w] http://HOST:PORT/exec/TOKEN        uses that one
//! ```
//!
//! `-i` passes stdin on, `-t` requests a terminal and sends its size from `COLUMNS` and `LINES`, `-w` uses
//! WebSocket instead of SPDY.

use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use spdy::{SharedRuntime, TokioRuntime};
use spdy_cri::client::{self, Options};
use spdy_cri::{ExitCode, Input, Output, StreamOptions, TerminalSize};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

type Error = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() {
    match run().await {
        // Not by returning: a read of stdin that waits would hold the program.
        Ok(code) => std::process::exit(code.0.into()),
        Err(error) => {
            complain(&error);
            std::process::exit(1)
        }
    }
}

#[expect(
    clippy::print_stderr,
    reason = "the program reports failures on stderr"
)]
fn complain(error: &Error) {
    eprintln!("exec-client: {error}");
}

async fn run() -> Result<ExitCode, Error> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut flag = |name: &str| {
        let position = arguments
            .iter()
            .take(3)
            .position(|argument| argument == name);
        position.map(|at| arguments.remove(at)).is_some()
    };
    let (stdin, tty, websocket) = (flag("-i"), flag("-t"), flag("-w"));
    let stream_options = StreamOptions {
        stdin,
        stdout: true,
        stderr: !tty,
        tty,
    };
    let (target, command) = arguments
        .split_first()
        .ok_or("expected [-i] [-t] [-w] HOST:PORT COMMAND..., or a URL")?;
    let url = match target.starts_with("http://") {
        true => target.clone(),
        false => new_url(target, command, stream_options).await?,
    };
    let request = Request::post(&url).body(())?;
    let authority = request.uri().authority().ok_or("the URL has no host")?;
    let socket = TcpStream::connect((authority.host(), authority.port_u16().unwrap_or(80))).await?;
    socket.set_nodelay(true)?;
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let options = Options::default();
    let mut process = match websocket {
        true => {
            client::exec_in_websocket(socket, &request, stream_options, options, runtime).await?
        }
        false => client::exec(socket, &request, stream_options, options, runtime).await?,
    };
    if let Some(resize) = &mut process.resize {
        let number = |name| std::env::var(name).ok()?.parse().ok();
        let width = number("COLUMNS").unwrap_or(80);
        let height = number("LINES").unwrap_or(24);
        resize.resize(TerminalSize { width, height }).await?;
    }
    let feeding = tokio::spawn(feed(process.stdin.take()));
    let (out, err) = (process.stdout.take(), process.stderr.take());
    let (out, err) = tokio::join!(
        print(out, tokio::io::stdout()),
        print(err, tokio::io::stderr())
    );
    out.and(err)?;
    let code = process.wait().await?;
    feeding.abort();
    Ok(code)
}

/// Requests a URL from `cri-exec-server`.
async fn new_url(
    server: &str,
    command: &[String],
    stream_options: StreamOptions,
) -> Result<String, Error> {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for part in command {
        query.append_pair("command", part);
    }
    for (name, enabled) in [("stdin", stream_options.stdin), ("tty", stream_options.tty)] {
        if enabled {
            query.append_pair(name, "1");
        }
    }
    let socket = TokioIo::new(TcpStream::connect(server).await?);
    let (mut http, connection) = hyper::client::conn::http1::handshake(socket).await?;
    tokio::spawn(connection);
    let request = Request::get(format!("/new/exec?{}", query.finish()))
        .header("host", server)
        .body(Empty::<bytes::Bytes>::new())?;
    let response = http.send_request(request).await?;
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    let text = String::from_utf8_lossy(&body).trim().to_owned();
    match status.is_success() {
        true => Ok(text),
        false => Err(format!("{server} responded with {status}: {text}").into()),
    }
}

/// Copies our stdin to the command's, until it ends or the command reads no more.
async fn feed(to: Option<Output>) {
    if let Some(mut to) = to {
        let _ = tokio::io::copy(&mut tokio::io::stdin(), &mut to).await;
        let _ = to.shutdown().await;
    }
}

/// The command's output to ours.
async fn print(from: Option<Input>, mut to: impl AsyncWrite + Unpin) -> std::io::Result<()> {
    if let Some(mut from) = from {
        tokio::io::copy(&mut from, &mut to).await?;
        to.flush().await?;
    }
    Ok(())
}
