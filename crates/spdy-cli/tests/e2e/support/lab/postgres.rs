//! A new PostgreSQL server for one test, reached over a socket in its folder and over TLS, removed after the test.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

use crate::support::certificate::CERTIFICATE;
use crate::support::peers::{is_installed, require};
use crate::support::program::run_expecting;

/// The user of the server if root runs the test, because the server refuses to run as root: Debian's `nobody` and `nogroup`.
const NOBODY_UID: u32 = 65_534;

/// The password of the only user, `lab`.
pub(crate) const PASSWORD: &str = "open sesame";

/// A server that runs until it is dropped.
pub(crate) struct PostgresServer {
    folder: tempfile::TempDir,
    child: Child,
    port: u16,
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // SIGKILL would leave its shared memory behind.
        let _ = Command::new("kill")
            .args(["-INT", &self.child.id().to_string()])
            .status();
        let _ = self.child.wait();
    }
}

/// An open transaction. It is rolled back when dropped.
pub(crate) struct OpenTransaction {
    child: Child,
    _stdin: ChildStdin,
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The newest folder of server programs on Debian.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let folders = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
    let newest = folders.filter(|bin| bin.join("initdb").is_file()).max();
    require("PostgreSQL", newest.is_some() || is_installed("initdb"));
    newest.unwrap_or_default()
}

/// `program`, as a user that may run a server.
fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    #[cfg(unix)]
    if nix::unistd::geteuid().is_root() {
        use std::os::unix::process::CommandExt;
        command.uid(NOBODY_UID).gid(NOBODY_UID);
    }
    command.stdin(Stdio::null()).env("LC_ALL", "C.UTF-8");
    command
}

impl PostgresServer {
    /// Starts a server and waits until it accepts connections.
    pub(crate) fn start() -> Self {
        let bin = programs();
        let folder = tempfile::tempdir().expect("create a folder");
        let path = |name: &str| folder.path().join(name);
        for (name, text) in [
            ("password", PASSWORD.to_owned()),
            ("certificate.pem", read(&CERTIFICATE.chain)),
            ("key.pem", read(&CERTIFICATE.key)),
        ] {
            fs::write(path(name), text).expect("write the file");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::{PermissionsExt, chown};
            fs::set_permissions(path("key.pem"), fs::Permissions::from_mode(0o600))
                .expect("set the permissions");
            if nix::unistd::geteuid().is_root() {
                for owned in [folder.path().to_owned(), path("password"), path("key.pem")] {
                    chown(owned, Some(NOBODY_UID), Some(NOBODY_UID))
                        .expect("root can change the owner");
                }
            }
        }
        let mut init = unprivileged(&bin.join("initdb"));
        init.args(["--no-sync", "--username=lab", "--auth=scram-sha-256"])
            .args(["--encoding=UTF8", "--locale=C.UTF-8"])
            .arg("--pwfile")
            .arg(path("password"))
            .arg("--pgdata")
            .arg(path("data"));
        run_expecting(0, &mut init);
        // Another process may take the free port before the server listens on it.
        let started = (0..5).find_map(|_| run(&bin, folder.path()));
        let (child, port) = started.expect("a server starts on one of five free ports");
        Self {
            folder,
            child,
            port,
        }
    }

    /// The URL of `database` over its Unix socket, without the password.
    pub(crate) fn url(&self, database: &str) -> String {
        let (socket, port) = (self.folder.path().display(), self.port);
        format!("postgres://lab@/{database}?host={socket}&port={port}")
    }

    /// The URL of `database` over TCP, with `user` and `password`.
    pub(crate) fn tcp_url(&self, database: &str, user: &str, password: &str) -> String {
        let password = password.replace(' ', "%20");
        format!(
            "postgres://{user}:{password}@localhost:{}/{database}",
            self.port
        )
    }

    fn psql(&self, database: &str) -> Command {
        let mut psql = Command::new(programs().join("psql"));
        psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet"])
            .args(["--set", "ON_ERROR_STOP=1", "--dbname"])
            .arg(self.url(database))
            .env("PGPASSWORD", PASSWORD);
        psql
    }

    /// The output of `psql` for `sql`, one row per line.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let mut psql = self.psql(database);
        let output = run_expecting(0, psql.args(["--command", sql]));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs `sql` in a transaction that stays open until the result is dropped.
    pub(crate) fn hold(&self, database: &str, sql: &str) -> OpenTransaction {
        let mut psql = self.psql(database);
        let psql = psql.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = psql.spawn().expect("start psql");
        let mut stdin = child.stdin.take().expect("a pipe");
        writeln!(stdin, "BEGIN; {sql};\n\\echo held").expect("write");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("text");
        assert_eq!(line, "held\n", "{sql}");
        OpenTransaction {
            child,
            _stdin: stdin,
        }
    }

    /// Creates a database; returns its URL.
    pub(crate) fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        self.url(name)
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).expect("read the file")
}

/// Runs the server in `folder` on a free port; `None` if another process took that port.
fn run(bin: &Path, folder: &Path) -> Option<(Child, u16)> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
    let port = listener.local_addr().expect("a bound socket").port();
    drop(listener);
    let mut server = unprivileged(&bin.join("postgres"));
    server.arg("-D").arg(folder.join("data"));
    for setting in [
        format!("port={port}"),
        "listen_addresses=127.0.0.1".to_owned(),
        format!("unix_socket_directories={}", folder.display()),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", folder.join("certificate.pem").display()),
        format!("ssl_key_file={}", folder.join("key.pem").display()),
        "fsync=off".to_owned(), // a test needs no durability
        "logging_collector=off".to_owned(),
    ] {
        server.arg("-c").arg(setting);
    }
    server.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = server.spawn().expect("start the server");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let mut output = Vec::new();
    for line in lines.by_ref().map_while(Result::ok) {
        if line.contains("ready to accept connections") {
            // Reads to the end: a full pipe would stop the server.
            thread::spawn(move || lines.for_each(drop));
            return Some((child, port));
        }
        output.push(line);
    }
    let _ = child.wait();
    let is_port_taken = output
        .iter()
        .any(|line| line.contains("Address already in use"));
    assert!(
        is_port_taken,
        "the server does not start; its output: {output:#?}"
    );
    None
}
