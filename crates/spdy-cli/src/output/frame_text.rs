//! Formats SPDY frames for a terminal: what `spdy fetch -v` and `spdy inspect` both print.
//!
//! ```text
//!    1.204 ms > SYN_STREAM stream 1, priority 0, fin (241 -> 98 bytes)
//!                 :method: GET
//! ```
//!
//! `>` is sent to the server, `<` to the client.

use spdy_clock::Instant;
use spdy_frame::data::Data;
use spdy_frame::frame::{Frame, SettingId};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::kind::Kind;
use spdy_frame::version::Version;

use super::{BOLD, DIM, GOOD, WARN, escape, format_count};

/// Where headers are indented to.
const INDENT: &str = "                 ";

/// Formats a line: time, direction, the connection `which`, the frame; its headers follow below.
pub(crate) fn line(
    at: Instant,
    to_server: bool,
    which: &str,
    what: &str,
    headers: &[String],
) -> String {
    let (arrow, style) = if to_server { ('>', WARN) } else { ('<', GOOD) };
    let mut text = format!(
        "{DIM}{:>9.3} ms{DIM:#} {style}{arrow}{style:#} {DIM}{which}{DIM:#}{what}",
        at.as_millis_f64()
    );
    for header in headers {
        text.push('\n');
        text.push_str(INDENT);
        text.push_str(header);
    }
    text
}

/// `1 byte`.
pub(crate) fn bytes(len: usize) -> String {
    format_count(len as u64, "byte")
}

/// The suffix of a frame that ends its sender's side of the stream.
pub(crate) fn fin(fin: bool) -> &'static str {
    if fin { ", fin" } else { "" }
}

/// `name: value`, without control characters.
pub(crate) fn header(name: &str, value: &str) -> String {
    format!("{DIM}{}:{DIM:#} {}", escape(name), escape(value))
}

/// Formats each pair of a header block on its own line; a value with NULs is several lines.
pub(crate) fn block(block: &HeaderBlock) -> Vec<String> {
    let mut lines = Vec::with_capacity(block.len());
    for (name, values) in block.iter() {
        let name = String::from_utf8_lossy(name);
        for value in values.split(|&byte| byte == 0) {
            lines.push(header(&name, &String::from_utf8_lossy(value)));
        }
    }
    lines
}

/// DATA: `len_bytes` of payload.
pub(crate) fn data(frame: &Data, len_bytes: usize) -> String {
    format!(
        "{BOLD}{}{BOLD:#} stream {}, {}{}",
        Kind::Data,
        frame.stream_id,
        bytes(len_bytes),
        fin(frame.fin)
    )
}

/// A frame of a session of `version`; `plain_bytes` is the length of its inflated header block.
pub(crate) fn frame(version: Version, frame: &Frame, plain_bytes: usize) -> String {
    let name = format!("{BOLD}{}{BOLD:#}", frame.kind());
    let packed = |len: usize| format!(" {DIM}({plain_bytes} -> {len} bytes){DIM:#}");
    match frame {
        Frame::Data(frame) => data(frame, frame.payload.len()),
        Frame::CompressedData {
            stream_id,
            len_bytes,
        } => {
            format!(
                "{name} stream {stream_id}, {}, compressed",
                bytes(*len_bytes)
            )
        }
        Frame::SynStream(frame) => {
            let mut text = format!(
                "{name} stream {}, priority {}",
                frame.stream_id,
                frame.priority.field(version)
            );
            if !frame.associated_to.is_zero() {
                text.push_str(&format!(", associated to {}", frame.associated_to));
            }
            if frame.unidirectional {
                text.push_str(", unidirectional");
            }
            text + fin(frame.fin) + &packed(frame.block.len())
        }
        Frame::SynReply(frame) => {
            format!(
                "{name} stream {}{}{}",
                frame.stream_id,
                fin(frame.fin),
                packed(frame.block.len())
            )
        }
        Frame::Headers(frame) => {
            format!(
                "{name} stream {}{}{}",
                frame.stream_id,
                fin(frame.fin),
                packed(frame.block.len())
            )
        }
        Frame::RstStream(frame) => format!("{name} stream {}, {}", frame.stream_id, frame.status),
        Frame::Settings(frame) => {
            let mut text = name;
            if frame.clear {
                text.push_str(" clear,");
            }
            let entries: Vec<_> = frame
                .entries
                .iter()
                .map(|entry| format!("{} = {}", setting(entry.id), entry.value))
                .collect();
            format!("{text} {}", entries.join(", "))
        }
        Frame::Noop => name,
        Frame::Ping(frame) => format!("{name} {}", frame.id),
        Frame::GoAway(frame) => {
            let status = frame
                .status
                .map_or_else(String::new, |status| format!(", {status}"));
            format!("{name} last good stream {}{status}", frame.last_good)
        }
        Frame::WindowUpdate(frame) => match frame.stream_id.is_zero() {
            true => format!("{name} session, +{}", frame.delta),
            false => format!("{name} stream {}, +{}", frame.stream_id, frame.delta),
        },
        Frame::Skipped { len_bytes, .. } => format!("{name} {}, skipped", bytes(*len_bytes)),
    }
}

/// The name of a setting (SPDY/3.1 §2.6.4).
pub(crate) fn setting(id: SettingId) -> String {
    match id {
        SettingId::UPLOAD_BANDWIDTH => "UPLOAD_BANDWIDTH".to_owned(),
        SettingId::DOWNLOAD_BANDWIDTH => "DOWNLOAD_BANDWIDTH".to_owned(),
        SettingId::ROUND_TRIP_TIME => "ROUND_TRIP_TIME".to_owned(),
        SettingId::MAX_CONCURRENT_STREAMS => "MAX_CONCURRENT_STREAMS".to_owned(),
        SettingId::CURRENT_CWND => "CURRENT_CWND".to_owned(),
        SettingId::DOWNLOAD_RETRANS_RATE => "DOWNLOAD_RETRANS_RATE".to_owned(),
        SettingId::INITIAL_WINDOW_SIZE => "INITIAL_WINDOW_SIZE".to_owned(),
        SettingId::CLIENT_CERTIFICATE_VECTOR_SIZE => "CLIENT_CERTIFICATE_VECTOR_SIZE".to_owned(),
        SettingId(other) => format!("setting {other}"),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use spdy_frame::frame::SynStream;
    use spdy_frame::priority::Priority;
    use spdy_frame::stream_id::StreamId;

    use super::*;

    /// Two bits of priority in SPDY/2, three later.
    #[test]
    fn a_priority_is_shown_as_the_number_on_the_wire() {
        let opened = Frame::SynStream(SynStream {
            stream_id: StreamId::new(1),
            associated_to: StreamId::new(0),
            priority: Priority::new(6),
            fin: false,
            unidirectional: false,
            block: Bytes::new(),
        });
        for (version, shown) in [(Version::V2, 3), (Version::V3, 6), (Version::V31, 6)] {
            let text = frame(version, &opened, 0);
            assert!(text.contains(&format!("priority {shown}")), "{text}");
        }
    }
}
