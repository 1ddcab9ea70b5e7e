//! A pool, origins for it, and its actions as text.

use std::time::Duration;

use spdy_client::origin::Origin;
use spdy_client::pool::{Action, Pool, RequestId};
use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::protocol::Protocol;

pub(crate) const IDLE: Duration = Duration::from_secs(60);
pub(crate) const SPDY: Protocol = Protocol::Spdy(Version::V31);
pub(crate) const T0: Instant = Instant::ZERO;

pub(crate) fn origin(uri: &str) -> Origin {
    Origin::of(&uri.parse().unwrap()).unwrap()
}

pub(crate) fn plain() -> Origin {
    origin("http://a.test/")
}

pub(crate) fn secure() -> Origin {
    origin("https://a.test/")
}

/// The actions of the pool as text: `+N` connect, `R>N` assign, `-N` close.
pub(crate) fn actions(pool: &mut Pool) -> Vec<String> {
    std::iter::from_fn(|| pool.poll_action())
        .map(|action| match action {
            Action::Connect { connection, .. } => format!("+{connection}"),
            Action::Assign {
                request,
                connection,
            } => format!("{request}>{connection}"),
            Action::Close { connection } => format!("-{connection}"),
        })
        .collect()
}

pub(crate) fn enqueue(pool: &mut Pool, to: &Origin, requests: std::ops::Range<RequestId>) {
    for request in requests {
        pool.enqueue(T0, to, request, Priority::HIGHEST);
    }
}
