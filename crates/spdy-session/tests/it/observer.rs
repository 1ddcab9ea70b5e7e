//! Frames and counters as an observer gets them.

use std::sync::{Arc, Mutex};

use spdy_frame::frame::Frame;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::observe::{Direction, Observe, ObservedFrame};

use crate::support::{Script, bytes, id, some_headers};

#[derive(Default)]
struct Log(Mutex<Vec<String>>);

impl Observe for Log {
    fn seen(&self, observed: &ObservedFrame<'_>) {
        let way = if observed.direction == Direction::Sent {
            '>'
        } else {
            '<'
        };
        let detail = match observed.frame {
            Frame::Data(data) => format!(
                " {}{}",
                data.payload.len(),
                if data.fin { " fin" } else { "" }
            ),
            _ => observed.headers.map_or(String::new(), |headers| {
                format!(" {} pairs, {} bytes", headers.len(), observed.plain_bytes)
            }),
        };
        self.0
            .lock()
            .unwrap()
            .push(format!("{way} {}{detail}", observed.frame.kind()));
    }
}

#[test]
fn an_observer_sees_every_frame_of_both_directions_with_its_headers() {
    let log = Arc::new(Log::default());
    let mut config = Config::new(Role::Server, Version::V31);
    config.observer = Some(log.clone());
    let mut server = Script::new(config);
    server.syn_fin(1);
    server.ping(1);
    server.session.reply(id(1), &some_headers(), false);
    server.session.send_data(id(1), bytes(3), false);
    server.session.send_data(id(1), bytes(4), true);
    server.output();
    // 4 for the count, twice 4 for a length, 9 letters
    assert_eq!(
        *log.0.lock().unwrap(),
        [
            "> SETTINGS",
            "> WINDOW_UPDATE",
            "< SYN_STREAM 1 pairs, 21 bytes",
            "< PING",
            "> PING",
            "> SYN_REPLY 1 pairs, 21 bytes",
            "> DATA 7 fin"
        ]
    );
}

#[test]
fn counters_match_the_frames() {
    let mut server = Script::server();
    server.syn(1);
    server.data(1, 10, true);
    server.session.reply(id(1), &some_headers(), false);
    server.session.send_data(id(1), bytes(7), true);
    server.output();
    let stats = server.session.stats();
    assert_eq!(
        (
            stats.received_block_plain_bytes,
            stats.sent_block_plain_bytes
        ),
        (21, 21)
    );
    assert!(stats.received_block_wire_bytes > 6 && stats.sent_block_wire_bytes > 6);
    assert_eq!(
        (stats.frames_received.total(), stats.frames_sent.total()),
        (2, 4)
    );
    assert_eq!((stats.received_data_bytes, stats.sent_data_bytes), (10, 7));
    assert_eq!((stats.streams_accepted, stats.streams_opened), (1, 0));
}

#[test]
fn a_data_frame_that_comes_in_pieces_is_one_frame() {
    let mut server = Script::server();
    server.syn(1);
    for piece in [&[0, 0, 0, 1, 0, 0, 0, 4][..], b"a", b"bc", b"d"] {
        server.session.handle_input(server.now, piece);
    }
    assert_eq!(server.session.stats().frames_received.total(), 2);
    assert_eq!(
        server.events(),
        ["Opened 1", "Data 1 1", "Data 1 2", "Data 1 1"]
    );
}
