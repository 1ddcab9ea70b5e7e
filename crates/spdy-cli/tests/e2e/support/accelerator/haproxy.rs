//! HAProxy as a TCP load balancer: it forwards connections unchanged and announces each client with the PROXY protocol.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_testkit::wait::POLL_INTERVAL;

use crate::support::peers::{is_installed, require};
use crate::support::program::{ReadyOn, RunningProgram};

/// Path of the program on Debian, which is often not in PATH.
const PROGRAM: &str = "/usr/sbin/haproxy";

/// A running HAProxy. It stops when dropped.
pub(crate) struct HaProxy {
    process: RunningProgram,
    /// Address for clients.
    pub(crate) address: SocketAddr,
    folder: tempfile::TempDir,
}

impl HaProxy {
    /// Starts a HAProxy that forwards connections to `server` and announces clients as `server_options` configure. With
    /// `is_secure` it terminates TLS with a certificate for `name`.
    pub(crate) fn start(
        server: SocketAddr,
        server_options: &str,
        is_secure: bool,
        name: &str,
    ) -> Self {
        let is_present = is_installed("haproxy") || Path::new(PROGRAM).is_file();
        require("HAProxy", is_present);
        // Another process may take the free port before HAProxy listens on it.
        let mut tries =
            (0..5).filter_map(|_| Self::try_start(server, server_options, is_secure, name));
        tries.next().expect("free ports on loopback")
    }

    fn try_start(
        server: SocketAddr,
        server_options: &str,
        is_secure: bool,
        name: &str,
    ) -> Option<Self> {
        let folder = tempfile::tempdir().expect("create a folder");
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| {
            std::fs::write(path(name), text).expect("write the test's file");
        };
        let authority = LocalCa::generate(KeyKind::EcdsaP256).expect("create a CA");
        let identity = authority.issue(&[name.to_owned()], &[]);
        let identity = identity.expect("a certificate");
        write("authority.pem", authority.pem());
        write("both.pem", &(identity.chain_pem() + &identity.key_pem()));
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        let address = listener.local_addr().expect("a bound socket");
        let tls = match is_secure {
            true => format!("ssl crt {} alpn http/1.1", path("both.pem").display()),
            false => String::new(),
        };
        let times = ["connect", "client", "server"].map(|what| format!("  timeout {what} 60s\n"));
        let config = format!(
            "defaults\n  mode tcp\n{}listen balanced\n  bind {address} {tls}\n  server accelerator {server} {server_options}\n",
            times.concat()
        );
        write("haproxy.cfg", &config);
        drop(listener);
        let program = match is_installed("haproxy") {
            true => "haproxy",
            false => PROGRAM,
        };
        let mut command = Command::new(program);
        command.args(["-db", "-V", "-f"]).arg(path("haproxy.cfg"));
        let (process, ()) = RunningProgram::start(command, ReadyOn::Stderr, |line| {
            line.contains("usable)").then_some(())
        });
        let mut balancer = Self {
            process,
            address,
            folder,
        };
        // It reports readiness before it binds its listener.
        while !balancer.process.has_ended() {
            if TcpStream::connect(address).is_ok() {
                return Some(balancer);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        None
    }

    /// The CA of its certificate, PEM.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }
}
