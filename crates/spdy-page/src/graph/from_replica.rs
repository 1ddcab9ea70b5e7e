//! The graph of a replica: texts first, then what was recorded.

use crate::graph::builder::GraphBuilder;
use crate::graph::{PageGraph, inference};
use crate::replica::{Exchange, Replica};

impl PageGraph {
    /// From real bodies where there are any, else from what was recorded.
    ///
    /// Every exchange becomes one node; the only one with [`Trigger::Start`](crate::graph::Trigger::Start) is the page's document, or the
    /// first of the redirects that led to it.
    ///
    /// # Panics
    ///
    /// If [`Replica::start`] is no index of an exchange.
    pub fn of(replica: &Replica) -> Self {
        let mut plan = GraphBuilder::new(&replica.exchanges, replica.start);
        plan.place_start();
        inference::place_rest(&mut plan, replica);
        plan.into_graph(replica.load)
    }
}

/// What the texts of exchange `start` name, directly or not: indices in the order of their discovery, `start` first.
pub(crate) fn references_of(exchanges: &[Exchange], start: usize) -> Vec<usize> {
    let mut plan = GraphBuilder::new(exchanges, start);
    plan.place_start();
    plan.order
}
