//! Windows that grow with the speed of their reader, and the limits of that growth.

use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_session::config::Role;

use crate::support::{Script, WINDOW, id, ms};

/// Sum of the WINDOW_UPDATE deltas for `stream` in `lines`, bytes.
fn credit(lines: &[String], stream: u32) -> usize {
    let prefix = format!("WINDOW_UPDATE {stream} ");
    let deltas = lines.iter().filter_map(|line| line.strip_prefix(&prefix));
    deltas.map(|delta| delta.parse::<usize>().unwrap()).sum()
}

/// `bytes` come on `stream` by kilobytes, are consumed at once, and take `span`; the credit that the stream got.
fn read_at_pace(server: &mut Script, stream: u32, bytes: usize, span: u64) -> usize {
    let pieces = bytes / 1024;
    let mut had = 0;
    let start = server.now;
    for piece in 1..=pieces {
        server.now = start + ms(span * piece as u64 / pieces as u64);
        server.data(stream, 1024, false);
        server.session.consume(id(stream), 1024);
        had += credit(&server.output(), stream);
    }
    had
}

#[test]
fn a_stream_window_doubles_with_each_window_that_is_read_within_a_second() {
    for version in [Version::V3, Version::V31] {
        let mut server = Script::version(Role::Server, version);
        server.syn(1);
        let (mut window, mut credit_left) = (WINDOW, WINDOW);
        while window < 1024 * 1024 {
            credit_left += read_at_pace(&mut server, 1, window, 1_000) - window;
            window *= 2;
            assert_eq!(credit_left, window, "{version}");
        }
        credit_left += read_at_pace(&mut server, 1, 4 * window, 1_000) - 4 * window;
        assert_eq!(
            credit_left, window,
            "{version}: the window has its maximum size"
        );
        // All of it may come, and one byte more may not.
        (0..window / 16_384).for_each(|_| server.data(1, 16_384, false));
        assert_eq!(credit(&server.output(), 1), 0);
        server.data(1, 1, false);
        let output = server.output();
        let reset = output.last().map(String::as_str);
        assert_eq!(reset, Some("RST_STREAM 1 FLOW_CONTROL_ERROR"));
    }
}

#[test]
fn a_slow_reader_gets_no_window_growth() {
    let mut server = Script::server();
    server.syn(1);
    let had = read_at_pace(&mut server, 1, 8 * WINDOW, 8 * 1_100);
    assert_eq!(had, 8 * WINDOW);
    server.syn(3);
    for _ in 0..4 {
        server.data(3, WINDOW, false);
        server.session.discard(id(3), WINDOW);
        assert_eq!(credit(&server.output(), 3), WINDOW);
    }
}

/// Reads 8 MiB of `stream`, which has `credit_left`, a window in `pace`; the most credit that it had from its fifth MiB on.
fn widest(server: &mut Script, stream: u32, mut credit_left: usize, pace: u64) -> usize {
    let mut widest = 0;
    for nth in 0..128 {
        credit_left += read_at_pace(server, stream, WINDOW, pace);
        credit_left -= WINDOW;
        if nth >= 64 {
            widest = widest.max(credit_left);
        }
    }
    widest
}

#[test]
fn the_window_growth_of_a_session_is_limited_in_total() {
    const GROWN_WINDOW: usize = 1024 * 1024;
    let mut server = Script::server();
    let mut sizes = Vec::new();
    for nth in 0..6 {
        server.syn(2 * nth + 1);
        sizes.push(widest(&mut server, 2 * nth + 1, WINDOW, 50));
    }
    // 4 MiB beyond the first windows: four times 960 KiB, and the rest.
    let rest = WINDOW + 256 * 1024;
    assert_eq!(
        sizes,
        [
            GROWN_WINDOW,
            GROWN_WINDOW,
            GROWN_WINDOW,
            GROWN_WINDOW,
            rest,
            WINDOW
        ]
    );
    // A stream that ends leaves its growth to another.
    server.session.reset(id(1), RstStatus::CANCEL);
    server.output();
    server.syn(13);
    assert_eq!(widest(&mut server, 13, WINDOW, 50), GROWN_WINDOW);
}

#[test]
fn the_session_window_grows_with_its_open_streams() {
    const SESSION: usize = 1024 * 1024;
    let mut server = Script::server();
    server.syn(1);
    server.syn(3);
    let mut room = SESSION;
    let mut widest = |server: &mut Script, stream, pace| {
        let rooms = (0..128).map(|_| {
            server.now += ms(pace);
            server.data(stream, WINDOW, false);
            server.session.consume(id(stream), WINDOW);
            room += credit(&server.output(), 0);
            room -= WINDOW;
            room
        });
        rooms.skip(64).max()
    };
    let grown_window = SESSION + SESSION - WINDOW;
    assert_eq!(widest(&mut server, 1, 50), Some(grown_window));
    server.session.reset(id(1), RstStatus::CANCEL);
    // The first window arrives, and is consumed, at once.
    assert_eq!(widest(&mut server, 3, 1_100), Some(SESSION + WINDOW));
}
