//! What `spdy fetch -v` shows: the frames of a session as a person reads them.
//!
//! ```text
//!    1.204 ms > SYN_STREAM stream 1, priority 0, fin (241 -> 98 bytes)
//!                 :method: GET
//!    3.551 ms < SYN_REPLY stream 1 (64 -> 41 bytes)
//!                 :status: 200 OK
//!    3.560 ms < DATA stream 1, 1024 bytes, fin
//! ```
//!
//! Times are from the start of the program's work; `>` is sent, `<` received. With more than one
//! connection, each line names its connection.

use std::sync::atomic::{AtomicU64, Ordering};

use spdy_client::client::Stats;
use spdy_clock::Instant;
use spdy_net::tap::{Direction, Http2Frame, Tap, TapEvent};

use crate::output::frame_text::{self, block, bytes, fin, header};
use crate::output::{BOLD, DIM, Printer, escape, format_count};

/// Prints frames as they pass.
pub(crate) struct FramePrinter {
    printer: Printer,
    connections: AtomicU64,
}

impl FramePrinter {
    pub(crate) fn new(printer: Printer) -> Self {
        Self {
            printer,
            connections: AtomicU64::new(0),
        }
    }

    /// Prints the totals.
    pub(crate) fn sum_up(&self, stats: &Stats) {
        self.printer.note(format_args!(
            "{DIM}{} over {}; request headers {} -> {} bytes, response headers {} -> {} bytes{DIM:#}",
            format_count(stats.requests, "request"),
            format_count(stats.connections, "connection"),
            stats.request_header_bytes,
            stats.request_header_bytes_wire,
            stats.response_header_bytes,
            stats.response_header_bytes_wire,
        ));
    }

    fn line(
        &self,
        connection: u64,
        at: Instant,
        direction: Direction,
        what: &str,
        headers: &[String],
    ) {
        let several = self.connections.load(Ordering::Relaxed) > 1;
        let which = if several {
            format!("[{connection}] ")
        } else {
            String::new()
        };
        let to_server = direction == Direction::Sent;
        let text = frame_text::line(at, to_server, &which, what, headers);
        self.printer.note(text);
    }
}

impl Tap for FramePrinter {
    fn seen(&self, connection: u64, at: Instant, direction: Direction, seen: &TapEvent<'_>) {
        let (what, headers) = match seen {
            TapEvent::Opened { protocol } => {
                self.connections.fetch_add(1, Ordering::Relaxed);
                let ms = at.as_millis_f64();
                return self.printer.note(format_args!(
                    "{DIM}{ms:>9.3} ms * connection {connection} uses{DIM:#} {BOLD}{protocol}{BOLD:#}"
                ));
            }
            TapEvent::Spdy(seen) => (
                frame_text::frame(seen.version, seen.frame, seen.plain_bytes),
                seen.headers.map_or_else(Vec::new, block),
            ),
            TapEvent::Http2Frame(frame) => (http2_frame(frame), Vec::new()),
            TapEvent::Http2Headers { stream_id, fields } => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| header(name, value))
                    .collect();
                (format!("{DIM}headers of stream {stream_id}{DIM:#}"), fields)
            }
            TapEvent::Http3Frame {
                stream_id,
                kind,
                len_bytes,
            } => (http3_frame(*stream_id, *kind, *len_bytes), Vec::new()),
            TapEvent::Http3Headers { stream_id, fields } => {
                let fields = fields
                    .iter()
                    .map(|(name, value)| header(name, value))
                    .collect();
                (format!("{DIM}headers of stream {stream_id}{DIM:#}"), fields)
            }
            TapEvent::Http1Head(text) => http1_head(text),
            TapEvent::Http1Body(len) => (format!("{BOLD}body{BOLD:#} {}", bytes(*len)), Vec::new()),
        };
        self.line(connection, at, direction, &what, &headers);
    }
}

fn http3_frame(stream_id: u64, kind: u64, len_bytes: u64) -> String {
    let name = match kind {
        0x0 => "DATA",
        0x1 => "HEADERS",
        _ => "unknown frame",
    };
    let len = usize::try_from(len_bytes).unwrap_or(usize::MAX);
    format!("{BOLD}{name}{BOLD:#} stream {stream_id}, {}", bytes(len))
}

fn http2_frame(frame: &Http2Frame<'_>) -> String {
    let name = format!("{BOLD}{}{BOLD:#}", frame.name());
    let on = match frame.stream_id {
        0 => String::new(),
        id => format!(" stream {id}"),
    };
    let number = |at: usize| {
        let four = frame.payload.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_be_bytes(four))
    };
    let end = |bit: u8| fin(frame.flags & bit != 0);
    match (frame.kind, number(0)) {
        (0 | 1, _) => format!("{name}{on}, {}{}", bytes(frame.len_bytes), end(1)),
        (3, Some(code)) => format!("{name}{on}, {}", h2_reason(code)),
        (4, _) if frame.flags & 1 != 0 => format!("{name} ack"),
        (4, _) => format!("{name} {}", h2_settings(frame.payload)),
        (6, _) => format!("{name}{}", if frame.flags & 1 != 0 { " ack" } else { "" }),
        (7, Some(last)) => {
            let reason = number(4).map_or_else(String::new, h2_reason);
            format!("{name} last stream {}, {reason}", last & 0x7fff_ffff)
        }
        (8, Some(delta)) => {
            let on = if on.is_empty() {
                " connection".to_owned()
            } else {
                on
            };
            format!("{name}{on}, +{}", delta & 0x7fff_ffff)
        }
        _ => format!("{name}{on}, {}", bytes(frame.len_bytes)),
    }
}

/// Names of RFC 9113 §7, by code.
const H2_REASONS: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

fn h2_reason(code: u32) -> String {
    let name = usize::try_from(code)
        .ok()
        .and_then(|code| H2_REASONS.get(code));
    name.map_or_else(|| format!("error {code}"), |name| (*name).to_owned())
}

/// Names of RFC 9113 §6.5.2, by identifier less one.
const H2_SETTINGS: [&str; 6] = [
    "HEADER_TABLE_SIZE",
    "ENABLE_PUSH",
    "MAX_CONCURRENT_STREAMS",
    "INITIAL_WINDOW_SIZE",
    "MAX_FRAME_SIZE",
    "MAX_HEADER_LIST_SIZE",
];

fn h2_settings(payload: &[u8]) -> String {
    let entries: Vec<_> = payload
        .chunks_exact(6)
        .map(|entry| {
            let id = u16::from_be_bytes([entry[0], entry[1]]);
            let value = u32::from_be_bytes([entry[2], entry[3], entry[4], entry[5]]);
            let name = usize::from(id)
                .checked_sub(1)
                .and_then(|at| H2_SETTINGS.get(at));
            match name {
                Some(name) => format!("{name} = {value}"),
                None => format!("setting {id} = {value}"),
            }
        })
        .collect();
    entries.join(", ")
}

/// The first line of a head, and its headers.
fn http1_head(text: &[u8]) -> (String, Vec<String>) {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines();
    let first = escape(lines.next().unwrap_or_default());
    let headers = lines
        .filter(|line| !line.is_empty())
        .map(|line| match line.split_once(':') {
            Some((name, value)) => header(name, value.trim()),
            None => escape(line).into_owned(),
        })
        .collect();
    (format!("{BOLD}{first}{BOLD:#}"), headers)
}
