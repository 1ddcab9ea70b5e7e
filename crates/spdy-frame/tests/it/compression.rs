//! The encoder's output: dictionaries, the first bytes of a stream, and the compression ratio.

use bytes::BytesMut;
use spdy_frame::compress::{Compression, DeflateOptions, Deflater, Inflater};
use spdy_frame::dictionary::{dictionary, dictionary_id};
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::secrets::Secrets;
use spdy_frame::version::Version;
use spdy_testkit::page_headers::{self, Pairs};
use spdy_testkit::zlib;

use crate::support;

#[test]
fn the_dictionaries_are_those_of_every_other_implementation() {
    let reference = zlib::dictionaries().dictionaries;
    let versions = [
        (Version::V2, &reference[0]),
        (Version::V3, &reference[1]),
        (Version::V31, &reference[1]),
    ];
    for (version, reference) in versions {
        let ours = dictionary(version);
        assert_eq!(ours.len(), reference.length, "{version}");
        assert_eq!(
            dictionary_id(version).to_be_bytes(),
            reference.adler32[..],
            "{version}"
        );
        assert_eq!(
            zlib_rs::adler32::adler32(1, ours),
            dictionary_id(version),
            "{version}"
        );
        assert_eq!(
            zlib_rs::crc32::crc32(0, ours).to_be_bytes(),
            reference.crc32[..],
            "{version}"
        );
        assert_eq!(
            ours.first_chunk::<16>().map(|b| &b[..]),
            Some(&reference.first16[..])
        );
        assert_eq!(
            ours.last_chunk::<16>().map(|b| &b[..]),
            Some(&reference.last16[..])
        );
    }
}

#[test]
fn streams_begin_with_the_header_of_zlib() {
    let starts = zlib::dictionaries().zlib_stream_starts;
    let mut checked = 0;
    for start in starts.iter().filter(|start| start.window_bits >= 11) {
        let version = support::version(&start.version);
        let compressions = [Some(Compression::Zlib(start.level))];
        // The first byte of our own encoder is that of zlib's default level.
        let masked = (start.level == 6).then_some(Compression::CrimeSafe);
        for compression in compressions.into_iter().chain([masked]).flatten() {
            let mut options = DeflateOptions::from(compression);
            options.window_bits = start.window_bits;
            let mut wire = BytesMut::new();
            Deflater::new(version, options).deflate(&HeaderBlock::new(), &mut wire);
            assert_eq!(&wire[..6], &start.first6[..], "{version} {compression:?}");
            checked += 1;
        }
    }
    assert!(checked >= 10, "only {checked} starts were checked");
}

#[test]
fn streams_are_read_with_every_zlib_header() {
    let starts = zlib::dictionaries().zlib_stream_starts;
    assert_eq!(starts.len(), 98);
    for start in starts {
        let version = support::version(&start.version);
        let headers: HeaderBlock = [("a", "b")].into_iter().collect();
        let mut wire = BytesMut::new();
        // Without matches, which could reach further back than the window of the start.
        Deflater::new(version, Compression::Zlib(0)).deflate(&headers, &mut wire);
        wire[..6].copy_from_slice(&start.first6);
        let inflated = Inflater::new(version, BlockLimits::default()).inflate(&wire.freeze());
        let inflated = inflated.unwrap_or_else(|error| panic!("{:x?}: {error}", &start.first6[..]));
        assert_eq!(inflated.headers, Ok(headers));
    }
}

#[test]
fn a_level_past_nine_is_nine() {
    let block = [("a", "b")].into_iter().collect();
    let wire = |level| {
        let mut wire = BytesMut::new();
        Deflater::new(Version::V31, Compression::Zlib(level)).deflate(&block, &mut wire);
        wire
    };
    assert_eq!(wire(255), wire(9));
}

/// Plain and compressed bytes of `blocks` in one stream.
fn sizes(options: impl Into<DeflateOptions>, blocks: &[Pairs]) -> (usize, usize) {
    let mut deflater = Deflater::new(Version::V31, options);
    let mut wire = BytesMut::new();
    let plain: usize = blocks
        .iter()
        .map(|pairs| deflater.deflate(&support::block_of(pairs), &mut wire))
        .sum();
    (plain, wire.len())
}

/// Bytes of the values of `name`.
fn value_bytes(blocks: &[Pairs], name: &str) -> usize {
    let values = blocks.iter().flatten().filter(|(other, _)| other == name);
    values.map(|(_, value)| value.len()).sum()
}

#[test]
fn protection_adds_little_more_than_the_private_values() {
    // What our encoder writes more than zlib at its best, in bytes a block: a few for the fixed code, and the private
    // values, of which zlib finds most in its window.
    let (requests, responses) = (
        page_headers::requests(100, false),
        page_headers::responses(100),
    );
    for (what, blocks, private) in [
        ("requests", &requests, value_bytes(&requests, ":path")),
        (
            "responses",
            &responses,
            value_bytes(&responses, "etag") + value_bytes(&responses, "content-length"),
        ),
    ] {
        let masked = sizes(Compression::CrimeSafe, blocks).1;
        let zlib = sizes(Compression::Zlib(9), blocks).1;
        let more = masked.saturating_sub(zlib + private);
        assert!(
            more < 100 * 8,
            "{what}: {masked} bytes, zlib {zlib}, {private} private"
        );
    }
    // With a cookie in each request, its short crumbs are the price, and the others once.
    let with = page_headers::requests(100, true);
    let cookies = value_bytes(&with, "cookie");
    let price =
        |options: DeflateOptions| sizes(options.clone(), &with).1 - sizes(options, &requests).1;
    let whole = price(Compression::CrimeSafe.into());
    assert!(
        whole < cookies / 2,
        "{whole} bytes for 100 cookies of together {cookies}"
    );
    // Where nothing may repeat: all of their bytes, and nothing else. Name and lengths are a match of a
    // few bytes.
    let mut options = DeflateOptions::default();
    options.secrets = Secrets::default().whole_matches(false);
    let strict = price(options);
    let around = strict.abs_diff(cookies);
    assert!(
        around < 100 * 8,
        "{strict} bytes for 100 cookies of together {cookies}"
    );
}

#[test]
fn a_wider_window_saves_more_and_is_clamped() {
    let blocks = page_headers::responses(300);
    for compression in [Compression::CrimeSafe, Compression::Zlib(9)] {
        let size = |window_bits| {
            let mut options = DeflateOptions::from(compression);
            options.window_bits = window_bits;
            sizes(options, &blocks).1
        };
        assert!(
            size(15) <= size(13) && size(13) < size(11),
            "{compression:?}"
        );
        assert_eq!(
            (size(8), size(200)),
            (size(11), size(15)),
            "{compression:?}"
        );
    }
}
