//! A client of SPDY/3 or 3.1 that answers no PING, and the driver that must report when it was
//! sent.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use http::Response;
use spdy::runtime::BoxFuture;
use spdy::{Body, HeaderBlock, Instant, SharedRuntime, Version, server};
use spdy_session::config::{Config, Role};
use spdy_session::session::{Session as Machine, StreamOptions};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::support::virtual_world::{VirtualTime, World};

/// When the connection accepts its first byte, and how many bytes it accepted at each instant.
const TAKES_FROM: Duration = Duration::from_secs(30);
type WriteLog = Arc<Mutex<Vec<(Duration, usize)>>>;

/// A connection that delivers two requests, accepts nothing for half a minute and then everything.
struct TakesLate {
    input: BytesMut,
    runtime: SharedRuntime,
    opens: Option<BoxFuture<()>>,
    writes: WriteLog,
}

impl AsyncRead for TakesLate {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.input.is_empty() {
            return Poll::Pending;
        }
        let length = self.input.len().min(buf.remaining());
        buf.put_slice(&self.input.split_to(length));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for TakesLate {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        if let Some(opens) = &mut self.opens {
            if opens.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.opens = None;
        }
        let elapsed = self.runtime.now() - Instant::ZERO;
        self.writes
            .lock()
            .expect("one thread")
            .push((elapsed, buf.len()));
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn two_requests() -> BytesMut {
    let mut client = Machine::new(Config::new(Role::Client, Version::V3), Instant::ZERO);
    let headers = HeaderBlock::from_iter([
        (":method", "GET"),
        (":path", "/"),
        (":version", "HTTP/1.1"),
        (":host", "a.example"),
        (":scheme", "http"),
    ]);
    let mut wire = BytesMut::new();
    for _ in 0..2 {
        let open = StreamOptions {
            fin: true,
            ..StreamOptions::default()
        };
        client.open(&headers, open).expect("room");
    }
    while client.poll_transmit(Instant::ZERO, &mut wire) {}
    wire
}

#[test]
fn the_version_probe_times_out_ten_seconds_after_transmission() {
    let world = Arc::<World>::default();
    let runtime = SharedRuntime::new(VirtualTime(world.clone()));
    let writes = WriteLog::default();
    let io = TakesLate {
        input: two_requests(),
        opens: Some(runtime.sleep_until(Instant::ZERO + TAKES_FROM)),
        runtime: runtime.clone(),
        writes: writes.clone(),
    };
    let mut builder = server::Builder::new(Version::V3);
    builder.config_mut().detect_session_window = true;
    let server = builder.serve(io, runtime.clone(), |_| async {
        Response::new(Body::full(vec![7; 50_000]))
    });
    runtime.spawn(Box::pin(async move { drop(server.await) }));
    world.run();
    let writes = writes.lock().expect("one thread");
    let by = |end: Duration| -> usize {
        let earlier = writes.iter().filter(|(at, _)| *at <= end);
        earlier.map(|(_, bytes)| bytes).sum()
    };
    let bytes_before = by(TAKES_FROM + Duration::from_millis(9_999));
    assert!((65_536..67_000).contains(&bytes_before), "{writes:?}");
    let bytes_after = by(TAKES_FROM + Duration::from_secs(10));
    assert!(bytes_after > 100_000, "{writes:?}");
}
