//! Limits how many WebSockets are open: in total, and of one client.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::config::websocket::WebSocketConfig;
use crate::sites::client_rate;

/// Those that are open. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebSocketLimit(Arc<Mutex<OpenWebSockets>>);

#[derive(Debug, Default)]
struct OpenWebSockets {
    count: usize,
    /// By the same client addresses as the miss rate.
    by_client: BTreeMap<IpAddr, usize>,
}

/// A permit for one WebSocket. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct WebSocketPermit {
    sockets: WebSocketLimit,
    client: Option<IpAddr>,
}

impl WebSocketLimit {
    fn lock(&self) -> MutexGuard<'_, OpenWebSockets> {
        self.0.lock()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().count
    }

    /// A permit for a WebSocket of the client at `from`, or the key of the limit that is reached.
    pub(crate) fn acquire(
        &self,
        from: Option<IpAddr>,
        limits: WebSocketConfig,
    ) -> Result<WebSocketPermit, &'static str> {
        let client = from.map(client_rate::source);
        let mut open = self.lock();
        if open.count >= limits.open {
            return Err("websocket.open");
        }
        if let Some(client) = client {
            let of_client = open.by_client.get(&client).copied().unwrap_or_default();
            if limits
                .per_client_limit()
                .is_some_and(|most| of_client >= most)
            {
                return Err("websocket.per_client");
            }
            open.by_client.insert(client, of_client + 1);
        }
        open.count += 1;
        let sockets = self.clone();
        Ok(WebSocketPermit { sockets, client })
    }
}

impl Drop for WebSocketPermit {
    fn drop(&mut self) {
        let mut open = self.sockets.lock();
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

    fn limits(per_client: usize, open: usize) -> WebSocketConfig {
        WebSocketConfig {
            per_client,
            open,
            ..WebSocketConfig::default()
        }
    }

    #[test]
    fn websocket_permits_are_per_client_and_global() {
        let sockets = WebSocketLimit::default();
        let from = |address: &str| Some(address.parse().expect("an address"));
        let place = |client| sockets.acquire(client, limits(2, 3));
        let first = place(from("192.0.2.1")).expect("the limit is not reached");
        let _second = place(from("192.0.2.1")).expect("the limit is not reached");
        assert_eq!(
            place(from("192.0.2.1")).expect_err("the client has two WebSockets"),
            "websocket.per_client"
        );
        let _other = place(from("2001:db8::1")).expect("a response for another client");
        assert_eq!(
            place(from("192.0.2.3")).expect_err("three are open"),
            "websocket.open"
        );
        assert_eq!(sockets.count(), 3);
        drop(first);
        let _again = place(from("192.0.2.1")).expect("a permit was released");
        assert_eq!(sockets.count(), 3);
        drop((_second, _other, _again));
        assert_eq!(sockets.count(), 0);
        assert!(sockets.lock().by_client.is_empty());
    }

    #[test]
    fn per_client_zero_allows_all_permits() {
        let sockets = WebSocketLimit::default();
        let from = Some("192.0.2.1".parse().expect("an address"));
        let place = || sockets.acquire(from, limits(0, 3));
        let _three =
            [place(), place(), place()].map(|place| place.expect("the limit is not reached"));
        assert_eq!(place().expect_err("three are open"), "websocket.open");
    }

    #[test]
    fn a_house_of_ipv6_is_one_client() {
        let sockets = WebSocketLimit::default();
        let from = |address: &str| Some(address.parse().expect("an address"));
        let _first = sockets.acquire(from("2001:db8::1"), limits(1, 9)).unwrap();
        let second = sockets.acquire(from("2001:db8:0:0f::2"), limits(1, 9));
        assert_eq!(
            second.expect_err("the folder is locked"),
            "websocket.per_client"
        );
    }
}
