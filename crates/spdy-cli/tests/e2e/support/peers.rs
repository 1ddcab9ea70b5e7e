//! Independent implementations, run by the drivers in `interop/`.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use spdy::server::PushForm;

use crate::support::certificate::CERTIFICATE;
use crate::support::files::FILES;
use crate::support::program::{ReadyOn, RunningProgram, output};

/// An independent implementation of SPDY.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Peer {
    /// npm `spdy` and `spdy-transport`.
    Node,
    /// Netty 4.1.
    Netty,
    /// moby/spdystream 0.5.
    Moby,
    /// OkHttp 2.7, with a server that uses its `FramedConnection`.
    OkHttp,
    /// OkHttp's server for tests.
    MockWebServer,
    /// Jetty 9.2.
    Jetty,
    /// Undertow 1.3.
    Undertow,
}

/// The JSON that a driver's client prints.
#[derive(Debug, Deserialize)]
pub(crate) struct PeerFetch {
    pub(crate) protocol: Option<String>,
    pub(crate) responses: Vec<Response>,
    pub(crate) pushed: Vec<Response>,
    pub(crate) errors: Vec<String>,
}

/// One response in it.
#[derive(Debug, Deserialize)]
pub(crate) struct Response {
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) bytes: usize,
    pub(crate) sha256: Option<String>,
    pub(crate) error: Option<String>,
}

#[derive(Deserialize)]
struct PortMessage {
    port: u16,
}

/// True unless SPDY_SKIP_PEERS is set.
pub(crate) fn peers_enabled() -> bool {
    std::env::var_os("SPDY_SKIP_PEERS").is_none_or(|value| value.is_empty())
}

/// Fails with the command that installs `what`, unless `is_present`.
pub(crate) fn require(what: &str, is_present: bool) {
    assert!(
        is_present,
        "{what} is missing; install the peers with `scripts/setup-peers`, or skip them with SPDY_SKIP_PEERS=1"
    );
}

/// Whether there is a program called `name` in PATH.
pub(crate) fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

impl Peer {
    /// Starts its server for the [`FILES`]; returns the origin of its URLs.
    pub(crate) fn serve(self, protocol: &str, secure: bool) -> (RunningProgram, String) {
        let mut command = self.driver(Role::Server);
        command
            .arg("--root")
            .arg(&FILES.folder)
            .args(["--port", "0"])
            .args(self.kind_options(protocol));
        if secure {
            command
                .arg("--cert")
                .arg(&CERTIFICATE.chain)
                .arg("--key")
                .arg(&CERTIFICATE.key);
        }
        let (process, port) = RunningProgram::start(command, ReadyOn::Stdout, |line| {
            serde_json::from_str::<PortMessage>(line)
                .ok()
                .map(|listening| listening.port)
        });
        (
            process,
            format!("http{}://127.0.0.1:{port}", if secure { "s" } else { "" }),
        )
    }

    /// Fetches `urls` with its client, all at once over one session. The timeout is 20 s, unless `options` set another.
    pub(crate) fn fetch(self, protocol: &str, urls: &[String], options: &[String]) -> PeerFetch {
        let mut command = self.driver(Role::Client);
        command
            .args(self.kind_options(protocol))
            .args(["--seconds", "20"])
            .args(options)
            .args(urls);
        let output = output(&mut command);
        let stdout = String::from_utf8_lossy(&output.stdout);
        let last = stdout.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| {
            panic!(
                "{self:?} printed {stdout:?}, {error}\nstderr: {}",
                String::from_utf8_lossy(&output.stderr)
            )
        })
    }

    /// Options that select one of several protocols or roles of a driver.
    fn kind_options(self, protocol: &str) -> Vec<&str> {
        match self {
            Self::Node | Self::Jetty => vec!["--protocol", protocol],
            Self::MockWebServer => vec!["--mock", "yes"],
            Self::Netty | Self::Moby | Self::OkHttp | Self::Undertow => Vec::new(),
        }
    }

    /// Whether it implements flow control.
    pub(crate) fn has_flow_control(self) -> bool {
        self != Self::Moby
    }

    /// The form of pushes that its client accepts.
    pub(crate) fn push_form(self) -> PushForm {
        match self {
            Self::Node => PushForm::OneBlock,
            Self::Netty => PushForm::VersionTwice,
            Self::Moby | Self::OkHttp | Self::MockWebServer | Self::Jetty | Self::Undertow => {
                PushForm::TwoBlocks
            }
        }
    }

    /// Options with which its client waits for `pushes` pushes; other clients need none.
    pub(crate) fn wait_for_pushes_options(self, pushes: usize) -> Vec<String> {
        match self {
            Self::Moby => vec!["--pushes".to_owned(), pushes.to_string()],
            _ => Vec::new(),
        }
    }

    /// Options that shorten the wait of its client for pushes that never end.
    pub(crate) fn unusable_push_options(self) -> &'static [&'static str] {
        match self {
            Self::Netty => &["--push-seconds", "1"],
            _ => &[],
        }
    }

    /// Options that `spdy serve` needs for its client.
    pub(crate) fn serve_options(self) -> &'static [&'static str] {
        match self {
            Self::Moby => &["--no-flow-control"],
            _ => &[],
        }
    }

    /// Options that `spdy fetch` needs for its server.
    pub(crate) fn fetch_options(self) -> &'static [&'static str] {
        match self {
            Self::Moby => &["--no-flow-control"],
            _ => &[],
        }
    }

    /// The status that its client reports: spdystream does not expose the headers of SYN_REPLY.
    pub(crate) fn seen_status(self, status: u16) -> u16 {
        if self == Self::Moby { 0 } else { status }
    }

    fn driver(self, role: Role) -> Command {
        let interop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop");
        match self {
            Self::Node => {
                let folder = interop.join("node-spdy");
                require(
                    "node-spdy",
                    folder.join("node_modules/spdy").is_dir() && is_installed("node"),
                );
                let mut command = Command::new("node");
                // It uses deprecated APIs of Node.js; the warnings are of no interest here.
                command.arg("--no-deprecation").arg(folder.join(match role {
                    Role::Server => "server.js",
                    Role::Client => "client.js",
                }));
                command
            }
            Self::Moby => {
                let program = interop.join("moby/target").join(match role {
                    Role::Server => "server",
                    Role::Client => "client",
                });
                require("spdystream", program.is_file());
                Command::new(program)
            }
            Self::Netty => java(&interop.join("netty/target"), "spdy.interop", role),
            Self::OkHttp | Self::MockWebServer => {
                java(&interop.join("jvm/target"), "spdy.interop.okhttp", role)
            }
            Self::Jetty => java(&interop.join("jvm/target"), "spdy.interop.jetty", role),
            Self::Undertow => java(&interop.join("jvm/target"), "spdy.interop.undertow", role),
        }
    }
}

/// The driver in `package`, built by Maven in `target`.
fn java(target: &Path, package: &str, role: Role) -> Command {
    let classpath = std::fs::read_to_string(target.join("classpath.txt"));
    require(package, classpath.is_ok() && is_installed("java"));
    let classes = target.join("classes");
    let classpath = classpath.unwrap_or_default();
    let mut command = Command::new("java");
    // Many short-lived JVMs start at once on few cores: they use the faster compiler and the smaller garbage collector.
    command.args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"]);
    command.arg(format!("{}:{}", classes.display(), classpath.trim()));
    let main = match role {
        Role::Server => "Server",
        Role::Client => "Client",
    };
    command.arg(format!("{package}.{main}"));
    command
}

#[derive(Clone, Copy)]
enum Role {
    Server,
    Client,
}
