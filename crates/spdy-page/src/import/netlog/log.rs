//! Events by their sources: requests, the jobs that assign connections to them, sockets, HTTP/2 sessions.
//!
//! ```text
//! URL_REQUEST ─ leg ─ transaction ── job ──► SOCKET         bytes in both directions, without TLS
//!    │           (again, if the        └───► HTTP2_SESSION ─► SOCKET
//!    │            connection was dead)            └ streams: request, lists of fields
//!    └─ leg (the target of a redirect)
//! ```

use std::collections::{BTreeMap, HashMap};

use data_encoding::BASE64;

use super::event::{Constants, Event, Id, Params};

/// Position of a transaction: request, leg, transaction.
pub(super) type TransactionId = (Id, usize, usize);

/// All connections of the log, and the requests on them.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The types of events by number. For lookups only, never for iteration.
    kinds: HashMap<u64, EventKind>,
    begin: u64,
    end: u64,
    /// Names of Chromium's errors.
    pub(super) errors: BTreeMap<i64, String>,
    /// Milliseconds from 1970 to the zero of the log's clock.
    pub(super) epoch_ms: f64,
    /// True once the log has named its event types; without them no event can be parsed.
    pub(super) has_event_kinds: bool,
    pub(super) requests: BTreeMap<Id, Request>,
    jobs: BTreeMap<Id, Job>,
    pub(super) sockets: BTreeMap<Id, Socket>,
    pub(super) sessions: BTreeMap<Id, Session>,
}

/// One URL_REQUEST: a request and the redirects that it followed.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) priority: String,
    pub(super) hops: Vec<Hop>,
}

/// One URL of a request.
#[derive(Debug, Default)]
pub(super) struct Hop {
    pub(super) url: String,
    pub(super) method: String,
    /// Milliseconds of the log's clock.
    pub(super) started: f64,
    /// It is the page itself, not a resource of a page.
    pub(super) is_main_frame: bool,
    /// The site of its page, twice.
    pub(super) network_isolation_key: String,
    pub(super) transactions: Vec<Transaction>,
    /// The error, if it failed.
    pub(super) net_error: Option<i64>,
}

/// A request on the wire.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    pub(super) carrier: ConnectionIds,
    /// The request line with its end; empty for protocols without one.
    pub(super) line: String,
    /// `Name: value` each.
    pub(super) request_fields: Vec<String>,
    pub(super) sent: f64,
    /// Chromium's parsed head: the status line, then `Name: value` each.
    pub(super) response_fields: Vec<String>,
    pub(super) answered: Option<f64>,
    /// Time of its last event.
    pub(super) last: f64,
    /// Bytes of the body that the browser read before decoding.
    pub(super) encoded: Vec<u8>,
    /// Bytes that it read where no decoding was needed.
    pub(super) plain: Vec<u8>,
}

/// An HTTP_STREAM_JOB, which assigns a connection to a request.
#[derive(Clone, Copy, Debug, Default)]
struct Job {
    carrier: ConnectionIds,
    /// The transaction that uses it.
    place: Option<TransactionId>,
}

/// The connection of a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ConnectionIds {
    pub(super) socket: Option<Id>,
    pub(super) session: Option<Id>,
}

/// A TCP connection.
#[derive(Debug, Default)]
pub(super) struct Socket {
    is_tls: bool,
    pub(super) sent: Vec<u8>,
    pub(super) received: Vec<u8>,
    /// Some bytes of it could not be read.
    pub(super) is_damaged: bool,
    /// Address and port of the other end.
    pub(super) remote: String,
    /// Its HTTP/1.1 transactions, in their order: request, leg, transaction.
    pub(super) carried: Vec<TransactionId>,
}

/// An HTTP/2 session.
#[derive(Debug, Default)]
pub(super) struct Session {
    pub(super) socket: Option<Id>,
    pub(super) streams: BTreeMap<u64, Stream>,
}

/// One of its streams.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The received lists of fields, including interim responses and trailers.
    pub(super) heads: Vec<Vec<String>>,
    /// Its transaction: request, leg, transaction.
    pub(super) request: Option<TransactionId>,
}

/// The types of events that are used.
#[derive(Clone, Copy, Debug)]
enum EventKind {
    Alive,
    StartJob,
    BoundToJob,
    SendHead,
    ReadHead,
    BytesRead,
    PlainBytesRead,
    Error,
    JobSocket,
    JobSession,
    Connected,
    Tls,
    SocketSent,
    SocketReceived,
    TlsSent,
    TlsReceived,
    SessionSocket,
    StreamSent,
    StreamReceived,
}

impl EventKind {
    const NAMES: [(&'static str, Self); 23] = [
        ("REQUEST_ALIVE", Self::Alive),
        ("URL_REQUEST_START_JOB", Self::StartJob),
        ("HTTP_STREAM_REQUEST_BOUND_TO_JOB", Self::BoundToJob),
        ("HTTP_TRANSACTION_SEND_REQUEST_HEADERS", Self::SendHead),
        (
            "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS",
            Self::SendHead,
        ),
        ("HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS", Self::SendHead),
        ("HTTP_TRANSACTION_READ_RESPONSE_HEADERS", Self::ReadHead),
        ("URL_REQUEST_JOB_BYTES_READ", Self::BytesRead),
        ("URL_REQUEST_JOB_FILTERED_BYTES_READ", Self::PlainBytesRead),
        ("FAILED", Self::Error),
        ("CANCELLED", Self::Error),
        ("SOCKET_POOL_BOUND_TO_SOCKET", Self::JobSocket),
        (
            "HTTP2_SESSION_POOL_FOUND_EXISTING_SESSION",
            Self::JobSession,
        ),
        (
            "HTTP2_SESSION_POOL_IMPORTED_SESSION_FROM_SOCKET",
            Self::JobSession,
        ),
        ("TCP_CONNECT", Self::Connected),
        ("SSL_CONNECT", Self::Tls),
        ("SOCKET_BYTES_SENT", Self::SocketSent),
        ("SOCKET_BYTES_RECEIVED", Self::SocketReceived),
        ("SSL_SOCKET_BYTES_SENT", Self::TlsSent),
        ("SSL_SOCKET_BYTES_RECEIVED", Self::TlsReceived),
        ("HTTP2_SESSION_INITIALIZED", Self::SessionSocket),
        ("HTTP2_SESSION_SEND_HEADERS", Self::StreamSent),
        ("HTTP2_SESSION_RECV_HEADERS", Self::StreamReceived),
    ];
}

impl Log {
    /// Stores the names of numbers, which precede the events.
    pub(super) fn set_constants(&mut self, constants: Constants) {
        let phase = |name| constants.log_event_phase.get(name).copied();
        // These values have never changed.
        self.begin = phase("PHASE_BEGIN").unwrap_or(1);
        self.end = phase("PHASE_END").unwrap_or(2);
        for (name, what) in EventKind::NAMES {
            if let Some(&number) = constants.log_event_types.get(name) {
                self.kinds.insert(number, what);
            }
        }
        self.has_event_kinds = !self.kinds.is_empty();
        self.epoch_ms = constants.time_tick_offset;
        for (name, number) in constants.net_error {
            self.errors.insert(number, name);
        }
    }

    /// Handles the next event.
    pub(super) fn take(&mut self, event: &Event<'_>) {
        let Some(&what) = self.kinds.get(&event.kind) else {
            return;
        };
        let (id, params) = (event.source.id, &event.params);
        let time = event.time.number().unwrap_or_default();
        match what {
            EventKind::Alive if event.phase == self.begin => {
                let request = self.requests.entry(id).or_default();
                request.priority = owned(params.priority.text());
            }
            EventKind::StartJob if event.phase == self.begin => self.start_hop(id, time, params),
            EventKind::Alive | EventKind::StartJob | EventKind::Error => self.end_hop(id, params),
            EventKind::BoundToJob => self.bind(id, params),
            EventKind::SendHead => self.send_head(id, time, params),
            EventKind::ReadHead => {
                if let Some(transaction) = self.transaction(id) {
                    transaction.response_fields = list(params);
                    transaction.answered = Some(time);
                    transaction.last = time;
                }
            }
            EventKind::BytesRead | EventKind::PlainBytesRead => {
                let Some(bytes) = bytes(params) else { return };
                if let Some(transaction) = self.transaction(id) {
                    transaction.last = time;
                    match what {
                        EventKind::BytesRead => transaction.encoded.extend_from_slice(&bytes),
                        _ => transaction.plain.extend_from_slice(&bytes),
                    }
                }
            }
            EventKind::JobSocket => {
                self.jobs.entry(id).or_default().carrier.socket = params.source_dependency.source();
            }
            EventKind::JobSession => {
                self.jobs.entry(id).or_default().carrier.session =
                    params.source_dependency.source();
            }
            EventKind::Connected => {
                if let Some(remote) = params.remote_address.text() {
                    self.sockets.entry(id).or_default().remote = remote.to_owned();
                }
            }
            EventKind::Tls if event.phase == self.begin => {
                self.sockets.entry(id).or_default().start_tls();
            }
            EventKind::Tls => {}
            EventKind::SocketSent
            | EventKind::SocketReceived
            | EventKind::TlsSent
            | EventKind::TlsReceived => {
                self.sockets.entry(id).or_default().take(what, params);
            }
            EventKind::SessionSocket => {
                self.sessions.entry(id).or_default().socket = params.source_dependency.source();
            }
            EventKind::StreamSent => {
                let job = params.source_dependency.source();
                let place = job.and_then(|job| self.jobs.get(&job)?.place);
                if let Some(stream) = self.stream(id, params) {
                    stream.request = place;
                }
            }
            EventKind::StreamReceived => {
                if let Some(stream) = self.stream(id, params) {
                    stream.heads.push(list(params));
                }
            }
        }
    }

    fn start_hop(&mut self, id: Id, started: f64, params: &Params<'_>) {
        let (is_main_frame, key) = (&params.request_type, &params.network_isolation_key);
        self.requests.entry(id).or_default().hops.push(Hop {
            url: owned(params.url.text()),
            method: owned(params.method.text()),
            started,
            is_main_frame: is_main_frame.text() == Some("main frame"),
            network_isolation_key: owned(key.text()),
            ..Hop::default()
        });
    }

    fn end_hop(&mut self, id: Id, params: &Params<'_>) {
        let error = params.net_error.number().map(|error| error as i64);
        if let Some(leg) = self.hop(id)
            && error.is_some_and(|error| error != 0)
        {
            leg.net_error = error;
        }
    }

    fn bind(&mut self, id: Id, params: &Params<'_>) {
        let Some(job) = params.source_dependency.source() else {
            return;
        };
        let carrier = self.jobs.entry(job).or_default().carrier;
        let Some(leg) = self.hop(id) else { return };
        leg.transactions.push(Transaction {
            carrier,
            ..Transaction::default()
        });
        let place = self.place(id);
        self.jobs.entry(job).or_default().place = place;
    }

    fn send_head(&mut self, id: Id, time: f64, params: &Params<'_>) {
        let Some(leg) = self.hop(id) else { return };
        // Each transaction gets a connection; without a new one, an older one is reused.
        if leg
            .transactions
            .last()
            .is_none_or(|last| !last.request_fields.is_empty())
        {
            let carrier = leg.transactions.last().map(|last| last.carrier);
            leg.transactions.push(Transaction {
                carrier: carrier.unwrap_or_default(),
                ..Transaction::default()
            });
        }
        let Some(transaction) = leg.transactions.last_mut() else {
            unreachable!("an element was just pushed")
        };
        transaction.line = owned(params.line.text());
        transaction.request_fields = list(params);
        (transaction.sent, transaction.last) = (time, time);
        let ConnectionIds { socket, session } = transaction.carrier;
        if let (Some(socket), None) = (socket, session)
            && let Some(place) = self.place(id)
        {
            self.sockets.entry(socket).or_default().carried.push(place);
        }
    }

    fn hop(&mut self, id: Id) -> Option<&mut Hop> {
        self.requests.get_mut(&id)?.hops.last_mut()
    }

    fn transaction(&mut self, id: Id) -> Option<&mut Transaction> {
        self.hop(id)?.transactions.last_mut()
    }

    fn stream(&mut self, session: Id, params: &Params<'_>) -> Option<&mut Stream> {
        let number = params.stream_id.number()? as u64;
        let session = self.sessions.entry(session).or_default();
        Some(session.streams.entry(number).or_default())
    }

    /// Position of the last transaction of the request `id`.
    fn place(&self, id: Id) -> Option<TransactionId> {
        let legs = &self.requests.get(&id)?.hops;
        let leg = legs.len().checked_sub(1)?;
        Some((id, leg, legs[leg].transactions.len().checked_sub(1)?))
    }
}

impl Socket {
    /// The following bytes are encrypted with TLS, and their plain text has its own events.
    fn start_tls(&mut self) {
        if !std::mem::replace(&mut self.is_tls, true) {
            self.sent.clear();
            self.received.clear();
        }
    }

    fn take(&mut self, what: EventKind, params: &Params<'_>) {
        let is_sealed = matches!(what, EventKind::SocketSent | EventKind::SocketReceived);
        if matches!(what, EventKind::TlsSent | EventKind::TlsReceived) {
            self.start_tls();
        } else if self.is_tls && is_sealed {
            return;
        }
        match (bytes(params), what) {
            (Some(bytes), EventKind::SocketSent | EventKind::TlsSent) => {
                self.sent.extend_from_slice(&bytes);
            }
            (Some(bytes), _) => self.received.extend_from_slice(&bytes),
            // The end of a connection is logged as 0 bytes or as an error.
            (None, _) if params.byte_count.number() == Some(0.0) => {}
            (None, _) => self.is_damaged = true,
        }
    }
}

fn owned(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

fn list(params: &Params<'_>) -> Vec<String> {
    let texts = params.headers.texts().iter();
    texts.map(|text| text.clone().into_owned()).collect()
}

fn bytes(params: &Params<'_>) -> Option<Vec<u8>> {
    BASE64.decode(params.bytes.text()?.as_bytes()).ok()
}
