//! With Kubernetes' own Go modules: client-go against our server, our client against the kubelet's
//! streaming library, and both through the API server's proxies.
//!
//! ```text
//!  client-go  ------------------------------------------------>  our server      direct
//!  client-go  -----> UpgradeAwareHandler --------------------->  our server      proxy
//!  client-go  =====> StreamTranslator, TunnelingHandler ------>  our server      WebSocket in, SPDY behind
//!  client-go  ================================================>  our server      SPDY inside WebSocket
//!  our client ------------------------------------------------>  the kubelet's
//!  our client -----> UpgradeAwareHandler --------------------->  the kubelet's
//!  our client =====> TunnelingHandler ------------------------>  the kubelet's
//! ```
//!
//! `scripts/setup-peers` builds the drivers of `interop/kubernetes`. Data is compared by SHA-256.

mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::Ordering;

use http::Request;
use serde_json::Value;
use spdy_cri::client::{self, Options, PortForward, Process};
use spdy_cri::{
    ClientError, Config, ExitCode, PortForwardRequest, RemoteCommand, StreamingServer,
    TerminalSize, Wanted,
};
use support::{
    PIPES, TERMINAL, Toy, attach, dead_port, echo_port, exec, listening, pattern, post, runtime,
    sha256, until,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MEGABYTE: usize = 1_000_000;

/// A driver of `interop/kubernetes`.
fn driver(name: &str) -> PathBuf {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../interop/kubernetes/target"
    );
    let path = PathBuf::from(folder).join(name);
    assert!(
        path.exists(),
        "{} is not built: run scripts/setup-peers",
        path.display()
    );
    path
}

/// Runs client-go's driver; gives what it reports.
async fn client_go(arguments: &[&str]) -> Value {
    let mut command = tokio::process::Command::new(driver("client"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = command.output().await.expect("a driver that runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let noise = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "client {arguments:?}: {text}{noise}"
    );
    let mut report: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{noise}"));
    report["noise"] = noise.into(); // where it tells of one connection of many
    report
}

/// The kubelet's server, and the API server's proxies.
struct Kubernetes {
    process: Child,
    front: u16,
    /// Closed, it ends.
    _stdin: ChildStdin,
}

impl Kubernetes {
    fn start() -> Self {
        let mut command = Command::new(driver("server"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("a driver that runs");
        let _stdin = process.stdin.take().expect("piped");
        let mut line = String::new();
        let stdout = process.stdout.take().expect("piped");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let ports: Value = serde_json::from_str(&line).expect("ports");
        let front = ports["front"].as_u64().expect("a port");
        Self {
            process,
            front: front.try_into().expect("a port"),
            _stdin,
        }
    }

    /// A URL of the front.
    fn front(&self, path: &str, to: &str) -> String {
        let tty = if path.contains('?') { '&' } else { '?' };
        format!("http://127.0.0.1:{}{path}{tty}to={to}", self.front)
    }

    /// A one-time URL of the kubelet's server.
    async fn new_url(&self, what: &str) -> String {
        let mut socket = TcpStream::connect(("127.0.0.1", self.front))
            .await
            .expect("a front");
        let request = format!("GET /new/{what} HTTP/1.0\r\nHost: front\r\n\r\n");
        socket.write_all(request.as_bytes()).await.expect("written");
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.expect("an answer");
        let (head, url) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(" 200 "), "{answer}");
        url.to_owned()
    }
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How a client reaches our server.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Road {
    Direct,
    Proxy,
    WebSocket,
}

const ROADS: [Road; 3] = [Road::Direct, Road::Proxy, Road::WebSocket];

impl Road {
    /// The mode of client-go's driver, and the URL it is given.
    fn exec(self, kubernetes: &Kubernetes, url: &str, tty: bool) -> (&'static str, String) {
        let translator = if tty { "/ws/exec?tty=1" } else { "/ws/exec" };
        match self {
            Self::Direct => ("exec", url.to_owned()),
            Self::Proxy => ("exec", kubernetes.front("/proxy", url)),
            Self::WebSocket => ("wsexec", kubernetes.front(translator, url)),
        }
    }

    fn port_forward(self, kubernetes: &Kubernetes, url: &str) -> (&'static str, String) {
        match self {
            Self::Direct => ("portforward", url.to_owned()),
            Self::Proxy => ("portforward", kubernetes.front("/proxy", url)),
            Self::WebSocket => ("wsportforward", kubernetes.front("/ws/portforward", url)),
        }
    }
}

async fn nothing_runs(server: &StreamingServer<Toy>) {
    let running = &server.handler().running;
    until("every call has ended", || {
        running.load(Ordering::SeqCst) == 0
    })
    .await;
}

fn any_port() -> PortForwardRequest {
    PortForwardRequest {
        sandbox: "p1".to_owned(),
        ports: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_gets_back_a_megabyte_of_stdin() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    for road in ROADS {
        for joins in [false, true] {
            let url = match joins {
                false => server.exec_url(exec(&["cat"], PIPES)),
                true => server.attach_url(attach()),
            };
            let (mode, url) = road.exec(&kubernetes, &url.expect("a url"), false);
            let length = MEGABYTE.to_string();
            let got = client_go(&["-mode", mode, "-url", &url, "-stdin", &length]).await;
            assert_eq!(got["error"], Value::Null, "{road:?}: {got}");
            let digest = sha256(&pattern(MEGABYTE, 0));
            assert_eq!(
                got["stdout"]["sha256"], digest,
                "{road:?}: {}",
                got["stdout"]["bytes"]
            );
            assert_eq!(got["stderr"]["bytes"], 0);
        }
    }
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_hears_the_exit_code_stderr_and_what_failed() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    for road in ROADS {
        let url = server.exec_url(exec(&["fail", "7"], PIPES)).expect("a url");
        let (mode, url) = road.exec(&kubernetes, &url, false);
        let got = client_go(&["-mode", mode, "-url", &url]).await;
        assert_eq!(got["code"], 7, "{road:?}: {got}");
        assert_eq!(
            got["stderr"]["text"], "failing as asked\n",
            "{road:?}: {got}"
        );
        let url = server.exec_url(exec(&["dance"], PIPES)).expect("a url");
        let (mode, url) = road.exec(&kubernetes, &url, false);
        let got = client_go(&["-mode", mode, "-url", &url]).await;
        let error = got["error"].as_str().unwrap_or_default();
        assert!(error.contains("no command \"dance\""), "{road:?}: {got}");
    }
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_gets_output_that_is_larger_than_every_buffer() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    for road in ROADS {
        let length = 5 * MEGABYTE;
        let command = ["bytes", &length.to_string()];
        let url = server.exec_url(exec(&command, PIPES)).expect("a url");
        let (mode, url) = road.exec(&kubernetes, &url, false);
        let got = client_go(&["-mode", mode, "-url", &url]).await;
        assert_eq!(got["error"], Value::Null, "{road:?}: {got}");
        assert_eq!(
            got["stdout"]["sha256"],
            sha256(&pattern(length, 0)),
            "{road:?}: {} bytes, {}",
            got["stdout"]["bytes"],
            got["noise"]
        );
    }
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_tells_the_sizes_of_its_terminal() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    for road in ROADS {
        let url = server
            .exec_url(exec(&["size", "2"], TERMINAL))
            .expect("a url");
        let (mode, url) = road.exec(&kubernetes, &url, true);
        let got = client_go(&["-mode", mode, "-url", &url, "-tty"]).await;
        assert_eq!(got["error"], Value::Null, "{road:?}: {got}");
        assert_eq!(got["stdout"]["text"], "80x24\n132x43\n", "{road:?}: {got}");
    }
    nothing_runs(&server).await;
}

/// Three megabytes through a forwarded port, by client-go.
async fn three_megabytes(mode: &str, url: &str) {
    let port = echo_port().await.to_string();
    let got = client_go(&["-mode", mode, "-url", url, "-remote", &port]).await;
    assert_eq!(got["error"], Value::Null, "{mode} {got}");
    let connections = got["connections"].as_array().expect("connections");
    assert_eq!(connections.len(), 3);
    for (seed, connection) in connections.iter().enumerate() {
        let digest = sha256(&pattern(MEGABYTE, seed));
        assert_eq!(connection["sha256"], digest, "{mode} {got}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_forwards_three_megabytes_at_once() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    for road in ROADS {
        let url = server.port_forward_url(any_port()).expect("a url");
        let (mode, url) = road.port_forward(&kubernetes, &url);
        three_megabytes(mode, &url).await;
    }
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_tunnels_spdy_through_our_websocket() {
    let server = listening(Config::default()).await;
    let url = server.port_forward_url(any_port()).expect("a url");
    three_megabytes("wsportforward", &url).await;
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_says_what_our_error_stream_says_of_a_dead_port() {
    let kubernetes = Kubernetes::start();
    let server = listening(Config::default()).await;
    let port = dead_port().await;
    for road in ROADS {
        let url = server.port_forward_url(any_port()).expect("a url");
        let (mode, url) = road.port_forward(&kubernetes, &url);
        let remote = port.to_string();
        let arguments = [
            "-mode",
            mode,
            "-url",
            &url,
            "-remote",
            &remote,
            "-connections",
            "1",
        ];
        let got = client_go(&arguments).await;
        let all = got.to_string();
        let why = format!("error forwarding port {port} to pod p1: Connection refused");
        assert!(all.contains(&why), "{road:?}: {all}");
    }
    nothing_runs(&server).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_go_is_told_that_a_token_was_used() {
    let server = listening(Config::default()).await;
    let url = server.exec_url(exec(&["both"], PIPES)).expect("a url");
    let first = client_go(&["-mode", "exec", "-url", &url]).await;
    assert_eq!(first["stdout"]["bytes"], 60, "{first}");
    let second = client_go(&["-mode", "exec", "-url", &url]).await;
    let error = second["error"].as_str().unwrap_or_default();
    assert!(error.contains("unknown, used or expired token"), "{second}");
}

/// A connection to whoever `url` names.
async fn dial(url: &str) -> TcpStream {
    let address = url["http://".len()..].split('/').next().expect("a host");
    let socket = TcpStream::connect(address).await.expect("a connection");
    socket.set_nodelay(true).expect("a socket");
    socket
}

/// Our client, at the kubelet's URL or through the proxy.
async fn run(
    kubernetes: &Kubernetes,
    what: &str,
    wanted: Wanted,
    proxied: bool,
    options: Options,
) -> Result<Process, ClientError> {
    let mut url = kubernetes.new_url(what).await;
    if proxied {
        url = kubernetes.front("/proxy", &url);
    }
    client::exec(dial(&url).await, &post(&url), wanted, options, runtime()).await
}

async fn text(input: Option<spdy_cri::Input>) -> String {
    let mut text = String::new();
    let mut input = input.expect("asked for");
    input.read_to_string(&mut text).await.expect("an end");
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_gets_a_megabyte_back_from_the_kubelet() {
    let kubernetes = Kubernetes::start();
    for (what, proxied) in [
        ("exec?cmd=cat", false),
        ("exec?cmd=cat", true),
        ("attach", false),
        ("attach", true),
    ] {
        let mut process = run(&kubernetes, what, PIPES, proxied, Options::default())
            .await
            .expect("a process");
        assert_eq!(process.version(), RemoteCommand::V4);
        let mut stdin = process.stdin.take().expect("asked for");
        let feed = tokio::spawn(async move {
            stdin
                .write_all(&pattern(MEGABYTE, 0))
                .await
                .expect("written");
            stdin.shutdown().await.expect("an end");
            stdin
        });
        let mut got = Vec::new();
        let mut stdout = process.stdout.take().expect("asked for");
        stdout.read_to_end(&mut got).await.expect("an end");
        assert_eq!(
            sha256(&got),
            sha256(&pattern(MEGABYTE, 0)),
            "{what}: {} bytes",
            got.len()
        );
        assert_eq!(text(process.stderr.take()).await, "");
        assert!(process.wait().await.expect("a status").is_success());
        drop(feed.await.expect("no panic"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_hears_the_kubelets_exit_code_in_every_version_that_tells_it() {
    let kubernetes = Kubernetes::start();
    for version in [RemoteCommand::V4, RemoteCommand::V3, RemoteCommand::V2] {
        for proxied in [false, true] {
            let options = Options {
                remote_command: vec![version],
                ..Options::default()
            };
            let what = "exec?cmd=fail&cmd=7";
            let mut process = run(&kubernetes, what, PIPES, proxied, options)
                .await
                .expect("a process");
            assert_eq!(process.version(), version);
            assert_eq!(text(process.stderr.take()).await, "failing as asked\n");
            match process.wait().await {
                Ok(code) => assert!(code == ExitCode(7) && version == RemoteCommand::V4),
                Err(ClientError::Remote { message }) => {
                    assert!(
                        version < RemoteCommand::V4 && message.contains('7'),
                        "{message}"
                    );
                }
                other => panic!("{version:?}: {other:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_tells_the_kubelet_the_sizes_of_its_terminal() {
    let kubernetes = Kubernetes::start();
    for proxied in [false, true] {
        let what = "exec?cmd=size&tty=1";
        let mut process = run(&kubernetes, what, TERMINAL, proxied, Options::default())
            .await
            .expect("a process");
        let mut resizer = process.resize.take().expect("a terminal");
        for (width, height) in [(80, 24), (132, 43)] {
            let size = TerminalSize { width, height };
            resizer.resize(size).await.expect("sent");
        }
        assert_eq!(text(process.stdout.take()).await, "80x24\n132x43\n");
        assert!(process.wait().await.expect("a status").is_success());
    }
}

/// Our port-forward to the kubelet: straight, through the proxy, or inside WebSocket.
async fn forward(kubernetes: &Kubernetes, road: Road) -> PortForward {
    let url = kubernetes.new_url("portforward").await;
    let options = Options::default();
    if road == Road::WebSocket {
        let url = kubernetes.front("/ws/portforward", &url);
        let get = Request::get(&url).body(()).expect("a request");
        let io = dial(&url).await;
        return client::port_forward_in_websocket(io, &get, options, runtime())
            .await
            .expect("a tunnel");
    }
    let url = match road {
        Road::Proxy => kubernetes.front("/proxy", &url),
        _ => url,
    };
    client::port_forward(dial(&url).await, &post(&url), options, runtime())
        .await
        .expect("a way")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_forwards_three_megabytes_at_once() {
    let kubernetes = Kubernetes::start();
    let port = echo_port().await;
    for road in ROADS {
        let forward = forward(&kubernetes, road).await;
        let echo = |seed| {
            let forward = &forward;
            async move {
                let mut forwarded = forward.connect(port).await.expect("a connection");
                let sent = pattern(MEGABYTE, seed);
                let mut got = Vec::new();
                let (mut from, mut to) = tokio::io::split(&mut forwarded.data);
                let write = async {
                    to.write_all(&sent).await.expect("written");
                    to.shutdown().await.expect("an end");
                };
                let ((), read) = tokio::join!(write, from.read_to_end(&mut got));
                read.expect("an end");
                assert_eq!(sha256(&got), sha256(&sent), "{road:?}: {} bytes", got.len());
                forwarded.wait().await.expect("no complaint");
            }
        };
        tokio::join!(echo(0), echo(1), echo(2));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_client_hears_from_the_kubelet_that_a_port_is_dead() {
    let kubernetes = Kubernetes::start();
    let port = dead_port().await;
    for road in ROADS {
        let forward = forward(&kubernetes, road).await;
        let error = match forward.connect(port).await {
            Ok(forwarded) => forwarded.wait().await.expect_err("nobody listens"),
            Err(error) => error,
        };
        assert!(
            error.to_string().contains("connection refused"),
            "{road:?}: {error}"
        );
    }
}
