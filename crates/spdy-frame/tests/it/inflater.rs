//! Reading compressed blocks: limits, bombs, and streams that are none.

use bytes::{Bytes, BytesMut};
use spdy_frame::compress::{Compression, Deflater, Inflater};
use spdy_frame::error::{BlockError, InflateError};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::version::Version;

use crate::support;

fn inflater() -> Inflater {
    Inflater::new(Version::V31, BlockLimits::default())
}

fn deflate(deflater: &mut Deflater, block: &HeaderBlock) -> Bytes {
    let mut wire = BytesMut::new();
    deflater.deflate(block, &mut wire);
    wire.freeze()
}

/// A block of `plain_bytes` in all.
fn block_of(plain_bytes: usize) -> HeaderBlock {
    // count, two lengths, a name of one byte
    [("a", "x".repeat(plain_bytes - 13))].into_iter().collect()
}

fn first_block() -> Bytes {
    let block = [("a", "b")].into_iter().collect();
    deflate(
        &mut Deflater::new(Version::V31, Compression::Zlib(9)),
        &block,
    )
}

#[test]
fn a_block_of_no_bytes_has_no_headers() {
    let mut inflater = inflater();
    let empty = inflater
        .inflate(&Bytes::new())
        .expect("Netty writes this form");
    assert_eq!(
        (empty.headers, empty.plain_bytes),
        (Ok(HeaderBlock::new()), 0)
    );
    // It is not the first block of the stream either.
    let next = inflater.inflate(&first_block()).expect("the first block");
    assert_eq!(next.headers, Ok([("a", "b")].into_iter().collect()));
    let empty = inflater
        .inflate(&Bytes::new())
        .expect("the stream does not end");
    assert_eq!(empty.headers, Ok(HeaderBlock::new()));
}

#[test]
fn a_block_over_the_limit_fails_its_stream_and_not_the_context() {
    for compression in [
        Compression::CrimeSafe,
        Compression::Zlib(0),
        Compression::Zlib(9),
    ] {
        let mut deflater = Deflater::new(Version::V31, compression);
        let mut wide = BlockLimits::default();
        wide.value_bytes = usize::MAX;
        let mut inflater = Inflater::new(Version::V31, wide);
        let mut inflate = |block: &HeaderBlock| {
            let inflated = inflater
                .inflate(&deflate(&mut deflater, block))
                .expect("compressor and decompressor are in step");
            (inflated.headers, inflated.plain_bytes)
        };
        let limit = 64 * 1024;
        for plain_bytes in [4095, 4096, 4097, 8192, 12_288, 65_535, limit] {
            let block = block_of(plain_bytes);
            assert_eq!(inflate(&block), (Ok(block), plain_bytes), "{compression:?}");
        }
        for found in [limit + 1, 500_000, 1024 * 1024] {
            let too_long = BlockError::TooLong { limit, found };
            assert_eq!(
                inflate(&block_of(found)),
                (Err(too_long), found),
                "{compression:?}"
            );
        }
        let small = block_of(100);
        assert_eq!(
            inflate(&small),
            (Ok(small.clone()), 100),
            "{compression:?}: compressor and decompressor are in step again"
        );
    }
}

#[test]
fn a_block_past_the_hard_limit_ends_the_session() {
    let limit = 1024 * 1024;
    for over in [1, 15 * limit] {
        let mut deflater = Deflater::new(Version::V31, Compression::Zlib(9));
        let wire = deflate(&mut deflater, &block_of(limit + over));
        let error = inflater().inflate(&wire).expect_err("a decompression bomb");
        assert_eq!(error, InflateError::TooLong { limit });
    }
}

#[test]
fn limits_on_pairs_keep_the_context_in_sync() {
    let mut deflater = Deflater::new(Version::V31, Compression::CrimeSafe);
    let mut inflater = inflater();
    let many: HeaderBlock = (0..257).map(|n| (format!("n{n}"), "v")).collect();
    let inflated = inflater
        .inflate(&deflate(&mut deflater, &many))
        .expect("compressor and decompressor are in step");
    assert_eq!(
        inflated.headers,
        Err(BlockError::TooManyPairs {
            limit: 256,
            found: 257
        })
    );
    let next = block_of(50);
    let inflated = inflater
        .inflate(&deflate(&mut deflater, &next))
        .expect("compressor and decompressor are in step");
    assert_eq!(inflated.headers, Ok(next));
}

#[test]
fn a_first_block_without_a_dictionary_is_refused() {
    let head = |bytes: &[u8]| {
        let error = inflater()
            .inflate(&Bytes::copy_from_slice(bytes))
            .expect_err("the zlib header is missing");
        assert_eq!(
            error,
            InflateError::Head {
                found: bytes[..bytes.len().min(2)].to_vec()
            }
        );
    };
    head(&[0x78, 0x9c, 0x63, 0x60, 0x60, 0x60, 0x00, 0x00]); // no FDICT
    head(&[0x38, 0xab, 0xe3, 0xc6, 0xa7, 0xc2, 0x00, 0x00]); // FCHECK is wrong
    head(&[0x37, 0xb3, 0xe3, 0xc6, 0xa7, 0xc2, 0x00, 0x00]); // not deflate
    head(&[0x88, 0x3a, 0xe3, 0xc6, 0xa7, 0xc2, 0x00, 0x00]); // a window of 64 KiB
    head(&[0x38, 0xac, 0xe3, 0xc6, 0xa7]); // cut in the dictionary id
    head(&[0x38]);
}

#[test]
fn another_dictionary_is_refused() {
    let block = [("a", "b")].into_iter().collect();
    let wire = deflate(
        &mut Deflater::new(Version::V2, Compression::CrimeSafe),
        &block,
    );
    let error = inflater()
        .inflate(&wire)
        .expect_err("the dictionary of SPDY/2");
    assert_eq!(
        error,
        InflateError::Dictionary {
            expected: 0xe3c6_a7c2,
            found: 0xdfa2_51b2
        }
    );
}

#[test]
fn invalid_deflate_data_ends_the_session() {
    let mut wire = first_block().to_vec();
    wire[6] = 0x07; // BTYPE 11
    let error = inflater()
        .inflate(&wire.into())
        .expect_err("a reserved block type");
    assert_eq!(error, InflateError::Data { inflated: 0 });

    let mut inflater = inflater();
    inflater.inflate(&first_block()).expect("good");
    let error = inflater
        .inflate(&Bytes::from_static(b"\xff\xff\xff\xff"))
        .expect_err("garbage");
    assert!(matches!(error, InflateError::Data { .. }), "{error}");
}

#[test]
fn an_ended_stream_accepts_no_further_block() {
    // One stored block with BFINAL: a count of 0. A checksum follows.
    let wire = b"\x38\xac\xe3\xc6\xa7\xc2\x01\x04\x00\xfb\xff\0\0\0\0\x00\x04\x00\x01";
    let mut inflater = inflater();
    let inflated = inflater
        .inflate(&Bytes::from_static(wire))
        .expect("the block itself is good");
    assert_eq!(inflated.headers, Ok(HeaderBlock::new()));
    assert_eq!(
        inflater.inflate(&Bytes::from_static(b"\0")).err(),
        Some(InflateError::Ended)
    );
}

#[test]
fn a_truncated_block_is_a_stream_error() {
    let wire = first_block();
    let mut inflater = inflater();
    let inflated = inflater
        .inflate(&wire.slice(..7))
        .expect("the deflate data is valid");
    let error = inflated.headers.expect_err("the count is missing");
    assert!(matches!(error, BlockError::Overrun { .. }), "{error}");
}

#[test]
fn both_ends_may_move_to_another_thread() {
    fn send<T: Send + 'static>() {}
    send::<Inflater>();
    send::<Deflater>();
}

#[test]
fn five_thousand_blocks_stay_in_sync() {
    // Far past 2^16 plain bytes, where places in the window wrap around.
    for compression in [Compression::CrimeSafe, Compression::Zlib(6)] {
        let mut deflater = Deflater::new(Version::V31, compression);
        let mut inflater = inflater();
        let pages = spdy_testkit::page_headers::requests(500, true);
        for (number, pairs) in pages.iter().cycle().take(5000).enumerate() {
            let block = support::block_of(pairs);
            let inflated = inflater.inflate(&deflate(&mut deflater, &block));
            let inflated = inflated.unwrap_or_else(|error| panic!("block {number}: {error}"));
            assert_eq!(
                inflated.headers,
                Ok(block),
                "block {number}, {compression:?}"
            );
        }
    }
}
