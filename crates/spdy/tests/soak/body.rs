//! Bodies whose every byte is known to both sides.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use spdy::{Body, SharedRuntime};

use crate::random::TestRandom;

/// The byte at a place of a body.
pub(crate) fn byte(seed: u64, at: u64) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)).wrapping_add(seed) as u8
}

pub(crate) fn piece(seed: u64, at: u64, length: u64) -> Bytes {
    (at..at + length).map(|at| byte(seed, at)).collect()
}

/// Where a body is not what it should be.
pub(crate) fn first_wrong(seed: u64, at: u64, data: &[u8]) -> Option<u64> {
    (at..)
        .zip(data)
        .find(|(at, actual)| **actual != byte(seed, *at))
        .map(|(at, _)| at)
}

/// A body in pieces that come late, and break off at the given place.
pub(crate) fn body(
    runtime: &SharedRuntime,
    mut random: TestRandom,
    seed: u64,
    length: u64,
    breaks: bool,
) -> Body {
    if !breaks && random.one_in(2) {
        return Body::full(piece(seed, 0, length));
    }
    let ends = if breaks {
        random.below(length + 1)
    } else {
        length
    };
    let runtime = runtime.clone();
    Body::from_stream(futures_util::stream::unfold(0, move |at| {
        let next = (1 + random.below(20_000)).min(ends.saturating_sub(at));
        let is_late = random.one_in(8);
        let runtime = runtime.clone();
        async move {
            if is_late {
                pause(&runtime, 3).await;
            }
            match at {
                u64::MAX => None,
                _ if at < ends => Some((Ok(piece(seed, at, next)), at + next)),
                _ if breaks => Some((Err(io::Error::other("broken off")), u64::MAX)),
                _ => None,
            }
        }
    }))
}

pub(crate) async fn pause(runtime: &SharedRuntime, millis: u64) {
    let until = runtime.now() + Duration::from_millis(millis);
    runtime.sleep_until(until).await;
}
