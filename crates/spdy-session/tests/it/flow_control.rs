//! Flow control of what is sent: DATA waits for credit, and window updates have limits (SPDY/3.1 §2.6.8).

use spdy_clock::Instant;
use spdy_frame::frame::SettingId;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role, SettingsTiming};
use spdy_session::session::StreamOptions;

use crate::support::pair::Pair;
use crate::support::{Script, WINDOW, bytes, event_line, id, ms, some_headers};

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

/// Regression: Jetty's client disconnected while a response waited for credit, and the queued bytes were subtracted from a sum that
/// was already 0.
#[test]
fn a_transport_that_ends_with_blocked_data_resets_the_stream() {
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
fn spdy_3_needs_stream_credit_and_ignores_that_of_stream_0() {
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
fn a_raised_initial_window_widens_open_streams_only() {
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
fn without_flow_control_windows_are_ignored() {
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
fn credit_for_stream_0_turns_spdy_3_to_3_1_and_counts_sent_data() {
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
fn small_data_waits_50_ms_for_more_credit() {
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
fn small_data_at_the_end_is_sent_at_once() {
    let mut server = server_with_response(Version::V31, 3);
    assert_eq!(server.output(), ["DATA 1 3 fin"]);
}

#[test]
fn more_session_credit_ends_the_wait_of_small_data() {
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
fn capacity_is_0_before_the_reply_after_fin_and_without_a_stream() {
    let mut server = Script::server();
    server.syn_fin(1);
    assert_eq!(server.session.send_capacity(id(1)), 0);
    server.session.reply(id(1), &some_headers(), false);
    server.session.send_data(id(1), bytes(10), true);
    assert_eq!(server.session.send_capacity(id(1)), 0);
    assert_eq!(server.session.send_capacity(id(3)), 0);
}

#[test]
fn a_large_body_is_sent_at_the_pace_of_its_reader() {
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
