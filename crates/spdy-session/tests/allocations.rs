//! Counts allocations per frame: none, once the queues have grown to the size that a session needs.
//!
//! A test program of its own, because it counts with a global allocator.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use spdy_clock::Instant;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::kind::Kind;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::event::Event;
use spdy_session::session::{Session, Stats, StreamOptions};

/// Two machines, and the buffers of their drivers.
struct Pair {
    now: Instant,
    client: Session,
    server: Session,
    to_client: BytesMut,
    to_server: BytesMut,
}

impl Pair {
    fn new() -> Self {
        let now = Instant::ZERO;
        let session = |role| {
            let mut config = Config::new(role, Version::V31);
            config.initial_window_bytes = 64 * 1024; // of which WINDOW_UPDATEs are many
            config.session_window_bytes = Some(64 * 1024);
            Session::new(config, now)
        };
        Self {
            now,
            client: session(Role::Client),
            server: session(Role::Server),
            to_client: BytesMut::with_capacity(1 << 16),
            to_server: BytesMut::with_capacity(1 << 16),
        }
    }

    /// Carries bytes until neither side has any; `on_event` gets the events of both sides, and may reply.
    fn run_until_idle(&mut self, on_event: &mut impl FnMut(&mut Session, Event)) {
        loop {
            let has_written = carry(
                self.now,
                &mut self.client,
                &mut self.server,
                &mut self.to_server,
            ) | carry(
                self.now,
                &mut self.server,
                &mut self.client,
                &mut self.to_client,
            );
            for side in [&mut self.client, &mut self.server] {
                while let Some(event) = side.poll_event() {
                    on_event(side, event);
                }
            }
            if !has_written {
                return;
            }
        }
    }
}

fn carry(now: Instant, from: &mut Session, to: &mut Session, wire: &mut BytesMut) -> bool {
    wire.reserve(1 << 15);
    while from.poll_transmit(now, wire) {}
    let has_written = !wire.is_empty();
    to.handle_input_buffer(now, wire);
    has_written
}

/// DATA is consumed when it arrives.
fn consume(side: &mut Session, event: Event) {
    if let Event::Data { id, data, .. } = event {
        side.consume(id, data.len());
    }
}

/// A stream of the client's, open both ways.
fn open_stream(pair: &mut Pair) -> StreamId {
    let id = pair
        .client
        .open(&HeaderBlock::new(), StreamOptions::default());
    let id = id.expect("the first of a hundred");
    pair.run_until_idle(&mut |side, event| {
        if let Event::Opened { id, .. } = event {
            assert!(side.reply(id, &HeaderBlock::new(), false));
        }
    });
    id
}

#[test]
fn data_windows_and_pings_pass_without_an_allocation() {
    let mut pair = Pair::new();
    let id = open_stream(&mut pair);
    let body = Bytes::from(vec![b'x'; 16 * 1024]);
    let round = |pair: &mut Pair| {
        pair.now += Duration::from_secs(1); // PING has a rate
        assert!(pair.server.send_data(id, body.clone(), false));
        assert!(pair.client.send_data(id, body.slice(..100), false));
        pair.client.ping(pair.now);
        pair.run_until_idle(&mut consume);
    };
    for _ in 0..8 {
        round(&mut pair); // queues grow to what they need
    }
    let stats_before = [pair.client.stats(), pair.server.stats()];
    let cost = allocation_counter::measure(|| (0..100).for_each(|_| round(&mut pair)));
    let stats_after = [pair.client.stats(), pair.server.stats()];
    let frames_received = |kind| -> u64 {
        let of = |side: &Stats| side.frames_received.of(kind);
        stats_after.iter().map(of).sum::<u64>() - stats_before.iter().map(of).sum::<u64>()
    };
    assert_eq!(
        (frames_received(Kind::Data), frames_received(Kind::Ping)),
        (200, 200)
    );
    assert!(frames_received(Kind::WindowUpdate) > 20);
    assert_eq!(cost.count_total, 0, "allocations in 100 rounds");
}

/// A request and its answer: the two blocks are read into one allocation each, the rest is used again.
#[test]
fn an_exchange_allocates_only_its_header_blocks() {
    let mut pair = Pair::new();
    let request_headers =
        HeaderBlock::from_iter([(":method", "GET"), (":path", "/"), (":host", "h")]);
    let response_headers = HeaderBlock::from_iter([(":status", "200 OK"), ("content-length", "5")]);
    let body = Bytes::from_static(b"hello");
    let fin = StreamOptions {
        fin: true,
        ..StreamOptions::default()
    };
    let mut fin_count = 0;
    let mut round = |pair: &mut Pair| {
        for _ in 0..10 {
            pair.client
                .open(&request_headers, fin)
                .expect("few are open");
        }
        pair.run_until_idle(&mut |side, event| match event {
            Event::Opened { id, .. } => {
                assert!(side.reply(id, &response_headers, false));
                assert!(side.send_data(id, body.clone(), true));
            }
            Event::Data { id, data, fin } => {
                fin_count += u32::from(fin);
                side.consume(id, data.len());
            }
            _ => {}
        });
    };
    // The encoder's window fills, and its text has grown to what it needs.
    (0..100).for_each(|_| round(&mut pair));
    let cost = allocation_counter::measure(|| (0..10).for_each(|_| round(&mut pair)));
    assert_eq!(fin_count, 1100);
    assert_eq!(cost.count_total, 2 * 100, "allocations in 100 exchanges");
    assert_eq!(
        cost.count_current, 0,
        "memory still allocated after the exchanges"
    );
}

/// Bursts that follow each other use the same memory. A session that then waits returns it.
#[test]
fn the_memory_of_a_burst_is_kept_for_a_second() {
    let mut pair = Pair::new();
    let headers = HeaderBlock::from_iter([(":status", "200 OK")]);
    let fin = StreamOptions {
        fin: true,
        ..StreamOptions::default()
    };
    let burst = |pair: &mut Pair| {
        for _ in 0..100 {
            pair.client.open(&headers, fin).expect("100 are allowed");
        }
        pair.run_until_idle(&mut |side, event| {
            if let Event::Opened { id, .. } = event {
                assert!(side.reply(id, &headers, true));
            }
        });
    };
    (0..100).for_each(|_| burst(&mut pair));
    let cost = allocation_counter::measure(|| burst(&mut pair));
    assert_eq!(cost.count_total, 2 * 100, "allocations of a second burst");

    for side in [&mut pair.client, &mut pair.server] {
        let deadline = side.poll_timeout().expect("a session has a timeout");
        assert_eq!(deadline, pair.now + Duration::from_secs(1));
        let cost = allocation_counter::measure(|| side.handle_timeout(deadline));
        assert!(
            cost.bytes_current < -20_000,
            "{} bytes after a second",
            cost.bytes_current
        );
        assert!(side.poll_timeout().is_none_or(|next| next > deadline));
    }
}
