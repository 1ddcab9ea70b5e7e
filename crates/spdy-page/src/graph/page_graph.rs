//! The dependencies between resources: the plan that a page load follows.
//!
//! Where bodies are real, their text shows what they name, and at which byte (`html.rs`, `css.rs`). What no text names
//! is placed by what was recorded (`inference.rs`). Both build one tree over the exchanges:
//!
//! ```text
//! Start ─► redirect ─Done─► document ─Bytes 412─► a.css ─Done─► font.woff
//!                              │ ─Bytes 530─► s.js ─Done + 35 ms─► ad.html ─Bytes─► …
//!                              └ ─Bytes 900─► x.png
//! ```
//!
//! **Rules of time.** A resource that a parser finds is requested without delay. A resource that a script or a recorded
//! initiator requested waits as long as in the recording between the end of one and the start of the other, at most
//! [`MAX_DELAY`]: a longer wait was a timer. Scripts and style sheets take [`SCRIPT_COST_PER_KB`] and
//! [`STYLESHEET_COST_PER_KB`] of transferred kilobytes to evaluate, a laptop's pace of 2013, unless the recording
//! states how long it took; other kinds take nothing.

use std::time::Duration;

use crate::replica::{Kind, Replica};

/// The longest computation between a trigger and the request that it causes.
pub const MAX_DELAY: Duration = Duration::from_secs(1);

/// Time to evaluate a script, for each 1000 bytes transferred.
pub const SCRIPT_COST_PER_KB: Duration = Duration::from_micros(200);

/// Time to evaluate a style sheet, for each 1000 bytes transferred.
pub const STYLESHEET_COST_PER_KB: Duration = Duration::from_micros(50);

/// When a resource becomes known.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trigger {
    /// At the start of the load.
    Start,
    /// When `at_byte` bytes of the body of node `parent` (as transferred) have arrived (preload scanner).
    Bytes {
        /// Index of the node that names it.
        parent: usize,
        /// Bytes of the parent's body; never more than it has.
        at_byte: u64,
    },
    /// When `parent` is complete and has been evaluated (scripts, redirects, style sheets' contents).
    Done {
        /// Index of the node that asks for it.
        parent: usize,
    },
}

/// One resource in the plan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Node {
    /// Index into [`Replica::exchanges`].
    pub exchange: usize,
    /// What it is to the page.
    pub kind: Kind,
    /// When it becomes known.
    pub trigger: Trigger,
    /// Computation between trigger and request.
    pub delay: Duration,
    /// It leads to another node (its one child) and is nothing itself: followed as soon as it is there.
    pub is_redirect: bool,
    /// The parser of the document that this belongs to stops at this offset of its body until this is done
    /// (synchronous script, also one that redirects led to).
    pub blocks_parser_at: Option<u64>,
    /// Scripts after it wait for it (style sheet).
    pub blocks_scripts: bool,
    /// DOMContentLoaded of the page waits for it.
    pub before_dom_content_loaded: bool,
    /// The load event of the page waits for it.
    pub before_load: bool,
    /// Time to evaluate it once it is there.
    pub compute: Duration,
}

impl Node {
    /// The node that makes this one known; `None` at the start.
    pub fn parent(&self) -> Option<usize> {
        match self.trigger {
            Trigger::Start => None,
            Trigger::Bytes { parent, .. } | Trigger::Done { parent } => Some(parent),
        }
    }
}

/// Nodes in the order in which a browser would find them: a parent always before its children.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PageGraph {
    /// One for each exchange of the replica.
    pub nodes: Vec<Node>,
}

impl PageGraph {
    /// The index of the node of the page's own document.
    pub fn document(&self, replica: &Replica) -> Option<usize> {
        self.nodes
            .iter()
            .position(|node| node.exchange == replica.start)
    }

    /// Nodes that the head of the page's document may hint at (`Link: <...>; rel=preload`, SPDY's `rel=subresource`):
    /// load waits for them and the page's own text does not name them, so a browser learns of them late. Only kinds that a
    /// hint can ask for: style sheets, scripts, fonts and images.
    #[must_use]
    pub fn preload_candidates(&self, replica: &Replica) -> Vec<usize> {
        let document = self.document(replica);
        let is_late = |node: &Node| {
            let exchange = &replica.exchanges[node.exchange];
            matches!(
                node.kind,
                Kind::Stylesheet | Kind::Script | Kind::Font | Kind::Image
            ) && node.before_load
                && !node.is_redirect
                && node.parent() != document
                && exchange.method == http::Method::GET
                && exchange.status() == Some(200)
        };
        let nodes = self.nodes.iter().enumerate();
        nodes
            .filter(|(_, node)| is_late(node))
            .map(|(index, _)| index)
            .collect()
    }
}
