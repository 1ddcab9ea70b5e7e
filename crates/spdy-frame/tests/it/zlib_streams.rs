//! Streams of any zlib writer: the reader of blocks gives what zlib's inflate gives, and the same errors at the same block.

use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;
use spdy_frame::compress::Inflater;
use spdy_frame::dictionary::{dictionary, dictionary_id};
use spdy_frame::error::BlockError;
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::version::Version;
use zlib_rs::{
    Deflate, DeflateConfig, DeflateFlush, Inflate, InflateFlush, Status, Strategy as Way,
};

const VERSION: Version = Version::V31;

/// Wide enough for any block here, so that every byte is compared.
fn limits() -> BlockLimits {
    let mut limits = BlockLimits::default();
    limits.value_bytes = 1 << 20;
    limits.plain_bytes = 1 << 20;
    limits
}

/// What a block held: its headers, and its plain length. `None`: the stream is invalid.
type Read = Option<(Result<HeaderBlock, BlockError>, usize)>;

/// Reads blocks with zlib's inflate, which has a window of 32 KiB whatever the stream states.
struct ZlibReader {
    zlib: Option<Inflate>,
    ended: bool,
}

impl ZlibReader {
    fn read(&mut self, block: &Bytes) -> Read {
        if block.is_empty() {
            return Some((Ok(HeaderBlock::new()), 0));
        }
        if self.ended {
            return None;
        }
        let mut input = &block[..];
        let zlib = self.zlib.get_or_insert_with(|| {
            input = &input[6..];
            let mut zlib = Inflate::new(false, 15);
            zlib.set_dictionary(dictionary(VERSION)).expect("raw");
            zlib
        });
        let mut plain = vec![0; limits().inflated_bytes + 1];
        let (in_before, out_before) = (zlib.total_in(), zlib.total_out());
        let status = zlib.decompress(input, &mut plain, InflateFlush::SyncFlush);
        let status = status.ok()?;
        self.ended = status == Status::StreamEnd;
        let consumed = (zlib.total_in() - in_before) as usize;
        assert!(self.ended || consumed == input.len());
        plain.truncate((zlib.total_out() - out_before) as usize);
        let len = plain.len();
        if len > limits().inflated_bytes {
            return None;
        }
        let headers = HeaderBlock::decode_shared(VERSION, plain.into(), &limits());
        Some((headers, len))
    }
}

/// A writer of blocks.
#[derive(Clone, Debug)]
struct Writer {
    level: i32,
    window_bits: i32,
    mem_level: i32,
    way: Way,
    /// Where the frames of the stream end: as its blocks do, or anywhere.
    cuts: Option<Vec<usize>>,
}

fn any_writer() -> impl Strategy<Value = Writer> {
    let ways = vec![
        Way::Default,
        Way::Default,
        Way::Filtered,
        Way::HuffmanOnly,
        Way::Rle,
        Way::Fixed,
    ];
    let cuts = prop::option::of(prop::collection::vec(1..400_usize, 1..60));
    (0..=9, 11..=15, 1..=9, prop::sample::select(ways), cuts).prop_map(
        |(level, window_bits, mem_level, way, cuts)| Writer {
            level,
            window_bits,
            mem_level,
            way,
            cuts,
        },
    )
}

/// How a block ends.
fn any_flush() -> impl Strategy<Value = DeflateFlush> {
    prop_oneof![
        8 => Just(DeflateFlush::SyncFlush),
        4 => Just(DeflateFlush::PartialFlush),
        1 => Just(DeflateFlush::FullFlush),
        2 => Just(DeflateFlush::Block),
        2 => Just(DeflateFlush::NoFlush),
    ]
}

/// A run of a block's text.
#[derive(Clone, Debug)]
enum Run {
    /// Letters of an alphabet of this size, from this seed.
    Letters(u8, u32, usize),
    /// Text of this length from so far before.
    Again(usize, usize),
}

fn any_runs() -> impl Strategy<Value = Vec<Run>> {
    let run = prop_oneof![
        (1..=220_u8, any::<u32>(), 0..600_usize)
            .prop_map(|(n, seed, len)| Run::Letters(n, seed, len)),
        (1..40_000_usize, 1..3000_usize).prop_map(|(back, len)| Run::Again(back, len)),
        (1..3000_usize, 1..80_usize).prop_map(|(back, len)| Run::Again(back, len)),
    ];
    prop::collection::vec(run, 0..12)
}

/// A byte that a header may have, by number.
const fn letter(number: u32) -> u8 {
    match number {
        0..94 => b'!' + number as u8,
        _ => 0x80 + (number - 94) as u8,
    }
}

/// The plain bytes of a block of one header, whose value is `runs`.
fn plain(runs: &[Run], history: &mut Vec<u8>) -> Vec<u8> {
    let begin = history.len();
    for run in runs {
        match *run {
            Run::Letters(letters, seed, len) => {
                let mut state = seed;
                history.extend((0..len).map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    letter((state >> 16) % u32::from(letters))
                }));
            }
            Run::Again(back, len) => {
                let from = history.len().saturating_sub(back);
                let until = history.len().min(from + len);
                history.extend_from_within(from..until);
            }
        }
    }
    let mut block = HeaderBlock::new();
    block.push("a", &history[begin..]);
    let mut plain = BytesMut::new();
    block.encode(VERSION, &mut plain);
    plain.to_vec()
}

impl Writer {
    /// The frames of a stream of `blocks`.
    fn write(&self, blocks: &[(Vec<Run>, DeflateFlush)], ends: bool) -> Vec<Vec<u8>> {
        let mut zlib = Deflate::new_with_config(DeflateConfig {
            level: self.level,
            window_bits: -self.window_bits,
            mem_level: self.mem_level,
            strategy: self.way,
            ..DeflateConfig::default()
        });
        zlib.set_dictionary(dictionary(VERSION)).expect("new");
        let mut history = Vec::new();
        let mut frames = vec![zlib_head(self.window_bits as u16)];
        for (number, (runs, flush)) in blocks.iter().enumerate() {
            let plain = plain(runs, &mut history);
            let flush = match ends && number + 1 == blocks.len() {
                true => DeflateFlush::Finish,
                false => *flush,
            };
            let mut out = vec![0; 2 * plain.len() + 200_000];
            let before = zlib.total_out();
            zlib.compress(&plain, &mut out, flush).expect("room");
            out.truncate((zlib.total_out() - before) as usize);
            match number {
                0 => frames[0].extend(out),
                _ => frames.push(out),
            }
        }
        match &self.cuts {
            None => frames,
            Some(cuts) => cut(&frames.concat(), cuts),
        }
    }
}

/// CMF and FLG with this window, and the id of the dictionary.
fn zlib_head(window_bits: u16) -> Vec<u8> {
    let head = ((window_bits - 8) << 4 | 8) << 8 | 0x20;
    let mut bytes = Vec::new();
    bytes.put_u16(head + (31 - head % 31));
    bytes.put_u32(dictionary_id(VERSION));
    bytes
}

/// Cuts `wire` into frames of these lengths, repeatedly. The first one holds the zlib head.
fn cut(wire: &[u8], lengths: &[usize]) -> Vec<Vec<u8>> {
    let (mut frames, mut rest) = (Vec::new(), wire);
    for length in lengths.iter().cycle() {
        let length = if frames.is_empty() {
            length + 6
        } else {
            *length
        };
        let (frame, after) = rest.split_at(length.min(rest.len()));
        frames.push(frame.to_vec());
        rest = after;
        if rest.is_empty() {
            break;
        }
    }
    frames
}

/// Reads `frames` with both, up to the first error.
fn compare(frames: Vec<Vec<u8>>) -> Result<(), TestCaseError> {
    let mut inflater = Inflater::new(VERSION, limits());
    let mut zlib = ZlibReader {
        zlib: None,
        ended: false,
    };
    for (number, frame) in frames.into_iter().enumerate() {
        let frame = Bytes::from(frame);
        let found = inflater.inflate(&frame).ok();
        let found = found.map(|block| (block.headers, block.plain_bytes));
        let expected = zlib.read(&frame);
        prop_assert_eq!(&found, &expected, "frame {}: {:02x?}", number, frame);
        if found.is_none() {
            break;
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Any level, window, code and flush, cut into frames anywhere.
    #[test]
    fn the_decoder_agrees_with_zlib(
        writer in any_writer(),
        blocks in prop::collection::vec((any_runs(), any_flush()), 1..20),
        ends in prop::bool::weighted(0.1),
    ) {
        compare(writer.write(&blocks, ends))?;
    }

    /// Streams with wrong bits: the same text, and then an error at the same frame.
    #[test]
    fn the_decoder_agrees_with_zlib_on_damaged_streams(
        mut writer in any_writer(),
        blocks in prop::collection::vec((any_runs(), any_flush()), 1..6),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 1..4),
    ) {
        writer.window_bits = 15;
        let mut frames = writer.write(&blocks, false);
        for (index, bit) in damage {
            let frame = index.index(frames.len());
            let from = if frame == 0 { 6 } else { 0 };
            if frames[frame].len() > from {
                let byte = from + index.index(frames[frame].len() - from);
                frames[frame][byte] ^= 1 << bit;
            }
        }
        compare(frames)?;
    }

    /// Any bits at all: heads of dynamic blocks, mostly, since valid ones are rare.
    #[test]
    fn the_decoder_agrees_with_zlib_on_any_bytes(
        kind in prop::sample::select(vec![0b000_u8, 0b010, 0b100, 0b101, 0b110]),
        bytes in prop::collection::vec(any::<u8>(), 1..400),
        cuts in prop::collection::vec(1..50_usize, 1..10),
    ) {
        let mut wire = zlib_head(15);
        let from = wire.len();
        wire.extend(bytes);
        wire[from] = wire[from] & !0b111 | kind;
        compare(cut(&wire, &cuts))?;
    }
}

#[test]
fn the_mark_of_a_sync_flush_inside_of_text_is_text() {
    // A stored block of eight bytes. Its first frame ends like a sync flush.
    let mut first = zlib_head(15);
    first.extend([0, 8, 0, 0xf7, 0xff, b'a', b'b', 0, 0, 0xff, 0xff]);
    let second = vec![b'c', b'd', 0, 0, 0, 0xff, 0xff];
    let third = vec![0, 1, 0, 0xfe, 0xff, b'e', 0, 0, 0, 0xff, 0xff];
    compare(vec![first, second, third]).expect("the same as zlib");
}
