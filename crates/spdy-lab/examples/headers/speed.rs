//! Blocks a second on one core, each way beside the others in one run.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use spdy_frame::compress::{DeflateOptions, Deflater, Inflater};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_http::request;

use crate::corpus::Corpus;
use crate::{Stream, VERSION, Way};

/// Rounds over everything; the fastest is told, since other work on the machine only adds.
const ROUNDS: usize = 5;

/// One way's blocks a second.
#[derive(serde::Serialize)]
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

fn fastest(mut round: impl FnMut() -> Duration) -> Duration {
    (0..ROUNDS).map(|_| round()).min().unwrap_or_default()
}

/// Time to write all `streams`, the making of their compressors not counted.
fn deflate(options: &DeflateOptions, streams: &[&[HeaderBlock]]) -> Duration {
    let mut out = BytesMut::new();
    let mut spent = Duration::ZERO;
    for blocks in streams {
        let mut deflater = Deflater::new(VERSION, options.clone());
        let begun = Instant::now();
        for block in *blocks {
            out.clear();
            deflater.deflate(black_box(block), &mut out);
        }
        spent += begun.elapsed();
    }
    spent
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

fn inflate(wire: &[Vec<Bytes>], mut then: impl FnMut(HeaderBlock)) -> Duration {
    let mut spent = Duration::ZERO;
    for blocks in wire {
        let mut inflater = Inflater::new(VERSION, BlockLimits::default());
        let begun = Instant::now();
        for block in blocks {
            if let Ok(headers) = inflater.inflate(block).expect("what we wrote").headers {
                then(headers);
            }
        }
        spent += begun.elapsed();
    }
    spent
}

pub(crate) fn measure(corpus: &Corpus, streams: &[Stream], ways: &[Way]) -> Vec<Row> {
    let requests: Vec<&[HeaderBlock]> = streams.iter().map(|s| &s.requests[..]).collect();
    let responses: Vec<&[HeaderBlock]> = streams.iter().map(|s| &s.responses[..]).collect();
    let blocks = corpus.exchanges.len() as f64;
    let rate = |spent: Duration| blocks / spent.as_secs_f64();
    let row = |(compression, options): &Way| {
        let (request_wire, response_wire) = (wire(options, &requests), wire(options, &responses));
        let encode = || {
            let mut out = BytesMut::new();
            let mut deflater = Deflater::new(VERSION, options.clone());
            let begun = Instant::now();
            for exchange in &corpus.exchanges {
                out.clear();
                let block = request::encode(VERSION, black_box(&exchange.head));
                deflater.deflate(&block.expect("encoded before"), &mut out);
            }
            begun.elapsed()
        };
        let decode = || {
            inflate(&request_wire, |headers| {
                _ = black_box(request::decode(VERSION, &headers));
            })
        };
        Row {
            deflate_requests: rate(fastest(|| deflate(options, &requests))),
            deflate_responses: rate(fastest(|| deflate(options, &responses))),
            inflate_requests: rate(fastest(|| inflate(&request_wire, |h| _ = black_box(h)))),
            inflate_responses: rate(fastest(|| inflate(&response_wire, |h| _ = black_box(h)))),
            encode_requests: rate(fastest(encode)),
            decode_requests: rate(fastest(decode)),
            compression: compression.clone(),
        }
    };
    ways.iter().map(row).collect()
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
