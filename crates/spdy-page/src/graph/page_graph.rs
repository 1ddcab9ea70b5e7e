//! The dependencies between the resources of a page: the plan that a page load follows.
//!
//! If a recorded body is real, its text has the references with their offsets (`html.rs`, `css.rs`). The parents of all other
//! resources are inferred from the recording (`inference.rs`). Both build one tree of the exchanges:
//!
//! ```text
//! Start ─► redirect ─Done─► document ─Bytes 412─► a.css ─Done─► font.woff
//!                              │ ─Bytes 530─► s.js ─Done + 35 ms─► ad.html ─Bytes─► …
//!                              └ ─Bytes 900─► x.png
//! ```
//!
//! **Layout.** A font or image that a style sheet or `style` attribute names, and a lazy image, also wait for layout of their
//! document: of its body's start, or of their own tag. What an inline script requests waits for the same up to the place that names it,
//! because both need the parser and the style sheets before. In a recording without times of evaluation, a script that an inline script
//! names is known with its bytes. What an inline module imports waits only for the parser. DOMContentLoaded comes after what inline
//! scripts of the page requested before it in the recording, unless a timer did.
//!
//! **Rules of time.** A resource that a parser finds is requested without delay, except in recordings by this project. A resource that a
//! script requested is delayed by the recorded time from when the script can have run to its own start, at most [`MAX_DELAY`]: a
//! longer delay was a timer. Evaluating a script or style sheet takes [`SCRIPT_COST_PER_KB`] or [`STYLESHEET_COST_PER_KB`] for each transferred
//! kilobyte (a laptop of 2013), unless the recording has the time. Inline scripts take the recorded time at the end of their document.
//! Other kinds take no time.

use std::time::Duration;

use crate::replica::{Kind, Replica};

/// The longest computation between a trigger and the request that it causes.
pub const MAX_DELAY: Duration = Duration::from_secs(1);

/// Time to evaluate a script, for each 1000 bytes transferred.
pub const SCRIPT_COST_PER_KB: Duration = Duration::from_micros(200);

/// Time to evaluate a style sheet, for each 1000 bytes transferred.
pub const STYLESHEET_COST_PER_KB: Duration = Duration::from_micros(50);

/// When a resource is discovered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Trigger {
    /// At the start of the load.
    Start,
    /// When `at_byte` bytes of the body of node `parent` (as transferred) have arrived: the preload scanner finds it there.
    Bytes {
        /// Index of the node that names it.
        parent: usize,
        /// Offset in the parent's body, at most its length.
        at_byte: u64,
    },
    /// When `parent` is complete and has been evaluated: a script, a fetch whose callback requests it, a redirect, or a style sheet that
    /// names it.
    Done {
        /// Index of the node that requests it.
        parent: usize,
    },
}

/// What a resource waits for between its trigger and its request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WaitsFor {
    /// The parser has passed this offset in the body of its document: an inline module there imports it.
    Parser {
        /// Offset in the document's body, at most its length.
        at_byte: u64,
    },
    /// Its document can be laid out up to this offset in its body: it is a font, a background or a lazy image, or an inline script
    /// there requests it at some time. No parser may wait for such a resource.
    Layout {
        /// Offset in the document's body, at most its length.
        at_byte: u64,
    },
    /// The same for an inline script of the page's own document that requested it before DOMContentLoaded. So this event, and the load
    /// event, do not come during its delay: that is the parser's too.
    InlineScript {
        /// Offset in the document's body, at most its length.
        at_byte: u64,
    },
    /// DOMContentLoaded of the page: a handler requests it.
    DomContentLoaded,
    /// The load event of the page: it is an icon, or a handler requests it.
    Load,
}

impl WaitsFor {
    /// The offset in the document's body.
    pub fn at_byte(self) -> Option<u64> {
        match self {
            Self::Parser { at_byte }
            | Self::Layout { at_byte }
            | Self::InlineScript { at_byte } => Some(at_byte),
            Self::DomContentLoaded | Self::Load => None,
        }
    }

    /// The same at another offset, if it has one.
    #[must_use]
    pub fn moved_to(self, at_byte: u64) -> Self {
        match self {
            Self::Parser { .. } => Self::Parser { at_byte },
            Self::Layout { .. } => Self::Layout { at_byte },
            Self::InlineScript { .. } => Self::InlineScript { at_byte },
            Self::DomContentLoaded | Self::Load => self,
        }
    }
}

/// One resource in the plan.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Node {
    /// Index into [`Replica::exchanges`].
    pub exchange: usize,
    /// How the page uses it.
    pub kind: Kind,
    /// When it is discovered.
    pub trigger: Trigger,
    /// What else must have happened before it is requested.
    pub waits_for: Option<WaitsFor>,
    /// Computation time between the later of both and the request.
    pub delay: Duration,
    /// It is a redirect to its only child, which is requested as soon as this response has arrived.
    pub is_redirect: bool,
    /// For a synchronous script, also behind redirects: the offset in the body of its document where the parser stops until the
    /// script has run.
    pub blocks_parser_at: Option<u64>,
    /// It is a script that its parent writes into the document (`document.write`). The parser, which stops for the parent, stops for it
    /// too.
    pub is_written: bool,
    /// It is a style sheet that later scripts wait for.
    pub blocks_scripts: bool,
    /// DOMContentLoaded of the page waits for it.
    pub before_dom_content_loaded: bool,
    /// The load event of the page waits for it.
    pub before_load: bool,
    /// Time to evaluate it after it has arrived.
    pub compute: Duration,
    /// For a module: the nodes that it imports statically, in their order. It runs after them.
    pub imports: Vec<usize>,
}

impl Node {
    /// The offset in the body of its document that must be laid out before it is requested; `None` if layout is not needed.
    pub fn layout_at(&self) -> Option<u64> {
        match self.waits_for {
            Some(WaitsFor::Layout { at_byte } | WaitsFor::InlineScript { at_byte }) => {
                Some(at_byte)
            }
            _ => None,
        }
    }

    /// The node that names or requests this one; `None` for the first.
    pub fn parent(&self) -> Option<usize> {
        match self.trigger {
            Trigger::Start => None,
            Trigger::Bytes { parent, .. } | Trigger::Done { parent } => Some(parent),
        }
    }
}

/// The resources of a page, with the trigger of each.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PageGraph {
    /// One for each exchange of the replica, in the order of discovery: a parent always precedes its children.
    pub nodes: Vec<Node>,
}

impl PageGraph {
    /// The index of the node of the page's own document.
    pub fn document(&self, replica: &Replica) -> Option<usize> {
        self.nodes
            .iter()
            .position(|node| node.exchange == replica.start)
    }

    /// Nodes that the document's response headers may have hints for (`Link: <...>; rel=preload`, SPDY's `rel=subresource`), because
    /// otherwise a browser discovers them late.
    ///
    /// The load event waits for them, and their parent is not the document. So the target of a redirect is one, even if the
    /// document names the URL that redirects to it. Only GETs with status 200, of kinds that a hint can request: style sheets,
    /// scripts, fonts and images.
    #[must_use]
    pub fn preload_candidates(&self, replica: &Replica) -> Vec<usize> {
        let document = self.document(replica);
        let is_hintable = |node: &Node| {
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
            .filter(|(_, node)| is_hintable(node))
            .map(|(index, _)| index)
            .collect()
    }
}
