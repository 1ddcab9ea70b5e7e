//! Saving and cost of header compression on recorded traffic, with and without protection.
//!
//! ```text
//! cargo run --release -p spdy-lab --example headers -- FOLDER [--json] [--speed] [--only WAY] [--blocks FILE]
//! ```
//!
//! FOLDER has HARs (`.har`, `.har.gz`). Every exchange over HTTP or HTTPS counts.
//!
//! - *Before* is its head as HTTP/1.1 text: the request or status line, each header as `name: value` and a line end, a Host header
//!   where the recording has none, the empty line.
//! - *After* are the bytes of its header block in SPDY/3.1 inside the frame: the headers that `spdy-http` encodes (without hop-by-hop
//!   headers), compressed, including the sync flush at the end of each block. Frame heads are not counted.
//! - In the first table each host and direction of a recording has its own zlib stream. In the second table all hosts of a recording
//!   share one, as behind a proxy.
//!
//! `--only` omits compressions without WAY in their names. `--speed` compresses and inflates all of it repeatedly on one core.
//! `--blocks` writes the plain blocks, for other compressors: for each stream its count of blocks, for each block its length and its
//! bytes; 32 bits, big-endian.

mod corpus;
mod speed;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use bytes::BytesMut;
use corpus::{Corpus, Exchange};
use spdy_frame::compress::{Compression, DeflateOptions, Deflater};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::secrets::Secrets;
use spdy_frame::version::Version;

pub(crate) const VERSION: Version = Version::V31;

/// A way to compress, with its name in reports.
pub(crate) type NamedCompression = (String, DeflateOptions);

fn ways() -> Vec<NamedCompression> {
    let way = |name: &str, compression, secrets, window_bits| {
        let name = format!("{name}, {} KiB", (1 << window_bits) / 1024);
        let mut options = DeflateOptions::default();
        options.compression = compression;
        options.window_bits = window_bits;
        options.secrets = secrets;
        (name, options)
    };
    let mut ways = Vec::new();
    for bits in [15, 13, 11] {
        ways.push(way(
            "zlib-rs 9",
            Compression::Zlib(9),
            Secrets::none(),
            bits,
        ));
    }
    ways.push(way("zlib-rs 6", Compression::Zlib(6), Secrets::none(), 15));
    ways.push(way("zlib-rs 1", Compression::Zlib(1), Secrets::none(), 15));
    for bits in [15, 13, 11] {
        ways.push(way(
            "ours, no secrets",
            Compression::CrimeSafe,
            Secrets::none(),
            bits,
        ));
    }
    for bits in [15, 13, 11] {
        ways.push(way(
            "masked",
            Compression::CrimeSafe,
            Secrets::default(),
            bits,
        ));
    }
    let strict = Secrets::default().whole_matches(false);
    ways.push(way(
        "masked, no whole matches",
        Compression::CrimeSafe,
        strict,
        13,
    ));
    ways.push(way("zlib-rs 0", Compression::Zlib(0), Secrets::none(), 15));
    ways
}

/// The blocks of both directions of one stream.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) requests: Vec<HeaderBlock>,
    pub(crate) responses: Vec<HeaderBlock>,
}

/// Exchanges of one recording by zlib stream.
fn streams(corpus: &Corpus, by_host: bool) -> Vec<Stream> {
    let mut streams: BTreeMap<(usize, &str), Stream> = BTreeMap::new();
    for Exchange {
        recording,
        host,
        request,
        response,
        ..
    } in &corpus.exchanges
    {
        let host = if by_host { host.as_str() } else { "" };
        let stream = streams.entry((*recording, host)).or_default();
        stream.requests.push(request.clone());
        stream.responses.push(response.clone());
    }
    streams.into_values().collect()
}

fn compressed_len<'a>(
    options: &DeflateOptions,
    streams: impl Iterator<Item = &'a Vec<HeaderBlock>>,
) -> usize {
    let mut out = BytesMut::new();
    streams
        .map(|blocks| {
            let mut deflater = Deflater::new(VERSION, options.clone());
            out.clear();
            for block in blocks {
                deflater.deflate(block, &mut out);
            }
            out.len()
        })
        .sum()
}

#[derive(serde::Serialize)]
struct Row {
    streams: &'static str,
    compression: String,
    request_bytes: usize,
    request_saved_percent: f64,
    response_bytes: usize,
    response_saved_percent: f64,
}

#[derive(serde::Serialize)]
struct Outcome {
    recordings: usize,
    exchanges: usize,
    left_out: BTreeMap<&'static str, usize>,
    request_text_bytes: usize,
    response_text_bytes: usize,
    rows: Vec<Row>,
    speed: Vec<speed::Row>,
}

fn measure(corpus: &Corpus, ways: &[NamedCompression]) -> Outcome {
    let text = |of: fn(&Exchange) -> usize| corpus.exchanges.iter().map(of).sum::<usize>();
    let request_text_bytes = text(|exchange| exchange.request_text);
    let response_text_bytes = text(|exchange| exchange.response_text);
    let saved = |before: usize, after: usize| 100.0 * (1.0 - after as f64 / before as f64);
    let mut rows = Vec::new();
    for (name, by_host) in [("each host", true), ("all hosts", false)] {
        let streams = streams(corpus, by_host);
        for (compression, options) in ways {
            let request_bytes =
                compressed_len(options, streams.iter().map(|stream| &stream.requests));
            let response_bytes =
                compressed_len(options, streams.iter().map(|stream| &stream.responses));
            rows.push(Row {
                streams: name,
                compression: compression.clone(),
                request_bytes,
                request_saved_percent: saved(request_text_bytes, request_bytes),
                response_bytes,
                response_saved_percent: saved(response_text_bytes, response_bytes),
            });
        }
    }
    Outcome {
        recordings: corpus.recordings,
        exchanges: corpus.exchanges.len(),
        left_out: corpus.left_out.clone(),
        request_text_bytes,
        response_text_bytes,
        rows,
        speed: Vec::new(),
    }
}

fn print(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    writeln!(
        out,
        "{} recordings, {} exchanges; as HTTP/1.1 text {} bytes of requests, {} of responses",
        outcome.recordings,
        outcome.exchanges,
        outcome.request_text_bytes,
        outcome.response_text_bytes
    )?;
    for (reason, count) in &outcome.left_out {
        writeln!(out, "left out: {count} {reason}")?;
    }
    let mut streams = "";
    for row in &outcome.rows {
        if row.streams != streams {
            streams = row.streams;
            writeln!(
                out,
                "\n{:<36} {:>10} {:>7} {:>10} {:>7}",
                format!("a zlib stream for {streams}"),
                "requests",
                "saved",
                "responses",
                "saved"
            )?;
        }
        writeln!(
            out,
            "{:<36} {:>10} {:>5.1} % {:>10} {:>5.1} %",
            row.compression,
            row.request_bytes,
            row.request_saved_percent,
            row.response_bytes,
            row.response_saved_percent
        )?;
    }
    speed::print(out, &outcome.speed)
}

/// Writes all plain blocks in both directions, one stream for each host.
fn write_blocks(corpus: &Corpus, path: &PathBuf) -> io::Result<()> {
    let mut out = BytesMut::new();
    for stream in streams(corpus, true) {
        for blocks in [stream.requests, stream.responses] {
            out.extend_from_slice(&(blocks.len() as u32).to_be_bytes());
            for block in blocks {
                out.extend_from_slice(&(block.plain_len(VERSION) as u32).to_be_bytes());
                block.encode(VERSION, &mut out);
            }
        }
    }
    std::fs::write(path, out)
}

const USAGE: &str = "usage: headers <folder> [--json] [--speed] [--only <name>] [--blocks <file>]";

fn main() -> io::Result<ExitCode> {
    let (mut folder, mut json, mut with_speed, mut blocks) = (None, false, false, None);
    let mut ways = ways();
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--json") => json = true,
            Some("--speed") => with_speed = true,
            Some("--only") => {
                let only = arguments.next().unwrap_or_default();
                ways.retain(|(name, _)| name.contains(&*only.to_string_lossy()));
            }
            Some("--blocks") => blocks = arguments.next().map(PathBuf::from),
            _ => folder = Some(PathBuf::from(argument)),
        }
    }
    let mut errors = io::stderr().lock();
    let Some(folder) = folder else {
        writeln!(errors, "{USAGE}")?;
        return Ok(ExitCode::from(2));
    };
    let corpus = match Corpus::read(&folder) {
        Ok(corpus) => corpus,
        Err(reason) => {
            writeln!(errors, "{}: {reason}", folder.display())?;
            return Ok(ExitCode::FAILURE);
        }
    };
    if let Some(path) = blocks {
        write_blocks(&corpus, &path)?;
    }
    let mut outcome = measure(&corpus, &ways);
    if with_speed {
        outcome.speed = speed::measure(&corpus, &streams(&corpus, true), &ways);
    }
    let mut out = io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &outcome)?;
        writeln!(out)?;
    } else {
        print(&mut out, &outcome)?;
    }
    Ok(ExitCode::SUCCESS)
}
