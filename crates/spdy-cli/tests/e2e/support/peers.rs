//! Independent implementations, by the drivers in `interop/`.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

use super::certificate::CERTIFICATE;
use super::files::FILES;
use super::program::{From, Running};

/// An implementation of SPDY that is not ours.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Peer {
    /// npm `spdy` and `spdy-transport`.
    Node,
    /// Netty 4.1.
    Netty,
}

/// What a driver's client prints.
#[derive(Debug, Deserialize)]
pub(crate) struct Fetched {
    pub(crate) protocol: Option<String>,
    pub(crate) responses: Vec<Response>,
    pub(crate) errors: Vec<String>,
}

/// One of its responses.
#[derive(Debug, Deserialize)]
pub(crate) struct Response {
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) bytes: usize,
    pub(crate) sha256: Option<String>,
    pub(crate) error: Option<String>,
}

#[derive(Deserialize)]
struct Listening {
    port: u16,
}

/// Whether tests with peers are wanted. They are, unless SPDY_SKIP_PEERS says otherwise.
pub(crate) fn wanted() -> bool {
    std::env::var_os("SPDY_SKIP_PEERS").is_none_or(|value| value.is_empty())
}

/// Fails with the command that installs `what`, unless `there`.
pub(crate) fn require(what: &str, there: bool) {
    assert!(
        there,
        "{what} is missing; install the peers with `scripts/setup-peers`, or skip them with SPDY_SKIP_PEERS=1"
    );
}

/// Whether there is a program called `name`.
pub(crate) fn is_installed(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
}

impl Peer {
    /// Starts its server over the [`FILES`]; gives the origin of its URLs.
    pub(crate) fn serve(self, secure: bool) -> (Running, String) {
        let mut command = self.driver(Role::Server);
        command
            .arg("--root")
            .arg(&FILES.folder)
            .args(["--port", "0"]);
        if secure {
            command
                .arg("--cert")
                .arg(&CERTIFICATE.chain)
                .arg("--key")
                .arg(&CERTIFICATE.key);
        }
        let (running, port) = Running::start(command, From::Stdout, |line| {
            serde_json::from_str::<Listening>(line)
                .ok()
                .map(|listening| listening.port)
        });
        (
            running,
            format!("http{}://127.0.0.1:{port}", if secure { "s" } else { "" }),
        )
    }

    /// Fetches `urls` by its client, all at once over one session.
    pub(crate) fn fetch(self, urls: &[String]) -> Fetched {
        let mut command = self.driver(Role::Client);
        let output = command
            .args(urls)
            .output()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let said = String::from_utf8_lossy(&output.stdout);
        let last = said.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| {
            panic!(
                "{self:?} said {said:?}, {error}\nstderr: {}",
                String::from_utf8_lossy(&output.stderr)
            )
        })
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
                // Its deprecated ways are not our business.
                command.arg("--no-deprecation").arg(folder.join(match role {
                    Role::Server => "server.js",
                    Role::Client => "client.js",
                }));
                command
            }
            Self::Netty => {
                let target = interop.join("netty/target");
                let classpath = std::fs::read_to_string(target.join("classpath.txt"));
                require("Netty", classpath.is_ok() && is_installed("java"));
                let classes: PathBuf = target.join("classes");
                let mut command = Command::new("java");
                command.arg("-cp").arg(format!(
                    "{}:{}",
                    classes.display(),
                    classpath.unwrap_or_default().trim()
                ));
                command.arg(match role {
                    Role::Server => "spdy.interop.Server",
                    Role::Client => "spdy.interop.Client",
                });
                command
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Role {
    Server,
    Client,
}
