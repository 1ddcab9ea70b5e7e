//! Exceeds each limit by one: abuse for which a session must end (SPDY/3.1 §5).

use bytes::BytesMut;
use spdy_frame::frame::{Frame, Headers, Setting, SettingId, Settings, SynStream};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::limit::Limit;

use crate::support::{Script, bytes, id, ms, some_headers};

/// The server's GOAWAY, and the reason.
fn ended_by(server: &mut Script) -> Option<String> {
    let last = server.events().pop()?;
    last.strip_prefix("Closed: ").map(String::from)
}

#[test]
fn a_thousand_empty_data_frames_pass_and_one_more_ends_the_session() {
    let mut server = Script::server();
    server.syn(1);
    (0..1000).for_each(|_| server.data(1, 0, false));
    assert_eq!(ended_by(&mut server), None);
    server.data(1, 0, false);
    assert_eq!(
        ended_by(&mut server).unwrap(),
        "more than 1000 empty frames"
    );
}

#[test]
fn empty_frames_of_other_kinds_count_as_well() {
    let mut server = Script::version(Role::Server, Version::V2);
    server.syn(1);
    let mut noise = BytesMut::new();
    noise.extend_from_slice(&[0x80, 2, 0, 5, 0, 0, 0, 0]); // NOOP
    noise.extend_from_slice(&[0x80, 2, 0, 99, 0, 0, 0, 0]); // an unknown type
    for _ in 0..500 {
        server.session.handle_input(server.now, &noise);
    }
    assert_eq!(ended_by(&mut server), None);
    let block = server.block(&HeaderBlock::new());
    server.send(&Frame::Headers(Headers {
        stream_id: id(1),
        fin: false,
        block,
    }));
    assert_eq!(
        ended_by(&mut server).unwrap(),
        "more than 1000 empty frames"
    );
}

#[test]
fn empty_frames_at_a_low_rate_are_allowed() {
    let mut server = Script::server();
    server.syn(1);
    for _ in 0..30 {
        (0..900).for_each(|_| server.data(1, 0, false));
        server.pass(ms(10_000));
    }
    assert!(!server.session.is_closed());
}

#[test]
fn a_hundred_settings_frames_pass_and_one_more_ends_the_session() {
    let mut server = Script::server();
    (0..100).for_each(|n| server.setting(SettingId::INITIAL_WINDOW_SIZE, n));
    assert_eq!(ended_by(&mut server), None);
    server.setting(SettingId::INITIAL_WINDOW_SIZE, 1);
    assert_eq!(
        ended_by(&mut server).unwrap(),
        "more than 100 SETTINGS frames"
    );
}

#[test]
fn rapid_reset_ends_the_session() {
    let mut server = Script::server();
    for n in 0..100 {
        server.syn_fin(2 * n + 1);
        server.rst(2 * n + 1, RstStatus::CANCEL);
    }
    assert!(!server.events().last().unwrap().starts_with("Closed"));
    server.syn_fin(201);
    server.rst(201, RstStatus::CANCEL);
    let reason = ended_by(&mut server).unwrap();
    assert_eq!(reason, "more than 100 streams reset before their response");
    assert_eq!(server.output(), ["GOAWAY 201 PROTOCOL_ERROR"]);
}

#[test]
fn cancelling_under_half_of_the_requests_is_allowed() {
    let mut server = Script::server();
    for n in 0..1_000 {
        let stream = 2 * n + 1;
        server.syn_fin(stream);
        if n % 3 == 0 {
            server.rst(stream, RstStatus::CANCEL);
        } else {
            server.session.reply(id(stream), &some_headers(), true);
            server.output();
        }
    }
    assert_eq!(ended_by(&mut server), None);
}

#[test]
fn streams_reset_by_us_count_as_aborted() {
    let mut server = Script::server();
    for n in 0..101 {
        server.syn_fin(2 * n + 1);
        server.data(2 * n + 1, 1, false); // after FIN
        server.output();
    }
    let reason = ended_by(&mut server).unwrap();
    assert_eq!(reason, "more than 100 streams reset before their response");
}

#[test]
fn malformed_blocks_end_the_session_when_there_are_too_many() {
    let mut server = Script::server();
    for n in 0..101 {
        let block = server.bad_block();
        server.syn_with(2 * n + 1, block);
        server.output();
    }
    let reason = ended_by(&mut server).unwrap();
    assert_eq!(reason, "more than 100 refused header blocks");
}

#[test]
fn a_thousand_refused_streams_pass_and_one_more_ends_the_session() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.max_concurrent_streams = 0;
    let mut server = Script::new(config);
    for n in 0..1000 {
        server.syn(2 * n + 1);
    }
    assert_eq!(ended_by(&mut server), None);
    assert_eq!(server.output().len(), 1000);
    server.syn(2001);
    assert_eq!(
        ended_by(&mut server).unwrap(),
        "more than 1000 refused streams"
    );
}

#[test]
fn a_thousand_stray_frames_pass_and_one_more_ends_the_session() {
    let mut server = Script::server();
    for n in 0..1000 {
        server.data(2 * n + 1, 1, false);
    }
    assert_eq!(ended_by(&mut server), None);
    server.output();
    server.data(2001, 1, false);
    assert_eq!(
        ended_by(&mut server).unwrap(),
        "more than 1000 frames for unknown streams"
    );
}

/// A server without flood limits, so that the limit of the queue is reached.
fn with_queue(frames: usize) -> Script {
    let mut config = Config::new(Role::Server, Version::V31);
    config.control_queue_frames = frames;
    Script::new(config)
}

#[test]
fn unread_resets_stop_reading() {
    let mut server = with_queue(10);
    for n in 0..10 {
        server.data(2 * n + 1, 1, false);
    }
    assert!(server.session.accepts_input());
    server.data(21, 1, false);
    assert!(!server.session.accepts_input());
    server.output_frames(1);
    assert!(server.session.accepts_input());
}

#[test]
fn a_reset_queue_that_stays_full_ends_the_session() {
    let mut server = with_queue(10);
    for n in 0..11 {
        server.data(2 * n + 1, 1, false);
    }
    server.pass(ms(29_999));
    assert_eq!(ended_by(&mut server), None);
    server.pass(ms(1));
    assert_eq!(
        ended_by(&mut server).unwrap(),
        "more than 10 RST_STREAM frames queued for 30s"
    );
}

#[test]
fn the_reset_queue_is_bounded_if_the_driver_reads_on() {
    let mut server = with_queue(10);
    for n in 0..20 {
        server.data(2 * n + 1, 1, false);
    }
    assert_eq!(ended_by(&mut server), None);
    server.data(41, 1, false);
    assert_eq!(
        ended_by(&mut server).unwrap(),
        "more than 20 RST_STREAM frames queued"
    );
}

#[test]
fn unpolled_events_stop_reading() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.event_queue = 10;
    let mut server = Script::new(config);
    server.syn(1);
    (0..9).for_each(|_| server.data(1, 1, false));
    assert!(server.session.accepts_input());
    server.data(1, 1, false);
    assert!(!server.session.accepts_input());
    server.events();
    assert!(server.session.accepts_input());
}

#[test]
fn repeated_goaways_are_empty_frames() {
    let mut server = Script::server();
    server.syn(1);
    (0..1001).for_each(|_| server.goaway(0));
    assert!(!server.events().last().unwrap().starts_with("Closed"));
    server.goaway(0);
    assert_eq!(
        ended_by(&mut server).unwrap(),
        "more than 1000 empty frames"
    );
}

#[test]
fn window_updates_and_resets_for_unknown_streams_are_ignored() {
    let mut server = Script::server();
    for n in 0..20_000 {
        server.window_update(2 * n + 1, 1);
        server.rst(2 * n + 1, RstStatus::CANCEL);
    }
    assert_eq!(server.events(), [""; 0]);
    assert_eq!(server.output(), [""; 0]);
}

#[test]
fn a_window_of_one_byte_at_a_time_does_not_grow_our_queues() {
    let mut server = Script::server();
    server.setting(SettingId::INITIAL_WINDOW_SIZE, 0);
    server.syn_fin(1);
    server.session.reply(id(1), &some_headers(), false);
    server.session.send_data(id(1), bytes(100_000), true);
    server.output();
    for _ in 0..1_023 {
        server.window_update(1, 1);
        assert_eq!(server.output(), [""; 0]);
    }
    server.window_update(1, 1);
    assert_eq!(server.output(), ["DATA 1 1024"]);
}

#[test]
fn compressed_data_is_a_stream_error_and_not_inflated() {
    let mut server = Script::server();
    server.syn(1);
    server
        .session
        .handle_input(server.now, &[0, 0, 0, 1, 3, 0, 0, 2, 9, 9]);
    server.syn_fin(3);
    assert_eq!(server.output(), ["RST_STREAM 1 PROTOCOL_ERROR"]);
    assert_eq!(
        server.events(),
        ["Opened 1", "Reset 1 by us: PROTOCOL_ERROR", "Opened 3 fin"]
    );
}

#[test]
fn a_header_bomb_is_bounded_in_memory() {
    let mut server = Script::server();
    let mut headers = HeaderBlock::new();
    headers.push("bomb", vec![b'x'; 16 << 20]);
    let block = server.block(&headers);
    assert!(block.len() < 64 * 1024);
    let syn = SynStream {
        block,
        ..server.syn_frame(1)
    };
    server.send(&Frame::SynStream(syn));
    assert_eq!(server.output(), ["GOAWAY 0 PROTOCOL_ERROR"]);
}

/// A block compresses a thousandfold, and HEADERS have no window: 16 of them on each of 100 streams were
/// 100 MB.
#[test]
fn header_blocks_of_one_stream_are_bounded_together() {
    for (version, status) in [
        (Version::V2, "PROTOCOL_ERROR"),
        (Version::V31, "FRAME_TOO_LARGE"),
    ] {
        let mut config = Config::new(Role::Server, version);
        let block: HeaderBlock = [("name", vec![b'v'; 1000])].into_iter().collect();
        // The block of SYN_STREAM, and three more.
        config.header_bytes_per_stream =
            some_headers().plain_len(version) + 3 * block.plain_len(version);
        let mut server = Script::new(config);
        server.syn(1);
        for _ in 0..4 {
            let block = server.block(&block);
            server.send(&Frame::Headers(Headers {
                stream_id: id(1),
                fin: false,
                block,
            }));
        }
        let events = server.events();
        assert_eq!(
            events[..4],
            ["Opened 1", "Headers 1", "Headers 1", "Headers 1"]
        );
        assert_eq!(events[4..], [format!("Reset 1 by us: {status}")]);
    }
}

/// Such frames meet silence, but their blocks are inflated: a kilobyte of them was worth a megabyte of our
/// work, without end.
#[test]
fn header_blocks_for_a_stream_that_just_closed_are_counted() {
    let mut server = Script::server();
    server.syn_fin(1);
    server.session.reply(id(1), &some_headers(), true);
    server.output();
    server.events();
    (0..1000).for_each(|_| server.headers(1, false));
    assert_eq!(ended_by(&mut server), None);
    assert_eq!(server.output(), [""; 0]);
    server.headers(1, false);
    assert_eq!(
        ended_by(&mut server).unwrap(),
        "more than 1000 frames for unknown streams"
    );
}

/// The names of the limits that were reached, and how often.
fn hits(script: &Script) -> String {
    script.session.stats().limits.to_string()
}

#[test]
fn counters_show_the_limit_that_was_hit() {
    let mut server = Script::server();
    assert_eq!(hits(&server), "none");
    let mut headers = HeaderBlock::new();
    headers.push("long", vec![b'x'; 32 * 1024 + 1]);
    let block = server.block(&headers);
    server.syn_with(1, block);
    let entries = (0..65).map(|n| Setting::new(SettingId(100 + n), 0));
    let settings = Settings {
        entries: entries.collect(),
        ..Settings::default()
    };
    server.send(&Frame::Settings(settings));
    for n in 0..102 {
        server.syn(2 * n + 3);
    }
    assert_eq!(
        hits(&server),
        "max_concurrent_streams 2, settings_entries 1, block_value_bytes 1"
    );
    (0..1001).for_each(|_| server.data(3, 0, false));
    let error = server.session.stats().limits;
    assert_eq!(error.of(Limit::EmptyFrames), 1);
}
