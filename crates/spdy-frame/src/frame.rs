//! A frame of any type. (Contract: payload structs move to a file each.)

use bytes::{Bytes, BytesMut};

use crate::priority::Priority;
use crate::status::{GoAwayStatus, RstStatus};
use crate::stream_id::StreamId;
use crate::version::Version;

/// One frame. Header blocks are still compressed: order on the wire is order in the compressor.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Frame {
    /// DATA, or a piece of one (see [`crate::decoder::Decoder`]).
    Data(Data),
    /// SYN_STREAM.
    SynStream(SynStream),
    /// SYN_REPLY.
    SynReply(SynReply),
    /// RST_STREAM.
    RstStream(RstStream),
    /// SETTINGS.
    Settings(Settings),
    /// NOOP.
    Noop,
    /// PING.
    Ping(Ping),
    /// GOAWAY.
    GoAway(GoAway),
    /// HEADERS.
    Headers(Headers),
    /// WINDOW_UPDATE.
    WindowUpdate(WindowUpdate),
    /// CREDENTIAL, or a type nobody knows: skipped, but seen.
    Skipped { kind: crate::kind::Kind, len_bytes: usize },
}

impl Frame {
    /// Appends the whole frame to `out`, in the layout of `version`.
    pub fn encode(&self, version: Version, out: &mut BytesMut) { let _ = (version, out); todo!() }
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Data { pub stream_id: StreamId, pub payload: Bytes, pub fin: bool }
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SynStream { pub stream_id: StreamId, pub associated_to: StreamId, pub priority: Priority, pub fin: bool, pub unidirectional: bool, pub block: Bytes }
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SynReply { pub stream_id: StreamId, pub fin: bool, pub block: Bytes }
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Headers { pub stream_id: StreamId, pub fin: bool, pub block: Bytes }
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RstStream { pub stream_id: StreamId, pub status: RstStatus }
#[derive(Clone, Debug, Eq, PartialEq, Default)]
pub struct Settings { pub clear: bool, pub entries: Vec<Setting> }
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Setting { pub id: SettingId, pub flags: u8, pub value: u32 }
/// SETTINGS entry id; consts UPLOAD_BANDWIDTH=1 .. CLIENT_CERTIFICATE_VECTOR_SIZE=8
#[derive(Clone, Copy, Debug, Eq, PartialEq, Ord, PartialOrd, Hash)]
pub struct SettingId(pub u32);
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Ping { pub id: u32 }
/// status: None in SPDY/2
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GoAway { pub last_good: StreamId, pub status: Option<GoAwayStatus> }
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WindowUpdate { pub stream_id: StreamId, pub delta: u32 }
