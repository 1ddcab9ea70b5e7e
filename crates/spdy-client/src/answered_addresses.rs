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

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(number: usize) -> Origin {
        Origin {
            secure: true,
            host: format!("{number:05}.test"),
            port: 443,
            without_credentials: false,
        }
    }

    #[test]
    fn an_address_is_returned_once_and_only_while_the_name_has_it() {
        let (known, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let (answered, address) = (AnsweredAddresses::default(), SocketAddr::new(known, 443));
        for (addresses, expected) in [(vec![other, known], Some(address)), (vec![other], None)] {
            answered.insert(origin(1), address);
            assert_eq!(answered.take(&origin(1), &addresses), expected);
            assert_eq!(answered.take(&origin(1), &[known]), None);
        }
    }

    #[test]
    fn one_origin_past_the_limit_is_dropped() {
        let (answered, known) = (AnsweredAddresses::default(), [192, 0, 2, 1].into());
        for number in 0..=MAX_ORIGINS {
            answered.insert(origin(number), SocketAddr::new(known, 443));
        }
        let taken = (0..=MAX_ORIGINS).filter_map(|it| answered.take(&origin(it), &[known]));
        assert_eq!(taken.count(), MAX_ORIGINS);
    }
}
