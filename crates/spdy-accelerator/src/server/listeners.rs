//! Opens the listeners of the accelerator.
//!
//! ```text
//!  TCP for clients ─▶ TCP for the operator ─▶ UDP for HTTP/3 ─▶ UDP and TCP for names ─▶ HTTP/3 listens
//!  each of their listeners                    at listeners with TLS                      once it has certificates, and not before
//!                                                                                        a predecessor stopped reading datagrams
//! ```
//!
//! Inherited sockets are used, the rest is bound.

use std::net::SocketAddr;

use anyhow::Context;
use spdy::runtime::SharedRuntime;
use spdy_dns::serve::{DnsServer, ServeLimits};
use spdy_dns::zones::SharedZones;
use spdy_net::limit::LimitHits;
use spdy_net::listen::Listener;
use spdy_net::listen::sockets::Sockets;
use spdy_net::protocol::Protocol;
use spdy_proxy::config::Config;
use spdy_service::listen::{self, BoundListener, ListenerInfo};
use spdy_service::notice::Notices;

/// All listeners of the program.
pub(crate) struct Listeners {
    /// For clients; each with TLS also has a UDP socket if HTTP/3 is enabled.
    pub(crate) clients: Vec<BoundListener>,
    pub(crate) operator: Option<Listener>,
    pub(crate) names: Option<DnsServer>,
}

/// The listeners, protocols and sites of a started accelerator.
#[derive(Clone, Debug)]
pub struct Ready<'a> {
    /// The listeners for clients.
    pub listening: Vec<&'a ListenerInfo>,
    /// The address of the admin listener, if there is one.
    pub admin: Option<SocketAddr>,
    /// The addresses of the DNS server.
    pub dns: Vec<SocketAddr>,
    /// The protocols for clients.
    pub protocols: &'a [Protocol],
    /// The names of the sites.
    pub sites: &'a [String],
}

impl Listeners {
    /// Opens all listeners of `config`, from `sockets` where they have them. No connection is accepted yet. `hits` counts DNS clients that
    /// reach a limit.
    pub(crate) fn open(
        config: &Config,
        protocols: &[Protocol],
        zones: &SharedZones,
        sockets: &mut Sockets,
        hits: &LimitHits,
        runtime: &SharedRuntime,
    ) -> anyhow::Result<Self> {
        let mut clients = clients(config, sockets)?;
        let operator = config.admin.as_ref();
        let operator = operator
            .map(|admin| listen::bind_or_take(admin.address, sockets))
            .transpose()?;
        if protocols.contains(&Protocol::Http3) && !config.listen.tls().is_empty() {
            listen::bind_udp(&mut clients, sockets)?;
        }
        let names = names(config, zones, sockets, runtime)?;
        Ok(Self {
            clients,
            operator,
            names: names.map(|names| names.with_limit_hits(hits)),
        })
    }

    /// The addresses of all listeners.
    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let clients = self.clients.iter().map(|bound| bound.info.address);
        let operator = self.operator.as_ref().map(Listener::address);
        let names = self.names.iter().flat_map(DnsServer::addresses);
        clients.chain(operator).chain(names).collect()
    }

    /// The addresses, with the `protocols` for clients and the `sites`.
    pub(crate) fn ready<'a>(&'a self, protocols: &'a [Protocol], sites: &'a [String]) -> Ready<'a> {
        Ready {
            listening: self.clients.iter().map(|bound| &bound.info).collect(),
            admin: self.operator.as_ref().map(Listener::address),
            dns: self.names.iter().flat_map(DnsServer::addresses).collect(),
            protocols,
            sites,
        }
    }
}

/// The TCP listeners for clients.
fn clients(config: &Config, sockets: &mut Sockets) -> anyhow::Result<Vec<BoundListener>> {
    let requested = [(config.listen.tls(), true), (&config.listen.plain, false)];
    let mut listeners = Vec::new();
    for (addresses, tls) in requested {
        for &address in addresses {
            let listener = listen::bind_or_take(address, sockets)?;
            listeners.push(BoundListener {
                info: ListenerInfo {
                    address: listener.address(),
                    tls,
                    quic: false,
                    host: None,
                },
                tcp: Some(listener),
                quic: None,
                pending_quic_socket: None,
            });
        }
    }
    Ok(listeners)
}

/// The DNS server for `zones`, if configured.
fn names(
    config: &Config,
    zones: &SharedZones,
    sockets: &mut Sockets,
    runtime: &SharedRuntime,
) -> anyhow::Result<Option<DnsServer>> {
    let addresses = &config.dns.listen[..];
    if addresses.is_empty() {
        return Ok(None);
    }
    let (limits, runtime) = (ServeLimits::default(), runtime.clone());
    let server = DnsServer::bind_or_inherit(addresses, sockets, zones.clone(), limits, runtime);
    let server = server.with_context(|| format!("cannot start the DNS server on {addresses:?}"))?;
    Ok(Some(server))
}

/// Closes inherited sockets that the configuration does not use, and prints a note for each.
pub(crate) fn close_unused(sockets: &mut Sockets, notices: &Notices) {
    for address in sockets.close_unused() {
        notices.error(
            format_args!("closed the inherited socket {address}"),
            ": it is not in the configuration",
        );
    }
}
