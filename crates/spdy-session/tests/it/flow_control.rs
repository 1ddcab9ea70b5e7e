//! Flow control: what may be sent, what may come, and when credit goes back (SPDY/3.1 §2.6.8).

use ::bytes::BytesMut;
use spdy_clock::Instant;
use spdy_frame::frame::{Data, Frame, SettingId};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role, SettingsTiming};
use spdy_session::session::StreamOptions;

use crate::support::pair::Pair;
use crate::support::{Script, bytes, event_line, id, ms, some_headers};

const WINDOW: usize = 65_536;

/// A server with stream 1 answered and `queued` bytes waiting to be sent on it.
fn server_with_response(version: Version, queued: usize) -> Script {
    let mut server = Script::version(Role::Server, version);
    server.syn_fin(1);
    server.session.reply(id(1), &some_headers(), false);
    server.output();
    server.session.send_data(id(1), bytes(queued), true);
    server
}

/// Bytes of DATA in what was written.
fn sum(lines: &[String]) -> usize {
    let data = lines.iter().filter(|line| line.starts_with("DATA"));
    data.map(|line| line.split(' ').nth(2).unwrap().parse::<usize>().unwrap())
        .sum()
}

#[test]
fn exactly_the_initial_window_is_sent_without_credit() {
    for (version, expected) in [
        (Version::V2, 200_000),
        (Version::V3, WINDOW),
        (Version::V31, WINDOW),
    ] {
        let mut server = server_with_response(version, 200_000);
        assert_eq!(sum(&server.output()), expected, "{version}");
    }
}

/// Jetty's client went while an answer waited for its window, and the queued bytes were taken off a sum
/// that was 0 already.
#[test]
fn a_transport_that_ends_while_data_waits_for_credit_loses_the_stream_in_order() {
    for version in [Version::V3, Version::V31] {
        let mut server = server_with_response(version, 200_000);
        server.output();
        server.session.handle_eof(server.now);
        assert_eq!(
            server.events(),
            [
                "Opened 1 fin",
                "Reset 1: session lost",
                "Closed: connection ended with 1 open streams"
            ],
            "{version}"
        );
    }
}

#[test]
fn spdy_3_needs_credit_for_the_stream_alone_and_ignores_that_of_stream_0() {
    let mut server = server_with_response(Version::V3, 200_000);
    server.output();
    server.window_update(0, 1_000_000);
    assert_eq!(sum(&server.output()), 0);
    server.window_update(1, 1_000_000);
    assert_eq!(sum(&server.output()), 200_000 - WINDOW);
}

#[test]
fn spdy_3_1_needs_credit_for_the_stream_and_for_the_session() {
    let mut server = server_with_response(Version::V31, 200_000);
    server.output();
    server.window_update(1, 1_000_000);
    assert_eq!(sum(&server.output()), 0);
    server.window_update(0, 10_000);
    assert_eq!(sum(&server.output()), 10_000);
}

#[test]
fn a_bare_fin_needs_no_credit() {
    let mut server = Script::server();
    server.syn_fin(1);
    server.syn_fin(3);
    for stream in [1, 3] {
        server.session.reply(id(stream), &some_headers(), false);
    }
    server.session.send_data(id(1), bytes(WINDOW), false);
    server.output();
    server.session.send_data(id(3), bytes(0), true);
    server.session.send_data(id(1), bytes(0), true);
    assert_eq!(server.output(), ["DATA 3 0 fin", "DATA 1 0 fin"]);
}

#[test]
fn a_negative_window_sends_nothing_until_updates() {
    let mut server = server_with_response(Version::V31, 200_000);
    server.output();
    server.window_update(0, 1_000_000);
    server.setting(SettingId::INITIAL_WINDOW_SIZE, 16_384); // -49,152 now
    server.window_update(1, 32_768);
    assert_eq!(sum(&server.output()), 0);
    server.window_update(1, 32_768);
    assert_eq!(sum(&server.output()), 16_384);
}

#[test]
fn a_raised_initial_window_opens_streams_that_are_open_and_never_the_session() {
    let mut server = server_with_response(Version::V31, 200_000);
    server.output();
    server.setting(SettingId::INITIAL_WINDOW_SIZE, 100_000);
    assert_eq!(sum(&server.output()), 0);
    server.window_update(0, 1_000_000);
    assert_eq!(sum(&server.output()), 100_000 - WINDOW);
}

#[test]
fn an_initial_window_of_0_blocks_data_only() {
    let mut server = Script::server();
    server.setting(SettingId::INITIAL_WINDOW_SIZE, 0);
    server.syn_fin(1);
    server.session.reply(id(1), &some_headers(), false);
    server.session.send_data(id(1), bytes(10), true);
    assert_eq!(server.output(), ["SYN_REPLY 1"]);
    server.window_update(1, 10);
    assert_eq!(server.output(), ["DATA 1 10 fin"]);
}

#[test]
fn a_stream_window_one_past_the_limit_is_a_stream_error() {
    let mut server = server_with_response(Version::V31, 10);
    server.window_update(1, 0x7fff_ffff - 65_536);
    assert_eq!(server.output(), ["DATA 1 10 fin"]);
    let mut server = server_with_response(Version::V31, 10);
    server.window_update(1, 0x7fff_ffff - 65_535);
    assert_eq!(server.output(), ["RST_STREAM 1 FLOW_CONTROL_ERROR"]);
}

#[test]
fn a_session_window_one_past_the_limit_ends_the_session() {
    let mut server = Script::server();
    server.window_update(0, 0x7fff_ffff - 65_536);
    assert_eq!(server.output(), [""; 0]);
    server.window_update(0, 1);
    assert_eq!(server.output(), ["GOAWAY 0 PROTOCOL_ERROR"]);
}

#[test]
fn a_delta_of_0_is_an_error_of_its_stream_or_of_the_session() {
    let mut server = server_with_response(Version::V31, 10);
    server.window_update(1, 0);
    assert_eq!(server.output(), ["RST_STREAM 1 FLOW_CONTROL_ERROR"]);
    server.window_update(0, 0);
    assert_eq!(server.output(), ["GOAWAY 1 PROTOCOL_ERROR"]);
}

#[test]
fn an_initial_window_one_past_the_limit_ends_the_session() {
    let mut server = Script::server();
    server.setting(SettingId::INITIAL_WINDOW_SIZE, 0x7fff_ffff);
    assert_eq!(server.output(), [""; 0]);
    server.setting(SettingId::INITIAL_WINDOW_SIZE, 0x8000_0000);
    assert_eq!(server.output(), ["GOAWAY 0 PROTOCOL_ERROR"]);
}

#[test]
fn a_window_overflow_by_settings_resets_one_stream() {
    let mut server = server_with_response(Version::V31, 10);
    server.syn_fin(3);
    server.window_update(1, 1);
    server.setting(SettingId::INITIAL_WINDOW_SIZE, 0x7fff_ffff);
    assert_eq!(server.output(), ["RST_STREAM 1 FLOW_CONTROL_ERROR"]);
    assert!(server.session.reply(id(3), &some_headers(), true));
}

#[test]
fn the_whole_window_may_come_and_one_byte_more_is_a_stream_error() {
    let mut server = Script::server();
    server.syn(1);
    for _ in 0..4 {
        server.data(1, 16_384, false);
    }
    assert_eq!(server.output(), [""; 0]);
    server.data(1, 1, false);
    assert_eq!(server.output(), ["RST_STREAM 1 FLOW_CONTROL_ERROR"]);
}

#[test]
fn one_byte_past_the_session_window_ends_the_session() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.session_window_bytes = Some(100_000);
    let mut server = Script::new(config);
    server.syn(1);
    server.syn(3);
    server.data(1, 60_000, false);
    server.data(3, 40_000, false);
    assert_eq!(server.output(), [""; 0]);
    server.data(3, 1, false);
    assert_eq!(server.output(), ["GOAWAY 3 PROTOCOL_ERROR"]);
    assert_eq!(
        server.events().last().unwrap(),
        "Closed: DATA exceeds the session window of 100000 bytes"
    );
}

#[test]
fn a_peer_that_moves_its_session_window_by_our_initial_window_is_forgiven() {
    let mut config = Config::new(Role::Client, Version::V31);
    (config.initial_window_bytes, config.session_window_bytes) = (100_000, Some(100_000));
    config.settings_window_bytes = None;
    let mut client = Script::new(config);
    for _ in 0..2 {
        client.open_fin();
    }
    client.output();
    client.reply(1, false);
    client.reply(3, false);
    client.data(1, 100_000, false);
    client.data(3, 34_464, false);
    assert_eq!(client.output(), [""; 0]);
    client.data(3, 1, false);
    assert_eq!(client.output(), ["GOAWAY 0 PROTOCOL_ERROR"]);
}

#[test]
fn credit_goes_back_when_half_the_window_is_consumed_and_not_when_it_arrives() {
    let mut server = Script::server();
    server.syn(1);
    server.data(1, WINDOW, false);
    assert_eq!(server.output(), [""; 0]);
    server.session.consume(id(1), WINDOW / 2 - 1);
    assert_eq!(server.output(), [""; 0]);
    server.session.consume(id(1), 1);
    assert_eq!(server.output(), ["WINDOW_UPDATE 1 32768"]);
    server.data(1, WINDOW / 2, false);
    assert_eq!(server.output(), [""; 0]);
}

#[test]
fn the_session_gets_its_credit_in_a_frame_of_its_own() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.session_window_bytes = Some(65_536);
    config.window_growth_bytes = 0;
    let mut server = Script::new(config);
    server.syn(1);
    server.data(1, WINDOW, false);
    server.session.consume(id(1), WINDOW);
    assert_eq!(
        server.output(),
        ["WINDOW_UPDATE 0 65536", "WINDOW_UPDATE 1 65536"]
    );
}

#[test]
fn no_more_is_consumed_than_came() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.session_window_bytes = Some(65_536);
    let mut server = Script::new(config);
    server.syn(1);
    server.data(1, 40_000, false);
    server.session.consume(id(1), usize::MAX);
    assert_eq!(
        server.output(),
        ["WINDOW_UPDATE 0 40000", "WINDOW_UPDATE 1 40000"]
    );
}

#[test]
fn a_stream_whose_fin_came_gets_no_credit_and_the_session_does() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.session_window_bytes = Some(65_536);
    let mut server = Script::new(config);
    server.syn(1);
    server.data(1, WINDOW - 1, true);
    server.session.consume(id(1), WINDOW - 1);
    assert_eq!(server.output(), ["WINDOW_UPDATE 0 65535"]);
}

/// Jetty's client holds back what it owes a stream whose window it has used up, its own WINDOW_UPDATE too: an
/// upload of whole windows got 64 KiB of its answer, and no more.
#[test]
fn a_window_used_up_by_fin_still_gets_credit() {
    for version in [Version::V3, Version::V31] {
        for has_reply in [false, true] {
            let mut config = Config::new(Role::Server, version);
            config.window_growth_bytes = 0;
            let mut server = Script::new(config);
            server.syn(1);
            server.data(1, WINDOW, true);
            if has_reply {
                server.session.reply(id(1), &some_headers(), true);
            }
            server.output();
            server.session.consume(id(1), WINDOW);
            let output = server.output();
            let credit = output.iter().any(|line| line == "WINDOW_UPDATE 1 65536");
            assert_eq!(credit, !has_reply, "{version}: {output:?}");
        }
    }
}

#[test]
fn a_closed_stream_still_gives_credit_to_the_session_when_it_is_read() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.session_window_bytes = Some(65_536);
    let mut server = Script::new(config);
    server.syn(1);
    server.data(1, WINDOW, true);
    server.session.reply(id(1), &some_headers(), true);
    assert_eq!(server.output(), ["SYN_REPLY 1 fin"]);
    assert_eq!(server.session.active_streams(), (0, 0));
    server.session.consume(id(1), WINDOW);
    assert_eq!(server.output(), ["WINDOW_UPDATE 0 65536"]);
}

#[test]
fn credit_of_a_stream_that_was_reset_goes_back_to_the_session_at_once() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.session_window_bytes = Some(65_536);
    for by_peer in [false, true] {
        let mut server = Script::new(config.clone());
        server.syn(1);
        server.data(1, 40_000, false);
        if by_peer {
            server.rst(1, RstStatus::CANCEL);
            assert_eq!(server.output(), ["WINDOW_UPDATE 0 40000"]);
        } else {
            server.session.reset(id(1), RstStatus::CANCEL);
            assert_eq!(
                server.output(),
                ["WINDOW_UPDATE 0 40000", "RST_STREAM 1 CANCEL"]
            );
        }
        server.session.consume(id(1), 40_000);
        assert_eq!(server.output(), [""; 0]);
    }
}

#[test]
fn data_for_streams_that_are_gone_counts_and_its_credit_goes_back_at_once() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.session_window_bytes = Some(65_536);
    let mut server = Script::new(config);
    server.data(9, 20_000, false);
    assert_eq!(server.output(), ["RST_STREAM 9 INVALID_STREAM"]);
    server.data(9, 20_000, false);
    assert_eq!(server.output(), ["WINDOW_UPDATE 0 40000"]);
}

#[test]
fn without_flow_control_nothing_is_obeyed_enforced_or_granted() {
    for role in [Role::Server, Role::Client] {
        let mut config = Config::new(role, Version::V31);
        (config.flow_control, config.settings_timing) = (false, SettingsTiming::Never);
        config.push = spdy_session::config::PushPolicy::AcceptUnassociated;
        let mut script = Script::new(config);
        let (peer_stream, own_stream) = if role == Role::Server { (1, 2) } else { (2, 1) };
        script.syn(peer_stream);
        script.data(peer_stream, 300_000, false);
        script.session.consume(id(peer_stream), 300_000);
        script
            .session
            .open(&some_headers(), StreamOptions::default())
            .unwrap();
        script
            .session
            .send_data(id(own_stream), bytes(300_000), false);
        assert_eq!(sum(&script.output()), 300_000);
        script.window_update(0, 0);
        script.window_update(own_stream, 0x7fff_ffff);
        script.window_update(own_stream, 0x7fff_ffff);
        assert_eq!(script.output(), [""; 0]);
    }
}

#[test]
fn without_windows_an_owner_that_consumes_nothing_stops_the_reading() {
    for version in [Version::V2, Version::V31] {
        let mut config = Config::new(Role::Server, version);
        config.flow_control = false;
        config.session_window_bytes = Some(100_000);
        let mut server = Script::new(config);
        server.syn(1);
        server.data(1, 99_999, false);
        assert!(server.session.accepts_input());
        server.data(1, 1, false);
        assert!(!server.session.accepts_input());
        server.session.consume(id(1), 1);
        assert!(server.session.accepts_input());
    }
}

#[test]
fn spdy_3_turns_to_3_1_when_stream_0_gets_credit_and_counts_what_was_sent() {
    let mut config = Config::new(Role::Server, Version::V3);
    config.detect_session_window = true;
    let mut server = Script::new(config);
    server.syn_fin(1);
    server.session.reply(id(1), &some_headers(), false);
    server.session.send_data(id(1), bytes(200_000), false);
    assert_eq!(sum(&server.output()), WINDOW);
    server.window_update(0, 10_000);
    server.window_update(1, 1_000_000);
    let output = server.output();
    assert_eq!(output[0], "WINDOW_UPDATE 0 983040");
    assert_eq!(sum(&output), 10_000, "65,536 + 10,000 - 65,536");
}

#[test]
fn small_data_waits_for_more_credit_and_then_goes_as_it_is() {
    let mut server = server_with_response(Version::V31, 200_000);
    server.output();
    server.window_update(0, 1_000_000);
    server.window_update(1, 1);
    assert_eq!(server.output(), [""; 0]);
    server.pass(ms(49));
    assert_eq!(server.output(), [""; 0]);
    server.pass(ms(1));
    assert_eq!(server.output(), ["DATA 1 1"]);
    server.window_update(1, 1_000);
    assert_eq!(server.output(), [""; 0]);
    server.window_update(1, 24);
    assert_eq!(server.output(), ["DATA 1 1024"]);
}

#[test]
fn small_data_that_is_all_there_is_goes_at_once() {
    let mut server = server_with_response(Version::V31, 3);
    assert_eq!(server.output(), ["DATA 1 3 fin"]);
}

#[test]
fn small_credit_of_the_session_waits_too_and_more_of_it_ends_the_wait() {
    let mut server = server_with_response(Version::V31, 200_000);
    server.output();
    server.window_update(1, 1_000_000);
    server.window_update(0, 1_000);
    assert_eq!(server.output(), [""; 0]);
    server.window_update(0, 1_000);
    assert_eq!(server.output(), ["DATA 1 2000"]);
}

#[test]
fn capacity_returns_after_half_the_buffer_has_left() {
    let mut server = Script::server();
    server.syn_fin(1);
    server.session.reply(id(1), &some_headers(), false);
    server.events();
    assert_eq!(server.session.send_capacity(id(1)), 65_536);
    server.session.send_data(id(1), bytes(65_535), false);
    assert_eq!(server.session.send_capacity(id(1)), 1);
    server.session.send_data(id(1), bytes(1), false);
    assert_eq!(server.session.send_capacity(id(1)), 0);
    assert_eq!(
        sum(&server.output_frames(2)),
        16_384,
        "SYN_REPLY and one frame"
    );
    assert_eq!(
        (server.session.send_capacity(id(1)), server.events()),
        (0, vec![])
    );
    server.output_frames(1);
    assert_eq!(server.session.send_capacity(id(1)), 32_768);
    assert_eq!(server.events(), ["Writable 1"]);
}

#[test]
fn capacity_is_0_before_the_reply_after_fin_and_for_streams_that_are_not_there() {
    let mut server = Script::server();
    server.syn_fin(1);
    assert_eq!(server.session.send_capacity(id(1)), 0);
    server.session.reply(id(1), &some_headers(), false);
    server.session.send_data(id(1), bytes(10), true);
    assert_eq!(server.session.send_capacity(id(1)), 0);
    assert_eq!(server.session.send_capacity(id(3)), 0);
}

#[test]
fn a_large_body_crosses_at_the_pace_of_its_reader() {
    let mut config = Config::new(Role::Client, Version::V31);
    (config.initial_window_bytes, config.session_window_bytes) =
        (WINDOW as u32, Some(WINDOW as u32));
    let server = Config::new(Role::Server, Version::V31);
    let mut pair = Pair::new(config, server, ms(10));
    let get = StreamOptions {
        fin: true,
        ..StreamOptions::default()
    };
    pair.client.session.open(&some_headers(), get).unwrap();
    pair.run(ms(30));
    assert!(pair.server.session.reply(id(1), &HeaderBlock::new(), false));
    assert!(pair.server.session.send_data(id(1), bytes(1_000_000), true));
    let mut received = 0;
    for _ in 0..64 {
        pair.run(ms(30));
        let data = |line: &String| line.starts_with("Data");
        let lines: Vec<_> = pair
            .client
            .events
            .drain(..)
            .map(|event| event_line(&event))
            .collect();
        let now = sum(&lines
            .iter()
            .filter(|line| data(line))
            .map(|line| line.replace("Data", "DATA"))
            .collect::<Vec<_>>());
        assert!(now <= WINDOW, "{now} bytes in a round");
        received += now;
        pair.client.session.consume(id(1), now);
        if lines.iter().any(|line| line.ends_with("fin")) {
            break;
        }
    }
    assert_eq!(received, 1_000_000);
    assert!(pair.now < Instant::from_millis(1_000));
}

/// Found by the fuzz target `server_session`: the grant was computed when the first piece of DATA was there, so that it showed where the
/// transport had cut the frame.
#[test]
fn a_greeting_that_waits_for_the_peer_opens_the_window_by_all_that_came() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.settings_timing = SettingsTiming::AfterPeer;
    let mut server = Script::new(config);
    // a stray stream's DATA, whose credit goes back at once, in two pieces
    let stray = Data {
        stream_id: id(7),
        payload: bytes(2400),
        fin: false,
    };
    let mut wire = BytesMut::new();
    Frame::Data(stray).encode(Version::V31, &mut wire);
    server.session.handle_input(server.now, &wire[..100]);
    server.session.handle_input(server.now, &wire[100..]);
    let all = 1024 * 1024 - 65_536 + 2400;
    let output = server.output();
    assert_eq!(output[1], format!("WINDOW_UPDATE 0 {all}"), "{output:?}");
}

/// The WINDOW_UPDATE frames for `stream` in what was written, bytes.
fn credit(lines: &[String], stream: u32) -> usize {
    let prefix = format!("WINDOW_UPDATE {stream} ");
    let deltas = lines.iter().filter_map(|line| line.strip_prefix(&prefix));
    deltas.map(|delta| delta.parse::<usize>().unwrap()).sum()
}

/// `bytes` come on `stream` by kilobytes, are consumed at once, and take `span`; the credit that the stream got.
fn read_at_pace(server: &mut Script, stream: u32, bytes: usize, span: u64) -> usize {
    let pieces = bytes / 1024;
    let mut had = 0;
    let start = server.now;
    for piece in 1..=pieces {
        server.now = start + ms(span * piece as u64 / pieces as u64);
        server.data(stream, 1024, false);
        server.session.consume(id(stream), 1024);
        had += credit(&server.output(), stream);
    }
    had
}

#[test]
fn a_stream_window_doubles_with_each_window_that_is_read_within_a_second() {
    for version in [Version::V3, Version::V31] {
        let mut server = Script::version(Role::Server, version);
        server.syn(1);
        let (mut window, mut credit_left) = (WINDOW, WINDOW);
        while window < 1024 * 1024 {
            credit_left += read_at_pace(&mut server, 1, window, 1_000) - window;
            window *= 2;
            assert_eq!(credit_left, window, "{version}");
        }
        credit_left += read_at_pace(&mut server, 1, 4 * window, 1_000) - 4 * window;
        assert_eq!(
            credit_left, window,
            "{version}: the window has its maximum size"
        );
        // All of it may come, and one byte more may not.
        (0..window / 16_384).for_each(|_| server.data(1, 16_384, false));
        assert_eq!(credit(&server.output(), 1), 0);
        server.data(1, 1, false);
        let output = server.output();
        let reset = output.last().map(String::as_str);
        assert_eq!(reset, Some("RST_STREAM 1 FLOW_CONTROL_ERROR"));
    }
}

#[test]
fn a_slow_reader_gets_no_window_growth() {
    let mut server = Script::server();
    server.syn(1);
    let had = read_at_pace(&mut server, 1, 8 * WINDOW, 8 * 1_100);
    assert_eq!(had, 8 * WINDOW);
    server.syn(3);
    for _ in 0..4 {
        server.data(3, WINDOW, false);
        server.session.discard(id(3), WINDOW);
        assert_eq!(credit(&server.output(), 3), WINDOW);
    }
}

/// Reads 8 MiB of `stream`, which has `credit_left`, a window in `pace`; the most credit that it had from its fifth MiB on.
fn widest(server: &mut Script, stream: u32, mut credit_left: usize, pace: u64) -> usize {
    let mut widest = 0;
    for nth in 0..128 {
        credit_left += read_at_pace(server, stream, WINDOW, pace);
        credit_left -= WINDOW;
        if nth >= 64 {
            widest = widest.max(credit_left);
        }
    }
    widest
}

#[test]
fn all_windows_of_a_session_grow_by_so_much_and_no_more() {
    const GROWN_WINDOW: usize = 1024 * 1024;
    let mut server = Script::server();
    let mut sizes = Vec::new();
    for nth in 0..6 {
        server.syn(2 * nth + 1);
        sizes.push(widest(&mut server, 2 * nth + 1, WINDOW, 50));
    }
    // 4 MiB beyond the first windows: four times 960 KiB, and the rest.
    let rest = WINDOW + 256 * 1024;
    assert_eq!(
        sizes,
        [
            GROWN_WINDOW,
            GROWN_WINDOW,
            GROWN_WINDOW,
            GROWN_WINDOW,
            rest,
            WINDOW
        ]
    );
    // A stream that ends leaves its growth to another.
    server.session.reset(id(1), RstStatus::CANCEL);
    server.output();
    server.syn(13);
    assert_eq!(widest(&mut server, 13, WINDOW, 50), GROWN_WINDOW);
}

#[test]
fn the_session_window_has_the_growth_of_its_streams_as_long_as_they_live() {
    const SESSION: usize = 1024 * 1024;
    let mut server = Script::server();
    server.syn(1);
    server.syn(3);
    let mut room = SESSION;
    let mut widest = |server: &mut Script, stream, pace| {
        let rooms = (0..128).map(|_| {
            server.now += ms(pace);
            server.data(stream, WINDOW, false);
            server.session.consume(id(stream), WINDOW);
            room += credit(&server.output(), 0);
            room -= WINDOW;
            room
        });
        rooms.skip(64).max()
    };
    let grown_window = SESSION + SESSION - WINDOW;
    assert_eq!(widest(&mut server, 1, 50), Some(grown_window));
    server.session.reset(id(1), RstStatus::CANCEL);
    // Its first window comes, and is read, at once.
    assert_eq!(widest(&mut server, 3, 1_100), Some(SESSION + WINDOW));
}
