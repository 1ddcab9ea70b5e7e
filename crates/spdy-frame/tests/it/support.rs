//! Shared helpers: splitting bytes, joining pieces, and vectors as frames.

use bytes::{Bytes, BytesMut};
use spdy_frame::compress::Inflater;
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::error::FrameError;
use spdy_frame::frame::{
    Data, Frame, GoAway, Headers, Ping, RstStream, Setting, SettingId, Settings, SynReply,
    SynStream, WindowUpdate,
};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::priority::Priority;
use spdy_frame::status::{GoAwayStatus, RstStatus};
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_testkit::fields::{Fields, Header};

/// The version that a vector names.
pub(crate) fn version(name: &str) -> Version {
    match name {
        "2" => Version::V2,
        "3" => Version::V3,
        "3.1" | "3 framing under Upgrade: SPDY/3.1" => Version::V31,
        other => panic!("no version {other}"),
    }
}

/// Frames of `bytes`, handed to the decoder in pieces of `piece` bytes.
pub(crate) fn decode_in_pieces(
    version: Version,
    bytes: &[u8],
    piece: usize,
) -> Result<Vec<Frame>, FrameError> {
    decode_pieces(version, bytes.chunks(piece))
}

/// Frames of all `pieces` together; DATA that arrived in pieces is joined.
pub(crate) fn decode_pieces<'a>(
    version: Version,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Frame>, FrameError> {
    let mut decoder = Decoder::new(version, Limits::default());
    let (mut input, mut frames) = (BytesMut::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        while let Some(frame) = decoder.decode(&mut input)? {
            frames.push(frame);
        }
    }
    Ok(join_data(frames))
}

/// Joins neighbouring DATA of one stream up to its FIN: where it was cut is not its meaning.
pub(crate) fn join_data(frames: Vec<Frame>) -> Vec<Frame> {
    let mut joined: Vec<Frame> = Vec::new();
    for frame in frames {
        if let (Some(Frame::Data(last)), Frame::Data(data)) = (joined.last_mut(), &frame)
            && last.stream_id == data.stream_id
            && !last.fin
        {
            last.payload = [&last.payload[..], &data.payload[..]].concat().into();
            last.fin = data.fin;
            continue;
        }
        joined.push(frame);
    }
    joined
}

/// The bytes of `frames`.
pub(crate) fn encode(version: Version, frames: &[Frame]) -> BytesMut {
    let mut out = BytesMut::new();
    frames
        .iter()
        .for_each(|frame| frame.encode(version, &mut out));
    out
}

/// A frame with its block taken out, and what the block means.
pub(crate) type Meaning = (Frame, Option<HeaderBlock>);

/// Takes the block out of a frame.
pub(crate) fn take_block(frame: &mut Frame) -> Option<Bytes> {
    match frame {
        Frame::SynStream(SynStream { block, .. })
        | Frame::SynReply(SynReply { block, .. })
        | Frame::Headers(Headers { block, .. }) => Some(std::mem::take(block)),
        _ => None,
    }
}

/// `frames` in text form, with their blocks inflated in order.
pub(crate) fn meanings(version: Version, frames: Vec<Frame>, context: &str) -> Vec<Meaning> {
    let mut inflater = Inflater::new(version, BlockLimits::default());
    let meaning = |mut frame: Frame| {
        let headers = take_block(&mut frame).map(|block| {
            let inflated = inflater
                .inflate(&block)
                .unwrap_or_else(|e| panic!("{context}: {e}"));
            inflated
                .headers
                .unwrap_or_else(|e| panic!("{context}: {e}"))
        });
        (frame, headers)
    };
    frames.into_iter().map(meaning).collect()
}

/// Headers of a vector.
pub(crate) fn header_block(headers: &[Header]) -> HeaderBlock {
    headers
        .iter()
        .map(|(name, value)| (name.clone(), value.join("\0")))
        .collect()
}

/// Headers made up by the test kit.
pub(crate) fn block_of(pairs: &[(String, String)]) -> HeaderBlock {
    pairs.iter().cloned().collect()
}

/// The frame that the fields of a vector describe.
pub(crate) fn expected(version: Version, fields: &Fields) -> Meaning {
    let fin = |flags: &u8| flags & 1 != 0;
    let frame = match fields {
        Fields::Data {
            stream_id,
            flags,
            data,
        } => Frame::Data(Data {
            stream_id: StreamId::new(*stream_id),
            payload: Bytes::copy_from_slice(data),
            fin: fin(flags),
        }),
        Fields::SynStream {
            flags,
            stream_id,
            associated_stream_id,
            priority,
            headers,
            ..
        } => {
            let frame = Frame::SynStream(SynStream {
                stream_id: StreamId::new(*stream_id),
                associated_to: StreamId::new(*associated_stream_id),
                priority: Priority::new(priority << u8::from(version == Version::V2)),
                fin: fin(flags),
                unidirectional: flags & 2 != 0,
                block: Bytes::new(),
            });
            return (frame, Some(header_block(headers)));
        }
        Fields::SynReply {
            flags,
            stream_id,
            headers,
            ..
        } => {
            let (stream_id, block) = (StreamId::new(*stream_id), Bytes::new());
            let frame = Frame::SynReply(SynReply {
                stream_id,
                fin: fin(flags),
                block,
            });
            return (frame, Some(header_block(headers)));
        }
        Fields::Headers {
            flags,
            stream_id,
            headers,
            ..
        } => {
            let (stream_id, block) = (StreamId::new(*stream_id), Bytes::new());
            let frame = Frame::Headers(Headers {
                stream_id,
                fin: fin(flags),
                block,
            });
            return (frame, Some(header_block(headers)));
        }
        Fields::RstStream { stream_id, status } => Frame::RstStream(RstStream {
            stream_id: StreamId::new(*stream_id),
            status: RstStatus(*status),
        }),
        Fields::Settings { flags, entries } => Frame::Settings(Settings {
            clear: flags & 1 != 0,
            entries: entries
                .iter()
                .map(|e| Setting {
                    id: SettingId(e.id),
                    flags: e.flags,
                    value: e.value,
                })
                .collect(),
            ignored: 0,
        }),
        Fields::Noop {} => Frame::Noop,
        Fields::Ping { ping_id } => Frame::Ping(Ping { id: *ping_id }),
        Fields::Goaway {
            last_good_stream_id,
            status,
        } => Frame::GoAway(GoAway {
            last_good: StreamId::new(*last_good_stream_id),
            status: status.map(GoAwayStatus),
        }),
        Fields::WindowUpdate { stream_id, delta } => Frame::WindowUpdate(WindowUpdate {
            stream_id: StreamId::new(*stream_id),
            delta: *delta,
        }),
    };
    (frame, None)
}

/// The frames that the fields of many vectors describe, DATA joined as decoded frames are.
pub(crate) fn all_expected<'a>(
    version: Version,
    fields: impl IntoIterator<Item = &'a Fields>,
) -> Vec<Meaning> {
    let mut joined: Vec<Meaning> = Vec::new();
    for (frame, headers) in fields.into_iter().map(|fields| expected(version, fields)) {
        let last = joined.pop().into_iter();
        let headers_of_last = last.clone().find_map(|(_, headers)| headers);
        let mut frames = join_data(last.map(|(frame, _)| frame).chain([frame]).collect());
        let new = frames.pop().expect("a frame was encoded");
        joined.extend(frames.pop().map(|frame| (frame, headers_of_last)));
        joined.push((new, headers));
    }
    joined
}
