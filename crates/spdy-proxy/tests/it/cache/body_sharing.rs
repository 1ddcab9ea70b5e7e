//! One body for many readers: each gets every byte once and in order, even if readers are slow, leave, or come late.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use http_body::Body as _;
use http_body_util::BodyExt;
use proptest::prelude::*;
use spdy::body::Body;
use spdy_proxy::body::body_memory::{BodyMemory, MemoryReservation};
use spdy_proxy::body::shared_body::{self, NoReaders, SharedBody, SharedBodyWriter, streamed};
use spdy_proxy::cache::memory_store::body_from_pieces;
use spdy_proxy::telemetry::counters::Counters;

const PIECE: usize = 16 * 1024;
/// Bytes that each recording has of its own.
const OWN: usize = 64 * 1024;

/// Room for so much beside what each recording has of its own.
fn room(bytes: usize) -> Arc<BodyMemory> {
    BodyMemory::new(bytes, Counters::default())
}

fn claim(all: &Arc<BodyMemory>) -> MemoryReservation {
    all.reserve(0)
        .expect("a reservation of 0 bytes always succeeds")
}

/// A recording that is stored up to `limit` bytes, and has memory for them.
fn retained(limit: usize) -> (SharedBodyWriter, SharedBody) {
    shared_body::retained(limit, claim(&room(2 * limit)), None)
}

fn piece(nth: usize) -> Bytes {
    vec![nth as u8; PIECE].into()
}

/// The next piece, if it is there.
fn next(body: &mut Body) -> Option<Bytes> {
    let frame = body.frame().now_or_never()??;
    Some(
        frame
            .expect("the body is complete")
            .into_data()
            .expect("the frame is data"),
    )
}

async fn all_of(body: Body) -> Result<Vec<u8>, String> {
    let read = body.collect_up_to(usize::MAX).await;
    read.map(|bytes| bytes.to_vec())
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn retained_body_continues_without_readers() {
    let (mut writer, recording) = retained(1 << 20);
    for nth in 0..20 {
        writer
            .write(piece(nth))
            .await
            .expect("the response is stored");
    }
    let early = recording.read().expect("the recording has its beginning");
    let pieces = writer.finish().expect("the response is stored");
    assert_eq!(pieces.len(), 20);
    let late = recording.read().expect("the recording has its beginning");
    assert_eq!(all_of(early).await, all_of(late).await);
}

#[tokio::test]
async fn unstored_body_stays_until_last_reader() {
    let room = room(1 << 20);
    let (mut writer, recording) = shared_body::retained(1 << 20, claim(&room), None);
    for nth in 0..20 {
        writer
            .write(piece(nth))
            .await
            .expect("the response is stored");
    }
    let claimed = room.bytes();
    assert!(claimed > 0);
    writer.finish().expect("the response is stored");
    writer.finish_unstored();
    let late = recording.read().expect("the recording has its beginning");
    drop(recording);
    assert_eq!(room.bytes(), claimed);
    assert_eq!(all_of(late).await.map(|body| body.len()), Ok(20 * PIECE));
    assert_eq!(room.bytes(), 0);
}

#[tokio::test]
async fn streamed_body_waits_for_slowest_reader_and_ends_with_last() {
    let (mut writer, recording) = streamed(None);
    let (mut fast, slow) = (recording.read().unwrap(), recording.read().unwrap());
    for nth in 0..3 {
        writer
            .write(piece(nth))
            .await
            .expect("the body has a reader");
        assert_eq!(next(&mut fast), Some(piece(nth)));
    }
    {
        let mut write = Box::pin(writer.write(piece(3)));
        assert!(
            (&mut write).now_or_never().is_none(),
            "the slow one has all of it to read"
        );
        drop(slow);
        assert_eq!((&mut write).now_or_never(), Some(Ok(())));
    }
    assert_eq!(next(&mut fast), Some(piece(3)));
    assert!(recording.read().is_none(), "its beginning is gone");
    let mut no_readers = Box::pin(std::future::poll_fn(|cx| writer.poll_no_readers(cx)));
    assert_eq!((&mut no_readers).now_or_never(), None);
    drop(fast);
    assert_eq!((&mut no_readers).now_or_never(), Some(NoReaders));
    drop(no_readers);
    assert_eq!(writer.write(piece(4)).await, Err(NoReaders));
}

#[tokio::test]
async fn body_past_retain_limit_is_streamed() {
    let (mut writer, recording) = retained(2 * PIECE);
    let mut reader = recording.read().unwrap();
    for nth in 0..3 {
        writer
            .write(piece(nth))
            .await
            .expect("the body has a reader");
        assert_eq!(next(&mut reader), Some(piece(nth)));
    }
    assert!(recording.read().is_none());
    assert_eq!(writer.finish(), None, "nothing is storable");
}

#[tokio::test]
async fn writer_failure_or_drop_aborts_readers() {
    for leaves in [false, true] {
        let (mut writer, recording) = retained(1 << 20);
        let reader = recording.read().unwrap();
        writer
            .write(piece(0))
            .await
            .expect("the response is stored");
        match leaves {
            true => drop(writer),
            false => writer.fail("it was cut".to_owned()),
        }
        let broken = all_of(reader).await.expect_err("it has no end");
        assert!(broken.contains("is incomplete"), "{broken}");
        assert!(
            recording.read().is_none(),
            "an incomplete body gets no new readers"
        );
    }
}

#[tokio::test]
async fn body_without_memory_is_streamed_at_reader_pace() {
    let all = room(4 * PIECE);
    let (mut first, slow) = shared_body::retained(1 << 20, claim(&all), None);
    let _slow = slow.read().unwrap();
    for nth in 0..7 {
        first
            .write(piece(nth))
            .await
            .expect("the response is stored");
    }
    let claimed = all.bytes();
    assert!((3 * PIECE..=4 * PIECE).contains(&claimed), "{claimed}");

    let (mut second, recording) = shared_body::retained(1 << 20, claim(&all), None);
    let mut reader = recording.read().unwrap();
    // The first 64 KiB of each recording need no claim.
    for nth in 0..3 {
        second
            .write(piece(nth))
            .await
            .expect("the response is stored");
    }
    assert_eq!(all.bytes(), claimed);
    for nth in 3..5 {
        let _ = second.write(piece(nth)).now_or_never();
    }
    {
        let mut write = Box::pin(second.write(piece(5)));
        assert!(
            (&mut write).now_or_never().is_none(),
            "there is no more room"
        );
        assert!(all.bytes() <= 4 * PIECE);
        for nth in 0..3 {
            assert_eq!(next(&mut reader), Some(piece(nth)));
        }
        assert_eq!((&mut write).now_or_never(), Some(Ok(())));
    }
    for nth in 3..6 {
        assert_eq!(next(&mut reader), Some(piece(nth)));
    }
    assert_eq!(second.finish(), None, "nothing is storable");
    assert_eq!(next(&mut reader), None);
    assert_eq!(all.bytes(), claimed, "the first has what it had");
    assert_eq!(first.finish().map(|pieces| pieces.len()), Some(7));
}

#[tokio::test]
async fn stored_body_replaces_retained_pieces() {
    let all = room(1 << 20);
    let (mut writer, recording) = shared_body::retained(1 << 20, claim(&all), None);
    let mut early = recording.read().unwrap();
    for nth in 0..20 {
        writer
            .write(piece(nth))
            .await
            .expect("the response is stored");
    }
    assert_eq!(next(&mut early), Some(piece(0)));
    assert!(all.bytes() >= 20 * PIECE - OWN);
    let retained = body_from_pieces(&writer.finish().expect("the response is stored"));
    let full: Vec<u8> = retained.chunks().flatten().copied().collect();
    writer.replace_with_stored(retained.clone());
    assert_eq!(all.bytes(), 0);
    assert!(retained.is_shared(), "shared by its readers");
    let late = recording.read().expect("the recording has its beginning");
    assert_eq!(all_of(late).await.as_ref(), Ok(&full));
    assert_eq!(all_of(early).await.as_deref(), Ok(&full[PIECE..]));
    drop(recording);
    assert!(!retained.is_shared());
}

#[tokio::test]
async fn unstored_pieces_are_dropped_as_read() {
    let all = room(1 << 20);
    let (mut writer, recording) = shared_body::retained(1 << 20, claim(&all), None);
    let mut reader = recording.read().unwrap();
    for nth in 0..20 {
        writer
            .write(piece(nth))
            .await
            .expect("the response is stored");
    }
    assert!(writer.finish().is_some());
    drop(writer);
    assert!(all.bytes() >= 20 * PIECE - OWN);
    for nth in 0..20 {
        assert_eq!(next(&mut reader), Some(piece(nth)));
        let limit = (19 - nth) * PIECE;
        assert!(all.bytes() <= limit, "{} bytes for {limit}", all.bytes());
    }
    assert_eq!(next(&mut reader), None);
}

proptest! {
    /// Readers come, read and leave in any order: each gets every byte from the first to where it left.
    #[test]
    fn each_reader_gets_all_bytes_in_order(
        steps in prop::collection::vec((0..5_usize, 1..40_usize), 1..60),
        is_retained in any::<bool>(),
    ) {
        let (mut writer, recording) = match is_retained {
            true => retained(1 << 20),
            false => streamed(None),
        };
        let mut readers: Vec<(Body, Vec<u8>)> = recording.read().map(|body| (body, Vec::new())).into_iter().collect();
        let mut written: Vec<u8> = Vec::new();
        for (step, size) in steps {
            match step {
                0 => readers.extend(recording.read().map(|body| (body, Vec::new()))),
                1 if readers.len() > 1 => drop(readers.remove(size % readers.len())),
                2 | 3 => {
                    let bytes: Vec<u8> = (0..size).map(|at| (written.len() + at) as u8).collect();
                    written.extend(&bytes);
                    let done = writer.write(bytes.into()).now_or_never();
                    prop_assert_eq!(done, Some(Ok(())));
                }
                _ => {
                    let count = readers.len();
                    let (body, read) = &mut readers[size % count];
                    if let Some(piece) = next(body) {
                        read.extend(&piece);
                    }
                }
            }
            for (_, read) in &readers {
                prop_assert_eq!(&written[..read.len()], &read[..]);
            }
        }
        let pieces = writer.finish();
        prop_assert_eq!(pieces.map(|pieces| pieces.concat()), is_retained.then(|| written.clone()));
        for (mut body, mut read) in readers {
            while let Some(piece) = next(&mut body) {
                read.extend(&piece);
            }
            prop_assert_eq!(&read, &written);
        }
    }
}

/// The answer to a page that was cut within its first KiB was a connection that ended, and no status.
#[test]
fn reader_yields_before_reporting_failure() {
    let (writer, recording) = streamed(None);
    let mut body = recording.read().expect("all files exist");
    writer.fail("cut".to_owned());
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut poll = || std::pin::Pin::new(&mut body).poll_frame(&mut cx);
    assert!(poll().is_pending(), "the sender runs between polls");
    let polled = poll();
    assert!(matches!(polled, std::task::Poll::Ready(Some(Err(_)))));
}
