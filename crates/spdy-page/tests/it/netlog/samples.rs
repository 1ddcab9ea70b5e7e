//! The logs, and how they are opened.

use spdy_page::devtools::Observations;
use spdy_page::graph::PageGraph;
use spdy_page::limits::Limits;
use spdy_page::open::{ImportOptions, OpenError, OpenedReplica, read};
use spdy_page::replica::{Exchange, Replica};

use crate::support::netlog_writer::NetLog;
use crate::support::soundness;

/// Chromium 156 on a page of four hosts; only the events and parameters that are used.
pub(super) const LOG: &str = include_str!("../../data/chromium.netlog.json");
/// The DevTools messages of the same load, one on each line.
pub(super) const DEVTOOLS: &str = include_str!("../../data/chromium.devtools");

pub(super) fn observations() -> Observations {
    let mut observations = Observations::new(&Limits::default());
    DEVTOOLS
        .lines()
        .for_each(|message| observations.take(message, true));
    observations
}

pub(super) fn open(log: &str) -> Result<OpenedReplica, OpenError> {
    open_with(log, ImportOptions::default())
}

pub(super) fn open_with(log: &str, options: ImportOptions) -> Result<OpenedReplica, OpenError> {
    let opened = read(log.as_bytes().to_vec().into(), "log.json", &options)?;
    let replica = &opened.replica;
    soundness::assert_sound(replica, "log");
    soundness::assert_lawful(replica, &PageGraph::of(replica), "log");
    Ok(opened)
}

pub(super) fn one<'a>(replica: &'a Replica, path: &str, status: u16) -> &'a Exchange {
    let mut all = replica.exchanges.iter();
    let found =
        all.find(|exchange| exchange.url.path() == path && exchange.status() == Some(status));
    found.unwrap_or_else(|| panic!("no {path} with {status}"))
}

pub(super) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("it is text")
}

/// A page of one exchange, and its socket.
pub(super) fn page(head: &str, body: &str) -> (NetLog, u64) {
    let mut log = NetLog::default();
    let socket = log.socket("192.0.2.7:80");
    log.exchange("http://a.test/", true, socket, head, body);
    (log, socket)
}

pub(super) const HTML: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\n";
