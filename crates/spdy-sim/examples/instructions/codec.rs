//! Frames and header blocks to bytes, and back.

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use spdy_frame::compress::{Compression, Deflater, Inflater};
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::frame::{Data, Frame, Ping, SynStream, WindowUpdate};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_testkit::page_headers;

use crate::HotPath;

const VERSION: Version = Version::V31;
const FRAMES: u32 = 1000;
const BLOCKS: usize = 100;

/// Requests, bodies, windows and pings in turn.
fn frames() -> Vec<Frame> {
    let (block, payload) = (Bytes::from(vec![0x5a; 60]), Bytes::from(vec![0x5a; 1400]));
    let frame = |number: u32| {
        let stream_id = StreamId::new(2 * number + 1);
        match number % 4 {
            0 => Frame::SynStream(SynStream {
                stream_id,
                associated_to: StreamId::ZERO,
                priority: Priority::HIGHEST,
                fin: true,
                unidirectional: false,
                block: block.clone(),
            }),
            1 => Frame::Data(Data {
                stream_id,
                payload: payload.clone(),
                fin: false,
            }),
            2 => Frame::WindowUpdate(WindowUpdate {
                stream_id,
                delta: 1 << 15,
            }),
            _ => Frame::Ping(Ping { id: number }),
        }
    };
    (0..FRAMES).map(frame).collect()
}

pub(crate) fn encode() -> HotPath {
    let (frames, mut out) = (frames(), BytesMut::with_capacity(1 << 20));
    HotPath::new(frames.len(), "frame", move || {
        out.clear();
        for frame in &frames {
            frame.encode(VERSION, &mut out);
        }
        black_box(&out);
    })
}

pub(crate) fn decode() -> HotPath {
    let mut wire = BytesMut::new();
    for frame in frames() {
        frame.encode(VERSION, &mut wire);
    }
    HotPath::new(FRAMES as usize, "frame", move || {
        let (mut wire, mut decoded) = (wire.clone(), 0);
        let mut decoder = Decoder::new(VERSION, Limits::default());
        while let Some(frame) = decoder.decode(&mut wire).expect("the frames are valid") {
            black_box(frame);
            decoded += 1;
        }
        assert_eq!(decoded, FRAMES);
    })
}

/// The blocks of a page's requests, and of its responses.
fn blocks() -> [Vec<HeaderBlock>; 2] {
    [
        page_headers::requests(BLOCKS, true),
        page_headers::responses(BLOCKS),
    ]
    .map(|blocks| {
        let block = |pairs: page_headers::Pairs| pairs.into_iter().collect();
        blocks.into_iter().map(block).collect()
    })
}

fn compressed(blocks: &[HeaderBlock]) -> Vec<Bytes> {
    let mut deflater = Deflater::new(VERSION, Compression::default());
    let compress = |block| {
        let mut out = BytesMut::new();
        deflater.deflate(block, &mut out);
        out.freeze()
    };
    blocks.iter().map(compress).collect()
}

pub(crate) fn compress() -> HotPath {
    let blocks = blocks();
    HotPath::new(2 * BLOCKS, "block", move || {
        for blocks in &blocks {
            black_box(compressed(blocks));
        }
    })
}

pub(crate) fn decompress() -> HotPath {
    let wires = blocks().map(|blocks| compressed(&blocks));
    HotPath::new(2 * BLOCKS, "block", move || {
        for wire in &wires {
            let mut inflater = Inflater::new(VERSION, BlockLimits::default());
            for block in wire {
                let inflated = inflater.inflate(block).expect("the block is valid");
                black_box(&inflated.headers);
            }
        }
    })
}
