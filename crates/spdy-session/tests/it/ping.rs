//! PING, keepalive, and the other time limits (SPDY/3.1 §2.6.5).

use std::time::Duration;

use ::bytes::BytesMut;
use spdy_clock::Instant;
use spdy_frame::frame::{Frame, Ping, RstStream};
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::event::Event;
use spdy_session::session::StreamOptions;

use crate::support::pair::Pair;
use crate::support::{Script, bytes, id, ms, some_headers};

#[test]
fn a_ping_measures_the_round_trip() {
    let mut pair = Pair::one_way(ms(40));
    pair.client.session.ping(pair.now);
    pair.run_until(Instant::from_millis(1_000));
    assert_eq!(pair.client.events, [Event::Pong { rtt: ms(80) }]);
    pair.server.session.ping(pair.now);
    pair.run(ms(1_000));
    assert_eq!(pair.server.events, [Event::Pong { rtt: ms(80) }]);
}

#[test]
fn a_ping_while_one_is_in_flight_shares_its_echo() {
    let mut client = Script::client();
    client.session.ping(client.now);
    client.session.ping(client.now);
    assert_eq!(client.output(), ["PING 1"]);
    client.session.ping(client.now);
    assert_eq!(client.output(), [""; 0]);
    client.ping(1);
    assert_eq!(client.events(), ["Pong 0ns"]);
    client.session.ping(client.now);
    assert_eq!(client.output(), ["PING 3"]);
}

#[test]
fn an_echo_is_sent_before_all_other_output() {
    let mut server = Script::server();
    server.syn_fin(1);
    server.session.reply(id(1), &some_headers(), false);
    server.session.send_data(id(1), bytes(10), true);
    for ping in [1, 77, 0xffff_ffff] {
        server.ping(ping);
    }
    let echoes = ["PING 1", "PING 77", "PING 4294967295"];
    assert_eq!(server.output()[..3], echoes);
}

#[test]
fn a_ping_of_our_parity_that_we_did_not_send_is_ignored() {
    let mut server = Script::server();
    for ping in [0, 2, 100] {
        server.ping(ping);
    }
    server.session.ping(server.now);
    server.ping(2); // not written yet: no answer to it can exist
    assert_eq!(server.output(), ["PING 2"]);
    assert_eq!(server.events(), [""; 0]);
}

#[test]
fn a_hundred_pings_in_one_read_are_all_echoed() {
    let mut server = Script::server();
    let mut wire = BytesMut::new();
    (0..100).for_each(|n| Ping { id: 2 * n + 1 }.encode(Version::V31, &mut wire));
    server.session.handle_input(server.now, &wire);
    let echoes: Vec<_> = (0..100).map(|n| format!("PING {}", 2 * n + 1)).collect();
    assert_eq!(server.output(), echoes);
    assert_eq!(server.events(), [""; 0]);
}

#[test]
fn a_ping_with_flags_is_echoed_like_one_without() {
    let mut server = Script::server();
    let flagged = [0x80, 3, 0, 6, 0xff, 0, 0, 4, 0, 0, 0, 7];
    server.session.handle_input(server.now, &flagged);
    assert_eq!(server.output(), ["PING 7"]);
    assert_eq!(server.events(), [""; 0]);
}

#[test]
fn two_hundred_echoes_may_wait_and_one_more_ends_the_session() {
    let mut server = Script::server();
    (0..200).for_each(|n| server.ping(2 * n + 1));
    assert_eq!(server.output().len(), 200);
    (0..201).for_each(|n| server.ping(2 * n + 1));
    assert_eq!(server.output(), ["GOAWAY 0 PROTOCOL_ERROR"]);
    assert_eq!(
        server.events(),
        ["Closed: more than 200 PING echoes queued"]
    );
}

#[test]
fn pings_are_counted_over_ten_seconds_even_if_each_is_echoed_at_once() {
    let mut server = Script::server();
    for n in 0..10_000 {
        server.ping(n); // an even id needs no echo, but is work as well
        server.output();
    }
    server.pass(ms(10_000));
    for n in 0..10_000 {
        server.ping(n);
        server.output();
    }
    assert_eq!(server.events(), [""; 0]);
    server.ping(1);
    assert_eq!(server.events(), ["Closed: more than 10000 PING frames"]);
}

fn with_keepalive() -> Script {
    let mut config = Config::new(Role::Client, Version::V31);
    config.keepalive_interval = Some(Duration::from_secs(5));
    config.keepalive_timeout = Duration::from_secs(2);
    Script::new(config)
}

#[test]
fn keepalive_pings_a_silent_peer_and_an_echo_keeps_the_session() {
    let mut client = with_keepalive();
    client.pass(ms(4_999));
    assert_eq!(client.output(), [""; 0]);
    client.pass(ms(1));
    assert_eq!(client.output(), ["PING 1"]);
    client.pass(ms(100));
    client.ping(1);
    assert_eq!(client.events(), ["Pong 100ms"]);
    client.pass(ms(5_000));
    assert_eq!(client.output(), ["PING 3"]);
}

#[test]
fn silence_after_a_keepalive_ping_ends_the_session() {
    let mut client = with_keepalive();
    client
        .session
        .open(&some_headers(), StreamOptions::default())
        .unwrap();
    client.output();
    client.pass(ms(5_000));
    client.output();
    client.pass(ms(1_999));
    assert!(!client.session.is_closed());
    client.pass(ms(1));
    assert_eq!(
        client.events(),
        [
            "Reset 1: session lost",
            "Closed: nothing received for 2s after PING"
        ]
    );
}

#[test]
fn any_input_counts_as_a_sign_of_life() {
    let mut client = with_keepalive();
    for ping in [1, 3, 5] {
        client.pass(ms(5_000));
        assert_eq!(client.output(), [format!("PING {ping}")]);
        client.pass(ms(100));
        client.window_update(9, 1); // no effect, but a sign of life
    }
    assert_eq!(client.events(), [""; 0]);
}

/// Regression: the PING stayed in flight, and input postponed the end of the session by the timeout alone instead of the interval.
#[test]
fn each_frame_restarts_the_keepalive_without_windows() {
    for version in [Version::V2, Version::V31] {
        let mut config = Config::new(Role::Client, version);
        config.flow_control = version == Version::V2; // which has none to turn off
        config.keepalive_interval = Some(ms(60_000));
        config.keepalive_timeout = ms(10_000);
        let mut client = Script::new(config);
        client.pass(ms(60_000));
        assert_eq!(client.output(), ["PING 1"]);
        client.pass(ms(5_000));
        client.ping(2);
        assert_eq!(client.output(), ["PING 2"]);
        client.pass(ms(59_999));
        assert_eq!(client.output(), [""; 0]);
        client.pass(ms(1));
        assert_eq!(client.output(), ["PING 3"]);
        client.pass(ms(9_999));
        assert_eq!(client.events(), [""; 0], "{version:?}");
        client.pass(ms(1));
        assert_eq!(
            client.events(),
            ["Closed: nothing received for 10s after PING"]
        );
    }
}

/// Found by the fuzz target `server_session`: if the last input of such a peer was longer ago than the interval,
/// an expired deadline stayed due, and a driver looped once more for it.
#[test]
fn a_long_silent_peer_is_pinged_at_once() {
    let mut config = Config::new(Role::Client, Version::V31);
    config.keepalive_interval = Some(ms(1_000));
    config.keepalive_timeout = ms(3_000);
    let mut client = Script::new(config);
    client.pass(ms(1_000));
    client.window_update(9, 1);
    assert_eq!(client.output(), ["PING 1"]);
    client.pass(ms(1));
    client.window_update(9, 1);
    client.pass(ms(2_999)); // `pass` checks that every handled timeout moves to a later time
    assert_eq!(client.output(), ["PING 3"]);
}

#[test]
fn keepalive_ends_a_session_whose_ping_is_blocked() {
    let mut client = with_keepalive();
    client.pass(ms(7_000)); // nothing was taken by poll_transmit
    assert_eq!(
        client.events(),
        ["Closed: nothing received for 2s after PING"]
    );
}

/// Without windows, reading stops when the owner consumes nothing, so that echoes of PINGs are not read either.
#[test]
fn keepalive_pauses_while_reading_is_stopped() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.flow_control = false;
    config.session_window_bytes = Some(65_536);
    config.keepalive_interval = Some(ms(5_000));
    config.keepalive_timeout = ms(2_000);
    let mut server = Script::new(config);
    server.syn(1);
    server.data(1, 65_536, false);
    assert!(!server.session.accepts_input());
    server.output();
    server.pass(ms(5_000));
    assert_eq!(server.output(), ["PING 2"]);
    server.pass(ms(6_000));
    assert_eq!(server.output(), [""; 0], "only one PING is sent");
    server.pass(ms(1_999));
    server.session.consume(id(1), 65_536);
    assert!(server.session.accepts_input());
    server.output();
    server.pass(ms(1_999));
    let alive = server
        .events()
        .iter()
        .all(|line| !line.starts_with("Closed"));
    assert!(alive, "the peer had no time to reply");
    server.pass(ms(1));
    let events = server.events();
    let last = events.last().map(String::as_str);
    assert_eq!(last, Some("Closed: nothing received for 2s after PING"));
}

/// A peer without windows reads nothing, PINGs included, while one of its streams is not read.
#[test]
fn unread_data_without_windows_pauses_the_keepalive() {
    for (flow_control, lives) in [(false, true), (true, false)] {
        let mut config = Config::new(Role::Client, Version::V31);
        config.flow_control = flow_control;
        config.keepalive_interval = Some(ms(5_000));
        config.write_timeout = None; // which is another limit
        config.keepalive_timeout = ms(2_000);
        let mut client = Script::new(config);
        let open = client
            .session
            .open(&some_headers(), StreamOptions::default());
        open.expect("room for a stream");
        client.session.send_data(id(1), bytes(10), false);
        client.pass(ms(5_000));
        client.pass(ms(60_000)); // nothing was taken by poll_transmit
        assert_eq!(client.events().is_empty(), lives, "{flow_control}");
    }
}

/// A client without windows that has sent `bytes` of DATA, and then a PING, 5 s later.
fn pinged_behind(bytes_sent: usize) -> Script {
    let mut config = Config::new(Role::Client, Version::V31);
    config.flow_control = false;
    config.keepalive_interval = Some(ms(5_000));
    config.keepalive_timeout = ms(2_000);
    config.keepalive_unread_timeout = ms(60_000);
    let mut client = Script::new(config);
    let open = client
        .session
        .open(&some_headers(), StreamOptions::default());
    open.expect("room for a stream");
    client.session.send_data(id(1), bytes(bytes_sent), false);
    client.output();
    client.events(); // that there is room again
    client.pass(ms(5_000));
    assert_eq!(client.output(), ["PING 1"]);
    client
}

#[test]
fn data_before_a_ping_extends_the_timeout_once() {
    let mut client = pinged_behind(65_536);
    client.pass(ms(54_000));
    assert_eq!(client.output(), [""; 0], "only one PING is sent");
    assert_eq!(client.events(), [""; 0]);
    client.pass(ms(4_000));
    let events = client.events();
    let last = events.last().map(String::as_str);
    assert_eq!(last, Some("Closed: nothing received for 60s after PING"));
}

#[test]
fn an_echo_proves_that_earlier_data_was_read() {
    let mut client = pinged_behind(65_536);
    client.pass(ms(50_000));
    client.ping(1);
    client.pass(ms(5_000));
    assert_eq!(client.output(), ["PING 3"]);
    assert_eq!(client.events(), ["Pong 50s"]);
    client.pass(ms(1_999));
    assert_eq!(client.events(), [""; 0]);
    client.pass(ms(1));
    let events = client.events();
    let last = events.last().map(String::as_str);
    assert_eq!(last, Some("Closed: nothing received for 2s after PING"));
}

#[test]
fn data_under_the_pipe_size_extends_no_timeout() {
    let mut client = pinged_behind(65_535);
    client.pass(ms(2_000));
    let events = client.events();
    let last = events.last().map(String::as_str);
    assert_eq!(last, Some("Closed: nothing received for 2s after PING"));
}

/// It sends, and reads nothing: PINGs would pile up before it, and be a flood when it reads them.
#[test]
fn a_sending_peer_without_windows_is_pinged_once() {
    let mut client = pinged_behind(65_536);
    for _ in 0..100 {
        client.pass(ms(1_500));
        client.ping(2);
        assert_eq!(client.output(), ["PING 2"], "only the echo");
    }
    assert_eq!(client.events(), [""; 0]);
}

/// A terminal that waits for a key has an open stream without traffic.
#[test]
fn silence_timeout_counts_frames_of_both_sides() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.silence_timeout = Some(ms(10_000));
    let mut server = Script::new(config);
    server.syn(1);
    server.pass(ms(9_000));
    server.ping(1);
    server.pass(ms(5_000));
    assert_eq!(server.output().last().map(String::as_str), Some("PING 1"));
    server.pass(ms(9_999));
    assert!(!server.session.is_closed());
    server.events();
    server.pass(ms(1));
    assert_eq!(
        server.events(),
        [
            "Reset 1: session lost",
            "Closed: nothing sent or received for 10s"
        ]
    );
}

#[test]
fn an_unfinished_control_frame_times_out_after_thirty_seconds() {
    let mut server = Script::server();
    server.session.handle_input(server.now, &[0x80, 3, 0]);
    server.pass(ms(20_000));
    server.session.handle_input(server.now, &[6]);
    server.pass(ms(9_999));
    assert_eq!(server.output(), [""; 0]);
    server.pass(ms(1));
    assert_eq!(server.output(), ["GOAWAY 0 PROTOCOL_ERROR"]);
    assert_eq!(server.events(), ["Closed: a frame was incomplete for 30s"]);
}

#[test]
fn slow_data_is_not_an_unfinished_frame() {
    let mut server = Script::server();
    server.syn(1);
    server
        .session
        .handle_input(server.now, &[0, 0, 0, 1, 0, 0, 0, 10]);
    for _ in 0..10 {
        server.pass(ms(20_000));
        server.session.handle_input(server.now, b"x");
    }
    assert_eq!(server.events().len(), 11);
}

/// Found by the fuzz target `server_session`: whether the wait restarted with the frame behind a skipped one depended on how the
/// transport split the bytes.
#[test]
fn the_end_of_a_skipped_frame_is_progress_with_any_split() {
    let deadline = |pieces: &[&[u8]]| {
        let mut server = Script::server();
        server
            .session
            .handle_input(server.now, &[0x80, 3, 0, 0x63, 0, 0, 0, 4, 1]);
        server.pass(ms(20_000));
        for piece in pieces {
            server.session.handle_input(server.now, piece);
        }
        server.session.poll_timeout().map(|due| due - server.now)
    };
    assert_eq!(deadline(&[&[2, 3, 4, 0x80, 3]]), Some(ms(30_000)));
    assert_eq!(deadline(&[&[2, 3, 4], &[0x80, 3]]), Some(ms(30_000)));
}

#[test]
fn blocked_data_ends_a_server_session_after_a_minute() {
    let mut server = Script::server();
    for stream in [1, 3] {
        server.syn_fin(stream);
        server.session.reply(id(stream), &some_headers(), false);
        server.session.send_data(id(stream), bytes(60_000), true);
    }
    server.pass(ms(50_000));
    server.output(); // the session's window is used up; a stream's is not
    server.pass(ms(59_999));
    assert_eq!(server.output(), [""; 0]);
    server.pass(ms(1));
    assert_eq!(server.output(), ["GOAWAY 3 PROTOCOL_ERROR"]);
}

#[test]
fn an_idle_server_sends_goaway_after_three_minutes() {
    let mut server = Script::server();
    server.pass(ms(100_000));
    server.syn_fin(1);
    server.pass(ms(1_000_000));
    server.session.reply(id(1), &some_headers(), true);
    assert_eq!(server.output(), ["SYN_REPLY 1 fin"]);
    server.pass(ms(179_999));
    server.ping(1);
    assert_eq!(server.output(), ["PING 1"]);
    server.pass(ms(1));
    assert_eq!(server.output(), ["GOAWAY 1 OK"]);
    assert_eq!(server.events(), ["Opened 1 fin", "Closed"]);
}

/// Found by the fuzz target `server_session`: a stream that was opened and reset within one read did not restart the idle timeout,
/// but did if the transport split the bytes between the two frames.
#[test]
fn a_stream_within_one_read_restarts_the_idle_timeout() {
    let mut server = Script::server();
    server.pass(ms(100_000));
    let syn = server.syn_frame(1);
    let rst = RstStream {
        stream_id: id(1),
        status: RstStatus::CANCEL,
    };
    let mut wire = BytesMut::new();
    Frame::SynStream(syn).encode(Version::V31, &mut wire);
    Frame::RstStream(rst).encode(Version::V31, &mut wire);
    server.session.handle_input(server.now, &wire);
    assert_eq!(
        server.session.poll_timeout(),
        Some(server.now + ms(180_000))
    );
}
