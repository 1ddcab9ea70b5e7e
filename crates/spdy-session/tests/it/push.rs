//! Server push, both sides (SPDY/3.1 §3.3).

use spdy_frame::frame::{Frame, SettingId, SynStream};
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_session::config::{Config, PushPolicy, Role};
use spdy_session::error::OpenError;
use spdy_session::session::StreamOptions;

use crate::support::{Script, bytes, id, some_headers};

fn push_for(parent: u32) -> StreamOptions {
    let priority = Priority::LOWEST;
    StreamOptions {
        priority,
        associated_to: id(parent),
        unidirectional: true,
        ..StreamOptions::default()
    }
}

/// A client with one request on the wire.
fn client(version: Version, push: PushPolicy) -> Script {
    let mut config = Config::new(Role::Client, version);
    config.push = push;
    let mut client = Script::new(config);
    client.open_fin();
    client.output();
    client
}

/// A server with a request.
fn server() -> Script {
    let mut server = Script::server();
    server.syn_fin(1);
    server.events();
    server
}

#[test]
fn a_push_is_an_even_one_way_stream_before_its_parents_data() {
    let mut server = server();
    server.session.reply(id(1), &some_headers(), false);
    server.session.send_data(id(1), bytes(10), true);
    assert_eq!(server.session.open(&some_headers(), push_for(1)), Ok(id(2)));
    assert!(
        server.session.headers(id(2), &some_headers(), false),
        "the second block"
    );
    assert!(server.session.send_data(id(2), bytes(20), true));
    assert_eq!(
        server.output(),
        [
            "SYN_REPLY 1",
            "SYN_STREAM 2 of 1",
            "HEADERS 2",
            "DATA 1 10 fin",
            "DATA 2 20 fin"
        ]
    );
    assert_eq!(server.session.active_streams(), (0, 0));
}

#[test]
fn nothing_is_pushed_for_a_stream_without_an_open_response() {
    let mut server = server();
    let parent_gone = |parent| Err(OpenError::ParentGone { parent: id(parent) });
    assert_eq!(
        server.session.open(&some_headers(), push_for(3)),
        parent_gone(3)
    );
    server.session.reply(id(1), &some_headers(), true);
    server.output();
    assert_eq!(
        server.session.open(&some_headers(), push_for(1)),
        parent_gone(1)
    );
}

#[test]
fn a_push_cannot_have_a_push() {
    let mut server = server();
    server.session.open(&some_headers(), push_for(1)).unwrap();
    let parent_gone = Err(OpenError::ParentGone { parent: id(2) });
    assert_eq!(
        server.session.open(&some_headers(), push_for(2)),
        parent_gone
    );
}

#[test]
fn pushes_count_against_the_clients_limit() {
    let mut server = server();
    server.setting(SettingId::MAX_CONCURRENT_STREAMS, 0);
    let full = server.session.open(&some_headers(), push_for(1));
    assert_eq!(full, Err(OpenError::Full { limit: 0 }));
}

#[test]
fn resetting_a_request_resets_its_pushes() {
    let mut server = server();
    server.syn_fin(3);
    for parent in [1, 3, 1] {
        server
            .session
            .open(&some_headers(), push_for(parent))
            .unwrap();
    }
    server.events();
    server.output();
    server.session.open(&some_headers(), push_for(1)).unwrap(); // not written yet
    server.session.send_data(id(2), bytes(100), true);
    server.rst(1, RstStatus::CANCEL);
    assert_eq!(
        server.events(),
        [
            "Reset 1 by peer: CANCEL",
            "Reset 2 by us: CANCEL",
            "Reset 6 by us: CANCEL",
            "Reset 8 by us: CANCEL"
        ]
    );
    assert_eq!(
        server.output(),
        ["RST_STREAM 2 CANCEL", "RST_STREAM 6 CANCEL"]
    );
    assert_eq!(
        server.session.active_streams(),
        (1, 1),
        "stream 3 and its push"
    );
}

#[test]
fn a_push_outlives_its_parents_fin() {
    let mut server = server();
    server.session.open(&some_headers(), push_for(1)).unwrap();
    server.session.reply(id(1), &some_headers(), true);
    server.output();
    assert!(server.session.send_data(id(2), bytes(5), true));
    assert_eq!(server.output(), ["DATA 2 5 fin"]);
}

#[test]
fn a_client_gets_events_of_a_push_and_its_data() {
    for version in Version::ALL {
        let mut client = client(version, PushPolicy::Accept);
        client.push(2, 1);
        client.headers(2, false);
        client.data(2, 30, true);
        client.reply(1, true);
        assert_eq!(
            client.events(),
            [
                "Opened 2 one-way",
                "Headers 2",
                "Data 2 30 fin",
                "Reply 1 fin"
            ],
            "{version}"
        );
        assert!(!client.session.send_data(id(2), bytes(1), false));
        assert_eq!(client.output(), [""; 0]);
    }
}

#[test]
fn a_push_without_its_flag_is_accepted_and_our_half_is_closed() {
    let mut client = client(Version::V31, PushPolicy::Accept);
    let push = SynStream {
        associated_to: id(1),
        ..client.syn_frame(2)
    };
    client.send(&Frame::SynStream(push));
    assert_eq!(client.events(), ["Opened 2 one-way"]);
    assert!(!client.session.reply(id(2), &some_headers(), true));
}

#[test]
fn pushes_are_refused_by_default_and_their_blocks_are_inflated() {
    let mut client = client(Version::V31, PushPolicy::Refuse);
    client.push(2, 1);
    client.data(2, 30, true);
    client.reply(1, true);
    assert_eq!(client.output(), ["RST_STREAM 2 REFUSED_STREAM"]);
    assert_eq!(client.events(), ["Reply 1 fin"]);
}

#[test]
fn a_push_without_an_associated_stream_is_a_stream_error() {
    for (version, status) in [
        (Version::V2, "INVALID_STREAM"),
        (Version::V3, "PROTOCOL_ERROR"),
        (Version::V31, "PROTOCOL_ERROR"),
    ] {
        let mut client = client(version, PushPolicy::Accept);
        client.push(2, 0);
        assert_eq!(
            client.output(),
            [format!("RST_STREAM 2 {status}")],
            "{version}"
        );
    }
}

#[test]
fn a_raw_protocol_may_accept_streams_without_an_associated_one() {
    let mut client = client(Version::V31, PushPolicy::AcceptUnassociated);
    client.syn(2);
    assert_eq!(client.events(), ["Opened 2"]);
    assert!(client.session.reply(id(2), &some_headers(), true));
}

#[test]
fn a_push_for_a_stream_that_is_unknown_or_closed_is_invalid() {
    let mut client = client(Version::V31, PushPolicy::Accept);
    client.push(2, 9);
    client.push(4, 2);
    client.reply(1, true);
    client.push(6, 1);
    let invalid = |stream| format!("RST_STREAM {stream} INVALID_STREAM");
    assert_eq!(client.output(), [invalid(2), invalid(4), invalid(6)]);
}

#[test]
fn push_ids_that_fall_or_are_odd_end_the_session() {
    for second in [2, 5] {
        let mut client = client(Version::V31, PushPolicy::Accept);
        client.push(4, 1);
        client.push(second, 1);
        assert_eq!(client.output(), ["GOAWAY 4 PROTOCOL_ERROR"]);
    }
}

#[test]
fn a_push_over_the_limit_and_one_while_draining_are_refused() {
    let mut config = Config::new(Role::Client, Version::V31);
    (config.push, config.max_concurrent_streams) = (PushPolicy::Accept, 1);
    let mut client = Script::new(config);
    client.open_fin();
    client.output();
    client.push(2, 1);
    client.push(4, 1);
    assert_eq!(client.output(), ["RST_STREAM 4 REFUSED_STREAM"]);
    client.data(2, 0, true);
    client.session.shutdown(client.now);
    client.push(6, 1);
    assert_eq!(client.output(), ["RST_STREAM 6 REFUSED_STREAM"]);
}

#[test]
fn a_reply_to_a_push_is_ignored() {
    let mut server = server();
    server.session.open(&some_headers(), push_for(1)).unwrap();
    server.output();
    server.reply(2, false);
    assert_eq!(server.output(), [""; 0]);
    server.data(2, 1, false); // but more than that is too much
    assert_eq!(server.output(), ["RST_STREAM 2 STREAM_ALREADY_CLOSED"]);
}

#[test]
fn a_push_of_headers_only_is_reported_and_retired() {
    let mut client = client(Version::V31, PushPolicy::Accept);
    let push = SynStream {
        associated_to: id(1),
        unidirectional: true,
        fin: true,
        ..client.syn_frame(2)
    };
    client.send(&Frame::SynStream(push));
    assert_eq!(client.events(), ["Opened 2 one-way fin"]);
    assert_eq!(client.session.active_streams(), (1, 0));
}

#[test]
fn a_push_window_is_small_until_widened() {
    let mut config = Config::new(Role::Client, Version::V31);
    config.push = PushPolicy::Accept;
    config.initial_window_bytes = 1024 * 1024;
    config.settings_window_bytes = Some(65_536);
    let mut client = Script::new(config);
    client
        .session
        .open(&some_headers(), StreamOptions::default())
        .unwrap();
    assert_eq!(client.output(), ["SYN_STREAM 1", "WINDOW_UPDATE 1 983040"]);
    client.push(2, 1);
    client.push(4, 1);
    client.data(2, 65_536, false);
    client.data(4, 65_536, false);
    client.session.widen_window(id(2));
    client.data(2, 0, false);
    assert_eq!(client.output(), ["WINDOW_UPDATE 2 983040"]);
    client.data(2, 900_000, true);
    client.data(4, 1, false);
    assert_eq!(client.output(), ["RST_STREAM 4 FLOW_CONTROL_ERROR"]);
    client.session.widen_window(id(2)); // its FIN has come
    assert_eq!(client.output(), [""; 0]);
}
