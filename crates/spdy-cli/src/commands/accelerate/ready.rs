//! Prints what a started accelerator serves, and where.

use std::net::SocketAddr;

use serde::Serialize;
use spdy_accelerator::Ready;
use spdy_net::protocol::Protocol;
use spdy_service::listen::ListenerInfo;

use crate::output::{BOLD, DIM, Printer};

/// The accelerator is ready.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct ReadyOutput<'a> {
    /// The listening addresses.
    listening: &'a [&'a ListenerInfo],
    /// The address of the admin listener; `null` without one.
    admin: Option<SocketAddr>,
    /// The addresses of the name server.
    dns: &'a [SocketAddr],
    /// The offered protocols, by their ALPN names.
    protocols: Vec<&'static str>,
    /// The first name of each site.
    sites: &'a [String],
}

/// Prints the addresses and the sites: as notes, and with `is_json` as one line on stdout.
pub(super) fn print(is_json: bool, ready: &Ready<'_>, printer: &Printer) -> anyhow::Result<()> {
    for listener in &ready.listening {
        print_listener(listener, ready.protocols, printer);
    }
    printer.note(format_args!("accelerating {}", ready.sites.join(", ")));
    for address in &ready.dns {
        printer.note(format_args!("DNS server on {BOLD}{address}{BOLD:#}"));
    }
    if let Some(address) = ready.admin {
        printer.note(format_args!(
            "{DIM}admin listener on http://{address}/{DIM:#}"
        ));
    }
    if is_json {
        printer.json(&ReadyOutput {
            listening: &ready.listening,
            admin: ready.admin,
            dns: &ready.dns,
            protocols: ready
                .protocols
                .iter()
                .map(|protocol| protocol.alpn())
                .collect(),
            sites: ready.sites,
        })?;
    }
    Ok(())
}

fn print_listener(listener: &ListenerInfo, protocols: &[Protocol], printer: &Printer) {
    let scheme = if listener.tls { "https" } else { "http" };
    let offered = protocols.iter();
    let offered = offered.filter(|protocol| listener.quic || !protocol.is_over_quic());
    let offered: Vec<_> = offered.map(|protocol| protocol.alpn()).collect();
    printer.note(format_args!(
        "listening on {BOLD}{scheme}://{}/{BOLD:#} {DIM}({}){DIM:#}",
        listener.address,
        offered.join(", ")
    ));
}
