//! The contestants: their start, their ports, and their end.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use spdy_frame::version::Version;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{KeyKind, LocalCa};
use tempfile::TempDir;

use crate::Args;
use crate::course::{File, SPDY, TransportKind};
use crate::table::print_note;

/// Timeout for a server to listen.
const READY_WITHIN: Duration = Duration::from_secs(20);
/// Timeout for it to exit after SIGTERM.
const EXIT_WITHIN: Duration = Duration::from_secs(3);

/// The served files: a folder, and a certificate. Both are removed when this value is dropped.
pub(crate) struct Site {
    folder: TempDir,
}

impl Site {
    pub(crate) fn make(files: &[File]) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("cannot make the files to serve: {error}");
        let folder = TempDir::new().map_err(failed)?;
        // nginx drops root before it reads them.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).map_err(failed)?;
        let site = Self { folder };
        fs::create_dir(site.root()).map_err(failed)?;
        for file in files {
            fs::write(site.root().join(&file.name), file.contents()).map_err(failed)?;
        }
        let authority = LocalCa::generate(KeyKind::EcdsaP256).map_err(|e| e.to_string())?;
        let leaf = authority
            .issue(&["localhost".to_owned()], &[Ipv4Addr::LOCALHOST.into()])
            .map_err(|e| e.to_string())?;
        fs::write(site.chain(), leaf.chain_pem()).map_err(failed)?;
        fs::write(site.key(), leaf.key_pem()).map_err(failed)?;
        Ok(site)
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("files")
    }

    fn chain(&self) -> PathBuf {
        self.folder.path().join("chain.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }
}

/// A process that ends when this value is dropped.
pub(crate) struct Server {
    child: Child,
    /// It compiles while it runs.
    pub(crate) is_virtual_machine: bool,
}

impl Server {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    /// SIGTERM first: only then does nginx end its workers.
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let signalled_at = Instant::now();
        while signalled_at.elapsed() < EXIT_WITHIN {
            if let Ok(Some(_)) = self.child.try_wait() {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server and one of its protocols.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) protocol: Protocol,
    pub(crate) transport: TransportKind,
    pub(crate) port: u16,
    /// Index of its server in the grid.
    pub(crate) server: usize,
}

/// All contestants.
#[derive(Default)]
pub(crate) struct Grid {
    pub(crate) servers: Vec<Server>,
    pub(crate) peers: Vec<Peer>,
}

impl Grid {
    /// Starts all servers. A peer that cannot be started is reported and omitted; our own server must start.
    pub(crate) fn start(args: &Args, site: &Site) -> Result<Self, String> {
        let mut grid = Self::default();
        grid.start_ours(args, site)?;
        for transport in [TransportKind::Plain, TransportKind::Tls] {
            for name in [
                "netty",
                "nginx",
                "nghttpd",
                "node-spdy",
                "spdystream",
                "okhttp",
            ] {
                if args.includes(name, transport) {
                    grid.peer(name, transport, args, site);
                }
            }
        }
        for name in ["undertow", "jetty"] {
            if args.includes(name, TransportKind::Plain) {
                grid.peer(name, TransportKind::Plain, args, site);
            }
        }
        Ok(grid)
    }

    /// Starts a peer, or prints why it is omitted.
    fn peer(&mut self, name: &'static str, transport: TransportKind, args: &Args, site: &Site) {
        let (protocols, started) = match name {
            "nginx" => (
                &[Protocol::Http2, Protocol::Http1][..],
                nginx(site, transport),
            ),
            "nghttpd" => (&[Protocol::Http2][..], nghttpd(site, transport)),
            "jetty" => (
                &[Protocol::Spdy(Version::V3)][..],
                driver(args, site, name, transport, &["--protocol", "spdy/3"]),
            ),
            _ => (&[SPDY][..], driver(args, site, name, transport, &[])),
        };
        match started {
            Ok((server, ports)) => {
                for (protocol, port) in protocols.iter().zip(ports) {
                    self.peers.push(Peer {
                        name,
                        protocol: *protocol,
                        transport,
                        port,
                        server: self.servers.len(),
                    });
                }
                self.servers.push(server);
            }
            Err(error) => print_note(&format!("{name} ({transport}) does not take part: {error}")),
        }
    }

    fn start_ours(&mut self, args: &Args, site: &Site) -> Result<(), String> {
        let mut command = Command::new(&args.spdy);
        command.args(["serve", "--quiet", "--json", "--plain", "127.0.0.1:0"]);
        command
            .args(["--tls", "127.0.0.1:0", "--cert"])
            .arg(site.chain());
        command.arg("--key").arg(site.key()).arg(site.root());
        let (server, announcement) = start(command, false)?;
        let port = |secure: bool| {
            let all = announcement["listening"].as_array()?;
            let one = all.iter().find(|one| one["tls"] == secure)?;
            let address: SocketAddr = one["address"].as_str()?.parse().ok()?;
            Some(address.port())
        };
        let (Some(plain), Some(tls)) = (port(false), port(true)) else {
            return Err(format!(
                "spdy serve printed no listening address: {announcement}"
            ));
        };
        for (transport, port) in [(TransportKind::Plain, plain), (TransportKind::Tls, tls)] {
            for protocol in [SPDY, Protocol::Http2, Protocol::Http1] {
                self.peers.push(Peer {
                    name: "spdy",
                    protocol,
                    transport,
                    port,
                    server: self.servers.len(),
                });
            }
        }
        self.servers.push(server);
        Ok(())
    }
}

/// Starts a driver of `interop/`.
fn driver(
    args: &Args,
    site: &Site,
    name: &str,
    transport: TransportKind,
    more: &[&str],
) -> Result<(Server, Vec<u16>), String> {
    let interop = &args.interop;
    let (mut command, is_virtual_machine) = match name {
        "netty" => (java(&interop.join("netty/target"), "spdy.interop")?, true),
        "node-spdy" => {
            let folder = interop.join("node-spdy");
            there(&folder.join("node_modules/spdy"))?;
            let mut command = Command::new("node");
            command
                .arg("--no-deprecation")
                .arg(folder.join("server.js"));
            (command, true)
        }
        "spdystream" => {
            let program = interop.join("moby/target/server");
            there(&program)?;
            (Command::new(program), false)
        }
        other => {
            let package = format!("spdy.interop.{other}");
            (java(&interop.join("jvm/target"), &package)?, true)
        }
    };
    command
        .arg("--root")
        .arg(site.root())
        .args(["--port", "0"])
        .args(more);
    if transport == TransportKind::Tls {
        command
            .arg("--cert")
            .arg(site.chain())
            .arg("--key")
            .arg(site.key());
    }
    let (server, announcement) = start(command, is_virtual_machine)?;
    let port = announcement["port"]
        .as_u64()
        .and_then(|port| u16::try_from(port).ok());
    let port = port.ok_or_else(|| format!("no port in {announcement}"))?;
    Ok((server, vec![port]))
}

/// The driver in `package`, with the default compilers and collector of the virtual machine.
fn java(target: &Path, package: &str) -> Result<Command, String> {
    let classpath = target.join("classpath.txt");
    there(&classpath)?;
    let classpath = fs::read_to_string(classpath).map_err(|error| error.to_string())?;
    let mut command = Command::new("java");
    command.arg("-cp").arg(format!(
        "{}:{}",
        target.join("classes").display(),
        classpath.trim()
    ));
    command.arg(format!("{package}.Server"));
    Ok(command)
}

fn there(path: &Path) -> Result<(), String> {
    match path.exists() {
        true => Ok(()),
        false => Err(format!(
            "there is no {}; run scripts/setup-peers",
            path.display()
        )),
    }
}

/// nginx with a fast configuration: a worker for each core, cached open files, no log, and connections that are not
/// closed after a thousand requests.
///
/// Returns a port for HTTP/2 and one for HTTP/1.1.
fn nginx(site: &Site, transport: TransportKind) -> Result<(Server, Vec<u16>), String> {
    let ports = free_ports::<2>()?;
    let [http2, http1] = ports;
    let folder = site.folder.path().join(format!("nginx-{transport}"));
    fs::create_dir(&folder).map_err(|error| error.to_string())?;
    let (root, chain, key) = (site.root(), site.chain(), site.key());
    let tls = match transport {
        TransportKind::Plain => "",
        TransportKind::Tls => " ssl",
    };
    let text = format!(
        "daemon off; worker_processes auto; pid {folder}/nginx.pid; error_log stderr crit;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n\
         access_log off; sendfile on; tcp_nodelay on; keepalive_requests 1000000000;\n\
         open_file_cache max=100 inactive=1h; open_file_cache_valid 1h;\n\
         types {{}} default_type application/octet-stream; root {root};\n\
         ssl_certificate {chain}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;\n\
         http2_max_concurrent_streams 128;\n\
         client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;\n\
         uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;\n\
         server {{ listen 127.0.0.1:{http2}{tls} http2; }}\n\
         server {{ listen 127.0.0.1:{http1}{tls}; }}\n\
         }}\n",
        folder = folder.display(),
        root = root.display(),
        chain = chain.display(),
        key = key.display(),
    );
    let file = folder.join("nginx.conf");
    fs::write(&file, text).map_err(|error| error.to_string())?;
    let mut command = Command::new(program("nginx")?);
    command.arg("-p").arg(&folder).arg("-c").arg(file);
    let server = listening(command, &ports)?;
    Ok((server, ports.into()))
}

fn nghttpd(site: &Site, transport: TransportKind) -> Result<(Server, Vec<u16>), String> {
    let [port] = free_ports::<1>()?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut command = Command::new(program("nghttpd")?);
    command
        .arg("-d")
        .arg(site.root())
        .arg(format!("--workers={cores}"));
    command.args(["--address", "127.0.0.1"]);
    match transport {
        TransportKind::Plain => command.arg("--no-tls").arg(port.to_string()),
        TransportKind::Tls => command
            .arg(port.to_string())
            .arg(site.key())
            .arg(site.chain()),
    };
    Ok((listening(command, &[port])?, vec![port]))
}

/// The path of `name`; Debian has servers in folders that only root searches.
pub(crate) fn program(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let found = folders
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    found.ok_or_else(|| format!("there is no {name}; run scripts/setup-race-peers"))
}

/// Ports without a listener.
fn free_ports<const N: usize>() -> Result<[u16; N], String> {
    let mut held = Vec::new();
    for _ in 0..N {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        held.push(listener.map_err(|error| format!("no free port: {error}"))?);
    }
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&held) {
        *port = listener.local_addr().map_err(|e| e.to_string())?.port();
    }
    Ok(ports)
}

fn spawn(mut command: Command, is_virtual_machine: bool) -> Result<Server, String> {
    let child = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("cannot start {:?}: {error}", command.get_program()))?;
    Ok(Server {
        child,
        is_virtual_machine,
    })
}

/// Starts a server that prints its listening addresses as JSON on its first line.
fn start(mut command: Command, is_virtual_machine: bool) -> Result<(Server, Value), String> {
    command.stdout(Stdio::piped());
    let name = command.get_program().to_os_string();
    let mut server = spawn(command, is_virtual_machine)?;
    let stdout = server.child.stdout.take().expect("stdout is a pipe");
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        // Reads to the end: a full pipe would block the server.
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let line = receiver.recv_timeout(READY_WITHIN).map_err(|_| {
        format!("{name:?} did not print its listening address within {READY_WITHIN:?}")
    })?;
    let announcement = serde_json::from_str(&line)
        .map_err(|_| format!("{name:?} printed {line:?}, expected JSON"))?;
    Ok((server, announcement))
}

/// Starts a server that listens on `ports`.
fn listening(mut command: Command, ports: &[u16]) -> Result<Server, String> {
    command.stdout(Stdio::null());
    let name = command.get_program().to_os_string();
    let mut server = spawn(command, false)?;
    let begun = Instant::now();
    for port in ports {
        while TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_err() {
            if begun.elapsed() > READY_WITHIN {
                return Err(format!("{name:?} does not listen on {port}"));
            }
            if let Ok(Some(status)) = server.child.try_wait() {
                return Err(format!("{name:?} ended with {status}"));
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(server)
}
