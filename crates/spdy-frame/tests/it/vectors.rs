//! Known answers of independent implementations, in all three versions (`vectors/spec/`).

use bytes::{Bytes, BytesMut};
use spdy_frame::compress::{Compression, Deflater, Inflater};
use spdy_frame::frame::Frame;
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::version::Version;
use spdy_testkit::fields::Fields;
use spdy_testkit::{frames, hex, live, sequences, zlib};

use crate::support;

#[test]
fn single_frames_decode_to_their_fields_with_any_split() {
    let mut checked = 0;
    for vector in frames::all() {
        let version = support::version(&vector.version);
        let expected = vector
            .fields
            .iter()
            .map(|fields| support::expected(version, fields).0);
        let expected: Vec<Frame> = expected.collect();
        for cut in 0..=vector.hex.len() {
            let (head, tail) = vector.hex.split_at(cut);
            let actual = support::decode_pieces(version, [head, tail]);
            assert_eq!(actual.as_ref(), Ok(&expected), "{} cut at {cut}", vector.id);
        }
        let actual = support::decode_in_pieces(version, &vector.hex, 1);
        assert_eq!(actual.as_ref(), Ok(&expected), "{} byte by byte", vector.id);
        checked += expected.len();
    }
    assert_eq!(
        checked, 80,
        "82 vectors, two of which are shorter than their length field"
    );
}

#[test]
fn single_frames_encode_back_to_the_same_bytes() {
    let ours = |vector: &&frames::FrameVector| vector.deviation.is_none();
    let mut checked = 0;
    for vector in frames::all().iter().filter(ours) {
        let version = support::version(&vector.version);
        let fields = vector
            .fields
            .as_ref()
            .expect("a requested frame has fields");
        let (frame, _) = support::expected(version, fields);
        let wire = support::encode(version, &[frame]);
        assert_eq!(
            hex::encode(&wire),
            hex::encode(&vector.hex),
            "{}",
            vector.id
        );
        checked += 1;
    }
    assert_eq!(
        checked, 70,
        "vectors whose bytes match the request to their producer"
    );
}

#[test]
fn one_way_sessions_decode_to_their_fields_with_any_split() {
    let sequences = sequences::all();
    let frames = sequences.iter().map(|sequence| sequence.frames.len());
    assert_eq!((sequences.len(), frames.sum::<usize>()), (26, 351));
    for sequence in sequences {
        let version = support::version(&sequence.version);
        let expected = support::all_expected(version, sequence.frames.iter().map(|f| &f.fields));
        for piece in [1, 2, 3, 5, 7, 8, 9, 13, 64, 100, 256, sequence.bytes.len()] {
            let context = format!("{} in pieces of {piece}", sequence.id);
            let frames = support::decode_in_pieces(version, &sequence.bytes, piece);
            let frames = frames.unwrap_or_else(|error| panic!("{context}: {error}"));
            assert_eq!(
                support::meanings(version, frames, &context),
                expected,
                "{context}"
            );
        }
        for cut in 0..sequence.bytes.len() {
            let (head, tail) = sequence.bytes.split_at(cut);
            let whole = support::decode_pieces(version, [&sequence.bytes[..]]);
            let actual = support::decode_pieces(version, [head, tail]);
            assert_eq!(actual, whole, "{} cut at {cut}", sequence.id);
        }
    }
}

#[test]
fn frames_of_sessions_encode_back_to_the_same_bytes() {
    let (mut checked, mut theirs) = (0, Vec::new());
    for sequence in sequences::all() {
        let version = support::version(&sequence.version);
        for frame in &sequence.frames {
            let decoded = support::decode_pieces(version, [&frame.hex[..]]).expect("a good frame");
            if support::encode(version, &decoded)[..] == frame.hex[..] {
                checked += 1;
            } else {
                theirs.push(format!("{} {}", sequence.id, frame.label));
            }
        }
    }
    // Bytes that we read and would not write, all of them of node's SPDY/2: GOAWAY with a status, and
    // priorities in three bits, the third of which is unused there.
    let client = ["c06_syn_get_again", "c09_syn_put", "c12_goaway"];
    let server = ["s02_push_syn", "s15_goaway"];
    let of = |side: &str, labels: &[&str]| -> Vec<String> {
        labels
            .iter()
            .map(|label| format!("seq_v2_spdy_transport_{side} {label}"))
            .collect()
    };
    let expected = [
        of("client", &client),
        of("server", &server),
        of("l0_client", &client),
        of("l0_server", &server),
    ];
    let expected = expected.concat();
    assert_eq!(theirs, expected);
    assert!(checked > 250, "only {checked} frames");
}

#[test]
fn plain_blocks_of_sessions_encode_back_to_the_same_bytes() {
    let mut checked = 0;
    for sequence in sequences::all() {
        let version = support::version(&sequence.version);
        for frame in &sequence.frames {
            let (Fields::SynStream {
                headers,
                block_plain: Some(plain),
                ..
            }
            | Fields::SynReply {
                headers,
                block_plain: Some(plain),
                ..
            }
            | Fields::Headers {
                headers,
                block_plain: Some(plain),
                ..
            }) = &frame.fields
            else {
                continue;
            };
            let block = support::header_block(headers);
            let context = format!("{} {}", sequence.id, frame.label);
            check_plain(version, &block, plain, &context);
            checked += 1;
        }
    }
    assert!(checked > 100, "only {checked} blocks");
}

/// `block` is read from `plain` and written as `plain`.
fn check_plain(version: Version, block: &HeaderBlock, plain: &[u8], context: &str) {
    let read = HeaderBlock::decode(version, plain, &BlockLimits::default());
    assert_eq!(read.as_ref(), Ok(block), "{context}");
    let mut written = BytesMut::new();
    block.encode(version, &mut written);
    assert_eq!(block.plain_len(version), written.len(), "{context}");
    assert_eq!(hex::encode(&written), hex::encode(plain), "{context}");
}

#[test]
fn recorded_connections_decode_in_both_directions() {
    let connections = live::all();
    let frames = connections
        .iter()
        .map(|connection| connection.client.frames.len() + connection.server.frames.len());
    assert_eq!((connections.len(), frames.sum::<usize>()), (8, 149));
    for connection in connections {
        let version = support::version(&connection.version);
        for (side, direction) in [("client", connection.client), ("server", connection.server)] {
            let expected = support::all_expected(version, &direction.frames);
            for piece in [1, 3, 8, 17, 64, direction.bytes.len()] {
                let context = format!("{} {side} in pieces of {piece}", connection.id);
                let frames = support::decode_in_pieces(version, &direction.bytes, piece);
                let frames = frames.unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(
                    support::meanings(version, frames, &context),
                    expected,
                    "{context}"
                );
            }
        }
    }
}

/// Every recording is one that a test above reads.
#[test]
fn every_recording_is_read() {
    let mut recordings = 0;
    for (folder, readers) in [
        ("live", 2 * live::all().len()),
        ("sequences", sequences::all().len()),
    ] {
        let folder = spdy_testkit::vectors::directory().join("spec").join(folder);
        let files = std::fs::read_dir(folder).expect("a folder").count();
        assert_eq!(files, readers);
        recordings += files;
    }
    assert_eq!(recordings, 42);
}

#[test]
fn every_legal_way_to_compress_inflates() {
    let vectors = zlib::all();
    assert_eq!(vectors.len(), 50);
    for vector in vectors {
        let version = support::version(&vector.version);
        let mut inflater = Inflater::new(version, BlockLimits::default());
        for (number, block) in vector.blocks.iter().enumerate() {
            let context = format!("{} block {number}", vector.id);
            let inflated = inflater.inflate(&Bytes::copy_from_slice(&block.compressed));
            let inflated = inflated.unwrap_or_else(|error| panic!("{context}: {error}"));
            let expected = support::header_block(&block.headers);
            assert_eq!(inflated.headers, Ok(expected.clone()), "{context}");
            assert_eq!(inflated.plain_bytes, block.plain.len(), "{context}");
            check_plain(version, &expected, &block.plain, &context);
        }
    }
}

#[test]
fn blocks_compressed_again_inflate_to_the_same_headers() {
    let ways = [
        Compression::CrimeSafe,
        Compression::Zlib(0),
        Compression::Zlib(1),
    ];
    for vector in zlib::all() {
        let version = support::version(&vector.version);
        for compression in ways
            .into_iter()
            .chain([Compression::Zlib(6), Compression::Zlib(9)])
        {
            let mut deflater = Deflater::new(version, compression);
            let mut inflater = Inflater::new(version, BlockLimits::default());
            for (number, block) in vector.blocks.iter().enumerate() {
                let context = format!("{} block {number}, {compression:?}", vector.id);
                let headers = support::header_block(&block.headers);
                let mut wire = BytesMut::new();
                let plain_bytes = deflater.deflate(&headers, &mut wire);
                assert_eq!(plain_bytes, block.plain.len(), "{context}");
                assert!(
                    wire.ends_with(&[0, 0, 0xff, 0xff]),
                    "{context}: no sync flush"
                );
                let inflated = inflater.inflate(&wire.freeze());
                let inflated = inflated.unwrap_or_else(|error| panic!("{context}: {error}"));
                assert_eq!(inflated.headers, Ok(headers), "{context}");
            }
        }
    }
}
