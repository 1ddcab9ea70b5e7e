//! Limits the number of open long-lived objects, such as WebSockets: in total, and of one client.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::sites::client_rate;

/// The open objects. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenLimit(Arc<Mutex<OpenCounts>>);

#[derive(Debug, Default)]
struct OpenCounts {
    count: usize,
    /// By the same client addresses as the miss rate.
    by_client: BTreeMap<IpAddr, usize>,
}

/// The limit that is reached.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ReachedLimit {
    /// That of the client.
    Client,
    /// The total.
    Total,
}

/// A permit for one of them. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct OpenPermit {
    limit: OpenLimit,
    client: Option<IpAddr>,
}

impl OpenLimit {
    fn lock(&self) -> MutexGuard<'_, OpenCounts> {
        self.0.lock()
    }

    /// The number of open objects.
    pub(crate) fn count(&self) -> usize {
        self.lock().count
    }

    /// A permit for one of the client at `from`, if it has fewer than `per_client`, and there are fewer than `total`.
    pub(crate) fn acquire(
        &self,
        from: Option<IpAddr>,
        per_client: Option<usize>,
        total: usize,
    ) -> Result<OpenPermit, ReachedLimit> {
        let client = from.map(client_rate::source);
        let mut open = self.lock();
        if open.count >= total {
            return Err(ReachedLimit::Total);
        }
        if let Some(client) = client {
            let of_client = open.by_client.get(&client).copied().unwrap_or_default();
            if per_client.is_some_and(|most| of_client >= most) {
                return Err(ReachedLimit::Client);
            }
            open.by_client.insert(client, of_client + 1);
        }
        open.count += 1;
        let limit = self.clone();
        Ok(OpenPermit { limit, client })
    }
}

impl Drop for OpenPermit {
    fn drop(&mut self) {
        let mut open = self.limit.lock();
        open.count -= 1;
        let Some(client) = self.client else {
            return;
        };
        match open.by_client.get_mut(&client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => _ = open.by_client.remove(&client),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_per_client_and_global() {
        let limit = OpenLimit::default();
        let from = |address: &str| Some(address.parse().expect("an address"));
        let place = |client| limit.acquire(client, Some(2), 3);
        let first = place(from("192.0.2.1")).expect("the limit is not reached");
        let _second = place(from("192.0.2.1")).expect("the limit is not reached");
        assert_eq!(
            place(from("192.0.2.1")).expect_err("the client has two"),
            ReachedLimit::Client
        );
        let _other = place(from("2001:db8::1")).expect("a permit for another client");
        assert_eq!(
            place(from("192.0.2.3")).expect_err("three are open"),
            ReachedLimit::Total
        );
        assert_eq!(limit.count(), 3);
        drop(first);
        let _again = place(from("192.0.2.1")).expect("a permit was released");
        assert_eq!(limit.count(), 3);
        drop((_second, _other, _again));
        assert_eq!(limit.count(), 0);
        assert!(limit.lock().by_client.is_empty());
    }

    #[test]
    fn without_a_limit_per_client_all_permits_are_for_one() {
        let limit = OpenLimit::default();
        let from = Some("192.0.2.1".parse().expect("an address"));
        let place = || limit.acquire(from, None, 3);
        let _three =
            [place(), place(), place()].map(|place| place.expect("the limit is not reached"));
        assert_eq!(place().expect_err("three are open"), ReachedLimit::Total);
    }

    #[test]
    fn a_56_of_ipv6_is_one_client() {
        let limit = OpenLimit::default();
        let from = |address: &str| Some(address.parse().expect("an address"));
        let _first = limit.acquire(from("2001:db8::1"), Some(1), 9).unwrap();
        let second = limit.acquire(from("2001:db8:0:0f::2"), Some(1), 9);
        assert_eq!(
            second.expect_err("the network has one"),
            ReachedLimit::Client
        );
    }
}
