//! Frames and header blocks, in bytes a second.
//!
//! Header blocks are measured in plain bytes, each way to compress beside the others in one run: what
//! counts is the ratio, since machines differ.

use bytes::{Bytes, BytesMut};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

use spdy_frame::compress::{Compression, Deflater, Inflater};
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::frame::{Data, Frame, Ping, SynStream, WindowUpdate};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_testkit::page_headers;

const VERSION: Version = Version::V31;
const FRAMES: u32 = 1000;

fn frames(frame: impl Fn(u32) -> Frame) -> Vec<Frame> {
    (0..FRAMES).map(frame).collect()
}

/// The measured cases: a name, and frames of one kind.
fn kinds() -> [(&'static str, Vec<Frame>); 4] {
    let id = |number: u32| StreamId::new(2 * number + 1);
    let data = |len: usize| {
        let payload = Bytes::from(vec![0x5a; len]);
        frames(|number| {
            Frame::Data(Data {
                stream_id: id(number),
                payload: payload.clone(),
                fin: false,
            })
        })
    };
    let block = Bytes::from(vec![0x5a; 60]);
    let syn_stream = |number| {
        Frame::SynStream(SynStream {
            stream_id: id(number),
            associated_to: StreamId::ZERO,
            priority: Priority::HIGHEST,
            fin: true,
            unidirectional: false,
            block: block.clone(),
        })
    };
    let control = |number: u32| match number % 2 {
        0 => Frame::Ping(Ping { id: number }),
        _ => Frame::WindowUpdate(WindowUpdate {
            stream_id: id(number),
            delta: 1 << 15,
        }),
    };
    [
        ("1000 DATA of 16 KiB", data(16 * 1024)),
        ("1000 DATA of 128 B", data(128)),
        ("1000 SYN_STREAM", frames(syn_stream)),
        ("1000 PING and WINDOW_UPDATE", frames(control)),
    ]
}

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame/encode");
    for (name, frames) in kinds() {
        let mut out = BytesMut::new();
        let write = |out: &mut BytesMut| {
            out.clear();
            frames.iter().for_each(|frame| frame.encode(VERSION, out));
        };
        write(&mut out);
        group.throughput(Throughput::Bytes(out.len() as u64));
        group.bench_function(name, |b| b.iter(|| write(black_box(&mut out))));
    }
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("frame/decode");
    for (name, frames) in kinds() {
        let mut wire = BytesMut::new();
        frames
            .iter()
            .for_each(|frame| frame.encode(VERSION, &mut wire));
        group.throughput(Throughput::Bytes(wire.len() as u64));
        let read = |mut wire: BytesMut| {
            let mut decoder = Decoder::new(VERSION, Limits::default());
            while let Ok(Some(frame)) = decoder.decode(&mut wire) {
                black_box(frame);
            }
        };
        group.bench_function(name, |b| {
            b.iter_batched(|| wire.clone(), read, BatchSize::LargeInput);
        });
    }
}

const WAYS: [(&str, Compression); 5] = [
    ("masked", Compression::CrimeSafe),
    ("zlib-rs 0", Compression::Zlib(0)),
    ("zlib-rs 1", Compression::Zlib(1)),
    ("zlib-rs 6", Compression::Zlib(6)),
    ("zlib-rs 9", Compression::Zlib(9)),
];

/// The blocks of a page's requests and of its responses.
fn pages() -> [(&'static str, Vec<HeaderBlock>); 2] {
    let blocks = |pages: Vec<page_headers::Pairs>| {
        pages
            .into_iter()
            .map(|pairs| pairs.into_iter().collect())
            .collect()
    };
    [
        ("requests", blocks(page_headers::requests(100, true))),
        ("responses", blocks(page_headers::responses(100))),
    ]
}

fn plain_bytes(blocks: &[HeaderBlock]) -> Throughput {
    Throughput::Bytes(
        blocks
            .iter()
            .map(|block| block.plain_len(VERSION) as u64)
            .sum(),
    )
}

fn deflate(c: &mut Criterion) {
    for (what, blocks) in pages() {
        let mut group = c.benchmark_group(format!("block/deflate 100 {what}"));
        group.throughput(plain_bytes(&blocks));
        for (name, compression) in WAYS {
            let mut deflater = Deflater::new(VERSION, compression);
            let mut out = BytesMut::new();
            group.bench_function(name, |b| {
                b.iter(|| {
                    for block in &blocks {
                        out.clear();
                        deflater.deflate(black_box(block), &mut out);
                    }
                });
            });
        }
    }
}

fn inflate(c: &mut Criterion) {
    for (what, blocks) in pages() {
        let mut group = c.benchmark_group(format!("block/inflate 100 {what}"));
        group.throughput(plain_bytes(&blocks));
        for (name, compression) in WAYS {
            let mut deflater = Deflater::new(VERSION, compression);
            let wire: Vec<Bytes> = blocks
                .iter()
                .map(|block| {
                    let mut out = BytesMut::new();
                    deflater.deflate(block, &mut out);
                    out.freeze()
                })
                .collect();
            group.bench_function(name, |b| {
                b.iter(|| {
                    // A stream cannot be begun again, so a session's worth is read: 100 blocks.
                    let mut inflater = Inflater::new(VERSION, BlockLimits::default());
                    for block in &wire {
                        let inflated = inflater
                            .inflate(block)
                            .expect("an encoded block can be decoded");
                        black_box(&inflated.headers);
                    }
                });
            });
        }
    }
}

fn session(c: &mut Criterion) {
    let mut group = c.benchmark_group("block/new stream");
    for (name, compression) in [WAYS[0], WAYS[3]] {
        group.bench_function(name, |b| {
            b.iter(|| {
                // Nothing is there before the first block.
                let mut out = BytesMut::new();
                Deflater::new(VERSION, black_box(compression))
                    .deflate(&HeaderBlock::new(), &mut out);
                out
            });
        });
    }
}

criterion_group!(benches, encode, decode, deflate, inflate, session);
criterion_main!(benches);
