//! Every limit of the machine: a peer that goes exactly as far is accepted; one step further is counted by name, and has the consequence
//! that `docs/reference/limits-spdy.md` states. A limit without a case here fails.

use bytes::Bytes;
use spdy_frame::frame::{Frame, Headers, Setting, SettingId, Settings};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::limit::Limit;
use spdy_session::session::StreamOptions;

use crate::support::{Script, bytes, id, ms, some_headers};

/// The consequence of exceeding a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LimitEffect {
    /// GOAWAY with an error; the session ends.
    SessionLost,
    /// The session ends in order.
    SessionOver,
    /// RST_STREAM for an open stream.
    StreamLost,
    /// RST_STREAM for a stream that was never opened.
    StreamRefused,
    /// Reading stops.
    ReadingStops,
    /// The excess is ignored.
    Ignored,
}

fn server(change: impl FnOnce(&mut Config)) -> Script {
    let mut config = Config::new(Role::Server, Version::V31);
    change(&mut config);
    Script::new(config)
}

/// A header block that is `plain` bytes long before compression.
fn block_of(plain: usize) -> HeaderBlock {
    let mut headers = HeaderBlock::new();
    headers.push("a", vec![b'x'; 20_000]);
    headers.push("b", vec![b'x'; 20_000]);
    let rest = plain - headers.plain_len(Version::V31) - 9;
    headers.push("c", vec![b'x'; rest]);
    assert_eq!(headers.plain_len(Version::V31), plain);
    headers
}

fn send_request(script: &mut Script, stream: u32, headers: &HeaderBlock) {
    let block = script.block(headers);
    script.syn_with(stream, block);
}

fn pair(name: usize, value: usize) -> HeaderBlock {
    let mut headers = HeaderBlock::new();
    headers.push(vec![b'n'; name], vec![b'v'; value]);
    headers
}

/// A server that has answered stream 1 and discards the rest of its request.
fn discarding(change: impl FnOnce(&mut Config)) -> Script {
    let mut script = server(change);
    script.syn(1);
    script.session.reply(id(1), &some_headers(), true);
    script.output();
    script.session.discard(id(1), 0);
    script
}

/// Takes a peer to `limit`, or one step past it; `None` where another crate keeps it.
fn go(limit: Limit, past: bool) -> Option<(Script, LimitEffect)> {
    let step = u32::from(past);
    let extra = usize::from(past);
    let tick = u64::from(past);
    Some(match limit {
        Limit::ConcurrentStreams => {
            let mut script = server(|config| config.max_concurrent_streams = 3);
            (0..3 + step).for_each(|n| script.syn(2 * n + 1));
            (script, LimitEffect::StreamRefused)
        }
        Limit::StreamWindow => {
            let mut script = Script::server();
            script.syn(1);
            script.data(1, 65_536 + extra, false);
            (script, LimitEffect::StreamLost)
        }
        Limit::SessionWindow => {
            let mut script = server(|config| config.session_window_bytes = Some(65_536));
            script.syn(1);
            script.syn(3);
            script.data(1, 40_000, false);
            script.data(3, 25_536 + extra, false);
            (script, LimitEffect::SessionLost)
        }
        Limit::EndedStreamsInWork
        | Limit::UntakenStreams
        | Limit::UnclaimedPushes
        | Limit::UnclaimedBytes
        | Limit::UnclaimedTimeout => return None,
        Limit::DiscardedBytes => {
            let mut script = discarding(|config| config.discarded_bytes = 1000);
            script.data(1, 1000 + extra, false);
            script.session.discard(id(1), 1000 + extra);
            (script, LimitEffect::StreamLost)
        }
        Limit::EventQueue => {
            let mut script = server(|config| config.event_queue = 10);
            script.syn(1);
            (0..9 + extra).for_each(|_| script.data(1, 1, false));
            (script, LimitEffect::ReadingStops)
        }
        Limit::ControlQueue => {
            let mut script = server(|config| config.control_queue_frames = 10);
            (0..10 + step).for_each(|n| script.data(2 * n + 1, 1, false));
            (script, LimitEffect::ReadingStops)
        }
        Limit::PingEchoes => {
            let mut script = Script::server();
            (0..200 + step).for_each(|n| script.ping(2 * n + 1));
            (script, LimitEffect::SessionLost)
        }
        Limit::PingFrames => {
            let mut script = server(|config| config.floods.ping_frames = 100);
            (0..100 + step).for_each(|n| script.ping(2 * n + 1));
            (script, LimitEffect::SessionLost)
        }
        Limit::ControlPayload => {
            let mut script = Script::server();
            let head = [0x80, 3, 0, 8, 0, 2, 0, extra as u8]; // HEADERS of 128 KiB, or a byte more
            script.session.handle_input(script.now, &head);
            (script, LimitEffect::SessionLost)
        }
        Limit::SettingsEntries => {
            let mut script = Script::server();
            let entries = (0..64 + step).map(|n| Setting::new(SettingId(100 + n), 0));
            script.send(&Frame::Settings(Settings {
                entries: entries.collect(),
                ..Settings::default()
            }));
            (script, LimitEffect::Ignored)
        }
        Limit::BlockPlainBytes => {
            let mut script = Script::server();
            send_request(&mut script, 1, &block_of(64 * 1024 + extra));
            (script, LimitEffect::StreamRefused)
        }
        Limit::BlockInflatedBytes => {
            let mut script = Script::server();
            send_request(&mut script, 1, &pair(1, 1024 * 1024 - 13 + extra));
            (script, LimitEffect::SessionLost)
        }
        Limit::BlockPairs => {
            let mut script = Script::server();
            let headers: HeaderBlock = (0..256 + extra)
                .map(|n| (format!("n{n}"), Bytes::from_static(b"v")))
                .collect();
            send_request(&mut script, 1, &headers);
            (script, LimitEffect::StreamRefused)
        }
        Limit::BlockNameBytes => {
            let mut script = Script::server();
            send_request(&mut script, 1, &pair(256 + extra, 1));
            (script, LimitEffect::StreamRefused)
        }
        Limit::BlockValueBytes => {
            let mut script = Script::server();
            send_request(&mut script, 1, &pair(1, 32 * 1024 + extra));
            (script, LimitEffect::StreamRefused)
        }
        Limit::HeadersPerStream => {
            let mut script = Script::server();
            script.syn(1);
            (0..16 + step).for_each(|_| script.headers(1, false));
            (script, LimitEffect::StreamLost)
        }
        Limit::HeaderBytesPerStream => {
            let block_len = some_headers().plain_len(Version::V31);
            let mut script = server(|config| config.header_bytes_per_stream = 3 * block_len);
            script.syn(1);
            (0..2 + step).for_each(|_| script.headers(1, false));
            (script, LimitEffect::StreamLost)
        }
        Limit::EmptyFrames => {
            let mut script = Script::server();
            script.syn(1);
            (0..1000 + step).for_each(|_| script.data(1, 0, false));
            (script, LimitEffect::SessionLost)
        }
        Limit::SettingsFrames => {
            let mut script = Script::server();
            (0..100 + step).for_each(|n| script.setting(SettingId::INITIAL_WINDOW_SIZE, n));
            (script, LimitEffect::SessionLost)
        }
        Limit::RefusedStreams => {
            let mut script = server(|config| config.max_concurrent_streams = 0);
            (0..1000 + step).for_each(|n| script.syn(2 * n + 1));
            (script, LimitEffect::SessionLost)
        }
        Limit::AbortedStreams => {
            let mut script = Script::server();
            for n in 0..100 + step {
                script.syn_fin(2 * n + 1);
                script.rst(2 * n + 1, RstStatus::CANCEL);
            }
            (script, LimitEffect::SessionLost)
        }
        Limit::StrayFrames => {
            let mut script = Script::server();
            (0..1000 + step).for_each(|n| script.data(2 * n + 1, 1, false));
            (script, LimitEffect::SessionLost)
        }
        Limit::RefusedBlocks => {
            let mut script = Script::server();
            for n in 0..100 + step {
                let block = script.bad_block();
                script.syn_with(2 * n + 1, block);
            }
            (script, LimitEffect::SessionLost)
        }
        Limit::InflatedBytes => {
            let block_len = some_headers().plain_len(Version::V31) as u64;
            let mut script = server(|config| config.floods.inflated_bytes = 3 * block_len);
            (0..3 + step).for_each(|n| script.syn(2 * n + 1));
            (script, LimitEffect::SessionLost)
        }
        Limit::FrameTimeout => {
            let mut script = Script::server();
            script.session.handle_input(script.now, &[0x80, 3, 0]);
            script.pass(ms(29_999 + tick));
            (script, LimitEffect::SessionLost)
        }
        Limit::WriteTimeout => {
            let mut script = Script::server();
            script.syn_fin(1);
            script.session.reply(id(1), &some_headers(), false);
            script.session.send_data(id(1), bytes(10), true);
            script.pass(ms(59_999 + tick));
            (script, LimitEffect::SessionLost)
        }
        Limit::StreamWriteTimeout => {
            let mut script = Script::server();
            script.setting(SettingId::INITIAL_WINDOW_SIZE, 0);
            script.syn_fin(1);
            script.session.reply(id(1), &some_headers(), false);
            script.session.send_data(id(1), bytes(10), true);
            script.output();
            script.pass(ms(59_999 + tick));
            (script, LimitEffect::StreamLost)
        }
        Limit::DiscardTimeout => {
            let mut script = discarding(|_| {});
            script.pass(ms(59_999 + tick));
            (script, LimitEffect::StreamLost)
        }
        Limit::IdleTimeout => {
            let mut script = Script::server();
            script.pass(ms(179_999 + tick));
            (script, LimitEffect::SessionOver)
        }
        Limit::SilenceTimeout => {
            let mut script = server(|config| config.silence_timeout = Some(ms(5_000)));
            script.syn(1);
            script.pass(ms(4_999 + tick));
            (script, LimitEffect::SessionLost)
        }
        Limit::KeepaliveTimeout => {
            let mut script = server(|config| {
                config.keepalive_interval = Some(ms(5_000));
                config.keepalive_timeout = ms(2_000);
            });
            script.pass(ms(5_000));
            script.output();
            script.pass(ms(1_999 + tick));
            (script, LimitEffect::SessionLost)
        }
        Limit::DrainTimeout => {
            let mut script = server(|config| config.drain_timeout = Some(ms(5_000)));
            script.syn(1);
            script.session.shutdown(script.now);
            script.pass(ms(4_999 + tick));
            (script, LimitEffect::SessionLost)
        }
        Limit::ControlQueueTimeout => {
            let mut script = server(|config| config.control_queue_frames = 10);
            (0..11).for_each(|n| script.data(2 * n + 1, 1, false));
            script.pass(ms(29_999 + tick));
            (script, LimitEffect::SessionLost)
        }
        other => panic!("no test case for {other}"),
    })
}

/// True if `effect` happened.
fn happened(effect: LimitEffect, script: &mut Script) -> bool {
    let reads = script.session.accepts_input();
    let events = script.events();
    let output = script.output();
    let over = events.last().is_some_and(|last| last.starts_with("Closed"));
    let lost = events
        .last()
        .is_some_and(|last| last.starts_with("Closed:"));
    let reset = events.iter().any(|line| line.contains("by us"));
    let refusal = output.iter().any(|line| line.starts_with("RST_STREAM"));
    match effect {
        LimitEffect::SessionLost => lost,
        LimitEffect::SessionOver => over && !lost,
        LimitEffect::StreamLost => reset && !over,
        LimitEffect::StreamRefused => refusal && !reset && !over,
        LimitEffect::ReadingStops => !reads && !over,
        LimitEffect::Ignored => reads && !refusal && !reset && !over,
    }
}

#[test]
fn every_limit_is_met_one_step_past_it_and_not_at_it() {
    for &limit in Limit::ALL {
        let Some((mut script, effect)) = go(limit, false) else {
            continue;
        };
        let hits = script.session.stats().limits;
        assert_eq!(hits.of(limit), 0, "at {limit}");
        if effect != LimitEffect::Ignored && limit != Limit::ControlQueueTimeout {
            assert!(!happened(effect, &mut script), "{effect:?} at {limit}");
        }
        let (mut script, effect) = go(limit, true).expect("the run succeeds as before");
        let hits = script.session.stats().limits;
        assert_eq!(hits.of(limit), 1, "past {limit}: {hits}");
        assert!(happened(effect, &mut script), "{effect:?} past {limit}");
    }
}

#[test]
fn a_session_error_names_its_limit() {
    let mut named = 0;
    for &limit in Limit::ALL {
        let Some((mut script, LimitEffect::SessionLost)) = go(limit, true) else {
            continue;
        };
        let error =
            std::iter::from_fn(|| script.session.poll_event()).find_map(|event| match event {
                spdy_session::event::Event::Closed { error } => error,
                _ => None,
            });
        assert_eq!(error.and_then(|error| error.limit()), Some(limit));
        named += 1;
    }
    assert!(named > 15, "{named} sessions ended");
}

/// Regression: if the owner was a few events late, the timeout of the next incomplete frame did not run, depending on how the bytes
/// were split.
#[test]
fn frame_timeout_applies_with_queued_events() {
    let mut script = server(|config| config.event_queue = 10);
    script.syn(1);
    (0..20).for_each(|_| script.data(1, 1, false));
    script.session.handle_input(script.now, &[0x80, 3, 0]);
    assert!(!script.session.accepts_input());
    let timeout = script.session.poll_timeout();
    assert_eq!(timeout, Some(script.now + ms(30_000)));
}

/// A window that opens by a byte now and then held a stream, its buffer and its handler for ever.
#[test]
fn a_kilobyte_of_credit_is_progress_and_a_byte_is_not() {
    for (credit, lives) in [(1, false), (1024, true)] {
        let mut script = Script::server();
        script.setting(SettingId::INITIAL_WINDOW_SIZE, 0);
        script.syn_fin(1);
        script.session.reply(id(1), &some_headers(), false);
        script.session.send_data(id(1), bytes(60_000), true);
        for _ in 0..4 {
            script.output();
            script.pass(ms(25_000));
            script.window_update(1, credit);
            script.pass(ms(50)); // small DATA waits for so long
        }
        let limits = script.session.stats().limits;
        assert_eq!(limits.of(Limit::StreamWriteTimeout) == 0, lives, "{credit}");
    }
}

/// Regression: with `small_data_bytes` 0, credit that left the window below zero counted as progress.
#[test]
fn credit_that_opens_no_window_is_no_progress() {
    for small in [0, 1, 1024] {
        let mut script = server(|config| config.small_data_bytes = small);
        script.syn_fin(1);
        script.session.reply(id(1), &some_headers(), false);
        script.session.send_data(id(1), bytes(65_536), false);
        script.output();
        script.session.send_data(id(1), bytes(10), true);
        script.setting(SettingId::INITIAL_WINDOW_SIZE, 0); // 65,536 bytes below zero
        for _ in 0..3 {
            script.window_update(1, 1000);
            script.pass(ms(20_000));
        }
        assert_eq!(script.output(), ["RST_STREAM 1 CANCEL"], "{small}");
        let limits = script.session.stats().limits;
        assert_eq!(limits.of(Limit::StreamWriteTimeout), 1, "{small}: {limits}");
    }
}

/// A stream without credit is reset alone. Regression: the whole session ended with it.
#[test]
fn a_closed_stream_window_resets_only_its_stream() {
    let mut script = Script::server();
    script.setting(SettingId::INITIAL_WINDOW_SIZE, 0);
    script.syn_fin(1);
    script.session.reply(id(1), &some_headers(), false);
    script.session.send_data(id(1), bytes(10), true);
    script.syn(3);
    script.output();
    script.pass(ms(60_000));
    assert_eq!(script.output(), ["RST_STREAM 1 CANCEL"]);
    script.data(3, 1, true);
    assert!(!script.session.is_closed());
}

/// Regression: if streams may send fewer bytes than count as progress, the session's timeout continued for the second stream from
/// the time when the first began to wait.
#[test]
fn stalled_streams_are_reset_and_the_session_continues() {
    let mut script = Script::server();
    script.setting(SettingId::INITIAL_WINDOW_SIZE, 500);
    for stream in [1, 3] {
        script.syn_fin(stream);
        script.session.reply(id(stream), &some_headers(), false);
        script.session.send_data(id(stream), bytes(5_000), true);
        script.output();
        script.pass(ms(50)); // small DATA waits for so long
        let output = script.output();
        assert_eq!(output, [format!("DATA {stream} 500")]);
        script.pass(ms(30_000));
    }
    for stream in [1, 3] {
        assert_eq!(script.output(), [format!("RST_STREAM {stream} CANCEL")]);
        script.pass(ms(30_050));
    }
    assert!(!script.session.is_closed());
}

/// The upload stalls while the response continues, instead of ending the response.
#[test]
fn an_unread_upload_waits_for_the_response() {
    let mut script = server(|config| config.discarded_bytes = 100_000);
    script.syn(1);
    script.session.reply(id(1), &some_headers(), false);
    script.output();
    let mut sent_bytes = 0;
    let mut granted = 65_536;
    while granted > sent_bytes {
        let piece = (granted - sent_bytes).min(10_000);
        script.data(1, piece, false);
        script.session.discard(id(1), piece);
        sent_bytes += piece;
        for line in script.output() {
            if let Some(delta) = line.strip_prefix("WINDOW_UPDATE 1 ") {
                granted += delta.parse::<usize>().expect("a number");
            }
        }
    }
    assert!((100_000..200_000).contains(&sent_bytes), "{sent_bytes}");
    script.session.send_data(id(1), bytes(10), true);
    assert_eq!(script.output(), ["DATA 1 10 fin", "RST_STREAM 1 CANCEL"]);
}

#[test]
fn streams_refused_by_the_owner_are_counted() {
    let mut script = Script::server();
    for n in 0..1001 {
        script.syn(2 * n + 1);
        script
            .session
            .reset(id(2 * n + 1), RstStatus::REFUSED_STREAM);
        script.output();
    }
    let limits = script.session.stats().limits;
    assert_eq!(limits.of(Limit::RefusedStreams), 1);
    assert!(script.session.is_closed());
}

/// Rejected HEADERS end their stream, so each attempt needs a new stream: they count like other rejected blocks.
#[test]
fn refused_blocks_of_every_frame_type_count() {
    let mut script = Script::server();
    for n in 0..51 {
        let stream = 4 * n + 1;
        script.syn(stream);
        script.session.reply(id(stream), &some_headers(), true);
        script.output();
        let block = script.bad_block();
        script.send(&Frame::Headers(Headers {
            stream_id: id(stream),
            fin: false,
            block,
        }));
        let block = script.bad_block();
        script.syn_with(stream + 2, block);
        script.output();
    }
    let limits = script.session.stats().limits;
    assert_eq!(limits.of(Limit::RefusedBlocks), 1, "{limits}");
}

/// Regression: a server that gave an upload no credit blocked the upload, and the reader of its response, for ever.
#[test]
fn a_stalled_upload_is_reset_with_its_cause() {
    for (window, expected) in [
        // the stream's own window
        (0, ["Reset 1 by us: stalled for 60s", "Reply 3 fin"]),
        // the session's window: no stream can send DATA
        (1 << 20, ["Reset 1: session lost", "Reset 3: session lost"]),
    ] {
        let mut script = Script::client();
        script.setting(SettingId::INITIAL_WINDOW_SIZE, window);
        script
            .session
            .open(&some_headers(), StreamOptions::default())
            .unwrap();
        let options = StreamOptions {
            fin: true,
            ..StreamOptions::default()
        };
        script.session.open(&some_headers(), options).unwrap();
        script.session.send_data(id(1), bytes(70_000), true);
        script.output();
        script.pass(ms(59_999));
        assert_eq!((script.output(), script.events()), (vec![], vec![]));
        script.pass(ms(1));
        script.output();
        script.reply(3, true);
        let events = script.events();
        assert_eq!(events[..2], expected, "{window}: {events:?}");
    }
}

/// It is no limit on how long an upload takes.
#[test]
fn an_upload_of_a_kilobyte_per_minute_continues() {
    let mut script = Script::client();
    script.setting(SettingId::INITIAL_WINDOW_SIZE, 0);
    script
        .session
        .open(&some_headers(), StreamOptions::default())
        .unwrap();
    script.session.send_data(id(1), bytes(10 * 1024), true);
    for kilobyte in 1..=10 {
        script.output();
        script.pass(ms(59_999));
        script.window_update(1, 1024);
        let fin = if kilobyte == 10 { " fin" } else { "" };
        assert_eq!(script.output(), [format!("DATA 1 1024{fin}")]);
    }
    script.pass(ms(3_600_000));
    assert_eq!((script.output(), script.events()), (vec![], vec![]));
}
