//! How sessions end: draining, GOAWAY in both directions, errors, the end of the transport (SPDY/3.1 §2.6.6).

use std::time::Duration;

use bytes::BytesMut;
use spdy_clock::Instant;
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::error::OpenError;
use spdy_session::event::Event;
use spdy_session::session::StreamOptions;

use crate::support::pair::Pair;
use crate::support::{Script, bytes, event_line, id, ms, some_headers};

fn get() -> StreamOptions {
    StreamOptions {
        fin: true,
        ..StreamOptions::default()
    }
}

/// A client with three requests on the wire.
fn client_with_requests(version: Version) -> Script {
    let mut client = Script::version(Role::Client, version);
    for _ in 0..3 {
        client.session.open(&some_headers(), get()).unwrap();
    }
    client.output();
    client
}

#[test]
fn streams_above_last_good_are_not_processed_and_others_continue() {
    for version in Version::ALL {
        let mut client = client_with_requests(version);
        client.goaway(3);
        assert_eq!(
            client.events(),
            ["GoAway 3", "Reset 5: not processed"],
            "{version}"
        );
        assert_eq!(
            client.session.open(&some_headers(), get()),
            Err(OpenError::Closing)
        );
        client.reply(1, true);
        client.reply(3, true);
        assert_eq!(
            client.events(),
            ["Reply 1 fin", "Reply 3 fin", "Closed"],
            "{version}"
        );
        let goaway = if version == Version::V2 {
            "GOAWAY 0"
        } else {
            "GOAWAY 0 OK"
        };
        assert_eq!(client.output(), [goaway], "{version}");
        assert!(client.session.is_closed());
    }
}

#[test]
fn last_good_can_fall_but_not_rise() {
    let mut client = client_with_requests(Version::V31);
    client.goaway(0x7fff_ffff);
    assert_eq!(client.events(), ["GoAway 2147483647"]);
    client.goaway(1);
    assert_eq!(
        client.events(),
        [
            "GoAway 1",
            "Reset 3: not processed",
            "Reset 5: not processed"
        ]
    );
    client.goaway(5);
    assert_eq!(client.events(), ["GoAway 1"]);
}

#[test]
fn unwritten_streams_are_not_processed_whatever_last_good() {
    let mut client = Script::client();
    client.session.open(&some_headers(), get()).unwrap();
    client.output();
    client.session.open(&some_headers(), get()).unwrap();
    client.goaway(0x7fff_ffff);
    assert_eq!(
        client.events(),
        ["GoAway 2147483647", "Reset 3: not processed"]
    );
    assert_eq!(client.output(), [""; 0]);
}

#[test]
fn goaway_without_open_streams_closes_at_once() {
    let mut server = Script::server();
    server.goaway(0);
    assert_eq!(server.events(), ["GoAway 0", "Closed"]);
    assert_eq!(server.output(), ["GOAWAY 0 OK"]);
    assert!(server.session.is_closed());
}

#[test]
fn a_goaway_of_the_client_lets_its_open_streams_complete() {
    let mut server = Script::server();
    server.syn_fin(1);
    server.goaway(0);
    assert!(server.session.reply(id(1), &some_headers(), false));
    assert!(server.session.send_data(id(1), bytes(5), true));
    assert_eq!(
        server.output(),
        ["SYN_REPLY 1", "DATA 1 5 fin", "GOAWAY 1 OK"]
    );
    assert_eq!(server.events(), ["Opened 1 fin", "GoAway 0", "Closed"]);
}

#[test]
fn server_shutdown_sends_goaway_at_once_and_drains() {
    let mut server = Script::server();
    server.syn_fin(1);
    server.session.shutdown(server.now);
    assert_eq!(server.output(), ["GOAWAY 1 OK"]);
    server.syn_fin(3);
    assert_eq!(server.output(), ["RST_STREAM 3 REFUSED_STREAM"]);
    server.data(5, 10, false); // its SYN_STREAM was never looked at
    server.session.reply(id(1), &some_headers(), true);
    assert_eq!(server.output(), ["SYN_REPLY 1 fin"]);
    assert_eq!(server.events(), ["Opened 1 fin", "Closed"]);
    assert!(server.session.is_closed());
}

#[test]
fn client_shutdown_sends_goaway_after_its_streams() {
    let mut client = client_with_requests(Version::V31);
    client.session.shutdown(client.now);
    assert_eq!(client.output(), [""; 0]);
    assert_eq!(
        client.session.open(&some_headers(), get()),
        Err(OpenError::Closing)
    );
    client.reply(1, true);
    client.reply(3, true);
    client.rst(5, RstStatus::REFUSED_STREAM);
    assert_eq!(client.output(), ["GOAWAY 0 OK"]);
    assert_eq!(client.events().last().unwrap(), "Closed");
}

#[test]
fn requests_that_were_queued_before_a_shutdown_are_still_sent() {
    let mut client = Script::client();
    client.session.open(&some_headers(), get()).unwrap();
    client.session.shutdown(client.now);
    let output = client.output();
    assert_eq!(output, ["SYN_STREAM 1 fin", "WINDOW_UPDATE 1 983040"]);
}

#[test]
fn a_shutdown_without_streams_closes_at_once() {
    let mut server = Script::server();
    server.session.shutdown(server.now);
    assert_eq!(server.events(), ["Closed"]);
    assert!(
        !server.session.is_closed(),
        "GOAWAY has not been written yet"
    );
    assert_eq!(server.output(), ["GOAWAY 0 OK"]);
    assert!(server.session.is_closed());
}

#[test]
fn goaway_reports_the_highest_accepted_stream() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.max_concurrent_streams = 1;
    let mut server = Script::new(config);
    server.syn(3);
    server.syn(5);
    server.session.abort(server.now);
    assert_eq!(server.output(), ["GOAWAY 3 INTERNAL_ERROR"]);
    assert_eq!(
        server.events(),
        [
            "Opened 3",
            "Reset 3: session lost",
            "Closed: session aborted locally"
        ]
    );
}

#[test]
fn a_drain_that_takes_too_long_ends_without_its_streams() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.drain_timeout = Some(Duration::from_secs(5));
    let mut server = Script::new(config);
    server.syn_fin(1);
    server.session.shutdown(server.now);
    server.pass(ms(4_999));
    assert_eq!(server.output(), ["GOAWAY 1 OK"]);
    server.pass(ms(1));
    assert_eq!(
        server.events().last().unwrap(),
        "Closed: 1 streams still open 5s after shutdown"
    );
    assert_eq!(server.output(), ["GOAWAY 1 OK"], "the second and last");
}

#[test]
fn the_end_of_the_transport_truncates_every_open_stream() {
    let mut client = client_with_requests(Version::V31);
    client.reply(1, true);
    client.session.handle_eof(client.now);
    assert_eq!(
        client.events(),
        [
            "Reply 1 fin",
            "Reset 3: session lost",
            "Reset 5: session lost",
            "Closed: connection ended with 2 open streams"
        ]
    );
    assert_eq!(client.output(), [""; 0]);
    assert!(client.session.is_closed());
}

#[test]
fn without_streams_a_transport_end_is_clean_even_within_a_frame() {
    let mut server = Script::server();
    server.session.handle_input(server.now, &[0x80, 3]);
    server.session.handle_eof(server.now);
    server.session.handle_eof(server.now);
    assert_eq!(server.events(), ["Closed"]);
    assert!(server.session.is_closed());
    assert_eq!(server.session.poll_timeout(), None);
}

#[test]
fn a_closed_session_does_nothing() {
    let mut server = Script::server();
    server.session.abort(server.now);
    server.output();
    server.events();
    server.syn(1);
    server.goaway(0);
    server.session.ping(server.now);
    server.session.shutdown(server.now);
    server.session.abort(server.now);
    server.session.handle_eof(server.now);
    assert_eq!(
        server.session.open(&some_headers(), get()),
        Err(OpenError::Closing)
    );
    assert!(!server.session.accepts_input());
    assert_eq!(server.output(), [""; 0]);
    assert_eq!(server.events(), [""; 0]);
}

#[test]
fn both_sides_of_a_drained_session_report_closed_once() {
    let mut pair = Pair::one_way(ms(25));
    pair.client.session.open(&some_headers(), get()).unwrap();
    pair.run(ms(100));
    pair.server.session.shutdown(pair.now);
    pair.run(ms(100));
    assert!(pair.client.session.open(&some_headers(), get()).is_err());
    pair.server.session.reply(id(1), &some_headers(), true);
    pair.run_until(Instant::from_millis(1_000));
    let lines = |events: &[Event]| events.iter().map(event_line).collect::<Vec<_>>();
    assert_eq!(
        lines(&pair.client.events),
        ["GoAway 1", "Reply 1 fin", "Closed"]
    );
    assert_eq!(lines(&pair.server.events), ["Opened 1 fin", "Closed"]);
    assert!(pair.client.session.is_closed() && pair.server.session.is_closed());
}

#[test]
fn after_goaway_a_client_may_open_streams_before_3_1_only() {
    for version in [Version::V2, Version::V3] {
        let mut server = Script::version(Role::Server, version);
        server.goaway(0);
        server.syn_fin(1);
        assert_eq!(server.events(), ["GoAway 0", "Opened 1 fin"], "{version}");
    }
    let mut server = Script::server();
    server.syn_fin(1);
    server.goaway(0);
    server.syn_fin(3);
    assert_eq!(server.events(), ["Opened 1 fin", "GoAway 0"]);
    assert_eq!(server.output(), ["RST_STREAM 3 REFUSED_STREAM"]);
}

#[test]
fn a_session_that_drains_within_a_read_ignores_the_rest() {
    let mut client = client_with_requests(Version::V31);
    client.session.shutdown(client.now);
    for stream in [1, 3] {
        client.reply(stream, true);
    }
    let mut both = BytesMut::new();
    for stream_id in [id(5), id(7)] {
        let status = RstStatus::REFUSED_STREAM;
        let rst = spdy_frame::frame::RstStream { stream_id, status };
        rst.encode(Version::V31, &mut both);
    }
    both.extend_from_slice(b"not a frame");
    client.session.handle_input(client.now, &both);
    assert_eq!(
        client.events()[2..],
        ["Reset 5 by peer: REFUSED_STREAM", "Closed"]
    );
}

/// The owner was notified to send a request again that had been answered.
#[test]
fn a_stream_with_a_reply_is_processed_whatever_last_good() {
    let mut client = client_with_requests(Version::V31);
    client.reply(3, false);
    client.goaway(0);
    let events = client.events();
    assert!(
        events.contains(&"Reset 1: not processed".to_owned()),
        "{events:?}"
    );
    assert!(
        !events.iter().any(|line| line.starts_with("Reset 3")),
        "{events:?}"
    );
    client.data(3, 5, true);
    assert!(client.events().contains(&"Data 3 5 fin".to_owned()));
}
