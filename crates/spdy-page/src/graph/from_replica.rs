//! The graph of a replica: by texts first, then by recorded data.

use crate::graph::builder::GraphBuilder;
use crate::graph::{PageGraph, inference};
use crate::replica::{Exchange, Replica};

impl PageGraph {
    /// Builds the graph by real bodies where they exist, else by recorded data.
    ///
    /// Every exchange becomes one node; the only one with [`Trigger::Start`](crate::graph::Trigger::Start) is the page's document, or the
    /// first of the redirects that led to it.
    ///
    /// # Panics
    ///
    /// If [`Replica::start`] is not the index of an exchange.
    pub fn of(replica: &Replica) -> Self {
        let mut plan = GraphBuilder::new(&replica.exchanges, replica.start);
        plan.place_start();
        inference::place_rest(&mut plan, replica);
        plan.into_graph(replica)
    }
}

/// Direct and indirect references of exchange `start`: indices in the order of their discovery, `start` first.
pub(crate) fn references_of(exchanges: &[Exchange], start: usize) -> Vec<usize> {
    let mut plan = GraphBuilder::new(exchanges, start);
    plan.place_start();
    plan.order
}
