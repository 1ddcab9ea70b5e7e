//! The part of HTTP/1.1 that leads to SPDY: heads, `Upgrade: SPDY/3.1` or a WebSocket of Kubernetes, and CONNECT through a proxy.
//!
//! Bodies before an Upgrade are not parsed. A head ends with an empty line, and its last request or status line counts; so the end of
//! a body before it does not matter.

use bytes::{Buf, BytesMut};

/// A relevant head.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Head {
    /// A request to upgrade to SPDY, or to a WebSocket of Kubernetes, followed by this many bytes of body.
    UpgradeRequest {
        target: String,
        to: String,
        body_bytes: u64,
    },
    /// A request to a proxy for a tunnel.
    ConnectRequest,
    /// A response of the server; interim responses other than 101 are skipped.
    Response {
        status: u16,
        line: String,
        switch: Option<Switch>,
    },
}

/// The protocol after a 101.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Switch {
    /// SPDY itself.
    Spdy,
    /// SPDY inside WebSocket, `SPDY/3.1+portforward.k8s.io`.
    SpdyInWebSocket,
    /// Streams without SPDY in a WebSocket of this sub-protocol.
    Channels(String),
}

fn names_spdy(protocol: &str) -> bool {
    let start = protocol.get(..5).unwrap_or_default();
    start.eq_ignore_ascii_case("spdy/")
}

/// The protocol of a WebSocket with this sub-protocol of Kubernetes.
fn of_websocket(protocol: &str) -> Option<Switch> {
    if names_spdy(protocol) {
        return Some(Switch::SpdyInWebSocket);
    }
    let channels = protocol.ends_with("channel.k8s.io");
    channels.then(|| Switch::Channels(protocol.to_owned()))
}

/// Extracts heads from one direction.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    pub(crate) input: BytesMut,
    /// Bytes at the front of `input` that contain no end of a head.
    searched: usize,
}

impl Heads {
    /// The next relevant head. The bytes after it stay in `input`.
    pub(crate) fn poll(&mut self, limit: usize) -> Option<Head> {
        loop {
            let found = find(&self.input[self.searched..], b"\r\n\r\n");
            let Some(end) = found.map(|end| self.searched + end) else {
                if self.input.len() > limit {
                    // A body, or no HTTP. Its end may be the beginning of a head.
                    self.input.advance(self.input.len() - limit / 2);
                }
                self.searched = self.input.len().saturating_sub(3);
                return None;
            };
            self.searched = 0;
            let text = String::from_utf8_lossy(&self.input[..end]).into_owned();
            self.input.advance(end + 4);
            if let Some(head) = read(&text) {
                return Some(head);
            }
        }
    }
}

fn find(bytes: &[u8], needle: &[u8]) -> Option<usize> {
    bytes
        .windows(needle.len())
        .position(|window| window == needle)
}

fn read(text: &str) -> Option<Head> {
    let lines: Vec<_> = text.split("\r\n").collect();
    let is_first = |line: &&str| line.ends_with(" HTTP/1.1") || line.contains("HTTP/1.1 ");
    let at = lines.iter().rposition(is_first)?;
    let value = |header_name: &str| {
        lines[at + 1..].iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim()
                .eq_ignore_ascii_case(header_name)
                .then(|| value.trim())
        })
    };
    let upgrade = value("upgrade").unwrap_or_default();
    let protocols = value("sec-websocket-protocol").unwrap_or_default();
    let mut switch = None;
    if names_spdy(upgrade) {
        switch = Some(Switch::Spdy);
    } else if upgrade.eq_ignore_ascii_case("websocket") {
        switch = protocols.split(',').map(str::trim).find_map(of_websocket);
    }
    let line = lines[at];
    if let Some(status_at) = line.find("HTTP/1.1 ") {
        let status_line = &line[status_at..];
        let status = status_line.get(9..12)?.parse().ok()?;
        let is_final = status == 101 || status >= 200;
        return is_final.then(|| Head::Response {
            status,
            line: status_line.to_owned(),
            switch,
        });
    }
    if line.starts_with("CONNECT ") {
        return Some(Head::ConnectRequest);
    }
    let to = match switch? {
        Switch::Spdy => "an Upgrade to SPDY".to_owned(),
        Switch::SpdyInWebSocket | Switch::Channels(_) => format!("a WebSocket of {protocols}"),
    };
    Some(Head::UpgradeRequest {
        target: line.trim_end_matches(" HTTP/1.1").to_owned(),
        to,
        body_bytes: value("content-length")
            .and_then(|len| len.parse().ok())
            .unwrap_or(0),
    })
}

/// True if the bytes look like the beginning of a request; `None` if there are too few.
pub(crate) fn begins_request(bytes: &[u8]) -> Option<bool> {
    for (at, byte) in bytes.iter().enumerate().take(20) {
        match byte {
            b'A'..=b'Z' => {}
            b' ' => return Some(at >= 3),
            _ => return Some(false),
        }
    }
    (bytes.len() >= 20).then_some(false)
}
