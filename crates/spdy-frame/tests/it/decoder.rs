//! Rules of decoding (SPDY/3.1 §2.2, §2.6): which frames are rejected, skipped, or ignored.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::error::FrameError;
use spdy_frame::frame::{Data, Frame, GoAway, Ping, RstStream, SettingId, WindowUpdate};
use spdy_frame::kind::Kind;
use spdy_frame::priority::Priority;
use spdy_frame::status::{GoAwayStatus, RstStatus};
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

/// A control frame from its parts.
fn control(version: Version, number: u16, flags: u8, payload: &[u8]) -> BytesMut {
    let mut wire = head(version.wire(), number, flags, payload.len());
    wire.put_slice(payload);
    wire
}

fn head(version: u16, number: u16, flags: u8, len: usize) -> BytesMut {
    let mut wire = BytesMut::new();
    wire.put_u16(0x8000 | version);
    wire.put_u16(number);
    wire.put_u32(u32::from(flags) << 24 | len as u32);
    wire
}

fn decoder(version: Version) -> Decoder {
    Decoder::new(version, Limits::default())
}

/// The one thing that `wire` is.
fn only(version: Version, mut wire: BytesMut) -> Result<Frame, FrameError> {
    let mut decoder = decoder(version);
    let frame = decoder.decode(&mut wire)?.expect("a complete frame");
    assert_eq!(decoder.decode(&mut wire)?, None, "more than one frame");
    assert!(wire.is_empty(), "{} bytes left", wire.len());
    Ok(frame)
}

fn stream(id: u32) -> StreamId {
    StreamId::new(id)
}

/// Numbers and lengths of the types that have one length in SPDY/3.
const FIXED: [(u16, Kind, usize); 4] = [
    (3, Kind::RstStream, 8),
    (6, Kind::Ping, 4),
    (7, Kind::GoAway, 8),
    (9, Kind::WindowUpdate, 8),
];

#[test]
fn a_fixed_length_is_checked_in_the_head() {
    for (number, kind, expected) in FIXED {
        for found in [0, expected - 1, expected + 1, 0x00ff_ffff] {
            let mut head = head(3, number, 0, found);
            let error = decoder(Version::V31).decode(&mut head);
            assert_eq!(
                error,
                Err(FrameError::Length {
                    kind,
                    expected,
                    found
                })
            );
        }
    }
}

#[test]
fn goaway_of_spdy2_has_four_bytes_or_eight() {
    let bare = only(Version::V2, control(Version::V2, 7, 0, &[0, 0, 0, 5]));
    assert_eq!(
        bare,
        Ok(Frame::GoAway(GoAway {
            last_good: stream(5),
            status: None
        }))
    );
    let with_status = only(
        Version::V2,
        control(Version::V2, 7, 0, &[0, 0, 0, 5, 0, 0, 0, 1]),
    );
    let status = Some(GoAwayStatus::PROTOCOL_ERROR);
    assert_eq!(
        with_status,
        Ok(Frame::GoAway(GoAway {
            last_good: stream(5),
            status
        }))
    );
    let six = only(Version::V2, control(Version::V2, 7, 0, &[0; 6]));
    assert_eq!(
        six,
        Err(FrameError::Length {
            kind: Kind::GoAway,
            expected: 4,
            found: 6
        })
    );
}

#[test]
fn goaway_with_the_drafts_internal_error_reads_as_2() {
    let frame = only(
        Version::V31,
        control(Version::V31, 7, 0, &[0, 0, 0, 1, 0, 0, 0, 11]),
    );
    let status = Some(GoAwayStatus::INTERNAL_ERROR);
    assert_eq!(
        frame,
        Ok(Frame::GoAway(GoAway {
            last_good: stream(1),
            status
        }))
    );
}

#[test]
fn a_frame_with_a_block_is_at_least_its_fixed_part() {
    let cases = [
        (Version::V31, 1, Kind::SynStream, 10),
        (Version::V2, 1, Kind::SynStream, 10),
        (Version::V31, 2, Kind::SynReply, 4),
        (Version::V2, 2, Kind::SynReply, 6),
        (Version::V31, 8, Kind::Headers, 4),
        (Version::V2, 8, Kind::Headers, 6),
        (Version::V31, 4, Kind::Settings, 4),
    ];
    for (version, number, kind, expected) in cases {
        let mut short = head(version.wire(), number, 0, expected - 1);
        let error = decoder(version).decode(&mut short);
        assert_eq!(
            error,
            Err(FrameError::TooShort {
                kind,
                expected,
                found: expected - 1
            })
        );
        if kind != Kind::Settings {
            let mut payload = vec![0; expected];
            payload[3] = 1;
            let frame = only(version, control(version, number, 0, &payload));
            assert_eq!(
                frame.map(|frame| frame.kind()),
                Ok(kind),
                "an empty block is a block"
            );
        }
    }
}

#[test]
fn flags_are_ignored_on_frame_types_that_define_none() {
    for (number, kind, len) in FIXED {
        let mut payload = vec![0; len];
        payload[3] = 1; // of a stream, PING 1, a delta
        for flags in [0x01, 0x80, 0xff] {
            let plain = only(Version::V31, control(Version::V31, number, 0, &payload));
            let flagged = only(Version::V31, control(Version::V31, number, flags, &payload));
            assert_eq!(flagged, plain, "{kind} with flags {flags:#04x}");
            assert!(flagged.is_ok(), "{kind} with flags {flags:#04x}");
        }
    }
}

#[test]
fn unknown_flags_are_ignored_where_some_are_defined() {
    let syn = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    let frame = only(Version::V31, control(Version::V31, 1, 0xfc, &syn));
    let Ok(Frame::SynStream(syn)) = frame else {
        panic!("{frame:?}")
    };
    assert!(!syn.fin && !syn.unidirectional);
    for number in [2, 8] {
        let frame = only(
            Version::V31,
            control(Version::V31, number, 0xfe, &[0, 0, 0, 1]),
        );
        assert!(frame.is_ok(), "type {number}: {frame:?}");
    }
    let frame = only(Version::V31, control(Version::V31, 4, 0xfe, &[0; 4]));
    assert!(
        matches!(&frame, Ok(Frame::Settings(s)) if !s.clear),
        "{frame:?}"
    );
    let data = only(
        Version::V31,
        BytesMut::from(&[0, 0, 0, 1, 0xfc, 0, 0, 0][..]),
    );
    let payload = Bytes::new();
    assert_eq!(
        data,
        Ok(Frame::Data(Data {
            stream_id: stream(1),
            payload,
            fin: false
        }))
    );
}

#[test]
fn compressed_data_is_reported_once_and_dropped() {
    let mut wire = BytesMut::from(&[0, 0, 0, 1, 0x03, 0, 0, 4][..]);
    let mut decoder = decoder(Version::V31);
    let frame = Frame::CompressedData {
        stream_id: stream(1),
        len_bytes: 4,
    };
    assert_eq!(decoder.decode(&mut wire), Ok(Some(frame)));
    wire.put_slice(&[1, 2]);
    assert_eq!(decoder.decode(&mut wire), Ok(None));
    assert!(wire.is_empty());
    wire.put_slice(&[3, 4]);
    Frame::Ping(Ping { id: 7 }).encode(Version::V31, &mut wire);
    assert_eq!(
        decoder.decode(&mut wire),
        Ok(Some(Frame::Ping(Ping { id: 7 })))
    );
}

#[test]
fn another_version_ends_the_session() {
    for (session, found) in [(Version::V31, 2), (Version::V3, 4), (Version::V2, 3)] {
        let error = decoder(session).decode(&mut head(found, 6, 0, 4));
        let expected = session.wire();
        assert_eq!(
            error,
            Err(FrameError::Version {
                kind: Kind::Ping,
                expected,
                found
            })
        );
    }
}

#[test]
fn stream_zero_is_invalid() {
    let cases = [
        (1, Kind::SynStream, 10),
        (2, Kind::SynReply, 4),
        (3, Kind::RstStream, 8),
    ];
    for (number, kind, len) in cases.into_iter().chain([(8, Kind::Headers, 4)]) {
        // The reserved bit does not make it one.
        let mut payload = vec![0; len];
        payload[0] = 0x80;
        let error = only(Version::V31, control(Version::V31, number, 0, &payload));
        assert_eq!(error, Err(FrameError::StreamZero { kind }));
    }
    let error = decoder(Version::V31).decode(&mut BytesMut::from(&[0; 8][..]));
    assert_eq!(error, Err(FrameError::StreamZero { kind: Kind::Data }));
}

#[test]
fn reserved_bits_are_ignored() {
    let rst = only(
        Version::V31,
        control(Version::V31, 3, 0, &[0x80, 0, 0, 1, 0x80, 0, 0, 5]),
    );
    let status = RstStatus(0x8000_0005);
    assert_eq!(
        rst,
        Ok(Frame::RstStream(RstStream {
            stream_id: stream(1),
            status
        }))
    );
    let update = only(
        Version::V31,
        control(Version::V31, 9, 0, &[0x80, 0, 0, 0, 0x80, 0, 0, 9]),
    );
    let expected_update = WindowUpdate {
        stream_id: StreamId::ZERO,
        delta: 9,
    };
    assert_eq!(update, Ok(Frame::WindowUpdate(expected_update)));
    let syn = [0x80, 0, 0, 3, 0x80, 0, 0, 1, 0xff, 0xff];
    let Ok(Frame::SynStream(syn)) = only(Version::V3, control(Version::V3, 1, 0, &syn)) else {
        panic!("not a SYN_STREAM");
    };
    assert_eq!((syn.stream_id, syn.associated_to), (stream(3), stream(1)));
    assert_eq!(syn.priority, Priority::LOWEST);
}

#[test]
fn the_four_levels_of_spdy2_spread_over_eight() {
    for level in 0..4 {
        let payload = [0, 0, 0, 1, 0, 0, 0, 0, level << 6 | 0x3f, 0];
        let frame = only(Version::V2, control(Version::V2, 1, 0, &payload));
        let Ok(Frame::SynStream(syn)) = frame else {
            panic!("{frame:?}")
        };
        assert_eq!(syn.priority, Priority::new(2 * level));
    }
}

#[test]
fn a_control_frame_one_byte_past_the_limit_is_refused_by_its_head() {
    let mut limits = Limits::default();
    limits.control_payload_bytes = 8192;
    let mut at_limit = control(Version::V31, 8, 0, &[1; 8192]);
    let frame = Decoder::new(Version::V31, limits.clone()).decode(&mut at_limit);
    assert!(
        matches!(&frame, Ok(Some(Frame::Headers(h))) if h.block.len() == 8188),
        "{frame:?}"
    );
    let error = Decoder::new(Version::V31, limits).decode(&mut head(3, 8, 0, 8193));
    let (kind, limit, found) = (Kind::Headers, 8192, 8193);
    assert_eq!(error, Err(FrameError::TooLarge { kind, limit, found }));
}

#[test]
fn the_default_limit_allows_what_the_spec_requires() {
    assert!(Limits::default().control_payload_bytes >= 8192);
}

#[test]
fn unread_frames_are_skipped_as_they_arrive() {
    let longest = 0x00ff_ffff;
    let cases = [
        (Version::V31, 11, Kind::Unknown(11)),
        (Version::V31, 0xf000, Kind::Unknown(0xf000)),
        (Version::V31, 5, Kind::Unknown(5)),
        (Version::V31, 10, Kind::Credential),
        (Version::V2, 10, Kind::Unknown(10)),
        (Version::V2, 9, Kind::WindowUpdate),
        (Version::V2, 0, Kind::Unknown(0)),
    ];
    let chunk = vec![0xab; 65_537];
    for (version, number, kind) in cases {
        let mut decoder = decoder(version);
        let mut input = head(version.wire(), number, 0xff, longest);
        let seen = Frame::Skipped {
            kind,
            len_bytes: longest,
        };
        assert_eq!(decoder.decode(&mut input), Ok(Some(seen)));
        let mut left = longest;
        while left > 0 {
            assert!(!decoder.is_between_frames());
            let piece = left.min(chunk.len());
            input.extend_from_slice(&chunk[..piece]);
            left -= piece;
            assert_eq!(decoder.decode(&mut input), Ok(None));
            assert!(
                input.is_empty(),
                "{} bytes buffered of a frame to skip",
                input.len()
            );
        }
        assert!(decoder.is_between_frames());
        Frame::Ping(Ping { id: 1 }).encode(version, &mut input);
        assert_eq!(
            decoder.decode(&mut input),
            Ok(Some(Frame::Ping(Ping { id: 1 })))
        );
    }
}

#[test]
fn noop_is_a_frame_of_spdy2_that_has_no_payload() {
    assert_eq!(
        only(Version::V2, control(Version::V2, 5, 0, &[])),
        Ok(Frame::Noop)
    );
    assert_eq!(
        only(Version::V2, control(Version::V2, 5, 0, &[1])),
        Err(FrameError::Length {
            kind: Kind::Noop,
            expected: 0,
            found: 1
        })
    );
}

#[test]
fn data_is_returned_as_it_arrives_without_a_copy() {
    let mut decoder = decoder(Version::V31);
    let mut input = BytesMut::from(&[0, 0, 0, 1, 0x01, 0, 0, 5, b'h', b'e'][..]);
    let place = input[8..].as_ptr();
    let piece = |payload: &'static [u8], fin| {
        let payload = Bytes::from_static(payload);
        Ok(Some(Frame::Data(Data {
            stream_id: stream(1),
            payload,
            fin,
        })))
    };
    let first = decoder.decode(&mut input);
    assert_eq!(first, piece(b"he", false));
    let Ok(Some(Frame::Data(first))) = first else {
        unreachable!("the kinds were compared above")
    };
    assert_eq!(first.payload.as_ptr(), place, "copied");
    assert_eq!(decoder.decode(&mut input), Ok(None));
    input.put_slice(b"llo");
    assert_eq!(decoder.decode(&mut input), piece(b"llo", true));
    assert!(input.is_empty() && decoder.is_between_frames());
}

#[test]
fn data_of_no_bytes_is_one_empty_piece() {
    for (flags, fin) in [(0, false), (1, true)] {
        let wire = BytesMut::from(&[0, 0, 0, 1, flags, 0, 0, 0][..]);
        let payload = Bytes::new();
        let expected = Frame::Data(Data {
            stream_id: stream(1),
            payload,
            fin,
        });
        assert_eq!(only(Version::V31, wire), Ok(expected));
    }
}

#[test]
fn a_block_shares_the_bytes_it_arrived_in() {
    let mut wire = control(Version::V31, 8, 0, &[0, 0, 0, 1, 9, 9, 9]);
    let place = wire[12..].as_ptr();
    let Ok(Some(Frame::Headers(frame))) = decoder(Version::V31).decode(&mut wire) else {
        panic!("not HEADERS");
    };
    assert_eq!(frame.block.as_ptr(), place, "copied");
}

#[test]
fn a_settings_count_must_agree_with_the_length() {
    let cases: [(u32, usize); 5] = [(0, 12), (1, 4), (2, 12), (1, 13), (u32::MAX, 4)];
    for (count, len) in cases {
        let mut payload = vec![0; len];
        payload[..4].copy_from_slice(&count.to_be_bytes());
        let error = only(Version::V31, control(Version::V31, 4, 0, &payload));
        assert_eq!(error, Err(FrameError::SettingsCount { count, found: len }));
    }
    // 4 + 8 * 0x2000_0001 is 12 in 32 bits.
    let mut payload = vec![0; 12];
    payload[..4].copy_from_slice(&0x2000_0001_u32.to_be_bytes());
    let error = only(Version::V31, control(Version::V31, 4, 0, &payload));
    assert_eq!(
        error,
        Err(FrameError::SettingsCount {
            count: 0x2000_0001,
            found: 12
        })
    );
}

#[test]
fn settings_past_the_limit_are_ignored_and_the_first_of_an_id_wins() {
    let mut payload = BytesMut::new();
    payload.put_u32(66);
    payload.put_slice(&[0xff, 0, 0, 4, 0, 0, 0, 100]);
    payload.put_slice(&[0x00, 0, 0, 4, 0, 0, 0, 200]);
    for id in 100..163 {
        payload.put_u32(id);
        payload.put_u32(1);
    }
    payload.put_slice(&[0, 0, 0, 7, 0, 0, 0, 1]);
    let frame = only(Version::V31, control(Version::V31, 4, 0, &payload));
    let Ok(Frame::Settings(settings)) = frame else {
        panic!("{frame:?}")
    };
    assert_eq!(settings.value(SettingId::MAX_CONCURRENT_STREAMS), Some(100));
    assert_eq!(settings.value(SettingId(161)), Some(1), "the 64th entry");
    assert_eq!(settings.value(SettingId(162)), None, "the 65th entry");
    assert_eq!(settings.value(SettingId::INITIAL_WINDOW_SIZE), None);
    assert_eq!(settings.entries.len(), 63);
}

#[test]
fn a_failed_decoder_repeats_its_error() {
    let mut decoder = decoder(Version::V31);
    let mut input = head(2, 6, 0, 4);
    let error = decoder.decode(&mut input).expect_err("another version");
    input.clear();
    Frame::Ping(Ping { id: 1 }).encode(Version::V31, &mut input);
    assert_eq!(decoder.decode(&mut input), Err(error));
    assert_eq!(
        input.remaining(),
        12,
        "no bytes are consumed after an error"
    );
}

#[test]
fn an_http_1_response_has_an_error_of_its_own() {
    for (minor, text) in [(0, "HTTP/1.0 400 Bad Request"), (1, "HTTP/1.1 200 OK\r\n")] {
        let mut input = BytesMut::from(text);
        let error = decoder(Version::V31).decode(&mut input);
        assert_eq!(error, Err(FrameError::Http1Response { minor }));
    }
    let mut other = BytesMut::from("HTTP/2.0 200");
    let frame = decoder(Version::V31).decode(&mut other);
    assert!(
        matches!(frame, Ok(Some(Frame::CompressedData { .. }))),
        "{frame:?}"
    );
}

#[test]
fn errors_show_expected_and_found() {
    let error = FrameError::Length {
        kind: Kind::Ping,
        expected: 4,
        found: 5,
    };
    assert_eq!(error.to_string(), "PING frame has 5 bytes, expected 4");
    let error = FrameError::Version {
        kind: Kind::Unknown(77),
        expected: 3,
        found: 2,
    };
    assert_eq!(error.to_string(), "type 77 frame has version 2, expected 3");
}
