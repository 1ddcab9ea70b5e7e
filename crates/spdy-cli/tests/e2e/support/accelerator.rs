//! `spdy accelerate` on free ports of loopback.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::program::{From, Running, address_after, spdy};

/// One that runs; it ends with this value.
pub(crate) struct Accelerator {
    running: Running,
    /// Where it takes connections, each with whether by TLS.
    doors: Vec<(SocketAddr, bool)>,
    folder: tempfile::TempDir,
}

impl Accelerator {
    /// Starts it with `config`, whose listeners have port 0.
    pub(crate) fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let path = folder.path().join("site.toml");
        std::fs::write(&path, config).expect("the folder of a test can be written to");
        let mut command = spdy(&["accelerate"]);
        command
            .arg(&path)
            .arg("--write-ca")
            .arg(folder.path().join("ca.pem"));
        let mut doors = Vec::new();
        let (running, doors) = Running::start(command, From::Stderr, |line| {
            let plain = address_after(line, "http://").map(|address| (address, false));
            let tls = address_after(line, "https://").map(|address| (address, true));
            doors.extend(plain.or(tls));
            line.starts_with("accelerating")
                .then(|| std::mem::take(&mut doors))
        });
        Self {
            running,
            doors,
            folder,
        }
    }

    /// The number that the system knows it by.
    pub(crate) fn id(&self) -> u32 {
        self.running.id()
    }

    /// The first door of plain connections.
    pub(crate) fn plain(&self) -> SocketAddr {
        self.door(false)
    }

    /// The first door of TLS.
    pub(crate) fn tls(&self) -> SocketAddr {
        self.door(true)
    }

    fn door(&self, tls: bool) -> SocketAddr {
        let found = self.doors.iter().find(|(_, secure)| *secure == tls);
        found.expect("the configuration has such a listener").0
    }

    /// The authority that signed its certificate, PEM.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }
}
