//! Prints the tree of a replica: triggers of requests, and the resources that they block.
//!
//! ```text
//! cargo run -p spdy-page --example show_graph -- portal
//! ```

use std::io::Write as _;

use spdy_page::graph::{PageGraph, Trigger, WaitsFor};
use spdy_page::open::open;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args()
        .nth(1)
        .ok_or("usage: show_graph <replica>: a name or a path")?;
    let opened = open(&name)?;
    let graph = PageGraph::of(&opened.replica);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", opened.notes)?;
    for (index, node) in graph.nodes.iter().enumerate() {
        let exchange = &opened.replica.exchanges[node.exchange];
        let trigger = match node.trigger {
            Trigger::Start => "start".to_owned(),
            Trigger::Bytes { parent, at_byte } => format!("{parent} at {at_byte}"),
            Trigger::Done { parent } => format!("{parent} done"),
        };
        let flags = [
            ("layout", node.layout_at().is_some()),
            ("after load", node.waits_for == Some(WaitsFor::Load)),
            ("parser", node.blocks_parser_at.is_some()),
            ("scripts", node.blocks_scripts),
            ("DCL", node.before_dom_content_loaded),
            ("load", node.before_load),
        ];
        let waits: Vec<_> = flags
            .iter()
            .filter(|(_, holds)| *holds)
            .map(|(name, _)| *name)
            .collect();
        writeln!(
            out,
            "{index:4} {trigger:>14} {:>7.1} ms  {:10} {:7} B  {:24} {}",
            node.delay.as_secs_f64() * 1000.0,
            node.kind,
            exchange.body.len(),
            waits.join(" "),
            exchange.url,
        )?;
    }
    Ok(())
}
