//! The lines of `spdy inspect --json`.

use serde::Serialize;
use spdy_clock::Instant;
use spdy_frame::frame::Frame;
use spdy_inspect::direction::Direction;
use spdy_inspect::event::FrameRecord;
use spdy_inspect::timeline::{Stalls, StreamTimeline, Summary};

/// An event of a capture. Times count from the first packet of the capture; they are 0 for raw streams.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "lowercase")]
pub(crate) enum InspectEvent {
    /// A frame of a session is complete.
    Frame(Box<FrameLine>),
    /// Bytes cannot be decoded.
    Error {
        /// Number of the connection, from 1.
        connection: u64,
        /// Time of the event.
        at_ms: f64,
        /// Why they cannot be decoded.
        reason: String,
    },
    /// A TLS connection cannot be decrypted.
    Encrypted {
        /// Number of the connection, from 1.
        connection: u64,
        /// Time of the event.
        at_ms: f64,
        /// The server name that the client requested.
        server_name: Option<String>,
        /// Protocols that the client offered by ALPN.
        alpn_offered: Vec<String>,
        /// Why it cannot be decrypted.
        reason: String,
    },
    /// Exec, attach or port-forward of Kubernetes over a plain WebSocket: streams without SPDY.
    Channels {
        /// Number of the connection, from 1.
        connection: u64,
        /// Time of the event.
        at_ms: f64,
        /// Method and path; `null` if the request was not captured.
        target: Option<String>,
        /// The sub-protocol of the WebSocket.
        protocol: String,
    },
    /// A session, or the capture, has ended.
    Session(Box<SessionLine>),
}

/// A frame. Fields that its type does not have are absent.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FrameLine {
    /// Number of the connection, from 1.
    connection: u64,
    /// Time at which the frame was complete.
    at_ms: f64,
    /// The sender: `client` or `server`.
    from: &'static str,
    /// Offset of the frame in the session's bytes of this direction.
    offset: u64,
    /// The type of the frame, such as `SYN_STREAM`.
    #[serde(rename = "type")]
    kind: String,
    /// Length of the payload, by the head of the frame.
    len_bytes: usize,
    /// ID of the stream; 0 is the session (WINDOW_UPDATE).
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<u32>,
    /// Priority of the stream, 0 is the highest (SYN_STREAM).
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<u8>,
    /// ID of the stream that it is associated with; 0 for none (SYN_STREAM).
    #[serde(skip_serializing_if = "Option::is_none")]
    associated_to: Option<u32>,
    /// True if the receiver must not reply (SYN_STREAM).
    #[serde(skip_serializing_if = "Option::is_none")]
    unidirectional: Option<bool>,
    /// True if it is the last frame of its sender on the stream (DATA, SYN_STREAM, SYN_REPLY, HEADERS).
    #[serde(skip_serializing_if = "Option::is_none")]
    fin: Option<bool>,
    /// True if the payload is compressed, so that it is not decoded (DATA).
    #[serde(skip_serializing_if = "Option::is_none")]
    compressed: Option<bool>,
    /// Bytes of the payload that are not in the capture; absent if there are none (DATA).
    #[serde(skip_serializing_if = "Option::is_none")]
    missing_bytes: Option<usize>,
    /// First bytes of the payload as text; bytes that are not UTF-8 are replaced (DATA).
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    /// Name of the status; `null` for a GOAWAY of SPDY/2, which has none (RST_STREAM, GOAWAY).
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Option<String>>,
    /// True if the receiver must forget stored settings (SETTINGS).
    #[serde(skip_serializing_if = "Option::is_none")]
    clear: Option<bool>,
    /// The settings (SETTINGS).
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<SettingLine>>,
    /// ID of the PING.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u32>,
    /// ID of the last accepted stream (GOAWAY).
    #[serde(skip_serializing_if = "Option::is_none")]
    last_good: Option<u32>,
    /// Bytes that are added to the window (WINDOW_UPDATE).
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<u32>,
    /// Length of the header block before compression (SYN_STREAM, SYN_REPLY, HEADERS).
    #[serde(skip_serializing_if = "Option::is_none")]
    plain_bytes: Option<usize>,
    /// Names and values of the headers, in their order (SYN_STREAM, SYN_REPLY, HEADERS).
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Vec<(String, String)>>,
    /// Why the headers cannot be decoded.
    #[serde(skip_serializing_if = "Option::is_none")]
    headers_error: Option<String>,
}

/// An entry of SETTINGS.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct SettingLine {
    /// ID of the setting.
    id: u32,
    /// Its value.
    value: u32,
}

/// The timeline of a session.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SessionLine {
    /// Number of the connection, from 1.
    connection: u64,
    /// Address and port of the client; `null` for raw streams.
    client: Option<String>,
    /// Address and port of the server; `null` for raw streams.
    server: Option<String>,
    /// The version; `null` if SPDY/3 and 3.1 cannot be distinguished.
    version: Option<String>,
    /// How SPDY was detected, in words.
    found_by: String,
    /// True if TLS was decrypted.
    tls: bool,
    /// True if times are meaningful: raw streams have none.
    timed: bool,
    /// Time of the first byte.
    began_ms: f64,
    /// Time of the last frame.
    last_frame_ms: f64,
    /// Frames from the client.
    frames_of_client: u64,
    /// Frames from the server.
    frames_of_server: u64,
    /// Bytes of DATA payload to the server.
    bytes_to_server: u64,
    /// Bytes of DATA payload to the client.
    bytes_to_client: u64,
    /// WINDOW_UPDATE frames from the client.
    window_updates_of_client: u64,
    /// WINDOW_UPDATE frames from the server.
    window_updates_of_server: u64,
    /// Times in which the session's window was empty for the client.
    stalls_of_client: StallsLine,
    /// Times in which the session's window was empty for the server.
    stalls_of_server: StallsLine,
    /// Retransmitted TCP segments, to the server and to the client.
    retransmitted_segments: [u64; 2],
    /// Bytes that are not in the capture, to the server and to the client.
    missing_bytes: [u64; 2],
    /// The streams, up to a limit.
    streams: Vec<StreamLine>,
    /// Number of further streams.
    streams_left_out: u64,
    /// Protocol errors and other findings, in words, up to a limit.
    findings: Vec<String>,
    /// Number of further findings.
    findings_left_out: u64,
}

/// The timeline of a stream.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StreamLine {
    /// ID of the stream.
    stream: u32,
    /// The sender of its SYN_STREAM, `client` or `server`; `null` if that is not in the capture.
    opened_by: Option<&'static str>,
    /// Time of its SYN_STREAM.
    opened_ms: Option<f64>,
    /// Time of its SYN_REPLY.
    replied_ms: Option<f64>,
    /// Time of the client's FIN.
    client_fin_ms: Option<f64>,
    /// Time of the server's FIN.
    server_fin_ms: Option<f64>,
    /// Its RST_STREAM; `null` if it was not reset.
    reset: Option<ResetLine>,
    /// Bytes of DATA payload to the server.
    bytes_to_server: u64,
    /// Bytes of DATA payload to the client.
    bytes_to_client: u64,
    /// Times in which the stream's window was empty for the client.
    stalls_of_client: StallsLine,
    /// Times in which the stream's window was empty for the server.
    stalls_of_server: StallsLine,
    /// Method and URL, or the headers of a stream without them.
    request: String,
    /// The status of the response; empty without a response.
    response: String,
}

/// RST_STREAM of a stream.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct ResetLine {
    /// Time of the frame.
    at_ms: f64,
    /// Its sender: `client` or `server`.
    by: &'static str,
    /// Name of its status.
    status: String,
}

/// Times in which a sender had data but no credit.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StallsLine {
    /// Number of stalls that ended with more data.
    count: u64,
    /// Their total duration, milliseconds.
    ms: f64,
    /// The longest of them.
    longest_ms: f64,
    /// Start of a stall that is still open at the end; `null` if there is none.
    open_since_ms: Option<f64>,
}

impl InspectEvent {
    pub(super) fn frame(at: Instant, connection: u64, seen: &FrameRecord) -> Self {
        Self::Frame(Box::new(FrameLine::of(at, connection, seen)))
    }

    pub(super) fn session(connection: u64, summary: &Summary) -> Self {
        Self::Session(Box::new(SessionLine::of(connection, summary)))
    }
}

impl FrameLine {
    fn of(at: Instant, connection: u64, seen: &FrameRecord) -> Self {
        let mut line = Self {
            connection,
            at_ms: at.as_millis_f64(),
            from: seen.direction.sender(),
            offset: seen.offset,
            kind: seen.frame.kind().to_string(),
            len_bytes: seen.len_bytes,
            ..Self::default()
        };
        line.set_frame(seen);
        match &seen.headers {
            Some(Ok(block)) => {
                let mut headers = Vec::new();
                for (name, values) in block.iter() {
                    for value in values.split(|byte| *byte == 0) {
                        headers.push((
                            String::from_utf8_lossy(name).into_owned(),
                            String::from_utf8_lossy(value).into_owned(),
                        ));
                    }
                }
                line.plain_bytes = Some(seen.plain_bytes);
                line.headers = Some(headers);
            }
            Some(Err(reason)) => line.headers_error = Some(reason.clone()),
            None => {}
        }
        line
    }

    /// Sets the fields of the frame's type.
    fn set_frame(&mut self, seen: &FrameRecord) {
        match &seen.frame {
            Frame::Data(frame) => {
                self.stream = Some(frame.stream_id.value());
                self.fin = Some(frame.fin);
                self.missing_bytes = Some(seen.missing_bytes).filter(|missing| *missing > 0);
                let text = String::from_utf8_lossy(&frame.payload);
                self.data = (!text.is_empty()).then(|| text.into_owned());
            }
            Frame::CompressedData { stream_id, .. } => {
                self.stream = Some(stream_id.value());
                self.compressed = Some(true);
            }
            Frame::SynStream(frame) => {
                self.stream = Some(frame.stream_id.value());
                self.priority = Some(frame.priority.field(seen.version));
                self.associated_to = Some(frame.associated_to.value());
                self.unidirectional = Some(frame.unidirectional);
                self.fin = Some(frame.fin);
            }
            Frame::SynReply(frame) => {
                self.stream = Some(frame.stream_id.value());
                self.fin = Some(frame.fin);
            }
            Frame::Headers(frame) => {
                self.stream = Some(frame.stream_id.value());
                self.fin = Some(frame.fin);
            }
            Frame::RstStream(frame) => {
                self.stream = Some(frame.stream_id.value());
                self.status = Some(Some(frame.status.to_string()));
            }
            Frame::Settings(frame) => {
                let entries = frame.entries.iter().map(|entry| SettingLine {
                    id: entry.id.0,
                    value: entry.value,
                });
                self.clear = Some(frame.clear);
                self.entries = Some(entries.collect());
            }
            Frame::Ping(frame) => self.id = Some(frame.id),
            Frame::GoAway(frame) => {
                self.last_good = Some(frame.last_good.value());
                self.status = Some(frame.status.map(|status| status.to_string()));
            }
            Frame::WindowUpdate(frame) => {
                self.stream = Some(frame.stream_id.value());
                self.delta = Some(frame.delta);
            }
            Frame::Noop | Frame::Skipped { .. } => {}
        }
    }
}

impl SessionLine {
    fn of(connection: u64, summary: &Summary) -> Self {
        let info = &summary.info;
        let streams = summary.streams.iter();
        let findings = summary.findings.iter();
        let [stalls_of_client, stalls_of_server] = stall_lines(&summary.session_stalls);
        Self {
            connection,
            client: info.client.map(|address| address.to_string()),
            server: info.server.map(|address| address.to_string()),
            version: info.version.map(|version| version.to_string()),
            found_by: info.found.to_string(),
            tls: info.tls,
            timed: summary.timed,
            began_ms: summary.began.as_millis_f64(),
            last_frame_ms: summary.last_frame.as_millis_f64(),
            frames_of_client: summary.frames[0],
            frames_of_server: summary.frames[1],
            bytes_to_server: summary.data_bytes[0],
            bytes_to_client: summary.data_bytes[1],
            window_updates_of_client: summary.window_updates[0],
            window_updates_of_server: summary.window_updates[1],
            stalls_of_client,
            stalls_of_server,
            retransmitted_segments: summary.segments.map(|segments| segments.retransmitted),
            missing_bytes: summary.segments.map(|segments| segments.missing_bytes),
            streams: streams
                .map(|(id, line)| StreamLine::of(*id, line))
                .collect(),
            streams_left_out: summary.omitted_streams,
            findings: findings.map(ToString::to_string).collect(),
            findings_left_out: summary.omitted_findings,
        }
    }
}

impl StreamLine {
    fn of(id: u32, line: &StreamTimeline) -> Self {
        let at = |at: Option<Instant>| at.map(Instant::as_millis_f64);
        let [stalls_of_client, stalls_of_server] = stall_lines(&line.stalls);
        Self {
            stream: id,
            opened_by: line.opened_by.map(Direction::sender),
            opened_ms: at(line.opened),
            replied_ms: at(line.replied),
            client_fin_ms: at(line.finished[0]),
            server_fin_ms: at(line.finished[1]),
            reset: line.reset.map(|(when, by, status)| ResetLine {
                at_ms: when.as_millis_f64(),
                by: by.sender(),
                status: status.to_string(),
            }),
            bytes_to_server: line.bytes[0],
            bytes_to_client: line.bytes[1],
            stalls_of_client,
            stalls_of_server,
            request: line.request.clone(),
            response: line.answered.clone(),
        }
    }
}

/// The stalls of the client and of the server.
fn stall_lines(stalls: &[Stalls; 2]) -> [StallsLine; 2] {
    let millis = |nanos: u64| nanos as f64 / 1e6;
    stalls.map(|stalls| StallsLine {
        count: stalls.count,
        ms: millis(stalls.nanos),
        longest_ms: millis(stalls.longest_nanos),
        open_since_ms: stalls.open_since.map(Instant::as_millis_f64),
    })
}
