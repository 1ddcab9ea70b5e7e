//! Ending a stream for a peer that never ends its half: nothing queued is lost, nothing stays open.

use bytes::{Bytes, BytesMut};
use spdy_clock::Instant;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::event::{Event, ResetCause};
use spdy_session::session::{Session, StreamOptions};

const NOW: Instant = Instant::ZERO;
const ID: StreamId = StreamId::new(1);

/// A client and a server between which a stream is open.
fn pair() -> (Session, Session) {
    let mut client = Session::new(Config::new(Role::Client, Version::V31), NOW);
    let mut server = Session::new(Config::new(Role::Server, Version::V31), NOW);
    client
        .open(&HeaderBlock::new(), StreamOptions::default())
        .expect("room");
    deliver(&mut client, &mut server);
    (client, server)
}

/// Delivers all output of `from` to `to`.
fn deliver(from: &mut Session, to: &mut Session) {
    let mut wire = BytesMut::new();
    while from.poll_transmit(NOW, &mut wire) {}
    to.handle_input(NOW, &wire);
}

/// What `session` received on the stream: total DATA, FIN, and the reset.
fn read_events(session: &mut Session) -> (usize, bool, Option<RstStatus>) {
    let mut received = (0, false, None);
    while let Some(event) = session.poll_event() {
        match event {
            Event::Data { id, data, fin } => {
                assert_eq!(received.2, None, "DATA behind RST_STREAM");
                received.0 += data.len();
                received.1 |= fin;
                session.consume(id, data.len());
            }
            Event::Reset {
                cause: ResetCause::ByPeer(status),
                ..
            } => received.2 = Some(status),
            Event::Reply { fin, .. } => received.1 |= fin,
            _ => {}
        }
    }
    received
}

#[test]
fn queued_data_precedes_fin_and_fin_precedes_the_reset() {
    let (mut client, mut server) = pair();
    server.reply(ID, &HeaderBlock::new(), false);
    server.send_data(ID, Bytes::from(vec![7; 50_000]), false);
    server.finish_and_reset(ID, RstStatus::CANCEL);
    assert!(
        !server.send_data(ID, Bytes::from_static(b"more"), false),
        "the local half is closed"
    );
    deliver(&mut server, &mut client);
    assert_eq!(
        read_events(&mut client),
        (50_000, true, Some(RstStatus::CANCEL))
    );
    server.shutdown(NOW);
    assert!(server.is_closing());
    let mut wire = BytesMut::new();
    while server.poll_transmit(NOW, &mut wire) {}
    assert!(server.is_closed(), "no stream is left to wait for");
}

#[test]
fn a_closed_window_delays_the_end_and_does_not_cut_it() {
    let (mut client, mut server) = pair();
    server.reply(ID, &HeaderBlock::new(), false);
    let all = 30_000_000; // more than any window
    server.send_data(ID, Bytes::from(vec![7; all]), false);
    server.finish_and_reset(ID, RstStatus::CANCEL);
    deliver(&mut server, &mut client);
    let (mut received_bytes, mut fin, mut reset) = read_events(&mut client);
    assert!(received_bytes < all && !fin && reset.is_none());
    for _ in 0..100 {
        deliver(&mut client, &mut server); // WINDOW_UPDATE
        deliver(&mut server, &mut client);
        let next = read_events(&mut client);
        (received_bytes, fin, reset) = (received_bytes + next.0, fin | next.1, reset.or(next.2));
    }
    assert_eq!(
        (received_bytes, fin, reset),
        (all, true, Some(RstStatus::CANCEL))
    );
}

#[test]
fn a_peer_that_has_closed_its_half_is_not_reset() {
    let (mut client, mut server) = pair();
    client.send_data(ID, Bytes::new(), true);
    deliver(&mut client, &mut server);
    server.reply(ID, &HeaderBlock::new(), false);
    server.send_data(ID, Bytes::from_static(b"bye"), false);
    server.finish_and_reset(ID, RstStatus::CANCEL);
    deliver(&mut server, &mut client);
    assert_eq!(read_events(&mut client), (3, true, None));
    assert_eq!(server.stats().resets_sent.total(), 0);
}

#[test]
fn a_half_that_is_closed_already_or_was_never_opened_is_reset_at_once() {
    for has_reply in [true, false] {
        let (mut client, mut server) = pair();
        if has_reply {
            server.reply(ID, &HeaderBlock::new(), true);
            deliver(&mut server, &mut client);
        }
        server.finish_and_reset(ID, RstStatus::CANCEL);
        deliver(&mut server, &mut client);
        assert_eq!(
            read_events(&mut client),
            (0, has_reply, Some(RstStatus::CANCEL))
        );
        server.finish_and_reset(ID, RstStatus::CANCEL);
        assert_eq!(server.stats().resets_sent.total(), 1, "the stream is gone");
    }
}

#[test]
fn a_reset_behind_output_leaves_what_is_queued_and_no_fin() {
    let (mut client, mut server) = pair();
    server.reply(ID, &HeaderBlock::new(), false);
    server.send_data(ID, Bytes::from(vec![7; 50_000]), false);
    server.reset_behind_output(ID, RstStatus::INTERNAL_ERROR);
    assert_eq!(
        server.send_capacity(ID),
        0,
        "the stream accepts no more DATA"
    );
    assert!(!server.send_data(ID, Bytes::from_static(b"late"), true));
    server.reset_behind_output(ID, RstStatus::CANCEL); // the first one counts
    deliver(&mut server, &mut client);
    let status = Some(RstStatus::INTERNAL_ERROR);
    assert_eq!(read_events(&mut client), (50_000, false, status));
    assert_eq!(server.active_streams(), (0, 0));
    assert_eq!(server.stats().resets_sent.total(), 1);
}

#[test]
fn a_reset_behind_output_waits_for_the_window_and_no_longer_than_any_data() {
    let (mut client, mut server) = pair();
    server.reply(ID, &HeaderBlock::new(), false);
    let window = client.config().initial_window_bytes as usize;
    server.send_data(ID, Bytes::from(vec![7; window + 10_000]), false);
    server.reset_behind_output(ID, RstStatus::INTERNAL_ERROR);
    deliver(&mut server, &mut client);
    assert_eq!(server.active_streams(), (0, 1), "10,000 bytes are queued");
    server.handle_timeout(NOW + std::time::Duration::from_secs(60));
    assert_eq!(server.active_streams(), (0, 0));
}

#[test]
fn a_reset_behind_output_of_a_stream_without_output_is_sent_at_once() {
    let (mut client, mut server) = pair();
    server.reset_behind_output(ID, RstStatus::INTERNAL_ERROR);
    deliver(&mut server, &mut client);
    assert_eq!(read_events(&mut client).2, Some(RstStatus::INTERNAL_ERROR));
}
