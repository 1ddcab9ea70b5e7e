//! `spdy accelerate` in front of a test's origins.

use std::net::SocketAddr;

use spdy_testkit::wait::until;

use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::{PendingResponse, RawResponse};
use crate::support::origins::scripted::Origins;

/// A running `spdy accelerate`.
pub(crate) struct AcceleratedSite {
    program: Accelerator,
    pub(crate) tls: SocketAddr,
}

/// Configuration in addition to what follows from the origins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting<'a> {
    /// TOML of the only site, after its names and origin.
    pub(crate) site: &'a str,
    /// Keys of `[upstream]`.
    pub(crate) upstream: &'a str,
    /// Keys before all tables.
    pub(crate) top: &'a str,
    /// Whether HTTP/3 is enabled.
    pub(crate) has_http3: bool,
    /// Address of the TLS listener; `None` means a free port of 127.0.0.1.
    pub(crate) tls: Option<SocketAddr>,
}

impl AcceleratedSite {
    /// Serves the site of the first of `origins` under its names. Host names of `origins` are resolved to their addresses.
    pub(crate) fn start(origins: &Origins, setting: &Setting<'_>) -> Self {
        let path = |name| format!("{:?}", origins.certificates.path(name));
        let (name, address) = origins.addresses.all().next().expect("the site's origin");
        let tls = setting.tls.unwrap_or(([127, 0, 0, 1], 0).into());
        let mut config = format!(
            "{}\n[listen]\ntls = ['{tls}']\nplain = ['127.0.0.1:0']\nprotocols = [{}]\n[tls]\ncertificate = {}\nkey = {}\n\
             [upstream]\nauthorities = [{}]\n{}\n",
            setting.top,
            match setting.has_http3 {
                true => "'spdy/3.1', 'h3', 'h2', 'http/1.1'",
                false => "'spdy/3.1', 'h2', 'http/1.1'",
            },
            path("chain.pem"),
            path("key.pem"),
            path("authority.pem"),
            setting.upstream,
        );
        if !setting.upstream.contains("resolve") {
            let resolve = origins.addresses.all();
            let resolve = resolve.map(|(name, address)| format!("'{name}' = '{}'", address.ip()));
            let resolve: Vec<_> = resolve.collect();
            config.push_str(&format!("resolve = {{ {} }}\n", resolve.join(", ")));
        }
        let names = [&[name][..], &origins.second_names].concat();
        config.push_str(&format!(
            "[[site]]\nnames = {names:?}\norigin = '{}'\naddress = '{}'\n{}\n",
            origins.addresses.origin(name),
            address.ip(),
            setting.site
        ));
        let program = Accelerator::start(&config);
        let tls = program.tls();
        Self { program, tls }
    }

    /// Memory of the process in bytes; `None` if the system does not report it.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.program.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kib << 10)
    }

    /// Number of open files and sockets of the process; `None` if the system does not report it.
    pub(crate) fn open_files(&self) -> Option<usize> {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.program.id()));
        Some(open.ok()?.count())
    }

    /// Reloads the configuration and waits until that is done.
    pub(crate) fn reload(&self) {
        let reads = || {
            let lines = self.program.log_lines();
            let is_reload = |line: &&String| line.contains("reloaded the configuration");
            lines.iter().filter(is_reload).count()
        };
        let reads_before = reads();
        self.program.reload_unchanged();
        until("the configuration is read", || reads() > reads_before);
    }

    /// The address of the listener without TLS.
    pub(crate) fn plain(&self) -> SocketAddr {
        self.program.plain()
    }

    /// Sends `bytes` without TLS and reads the response.
    pub(crate) fn exchange(&self, bytes: &[u8]) -> RawResponse {
        self.begin(bytes).end(usize::MAX)
    }

    /// Sends `bytes` without TLS.
    pub(crate) fn begin(&self, bytes: &[u8]) -> PendingResponse {
        PendingResponse::begin(self.program.plain(), bytes)
    }

    /// Requests `target` of `host` on a new connection.
    pub(crate) fn get(&self, host: &str, target: &str, fields: &str) -> RawResponse {
        let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        self.exchange(format!("{head}{fields}\r\n").as_bytes())
    }
}
