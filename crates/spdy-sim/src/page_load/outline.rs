//! Positions of resources in a page: their documents, their offsets, and their order. A load does not change them.

use spdy_page::graph::{Node, Trigger};
use spdy_page::replica::Kind;

use super::modules::ModuleOrder;

/// A place in the text of a document: the node that stands there, and a node that has its place.
pub(super) type Place = (usize, usize);

/// A place at which a parser stops until a script has run.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Barrier {
    /// The document of the parser.
    pub(super) document: usize,
    /// The offset in its body.
    pub(super) at: u64,
    /// The order of scripts at one offset: those that a script writes come after it.
    turn: usize,
}

/// A page's nodes, with their documents and positions.
#[derive(Debug)]
pub(super) struct Outline<'a> {
    pub(super) nodes: &'a [Node],
    /// The nodes that a chain of triggers leads to, by index.
    pub(super) reached: Vec<usize>,
    /// The document that leads to each node, directly or by other resources.
    pub(super) document: Vec<Option<usize>>,
    /// The node whose position in that document's text counts for each node: itself, or its ancestor in the text.
    anchor: Vec<usize>,
    /// True if that text names it, or names a redirect to it.
    in_text: Vec<bool>,
    /// Where a parser stops for it.
    barriers: Vec<Option<Barrier>>,
    pub(super) modules: ModuleOrder,
}

impl<'a> Outline<'a> {
    pub(super) fn of(nodes: &'a [Node]) -> Self {
        let mut outline = Self {
            nodes,
            reached: reached(nodes),
            document: vec![None; nodes.len()],
            anchor: (0..nodes.len()).collect(),
            in_text: vec![false; nodes.len()],
            barriers: vec![None; nodes.len()],
            modules: ModuleOrder::default(),
        };
        for at in 0..outline.reached.len() {
            outline.place_node(outline.reached[at]);
        }
        outline.reached.sort_unstable();
        let mut in_page_order = outline.reached.clone();
        in_page_order.sort_by_key(|&node| outline.place(node));
        outline.modules = ModuleOrder::of(nodes, &in_page_order, &outline.document);
        outline
    }

    /// Sets the document and the position of `node`. Its parent is placed before.
    fn place_node(&mut self, node: usize) {
        let Some(parent) = parent_of(&self.nodes[node]) else {
            return;
        };
        let above = &self.nodes[parent];
        if above.kind == Kind::Document && !above.is_redirect {
            self.document[node] = Some(parent);
            self.in_text[node] = matches!(self.nodes[node].trigger, Trigger::Bytes { .. });
        } else {
            self.document[node] = self.document[parent];
            self.anchor[node] = self.anchor[parent];
            self.in_text[node] = above.is_redirect && self.in_text[parent];
        }
        self.barriers[node] = match self.nodes[node].is_written {
            true => self.barriers[parent].map(|of_parent| Barrier {
                turn: node.max(of_parent.turn + 1),
                ..of_parent
            }),
            false => self.barrier_in_text(node),
        };
    }

    fn barrier_in_text(&self, node: usize) -> Option<Barrier> {
        Some(Barrier {
            document: self.document[node].filter(|_| self.in_text[node])?,
            at: self.nodes[node].blocks_parser_at?,
            turn: node,
        })
    }

    /// Where a parser stops for `node`.
    pub(super) fn barrier(&self, node: usize) -> Option<Barrier> {
        self.barriers[node]
    }

    /// True for a script that runs after the parser has finished, and for what it imports: DOMContentLoaded waits for it, the parser
    /// does not.
    pub(super) fn is_deferred(&self, node: usize) -> bool {
        let leader = &self.nodes[self.modules.leader(node)];
        leader.kind == Kind::Script
            && leader.before_dom_content_loaded
            && leader.blocks_parser_at.is_none()
            && !leader.is_written
    }

    /// The place of `node` in the text of its document. An import has the place of its style sheet or script, and the target of a
    /// redirect that of the redirect.
    pub(super) fn place(&self, node: usize) -> Place {
        (self.anchor[node], node)
    }

    /// The turn of `node` in the order of evaluation of its document: that of its place, but imports of modules come first.
    pub(super) fn turn(&self, node: usize) -> Place {
        let position = self.modules.position(node);
        (position.unwrap_or(self.anchor[node]), node)
    }
}

pub(super) fn parent_of(node: &Node) -> Option<usize> {
    match node.trigger {
        Trigger::Start => None,
        Trigger::Bytes { parent, .. } | Trigger::Done { parent } => Some(parent),
    }
}

/// The offset in its parent at which `node` is named.
pub(super) fn reveal_at(node: &Node) -> u64 {
    match node.trigger {
        Trigger::Bytes { at_byte, .. } => at_byte,
        Trigger::Start | Trigger::Done { .. } => 0,
    }
}

/// The nodes that a chain of triggers leads to from the start, parents before their children.
fn reached(nodes: &[Node]) -> Vec<usize> {
    let mut children = vec![Vec::new(); nodes.len()];
    let mut frontier = Vec::new();
    for (child, node) in nodes.iter().enumerate() {
        match parent_of(node) {
            None => frontier.push(child),
            Some(parent) if parent < nodes.len() => children[parent].push(child),
            Some(_) => {}
        }
    }
    let mut reached = Vec::with_capacity(nodes.len());
    while let Some(node) = frontier.pop() {
        reached.push(node);
        frontier.append(&mut children[node]);
    }
    reached
}
