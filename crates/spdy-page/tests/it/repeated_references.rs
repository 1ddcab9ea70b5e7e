//! Resources that a document names more than once: by a preload and by a tag, or by tags of different kinds.

use std::time::Duration;

use spdy_page::builtin;
use spdy_page::graph::{Node, PageGraph, Trigger};
use spdy_page::replica::{Exchange, Kind, Replica};

use crate::support::soundness::assert_lawful;

/// A page of `html` on `a.test` and of scripts, style sheets and images by path.
fn page(html: &str, others: &[&str]) -> Replica {
    let exchange = |path: &str, kind, content_type, body: &str| {
        let url = format!("http://a.test/{path}").parse().unwrap();
        Exchange::synthetic(url, kind, content_type, body.as_bytes().to_vec())
    };
    let other = |&path: &&str| match path.rsplit_once('.').unwrap().1 {
        "js" => exchange(path, Kind::Script, "text/javascript", "export {}"),
        "css" => exchange(path, Kind::Stylesheet, "text/css", "p {}"),
        _ => exchange(path, Kind::Image, "image/png", "x"),
    };
    let own = [exchange("", Kind::Document, "text/html", html)];
    Replica {
        start: 0,
        exchanges: own.into_iter().chain(others.iter().map(other)).collect(),
        ..builtin::flags()
    }
}

fn graph(replica: &Replica) -> PageGraph {
    let graph = PageGraph::of(replica);
    assert_lawful(replica, &graph, "page of preloads");
    graph
}

fn node(graph: &PageGraph, exchange: usize) -> &Node {
    let mut nodes = graph.nodes.iter();
    nodes.find(|node| node.exchange == exchange).unwrap()
}

/// The trigger behind the first `tag` of `html`.
fn behind(html: &str, tag: &str) -> u64 {
    (html.find(tag).unwrap() + tag.len()) as u64
}

#[test]
fn a_preloaded_script_is_requested_at_the_preload_and_used_at_its_tag() {
    let (preload, tag) = (
        "<link rel=preload as=script href=s.js>",
        "<script src=s.js></script>",
    );
    let html = format!("{preload}<p>text{tag}");
    let replica = page(&html, &["s.js"]);
    let graph = graph(&replica);
    let script = node(&graph, 1);
    let at_byte = behind(&html, preload);
    assert_eq!(script.trigger, Trigger::Bytes { parent: 0, at_byte });
    let at_tag = behind(&html, "<script src=s.js>");
    assert_eq!(script.blocks_parser_at, Some(at_tag));
    assert!(script.before_dom_content_loaded);
}

#[test]
fn a_preloaded_style_sheet_blocks_once_a_tag_uses_it() {
    let preloads = "<link rel=preload as=style href=a.css><link rel=preload as=style href=b.css>";
    let html = format!("{preloads}<link rel=stylesheet href=a.css><script src=s.js></script>");
    let replica = page(&html, &["a.css", "b.css", "s.js"]);
    let graph = graph(&replica);
    let [used, unused] = [node(&graph, 1), node(&graph, 2)];
    assert!(used.blocks_scripts && used.before_dom_content_loaded);
    assert!(!unused.blocks_scripts && !unused.before_dom_content_loaded);
    assert!(used.before_load && !unused.before_load);
}

#[test]
fn a_module_waits_for_an_import_that_the_document_preloads() {
    let html = "<script type=module src=app.js></script><link rel=modulepreload href=vendor.js>";
    let mut replica = page(html, &["app.js", "vendor.js", "own.js"]);
    replica.exchanges[1].body = "import './vendor.js'; import './own.js'".into();
    let graph = graph(&replica);
    let at = |exchange| {
        graph
            .nodes
            .iter()
            .position(|node| node.exchange == exchange)
    };
    let [app, vendor, own] = [1, 2, 3].map(|exchange| at(exchange).unwrap());
    assert_eq!(graph.nodes[app].imports, [vendor, own]);
    assert_eq!(graph.nodes[vendor].parent(), Some(0));
    assert_eq!(graph.nodes[own].parent(), Some(app));
}

#[test]
fn a_preloaded_image_does_not_wait_for_layout() {
    let html = "<link rel=preload as=image href=a.png><body><img loading=lazy src=a.png>";
    let graph = graph(&page(html, &["a.png"]));
    assert_eq!(node(&graph, 1).waits_for, None);
}

#[test]
fn an_image_that_is_also_named_without_lazy_loading_is_requested_at_that_tag() {
    let icon = "<link rel=icon href=a.png><body><p style='background: url(b.png)'>";
    let html = format!("{icon}<img loading=lazy src=b.png><img src=a.png><img src=b.png>");
    let graph = graph(&page(&html, &["a.png", "b.png"]));
    for (exchange, tag) in [(1, "<img src=a.png>"), (2, "<img src=b.png>")] {
        let image = node(&graph, exchange);
        let at_byte = behind(&html, tag);
        assert_eq!(image.trigger, Trigger::Bytes { parent: 0, at_byte });
        assert_eq!(image.waits_for, None);
        assert!(image.before_load);
    }
}

#[test]
fn a_url_that_was_requested_by_another_scheme_is_found() {
    let html = "<script src='https://a.test/s.js'></script><p>text";
    let graph = graph(&page(html, &["s.js"]));
    assert!(node(&graph, 1).blocks_parser_at.is_some());
}

#[test]
fn the_load_event_waits_for_a_lazy_image_that_was_requested_before_it() {
    let html = "<body><img loading=lazy src=a.png><img loading=lazy src=b.png>";
    let mut replica = page(html, &["a.png", "b.png"]);
    let ms = Duration::from_millis;
    for (exchange, started) in replica.exchanges.iter_mut().zip([0, 100, 300]) {
        exchange.started = Some(ms(started));
        (exchange.wait, exchange.receive) = (Some(ms(90)), Some(ms(5)));
    }
    replica.load = Some(ms(250));
    let graph = graph(&replica);
    let waits = [1, 2].map(|exchange| node(&graph, exchange).before_load);
    assert_eq!(waits, [true, false]);
}

#[test]
fn preloaded_scripts_keep_the_order_of_their_tags() {
    let preloads = "<link rel=preload as=script href=b.js>";
    let html = format!(
        "{preloads}<link rel=stylesheet href=slow.css><script defer src=a.js></script>\
         <script defer src=b.js></script>"
    );
    let graph = graph(&page(&html, &["b.js", "slow.css", "a.js"]));
    let at = |exchange| {
        let mut nodes = graph.nodes.iter();
        nodes.position(|node| node.exchange == exchange).unwrap()
    };
    assert!(at(2) < at(3) && at(3) < at(1));
}

#[test]
fn an_upgraded_image_follows_its_redirect() {
    let html = "<img src='http://b.test/x.png' srcset='http://b.test/x.png 1x'>";
    let mut replica = page(html, &["x.png", "y.png"]);
    for (exchange, url) in [(1, "http://b.test/x.png"), (2, "https://b.test/x.png")] {
        replica.exchanges[exchange].url = url.parse().unwrap();
    }
    let head = "HTTP/1.1 301 Moved Permanently\r\nlocation: https://b.test/x.png\r\n\r\n";
    replica.exchanges[1].response_head = head.into();
    let graph = graph(&replica);
    assert!(node(&graph, 1).is_redirect);
    let parent = node(&graph, 2).parent().unwrap();
    assert_eq!(graph.nodes[parent].exchange, 1);
}
