//! HTTP/1.1 as far as it leads to SPDY: heads, `Upgrade: SPDY/3.1` or a WebSocket of Kubernetes, and CONNECT
//! through a proxy.
//!
//! Bodies before an Upgrade are not followed. A head is what stands before an empty line, and its last
//! request or status line counts; so the end of a body in front of it does no harm.

use bytes::{Buf, BytesMut};

/// A head that matters.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Head {
    /// The client asks for SPDY, or for a WebSocket that Kubernetes knows. So many bytes of body follow.
    UpgradeRequest {
        target: String,
        to: String,
        body_bytes: u64,
    },
    /// The client asks a proxy for a tunnel.
    ConnectRequest,
    /// The server's answer; 1xx but 101 are not told.
    Response {
        status: u16,
        line: String,
        switch: Option<Switch>,
    },
}

/// What an answer switches to.
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

/// The sub-protocol that a WebSocket of Kubernetes has.
fn of_websocket(protocol: &str) -> Option<Switch> {
    if names_spdy(protocol) {
        return Some(Switch::SpdyInWebSocket);
    }
    let channels = protocol.ends_with("channel.k8s.io");
    channels.then(|| Switch::Channels(protocol.to_owned()))
}

/// Cuts one direction into heads.
#[derive(Debug, Default)]
pub(crate) struct Heads {
    pub(crate) input: BytesMut,
    /// Bytes at the front of `input` in which no head ends.
    searched: usize,
}

impl Heads {
    /// The next head that matters. What follows it stays in `input`.
    pub(crate) fn poll(&mut self, limit: usize) -> Option<Head> {
        loop {
            let found = find(&self.input[self.searched..], b"\r\n\r\n");
            let Some(end) = found.map(|end| self.searched + end) else {
                if self.input.len() > limit {
                    // A body, or no HTTP. The end of it may be the beginning of a head.
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

/// Whether bytes look like the beginning of a request; `None` if they are too few to tell.
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
