//! Pebble, Let's Encrypt's ACME server for tests. It validates every challenge over the network, with the configured DNS server.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;

use spdy_net::tls::certificates::{KeyKind, LocalCa};
use spdy_net::tls::verify::Roots;
use spdy_testkit::wait::{POLL_INTERVAL, WAIT_LIMIT};

use crate::support::peers::require;
use crate::support::program::{ReadyOn, RunningProgram, run_expecting, spdy};

/// A running Pebble. It stops when dropped.
pub(crate) struct Pebble {
    process: RunningProgram,
    folder: tempfile::TempDir,
    ports: [u16; 2],
}

/// Addresses that Pebble uses to validate challenges.
pub(crate) struct ChallengeAddresses {
    /// For tls-alpn-01.
    pub(crate) tls: SocketAddr,
    /// For http-01.
    pub(crate) plain: SocketAddr,
    /// DNS server, for host names and dns-01.
    pub(crate) dns: SocketAddr,
}

impl Pebble {
    /// Starts a Pebble whose certificates are valid for `validity_s`.
    pub(crate) fn start(addresses: &ChallengeAddresses, validity_s: u32) -> Self {
        // Another process may take the free port before Pebble listens on it.
        let mut tries = (0..5).filter_map(|_| Self::try_start(addresses, validity_s));
        tries.next().expect("free ports on loopback")
    }

    fn try_start(addresses: &ChallengeAddresses, validity_s: u32) -> Option<Self> {
        let interop = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop");
        let program = interop.join("pebble/target/pebble");
        require("Pebble", program.is_file());
        let folder = tempfile::tempdir().expect("create a folder");
        let path = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| {
            std::fs::write(path(name), text).expect("write the test's file");
        };
        let authority = LocalCa::generate(KeyKind::EcdsaP256).expect("create a CA");
        let loopback = [[127, 0, 0, 1].into()];
        let identity = authority.issue(&[], &loopback).expect("a certificate");
        write("authority.pem", authority.pem());
        write("chain.pem", &identity.chain_pem());
        write("key.pem", &identity.key_pem());
        let listeners =
            [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a free port on loopback"));
        let ports = listeners.map(|listener| listener.local_addr().expect("a bound socket").port());
        let config = serde_json::json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{}", ports[0]),
            "managementListenAddress": format!("127.0.0.1:{}", ports[1]),
            "certificate": path("chain.pem"),
            "privateKey": path("key.pem"),
            "httpPort": addresses.plain.port(),
            "tlsPort": addresses.tls.port(),
            "keyAlgorithm": "ecdsa",
            "profiles": {"default": {"description": "for tests", "validityPeriod": validity_s}},
        }});
        write("pebble.json", &config.to_string());
        let mut command = Command::new(program);
        command
            .arg("-config")
            .arg(path("pebble.json"))
            .args(["-dnsserver", &addresses.dns.to_string()])
            // Validates at once instead of after a random delay of some seconds.
            .env("PEBBLE_VA_NOSLEEP", "1")
            // Rejects 1 % of nonces instead of 5 %: a client that gets three rejections in a row waits for minutes.
            .env("PEBBLE_WFE_NONCEREJECT", "1");
        let (process, ()) = RunningProgram::start(command, ReadyOn::Stdout, |line| {
            line.contains("ACME directory available").then_some(())
        });
        let mut pebble = Self {
            process,
            folder,
            ports,
        };
        pebble.is_up().then_some(pebble)
    }

    /// Waits until it listens; `false` if the process has ended.
    fn is_up(&mut self) -> bool {
        let start = std::time::Instant::now();
        while start.elapsed() < WAIT_LIMIT {
            let listens = |port: &u16| std::net::TcpStream::connect(("127.0.0.1", *port)).is_ok();
            if self.process.has_ended() {
                return false;
            }
            if self.ports.iter().all(listens) {
                return true;
            }
            std::thread::park_timeout(POLL_INTERVAL);
        }
        panic!("Pebble does not listen: {:?}", self.process.lines());
    }

    /// The URL of the ACME directory.
    pub(crate) fn directory(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.ports[0])
    }

    /// The CA of its own server certificate, PEM.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("authority.pem")
    }

    /// The CA of the certificates that it issues.
    pub(crate) fn roots(&self) -> Roots {
        let url = format!("https://127.0.0.1:{}/roots/0", self.ports[1]);
        let root = self.folder.path().join("root.pem");
        let mut fetch = spdy(&["fetch", &url, "--cacert"]);
        let output = run_expecting(0, fetch.arg(self.authority()));
        std::fs::write(&root, &output.stdout).expect("write the test's file");
        Roots::File(root)
    }

    /// Number of orders that it has received.
    pub(crate) fn orders(&self) -> usize {
        let lines = self.process.lines();
        lines
            .iter()
            .filter(|line| line.contains("/order-plz"))
            .count()
    }

    /// The lines that it has printed.
    pub(crate) fn log_lines(&self) -> Vec<String> {
        self.process.lines()
    }
}
