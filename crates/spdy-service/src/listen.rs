//! Binds the listeners of `spdy serve` and `spdy accelerate`: each address by TCP, those with TLS by UDP as well if HTTP/3 is served.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};

use anyhow::Context;
use http::HeaderValue;
use serde::Serialize;
use spdy::runtime::SharedRuntime;
use spdy_net::listen::Listener;
use spdy_net::listen::quic::QuicListener;
use spdy_net::listen::sockets::Sockets;
use spdy_net::network::SystemNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::tls::ServerTls;
use spdy_server::alt_svc;
use spdy_server::serve::ServerOptions;

use crate::error::Usage;

/// Default address for plain connections.
const PLAIN: &str = "127.0.0.1:8080";
/// Default address for TLS connections.
const TLS: &str = "127.0.0.1:8443";

/// The address of one listener, as it is printed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ListenerInfo {
    /// Its address; TCP and UDP have the same port.
    pub address: SocketAddr,
    /// True if its clients use TLS.
    pub tls: bool,
    /// True if HTTP/3 is served at the same UDP port.
    pub quic: bool,
    /// The host that it serves, with `--per-host`; `None` if it serves all.
    pub host: Option<String>,
}

/// An address, and the sockets that are bound there.
#[derive(Debug)]
pub struct BoundListener {
    /// The TCP listener, unless only HTTP/3 is served.
    pub tcp: Option<Listener>,
    /// The listener for HTTP/3.
    pub quic: Option<QuicListener>,
    /// The UDP socket, while another process still reads it.
    pub pending_quic_socket: Option<UdpSocket>,
    /// What is printed of it.
    pub info: ListenerInfo,
}

impl BoundListener {
    /// The `Alt-Svc` value of responses over TCP, if HTTP/3 is served.
    pub fn alt_svc(&self) -> Option<HeaderValue> {
        let ListenerInfo { address, quic, .. } = &self.info;
        quic.then(|| alt_svc::h3_at(address.port()))
    }
}

/// The requested listeners.
#[derive(Clone, Copy, Debug)]
pub struct ListenSpec<'a> {
    /// For connections without TLS.
    pub plain: Option<SocketAddr>,
    /// For connections with TLS. Without both addresses, the defaults of both are used.
    pub tls: Option<SocketAddr>,
    /// Hosts with an address of their own.
    pub hosts: Option<&'a [String]>,
    /// The protocols that are served.
    pub protocols: &'a [Protocol],
}

/// Binds every requested address, by TCP unless HTTP/3 is the only protocol.
///
/// # Errors
///
/// The addresses do not fit the protocols, or one cannot be bound.
pub fn bind_all(spec: &ListenSpec<'_>) -> anyhow::Result<Vec<BoundListener>> {
    let by_tcp = spec
        .protocols
        .iter()
        .any(|protocol| !protocol.is_over_quic());
    let by_quic = spec
        .protocols
        .iter()
        .any(|protocol| protocol.is_over_quic());
    let (plain, tls) = match (spec.plain, spec.tls) {
        (None, None) => (PLAIN.parse().ok().filter(|_| by_tcp), TLS.parse().ok()),
        (Some(_), None) if by_quic => {
            let reason = "h3 needs TLS: add --tls, or remove h3 from --protocols";
            return Err(Usage(reason.to_owned()).into());
        }
        (Some(_), _) if !by_tcp => {
            let reason = "h3 needs TLS: add another protocol for --plain";
            return Err(Usage(reason.to_owned()).into());
        }
        addresses => addresses,
    };
    let mut places: Vec<(SocketAddr, bool, Option<String>)> = Vec::new();
    for (address, secure) in [(plain, false), (tls, true)] {
        let Some(address) = address else {
            continue;
        };
        places.push((address, secure, None));
        for (nth, host) in spec.hosts.unwrap_or_default().iter().enumerate() {
            let ip = next_address(address.ip(), nth + 1)?;
            let address = SocketAddr::new(ip, address.port());
            places.push((address, secure, Some(host.clone())));
        }
    }
    let mut listeners = Vec::with_capacity(places.len());
    // With port 0 all hosts of one kind share the port that the system chose for the first.
    let mut chosen = BTreeMap::new();
    for (mut address, tls, host) in places {
        if address.port() == 0 {
            address.set_port(chosen.get(&tls).copied().unwrap_or(0));
        }
        let tcp = by_tcp.then(|| bind(address)).transpose()?;
        let address = tcp.as_ref().map_or(address, Listener::address);
        chosen.entry(tls).or_insert(address.port());
        let quic = false;
        listeners.push(BoundListener {
            tcp,
            quic: None,
            pending_quic_socket: None,
            info: ListenerInfo {
                address,
                tls,
                quic,
                host,
            },
        });
    }
    Ok(listeners)
}

/// Binds UDP, or takes it from `sockets`, for each listener with TLS.
///
/// # Errors
///
/// A UDP socket cannot be bound.
pub fn bind_udp(listeners: &mut [BoundListener], sockets: &mut Sockets) -> anyhow::Result<()> {
    let mut chosen = 0;
    for bound in listeners.iter_mut().filter(|bound| bound.info.tls) {
        let address = &mut bound.info.address;
        if address.port() == 0 {
            address.set_port(chosen);
        }
        let socket = sockets.udp(*address).and_then(|socket| {
            *address = socket.local_addr()?;
            Ok(socket)
        });
        let socket = socket.with_context(|| format!("cannot listen on {address} for h3"))?;
        chosen = address.port();
        bound.info.quic = true;
        bound.pending_quic_socket = Some(socket);
    }
    Ok(())
}

/// Listens for HTTP/3 on each of these sockets.
///
/// # Errors
///
/// The TLS options do not fit QUIC, or a socket fails.
pub fn listen_for_quic(
    listeners: &mut [BoundListener],
    tls: &ServerTls,
    options: &ServerOptions,
    runtime: &SharedRuntime,
) -> anyhow::Result<()> {
    for bound in listeners {
        let Some(socket) = bound.pending_quic_socket.take() else {
            continue;
        };
        let listener = quic(socket, tls, options, runtime);
        let at = bound.info.address;
        bound.quic = Some(listener.with_context(|| format!("cannot listen on {at} for h3"))?);
    }
    Ok(())
}

/// Listens for HTTP/3 at `socket`.
///
/// # Errors
///
/// As [`listen_for_quic`].
pub fn quic(
    socket: UdpSocket,
    tls: &ServerTls,
    options: &ServerOptions,
    runtime: &SharedRuntime,
) -> std::io::Result<QuicListener> {
    let socket = SystemNetwork::datagrams_from_std(socket)?;
    QuicListener::over(socket, tls, options, runtime)
}

/// Binds one address by TCP.
///
/// # Errors
///
/// The address cannot be bound.
pub fn bind(address: SocketAddr) -> anyhow::Result<Listener> {
    Listener::bind(address).with_context(|| format!("cannot listen on {address}"))
}

/// Takes a socket for the address from `sockets`, or binds one.
///
/// # Errors
///
/// The address cannot be bound.
pub fn bind_or_take(address: SocketAddr, sockets: &mut Sockets) -> anyhow::Result<Listener> {
    let listener = sockets.tcp(address);
    listener.with_context(|| format!("cannot listen on {address}"))
}

/// The address `nth` after `base`; loopback has sixteen million of them.
fn next_address(base: IpAddr, nth: usize) -> anyhow::Result<IpAddr> {
    let next = match base {
        IpAddr::V4(base) => u32::try_from(nth)
            .ok()
            .and_then(|nth| u32::from(base).checked_add(nth))
            .map(|next| IpAddr::V4(next.into())),
        IpAddr::V6(_) => None,
    };
    next.ok_or_else(|| {
        Usage(format!(
            "--per-host cannot use the addresses after {base}: expected an IPv4 address"
        ))
        .into()
    })
}
