//! Requests through two machines in memory, a hundred at once: all that a session costs but its transport.
//!
//! Measures masked compression and, in the same run, plain zlib at level 1: the ratio of the two is comparable between machines.

use bytes::{Bytes, BytesMut};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

use spdy_clock::Instant;
use spdy_frame::compress::Compression;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::event::Event;
use spdy_session::session::{Session, StreamOptions};

const STREAMS: u64 = 100;
const NOW: Instant = Instant::ZERO;

/// A client that sends requests and a server that answers.
struct Pair {
    client: Session,
    server: Session,
    wire: BytesMut,
    request_block: HeaderBlock,
    response_block: HeaderBlock,
}

impl Pair {
    fn new(compression: Compression) -> Self {
        let session = |role| {
            let mut config = Config::new(role, Version::V31);
            config.compression = compression;
            Session::new(config, NOW)
        };
        Self {
            client: session(Role::Client),
            server: session(Role::Server),
            wire: BytesMut::with_capacity(1 << 20),
            request_block: HeaderBlock::from_iter([
                (":method", "GET"),
                (":path", "/128"),
                (":version", "HTTP/1.1"),
                (":host", "127.0.0.1:8080"),
                (":scheme", "http"),
                ("user-agent", "bench"),
            ]),
            response_block: HeaderBlock::from_iter([
                (":status", "200 OK"),
                (":version", "HTTP/1.1"),
                ("content-type", "application/octet-stream"),
                ("last-modified", "Tue, 12 Nov 2013 08:00:00 GMT"),
                ("etag", "\"13dd3bb5b9b0a000-80\""),
                ("content-length", "128"),
                ("date", "Fri, 22 Nov 2013 09:30:00 GMT"),
            ]),
        }
    }

    /// A hundred requests, and their responses of `body`; returns the bytes received.
    fn batch(&mut self, body: &Bytes) -> usize {
        let open = StreamOptions {
            fin: true,
            ..StreamOptions::default()
        };
        for _ in 0..STREAMS {
            self.client
                .open(&self.request_block, open)
                .expect("the peer allows this many streams");
        }
        while self.client.poll_transmit(NOW, &mut self.wire) {}
        self.server.handle_input_buffer(NOW, &mut self.wire);
        while let Some(event) = self.server.poll_event() {
            if let Event::Opened { id, .. } = event {
                self.server.reply(id, &self.response_block, false);
                self.server.send_data(id, body.clone(), true);
            }
        }
        while self.server.poll_transmit(NOW, &mut self.wire) {}
        self.client.handle_input_buffer(NOW, &mut self.wire);
        let mut received_bytes = 0;
        while let Some(event) = self.client.poll_event() {
            if let Event::Data { id, data, .. } = event {
                received_bytes += data.len();
                self.client.consume(id, data.len());
            }
        }
        received_bytes
    }
}

fn requests(c: &mut Criterion) {
    let mut group = c.benchmark_group("100 requests");
    group.throughput(Throughput::Elements(STREAMS));
    let body = Bytes::from(vec![b'x'; 128]);
    for (name, compression) in [
        ("masked", Compression::CrimeSafe),
        ("zlib 1", Compression::Zlib(1)),
    ] {
        let mut pair = Pair::new(compression);
        group.bench_function(name, |b| b.iter(|| black_box(pair.batch(&body))));
    }
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
