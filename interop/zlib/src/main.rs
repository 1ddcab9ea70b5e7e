//! Measures how many header blocks per second of CPU time another zlib compresses and decompresses.
//!
//! ```text
//! cargo run --release -p spdy-lab --example headers -- FOLDER --blocks blocks.bin
//! cd interop/zlib
//! for zlib in zlib zlib-ng zlib-rs; do cargo run --release --features $zlib -- ../../blocks.bin; done
//! ```
//!
//! Compresses and decompresses the blocks that the example wrote: one zlib stream for each stream of the file, with the
//! dictionary of SPDY/3, a window of 32 KiB, and a sync flush after each block.

use std::io::{self, Write};
use std::time::Duration;

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};

const DICTIONARY: &[u8] =
    include_bytes!("../../../crates/spdy-frame/src/compression/dictionary/v3.bin");

#[cfg(feature = "zlib")]
const ZLIB: &str = "zlib";
#[cfg(feature = "zlib-ng")]
const ZLIB: &str = "zlib-ng";
#[cfg(feature = "zlib-rs")]
const ZLIB: &str = "zlib-rs";

/// Number of rounds; the fastest is reported.
const ROUNDS: usize = 3;
/// Passes per round: several, because the kernel updates a thread's CPU time only once a tick.
const PASSES: u32 = 5;

/// CPU time of this thread.
fn cpu_time() -> io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
    nanos
        .map(Duration::from_nanos)
        .ok_or_else(|| io::Error::other(format!("schedstat reads {text:?}")))
}

/// Removes a big-endian `u32` from the front of `file`.
fn number(file: &mut &[u8]) -> Option<usize> {
    let (number, rest) = file.split_first_chunk()?;
    *file = rest;
    Some(u32::from_be_bytes(*number) as usize)
}

fn streams(mut file: &[u8]) -> Option<Vec<Vec<&[u8]>>> {
    let mut streams = Vec::new();
    while !file.is_empty() {
        let mut blocks = Vec::new();
        for _ in 0..number(&mut file)? {
            let len = number(&mut file)?;
            let (block, rest) = file.split_at_checked(len)?;
            blocks.push(block);
            file = rest;
        }
        streams.push(blocks);
    }
    Some(streams)
}

fn deflate(level: u32, stream: &[&[u8]]) -> Vec<Vec<u8>> {
    let mut zlib = Compress::new_with_window_bits(Compression::new(level), true, 15);
    zlib.set_dictionary(DICTIONARY).expect("the stream is new");
    let block = |block: &&[u8]| {
        let mut out = Vec::with_capacity(block.len() + block.len() / 8 + 64);
        let before = zlib.total_in();
        zlib.compress_vec(block, &mut out, FlushCompress::Sync)
            .expect("compress a block");
        assert_eq!(
            zlib.total_in() - before,
            block.len() as u64,
            "the output buffer is too small"
        );
        out
    };
    stream.iter().map(block).collect()
}

fn inflate(stream: &[Vec<u8>]) -> usize {
    let mut zlib = Decompress::new(true);
    let mut plain = Vec::with_capacity(64 * 1024);
    let mut sum = 0;
    for block in stream {
        plain.clear();
        let before = zlib.total_in();
        if zlib
            .decompress_vec(block, &mut plain, FlushDecompress::Sync)
            .is_err()
        {
            zlib.set_dictionary(DICTIONARY).expect("our dictionary");
            let rest = &block[(zlib.total_in() - before) as usize..];
            zlib.decompress_vec(rest, &mut plain, FlushDecompress::Sync)
                .expect("blocks that were just compressed");
        }
        sum += plain.len();
    }
    sum
}

fn main() -> io::Result<()> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or_else(|| io::Error::other("missing argument: the file of blocks"))?;
    let file = std::fs::read(path)?;
    let streams =
        streams(&file).ok_or_else(|| io::Error::other("the file of blocks is truncated"))?;
    let count = streams.iter().map(Vec::len).sum::<usize>() as f64;
    let plain: usize = streams.iter().flatten().map(|block| block.len()).sum();
    let mut out = io::stdout().lock();
    for level in [1, 6, 9] {
        let (mut to, mut from, mut bytes) = (Duration::MAX, Duration::MAX, 0);
        for _ in 0..ROUNDS {
            let all = || -> Vec<_> {
                streams
                    .iter()
                    .map(|stream| deflate(level, stream))
                    .collect()
            };
            let start = cpu_time()?;
            (1..PASSES).for_each(|_| drop(all()));
            let wire = all();
            let middle = cpu_time()?;
            for _ in 0..PASSES {
                let back: usize = wire.iter().map(|stream| inflate(stream)).sum();
                assert_eq!(back, plain, "decompressed size");
            }
            to = to.min((middle - start) / PASSES);
            from = from.min((cpu_time()? - middle) / PASSES);
            bytes = wire.iter().flatten().map(Vec::len).sum();
        }
        let rate = |elapsed: Duration| count / elapsed.as_secs_f64() / 1e3;
        writeln!(
            out,
            "{ZLIB} {level}: {bytes} bytes, deflate {:.0}, inflate {:.0} thousand blocks a second",
            rate(to),
            rate(from)
        )?;
    }
    Ok(())
}
