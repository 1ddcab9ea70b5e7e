//! What is sent and granted while it is unknown if the peer speaks SPDY/3 or 3.1, and how the version is detected.

use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};

use crate::support::{Script, bytes, id, ms, some_headers};

/// The initial window of a session of 3.1.
const WINDOW: usize = 65_536;

/// DATA in `lines`, bytes.
fn sum(lines: &[String]) -> usize {
    let data = lines.iter().filter(|line| line.starts_with("DATA"));
    data.map(|line| line.split(' ').nth(2).unwrap().parse::<usize>().unwrap())
        .sum()
}

fn undecided() -> Script {
    let mut config = Config::new(Role::Server, Version::V3);
    config.detect_session_window = true;
    config.window_growth_bytes = 0;
    Script::new(config)
}

/// Answers streams 1 and 3 with 100,000 bytes each.
fn server_with_two_responses(server: &mut Script) {
    for stream in [1, 3] {
        server.syn_fin(stream);
        server.session.reply(id(stream), &some_headers(), false);
        server.session.send_data(id(stream), bytes(50_000), false);
    }
}

/// An undetected client of 3.1 was overrun.
#[test]
fn an_undetected_peer_is_sent_what_3_1_allows() {
    let mut server = undecided();
    server_with_two_responses(&mut server);
    let output = server.output();
    assert_eq!(sum(&output), WINDOW);
    assert_eq!(output.last().unwrap(), "PING 2");
    server.window_update(0, 20_000); // before its echo
    server.ping(2);
    assert_eq!(sum(&server.output()), 20_000);
    server.pass(ms(5_000));
    assert_eq!(sum(&server.output()), 0);
}

#[test]
fn an_echo_without_session_credit_means_3() {
    let mut server = undecided();
    server_with_two_responses(&mut server);
    server.output();
    server.ping(2);
    assert_eq!(sum(&server.output()), 100_000 - WINDOW);
    // or else it is slow, and shows it now
    server.window_update(0, 10_000);
    server.session.send_data(id(1), bytes(1_000), false);
    assert_eq!(sum(&server.output()), 0, "65,536 + 10,000 - 100,000");
}

#[test]
fn no_echo_and_no_credit_means_3_after_ten_seconds() {
    let mut server = undecided();
    server_with_two_responses(&mut server);
    server.output();
    server.pass(ms(9_999));
    assert_eq!(sum(&server.output()), 0);
    server.pass(ms(1));
    assert_eq!(sum(&server.output()), 100_000 - WINDOW);
}

/// Regression: if 65,536 bytes were buffered for longer than the timeout, any slow client was taken for SPDY/3.
#[test]
fn the_wait_for_an_echo_begins_when_the_transport_has_taken_the_ping() {
    let mut server = undecided();
    server_with_two_responses(&mut server);
    assert_eq!(sum(&server.output_untransmitted()), WINDOW);
    server.pass(ms(30_000));
    assert_eq!(sum(&server.output()), 0);
    server.pass(ms(9_999));
    assert_eq!(sum(&server.output()), 0);
    server.pass(ms(1));
    assert_eq!(sum(&server.output()), 100_000 - WINDOW);
}

/// Regression: an echo that was written before the peer had read any response was taken for an echo behind the responses.
#[test]
fn an_echo_of_a_ping_sent_before_the_responses_decides_nothing() {
    for by_keepalive in [false, true] {
        let mut config = Config::new(Role::Server, Version::V3);
        config.detect_session_window = true;
        config.keepalive_interval = by_keepalive.then(|| ms(5_000));
        let mut server = Script::new(config);
        server.pass(ms(5_000));
        if !by_keepalive {
            server.session.ping(server.now);
        }
        assert_eq!(server.output(), ["PING 2"]);
        server_with_two_responses(&mut server);
        let output = server.output();
        assert_eq!(sum(&output), WINDOW);
        assert_eq!(output.last().unwrap(), "PING 4");
        server.pass(ms(50));
        server.ping(2);
        assert_eq!(server.output(), [""; 0], "{by_keepalive}");
        server.ping(4);
        assert_eq!(sum(&server.output()), 100_000 - WINDOW);
        let pongs = server
            .events()
            .into_iter()
            .filter(|line| line.starts_with("Pong"));
        assert_eq!(
            pongs.collect::<Vec<_>>(),
            ["Pong 50ms"],
            "one reply counts for both"
        );
    }
}

/// A client of 3.1 that has received nothing has nothing to grant, so its upload stood still after 65,536 bytes.
#[test]
fn an_undetected_session_gets_credit_after_half_a_window() {
    let mut server = undecided();
    server.syn(1);
    server.syn(3);
    server.data(1, 32_767, false);
    assert_eq!(server.output(), [""; 0]);
    server.data(1, 1, false);
    assert_eq!(server.output(), ["WINDOW_UPDATE 0 983040"]);
}

/// Each later one waited until 32 KiB were left, so that an upload lost a round trip with every megabyte.
#[test]
fn credit_is_renewed_after_half_of_the_opened_window() {
    let mut server = undecided();
    server.syn(1);
    let mut granted_after = Vec::new();
    for kib in 1..=2_048 {
        server.data(1, 1_024, false);
        server.session.consume(id(1), 1_024);
        let output = server.output();
        if output
            .iter()
            .any(|line| line.starts_with("WINDOW_UPDATE 0 "))
        {
            granted_after.push(kib);
        }
    }
    assert_eq!(
        granted_after,
        [32, 544, 1_056, 1_568],
        "KiB: each 512 after the first"
    );
}

/// OkHttp and Undertow also change the session's window by our INITIAL_WINDOW_SIZE. Regression: they were taken for SPDY/3 before
/// we had written anything, and their uploads stalled.
#[test]
fn session_window_moves_of_okhttp_do_not_mean_3() {
    for (extra_bytes, credit) in [(0, true), (1, false)] {
        let mut config = Config::new(Role::Server, Version::V3);
        config.detect_session_window = true;
        config.initial_window_bytes = 81_920;
        let mut server = Script::new(config);
        server.syn(1);
        server.syn(3);
        server.data(1, 81_920, false); // 65,536, and as much as SETTINGS stated
        server.data(3, extra_bytes, false);
        server.session.consume(id(1), 81_920);
        let output = server.output();
        let granted = output
            .iter()
            .any(|line| line.starts_with("WINDOW_UPDATE 0 "));
        assert_eq!(granted, credit, "{extra_bytes}: {output:?}");
    }
}

#[test]
fn data_past_the_3_1_window_means_3() {
    let mut config = Config::new(Role::Server, Version::V3);
    config.detect_session_window = true;
    config.session_window_bytes = Some(65_536);
    config.window_growth_bytes = 0;
    let mut server = Script::new(config);
    for stream in [1, 3, 5] {
        server.syn(stream);
    }
    server.data(1, 65_536, false);
    server.data(3, 1, false);
    server.session.consume(id(1), 65_536);
    assert_eq!(server.output(), ["WINDOW_UPDATE 1 65536"]);
    // and no window holds what we send
    for stream in [1, 3] {
        server.session.reply(id(stream), &some_headers(), false);
        server.session.send_data(id(stream), bytes(50_000), false);
    }
    assert_eq!(sum(&server.output()), 100_000);
}
