//! The initial SETTINGS, and the effects of received SETTINGS (SPDY/3.1 §2.6.4).

use spdy_frame::frame::{Frame, Setting, SettingId, Settings};
use spdy_frame::version::Version;
use spdy_session::config::{Config, PushPolicy, Role, SettingsTiming};
use spdy_session::error::OpenError;
use spdy_session::session::StreamOptions;

use crate::support::{self, Script, some_headers};

fn greeting(config: Config) -> Vec<String> {
    Script::before_greeting(config).output()
}

#[test]
fn settings_are_first_sorted_then_the_session_window() {
    let client = |version| {
        let mut client = Config::new(Role::Client, version);
        client.settings_window_bytes = None;
        client
    };
    let server = |version| Config::new(Role::Server, version);
    assert_eq!(
        greeting(client(Version::V31)),
        ["SETTINGS 4=0 7=1048576", "WINDOW_UPDATE 0 104792064"]
    );
    assert_eq!(
        greeting(server(Version::V31)),
        ["SETTINGS 4=100", "WINDOW_UPDATE 0 983040"]
    );
    assert_eq!(greeting(client(Version::V3)), ["SETTINGS 4=0 7=1048576"]);
    assert_eq!(
        greeting(server(Version::V2)),
        ["SETTINGS 4=100 7=2147483647"]
    );
}

#[test]
fn a_client_with_push_sends_its_stream_limit() {
    let mut config = Config::new(Role::Client, Version::V3);
    config.push = PushPolicy::Accept;
    assert_eq!(greeting(config), ["SETTINGS 4=100"]);
}

#[test]
fn the_greeting_goes_before_a_request_that_was_opened_at_once() {
    let mut client = Script::before_greeting(Config::new(Role::Client, Version::V31));
    client.open_fin();
    let output = client.output();
    assert_eq!(output[0], "SETTINGS 4=0");
    assert_eq!(output[2], "SYN_STREAM 1 fin");
}

/// Undertow's server uses the values of SETTINGS for its own windows, and over 65,536 bytes grants no upload
/// anything.
#[test]
fn large_client_windows_follow_each_syn_stream() {
    for (window, window_frame, from_v2_pairs) in [
        (10 << 20, "SETTINGS 4=0", Some("WINDOW_UPDATE 1 10420224")),
        (65_536, "SETTINGS 4=0", None),
        (40_000, "SETTINGS 4=0 7=40000", None),
    ] {
        let mut config = Config::new(Role::Client, Version::V3);
        config.initial_window_bytes = window;
        let mut client = Script::before_greeting(config);
        client
            .session
            .open(&some_headers(), StreamOptions::default())
            .unwrap();
        let expected: Vec<_> = [window_frame, "SYN_STREAM 1"]
            .into_iter()
            .chain(from_v2_pairs)
            .collect();
        assert_eq!(client.output(), expected, "{window}");
    }
}

#[test]
fn a_greeting_after_the_peer_waits_for_its_first_frame() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.settings_timing = SettingsTiming::AfterPeer;
    let mut server = Script::before_greeting(config);
    assert_eq!(server.output(), [""; 0]);
    server.syn_fin(1);
    assert_eq!(
        server.output(),
        ["SETTINGS 4=100", "WINDOW_UPDATE 0 983040"]
    );
    server.syn_fin(3);
    assert_eq!(server.output(), [""; 0]);
}

#[test]
fn without_settings_the_default_windows_hold() {
    let mut config = Config::new(Role::Client, Version::V3);
    config.settings_timing = SettingsTiming::Never;
    let mut client = Script::before_greeting(config);
    client.open_fin();
    assert_eq!(client.output(), ["SYN_STREAM 1 fin"]);
    client.reply(1, false);
    client.data(1, 65_536, false);
    client.session.consume(support::id(1), 32_768);
    assert_eq!(client.output(), ["WINDOW_UPDATE 1 32768"]);
}

#[test]
fn a_limit_of_0_opens_and_closes_no_stream() {
    let mut client = Script::client();
    let get = StreamOptions {
        fin: true,
        ..StreamOptions::default()
    };
    client.session.open(&some_headers(), get).unwrap();
    client.setting(SettingId::MAX_CONCURRENT_STREAMS, 0);
    assert_eq!(
        client.session.open(&some_headers(), get),
        Err(OpenError::Full { limit: 0 })
    );
    client.output();
    client.reply(1, true);
    assert_eq!(client.events(), ["Reply 1 fin"]);
}

#[test]
fn persisted_settings_from_a_client_are_ignored() {
    let mut server = Script::server();
    let entry = |id, flags, value| Setting { id, flags, value };
    let entries = vec![
        entry(SettingId::MAX_CONCURRENT_STREAMS, Setting::PERSISTED, 7),
        entry(
            SettingId::INITIAL_WINDOW_SIZE,
            Setting::PERSISTED,
            0x8000_0000,
        ),
    ];
    server.send(&Frame::Settings(Settings {
        entries,
        ..Settings::default()
    }));
    assert_eq!(server.session.max_open_streams(), 100);
    assert_eq!(server.output(), [""; 0]);
}

#[test]
fn unknown_settings_and_hints_change_nothing() {
    for version in Version::ALL {
        let mut server = Script::version(Role::Server, version);
        for setting in [1, 2, 3, 5, 6, 8, 0, 255] {
            server.setting(SettingId(setting), u32::MAX);
        }
        server.syn_fin(1);
        assert_eq!(server.events(), ["Opened 1 fin"], "{version}");
    }
}

#[test]
fn an_initial_window_is_ignored_in_spdy_2() {
    let mut server = Script::version(Role::Server, Version::V2);
    server.setting(SettingId::INITIAL_WINDOW_SIZE, 0x8000_0000);
    server.syn_fin(1);
    server.session.reply(support::id(1), &some_headers(), false);
    server
        .session
        .send_data(support::id(1), support::bytes(10), true);
    assert_eq!(server.output(), ["SYN_REPLY 1", "DATA 1 10 fin"]);
}
