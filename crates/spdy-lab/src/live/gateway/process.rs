//! Another server as a child process in the namespace of the servers' host. It ends with its [`Gateway`].

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use spdy_sim::load::{CHAIN_PEM, KEY_PEM, Page};
use spdy_sim::options::RaceProtocol;
use spdy_tun::cpu::ChildCpuTimes;
use spdy_tun::host::Host;
use tempfile::TempDir;

use crate::experiment::server_program::ServerProgram;
use crate::live::gateway::error::GatewayError;
use crate::live::gateway::nginx;
use crate::live::gateway::programs::{self, Program};

/// Maximum time until it listens: a Java program on a busy machine needs seconds.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// Time between two checks whether it listens.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);
/// The first port that our site may use.
const FIRST_UPSTREAM_PORT: u16 = 10_000;

/// What a server must speak where; one process serves all pages with the same.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GatewayConfig {
    server: ServerProgram,
    protocol: RaceProtocol,
    ports: Vec<u16>,
}

impl GatewayConfig {
    /// The one for loads of `page` by `protocol` from `server`; `None` if that is ours.
    #[must_use]
    pub fn of(server: ServerProgram, protocol: RaceProtocol, page: &Page) -> Option<Self> {
        (server != ServerProgram::Ours).then(|| Self {
            server,
            protocol,
            ports: page.ports(protocol.is_secure()),
        })
    }

    /// The address of our site: a port of loopback that the server does not use itself.
    fn upstream(&self) -> SocketAddrV4 {
        let port = (FIRST_UPSTREAM_PORT..).find(|port| !self.ports.contains(port));
        SocketAddrV4::new(
            Ipv4Addr::LOCALHOST,
            port.expect("a page uses fewer ports than there are"),
        )
    }
}

/// A running server. Dropping it ends the process.
#[derive(Debug)]
pub struct Gateway {
    config: GatewayConfig,
    child: Child,
    /// Its files, which are removed with it.
    folder: TempDir,
}

impl Gateway {
    /// Starts it on `host`, and returns when it listens.
    ///
    /// # Errors
    ///
    /// It is not installed, or does not start.
    ///
    /// # Panics
    ///
    /// If the server of `config` is ours.
    pub fn start(config: GatewayConfig, host: &Host) -> Result<Self, GatewayError> {
        let server = config.server;
        let program = programs::find(server)?.expect("the configuration is of another server");
        let failed = |what: String| {
            move |source| GatewayError::Start {
                server,
                what,
                source,
            }
        };
        let folder = tempfile::Builder::new().prefix("spdy-gateway-").tempdir();
        let folder = folder.map_err(failed("its folder".to_owned()))?;
        let name = program.path.display().to_string();
        let mut command =
            command(&config, program, &folder).map_err(failed("its files".to_owned()))?;
        // On the host's thread, so that it inherits the namespace.
        let child = host.run(move || command.spawn());
        let mut gateway = Self {
            config,
            child: child.map_err(failed(name))?,
            folder,
        };
        gateway.wait_until_it_listens(host)?;
        Ok(gateway)
    }

    /// True if it still runs, and can serve loads with `config`.
    pub fn serves(&mut self, config: &GatewayConfig) -> bool {
        self.config == *config && matches!(self.child.try_wait(), Ok(None))
    }

    /// The address from which it gets responses.
    #[must_use]
    pub fn upstream(&self) -> SocketAddrV4 {
        self.config.upstream()
    }

    /// CPU times of its threads so far; `None` if the system does not report them.
    #[must_use]
    pub fn cpu_times(&self) -> Option<ChildCpuTimes> {
        ChildCpuTimes::of(&self.child)
    }

    fn wait_until_it_listens(&mut self, host: &Host) -> Result<(), GatewayError> {
        let server = self.config.server;
        let start = Instant::now();
        loop {
            let ended = self.child.try_wait();
            if !matches!(ended, Ok(None)) {
                let last_line = self.last_line();
                return Err(GatewayError::Ended { server, last_line });
            }
            let ports = self.config.ports.clone();
            let is_open = |port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            if host.run(move || ports.into_iter().all(is_open)) {
                return Ok(());
            }
            if start.elapsed() > START_TIMEOUT {
                return Err(GatewayError::Timeout {
                    server,
                    seconds: START_TIMEOUT.as_secs(),
                    last_line: self.last_line(),
                });
            }
            thread::sleep(CHECK_INTERVAL);
        }
    }

    /// The last line that it has written to stderr.
    fn last_line(&self) -> String {
        let text = fs::read(self.folder.path().join(STDERR)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        last.unwrap_or("no output on stderr").to_owned()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // It fails only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The file of its error messages.
const STDERR: &str = "stderr";

/// The command that starts the server, whose files are written to `folder`.
fn command(config: &GatewayConfig, program: Program, folder: &TempDir) -> io::Result<Command> {
    let file = |name: &str| folder.path().join(name);
    let (chain, key) = (file("chain.pem"), file("key.pem"));
    fs::write(&chain, CHAIN_PEM)?;
    fs::write(&key, KEY_PEM)?;
    let upstream = config.upstream();
    let mut command = Command::new(&program.path);
    command.args(program.arguments);
    if config.server == ServerProgram::Nginx {
        let build = Command::new(&program.path).arg("-V").output()?.stderr;
        let build = String::from_utf8_lossy(&build);
        let (protocol, ports) = (config.protocol, &config.ports);
        let text = nginx::configuration(protocol, ports, upstream, folder.path(), &build);
        let path = file("nginx.conf");
        fs::write(&path, text)?;
        command.arg("-p").arg(folder.path()).arg("-c").arg(path);
    } else {
        let ports: Vec<_> = config.ports.iter().map(u16::to_string).collect();
        let protocol = config.protocol.wire_protocol().alpn();
        command
            .args(["--port", &ports.join(","), "--protocol", protocol])
            .args(["--upstream", &upstream.to_string(), "--cert"])
            .arg(chain)
            .arg("--key")
            .arg(key);
    }
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(file(STDERR))?)
        // Not affected by Ctrl-C: a load in progress ends in order.
        .process_group(0);
    Ok(command)
}
