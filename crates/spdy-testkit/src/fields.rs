//! What a frame of a vector means, by type.

use serde::Deserialize;

use crate::hex::Hex;

/// A header: its name, and the components of its value.
pub type Header = (String, Vec<String>);

/// The fields of a frame, as numbers.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Fields {
    /// DATA.
    Data {
        /// Stream.
        stream_id: u32,
        /// FIN is 1.
        flags: u8,
        /// Payload.
        data: Hex,
    },
    /// SYN_STREAM.
    SynStream {
        /// FIN is 1, UNIDIRECTIONAL is 2.
        flags: u8,
        /// Stream.
        stream_id: u32,
        /// Stream it belongs to, or 0.
        associated_stream_id: u32,
        /// 0 to 3 in SPDY/2, 0 to 7 else.
        priority: u8,
        /// What the block means.
        headers: Vec<Header>,
        /// The inflated block, where it was noted.
        block_plain: Option<Hex>,
    },
    /// SYN_REPLY.
    SynReply {
        /// FIN is 1.
        flags: u8,
        /// Stream.
        stream_id: u32,
        /// What the block means.
        headers: Vec<Header>,
        /// The inflated block, where it was noted.
        block_plain: Option<Hex>,
    },
    /// RST_STREAM.
    RstStream {
        /// Stream.
        stream_id: u32,
        /// Status.
        status: u32,
    },
    /// SETTINGS.
    Settings {
        /// CLEAR_SETTINGS is 1.
        flags: u8,
        /// Entries in the order of the wire.
        entries: Vec<Entry>,
    },
    /// NOOP.
    Noop {},
    /// PING.
    Ping {
        /// Id.
        ping_id: u32,
    },
    /// GOAWAY.
    Goaway {
        /// Stream.
        last_good_stream_id: u32,
        /// Status, not in SPDY/2.
        status: Option<u32>,
    },
    /// HEADERS.
    Headers {
        /// FIN is 1.
        flags: u8,
        /// Stream.
        stream_id: u32,
        /// What the block means.
        headers: Vec<Header>,
        /// The inflated block, where it was noted.
        block_plain: Option<Hex>,
    },
    /// WINDOW_UPDATE.
    WindowUpdate {
        /// Stream, or 0.
        stream_id: u32,
        /// Delta.
        delta: u32,
    },
}

/// An entry of SETTINGS.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Entry {
    /// Id.
    pub id: u32,
    /// Entry flags.
    pub flags: u8,
    /// Value.
    pub value: u32,
}
