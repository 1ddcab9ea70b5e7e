//! A writer of NetLogs, with only the events that Chromium writes for a request.

use data_encoding::BASE64;
use serde_json::{Value, json};

const BEGIN: u8 = 1;
const END: u8 = 2;
const NONE: u8 = 0;

/// Names of the types; their numbers are their indices.
const TYPES: [&str; 18] = [
    "REQUEST_ALIVE",
    "URL_REQUEST_START_JOB",
    "HTTP_STREAM_REQUEST_BOUND_TO_JOB",
    "HTTP_TRANSACTION_SEND_REQUEST_HEADERS",
    "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS",
    "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
    "URL_REQUEST_JOB_BYTES_READ",
    "URL_REQUEST_JOB_FILTERED_BYTES_READ",
    "SOCKET_POOL_BOUND_TO_SOCKET",
    "HTTP2_SESSION_POOL_IMPORTED_SESSION_FROM_SOCKET",
    "TCP_CONNECT",
    "SSL_CONNECT",
    "SOCKET_BYTES_SENT",
    "SOCKET_BYTES_RECEIVED",
    "SSL_SOCKET_BYTES_SENT",
    "SSL_SOCKET_BYTES_RECEIVED",
    "HTTP2_SESSION_INITIALIZED",
    "HTTP2_SESSION_SEND_HEADERS",
];
const RECEIVED_HEADERS: usize = TYPES.len();

/// A log during its construction.
#[derive(Default)]
pub(crate) struct NetLog {
    events: Vec<String>,
    time: u64,
    last_id: u64,
}

impl NetLog {
    /// The log as a browser writes it when it exits.
    pub(crate) fn text(&self) -> String {
        let mut types: serde_json::Map<String, Value> = TYPES
            .iter()
            .enumerate()
            .map(|(at, name)| ((*name).to_owned(), at.into()))
            .collect();
        types.insert(
            "HTTP2_SESSION_RECV_HEADERS".to_owned(),
            RECEIVED_HEADERS.into(),
        );
        let constants = json!({
            "logEventTypes": types,
            "netError": {"ERR_ABORTED": -3, "ERR_CACHE_MISS": -400},
            "timeTickOffset": 1_000_000,
        });
        let events = self.events.join(",\n");
        format!("{{\"constants\":{constants},\n\"events\": [\n{events}],\n\"polledData\":{{}}}}\n")
    }

    /// An event of the source `id`, a millisecond after the last.
    pub(crate) fn event(&mut self, kind: &str, phase: u8, id: u64, params: &Value) {
        let index = TYPES.iter().position(|name| *name == kind);
        let (kind, time) = (index.unwrap_or(RECEIVED_HEADERS), self.time.to_string());
        let event = json!({"params": params, "phase": phase, "source": {"id": id, "type": 1}, "time": time, "type": kind});
        self.events.push(event.to_string());
        self.time += 1;
    }

    /// A new source id.
    pub(crate) fn id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// A TCP connection to this address.
    pub(crate) fn socket(&mut self, remote: &str) -> u64 {
        let id = self.id();
        self.event("TCP_CONNECT", END, id, &json!({"remote_address": remote}));
        id
    }

    pub(crate) fn bytes(&mut self, kind: &str, id: u64, bytes: &[u8]) {
        self.event(kind, NONE, id, &json!({"bytes": BASE64.encode(bytes)}));
    }

    /// A request that starts: the page itself, or one of its resources.
    pub(crate) fn start(&mut self, method: &str, url: &str, is_page: bool) -> u64 {
        let id = self.id();
        self.event("REQUEST_ALIVE", BEGIN, id, &json!({"priority": "HIGHEST"}));
        self.leg(id, method, url, is_page);
        id
    }

    /// The next URL of the request `id`.
    pub(crate) fn leg(&mut self, id: u64, method: &str, url: &str, is_page: bool) {
        let kind = if is_page { "main frame" } else { "other" };
        let params = json!({"method": method, "url": url, "request_type": kind,
            "network_isolation_key": "http://a.test http://a.test"});
        self.event("URL_REQUEST_START_JOB", BEGIN, id, &params);
    }

    /// Assigns `socket` to the request `id`.
    pub(crate) fn bind(&mut self, id: u64, socket: u64) {
        let job = self.id();
        let to = |id: u64| json!({"source_dependency": {"id": id, "type": 1}});
        self.event("SOCKET_POOL_BOUND_TO_SOCKET", NONE, job, &to(socket));
        self.event("HTTP_STREAM_REQUEST_BOUND_TO_JOB", NONE, id, &to(job));
    }

    /// The request `id` is sent on `socket`.
    pub(crate) fn send(&mut self, id: u64, socket: u64, head: &str) {
        self.bind(id, socket);
        let (line, fields) = head.split_once("\r\n").expect("a head");
        let fields: Vec<&str> = fields
            .split("\r\n")
            .filter(|field| !field.is_empty())
            .collect();
        let params = json!({"line": format!("{line}\r\n"), "headers": fields});
        self.event("HTTP_TRANSACTION_SEND_REQUEST_HEADERS", NONE, id, &params);
        self.bytes("SOCKET_BYTES_SENT", socket, head.as_bytes());
    }

    /// The response to the request `id` on `socket`; Chromium's parsed form is `fields` and `body`.
    pub(crate) fn answer(
        &mut self,
        id: u64,
        socket: u64,
        wire: &[u8],
        fields: &[&str],
        body: &[u8],
    ) {
        self.bytes("SOCKET_BYTES_RECEIVED", socket, wire);
        self.event(
            "HTTP_TRANSACTION_READ_RESPONSE_HEADERS",
            NONE,
            id,
            &json!({"headers": fields}),
        );
        if !body.is_empty() {
            self.bytes("URL_REQUEST_JOB_FILTERED_BYTES_READ", id, body);
        }
        self.end(id, 0);
    }

    /// The end of the request `id`, with success or an error.
    pub(crate) fn end(&mut self, id: u64, error: i32) {
        let params = if error == 0 {
            json!({})
        } else {
            json!({"net_error": error})
        };
        self.event("URL_REQUEST_START_JOB", END, id, &params);
    }

    /// A complete exchange.
    pub(crate) fn exchange(
        &mut self,
        url: &str,
        is_page: bool,
        socket: u64,
        head: &str,
        body: &str,
    ) {
        let (host, path) = url
            .trim_start_matches("http://")
            .split_once('/')
            .expect("a URL");
        let id = self.start("GET", url, is_page);
        self.send(
            id,
            socket,
            &format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        );
        let fields: Vec<&str> = head.split("\r\n").filter(|line| !line.is_empty()).collect();
        let wire = [head, body].concat();
        self.answer(id, socket, wire.as_bytes(), &fields, body.as_bytes());
    }

    /// A session of HTTP/2 on a socket under TLS, and one exchange on it. The frames are those of either side.
    pub(crate) fn http2(
        &mut self,
        url: &str,
        is_page: bool,
        answers: &[&[&str]],
        sent: &[u8],
        frames: &[u8],
    ) {
        let socket = self.socket("[::1]:443");
        self.bytes("SOCKET_BYTES_SENT", socket, b"\x16\x03\x01 hello");
        self.event("SSL_CONNECT", BEGIN, socket, &json!({}));
        self.bytes("SOCKET_BYTES_RECEIVED", socket, b"\x16\x03\x03 sealed");
        let (id, job, session) = (self.start("GET", url, is_page), self.id(), self.id());
        let to = |id: u64| json!({"source_dependency": {"id": id, "type": 1}});
        self.event("SOCKET_POOL_BOUND_TO_SOCKET", NONE, job, &to(socket));
        self.event("HTTP2_SESSION_INITIALIZED", NONE, session, &to(socket));
        self.event(
            "HTTP2_SESSION_POOL_IMPORTED_SESSION_FROM_SOCKET",
            NONE,
            job,
            &to(session),
        );
        self.event("HTTP_STREAM_REQUEST_BOUND_TO_JOB", NONE, id, &to(job));
        let fields = [
            ":method: GET",
            ":authority: a.test",
            ":scheme: https",
            ":path: /",
            "accept: */*",
        ];
        let params = json!({"headers": fields});
        self.event(
            "HTTP_TRANSACTION_HTTP2_SEND_REQUEST_HEADERS",
            NONE,
            id,
            &params,
        );
        let params = json!({"headers": fields, "stream_id": 1, "source_dependency": {"id": job}});
        self.event("HTTP2_SESSION_SEND_HEADERS", NONE, session, &params);
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        self.bytes(
            "SSL_SOCKET_BYTES_SENT",
            socket,
            &[&preface[..], sent].concat(),
        );
        self.bytes("SSL_SOCKET_BYTES_RECEIVED", socket, frames);
        for answer in answers {
            let params = json!({"headers": answer, "stream_id": 1});
            self.event("HTTP2_SESSION_RECV_HEADERS", NONE, session, &params);
        }
        self.end(id, 0);
    }
}
