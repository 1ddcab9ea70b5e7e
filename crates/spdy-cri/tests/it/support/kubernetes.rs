//! The drivers of `interop/kubernetes`, which `scripts/setup-peers` builds, and the roads that they make.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const MEGABYTE: usize = 1_000_000;

/// A driver of `interop/kubernetes`.
pub(crate) fn driver(name: &str) -> PathBuf {
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
pub(crate) async fn client_go(arguments: &[&str]) -> Value {
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
    report["noise"] = noise.into(); // if it reports one connection of many
    report
}

/// The kubelet's server, and the API server's proxies.
pub(crate) struct Kubernetes {
    process: Child,
    pub(crate) front: u16,
    /// Closed, it ends.
    _stdin: ChildStdin,
}

impl Kubernetes {
    pub(crate) fn start() -> Self {
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
    pub(crate) fn front(&self, path: &str, to: &str) -> String {
        let tty = if path.contains('?') { '&' } else { '?' };
        format!("http://127.0.0.1:{}{path}{tty}to={to}", self.front)
    }

    /// A one-time URL of the kubelet's server.
    pub(crate) async fn new_url(&self, what: &str) -> String {
        let mut socket = TcpStream::connect(("127.0.0.1", self.front))
            .await
            .expect("a front");
        let request = format!("GET /new/{what} HTTP/1.0\r\nHost: front\r\n\r\n");
        socket.write_all(request.as_bytes()).await.expect("written");
        let mut response = String::new();
        socket
            .read_to_string(&mut response)
            .await
            .expect("a response");
        let (head, url) = response.split_once("\r\n\r\n").expect("a head");
        assert!(head.contains(" 200 "), "{response}");
        url.to_owned()
    }
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How a client reaches a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Route {
    Direct,
    Proxy,
    Translated,
    WebSocket,
    WebSocketByProxy,
}

pub(crate) const ROUTES: [Route; 5] = [
    Route::Direct,
    Route::Proxy,
    Route::Translated,
    Route::WebSocket,
    Route::WebSocketByProxy,
];

impl Route {
    /// The URL that leads to `url` by this route.
    pub(crate) fn lead(self, kubernetes: &Kubernetes, translator: &str, url: &str) -> String {
        match self {
            Self::Direct | Self::WebSocket => url.to_owned(),
            Self::Proxy | Self::WebSocketByProxy => kubernetes.front("/proxy", url),
            Self::Translated => kubernetes.front(translator, url),
        }
    }

    pub(crate) fn exec(self, kubernetes: &Kubernetes, url: &str, tty: bool) -> String {
        let translator = if tty { "/ws/exec?tty=1" } else { "/ws/exec" };
        self.lead(kubernetes, translator, url)
    }

    pub(crate) fn port_forward(self, kubernetes: &Kubernetes, url: &str) -> String {
        self.lead(kubernetes, "/ws/portforward", url)
    }

    /// Whether it begins with WebSocket.
    pub(crate) fn is_websocket(self) -> bool {
        !matches!(self, Self::Direct | Self::Proxy)
    }

    /// The mode of client-go's driver.
    pub(crate) fn mode(self, spdy: &'static str, websocket: &'static str) -> &'static str {
        match self.is_websocket() {
            true => websocket,
            false => spdy,
        }
    }
}
