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
//! Commands get pipes, or with `tty=1` a pseudo-terminal.

mod local_commands;

use std::convert::Infallible;
use std::path::PathBuf;

use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use spdy::{SharedRuntime, TokioRuntime};
use spdy_cri::{
    AttachRequest, Config, ExecRequest, PortForwardRequest, StreamOptions, StreamingServer,
};
use tokio::net::TcpListener;

use local_commands::LocalCommands;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:10350".to_owned());
    let listener = TcpListener::bind(&address).await?;
    let base = format!("http://{}", listener.local_addr()?);
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let commands = LocalCommands {
        directory: PathBuf::from("."),
    };
    let server = StreamingServer::new(commands, &base, Config::default(), runtime)?;
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
    let query: Vec<_> = form_urlencoded::parse(query).collect();
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
