//! One end of a connection: its TCP, its timer, and the tasks that wait for it.
//!
//! The network moves segments between ends (`packet_network.rs`), and sockets read and write them (`tcp_socket.rs`). Both use this
//! file.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Waker};

use spdy_clock::Instant;
use spdy_netem::path::Direction;
use spdy_netem::tcp::Tcp;

use crate::runtime::TimerKey;

/// Called with the server's end of a connection when its handshake is done.
pub(super) type OnEstablished = Arc<dyn Fn(EndpointId) + Send + Sync>;

/// Both ends of a connection.
pub(super) struct Connection {
    pub(super) to: SocketAddr,
    pub(super) client: Endpoint,
    /// `None` until the first SYN arrives.
    pub(super) server: Option<Endpoint>,
}

/// One end of a connection and the wakers of its waiting tasks.
pub(super) struct Endpoint {
    pub(super) tcp: Tcp,
    pub(super) timer: Option<TimerKey>,
    reader: Option<Waker>,
    writer: Option<Waker>,
    /// Takes the connection when its handshake is done: only at a server, and only once.
    pub(super) on_established: Option<OnEstablished>,
    /// The connection was refused: there is no listener.
    pub(super) is_refused: bool,
    /// Its socket was dropped.
    pub(super) is_abandoned: bool,
}

impl Endpoint {
    pub(super) fn new(tcp: Tcp, on_established: Option<OnEstablished>) -> Self {
        let (timer, reader, writer) = (None, None, None);
        Self {
            tcp,
            timer,
            reader,
            writer,
            on_established,
            is_refused: false,
            is_abandoned: false,
        }
    }

    fn error(&self) -> Option<io::Error> {
        if self.is_refused {
            return Some(io::ErrorKind::ConnectionRefused.into());
        }
        self.tcp.error().map(io::Error::from)
    }

    /// Takes the waker of a reader or writer that can continue, if there is one.
    pub(super) fn take_waker(&mut self) -> Option<Waker> {
        if self.reader.is_none() && self.writer.is_none() {
            return None;
        }
        let is_over = self.is_refused || self.tcp.error().is_some() || self.tcp.is_closed();
        let can_read = is_over || self.tcp.readable_bytes() > 0 || self.tcp.is_read_closed();
        let can_write = is_over || (self.tcp.is_established() && self.tcp.send_capacity() > 0);
        let reader = self.reader.take_if(|_| can_read);
        reader.or_else(|| self.writer.take_if(|_| can_write))
    }
}

/// Wakes the task that waits in `slot`, if any.
pub(super) fn wake(slot: &mut Option<Waker>) {
    if let Some(waker) = slot.take() {
        waker.wake();
    }
}

/// Identifies one end: the number of the connection, and the side.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct EndpointId {
    pub(super) connection: usize,
    pub(super) side: Side,
}

/// Which side of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Side {
    Client,
    Server,
}

impl EndpointId {
    pub(super) fn other(self) -> Self {
        let side = if self.side == Side::Client {
            Side::Server
        } else {
            Side::Client
        };
        Self { side, ..self }
    }

    pub(super) fn outward(self) -> Direction {
        if self.side == Side::Client {
            Direction::Up
        } else {
            Direction::Down
        }
    }
}

/// An endpoint that its socket has locked.
pub(crate) struct Handle<'a> {
    pub(super) endpoint: &'a mut Endpoint,
    /// True if a segment must be sent, a timer set or a task woken.
    pub(super) is_changed: bool,
}

impl Handle<'_> {
    pub(crate) fn tcp(&self) -> &Tcp {
        &self.endpoint.tcp
    }

    pub(crate) fn error(&self) -> Option<io::Error> {
        self.endpoint.error()
    }

    /// The TCP endpoint for a change.
    pub(crate) fn tcp_mut(&mut self) -> &mut Tcp {
        self.is_changed = true;
        &mut self.endpoint.tcp
    }

    pub(crate) fn wait_to_read(&mut self, cx: &Context<'_>) {
        self.endpoint.reader = Some(cx.waker().clone());
    }

    pub(crate) fn wait_to_write(&mut self, cx: &Context<'_>) {
        self.endpoint.writer = Some(cx.waker().clone());
    }
}

/// Closes the connection of a dropped socket: in order, or by a reset if bytes were left unread.
pub(crate) fn abandon(handle: &mut Handle<'_>, now: Instant) {
    handle.is_changed = true;
    let endpoint = &mut *handle.endpoint;
    endpoint.is_abandoned = true;
    (endpoint.reader, endpoint.writer) = (None, None);
    if endpoint.tcp.readable_bytes() > 0 || !endpoint.tcp.is_established() {
        endpoint.tcp.abort(now);
    } else {
        endpoint.tcp.close(now);
    }
}
