//! Remembers where an origin has answered over QUIC: early data (0-RTT) is sent only to such an address.
//!
//! A connection with early data is in use before anything is known of the server. At an address that never answered, requests would
//! wait for the timeout, and no other address would be tried.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::origin::Origin;

/// Limit of origins, as of the TLS sessions that a client remembers. Beyond it, those that are last in the order of names are dropped.
const MAX_ORIGINS: usize = 256;

/// The address of each origin at which the last handshake was completed. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnsweredAddresses(Arc<Mutex<BTreeMap<Origin, SocketAddr>>>);

impl AnsweredAddresses {
    /// Removes the address of `origin`, and returns it if it is still one of `addresses`. It must be inserted again once the server has
    /// answered.
    pub(crate) fn take(&self, origin: &Origin, addresses: &[IpAddr]) -> Option<SocketAddr> {
        let address = self.0.lock().remove(origin)?;
        addresses.contains(&address.ip()).then_some(address)
    }

    /// The handshake with `origin` at `address` is complete.
    pub(crate) fn insert(&self, origin: Origin, address: SocketAddr) {
        let mut answered = self.0.lock();
        answered.insert(origin, address);
        if answered.len() > MAX_ORIGINS {
            answered.pop_last();
        }
    }
}
