//! Detects the protocol of a connection by its first bytes, layer by layer.
//!
//! ```text
//! 16 03 ........ TLS ── opened ─▶ ALPN spdy/*, or another conversation inside
//! GET / HTTP/1.1 HTTP ─ Upgrade: SPDY/3.1, answered 101 ─▶ SPDY
//!                ├───── WebSocket of Kubernetes, answered 101 ─▶ frames ─▶ SPDY inside
//!                └───── CONNECT, answered 2xx ─▶ another conversation inside
//! 80 02, 80 03 . SPDY
//! anything else  another protocol: ignored
//! ```

use bytes::{Buf, Bytes, BytesMut};
use spdy_clock::Instant;
use spdy_frame::version::Version;

use crate::direction::Direction;
use crate::event::{DetectionMethod, EventKind, SessionInfo};
use crate::http1::{self, Head, Heads, Switch};
use crate::limits::Limits;
use crate::session::Session;
use crate::timeline::Summary;
use crate::tls::key_log::KeyLog;
use crate::tls::{Tls, TlsOutput};
use crate::websocket::{WebSocket, WebSocketOutput};

/// Maximum nesting of conversations: CONNECT, TLS, Upgrade; proxies use at most TLS in TLS.
const DEPTH: usize = 6;

/// Parameters of a conversation for each piece.
pub(crate) struct Context<'a> {
    pub(crate) limits: &'a Limits,
    pub(crate) keys: &'a KeyLog,
    /// Decode SPDY as this version, independent of the bytes.
    pub(crate) forced: Option<Version>,
    /// Data for the event at the start of a session.
    pub(crate) begun: SessionInfo,
    pub(crate) timed: bool,
    pub(crate) out: Vec<(Instant, EventKind)>,
}

#[derive(Debug)]
pub(crate) struct Conversation {
    depth: usize,
    in_tls: bool,
    layer: Layer,
}

#[derive(Debug)]
enum Layer {
    /// Not enough bytes yet.
    Unknown([BytesMut; 2]),
    Http(Box<Http>),
    Tls(Box<(Tls, Conversation)>),
    WebSocket(Box<(WebSocket, Conversation)>),
    Spdy(Box<Session>),
    Inner(Box<Conversation>),
    NotOurs,
}

#[derive(Debug, Default)]
struct Http {
    client: Heads,
    server: Heads,
    pending: Option<PendingUpgrade>,
}

#[derive(Debug)]
enum PendingUpgrade {
    Upgrade {
        target: String,
        to: String,
        body_bytes: u64,
    },
    Tunnel,
}

impl Conversation {
    pub(crate) fn new() -> Self {
        Self::within(0, false)
    }

    /// A conversation that produces no further events.
    pub(crate) const fn over() -> Self {
        Self {
            depth: 0,
            in_tls: false,
            layer: Layer::NotOurs,
        }
    }

    fn within(depth: usize, in_tls: bool) -> Self {
        let layer = match depth {
            DEPTH.. => Layer::NotOurs,
            _ => Layer::Unknown(Default::default()),
        };
        Self {
            depth,
            in_tls,
            layer,
        }
    }

    /// Starts SPDY from the first byte, as the caller requests.
    pub(crate) fn begin_spdy(&mut self, at: Instant, version: Version, around: &mut Context<'_>) {
        self.begin(at, DetectionMethod::Forced, version, Some(version), around);
    }

    /// True if no SPDY was found, and none will be.
    pub(crate) fn is_not_ours(&self) -> bool {
        match &self.layer {
            Layer::NotOurs => true,
            Layer::Inner(inner) => inner.is_not_ours(),
            Layer::Tls(tls) => tls.1.is_not_ours(),
            Layer::WebSocket(socket) => socket.1.is_not_ours(),
            Layer::Unknown(_) | Layer::Http(_) | Layer::Spdy(_) => false,
        }
    }

    fn begin(
        &mut self,
        at: Instant,
        found: DetectionMethod,
        wire: Version,
        version: Option<Version>,
        around: &mut Context<'_>,
    ) {
        let wire = around.forced.unwrap_or(wire);
        let begun = SessionInfo {
            version: around.forced.or(version),
            found,
            tls: self.in_tls,
            ..around.begun.clone()
        };
        around
            .out
            .push((at, EventKind::SessionStart(begun.clone())));
        let session = Session::new(wire, begun, around.timed, at, around.limits);
        self.layer = Layer::Spdy(Box::new(session));
    }

    pub(crate) fn push(
        &mut self,
        at: Instant,
        direction: Direction,
        bytes: &[u8],
        around: &mut Context<'_>,
    ) {
        match &mut self.layer {
            Layer::NotOurs => {}
            Layer::Inner(inner) => inner.push(at, direction, bytes, around),
            Layer::Spdy(session) => session.push(at, direction, bytes, &mut around.out),
            Layer::Unknown(held) => {
                held[direction.index()].extend_from_slice(bytes);
                self.detect(at, direction, around);
            }
            Layer::Http(http) => {
                let heads = match direction {
                    Direction::ToServer => &mut http.client,
                    Direction::ToClient => &mut http.server,
                };
                heads.input.extend_from_slice(bytes);
                self.handle_heads(at, around);
            }
            Layer::Tls(tls) => {
                let mut opened = Vec::new();
                tls.0.push(at, direction, bytes, around.keys, &mut opened);
                self.handle_tls(opened, around);
            }
            Layer::WebSocket(socket) => {
                let mut unframed = Vec::new();
                socket.0.push(at, direction, bytes, &mut unframed);
                socket.1.handle_websocket(unframed, around);
            }
        }
    }

    pub(crate) fn gap(
        &mut self,
        at: Instant,
        direction: Direction,
        len: u64,
        around: &mut Context<'_>,
    ) {
        match &mut self.layer {
            Layer::NotOurs | Layer::Http(_) => {}
            Layer::Unknown(_) => self.layer = Layer::NotOurs,
            Layer::Inner(inner) => inner.gap(at, direction, len, around),
            Layer::Spdy(session) => session.gap(at, direction, len, &mut around.out),
            Layer::Tls(tls) => {
                let mut opened = Vec::new();
                tls.0.gap(at, direction, len, &mut opened);
                self.handle_tls(opened, around);
            }
            Layer::WebSocket(socket) => {
                let mut unframed = Vec::new();
                socket.0.gap(at, direction, len, &mut unframed);
                socket.1.handle_websocket(unframed, around);
            }
        }
    }

    /// Ends the conversation; returns the session's summary, if there was one.
    pub(crate) fn finish(self, at: Instant, whole: bool) -> Option<Summary> {
        match self.layer {
            Layer::Spdy(session) => Some(session.finish(at, whole)),
            Layer::Inner(inner) => inner.finish(at, whole),
            Layer::Tls(tls) => tls.1.finish(at, whole),
            Layer::WebSocket(socket) => socket.1.finish(at, whole),
            _ => None,
        }
    }

    /// Detects the protocol by the first bytes of `direction`.
    fn detect(&mut self, at: Instant, direction: Direction, around: &mut Context<'_>) {
        let Layer::Unknown(held) = &mut self.layer else {
            return;
        };
        let first = &held[direction.index()];
        let spdy = match first[..] {
            [] | [0x80] | [0x16] => return,
            [0x80, 2 | 3] | [0x80, 2 | 3, _] => return,
            // Only known frame types, so that other binary protocols are not detected as SPDY.
            [0x80, 2, 0, 1..=10, ..] => Some((Version::V2, Some(Version::V2))),
            [0x80, 3, 0, 1..=10, ..] => Some((Version::V31, None)),
            _ => None,
        };
        let tls = first[0] == 0x16 && first[1] == 3;
        let http = match direction {
            Direction::ToServer => http1::begins_request(first),
            Direction::ToClient if first.len() < 5 && b"HTTP/".starts_with(first) => None,
            Direction::ToClient => Some(first.starts_with(b"HTTP/")),
        };
        let held = std::mem::take(held);
        if let Some((wire, version)) = spdy {
            self.begin(at, DetectionMethod::FirstBytes, wire, version, around);
        } else if tls {
            let inner = Self::within(self.depth + 1, true);
            let tls = Tls::new(around.limits.clone());
            self.layer = Layer::Tls(Box::new((tls, inner)));
        } else {
            match http {
                Some(true) => self.layer = Layer::Http(Box::default()),
                Some(false) => self.layer = Layer::NotOurs,
                None => {
                    self.layer = Layer::Unknown(held);
                    return;
                }
            }
        }
        for (direction, bytes) in Direction::BOTH.into_iter().zip(held) {
            if !bytes.is_empty() {
                self.push(at, direction, &bytes, around);
            }
        }
    }

    fn handle_tls(&mut self, opened: Vec<TlsOutput>, around: &mut Context<'_>) {
        for opened in opened {
            let Layer::Tls(tls) = &mut self.layer else {
                return;
            };
            let (tls, inner) = &mut **tls;
            match opened {
                TlsOutput::Alpn(at, name) => {
                    let version = Version::ALL.into_iter().find(|v| v.alpn() == name);
                    if let (Some(version), Layer::Unknown(_)) = (version, &inner.layer) {
                        inner.begin(at, DetectionMethod::Alpn, version, Some(version), around);
                    } else if name == "h2" {
                        inner.layer = Layer::NotOurs;
                    }
                }
                TlsOutput::Plain(at, direction, bytes) => inner.push(at, direction, &bytes, around),
                TlsOutput::Gap(at, direction, len) => inner.gap(at, direction, len, around),
                TlsOutput::Failed(at, reason) => {
                    if let Layer::Unknown(_) = &inner.layer {
                        let (server_name, offered) = tls.offered();
                        let what = EventKind::EncryptedTls {
                            server_name: server_name.map(str::to_owned),
                            offered: offered.to_vec(),
                            reason,
                        };
                        around.out.push((at, what));
                        self.layer = Layer::NotOurs;
                        return;
                    }
                    if !inner.is_not_ours() {
                        around.out.push((at, EventKind::Unreadable(reason)));
                    }
                }
            }
        }
    }

    /// Handles the content of a WebSocket around this conversation.
    fn handle_websocket(&mut self, unframed: Vec<WebSocketOutput>, around: &mut Context<'_>) {
        for unframed in unframed {
            match unframed {
                WebSocketOutput::Bytes(at, direction, bytes) => {
                    self.push(at, direction, &bytes, around);
                }
                WebSocketOutput::Gap(at, direction, len) => self.gap(at, direction, len, around),
                WebSocketOutput::Lost(at, reason) => {
                    around.out.push((at, EventKind::Unreadable(reason)));
                }
            }
        }
    }

    fn handle_heads(&mut self, at: Instant, around: &mut Context<'_>) {
        let limit = around.limits.http_head_bytes;
        let Layer::Http(http) = &mut self.layer else {
            return;
        };
        loop {
            // Before each response, so that the result does not depend on buffering of the next one.
            while http.pending.is_none() {
                match http.client.poll(limit) {
                    Some(Head::UpgradeRequest {
                        target,
                        to,
                        body_bytes,
                    }) => {
                        http.pending = Some(PendingUpgrade::Upgrade {
                            target,
                            to,
                            body_bytes,
                        });
                    }
                    Some(Head::ConnectRequest) => http.pending = Some(PendingUpgrade::Tunnel),
                    Some(Head::Response { .. }) => {}
                    None => break,
                }
            }
            if http.client.input.len() > around.limits.waiting_bytes {
                self.layer = Layer::NotOurs;
                return;
            }
            let (status, line, switch) = match http.server.poll(limit) {
                Some(Head::Response {
                    status,
                    line,
                    switch,
                }) => (status, line, switch),
                Some(Head::UpgradeRequest { .. } | Head::ConnectRequest) => continue,
                None => return,
            };
            match (&http.pending, status) {
                // The capture may lack the request: a 101 to SPDY is enough.
                (pending, 101) if let Some(switch) = switch => {
                    let (target, body) = match pending {
                        Some(PendingUpgrade::Upgrade {
                            target, body_bytes, ..
                        }) => (Some(target.clone()), *body_bytes),
                        _ => (None, 0),
                    };
                    let (mut client, server) = http.rest();
                    let body = usize::try_from(body).unwrap_or(usize::MAX);
                    client.advance(body.min(client.len()));
                    let version = Some(Version::V31);
                    match switch {
                        Switch::Spdy => {
                            self.begin(at, DetectionMethod::Upgrade, Version::V31, version, around);
                        }
                        Switch::SpdyInWebSocket => {
                            let mut inner = Self::within(self.depth + 1, self.in_tls);
                            inner.begin(
                                at,
                                DetectionMethod::WebSocket,
                                Version::V31,
                                version,
                                around,
                            );
                            let socket = WebSocket::default();
                            self.layer = Layer::WebSocket(Box::new((socket, inner)));
                        }
                        Switch::Channels(protocol) => {
                            let channels = EventKind::Channels { target, protocol };
                            around.out.push((at, channels));
                            self.layer = Layer::NotOurs;
                        }
                    }
                    self.push(at, Direction::ToServer, &client, around);
                    self.push(at, Direction::ToClient, &server, around);
                    return;
                }
                (Some(PendingUpgrade::Tunnel), 200..=299) => {
                    let (client, server) = http.rest();
                    let inner = Self::within(self.depth + 1, self.in_tls);
                    self.layer = Layer::Inner(Box::new(inner));
                    self.push(at, Direction::ToServer, &client, around);
                    self.push(at, Direction::ToClient, &server, around);
                    return;
                }
                (Some(PendingUpgrade::Upgrade { target, to, .. }), _) => {
                    let message = format!("{target} requested {to}, response: {line}");
                    around.out.push((at, EventKind::Unreadable(message)));
                    http.pending = None;
                }
                _ => http.pending = None,
            }
        }
    }
}

impl Http {
    fn rest(&mut self) -> (Bytes, Bytes) {
        (
            self.client.input.split().freeze(),
            self.server.input.split().freeze(),
        )
    }
}
