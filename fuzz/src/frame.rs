//! The door of frames (`spdy-frame/src/decoder.rs`).
//!
//! - Where the bytes are cut changes nothing but the pieces of DATA.
//! - What was read is written again as something that reads the same.
//! - No more is held than the bytes that came.

use bytes::BytesMut;
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::error::FrameError;
use spdy_frame::frame::Frame;
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;

use crate::choices::Choices;
use crate::memory;

/// Bytes held for each byte of input at most, by all three readings together, and the frames they keep.
const HELD_PER_BYTE: usize = 64;

/// Reads the wire whole and cut, and writes it again.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let version = choices.pick(&Version::ALL);
    let limits = Limits {
        control_payload_bytes: choices.pick(&[128 * 1024, 64, 0]),
        settings_entries: choices.pick(&[64, 2, 0]),
    };
    memory::at_most(16 * 1024 + HELD_PER_BYTE * wire.len(), || {
        let whole = read(version, &limits, &[wire]);
        let cut = read(version, &limits, &choices.cut(wire));
        assert_eq!(cut, whole, "{version}, cut");
        let (frames, _) = whole;

        let written = frames
            .into_iter()
            .filter(|frame| !matches!(frame, Frame::CompressedData { .. } | Frame::Skipped { .. }));
        let written: Vec<Frame> = written.collect();
        let mut again = BytesMut::new();
        written
            .iter()
            .for_each(|frame| frame.encode(version, &mut again));
        // A limit that held before holds now: nothing gets longer.
        assert!(
            again.len() <= wire.len(),
            "{} of {}",
            again.len(),
            wire.len()
        );
        let back = read(version, &limits, &[&again]);
        let mut joined = JoinedFrames::default();
        written
            .into_iter()
            .for_each(|frame| joined.push(as_written(version, frame)));
        assert_eq!(back, (joined.finish(), None), "{version}, written again");
    });
}

/// A frame as its own writing reads: SETTINGS are written in the order of their ids, those that count alone; and in
/// SPDY/2 no status of GOAWAY, which some add, and none of RST_STREAM that it does not know.
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

/// The frames in `pieces`, neighbouring DATA joined, and the error at their end.
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
            "{waiting} bytes wait"
        );
    }
    (frames.finish(), None)
}

/// Frames whose neighbouring DATA of one stream is joined up to its FIN: where it was cut is not its meaning.
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
