//! A frame of any type. The bytes of each type are described in the file with its name.

use bytes::{Buf, Bytes, BytesMut};

use crate::decoder::Limits;
use crate::error::FrameError;
use crate::frames::head::ControlHead;
use crate::frames::kind::Kind;
use crate::stream_id::StreamId;
use crate::version::Version;

pub use crate::frames::data::Data;
pub use crate::frames::goaway::GoAway;
pub use crate::frames::headers::Headers;
pub use crate::frames::ping::Ping;
pub use crate::frames::rst_stream::RstStream;
pub use crate::frames::settings::{Setting, SettingId, Settings};
pub use crate::frames::syn_reply::SynReply;
pub use crate::frames::syn_stream::SynStream;
pub use crate::frames::window_update::WindowUpdate;

/// One frame. Header blocks are still compressed, because they must be inflated in the order of the wire.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Frame {
    /// DATA, or a piece of one (see [`Decoder`](crate::decoder::Decoder)).
    Data(Data),
    /// DATA with the flag of compressed payloads, which was never in use: a stream error. Reported once, when its head
    /// is complete; the payload is dropped as it arrives, but counts for flow control.
    CompressedData {
        /// The stream, never 0.
        stream_id: StreamId,
        /// Payload bytes that the head announced.
        len_bytes: usize,
    },
    /// SYN_STREAM.
    SynStream(SynStream),
    /// SYN_REPLY.
    SynReply(SynReply),
    /// RST_STREAM.
    RstStream(RstStream),
    /// SETTINGS.
    Settings(Settings),
    /// NOOP (SPDY/2), which has no payload.
    Noop,
    /// PING.
    Ping(Ping),
    /// GOAWAY.
    GoAway(GoAway),
    /// HEADERS.
    Headers(Headers),
    /// WINDOW_UPDATE.
    WindowUpdate(WindowUpdate),
    /// CREDENTIAL, WINDOW_UPDATE of SPDY/2, or an unknown type. Reported once, when its head is
    /// complete; the payload is dropped as it arrives, whatever its length.
    Skipped {
        /// Type of the frame.
        kind: Kind,
        /// Payload bytes that the head announced.
        len_bytes: usize,
    },
}

impl Frame {
    /// The type of the frame.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Data(_) | Self::CompressedData { .. } => Kind::Data,
            Self::SynStream(_) => Kind::SynStream,
            Self::SynReply(_) => Kind::SynReply,
            Self::RstStream(_) => Kind::RstStream,
            Self::Settings(_) => Kind::Settings,
            Self::Noop => Kind::Noop,
            Self::Ping(_) => Kind::Ping,
            Self::GoAway(_) => Kind::GoAway,
            Self::Headers(_) => Kind::Headers,
            Self::WindowUpdate(_) => Kind::WindowUpdate,
            Self::Skipped { kind, .. } => *kind,
        }
    }

    /// Appends the whole frame to `out`, in the layout of `version`.
    ///
    /// # Panics
    ///
    /// If the frame is longer than [`MAX_PAYLOAD`](crate::head::MAX_PAYLOAD), or is one that is only
    /// ever read ([`CompressedData`](Self::CompressedData), [`Skipped`](Self::Skipped)).
    pub fn encode(&self, version: Version, out: &mut BytesMut) {
        match self {
            Self::Data(frame) => frame.encode(out),
            Self::SynStream(frame) => frame.encode(version, out),
            Self::SynReply(frame) => frame.encode(version, out),
            Self::RstStream(frame) => frame.encode(version, out),
            Self::Settings(frame) => frame.encode(version, out),
            Self::Noop => ControlHead::new(version, Kind::Noop, 0, 0).encode(out),
            Self::Ping(frame) => frame.encode(version, out),
            Self::GoAway(frame) => frame.encode(version, out),
            Self::Headers(frame) => frame.encode(version, out),
            Self::WindowUpdate(frame) => frame.encode(version, out),
            Self::CompressedData { .. } | Self::Skipped { .. } => {
                unreachable!("{self:?} is only decoded, never encoded")
            }
        }
    }

    /// Checks the head of a control frame before its payload has arrived. `Ok(false)` means: skip the frame.
    pub(crate) fn check(
        version: Version,
        kind: Kind,
        head: ControlHead,
    ) -> Result<bool, FrameError> {
        match kind {
            Kind::SynStream => SynStream::check(head)?,
            Kind::SynReply => SynReply::check(version, head)?,
            Kind::RstStream => RstStream::check(head)?,
            Kind::Settings => Settings::check(head)?,
            Kind::Ping => Ping::check(head)?,
            Kind::GoAway => GoAway::check(version, head)?,
            Kind::Headers => Headers::check(version, head)?,
            Kind::WindowUpdate if version.has_stream_windows() => WindowUpdate::check(head)?,
            Kind::Noop => {
                head.expect_len(kind, 0)?;
                return Ok(false);
            }
            Kind::WindowUpdate | Kind::Credential | Kind::Unknown(_) => {
                return Ok(false);
            }
            Kind::Data => unreachable!("DATA is not a control frame"),
        }
        Ok(true)
    }

    /// Reads the payload of a control frame whose head passed [`check`](Self::check): takes `head.len` bytes off the
    /// front of `input`.
    pub(crate) fn decode(
        version: Version,
        kind: Kind,
        head: ControlHead,
        limits: &Limits,
        input: &mut BytesMut,
    ) -> Result<Self, FrameError> {
        // Frames with a fixed length are copied: sharing the buffer costs more.
        Ok(match kind {
            Kind::RstStream => Self::RstStream(RstStream::decode(take(input))?),
            Kind::Ping => Self::Ping(Ping::decode(take(input))),
            Kind::WindowUpdate => Self::WindowUpdate(WindowUpdate::decode(take(input))),
            Kind::SynStream => {
                Self::SynStream(SynStream::decode(version, head, share(input, head.len))?)
            }
            Kind::SynReply => {
                Self::SynReply(SynReply::decode(version, head, share(input, head.len))?)
            }
            Kind::Headers => Self::Headers(Headers::decode(version, head, share(input, head.len))?),
            Kind::GoAway => Self::GoAway(GoAway::decode(share(input, head.len))),
            Kind::Settings => {
                let payload = share(input, head.len);
                Self::Settings(Settings::decode(
                    version,
                    head,
                    payload,
                    limits.settings_entries,
                )?)
            }
            Kind::Data | Kind::Noop | Kind::Credential | Kind::Unknown(_) => {
                unreachable!("{kind} has no payload to decode as a whole")
            }
        })
    }
}

/// The first `N` bytes of `input`, copied.
fn take<const N: usize>(input: &mut BytesMut) -> [u8; N] {
    let mut bytes = [0; N];
    input.copy_to_slice(&mut bytes);
    bytes
}

/// The first `len` bytes of `input`, shared.
fn share(input: &mut BytesMut, len: usize) -> Bytes {
    input.split_to(len).freeze()
}
