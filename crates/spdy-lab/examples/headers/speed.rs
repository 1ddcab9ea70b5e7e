//! Blocks per second of CPU time, measured for all compressions in one run.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{self, Write};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use spdy_frame::compress::{DeflateOptions, Deflater, Inflater};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_http::request;

use crate::corpus::Corpus;
use crate::{NamedCompression, Stream, VERSION};

/// Rounds over everything. The fastest is reported, because other work on the machine can only slow a round down.
const ROUNDS: usize = 3;

/// Blocks per second of one compression.
#[derive(Default, serde::Serialize)]
pub(crate) struct Row {
    compression: String,
    deflate_requests: f64,
    deflate_responses: f64,
    inflate_requests: f64,
    inflate_responses: f64,
    /// From `http::Request` to the compressed block, and back.
    encode_requests: f64,
    decode_requests: f64,
}

/// CPU time of this thread; wall-clock time if the system does not report it.
fn spent() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok())
        .map_or_else(|| BEGUN.elapsed(), Duration::from_nanos)
}

/// Stores the blocks per second if they exceed `rate`. The system counts a thread's time in ticks, so there are as many passes as
/// take several of them.
fn faster(rate: &mut f64, blocks: usize, mut pass: impl FnMut()) {
    const LEAST: Duration = Duration::from_millis(100);
    let (begun, mut passes) = (spent(), 0.0);
    let took = loop {
        pass();
        passes += 1.0;
        let took = spent() - begun;
        if took > LEAST {
            break took;
        }
    };
    *rate = rate.max(passes * blocks as f64 / took.as_secs_f64());
}

fn deflate(options: &DeflateOptions, streams: &[&[HeaderBlock]]) {
    let mut out = BytesMut::new();
    for blocks in streams {
        let mut deflater = Deflater::new(VERSION, options.clone());
        for block in *blocks {
            out.clear();
            deflater.deflate(black_box(block), &mut out);
        }
    }
}

fn wire(options: &DeflateOptions, streams: &[&[HeaderBlock]]) -> Vec<Vec<Bytes>> {
    let stream = |blocks: &&[HeaderBlock]| {
        let mut deflater = Deflater::new(VERSION, options.clone());
        let block = |block| {
            let mut out = BytesMut::new();
            deflater.deflate(block, &mut out);
            out.freeze()
        };
        blocks.iter().map(block).collect()
    };
    streams.iter().map(stream).collect()
}

fn inflate(wire: &[Vec<Bytes>], mut then: impl FnMut(HeaderBlock)) {
    for blocks in wire {
        let mut inflater = Inflater::new(VERSION, BlockLimits::default());
        for block in blocks {
            if let Ok(headers) = inflater.inflate(block).expect("what we wrote").headers {
                then(headers);
            }
        }
    }
}

/// Alternates between compressions, so that other work on the machine affects all of them.
pub(crate) fn measure(corpus: &Corpus, streams: &[Stream], ways: &[NamedCompression]) -> Vec<Row> {
    let requests: Vec<&[HeaderBlock]> = streams.iter().map(|s| &s.requests[..]).collect();
    let responses: Vec<&[HeaderBlock]> = streams.iter().map(|s| &s.responses[..]).collect();
    let mut heads: BTreeMap<_, Vec<&Parts>> = BTreeMap::new();
    for exchange in &corpus.exchanges {
        let stream = (exchange.recording, &exchange.host);
        heads.entry(stream).or_default().push(&exchange.head);
    }
    let heads: Vec<_> = heads.into_values().collect();
    let blocks = corpus.exchanges.len();
    let mut rows: Vec<Row> = ways
        .iter()
        .map(|(compression, _)| Row {
            compression: compression.clone(),
            ..Row::default()
        })
        .collect();
    for _ in 0..ROUNDS {
        for (row, (_, options)) in rows.iter_mut().zip(ways) {
            let (request_wire, response_wire) =
                (wire(options, &requests), wire(options, &responses));
            faster(&mut row.deflate_requests, blocks, || {
                deflate(options, &requests);
            });
            faster(&mut row.deflate_responses, blocks, || {
                deflate(options, &responses);
            });
            faster(&mut row.inflate_requests, blocks, || {
                inflate(&request_wire, |h| _ = black_box(h));
            });
            faster(&mut row.inflate_responses, blocks, || {
                inflate(&response_wire, |h| _ = black_box(h));
            });
            faster(&mut row.encode_requests, blocks, || encode(&heads, options));
            faster(&mut row.decode_requests, blocks, || {
                inflate(&request_wire, |headers| {
                    _ = black_box(request::decode(VERSION, &headers));
                });
            });
        }
    }
    rows
}

/// From requests to compressed blocks.
fn encode(streams: &[Vec<&Parts>], options: &DeflateOptions) {
    let mut out = BytesMut::new();
    for heads in streams {
        let mut deflater = Deflater::new(VERSION, options.clone());
        for head in heads {
            out.clear();
            let block = request::encode(VERSION, black_box(head)).expect("encoded before");
            deflater.deflate(&block, &mut out);
        }
    }
}

pub(crate) fn print(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:<36} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "thousand blocks a second, one core",
        "deflate",
        "responses",
        "inflate",
        "responses",
        "encode",
        "decode"
    )?;
    for row in rows {
        writeln!(
            out,
            "{:<36} {:>9.0} {:>9.0} {:>9.0} {:>9.0} {:>9.0} {:>9.0}",
            row.compression,
            row.deflate_requests / 1e3,
            row.deflate_responses / 1e3,
            row.inflate_requests / 1e3,
            row.inflate_responses / 1e3,
            row.encode_requests / 1e3,
            row.decode_requests / 1e3
        )?;
    }
    Ok(())
}
