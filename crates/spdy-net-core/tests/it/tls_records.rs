//! A server's first TLS records: one packet, two packets, three; and whatever is written arrives.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use proptest::prelude::*;
use spdy::forward_io;
use spdy_net_core::network::BoxIo;
use spdy_net_core::tls::TlsVersion;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};

use crate::support::{tls_pair, without_key_log};

/// Bytes that TLS 1.2 adds to what a record holds: an explicit nonce and a tag.
const SEALED_BYTES: usize = 8 + 16;
const HEAD_BYTES: usize = 5;
const FULL_BYTES: usize = 16 * 1024;

/// Each write of the server, as its socket would have it.
#[derive(Clone, Default)]
struct RecordedWrites(Arc<Mutex<Vec<Vec<u8>>>>);

impl RecordedWrites {
    /// The lengths of what the records hold that carry data, and how many writes it took.
    fn take(&self) -> (Vec<usize>, usize) {
        let writes = std::mem::take(&mut *self.0.lock().unwrap());
        let bytes = writes.concat();
        let mut rest = &bytes[..];
        let mut lengths = Vec::new();
        while let [kind, _, _, high, low, ..] = *rest {
            let length = usize::from(u16::from_be_bytes([high, low]));
            if kind == 23 {
                lengths.push(length - SEALED_BYTES);
            }
            rest = &rest[HEAD_BYTES + length..];
        }
        assert!(rest.is_empty(), "a partial record");
        (lengths, writes.len())
    }
}

struct Tapped {
    io: DuplexStream,
    writes: RecordedWrites,
}

impl AsyncRead for Tapped {
    forward_io!(poll_read => self.io);
}

impl AsyncWrite for Tapped {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        if let Poll::Ready(Ok(len)) = outcome {
            let bytes: Vec<u8> = bufs.iter().flat_map(|buf| buf.iter().copied()).collect();
            self.writes.0.lock().unwrap().push(bytes[..len].to_vec());
        }
        outcome
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    forward_io!(poll_flush, poll_shutdown => self.io);
}

/// The server's end and the client's, hands shaken, over a pipe that holds `pipe` bytes.
async fn connected(growing_records: bool, pipe: usize) -> (BoxIo, BoxIo, RecordedWrites) {
    let mut options = without_key_log();
    options.max = TlsVersion::Tls12;
    let (server, client) = tls_pair(&options);
    let server = match growing_records {
        true => server.with_dynamic_record_size(),
        false => server,
    };
    let (near, far) = tokio::io::duplex(pipe);
    let writes = RecordedWrites::default();
    let tapped = Tapped {
        io: far,
        writes: writes.clone(),
    };
    let (near, far) = futures_util::future::join(
        client.connect(Box::new(near), "localhost"),
        server.accept(Box::new(tapped)),
    )
    .await;
    let (mut near, mut far) = (near.unwrap().0, far.unwrap().0);
    // The hand-shake's last message is the server's: it is not to be among what is looked at.
    near.write_all(b"x").await.unwrap();
    far.read_exact(&mut [0]).await.unwrap();
    writes.take();
    (far, near, writes)
}

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251) as u8).collect()
}

#[tokio::test]
async fn each_record_is_a_packet_longer_until_it_is_full() {
    let (mut server, mut client, writes) = connected(true, 1 << 20).await;
    let payload = body(60_000);
    server.write_all(&payload).await.unwrap();
    server.flush().await.unwrap();
    let mut received = vec![0; payload.len()];
    client.read_exact(&mut received).await.unwrap();
    assert!(received == payload);

    let (lengths, _) = writes.take();
    let (first, last) = (lengths[0], lengths.len() - 1);
    assert!((1_300..1_460 - HEAD_BYTES - SEALED_BYTES).contains(&first));
    for (number, length) in (1..).zip(&lengths[..last]) {
        assert_eq!(*length, number * first, "record {number}");
    }
    for _ in 0..5 {
        server.write_all(&payload[..2 * FULL_BYTES]).await.unwrap();
    }
    let (lengths, _) = writes.take();
    let full = lengths
        .iter()
        .rev()
        .take_while(|length| **length == FULL_BYTES);
    assert!(full.count() >= 6, "{lengths:?}");
}

#[tokio::test]
async fn records_of_one_write_are_sent_together() {
    let (mut server, _client, writes) = connected(true, 1 << 20).await;
    let len = server.write(&body(12_000)).await.unwrap();
    assert_eq!(len, 12_000);
    let (lengths, writes) = writes.take();
    assert_eq!((lengths.len(), writes), (4, 1), "{lengths:?}");
}

#[tokio::test]
async fn a_head_and_its_body_are_one_record_and_grow_no_other() {
    let (mut server, _client, writes) = connected(true, 1 << 20).await;
    let (head, body) = (body(300), body(700));
    for _ in 0..20 {
        let parts = [IoSlice::new(&head), IoSlice::new(&body)];
        assert_eq!(server.write_vectored(&parts).await.unwrap(), 1_000);
        assert_eq!(writes.take(), (vec![1_000], 1));
    }
    server.write_all(&[0; 9_000]).await.unwrap();
    let (lengths, _) = writes.take();
    assert!(lengths[0] < 1_460, "{lengths:?}");
}

#[tokio::test]
async fn without_small_records_the_first_record_is_full() {
    let (mut server, _client, writes) = connected(false, 1 << 20).await;
    server.write_all(&[0; 20_000]).await.unwrap();
    assert_eq!(writes.take().0, [FULL_BYTES, 20_000 - FULL_BYTES]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// However much is written at a time, in parts or whole, and however little the socket takes.
    #[test]
    fn every_byte_arrives_in_order(
        lengths in proptest::collection::vec((0..40_000_usize, proptest::bool::ANY), 1..8),
        pipe in 1_000..100_000_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (mut server, mut client, _) = connected(true, pipe).await;
            let payload = body(lengths.iter().map(|(length, _)| length).sum());
            let mut rest = &payload[..];
            let write = async {
                for (length, in_parts) in &lengths {
                    let (mut now, later) = rest.split_at(*length);
                    rest = later;
                    while !now.is_empty() {
                        let (head, tail) = now.split_at(now.len() / 3);
                        let len = match in_parts {
                            true => server.write_vectored(&[IoSlice::new(head), IoSlice::new(tail)]).await.unwrap(),
                            false => server.write(now).await.unwrap(),
                        };
                        assert!(len > 0);
                        now = &now[len..];
                    }
                }
                server.shutdown().await.unwrap();
            };
            let mut received = Vec::new();
            let read_result = client.read_to_end(&mut received);
            let (_, read_result) = futures_util::future::join(write, read_result).await;
            read_result.unwrap();
            assert!(received == payload);
        });
    }
}
