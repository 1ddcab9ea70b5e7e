//! Replicas of a few exchanges.

use spdy_page::replica::{Exchange, Replica};

/// A replica with these exchanges, without any recorded times.
pub(crate) fn replica_of(exchanges: Vec<Exchange>) -> Replica {
    Replica {
        name: "test".to_owned(),
        source: "made for a test".to_owned(),
        start: 0,
        exchanges,
        recorded: None,
        dom_content_loaded: None,
        load: None,
        paints: spdy_page::replica::Paints::default(),
        failures: Vec::new(),
    }
}
