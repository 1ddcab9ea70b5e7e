//! One body for many readers: every byte once and in order, whoever is slow, leaves, or comes late.

use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use proptest::prelude::*;
use spdy::body::Body;
use spdy_proxy::recording::{Unread, of_pieces, recording};

const PIECE: usize = 16 * 1024;

fn piece(nth: usize) -> Bytes {
    vec![nth as u8; PIECE].into()
}

/// The next piece, if it is there.
fn next(body: &mut Body) -> Option<Bytes> {
    let frame = body.frame().now_or_never()??;
    Some(frame.expect("it is whole").into_data().expect("it is data"))
}

async fn all(body: Body) -> Result<Vec<u8>, String> {
    let read = body.collect_up_to(usize::MAX).await;
    read.map(|bytes| bytes.to_vec())
        .map_err(|error| error.to_string())
}

#[tokio::test]
async fn what_is_kept_goes_on_though_nobody_reads_and_is_whole_for_who_comes_late() {
    let (mut writer, recording) = recording(Some(1 << 20), None);
    for nth in 0..20 {
        writer.write(piece(nth)).await.expect("it is kept");
    }
    let early = recording.read().expect("all of it is there");
    let pieces = writer.finish().expect("it is kept");
    assert_eq!(pieces.len(), 20);
    let late = recording.read().expect("all of it is there");
    assert_eq!(all(early).await, all(late).await);
}

#[tokio::test]
async fn what_is_not_kept_waits_for_its_slowest_reader_and_ends_with_the_last() {
    let (mut writer, recording) = recording(None, None);
    let (mut fast, slow) = (recording.read().unwrap(), recording.read().unwrap());
    for nth in 0..3 {
        writer.write(piece(nth)).await.expect("somebody reads");
        assert_eq!(next(&mut fast), Some(piece(nth)));
    }
    {
        let mut held = Box::pin(writer.write(piece(3)));
        assert!(
            (&mut held).now_or_never().is_none(),
            "the slow one has all of it to read"
        );
        drop(slow);
        assert_eq!((&mut held).now_or_never(), Some(Ok(())));
    }
    assert_eq!(next(&mut fast), Some(piece(3)));
    assert!(recording.read().is_none(), "its beginning is gone");
    drop(fast);
    assert_eq!(writer.write(piece(4)).await, Err(Unread));
}

#[tokio::test]
async fn what_gets_longer_than_may_be_kept_is_passed_on_from_there() {
    let (mut writer, recording) = recording(Some(2 * PIECE), None);
    let mut reader = recording.read().unwrap();
    for nth in 0..3 {
        writer.write(piece(nth)).await.expect("somebody reads");
        assert_eq!(next(&mut reader), Some(piece(nth)));
    }
    assert!(recording.read().is_none());
    assert_eq!(writer.finish(), None, "there is nothing to keep");
}

#[tokio::test]
async fn a_writer_that_fails_or_leaves_breaks_off_what_is_read() {
    for leaves in [false, true] {
        let (mut writer, recording) = recording(Some(1 << 20), None);
        let reader = recording.read().unwrap();
        writer.write(piece(0)).await.expect("it is kept");
        match leaves {
            true => drop(writer),
            false => writer.fail("it was cut".to_owned()),
        }
        let broken = all(reader).await.expect_err("it has no end");
        assert!(broken.contains("broke off"), "{broken}");
        assert!(
            recording.read().is_none(),
            "nobody begins to read what has no end"
        );
    }
}

#[tokio::test]
async fn a_body_of_pieces_says_how_long_it_is() {
    for count in [0, 1, 2, 5] {
        let body = of_pieces((0..count).map(piece));
        let len = http_body::Body::size_hint(&body).exact();
        assert_eq!(len, Some((count * PIECE) as u64));
        assert_eq!(all(body).await.expect("whole").len(), count * PIECE);
    }
}

proptest! {
    /// Readers come, read and leave in any order: each gets every byte from the first to where it left.
    #[test]
    fn every_reader_gets_every_byte_once_and_in_order(
        steps in prop::collection::vec((0..5_usize, 1..40_usize), 1..60),
        kept in any::<bool>(),
    ) {
        let (mut writer, recording) = recording(kept.then_some(1 << 20), None);
        let mut readers: Vec<(Body, Vec<u8>)> = recording.read().map(|body| (body, Vec::new())).into_iter().collect();
        let mut written: Vec<u8> = Vec::new();
        for (what, size) in steps {
            match what {
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
        prop_assert_eq!(pieces.map(|pieces| pieces.concat()), kept.then(|| written.clone()));
        for (mut body, mut read) in readers {
            while let Some(piece) = next(&mut body) {
                read.extend(&piece);
            }
            prop_assert_eq!(&read, &written);
        }
    }
}
