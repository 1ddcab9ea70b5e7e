//! What the head of a page's document had better hint at (`Link: <...>; rel=preload`, SPDY's `rel=subresource`).

use spdy_page::graph::{Node, PageGraph};
use spdy_page::replica::{Kind, Replica};

/// Nodes that load waits for and that the page's own text does not name, of kinds that a hint can ask for: style sheets,
/// scripts, fonts and images. A browser learns of them late.
#[must_use]
pub fn preload_candidates(replica: &Replica, graph: &PageGraph) -> Vec<usize> {
    let document = graph.document(replica);
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
    let nodes = graph.nodes.iter().enumerate();
    nodes
        .filter(|(_, node)| is_late(node))
        .map(|(index, _)| index)
        .collect()
}
