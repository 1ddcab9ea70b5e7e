//! Static imports of modules.

use std::time::Duration;

use spdy_page::builtin;
use spdy_page::graph::{Node, PageGraph, Trigger};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};

use crate::support::soundness::assert_lawful;

const HTML: &str = "<link rel=stylesheet href=a.css>\
    <script type=importmap>{\"imports\": {\"vue\": \"https://cdn.test/vue.js\"}}</script>\
    <script type=module src=app.js></script><script type=module>import './inline.js';\
    import('./later.js');</script><p>text";
const APP: &str = "import { a } from 'vue'; import('./lazy.js'); fetch('x.json');";

/// Document, sheet, `app.js`, and what they import. All others are requested when the text of their initiator has arrived.
fn page() -> Replica {
    let ms = Duration::from_millis;
    let mut exchanges = Vec::new();
    for (url, kind, content_type, body, initiator, started) in [
        (
            "https://a.test/",
            Kind::Document,
            "text/html",
            HTML,
            None,
            0,
        ),
        (
            "https://a.test/a.css",
            Kind::Stylesheet,
            "text/css",
            "p{}",
            Some(0),
            100,
        ),
        (
            "https://a.test/app.js",
            Kind::Script,
            "text/javascript",
            APP,
            Some(0),
            100,
        ),
        (
            "https://a.test/inline.js",
            Kind::Script,
            "text/javascript",
            "export{}",
            Some(0),
            101,
        ),
        (
            "https://a.test/later.js",
            Kind::Script,
            "text/javascript",
            "export{}",
            Some(0),
            500,
        ),
        (
            "https://cdn.test/vue.js",
            Kind::Script,
            "text/javascript",
            "export{}",
            Some(2),
            202,
        ),
        (
            "https://a.test/lazy.js",
            Kind::Script,
            "text/javascript",
            "export{}",
            Some(2),
            450,
        ),
    ] {
        let mut exchange = Exchange::synthetic(url.parse().unwrap(), kind, content_type, body);
        exchange.initiator = match initiator {
            Some(index) => Initiator::Resource {
                index,
                at_byte: None,
            },
            None => Initiator::Navigation,
        };
        exchange.started = Some(ms(started));
        (exchange.wait, exchange.receive) = (Some(ms(90)), Some(ms(10)));
        exchanges.push(exchange);
    }
    Replica {
        start: 0,
        exchanges,
        dom_content_loaded: Some(ms(400)),
        load: Some(ms(700)),
        ..builtin::flags()
    }
}

fn node(graph: &PageGraph, exchange: usize) -> &Node {
    let mut nodes = graph.nodes.iter();
    nodes.find(|node| node.exchange == exchange).unwrap()
}

#[test]
fn static_imports_of_a_module_are_requested_when_its_text_has_arrived() {
    let replica = page();
    let graph = PageGraph::of(&replica);
    assert_lawful(&replica, &graph, "page of modules");
    let app = graph.nodes.iter().position(|node| node.exchange == 2);
    let parent = app.unwrap();
    let at_byte = APP.len() as u64;
    let imported = node(&graph, 5);
    assert_eq!(imported.trigger, Trigger::Bytes { parent, at_byte });
    assert_eq!(imported.blocks_parser_at, None);
    assert!(imported.before_dom_content_loaded);
    // A dynamic import is made by the script while it runs.
    let dynamic = node(&graph, 6);
    assert_eq!(dynamic.trigger, Trigger::Done { parent });
    assert!(!dynamic.before_dom_content_loaded);
}

#[test]
fn what_a_module_requests_is_delayed_from_the_end_of_its_tree() {
    // `app.js` has arrived at 200 ms, what it imports at 302.
    let mut replica = page();
    let delay = |replica: &Replica| node(&PageGraph::of(replica), 6).delay;
    assert_eq!(delay(&replica), Duration::from_millis(148));
    // The document ends at 410 ms, and before that no module runs.
    replica.exchanges[0].receive = Some(Duration::from_millis(320));
    assert_eq!(delay(&replica), Duration::from_millis(40));
}

#[test]
fn imports_of_an_inline_module_do_not_block_the_parser() {
    let replica = page();
    let graph = PageGraph::of(&replica);
    let imported = node(&graph, 3);
    assert!(matches!(imported.trigger, Trigger::Bytes { parent: 0, .. }));
    assert_eq!(imported.blocks_parser_at, None);
    assert!(imported.before_dom_content_loaded);
    let dynamic = node(&graph, 4);
    assert!(!dynamic.before_dom_content_loaded);
    assert_eq!(dynamic.blocks_parser_at, None);
}

#[test]
fn classic_scripts_of_the_parser_still_block_it() {
    let mut replica = page();
    let html = HTML.replace("import './inline.js';", "load('inline.js');");
    replica.exchanges[0].body = html.replace("type=module>", ">").into();
    let graph = PageGraph::of(&replica);
    let found = node(&graph, 3);
    assert!(matches!(found.trigger, Trigger::Bytes { parent: 0, .. }));
    assert!(found.blocks_parser_at.is_some());
}

#[test]
fn imports_are_found_by_relative_urls_and_without_initiators() {
    // No text has the whole path, and the importing module is known only by its text.
    let mut replica = page();
    for exchange in &mut replica.exchanges[..5] {
        let path = exchange.url.path().replace('/', "/folder/");
        exchange.url.set_path(&path);
    }
    for exchange in &mut replica.exchanges {
        exchange.initiator = Initiator::Unknown;
    }
    let graph = PageGraph::of(&replica);
    assert_lawful(&replica, &graph, "page of modules in a folder");
    let inline = node(&graph, 3);
    assert!(matches!(inline.trigger, Trigger::Bytes { parent: 0, .. }));
    assert_eq!(inline.blocks_parser_at, None);
    assert!(inline.before_dom_content_loaded);
}

#[test]
fn imports_past_the_limit_of_bytes_are_not_found() {
    let mut replica = page();
    let address = "a".repeat(1 << 20);
    let map = format!("{{\"imports\": {{\"x/\": \"https://cdn.test/{address}/\"}}}}");
    let html =
        format!("<script type=importmap>{map}</script><script type=module src=app.js></script>");
    replica.exchanges[0].body = html.into();
    let long: String = (0..100).map(|n| format!("import 'x/{n}';")).collect();
    for (app, is_found) in [
        (format!("import 'https://cdn.test/vue.js';{long}"), true),
        (format!("{long}import 'https://cdn.test/vue.js';"), false),
    ] {
        replica.exchanges[2].body = app.into();
        let graph = PageGraph::of(&replica);
        let trigger = node(&graph, 5).trigger;
        assert_eq!(matches!(trigger, Trigger::Bytes { .. }), is_found);
    }
}
