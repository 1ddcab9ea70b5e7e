//! Order of DATA by stream priority (SPDY/3.1 §2.3.3).

use spdy_frame::frame::{Frame, SynStream};
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};

use crate::support::{Script, bytes, id, some_headers};

/// A server without windows in the way, with a stream for each priority, all answered.
fn server_with_streams(guard: u32, priorities: &[u8]) -> Script {
    let mut config = Config::new(Role::Server, Version::V31);
    (config.flow_control, config.starvation_guard) = (false, guard);
    let mut server = Script::new(config);
    for (n, &priority) in (0u32..).zip(priorities) {
        let syn = SynStream {
            priority: Priority::new(priority),
            fin: true,
            ..server.syn_frame(2 * n + 1)
        };
        server.send(&Frame::SynStream(syn));
        server.session.reply(id(2 * n + 1), &some_headers(), false);
    }
    server.output();
    server
}

/// The streams of DATA frames, in the order of the wire.
fn turns(server: &mut Script, frames: usize) -> Vec<u32> {
    let stream = |line: &String| line.split(' ').nth(1).unwrap().parse().unwrap();
    server.output_frames(frames).iter().map(stream).collect()
}

#[test]
fn the_most_urgent_stream_is_first_and_equal_ones_take_turns() {
    let mut server = server_with_streams(0, &[7, 3, 0, 3]);
    for stream in [1, 3, 5, 7] {
        server
            .session
            .send_data(id(stream), bytes(3 * 16_384), true);
    }
    assert_eq!(turns(&mut server, 12), [5, 5, 5, 3, 7, 3, 7, 3, 7, 1, 1, 1]);
}

#[test]
fn the_least_urgent_stream_is_never_starved() {
    let mut server = server_with_streams(16, &[7, 0]);
    server.session.send_data(id(1), bytes(4 * 16_384), true);
    server.session.send_data(id(3), bytes(100 * 16_384), true);
    let turns = turns(&mut server, 64);
    assert_eq!(turns.iter().filter(|&&stream| stream == 1).count(), 4);
    assert_eq!(turns.iter().position(|&stream| stream == 1), Some(15));
}

#[test]
fn an_urgent_stream_that_comes_later_overtakes() {
    let mut server = server_with_streams(0, &[7, 0]);
    server.session.send_data(id(1), bytes(3 * 16_384), true);
    assert_eq!(turns(&mut server, 1), [1]);
    server.session.send_data(id(3), bytes(16_384), true);
    assert_eq!(turns(&mut server, 3), [3, 1, 1]);
}

#[test]
fn header_blocks_go_before_data_of_any_priority() {
    let mut server = server_with_streams(16, &[0]);
    server.session.send_data(id(1), bytes(100), true);
    server.syn_fin(3);
    server.session.reply(id(3), &some_headers(), true);
    assert_eq!(server.output(), ["SYN_REPLY 3 fin", "DATA 1 100 fin"]);
}

#[test]
fn an_urgent_stream_without_credit_does_not_block_the_others() {
    let mut server = Script::server();
    for (stream, priority) in [(1, 0), (3, 7)] {
        let syn = SynStream {
            priority: Priority::new(priority),
            fin: true,
            ..server.syn_frame(stream)
        };
        server.send(&Frame::SynStream(syn));
        server.session.reply(id(stream), &some_headers(), false);
    }
    server.window_update(0, 1_000_000);
    server.session.send_data(id(1), bytes(100_000), true);
    server.output();
    server.session.send_data(id(3), bytes(100), true);
    assert_eq!(server.output(), ["DATA 3 100 fin"]);
    server.window_update(1, 1_000_000);
    assert_eq!(
        server.output(),
        ["DATA 1 16384", "DATA 1 16384", "DATA 1 1696 fin"]
    );
}

#[test]
fn data_frames_have_the_configured_size_and_join_pieces() {
    let mut config = Config::new(Role::Server, Version::V31);
    config.data_frame_bytes = 4_096;
    let mut server = Script::new(config);
    server.syn_fin(1);
    server.session.reply(id(1), &some_headers(), false);
    server.output();
    for _ in 0..5 {
        server.session.send_data(id(1), bytes(1_000), false);
    }
    server.session.send_data(id(1), bytes(0), true);
    assert_eq!(server.output(), ["DATA 1 4096", "DATA 1 904 fin"]);
}

#[test]
fn the_owner_may_set_priorities_before_and_after_queueing() {
    let mut server = server_with_streams(0, &[0, 0, 0]);
    server.session.prioritise(id(1), Priority::new(4));
    for stream in [1, 3, 5] {
        let data = bytes(40_000);
        assert!(server.session.send_data(id(stream), data, true));
    }
    assert_eq!(turns(&mut server, 2), [3, 5]);
    server.session.prioritise(id(3), Priority::new(2));
    assert_eq!(turns(&mut server, 10), [5, 5, 3, 3, 1, 1, 1]);
}

#[test]
fn restored_priorities_apply_to_queued_streams() {
    let mut server = server_with_streams(0, &[1, 1, 0, 3]);
    for (stream, level) in [(1, 4), (3, 2), (5, 5)] {
        let priority = Priority::new(level);
        server.session.prioritise(id(stream), priority);
    }
    for stream in [1, 3, 7] {
        let data = bytes(40_000);
        assert!(server.session.send_data(id(stream), data, true));
    }
    assert_eq!(turns(&mut server, 1), [3]);
    server.session.restore_priorities();
    assert_eq!(turns(&mut server, 1), [1]);
    assert!(server.session.send_data(id(5), bytes(40_000), true));
    assert_eq!(turns(&mut server, 10), [5, 5, 5, 3, 1, 3, 1, 7, 7, 7]);
}
