//! A container runtime without containers: exec runs commands of this machine, attach joins `cat`, and
//! port-forward reaches ports of localhost.
//!
//! ```text
//! cargo run -p spdy-cri --example cri-exec-server -- 127.0.0.1:10350
//! cargo run -p spdy-cri --example exec-client -- 127.0.0.1:10350 uname -a
//! echo hello | cargo run -p spdy-cri --example exec-client -- -i 127.0.0.1:10350 cat
//! ```
//!
//! A real runtime gives out URLs by gRPC (CRI's Exec, Attach, PortForward), to the kubelet alone. Here
//! any client gets them, from `/new/exec?command=ls&command=-l&stdin=1&tty=1`, `/new/attach` and
//! `/new/portforward`: **do not listen on any address but localhost**.
//!
//! Commands get pipes. The log shows the terminal sizes that a pseudo-terminal would be set to.

use std::convert::Infallible;
use std::process::Stdio;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use spdy::{SharedRuntime, TokioRuntime};
use spdy_cri::{
    AttachRequest, Config, Connection, ExecRequest, ExitCode, Handler, HandlerError, Input, Output,
    PortForwardRequest, StreamOptions, StreamingServer, Streams,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:10350".to_owned());
    let listener = TcpListener::bind(&address).await?;
    let base = format!("http://{}", listener.local_addr()?);
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let server = StreamingServer::new(LocalCommands, &base, Config::default(), runtime)?;
    log(&format!("listening on {base}"));
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let server = server.clone();
        tokio::spawn(async move {
            let service = service_fn(|request| {
                std::future::ready(Ok::<_, Infallible>(answer(&server, request)))
            });
            let http = hyper::server::conn::http1::Builder::new();
            let serving = http.serve_connection(TokioIo::new(socket), service);
            if let Err(error) = serving.with_upgrades().await {
                log(&format!("a connection failed: {error}"));
            }
        });
    }
}

#[expect(clippy::print_stderr, reason = "the example logs to stderr")]
fn log(line: &str) {
    eprintln!("{line}");
}

/// New URLs below `/new/`; the streaming server answers the rest.
fn answer(server: &StreamingServer<LocalCommands>, request: Request<Incoming>) -> Response<String> {
    let Some(what) = request.uri().path().strip_prefix("/new/") else {
        return server.respond(request);
    };
    let query = request.uri().query().unwrap_or_default().as_bytes();
    let query: Vec<_> = url::form_urlencoded::parse(query).collect();
    let has = |name: &str| query.iter().any(|(key, value)| key == name && value == "1");
    let tty = has("tty");
    let stream_options = StreamOptions {
        stdin: has("stdin"),
        stdout: true,
        stderr: !tty,
        tty,
    };
    let commands = query.iter().filter(|(key, _)| key == "command");
    let container = "local".to_owned();
    let url = match what {
        "exec" => server.exec_url(ExecRequest {
            container,
            command: commands.map(|(_, value)| value.to_string()).collect(),
            stream_options,
        }),
        "attach" => server.attach_url(AttachRequest {
            container,
            stream_options,
        }),
        "portforward" => server.port_forward_url(PortForwardRequest {
            sandbox: container,
            ports: Vec::new(),
        }),
        _ => {
            return with_status(
                StatusCode::NOT_FOUND,
                "expected exec, attach or portforward",
            );
        }
    };
    match url {
        Ok(url) => Response::new(url),
        Err(error) => with_status(StatusCode::BAD_REQUEST, &error.to_string()),
    }
}

fn with_status(status: StatusCode, text: &str) -> Response<String> {
    let mut response = Response::new(format!("{text}\n"));
    *response.status_mut() = status;
    response
}

/// Runs commands of this machine.
struct LocalCommands;

impl Handler for LocalCommands {
    async fn exec(&self, request: ExecRequest, streams: Streams) -> Result<ExitCode, HandlerError> {
        run(&request.command, streams).await
    }

    async fn attach(&self, _: AttachRequest, streams: Streams) -> Result<(), HandlerError> {
        run(&["cat".to_owned()], streams).await.map(|_| ())
    }

    async fn port_forward(
        &self,
        _: String,
        port: u16,
        mut connection: Connection,
    ) -> Result<(), HandlerError> {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await?;
        tokio::io::copy_bidirectional(&mut connection, &mut socket).await?;
        Ok(())
    }
}

async fn run(command: &[String], streams: Streams) -> Result<ExitCode, HandlerError> {
    let Streams {
        stdin,
        stdout,
        stderr,
        mut resize,
    } = streams;
    let piped = |enabled| {
        if enabled {
            Stdio::piped()
        } else {
            Stdio::null()
        }
    };
    let (program, arguments) = command.split_first().ok_or("no command")?;
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(piped(stdin.is_some()))
        .stdout(piped(stdout.is_some()))
        .stderr(piped(stderr.is_some()))
        // This future is dropped when the client disconnects.
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("cannot run {program:?}: {error}"))?;
    log(&format!("{command:?} runs as {:?}", child.id()));
    let (to, from, complaints) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let sizes = async {
        while let Some(size) = next_size(&mut resize).await {
            log(&format!("{command:?}: a terminal of {}x{}", size.0, size.1));
        }
    };
    let background = async {
        tokio::join!(feed(stdin, to), sizes);
        std::future::pending::<()>().await;
    };
    let to_the_end =
        async { tokio::join!(copy(from, stdout), copy(complaints, stderr), child.wait()) };
    let ((), (), status) = tokio::select! {
        ended = to_the_end => ended,
        () = background => unreachable!("the future never completes"),
    };
    let status = status?;
    log(&format!("{command:?}: {status}"));
    Ok(ExitCode(exit_code(status)))
}

/// 128 and the number of the signal, for a command that one ended.
fn exit_code(status: std::process::ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(255)
}

async fn next_size(resize: &mut Option<spdy_cri::ResizeEvents>) -> Option<(u16, u16)> {
    let size = resize.as_mut()?.next().await?;
    Some((size.width, size.height))
}

/// Client to command; both ends are closed when the client has no more.
async fn feed(from: Option<Input>, to: Option<impl AsyncWrite + Unpin>) {
    if let (Some(mut from), Some(mut to)) = (from, to) {
        // A command that reads no more is no fault.
        let _ = tokio::io::copy(&mut from, &mut to).await;
    }
}

/// Command to client.
async fn copy(from: Option<impl AsyncRead + Unpin>, to: Option<Output>) {
    if let (Some(mut from), Some(mut to)) = (from, to) {
        let _ = tokio::io::copy(&mut from, &mut to).await;
    }
}
