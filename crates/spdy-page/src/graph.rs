//! What needs what: the plan a page load follows. (Contract)

use std::time::Duration;

use crate::replica::{Kind, Replica};

/// When a resource becomes known.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// At the start of the load.
    Start,
    /// When `at_byte` bytes of the body of node `parent` (as transferred) have arrived (preload scanner).
    Bytes { parent: usize, at_byte: u64 },
    /// When `parent` is complete and has been evaluated (scripts, redirects, style sheets' contents).
    Done { parent: usize },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Index into `Replica::exchanges`.
    pub exchange: usize,
    pub kind: Kind,
    pub trigger: Trigger,
    /// Computation between trigger and request.
    pub delay: Duration,
    /// The HTML parser stops at this offset of `parent`'s body until this is done (synchronous script).
    pub blocks_parser_at: Option<u64>,
    /// Scripts after it wait for it (style sheet).
    pub blocks_scripts: bool,
    /// DOMContentLoaded waits for it / load waits for it.
    pub before_dom_content_loaded: bool,
    pub before_load: bool,
    /// Time to evaluate it once it is there.
    pub compute: Duration,
}

/// Nodes in the order in which a browser would find them.
#[derive(Clone, Debug, PartialEq)]
pub struct PageGraph { pub nodes: Vec<Node> }

impl PageGraph {
    /// From real bodies where there are any, else from what was recorded.
    pub fn of(replica: &Replica) -> Self { let _ = replica; todo!() }
}
