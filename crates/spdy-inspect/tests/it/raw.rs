//! Raw streams: connections recorded between independent implementations (`vectors/spec/live/`).

use spdy_frame::frame::Frame;
use spdy_frame::version::Version;
use spdy_inspect::direction::Direction;
use spdy_inspect::event::{DetectionMethod, EventKind, FrameRecord};
use spdy_inspect::inspector::{Inspector, Options};
use spdy_inspect::limits::Limits;
use spdy_testkit::fields::{Fields, Header};
use spdy_testkit::{live, sequences};

use crate::support::Inspection;
use crate::support::file::pcap;
use crate::support::frames::Writer;
use crate::support::tcp::Wire;

/// Type (of a SYN_STREAM with its priority), stream, headers, length of the payload.
type Meaning = (String, u32, Vec<Header>, usize);

fn expected_meaning(fields: &Fields) -> Meaning {
    let mut shown_priority = String::new();
    let (name, stream, headers, len) = match fields {
        Fields::Data {
            stream_id, data, ..
        } => ("DATA", *stream_id, vec![], data.len()),
        Fields::SynStream {
            stream_id,
            headers,
            priority,
            ..
        } => {
            shown_priority = format!(" priority {priority}");
            ("SYN_STREAM", *stream_id, headers.clone(), 0)
        }
        Fields::SynReply {
            stream_id, headers, ..
        } => ("SYN_REPLY", *stream_id, headers.clone(), 0),
        Fields::Headers {
            stream_id, headers, ..
        } => ("HEADERS", *stream_id, headers.clone(), 0),
        Fields::RstStream { stream_id, .. } => ("RST_STREAM", *stream_id, vec![], 0),
        Fields::Settings { .. } => ("SETTINGS", 0, vec![], 0),
        Fields::Noop {} => ("NOOP", 0, vec![], 0),
        Fields::Ping { ping_id } => ("PING", *ping_id, vec![], 0),
        Fields::Goaway {
            last_good_stream_id,
            ..
        } => ("GOAWAY", *last_good_stream_id, vec![], 0),
        other => (
            match format!("{other:?}").split([' ', '{']).next() {
                Some("WindowUpdate") => "WINDOW_UPDATE",
                _ => "skipped",
            },
            0,
            vec![],
            0,
        ),
    };
    (name.to_owned() + &shown_priority, stream, headers, len)
}

fn actual_meaning(record: &FrameRecord) -> Meaning {
    let mut name = record.frame.kind().to_string();
    let (stream, len) = match &record.frame {
        Frame::Data(frame) => (frame.stream_id.value(), record.len_bytes),
        Frame::SynStream(frame) => {
            let priority = frame.priority.field(record.version);
            name = format!("{name} priority {priority}");
            (frame.stream_id.value(), 0)
        }
        Frame::SynReply(frame) => (frame.stream_id.value(), 0),
        Frame::Headers(frame) => (frame.stream_id.value(), 0),
        Frame::RstStream(frame) => (frame.stream_id.value(), 0),
        Frame::Ping(frame) => (frame.id, 0),
        Frame::GoAway(frame) => (frame.last_good.value(), 0),
        Frame::Skipped { .. } => {
            name = "skipped".to_owned();
            (0, 0)
        }
        _ => (0, 0),
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("vectors are text");
    let mut headers = Vec::new();
    if let Some(block) = &record.headers {
        for (name, values) in block.as_ref().expect("vectors have valid headers").iter() {
            let values = values.split(|byte| *byte == 0).map(text).collect();
            headers.push((text(name), values));
        }
    }
    (name, stream, headers, len)
}

fn streams(client: &[u8], server: &[u8], options: Options) -> Inspection {
    let mut inspector = Inspector::new(options);
    inspector.streams(client, server);
    Inspection::of(inspector)
}

#[test]
fn every_recorded_connection_matches_its_frames() {
    for connection in live::all() {
        let stream_bytes = |half: &live::Direction| [&half.http_head[..], &half.bytes].concat();
        let (client, server) = (
            stream_bytes(&connection.client),
            stream_bytes(&connection.server),
        );
        let inspection = streams(&client, &server, Options::default());
        for (direction, half) in [
            (Direction::ToServer, &connection.client),
            (Direction::ToClient, &connection.server),
        ] {
            let records = inspection.frames().into_iter();
            let actual: Vec<_> = records
                .filter(|record| record.direction == direction)
                .map(actual_meaning)
                .collect();
            let expected: Vec<_> = half.frames.iter().map(expected_meaning).collect();
            assert_eq!(actual, expected, "{} {direction}", connection.id);
        }
        let wire = if connection.version.starts_with('2') {
            2
        } else {
            3
        };
        let version = inspection
            .summary()
            .info
            .version
            .expect("the version is known at the end");
        assert_eq!(version.wire(), wire, "{}", connection.id);
    }
}

#[test]
fn one_way_sessions_are_read_frame_by_frame() {
    let mut checked = 0;
    for sequence in sequences::all() {
        let version = Version::ALL
            .into_iter()
            .find(|version| version.alpn() == format!("spdy/{}", sequence.version));
        let options = Options {
            version,
            ..Options::default()
        };
        let inspection = streams(&sequence.bytes, &[], options);
        let actual: Vec<_> = inspection
            .frames()
            .into_iter()
            .map(actual_meaning)
            .collect();
        let expected: Vec<_> = sequence
            .frames
            .iter()
            .map(|frame| expected_meaning(&frame.fields))
            .collect();
        assert_eq!(actual, expected, "{}", sequence.id);
        checked += actual.len();
    }
    assert!(checked > 100, "only {checked} frames");
}

#[test]
fn a_kubernetes_exec_is_followed_through_its_upgrade() {
    let exec = live::all()
        .into_iter()
        .find(|connection| connection.id.contains("kubernetes"))
        .expect("the vector is there");
    let client = [&exec.client.http_head[..], &exec.client.bytes].concat();
    let server = [&exec.server.http_head[..], &exec.server.bytes].concat();
    let inspection = streams(&client, &server, Options::default());
    let info = &inspection.summary().info;
    assert_eq!(
        (info.found, info.version),
        (DetectionMethod::Upgrade, Some(Version::V31))
    );
    let stream_types: Vec<_> = inspection
        .summary()
        .streams
        .values()
        .map(|line| &line.request[..])
        .collect();
    assert_eq!(
        stream_types,
        ["streamtype=error", "streamtype=stdin", "streamtype=stdout"]
    );
}

#[test]
fn a_refused_upgrade_is_reported_with_its_status() {
    let request = b"POST /exec HTTP/1.1\r\nHost: h\r\nUpgrade: SPDY/3.1\r\n\r\n";
    let refuse = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    let inspection = streams(request, refuse, Options::default());
    match &inspection.events[..] {
        [event] => match &event.what {
            EventKind::Unreadable(reason) => {
                assert!(
                    reason.contains("POST /exec") && reason.contains("403"),
                    "{reason}"
                );
            }
            other => panic!("expected a failure, found {other:?}"),
        },
        other => panic!("expected one event, found {other:#?}"),
    }
}

#[test]
fn a_second_upgrade_after_a_refusal_is_followed() {
    let exec = live::all()
        .into_iter()
        .find(|connection| connection.id.contains("kubernetes"))
        .expect("the vector is there");
    let refuse = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
    let client = [
        &exec.client.http_head[..],
        &exec.client.http_head,
        &exec.client.bytes,
    ]
    .concat();
    // Both responses arrive together, after everything that the client sends.
    let server = [&refuse[..], &exec.server.http_head, &exec.server.bytes].concat();
    let inspection = streams(&client, &server, Options::default());
    assert_eq!(
        inspection.frames().len(),
        exec.client.frames.len() + exec.server.frames.len()
    );
}

#[test]
fn an_upgrade_behind_connect_and_other_requests_is_found() {
    let exec = live::all()
        .into_iter()
        .find(|connection| connection.id.contains("kubernetes"))
        .expect("the vector is there");
    let client = [
        &b"CONNECT api:443 HTTP/1.1\r\nHost: api\r\n\r\nGET /healthz HTTP/1.1\r\nHost: api\r\n\r\n"
            [..],
        &exec.client.http_head,
        &exec.client.bytes,
    ]
    .concat();
    let server = [
        &b"HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"[..],
        &exec.server.http_head,
        &exec.server.bytes,
    ]
    .concat();
    let mut inspector = Inspector::new(Options::default());
    inspector.streams(&client, &server);
    let inspection = Inspection::of(inspector);
    assert_eq!(
        inspection.frames().len(),
        exec.client.frames.len() + exec.server.frames.len()
    );
}

#[test]
fn bytes_that_are_no_frame_report_their_offset() {
    let mut bytes = live::all()
        .into_iter()
        .find(|connection| connection.version == "3.1")
        .expect("a recorded SPDY/3.1")
        .client
        .bytes;
    let length = bytes.len();
    bytes.extend([0x80, 9, 0, 1, 0, 0, 0, 0]);
    let inspection = streams(&bytes, &[], Options::default());
    let findings = inspection.findings();
    let place = format!("at byte {length} of the session");
    assert!(
        findings
            .iter()
            .any(|text| text.contains(&place) && text.contains("version 9")),
        "{findings:?}"
    );
}

#[test]
fn a_head_before_an_upgrade_is_limited() {
    let limits = Limits {
        http_head_bytes: 200,
        ..Limits::default()
    };
    let event_count = |padding: usize| {
        let head = format!(
            "GET /exec HTTP/1.1\r\nUpgrade: SPDY/3.1\r\nX: {}",
            "x".repeat(padding)
        );
        let mut wire = Wire::new(101, false);
        wire.connect();
        wire.send(Direction::ToServer, head.as_bytes(), 10_000);
        wire.send(Direction::ToServer, b"\r\n\r\n", 10_000);
        wire.send(
            Direction::ToClient,
            b"HTTP/1.1 403 Forbidden\r\n\r\n",
            10_000,
        );
        let options = Options {
            limits: limits.clone(),
            ..Options::default()
        };
        let inspection = Inspection::of_file(&pcap(&wire.packets, 101, false, true), options, 4096);
        inspection.events.len()
    };
    let fixed = "GET /exec HTTP/1.1\r\nUpgrade: SPDY/3.1\r\nX: ".len();
    assert_eq!(event_count(200 - fixed), 1, "the refusal is reported");
    assert_eq!(
        event_count(201 - fixed),
        0,
        "the start of the head is missing"
    );
}

#[test]
fn payload_bytes_are_stored_up_to_the_limit() {
    let mut writer = Writer::new(Version::V31);
    let client = [
        writer.open(1, false),
        writer.data(1, 16, false),
        writer.data(1, 17, true),
    ]
    .concat();
    for (limit, expected_lengths) in [(0, [0, 0]), (16, [16, 16]), (17, [16, 17])] {
        let options = Options {
            limits: Limits {
                payload_shown_bytes: limit,
                ..Limits::default()
            },
            ..Options::default()
        };
        let inspection = streams(&client, &[], options);
        let lengths = inspection.frames().into_iter().filter_map(|record| {
            let Frame::Data(data) = &record.frame else {
                return None;
            };
            Some((data.payload.len(), record.len_bytes))
        });
        let lengths: Vec<_> = lengths.collect();
        assert_eq!(
            lengths,
            [(expected_lengths[0], 16), (expected_lengths[1], 17)],
            "{limit} requested"
        );
    }
}

/// Found by the fuzz target `raw_streams`: the payload of a skipped frame was removed before the decoder had received it, so the
/// decoder skipped the head of the next control frame instead.
#[test]
fn a_frame_behind_one_of_an_unknown_type_is_read() {
    let unknown = [0x80, 3, 0, 0x63, 0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8];
    let ping = [0x80, 3, 0, 6, 0, 0, 0, 4, 0, 0, 0, 1];
    let inspection = streams(
        &[&ping[..], &unknown, &ping, &ping].concat(),
        &[],
        Options::default(),
    );
    let frames = inspection.frames();
    let kinds: Vec<_> = frames
        .iter()
        .map(|record| record.frame.kind().to_string())
        .collect();
    assert_eq!(kinds[2..], ["PING", "PING"], "{:#?}", inspection.events);
}
