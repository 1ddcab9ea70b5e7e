//! The result of a run: the receiver's frames, and a client's response.

use std::fmt;

use bytes::{Bytes, BytesMut};
use spdy::{Frame, HeaderBlock, Version};
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::header_block::BlockLimits;
use spdy_frame::inflate::Inflater;
use spdy_testkit::conformance::Case;

/// A frame, and the headers of its block.
pub(crate) struct ReceivedFrame {
    pub(crate) frame: Frame,
    pub(crate) headers: HeaderBlock,
}

/// In one line, for a list of what went wrong.
impl fmt::Debug for ReceivedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.frame {
            Frame::SynStream(syn) => write!(f, "SYN_STREAM({}, {:?})", syn.stream_id, self.headers),
            Frame::SynReply(reply) => {
                write!(f, "SYN_REPLY({}, {:?})", reply.stream_id, self.headers)
            }
            Frame::Data(data) => write!(
                f,
                "DATA({}, {} bytes{})",
                data.stream_id,
                data.payload.len(),
                if data.fin { ", FIN" } else { "" }
            ),
            other => write!(f, "{other:?}"),
        }
    }
}

/// The reaction of the receiver.
#[derive(Debug)]
pub(crate) struct Run {
    /// The frames that it sent.
    pub(crate) frames: Vec<ReceivedFrame>,
    /// It closed the connection.
    pub(crate) closed: bool,
    /// A client's answer to its request, if there was one by the end.
    pub(crate) response: Option<Result<Bytes, RequestFailure>>,
}

/// Why a client's request failed.
#[derive(Clone, Debug)]
pub(crate) struct RequestFailure {
    /// The server never worked on it: it may be sent again.
    pub(crate) retry_safe: bool,
    #[expect(dead_code, reason = "used in the failure message")]
    pub(crate) reason: String,
}

/// The version of a case.
pub(crate) fn version(case: &Case) -> Version {
    match case.version.as_str() {
        "2" => Version::V2,
        "3" => Version::V3,
        "3.1" => Version::V31,
        other => panic!("{}: no version {other}", case.id),
    }
}

/// The frames in `bytes`, up to the first that is none.
pub(crate) fn decode(version: Version, bytes: &[u8]) -> Vec<ReceivedFrame> {
    let mut decoder = Decoder::new(version, Limits::default());
    let mut inflater = Inflater::new(version, BlockLimits::default());
    let mut input = BytesMut::from(bytes);
    let mut frames = Vec::new();
    while let Ok(Some(frame)) = decoder.decode(&mut input) {
        let headers = match &frame {
            Frame::SynStream(syn) => inflater.inflate(&syn.block),
            Frame::SynReply(reply) => inflater.inflate(&reply.block),
            Frame::Headers(headers) => inflater.inflate(&headers.block),
            _ => inflater.inflate(&Bytes::new()),
        };
        let Ok(inflated) = headers else { break };
        let headers = inflated.headers.unwrap_or_default();
        frames.push(ReceivedFrame { frame, headers });
    }
    frames
}
