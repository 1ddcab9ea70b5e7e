//! Flow control of received DATA: the windows that a peer must respect, and when it gets credit (SPDY/3.1 §2.6.8).

use ::bytes::BytesMut;
use spdy_frame::frame::{Data, Frame};
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role, SettingsTiming};

use crate::support::{Script, WINDOW, bytes, id, some_headers};

#[test]
fn one_byte_past_the_stream_window_is_a_stream_error() {
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
fn a_session_window_moved_by_our_initial_window_is_allowed() {
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
fn credit_returns_when_half_the_window_is_consumed() {
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
fn session_credit_has_a_frame_of_its_own() {
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
fn at_most_the_received_bytes_are_consumed() {
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
fn after_fin_only_the_session_gets_credit() {
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
fn reading_a_closed_stream_returns_session_credit() {
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
fn a_reset_returns_session_credit_at_once() {
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
fn data_for_closed_streams_returns_session_credit_at_once() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.session_window_bytes = Some(65_536);
    let mut server = Script::new(config);
    server.data(9, 20_000, false);
    assert_eq!(server.output(), ["RST_STREAM 9 INVALID_STREAM"]);
    server.data(9, 20_000, false);
    assert_eq!(server.output(), ["WINDOW_UPDATE 0 40000"]);
}

#[test]
fn without_windows_unconsumed_data_stops_reading() {
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

/// Found by the fuzz target `server_session`: the WINDOW_UPDATE was computed when the first piece of DATA had arrived, so that it
/// depended on where the transport split the frame.
#[test]
fn a_delayed_greeting_grants_credit_for_all_received_data() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.settings_timing = SettingsTiming::AfterPeer;
    let mut server = Script::new(config);
    // DATA of an unknown stream in two pieces, whose credit is returned at once
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
