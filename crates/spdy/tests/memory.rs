//! What a peer can make a session hold, at most: `docs/reference/memory.md` has the formula, and here a peer goes as
//! far as it may. It fills every head, every window and every queue at once, and takes no byte of what
//! the server has for it; the allocator counts.
//!
//! A test program of its own, because it counts with a global allocator.

use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{Request, Response};
use spdy::runtime::SharedRuntime;
use spdy::{Body, Config, Frame, HeaderBlock, Limit, Metrics, Priority, StreamId, Version, server};
use spdy_frame::compress::{Compression, Deflater};
use spdy_frame::frame::{Data, Headers, SynStream};

use takes_nothing::TakesNothing;
use virtual_world::{VirtualTime, World};

#[path = "it/support/takes_nothing.rs"]
mod takes_nothing;
#[path = "it/support/virtual_world.rs"]
mod virtual_world;

/// Bytes that a body gives at once; one such piece may wait beside each full queue.
const PIECE: usize = 16 * 1024;

/// The bound, bytes: that of `docs/reference/memory.md`, line by line.
fn bound(config: &Config) -> usize {
    let streams = config.max_concurrent_streams as usize;
    let heads = config.header_bytes_per_stream;
    let response_bytes = config.send_buffer_bytes + PIECE;
    let stream = heads + response_bytes + 8 * 1024;
    let unread = match config.version {
        Version::V31 => config.session_window_size() as usize,
        Version::V3 => streams * config.initial_window_bytes as usize,
        // Nothing is read any more from here on; one read may go past it.
        Version::V2 => config.session_window_size() as usize + 64 * 1024,
    };
    // Small frames are joined, in buffers that double as they grow.
    let unread = 2 * unread;
    let session = config.frame_limits.control_payload_bytes + 512 * 1024;
    streams * stream + unread + session
}

/// The peer: as many streams as may be, as many and as greedy header blocks on each, all windows full.
fn greedy(config: &Config) -> Bytes {
    let version = config.version;
    let mut deflater = Deflater::new(version, Compression::Zlib(6));
    let mut wire = BytesMut::new();
    let mut block = |headers: &HeaderBlock| {
        let mut block = BytesMut::new();
        deflater.deflate(headers, &mut block);
        block.freeze()
    };
    let mut head = spdy_http::request::encode(
        version,
        &Request::post("http://a.example/")
            .body(())
            .expect("valid")
            .into_parts()
            .0,
    )
    .expect("a request");
    // Together as long as may be.
    let blocks = config.headers_per_stream as usize + 1;
    let value = vec![b'v'; config.header_bytes_per_stream / blocks - 256];
    head.push("greedy", &value);
    let headers: HeaderBlock = [("greedy", &value[..])].into_iter().collect();
    let streams = config.max_concurrent_streams;
    for nth in 0..streams {
        let stream_id = StreamId::new(2 * nth + 1);
        let syn = SynStream {
            stream_id,
            associated_to: StreamId::ZERO,
            priority: Priority::HIGHEST,
            fin: false,
            unidirectional: false,
            block: block(&head),
        };
        Frame::SynStream(syn).encode(version, &mut wire);
        for _ in 0..config.headers_per_stream {
            let headers = Headers {
                stream_id,
                fin: false,
                block: block(&headers),
            };
            Frame::Headers(headers).encode(version, &mut wire);
        }
    }
    let all = match version {
        Version::V3 => streams * config.initial_window_bytes,
        Version::V31 => 65_536, // no more is granted, since nothing of ours can be written
        Version::V2 => config.session_window_size() * 2,
    };
    for nth in 0..all / 16 {
        let data = Data {
            stream_id: StreamId::new(2 * (nth % streams) + 1),
            payload: Bytes::from_static(&[b'x'; 16]),
            fin: false,
        };
        Frame::Data(data).encode(version, &mut wire);
    }
    // And the beginning of a frame as long as may be.
    let length = config.frame_limits.control_payload_bytes;
    wire.extend_from_slice(&[0x80, version.wire() as u8, 0, 8, 0]);
    wire.extend_from_slice(&(length as u32).to_be_bytes()[1..]);
    wire.extend_from_slice(&vec![0; length - 1]);
    wire.freeze()
}

#[test]
fn a_peer_that_fills_every_limit_comes_near_the_bound() {
    for version in Version::ALL {
        let world = Arc::<World>::default();
        let runtime = SharedRuntime::new(VirtualTime(world.clone()));
        let metrics = Metrics::new();
        let mut builder = server::Builder::new(version).metrics(&metrics);
        let config = builder.config_mut().clone();
        let wire = greedy(&config);
        let allocations = allocation_counter::measure(|| {
            let service = |request: Request<Body>| async move {
                // It holds the question and answers without end.
                let question = request.into_body();
                let pieces = futures_util::stream::unfold(question, |question| async {
                    Some((Ok::<_, io::Error>(Bytes::from(vec![b'x'; PIECE])), question))
                });
                Response::new(Body::from_stream(pieces))
            };
            let io = TakesNothing(wire);
            let server = builder.serve(io, runtime.clone(), service);
            runtime.spawn(Box::pin(async move {
                let _ = server.await;
            }));
            world.run();
        });
        let snapshot = metrics.snapshot().server;
        let hits = snapshot.stats.limits;
        assert_eq!(hits.of(Limit::ConcurrentStreams), 0, "{version}: {hits}");
        assert_eq!(
            snapshot.stats.streams_accepted,
            u64::from(config.max_concurrent_streams),
            "{version}"
        );
        let bound = bound(&config) as u64;
        let peak = allocations.bytes_max;
        assert!(
            peak <= bound,
            "{version}: {peak} bytes held, expected at most {bound}"
        );
        assert!(
            peak * 4 > bound * 3,
            "{version}: {peak} bytes held, which does not test the bound of {bound}"
        );
        assert!(
            allocations.bytes_current < 100_000,
            "{version}: {} bytes are still held",
            allocations.bytes_current
        );
    }
}
