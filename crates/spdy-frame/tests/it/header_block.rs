//! Rules of the plain header block (SPDY/3.1 §2.6.10).

use bytes::{BufMut, Bytes, BytesMut};
use spdy_frame::error::BlockError;
use spdy_frame::header_block::{BlockBuilder, BlockLimits, HeaderBlock};
use spdy_frame::version::Version;

/// A block of SPDY/3 with the given count and pairs, valid or not.
fn plain(count: u32, pairs: &[(&[u8], &[u8])]) -> BytesMut {
    let mut plain = BytesMut::new();
    plain.put_u32(count);
    for (name, value) in pairs {
        plain.put_u32(name.len() as u32);
        plain.put_slice(name);
        plain.put_u32(value.len() as u32);
        plain.put_slice(value);
    }
    plain
}

fn decode(plain: &[u8]) -> Result<HeaderBlock, BlockError> {
    HeaderBlock::decode(Version::V31, plain, &BlockLimits::default())
}

fn decode_pair(name: &[u8], value: &[u8]) -> Result<HeaderBlock, BlockError> {
    decode(&plain(1, &[(name, value)]))
}

/// The result of `limits` for a list of pairs.
fn with_limits(limits: &BlockLimits, pairs: &[(&[u8], &[u8])]) -> Result<usize, BlockError> {
    let plain = plain(pairs.len() as u32, pairs);
    HeaderBlock::decode(Version::V31, &plain, limits).map(|block| block.len())
}

#[test]
fn a_pair_is_read_in_either_width() {
    let block: HeaderBlock = [("accept", "*/*")].into_iter().collect();
    let mut out = BytesMut::new();
    block.encode(Version::V2, &mut out);
    assert_eq!(&out[..], b"\0\x01\0\x06accept\0\x03*/*");
    assert_eq!(
        HeaderBlock::decode(Version::V2, &out, &BlockLimits::default()),
        Ok(block.clone())
    );
    out.clear();
    block.encode(Version::V31, &mut out);
    assert_eq!(&out[..], b"\0\0\0\x01\0\0\0\x06accept\0\0\0\x03*/*");
    assert_eq!(decode(&out), Ok(block));
}

#[test]
fn capitals_and_invalid_bytes_in_names_are_refused() {
    let long = b"name";
    for byte in 0..=255_u8 {
        let is_token = byte < 128
            && (byte.is_ascii_lowercase()
                || byte.is_ascii_digit()
                || b"!#$%&'*+-.^_`|~".contains(&byte));
        for name in [
            vec![byte],
            [long, &[byte][..]].concat(),
            [&[byte][..], long].concat(),
        ] {
            let found = decode_pair(&name, b"v").map(|_| ());
            let printed = name.escape_ascii().to_string();
            let leads = byte == b':' && name.len() > 1 && name[0] == byte;
            if is_token || leads {
                assert_eq!(found, Ok(()), "{printed}");
            } else {
                assert_eq!(
                    found,
                    Err(BlockError::NameByte {
                        name: printed,
                        byte
                    })
                );
            }
        }
    }
}

#[test]
fn capitals_in_names_are_lowercased_if_configured() {
    let mut limits = BlockLimits::default();
    limits.lowercase_names = true;
    for version in [Version::V2, Version::V31] {
        let read = |pairs: &[(&str, &str)]| {
            let mut block = BlockBuilder::with_capacity(0);
            for (name, value) in pairs {
                block.pair(name.as_bytes(), value.as_bytes());
            }
            let mut plain = BytesMut::new();
            block.finish().encode(version, &mut plain);
            let copied = HeaderBlock::decode(version, &plain, &limits);
            let shared = HeaderBlock::decode_shared(version, plain.freeze(), &limits);
            assert_eq!(copied, shared);
            shared
        };
        let found = read(&[("x", "A"), ("Content-Length", "Ten"), ("z", "B")]).expect("a block");
        let expected = [("x", "A"), ("content-length", "Ten"), ("z", "B")];
        assert_eq!(found, expected.into_iter().collect(), "{version}");
        let twice = read(&[("Via", "a"), ("via", "b")]);
        assert!(
            matches!(&twice, Err(BlockError::Duplicate { name }) if name == "via"),
            "{twice:?}"
        );
        let strange = read(&[("No Token", "a")]);
        assert!(
            matches!(strange, Err(BlockError::NameByte { .. })),
            "{strange:?}"
        );
    }
}

#[test]
fn a_name_may_begin_with_a_colon_in_spdy3_only() {
    let block: HeaderBlock = [(":path", "/")].into_iter().collect();
    for (version, taken) in [
        (Version::V2, false),
        (Version::V3, true),
        (Version::V31, true),
    ] {
        let mut out = BytesMut::new();
        block.encode(version, &mut out);
        let found = HeaderBlock::decode(version, &out, &BlockLimits::default());
        assert_eq!(found.is_ok(), taken, "{version}");
    }
}

#[test]
fn an_empty_name_is_refused() {
    assert_eq!(decode_pair(b"", b"v"), Err(BlockError::NameEmpty));
}

#[test]
fn an_empty_value_is_read_in_every_version_and_written_from_spdy3_on() {
    let v2 = b"\0\x01\0\x01a\0\0";
    let block = HeaderBlock::decode(Version::V2, v2, &BlockLimits::default());
    let block = block.expect("Chromium wrote such values in SPDY/2");
    assert_eq!(block.get("a"), Some(&b""[..]));
    let mut out = BytesMut::new();
    block.encode(Version::V2, &mut out);
    assert_eq!(&out[..], [0, 0], "no pair is left");
    out.clear();
    block.encode(Version::V31, &mut out);
    assert_eq!(decode(&out), Ok(block));
}

#[test]
fn components_are_separated_by_single_nuls() {
    let block = decode_pair(b"set-cookie", b"a=1\0b=2").expect("two components");
    let components: Vec<&[u8]> = block.components("set-cookie").collect();
    assert_eq!(components, [b"a=1", b"b=2"]);
    for value in [&b"\0"[..], b"\0a", b"a\0", b"a\0\0b", b"\0\0"] {
        let name = "x-list".into();
        assert_eq!(
            decode_pair(b"x-list", value),
            Err(BlockError::EmptyComponent { name })
        );
    }
}

#[test]
fn line_ends_in_values_are_refused() {
    for byte in *b"\r\n" {
        let value = [b"a\0b", &[byte][..], b"evil: 1"].concat();
        let name = "location".into();
        assert_eq!(
            decode_pair(b"location", &value),
            Err(BlockError::ValueByte { name, byte })
        );
    }
    assert!(
        decode_pair(b"x", b"tab\tand \x7f\xff").is_ok(),
        "the other bytes are valid in SPDY"
    );
}

#[test]
fn a_repeated_name_is_refused() {
    let duplicate = Err(BlockError::Duplicate { name: "b".into() });
    assert_eq!(
        decode(&plain(3, &[(b"b", b"1"), (b"a", b"2"), (b"b", b"3")])),
        duplicate
    );
    // Enough names for the way that sorts.
    let names: Vec<Vec<u8>> = (0..200).map(|n| format!("name-{n}").into_bytes()).collect();
    let mut pairs: Vec<(&[u8], &[u8])> = names.iter().map(|name| (&name[..], &b"v"[..])).collect();
    assert_eq!(
        decode(&plain(200, &pairs)).map(|block| block.len()),
        Ok(200)
    );
    pairs.push((&names[57], b"again"));
    let duplicate = Err(BlockError::Duplicate {
        name: "name-57".into(),
    });
    assert_eq!(decode(&plain(201, &pairs)), duplicate);
}

#[test]
fn thousands_of_names_are_sorted_not_compared_with_each_other() {
    // 100,000 names: 5 * 10^9 comparisons if each met each, which no test would wait for.
    let names: Vec<Vec<u8>> = (0..100_000).map(|n| format!("n{n}").into_bytes()).collect();
    let pairs: Vec<(&[u8], &[u8])> = names.iter().map(|name| (&name[..], &b""[..])).collect();
    let mut limits = BlockLimits::default();
    limits.pairs = 100_000;
    limits.plain_bytes = usize::MAX;
    assert_eq!(with_limits(&limits, &pairs), Ok(100_000));
}

#[test]
fn count_lengths_and_end_must_agree() {
    let pair: &[(&[u8], &[u8])] = &[(b"a", b"1")];
    assert!(decode(&plain(1, pair)).is_ok());
    assert_eq!(
        decode(&plain(0, pair)),
        Err(BlockError::Leftover { found: 10 })
    );
    assert_eq!(
        decode(&plain(2, pair)),
        Err(BlockError::Overrun {
            expected: 22,
            found: 14
        })
    );
    let mut tail = plain(1, pair);
    tail.put_u8(0);
    assert_eq!(decode(&tail), Err(BlockError::Leftover { found: 1 }));
    for cut in 0..14 {
        let error = decode(&plain(1, pair)[..cut]).expect_err("a block without its end");
        assert!(
            matches!(error, BlockError::Overrun { found, .. } if found == cut),
            "{error}"
        );
    }
    assert_eq!(
        decode(&[]),
        Err(BlockError::Overrun {
            expected: 4,
            found: 0
        })
    );
}

#[test]
fn lengths_of_gigabytes_are_refused_before_allocation() {
    let error = decode(&plain(u32::MAX, &[(b"a", b"1")])).expect_err("4 G pairs in 14 bytes");
    assert!(matches!(error, BlockError::Overrun { .. }), "{error}");
    let mut long_name = plain(1, &[]);
    long_name.put_u32(u32::MAX);
    long_name.put_slice(b"abcdefghij");
    let expected = 8 + u64::from(u32::MAX);
    assert_eq!(
        decode(&long_name),
        Err(BlockError::Overrun {
            expected,
            found: 18
        })
    );
}

#[test]
fn one_byte_or_pair_past_each_limit_is_refused_as_too_large() {
    let mut limits = BlockLimits::default();
    limits.plain_bytes = 60;
    limits.pairs = 2;
    limits.name_bytes = 4;
    limits.value_bytes = 5;
    let taken = |pairs: &[(&[u8], &[u8])]| with_limits(&limits, pairs);
    let refused = |pairs: &[(&[u8], &[u8])]| {
        let error = taken(pairs).expect_err("one past the limit");
        assert!(error.is_over_limit(), "{error}");
        error
    };
    assert_eq!(taken(&[(b"name", b"value"), (b"b", b"")]), Ok(2));
    assert_eq!(
        refused(&[(b"names", b"")]),
        BlockError::NameTooLong { limit: 4, found: 5 }
    );
    let name = "a".to_owned();
    let too_long = BlockError::ValueTooLong {
        name,
        limit: 5,
        found: 6,
    };
    assert_eq!(refused(&[(b"a", b"values")]), too_long);
    let too_many = BlockError::TooManyPairs { limit: 2, found: 3 };
    assert_eq!(refused(&[(b"a", b""), (b"b", b""), (b"c", b"")]), too_many);
    // A further component counts as a pair.
    assert_eq!(taken(&[(b"a", b"x\0y")]), Ok(1));
    assert_eq!(refused(&[(b"a", b"x\0y"), (b"b", b"")]), too_many);
    let mut wide = limits.clone();
    wide.value_bytes = 100;
    assert_eq!(
        with_limits(&wide, &[(b"a", &[b'x'; 47])]),
        Ok(1),
        "60 bytes"
    );
    let too_long = Err(BlockError::TooLong {
        limit: 60,
        found: 61,
    });
    assert_eq!(with_limits(&wide, &[(b"a", &[b'x'; 48])]), too_long);
}

#[test]
fn push_joins_values_of_one_name() {
    let mut block = HeaderBlock::new();
    block.push("a", "1");
    block.push("b", "");
    block.push("a", "2");
    block.push("a", "");
    block.push("b", "3");
    let pairs: Vec<(&[u8], &[u8])> = block.iter().collect();
    assert_eq!(pairs, [(&b"a"[..], &b"1\x002"[..]), (b"b", b"3")]);
    assert_eq!(block.check(Version::V31, &BlockLimits::default()), Ok(()));
}

#[test]
fn check_agrees_with_decoding() {
    let limits = BlockLimits::default();
    let over = || Bytes::from(vec![b'x'; 65_536]);
    let cases: [(Bytes, Bytes); 4] = [
        ("Accept".into(), "x".into()),
        ("a".into(), "x\ny".into()),
        ("a".into(), over()),
        ("".into(), "x".into()),
    ];
    for (name, value) in cases {
        let block: HeaderBlock = [(name, value)].into_iter().collect();
        let mut out = BytesMut::new();
        block.encode(Version::V31, &mut out);
        let read = HeaderBlock::decode(Version::V31, &out, &limits).map(|_| ());
        assert!(read.is_err());
        assert_eq!(block.check(Version::V31, &limits), read);
    }
    let mut wide = limits;
    wide.plain_bytes = 1 << 20;
    wide.value_bytes = 1 << 20;
    let block: HeaderBlock = [("a", over())].into_iter().collect();
    assert_eq!(block.check(Version::V31, &wide), Ok(()));
    let name = "a".into();
    let too_long = Err(BlockError::ValueTooLong {
        name,
        limit: 65_535,
        found: 65_536,
    });
    assert_eq!(
        block.check(Version::V2, &wide),
        too_long,
        "SPDY/2 counts in 16 bits"
    );
}
