//! The frame decoder (`spdy-frame/src/decoder.rs`).
//!
//! - How the bytes are split changes only the pieces of DATA.
//! - Decoded frames are encoded to bytes that decode to the same frames.
//! - No more memory is held than a multiple of the received bytes.

use bytes::BytesMut;
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::error::FrameError;
use spdy_frame::frame::Frame;
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;

use crate::choices::Choices;
use crate::memory;

/// Maximum number of bytes held per byte of input, by all three decoders together, and the frames they store.
const HELD_PER_BYTE: usize = 64;

/// Decodes the wire whole and split, and encodes it again.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let version = choices.pick(&Version::ALL);
    let mut limits = Limits::default();
    limits.control_payload_bytes = choices.pick(&[128 * 1024, 64, 0]);
    limits.settings_entries = choices.pick(&[64, 2, 0]);
    memory::at_most(16 * 1024 + HELD_PER_BYTE * wire.len(), || {
        let whole = read(version, &limits, &[wire]);
        let cut = read(version, &limits, &choices.cut(wire));
        assert_eq!(cut, whole, "{version}, split");
        let (frames, _) = whole;

        let written = frames
            .into_iter()
            .filter(|frame| !matches!(frame, Frame::CompressedData { .. } | Frame::Skipped { .. }));
        let written: Vec<Frame> = written.collect();
        let mut again = BytesMut::new();
        written
            .iter()
            .for_each(|frame| frame.encode(version, &mut again));
        // A limit that was met before is met again: no frame becomes longer.
        assert!(
            again.len() <= wire.len(),
            "encoded {} bytes from {}",
            again.len(),
            wire.len()
        );
        let back = read(version, &limits, &[&again]);
        let mut joined = JoinedFrames::default();
        written
            .into_iter()
            .for_each(|frame| joined.push(as_written(version, frame)));
        assert_eq!(back, (joined.finish(), None), "{version}, encoded again");
    });
}

/// A frame as its encoded form decodes: SETTINGS are encoded in the order of their IDs, without ignored entries; and in
/// SPDY/2 GOAWAY has no status, which some peers add, and RST_STREAM has only the statuses that SPDY/2 defines.
fn as_written(version: Version, mut frame: Frame) -> Frame {
    match &mut frame {
        Frame::Settings(settings) => {
            settings.entries.sort_by_key(|entry| entry.id.0);
            settings.ignored = 0;
        }
        Frame::GoAway(goaway) if version == Version::V2 => goaway.status = None,
        Frame::RstStream(rst) if version == Version::V2 && rst.status.0 > 7 => {
            rst.status = RstStatus::PROTOCOL_ERROR;
        }
        _ => {}
    }
    frame
}

/// The frames in `pieces`, adjacent DATA joined, and the error at their end.
fn read(version: Version, limits: &Limits, pieces: &[&[u8]]) -> (Vec<Frame>, Option<FrameError>) {
    let mut decoder = Decoder::new(version, limits.clone());
    let (mut input, mut frames) = (BytesMut::new(), JoinedFrames::default());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match decoder.decode(&mut input) {
                Ok(Some(frame)) => {
                    if let Frame::Settings(settings) = &frame {
                        assert!(settings.entries.len() <= limits.settings_entries);
                    }
                    frames.push(frame);
                }
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(decoder.decode(&mut input), Err(error.clone()), "spent");
                    return (frames.finish(), Some(error));
                }
            }
        }
        let waiting = input.len();
        assert!(
            waiting < 8.max(limits.control_payload_bytes),
            "{waiting} bytes are buffered"
        );
    }
    (frames.finish(), None)
}

/// Frames whose adjacent DATA of one stream is joined up to its FIN: how it was split has no meaning.
#[derive(Default)]
struct JoinedFrames {
    frames: Vec<Frame>,
    /// Payload of the last frame, if it is of more than one piece.
    payload: BytesMut,
}

impl JoinedFrames {
    fn push(&mut self, frame: Frame) {
        if let (Some(Frame::Data(last)), Frame::Data(data)) = (self.frames.last_mut(), &frame)
            && last.stream_id == data.stream_id
            && !last.fin
        {
            if self.payload.is_empty() {
                self.payload.extend_from_slice(&last.payload);
            }
            self.payload.extend_from_slice(&data.payload);
            last.fin = data.fin;
            return;
        }
        self.close();
        self.frames.push(frame);
    }

    fn close(&mut self) {
        if let (Some(Frame::Data(last)), false) = (self.frames.last_mut(), self.payload.is_empty())
        {
            last.payload = self.payload.split().freeze();
        }
    }

    fn finish(mut self) -> Vec<Frame> {
        self.close();
        self.frames
    }
}
