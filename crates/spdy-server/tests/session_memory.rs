//! Memory that an idle session uses because of earlier requests of its client, as counted by the allocator.
//!
//! A test program of its own, because it counts with a global allocator.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::Request;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy::{Frame, Priority, StreamId, Version};
use spdy_frame::compress::{Compression, DeflateOptions, Deflater};
use spdy_frame::frame::SynStream;
use spdy_net::protocol::Protocol;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_server::page_resources::PageResources;
use spdy_server::push_plan::Sources;
use spdy_server::serve::{ServeConfig, serve_connection};
use spdy_server::site::Site;
use spdy_server::site_pusher::{PushConfig, SitePusher};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use paused_time::PausedTime;

#[path = "../../spdy-proxy/tests/it/support/paused_time.rs"]
mod paused_time;

/// A connection that delivers bytes, accepts everything, and stays open.
struct StaysOpen(Bytes);

impl AsyncRead for StaysOpen {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            return Poll::Pending;
        }
        let length = self.0.len().min(buf.remaining());
        buf.put_slice(&self.0[..length]);
        self.0.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for StaysOpen {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A server of images: what is learned of pages is held once for all sessions.
fn site(targets: &[String]) -> Site {
    let exchange = |target: &str| {
        let url = format!("http://www.test{target}").parse().unwrap();
        let mut exchange = Exchange::synthetic(url, Kind::Image, "image/png", "png");
        exchange.initiator = Initiator::Navigation;
        exchange
    };
    let exchanges = targets.iter().map(|target| exchange(target)).collect();
    let replica = Replica {
        name: "test".to_owned(),
        source: "made for a test".to_owned(),
        start: 0,
        exchanges,
        recorded: None,
        dom_content_loaded: None,
        load: None,
        paints: spdy_page::replica::Paints::default(),
        failures: Vec::new(),
    };
    Site::of_replica(&replica)
}

/// Requests for these targets, one after the other, as a client compresses them.
fn requests<'t>(targets: impl Iterator<Item = &'t String>) -> Bytes {
    // A small window, which the server holds as far as it is filled.
    let mut options = DeflateOptions::from(Compression::Zlib(9));
    options.window_bits = 11;
    let mut deflater = Deflater::new(Version::V31, options);
    let mut wire = BytesMut::new();
    for (nth, target) in (0..).zip(targets) {
        let request = Request::get(format!("http://www.test{target}")).body(());
        let head = request.expect("a request").into_parts().0;
        let head = spdy_http::request::encode(Version::V31, &head).expect("a head");
        let mut block = BytesMut::new();
        deflater.deflate(&head, &mut block);
        let syn = SynStream {
            stream_id: StreamId::new(2 * nth + 1),
            associated_to: StreamId::ZERO,
            priority: Priority::HIGHEST,
            fin: true,
            unidirectional: false,
            block: block.freeze(),
        };
        Frame::SynStream(syn).encode(Version::V31, &mut wire);
    }
    wire.freeze()
}

/// Bytes that a session uses after the responses to the requests in `wire`, and the number of requests.
fn session_bytes(site: Site, wire: Bytes) -> (u64, u64) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    let config = PushConfig {
        sources: Sources {
            learned: true,
            ..Sources::default()
        },
        ..PushConfig::default()
    };
    let pushing = SitePusher::new(config, PageResources::default(), &site);
    let site = Arc::new(site);
    let config = ServeConfig {
        protocols: vec![Protocol::Spdy(Version::V31)],
        pusher: Some(Arc::new(pushing.expect("it learns"))),
        ..ServeConfig::default()
    };
    let io = Box::new(StaysOpen(wire));
    let counted = site.clone();
    let used = allocation_counter::measure(|| {
        runtime.block_on(async move {
            let shared = SharedRuntime::new(TokioRuntime::start());
            tokio::spawn(serve_connection(io, site, config, shared));
            for _ in 0..10_000 {
                tokio::task::yield_now().await;
            }
        });
    });
    let bytes = u64::try_from(used.bytes_current).expect("a session uses memory");
    (bytes, counted.stats().requests)
}

/// When a session has returned the memory that it keeps for a second burst.
const AFTER_A_BURST: Duration = Duration::from_secs(2);

/// Bytes that each of a hundred idle sessions uses after `requests` requests of a kilobyte, without what sessions share.
fn idle_session_bytes(count: usize) -> u64 {
    const SESSIONS: u64 = 100;
    let targets: Vec<_> = (0..count).map(|n| format!("/{n}")).collect();
    let wire = requests(targets.iter());
    let site = Arc::new(site(&targets));
    let config = ServeConfig {
        protocols: vec![Protocol::Spdy(Version::V31)],
        ..ServeConfig::default()
    };
    let used = |sessions: u64| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let used = allocation_counter::measure(|| {
            runtime.block_on(async {
                let shared = SharedRuntime::new(PausedTime::start());
                for _ in 0..sessions {
                    let io = Box::new(StaysOpen(wire.clone()));
                    let (site, config) = (site.clone(), config.clone());
                    tokio::spawn(serve_connection(io, site, config, shared.clone()));
                }
                tokio::time::sleep(AFTER_A_BURST).await;
            });
        });
        u64::try_from(used.bytes_current).expect("a session uses memory")
    };
    let (one, all) = (used(1), used(1 + SESSIONS));
    assert_eq!(site.stats().requests, (2 + SESSIONS) * count as u64);
    (all - one) / SESSIONS
}

/// `docs/measurements/memory.md` has the parts. Most of it was a stream of zlib-rs once, 47 KiB from the first block on.
#[test]
fn an_idle_session_holds_little_more_than_it_received() {
    let (after_one, after_many) = (idle_session_bytes(1), idle_session_bytes(90));
    assert!(after_one < 14 * 1024, "{after_one} bytes after one request");
    assert!(
        after_many < 50 * 1024,
        "{after_many} bytes after 90 requests"
    );
}

/// Some hundred bytes pinned 305 KiB once: the URLs of what was requested, whether or not it was there.
#[test]
fn compressed_long_urls_do_not_stay_in_session_memory() {
    const REQUESTS: usize = 15;
    let of = |bytes: usize| (0..REQUESTS).map(move |n| format!("/{n:02}{}", "a".repeat(bytes)));
    let [short, long]: [Vec<_>; 2] = [of(1).collect(), of(16_000).collect()];
    let wire = requests(long.iter());
    assert!(wire.len() < 2400, "{} bytes", wire.len());
    for exists in [false, true] {
        let [short, long] = [&short, &long].map(|targets| {
            let site = site(if exists { targets } else { &short[..1] });
            let (session_bytes, responses) = session_bytes(site, requests(targets.iter()));
            assert_eq!(responses, REQUESTS as u64);
            session_bytes
        });
        let more = long.saturating_sub(short);
        assert!(more < 2048, "{more} bytes more; answered: {exists}");
    }
}
