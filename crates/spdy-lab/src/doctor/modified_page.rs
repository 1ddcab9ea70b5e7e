//! A page with one change.

use spdy_page::graph::{Node, PageGraph, Trigger};
use spdy_page::head;
use spdy_page::replica::Replica;
use spdy_sim::load::{Page, folded};
use spdy_sim::options::{Options, Push, RaceProtocol};
use spdy_sim::race::RaceNetwork;

use super::case::ExaminationCase;
use super::remedy::{Remedy, own_host};

/// The inputs of a load.
pub(super) struct ModifiedPage {
    pub(super) page: Page,
    pub(super) protocol: RaceProtocol,
    pub(super) network: RaceNetwork,
    pub(super) options: Options,
}

impl ModifiedPage {
    /// The unchanged page.
    pub(super) fn unmodified(case: &ExaminationCase, graph: &PageGraph) -> Self {
        Self {
            page: Page::with_graph(case.replica.clone(), graph.clone()),
            protocol: case.protocol,
            network: case.network.clone(),
            options: case.options.clone(),
        }
    }

    /// The page with `remedy`.
    pub(super) fn with(case: &ExaminationCase, graph: &PageGraph, remedy: &Remedy) -> Self {
        let mut treated = Self::unmodified(case, graph);
        match remedy {
            Remedy::Fold { hosts, .. } => {
                treated.page = Page::with_graph(folded(&case.replica, hosts), graph.clone());
            }
            Remedy::Push => {
                treated.options.push = treated.options.push.max(Push::ByGraph);
            }
            Remedy::Hint { nodes, .. } => treated.page = treated.page.with_hints(nodes.clone()),
            Remedy::Later { node, .. } => {
                let mut graph = graph.clone();
                let node = &mut graph.nodes[*node];
                node.blocks_parser_at = None;
                node.is_written = false;
                node.blocks_scripts = false;
                node.before_dom_content_loaded = false;
                treated.page = Page::with_graph(case.replica.clone(), graph);
            }
            Remedy::Without { host, .. } => {
                let graph = without(&case.replica, graph, host);
                treated.page = Page::with_graph(case.replica.clone(), graph);
            }
            Remedy::Protocol { protocol } => treated.protocol = *protocol,
            Remedy::Network { .. } => treated.network = Self::network(case, remedy),
        }
        treated
    }

    /// The network of loads with `remedy`.
    pub(super) fn network(case: &ExaminationCase, remedy: &Remedy) -> RaceNetwork {
        let mut network = case.network.clone();
        if let Remedy::Network { change } = remedy {
            network.profile = change.apply(&network.profile);
        }
        network
    }
}

/// `graph` without the nodes of `host`, and without nodes that only those lead to.
fn without(replica: &Replica, graph: &PageGraph, host: &str) -> PageGraph {
    debug_assert_ne!(host, own_host(replica), "a page without itself");
    let mut new_index: Vec<Option<usize>> = Vec::with_capacity(graph.nodes.len());
    let mut nodes: Vec<Node> = Vec::new();
    for node in &graph.nodes {
        // A parent precedes its children.
        let parent = node.parent().map(|parent| new_index[parent]);
        let goes = head::authority(&replica.exchanges[node.exchange].url) == host;
        if goes || parent == Some(None) {
            new_index.push(None);
            continue;
        }
        let mut node = node.clone();
        if let Trigger::Bytes { parent: at, .. } | Trigger::Done { parent: at } = &mut node.trigger
            && let Some(now) = parent.flatten()
        {
            *at = now;
        }
        new_index.push(Some(nodes.len()));
        nodes.push(node);
    }
    for node in &mut nodes {
        let imports = node.imports.iter();
        node.imports = imports.filter_map(|&import| new_index[import]).collect();
    }
    PageGraph { nodes }
}

#[cfg(test)]
mod tests {
    use spdy_page::builtin;
    use spdy_page::replica::{Exchange, Kind};

    use super::*;

    #[test]
    fn modules_of_a_page_without_a_host_import_the_same() {
        let html = "<img src=https://b.test/x.png><script type=module src=app.js></script>";
        let exchange = |url: &str, kind, body: &str| {
            let url = url.parse().expect("a URL");
            Exchange::synthetic(url, kind, "text/plain", body.to_owned())
        };
        let replica = Replica {
            start: 0,
            exchanges: vec![
                exchange("https://a.test/", Kind::Document, html),
                exchange("https://b.test/x.png", Kind::Image, "x"),
                exchange("https://a.test/app.js", Kind::Script, "import './lib.js'"),
                exchange("https://a.test/lib.js", Kind::Script, "export {}"),
            ],
            ..builtin::flags()
        };
        let graph = without(&replica, &PageGraph::of(&replica), "b.test");
        let exchanges = graph.nodes.iter().map(|node| node.exchange);
        assert_eq!(exchanges.collect::<Vec<_>>(), [0, 2, 3]);
        assert_eq!(graph.nodes[1].imports, [2]);
    }
}
