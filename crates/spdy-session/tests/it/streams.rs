//! Ids, states, and what each unexpected frame of a stream means (SPDY/3.1 §2.3).

use bytes::Bytes;
use spdy_frame::frame::{Frame, Headers, SynReply, SynStream};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::error::OpenError;
use spdy_session::session::StreamOptions;

use crate::support::{Script, bytes, id, some_headers};

const FIN: StreamOptions = StreamOptions {
    priority: spdy_frame::priority::Priority::HIGHEST,
    associated_to: spdy_frame::stream_id::StreamId::ZERO,
    unidirectional: false,
    fin: true,
};

#[test]
fn a_request_and_its_response_open_and_close_a_stream() {
    for version in Version::ALL {
        let mut client = Script::version(Role::Client, version);
        assert_eq!(client.session.open(&some_headers(), FIN), Ok(id(1)));
        assert_eq!(client.output()[0], "SYN_STREAM 1 fin");
        client.reply(1, false);
        client.data(1, 4, true);
        assert_eq!(client.events(), ["Reply 1", "Data 1 4 fin"], "{version}");
        assert_eq!(client.session.active_streams(), (0, 0));

        let mut server = Script::version(Role::Server, version);
        server.syn_fin(1);
        assert_eq!(server.events(), ["Opened 1 fin"]);
        assert!(server.session.reply(id(1), &some_headers(), false));
        assert!(server.session.send_data(id(1), bytes(4), true));
        assert_eq!(
            server.output(),
            ["SYN_REPLY 1", "DATA 1 4 fin"],
            "{version}"
        );
        assert_eq!(server.session.active_streams(), (0, 0));
    }
}

#[test]
fn ids_of_a_client_are_odd_and_those_of_a_server_even() {
    let open = StreamOptions {
        unidirectional: true,
        ..StreamOptions::default()
    };
    let ids = |mut script: Script| [(); 3].map(|()| script.session.open(&some_headers(), open));
    assert_eq!(ids(Script::client()), [Ok(id(1)), Ok(id(3)), Ok(id(5))]);
    assert_eq!(ids(Script::server()), [Ok(id(2)), Ok(id(4)), Ok(id(6))]);
}

#[test]
fn a_stream_with_our_parity_ends_the_session() {
    for (mut script, stream) in [(Script::server(), 2), (Script::client(), 1)] {
        script.syn(stream);
        assert_eq!(script.output(), ["GOAWAY 0 PROTOCOL_ERROR"]);
        assert_eq!(
            script.events(),
            [format!(
                "Closed: SYN_STREAM has ID {stream}, expected an ID of the peer's parity"
            )]
        );
        assert!(script.session.is_closed());
    }
}

#[test]
fn a_decreasing_id_ends_the_session_with_the_last_accepted_id() {
    for version in Version::ALL {
        let mut server = Script::version(Role::Server, version);
        server.syn(5);
        server.syn(3);
        let goaway = if version == Version::V2 {
            "GOAWAY 5"
        } else {
            "GOAWAY 5 PROTOCOL_ERROR"
        };
        assert_eq!(server.output(), [goaway]);
        let events = server.events();
        let closed_event = "Closed: SYN_STREAM has ID 3, expected more than 5";
        assert_eq!(
            events,
            ["Opened 5", "Reset 5: session lost", closed_event],
            "{version}"
        );
    }
}

#[test]
fn a_second_syn_stream_resets_the_stream_only() {
    let mut server = Script::server();
    server.syn(1);
    server.syn(1);
    server.syn_fin(3);
    assert_eq!(
        server.events(),
        ["Opened 1", "Reset 1 by us: PROTOCOL_ERROR", "Opened 3 fin"]
    );
    assert_eq!(server.output(), ["RST_STREAM 1 PROTOCOL_ERROR"]);
}

#[test]
fn a_reused_id_resets_in_spdy_2_and_ends_later_versions() {
    for (version, response_frame) in [
        (Version::V2, "RST_STREAM 1 PROTOCOL_ERROR"),
        (Version::V3, "GOAWAY 1 PROTOCOL_ERROR"),
        (Version::V31, "GOAWAY 1 PROTOCOL_ERROR"),
    ] {
        let mut server = Script::version(Role::Server, version);
        server.syn_fin(1);
        server.session.reply(id(1), &some_headers(), true);
        server.output();
        server.syn(1);
        assert_eq!(server.output(), [response_frame], "{version}");
    }
}

#[test]
fn gaps_between_ids_are_allowed() {
    let mut server = Script::server();
    server.syn_fin(7);
    server.syn_fin(0x7fff_ffff);
    assert_eq!(server.events(), ["Opened 7 fin", "Opened 2147483647 fin"]);
}

#[test]
fn one_stream_over_the_limit_is_refused_and_its_block_is_inflated() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.max_concurrent_streams = 2;
    let mut server = Script::new(config);
    for stream in [1, 3, 5] {
        server.syn(stream);
    }
    assert_eq!(server.output(), ["RST_STREAM 5 REFUSED_STREAM"]);
    server.rst(1, RstStatus::CANCEL);
    server.syn(7); // refers back into the refused block
    assert_eq!(
        server.events(),
        [
            "Opened 1",
            "Opened 3",
            "Reset 1 by peer: CANCEL",
            "Opened 7"
        ]
    );
    assert_eq!(server.session.stats().streams_refused, 1);
}

#[test]
fn a_malformed_block_resets_its_stream_and_the_next_inflates() {
    for version in Version::ALL {
        let mut server = Script::version(Role::Server, version);
        let block = server.bad_block();
        server.syn_with(1, block);
        assert_eq!(
            server.output(),
            ["RST_STREAM 1 PROTOCOL_ERROR"],
            "{version}"
        );
        server.syn_fin(3);
        assert_eq!(server.events(), ["Opened 3 fin"], "{version}");
    }
}

#[test]
fn a_block_that_is_not_zlib_ends_the_session() {
    let mut server = Script::server();
    server.syn_with(1, Bytes::from_static(b"not zlib"));
    assert_eq!(server.output(), ["GOAWAY 0 PROTOCOL_ERROR"]);
}

#[test]
fn data_before_syn_reply_is_a_stream_error() {
    let mut client = Script::client();
    client.session.open(&some_headers(), FIN).unwrap();
    client.output();
    client.data(1, 4, false);
    assert_eq!(client.output(), ["RST_STREAM 1 PROTOCOL_ERROR"]);
    assert_eq!(client.events(), ["Reset 1 by us: PROTOCOL_ERROR"]);
}

#[test]
fn headers_before_syn_reply_are_a_stream_error() {
    let mut client = Script::client();
    client.session.open(&some_headers(), FIN).unwrap();
    client.output();
    client.headers(1, false);
    assert_eq!(client.output(), ["RST_STREAM 1 PROTOCOL_ERROR"]);
}

#[test]
fn a_second_syn_reply_is_stream_in_use_and_protocol_error_in_spdy_2() {
    for (version, status) in [
        (Version::V2, "PROTOCOL_ERROR"),
        (Version::V3, "STREAM_IN_USE"),
        (Version::V31, "STREAM_IN_USE"),
    ] {
        let mut client = Script::version(Role::Client, version);
        client.session.open(&some_headers(), FIN).unwrap();
        client.output();
        client.reply(1, false);
        client.reply(1, false);
        assert_eq!(
            client.output(),
            [format!("RST_STREAM 1 {status}")],
            "{version}"
        );
    }
}

#[test]
fn a_second_syn_reply_after_fin_gets_stream_already_closed() {
    let mut client = Script::client();
    client
        .session
        .open(&some_headers(), StreamOptions::default())
        .unwrap();
    client.output();
    client.reply(1, true);
    client.reply(1, false);
    assert_eq!(client.output(), ["RST_STREAM 1 STREAM_ALREADY_CLOSED"]);
}

#[test]
fn syn_reply_by_the_opener_is_a_stream_error() {
    let mut server = Script::server();
    server.syn(1);
    server.reply(1, false);
    assert_eq!(server.output(), ["RST_STREAM 1 PROTOCOL_ERROR"]);
}

#[test]
fn frames_for_an_unknown_stream_get_invalid_stream_once() {
    for version in Version::ALL {
        let mut server = Script::version(Role::Server, version);
        server.data(9, 4, false);
        server.data(9, 4, true);
        server.headers(11, false);
        server.reply(2, false);
        let invalid = |stream| format!("RST_STREAM {stream} INVALID_STREAM");
        assert_eq!(
            server.output(),
            [invalid(9), invalid(11), invalid(2)],
            "{version}"
        );
        server.syn_fin(13);
        assert_eq!(server.events(), ["Opened 13 fin"], "{version}");
    }
}

#[test]
fn data_and_headers_after_fin_get_stream_already_closed() {
    let mut server = Script::version(Role::Server, Version::V31);
    server.syn_fin(1);
    server.data(1, 4, false);
    server.syn_fin(3);
    server.headers(3, false);
    let rst = |stream| format!("RST_STREAM {stream} STREAM_ALREADY_CLOSED");
    assert_eq!(server.output(), [rst(1), rst(3)]);
}

#[test]
fn empty_data_after_fin_changes_nothing_and_counts_as_an_empty_frame() {
    for version in Version::ALL {
        let mut server = Script::version(Role::Server, version);
        server.syn(1);
        server.data(1, 4, true);
        assert_eq!(server.events(), ["Opened 1", "Data 1 4 fin"]);
        for fin in [true, false].repeat(500) {
            server.data(1, 0, fin);
        }
        assert_eq!(server.events(), [""; 0], "{version}");
        server.session.reply(id(1), &some_headers(), true);
        assert_eq!(server.output(), ["SYN_REPLY 1 fin"], "{version}");
        server.syn_fin(3);
        server.events();
        server.data(3, 0, true);
        let error = "Closed: more than 1000 empty frames";
        assert_eq!(
            server.events().last().map(String::as_str),
            Some(error),
            "{version}"
        );
    }
}

#[test]
fn spdy_2_ignores_data_after_fin_and_answers_headers_there() {
    let mut server = Script::version(Role::Server, Version::V2);
    server.syn_fin(1);
    server.data(1, 4, false);
    assert_eq!(server.events(), ["Opened 1 fin"]);
    assert_eq!(server.output(), [""; 0]);
    server.headers(1, false);
    assert_eq!(server.output(), ["RST_STREAM 1 PROTOCOL_ERROR"]);
}

#[test]
fn late_frames_for_a_closed_stream_are_ignored() {
    let mut server = Script::server();
    server.syn_fin(1);
    server.session.reply(id(1), &some_headers(), true);
    assert_eq!(server.output(), ["SYN_REPLY 1 fin"]);
    server.data(1, 4, false);
    server.window_update(1, 4);
    server.rst(1, RstStatus::CANCEL);
    server.headers(1, true);
    assert_eq!(server.output(), [""; 0]);
    assert_eq!(server.events(), ["Opened 1 fin"]);
}

#[test]
fn the_last_64_closed_streams_are_remembered() {
    let mut server = Script::server();
    for stream in (1..=129).step_by(2) {
        server.syn_fin(stream);
        server.session.reply(id(stream), &some_headers(), true);
        server.output();
    }
    server.data(3, 1, false);
    assert_eq!(server.output(), [""; 0]);
    server.data(1, 1, false);
    assert_eq!(server.output(), ["RST_STREAM 1 INVALID_STREAM"]);
}

#[test]
fn an_rst_stream_is_never_answered_by_one() {
    let mut server = Script::server();
    server.rst(9, RstStatus::CANCEL);
    server.syn(11);
    server.rst(11, RstStatus::CANCEL);
    server.rst(11, RstStatus::CANCEL);
    server.data(11, 4, true);
    assert_eq!(server.output(), [""; 0]);
    assert_eq!(server.events(), ["Opened 11", "Reset 11 by peer: CANCEL"]);
}

#[test]
fn frames_after_our_rst_stream_are_inflated_and_dropped() {
    let mut client = Script::client();
    client.session.open(&some_headers(), FIN).unwrap();
    client.output();
    client.session.reset(id(1), RstStatus::CANCEL);
    client.reply(1, false);
    client.data(1, 400, false);
    client.headers(1, true);
    assert_eq!(client.output(), ["RST_STREAM 1 CANCEL"]);
    assert_eq!(client.events(), [""; 0]);
    client.session.open(&some_headers(), FIN).unwrap();
    client.output();
    client.reply(3, true); // its block refers back to the one that was dropped
    assert_eq!(client.events(), ["Reply 3 fin"]);
}

#[test]
fn rst_stream_overtakes_the_data_of_its_stream() {
    let mut server = Script::server();
    server.syn_fin(1);
    server.session.reply(id(1), &some_headers(), false);
    server.output();
    server.session.send_data(id(1), bytes(40_000), true);
    assert_eq!(server.output_frames(1), ["DATA 1 16384"]);
    server.session.reset(id(1), RstStatus::INTERNAL_ERROR);
    assert_eq!(server.output(), ["RST_STREAM 1 INTERNAL_ERROR"]);
}

#[test]
fn a_stream_reset_before_it_was_written_is_never_sent() {
    let mut client = Script::client();
    client.session.open(&some_headers(), FIN).unwrap();
    client.session.open(&some_headers(), FIN).unwrap();
    client.session.reset(id(1), RstStatus::CANCEL);
    let output = client.output();
    assert_eq!(output, ["SYN_STREAM 3 fin", "WINDOW_UPDATE 3 983040"]);
}

#[test]
fn a_streams_own_frames_keep_their_order() {
    let mut server = Script::server();
    server.syn(1);
    assert!(
        !server.session.send_data(id(1), bytes(1), false),
        "DATA before SYN_REPLY"
    );
    assert!(
        !server.session.headers(id(1), &some_headers(), false),
        "HEADERS before SYN_REPLY"
    );
    assert!(server.session.reply(id(1), &some_headers(), false));
    assert!(
        !server.session.reply(id(1), &some_headers(), false),
        "SYN_REPLY twice"
    );
    assert!(server.session.send_data(id(1), bytes(20_000), false));
    assert!(server.session.headers(id(1), &some_headers(), false));
    assert!(server.session.send_data(id(1), bytes(10), false));
    assert!(server.session.send_data(id(1), bytes(10), true));
    assert!(
        !server.session.send_data(id(1), bytes(1), false),
        "DATA after FIN"
    );
    assert_eq!(
        server.output(),
        [
            "SYN_REPLY 1",
            "DATA 1 16384",
            "DATA 1 3616",
            "HEADERS 1",
            "DATA 1 20 fin"
        ]
    );
}

#[test]
fn fin_joins_queued_data_or_is_an_empty_frame() {
    let mut client = Script::client();
    client
        .session
        .open(&some_headers(), StreamOptions::default())
        .unwrap();
    client.session.send_data(id(1), bytes(5), false);
    client.session.send_data(id(1), Bytes::new(), true);
    let output = client.output();
    assert_eq!(output[0], "SYN_STREAM 1");
    assert_eq!(output[2..], ["DATA 1 5 fin"]);
    client
        .session
        .open(&some_headers(), StreamOptions::default())
        .unwrap();
    client.output();
    client.session.send_data(id(3), Bytes::new(), false);
    assert_eq!(client.output(), [""; 0]);
    client.session.send_data(id(3), Bytes::new(), true);
    assert_eq!(client.output(), ["DATA 3 0 fin"]);
}

#[test]
fn the_recipient_of_a_one_way_stream_sends_nothing_on_it() {
    let mut server = Script::server();
    let syn = SynStream {
        unidirectional: true,
        ..server.syn_frame(1)
    };
    server.send(&Frame::SynStream(syn));
    assert_eq!(server.events(), ["Opened 1 one-way"]);
    assert!(!server.session.reply(id(1), &some_headers(), false));
    assert!(!server.session.send_data(id(1), bytes(1), true));
    server.data(1, 3, true);
    assert_eq!(server.events(), ["Data 1 3 fin"]);
    server.session.consume(id(1), 3);
    assert_eq!(server.session.active_streams(), (0, 0));
}

#[test]
fn a_one_way_stream_that_ends_at_once_is_removed() {
    let mut server = Script::server();
    let one_way = StreamOptions {
        unidirectional: true,
        fin: true,
        ..StreamOptions::default()
    };
    server.session.open(&some_headers(), one_way).unwrap();
    assert_eq!(server.output(), ["SYN_STREAM 2 fin"]);
    assert_eq!(server.session.active_streams(), (0, 0));
}

#[test]
fn a_unidirectional_request_with_fin_is_a_stream_error() {
    let mut server = Script::server();
    let syn = SynStream {
        unidirectional: true,
        fin: true,
        ..server.syn_frame(1)
    };
    server.send(&Frame::SynStream(syn));
    assert_eq!(server.events(), [""; 0]);
    assert_eq!(server.output(), ["RST_STREAM 1 PROTOCOL_ERROR"]);
}

#[test]
fn one_headers_frame_past_the_limit_of_a_stream_is_a_stream_error() {
    let mut server = Script::server();
    server.syn(1);
    for _ in 0..16 {
        server.headers(1, false);
    }
    assert_eq!(server.output(), [""; 0]);
    server.headers(1, false);
    assert_eq!(server.output(), ["RST_STREAM 1 PROTOCOL_ERROR"]);
}

#[test]
fn a_malformed_reply_resets_only_its_stream() {
    let mut client = Script::client();
    client.session.open(&some_headers(), FIN).unwrap();
    client.output();
    let block = client.bad_block();
    client.send(&Frame::SynReply(SynReply {
        stream_id: id(1),
        fin: true,
        block,
    }));
    assert_eq!(client.output(), ["RST_STREAM 1 PROTOCOL_ERROR"]);
    assert_eq!(client.events(), ["Reset 1 by us: PROTOCOL_ERROR"]);
    client.session.open(&some_headers(), FIN).unwrap();
    client.output();
    client.reply(3, true);
    assert_eq!(client.events(), ["Reply 3 fin"]);
}

/// Found by the fuzz target `client_session`: FIN on a malformed block closed the stream without releasing its slot, so that the
/// session drained for ever.
#[test]
fn a_stream_with_a_malformed_block_no_longer_counts() {
    let mut client = Script::client();
    client.session.open(&some_headers(), FIN).unwrap();
    client.output();
    let block = client.bad_block();
    let (stream_id, fin) = (id(1), true);
    client.send(&Frame::SynReply(SynReply {
        stream_id,
        fin,
        block,
    }));
    assert_eq!(client.session.active_streams(), (0, 0));

    let mut server = Script::server();
    server.syn(1);
    server.session.reply(id(1), &some_headers(), true);
    server.output();
    let block = server.bad_block();
    server.send(&Frame::Headers(Headers {
        stream_id,
        fin,
        block,
    }));
    assert_eq!(server.session.active_streams(), (0, 0));
}

#[test]
fn a_block_over_the_limits_is_reset_with_the_status_of_its_version() {
    for (version, status) in [
        (Version::V2, "PROTOCOL_ERROR"),
        (Version::V31, "FRAME_TOO_LARGE"),
    ] {
        let mut server = Script::version(Role::Server, version);
        let mut headers = HeaderBlock::new();
        for n in 0..5_000 {
            headers.push(format!("n{n}"), "v");
        }
        let block = server.block(&headers);
        server.syn_with(1, block);
        assert_eq!(
            server.output(),
            [format!("RST_STREAM 1 {status}")],
            "{version}"
        );
        server.syn_fin(3);
        assert_eq!(server.events(), ["Opened 3 fin"], "{version}");
    }
}

#[test]
fn streams_past_the_peers_limit_wait_for_can_open() {
    let mut client = Script::client();
    client.setting(spdy_frame::frame::SettingId::MAX_CONCURRENT_STREAMS, 1);
    client.session.open(&some_headers(), FIN).unwrap();
    let full = client.session.open(&some_headers(), FIN);
    assert_eq!(full, Err(OpenError::Full { limit: 1 }));
    client.output();
    assert_eq!(client.events(), [""; 0]);
    client.reply(1, true);
    assert_eq!(client.events(), ["Reply 1 fin", "CanOpen"]);
    assert_eq!(client.session.open(&some_headers(), FIN), Ok(id(3)));
}

#[test]
fn a_hundred_streams_are_assumed_before_settings_and_one_more_must_wait() {
    let mut client = Script::client();
    for _ in 0..100 {
        client.session.open(&some_headers(), FIN).unwrap();
    }
    let full = client.session.open(&some_headers(), FIN);
    assert_eq!(full, Err(OpenError::Full { limit: 100 }));
    client.setting(spdy_frame::frame::SettingId::MAX_CONCURRENT_STREAMS, 101);
    assert_eq!(client.events(), ["CanOpen"]);
}
