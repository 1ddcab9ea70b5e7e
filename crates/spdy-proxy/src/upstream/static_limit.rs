//! Limits how many responses with files are open: in total, and of one client.
//!
//! A response whose client reads slowly has its file open, and up to two chunks of it in memory. A client above the limit waits for the end
//! of its other responses, because clients behind one address may request many files at a time.

use std::net::IpAddr;

use futures_util::future::{Either, select};
use spdy::runtime::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;

use crate::sites::client_rate;
use crate::upstream::concurrency::KeyedSemaphore;

/// Maximum number of responses with a file at a time. Each has one file open.
pub const MAX_STATIC_RESPONSES: usize = 2048;
/// Maximum number for one client: an IPv4 address, or a /56 of IPv6.
const MAX_PER_CLIENT: usize = 128;

/// The responses that are open.
#[derive(Debug, Default)]
pub(crate) struct StaticLimit {
    of_client: KeyedSemaphore<IpAddr>,
    total: KeyedSemaphore<()>,
}

/// A permit for one response. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct StaticPermit {
    _of_client: Option<OwnedSemaphorePermit>,
    _total: OwnedSemaphorePermit,
}

impl StaticLimit {
    /// A permit for a response to the client at `from`; `None` if none is free until `timeout` ends.
    pub(crate) async fn acquire(
        &self,
        from: Option<IpAddr>,
        timeout: BoxFuture<()>,
    ) -> Option<StaticPermit> {
        let permit = async {
            let of_client = match from.map(client_rate::source) {
                Some(client) => Some(self.of_client.acquire(client, MAX_PER_CLIENT).await),
                None => None,
            };
            StaticPermit {
                _of_client: of_client,
                _total: self.total.acquire((), MAX_STATIC_RESPONSES).await,
            }
        };
        match select(Box::pin(permit), timeout).await {
            Either::Left((permit, _)) => Some(permit),
            Either::Right(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn static_permits_are_per_client_and_global() {
        let limit = StaticLimit::default();
        let acquire = |client: usize| {
            let [high, low] = u16::try_from(client).expect("a small number").to_be_bytes();
            let from = Some(IpAddr::from([192, 0, high, low]));
            let permit = limit.acquire(from, Box::pin(std::future::ready(())));
            permit.now_or_never().expect("the timeout has ended")
        };
        let clients = MAX_STATIC_RESPONSES / MAX_PER_CLIENT;
        let mut permits: Vec<_> = (0..MAX_STATIC_RESPONSES)
            .map(|n| acquire(n % clients).expect("the limit is not reached"))
            .collect();
        assert!(acquire(clients).is_none(), "the total is reached");
        permits.pop();
        assert!(acquire(0).is_none(), "the client has its own");
        assert!(acquire(clients).is_some());
    }
}
