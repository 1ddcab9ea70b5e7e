//! Encoder output beyond the vectors: requirements of peers and differences of versions.

use bytes::{Bytes, BytesMut};
use spdy_frame::frame::{
    Data, Frame, GoAway, RstStream, Setting, SettingId, Settings, SynStream, WindowUpdate,
};
use spdy_frame::priority::Priority;
use spdy_frame::status::{GoAwayStatus, RstStatus};
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

use crate::support::encode;

const ONE: StreamId = StreamId::new(1);

#[test]
fn settings_are_written_by_ascending_id_and_once() {
    let entry = |id, value| Setting::new(SettingId(id), value);
    let entries = vec![entry(7, 70), entry(4, 40), entry(7, 71), entry(4, 41)];
    let wire = encode(
        Version::V31,
        &[Frame::Settings(Settings {
            entries,
            ..Settings::default()
        })],
    );
    let sorted = vec![entry(4, 40), entry(7, 70)];
    let expected = encode(
        Version::V31,
        &[Frame::Settings(Settings {
            entries: sorted,
            ..Settings::default()
        })],
    );
    assert_eq!(wire, expected);
    assert_eq!(&expected[8..20], [0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 40]);
}

#[test]
fn spdy2_is_sent_only_its_own_codes() {
    for (status, expected) in [(7, 7), (8, 1), (9, 1), (11, 1)] {
        let frame = Frame::RstStream(RstStream {
            stream_id: ONE,
            status: RstStatus(status),
        });
        assert_eq!(
            encode(Version::V2, std::slice::from_ref(&frame))[15],
            expected
        );
        assert_eq!(encode(Version::V31, &[frame])[15], status as u8);
    }
}

#[test]
fn goaway_has_a_status_except_in_spdy2() {
    let status = Some(GoAwayStatus::PROTOCOL_ERROR);
    let frame = Frame::GoAway(GoAway {
        last_good: ONE,
        status,
    });
    assert_eq!(
        encode(Version::V2, &[frame])[..],
        [0x80, 2, 0, 7, 0, 0, 0, 4, 0, 0, 0, 1]
    );
    let frame = Frame::GoAway(GoAway {
        last_good: ONE,
        status: None,
    });
    assert_eq!(encode(Version::V3, &[frame])[8..], [0, 0, 0, 1, 0, 0, 0, 0]);
}

#[test]
fn window_update_can_be_written_in_spdy2_for_node_spdy() {
    let frame = Frame::WindowUpdate(WindowUpdate {
        stream_id: ONE,
        delta: 1 << 16,
    });
    let expected = [0x80, 2, 0, 9, 0, 0, 0, 8, 0, 0, 0, 1, 0, 1, 0, 0];
    assert_eq!(encode(Version::V2, &[frame])[..], expected);
}

#[test]
fn priorities_of_spdy2_are_two_bits() {
    for (level, byte) in [(0, 0x00), (1, 0x00), (2, 0x40), (5, 0x80), (7, 0xc0)] {
        let frame = Frame::SynStream(SynStream {
            stream_id: ONE,
            associated_to: StreamId::ZERO,
            priority: Priority::new(level),
            fin: true,
            unidirectional: true,
            block: Bytes::from_static(b"x"),
        });
        let wire = encode(Version::V2, &[frame]);
        assert_eq!((wire[4], wire[16], wire[17]), (3, byte, 0), "level {level}");
    }
}

#[test]
fn a_head_alone_announces_the_payload_that_follows() {
    let data = Data {
        stream_id: ONE,
        payload: Bytes::from_static(b"hello"),
        fin: true,
    };
    let mut wire = BytesMut::new();
    data.encode_head(&mut wire);
    wire.extend_from_slice(&data.payload);
    assert_eq!(wire, encode(Version::V31, &[Frame::Data(data)]));
}

#[test]
#[should_panic(expected = "frame has 16777216 bytes")]
fn a_payload_too_long_for_a_frame_head_panics() {
    let payload = Bytes::from(vec![0; 1 << 24]);
    encode(
        Version::V31,
        &[Frame::Data(Data {
            stream_id: ONE,
            payload,
            fin: false,
        })],
    );
}
