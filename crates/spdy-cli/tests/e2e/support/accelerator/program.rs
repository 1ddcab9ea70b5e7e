//! `spdy accelerate` on free ports of loopback, and the result of `--check`.

use std::ffi::OsStr;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::clients::raw_client::PendingResponse;
use crate::support::program::{ReadyOn, RunningProgram, address_after, output, spdy};

/// File name of the configuration.
const FILE: &str = "site.toml";

/// A running accelerator. It stops when dropped.
pub(crate) struct Accelerator {
    process: RunningProgram,
    /// Address of each listener, and whether it uses TLS.
    listeners: Vec<(SocketAddr, bool)>,
    folder: tempfile::TempDir,
}

impl Accelerator {
    /// Starts it with `config`, whose listeners have port 0.
    pub(crate) fn start(config: &str) -> Self {
        Self::start_under(&[], config)
    }

    /// Starts it through `wrapper`, which gets the command line as its last arguments and executes it.
    pub(crate) fn start_under(wrapper: &[&OsStr], config: &str) -> Self {
        Self::start_with(wrapper, Stdio::null(), config)
    }

    /// Starts it with `socket` passed by systemd's protocol. At shutdown it waits for exchanges as long as a test does.
    pub(crate) fn start_on(socket: &TcpListener, config: &str) -> Self {
        let socket = socket.try_clone().expect("duplicate a descriptor");
        let script = "exec 3<&0 0</dev/null; SPDY_ACCELERATE__LIMITS__DRAIN_TIMEOUT_S=60 \
                      LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\"";
        let wrapper = ["sh", "-c", script, "sh"].map(OsStr::new);
        Self::start_with(&wrapper, OwnedFd::from(socket).into(), config)
    }

    /// Starts it with `config`. It prints its listeners as JSON, and then each response: see [`json_line`](Self::json_line).
    pub(crate) fn start_json(config: &str) -> Self {
        let folder = folder_of(config);
        let mut command = spdy(&["accelerate", "--json", "--verbose", "--quiet"]);
        command.arg(folder.path().join(FILE));
        let (process, listeners) = RunningProgram::start(command, ReadyOn::Stdout, |line| {
            let ready: Value = serde_json::from_str(line).ok()?;
            let listening = ready["listening"].as_array()?.iter();
            let listener =
                |entry: &Value| Some((address_in(&entry["address"])?, entry["tls"].as_bool()?));
            listening.map(listener).collect()
        });
        Self {
            process,
            listeners,
            folder,
        }
    }

    /// The JSON object on line `number`, once it is printed; line 0 has the listeners.
    pub(crate) fn json_line(&self, number: usize) -> Value {
        let line = self.process.line(number);
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn start_with(wrapper: &[&OsStr], stdin: Stdio, config: &str) -> Self {
        let folder = folder_of(config);
        let program = spdy(&["accelerate"]);
        let mut command = match wrapper {
            [] => program,
            [first, rest @ ..] => {
                let mut wrapped = Command::new(first);
                wrapped.args(rest).arg(program.get_program());
                wrapped.args(program.get_args()).env_remove("SPDY_LOG");
                wrapped
            }
        };
        command
            .arg(folder.path().join(FILE))
            .arg("--write-ca")
            .arg(folder.path().join("ca.pem"));
        let mut listeners = Vec::new();
        let (process, listeners) =
            RunningProgram::start_with_stdin(command, stdin, ReadyOn::Stderr, |line| {
                let plain = address_after(line, "http://").map(|address| (address, false));
                let tls = address_after(line, "https://").map(|address| (address, true));
                listeners.extend(plain.or(tls));
                line.starts_with("accelerating")
                    .then(|| std::mem::take(&mut listeners))
            });
        Self {
            process,
            listeners,
            folder,
        }
    }

    /// The first line that contains `words`, once it is printed.
    pub(crate) fn line_with(&self, words: &str) -> String {
        self.process.line_with(words)
    }

    /// The lines that it has printed so far.
    pub(crate) fn log_lines(&self) -> Vec<String> {
        self.process.lines()
    }

    /// Number of lines that contain `words` so far.
    pub(crate) fn count_lines_with(&self, words: &str) -> usize {
        let lines = self.log_lines();
        lines.iter().filter(|line| line.contains(words)).count()
    }

    /// The metrics from the admin listener.
    pub(crate) fn metrics(&self) -> String {
        let head = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        PendingResponse::begin(self.admin(), head)
            .end(usize::MAX)
            .text()
    }

    /// The value of the metric with this name and labels; `None` if it is missing.
    pub(crate) fn metric(&self, name: &str) -> Option<u64> {
        let metrics = self.metrics();
        let line = metrics.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    }

    /// The address of the admin listener.
    pub(crate) fn admin(&self) -> SocketAddr {
        let line = self.line_with("admin listener on");
        address_after(&line, "http://").expect("valid address")
    }

    /// Replaces the configuration file, without a reload.
    pub(crate) fn write(&self, config: &str) {
        std::fs::write(self.folder.path().join(FILE), config).expect("write the file");
    }

    /// Whether the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.has_ended()
    }

    /// Waits until the process has ended successfully.
    pub(crate) fn wait_for_exit(mut self) {
        self.process.wait_for_exit();
    }

    /// Replaces the configuration file, and reloads it.
    pub(crate) fn reload(&self, config: &str) {
        self.write(config);
        self.reload_unchanged();
    }

    /// Reloads the unchanged configuration (SIGHUP).
    pub(crate) fn reload_unchanged(&self) {
        let id = self.id().to_string();
        let status = Command::new("kill").args(["-HUP", &id]).status();
        assert!(status.expect("run `kill`").success());
    }

    /// Stops it (SIGTERM) and waits until it has ended successfully.
    pub(crate) fn end(mut self) {
        let id = self.id().to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status();
        assert!(status.expect("run `kill`").success());
        self.process.wait_for_exit();
    }

    /// The process ID.
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    /// The first listener without TLS.
    pub(crate) fn plain(&self) -> SocketAddr {
        self.listener(false)
    }

    /// The first listener for TLS.
    pub(crate) fn tls(&self) -> SocketAddr {
        self.listener(true)
    }

    fn listener(&self, tls: bool) -> SocketAddr {
        let listener = self.listeners.iter().find(|(_, secure)| *secure == tls);
        listener.expect("a listener of that kind").0
    }

    /// The CA of its certificate, PEM.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }
}

fn address_in(value: &Value) -> Option<SocketAddr> {
    value.as_str()?.parse().ok()
}

fn folder_of(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("create a folder");
    std::fs::write(folder.path().join(FILE), config).expect("write the file");
    folder
}

/// The exit code and stderr of `--check` for `config`.
pub(crate) fn check(config: &str) -> (i32, String) {
    check_with(&mut spdy(&["accelerate", "--check"]), config)
}

/// Like [`check`], but by `command`, which may have more options or environment variables.
pub(crate) fn check_with(command: &mut Command, config: &str) -> (i32, String) {
    let folder = folder_of(config);
    let output = output(command.arg(folder.path().join(FILE)));
    let stderr = String::from_utf8(output.stderr).expect("text is UTF-8");
    (output.status.code().expect("the program ends"), stderr)
}
