//! `spdy accelerate` before origins of a test.

use std::net::SocketAddr;

use spdy_testkit::wait::until;

use crate::support::accelerator::program::Accelerator;
use crate::support::clients::raw_client::{PendingResponse, RawResponse};
use crate::support::origins::scripted::Origins;

/// The program.
pub(crate) struct AcceleratedSite {
    program: Accelerator,
    pub(crate) tls: SocketAddr,
}

/// What is configured, beside what follows from the origins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting<'a> {
    /// TOML of the only site, below its names and origin.
    pub(crate) site: &'a str,
    /// Keys of `[upstream]`.
    pub(crate) upstream: &'a str,
    /// Keys above all tables.
    pub(crate) top: &'a str,
    /// HTTP/3 is spoken as well.
    pub(crate) has_http3: bool,
    /// Where TLS is listened for; a free port of 127.0.0.1 if nothing is said.
    pub(crate) tls: Option<SocketAddr>,
}

impl AcceleratedSite {
    /// For the site of the first of `origins`, under its names. Names of `origins` are not looked up.
    pub(crate) fn start(origins: &Origins, setting: &Setting<'_>) -> Self {
        let path = |name| format!("{:?}", origins.signed.path(name));
        let (name, address) = origins.places.all().next().expect("the site's origin");
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
            let resolve = origins.places.all();
            let resolve = resolve.map(|(name, address)| format!("'{name}' = '{}'", address.ip()));
            let resolve: Vec<_> = resolve.collect();
            config.push_str(&format!("resolve = {{ {} }}\n", resolve.join(", ")));
        }
        let names = [&[name][..], &origins.second_names].concat();
        config.push_str(&format!(
            "[[site]]\nnames = {names:?}\norigin = '{}'\naddress = '{}'\n{}\n",
            origins.places.origin(name),
            address.ip(),
            setting.site
        ));
        let program = Accelerator::start(&config);
        let tls = program.tls();
        Self { program, tls }
    }

    /// Memory that the program has, in bytes; nothing where the system does not say.
    pub(crate) fn memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.program.id())).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
        Some(kib << 10)
    }

    /// Files and sockets that the program has open; nothing where the system does not say.
    pub(crate) fn open_files(&self) -> Option<usize> {
        let open = std::fs::read_dir(format!("/proc/{}/fd", self.program.id()));
        Some(open.ok()?.count())
    }

    /// Asks for all that it was started with to be read again, and waits until it has been.
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

    /// The door of plain connections.
    pub(crate) fn plain(&self) -> SocketAddr {
        self.program.plain()
    }

    /// Sends `bytes` without TLS, and reads the answer.
    pub(crate) fn exchange(&self, bytes: &[u8]) -> RawResponse {
        self.begin(bytes).end(usize::MAX)
    }

    /// Sends `bytes` without TLS.
    pub(crate) fn begin(&self, bytes: &[u8]) -> PendingResponse {
        PendingResponse::begin(self.program.plain(), bytes)
    }

    /// Gets `target` of `host`, on a connection of its own.
    pub(crate) fn get(&self, host: &str, target: &str, fields: &str) -> RawResponse {
        let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
        self.exchange(format!("{head}{fields}\r\n").as_bytes())
    }
}
