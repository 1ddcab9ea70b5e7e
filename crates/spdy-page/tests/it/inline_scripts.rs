//! Requests that inline scripts, and the callbacks of fetches, make.

use std::time::Duration;

use spdy_page::builtin;
use spdy_page::graph::{Node, PageGraph, Trigger, WaitsFor};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};

use crate::support::soundness::assert_lawful;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A page of `html` whose document arrives from 90 to 100 ms, and `others`: path, kind, start in milliseconds. Each of them takes
/// 100 ms, and scripts and sheets 1 ms more.
fn page(html: &str, others: &[(&str, Kind, u64)]) -> Replica {
    let exchange = |path: &str, kind, body: &str, started| {
        let url = format!("https://a.test/{path}").parse().unwrap();
        let mut exchange = Exchange::synthetic(url, kind, "text/plain", body.to_owned());
        exchange.started = Some(ms(started));
        (exchange.wait, exchange.receive) = (Some(ms(90)), Some(ms(10)));
        exchange.observed.compute = (kind != Kind::Document).then_some(ms(1));
        exchange
    };
    let own = [exchange("", Kind::Document, html, 0)];
    let others = others
        .iter()
        .map(|&(path, kind, started)| exchange(path, kind, "x", started));
    let mut exchanges: Vec<Exchange> = own.into_iter().chain(others).collect();
    for exchange in &mut exchanges[1..] {
        exchange.initiator = Initiator::Resource {
            index: 0,
            at_byte: None,
        };
    }
    Replica {
        start: 0,
        exchanges,
        dom_content_loaded: Some(ms(2_000)),
        load: Some(ms(3_000)),
        ..builtin::flags()
    }
}

/// The node of exchange `index`, and its parent's exchange.
fn placed(replica: &Replica, index: usize) -> (Node, usize) {
    let graph = PageGraph::of(replica);
    assert_lawful(replica, &graph, "page of inline scripts");
    let mut nodes = graph.nodes.iter();
    let node = nodes.find(|node| node.exchange == index).unwrap();
    (node.clone(), graph.nodes[node.parent().unwrap()].exchange)
}

const SHEET: &str = "<link rel=stylesheet href=slow.css>";
const SCRIPT: &str = "<script>new Image().src = '/image.png'";

#[test]
fn the_parser_waits_for_what_an_inline_script_of_the_page_requests_soon() {
    let html = format!("{SCRIPT}</script><iframe src=frame.html></iframe>");
    let waits_for = |started, dom_content_loaded| {
        let mut replica = page(&html, &[("image.png", Kind::Image, started)]);
        replica.dom_content_loaded = Some(ms(dom_content_loaded));
        placed(&replica, 1).0.waits_for
    };
    let at_byte = html.find("'</script>").unwrap() as u64;
    let by_script = Some(WaitsFor::InlineScript { at_byte });
    let at_any_time = Some(WaitsFor::Layout { at_byte });
    assert_eq!(waits_for(130, 200), by_script);
    assert_eq!(waits_for(130, 120), at_any_time, "after the event");
    assert_eq!(waits_for(330, 400), at_any_time, "by a timer");
    // A frame has its own events.
    let others = [
        ("frame.html", Kind::Document, 110),
        ("other.png", Kind::Image, 230),
    ];
    let mut replica = page(&html, &others);
    let inner = "<script>new Image().src = '/other.png'</script>";
    replica.exchanges[1].body = inner.into();
    let (node, parent) = placed(&replica, 2);
    assert_eq!(parent, 1);
    assert!(
        matches!(node.waits_for, Some(WaitsFor::Layout { .. })),
        "{node:?}"
    );
}

#[test]
fn an_icon_is_requested_by_the_page_and_by_no_script() {
    let others = [
        ("frame.html", Kind::Document, 110),
        ("s.js", Kind::Script, 230),
        ("favicon.ico", Kind::Image, 400),
    ];
    let mut replica = page("<iframe src=frame.html></iframe>", &others);
    replica.exchanges[1].body = "<script src=s.js></script>".into();
    assert_eq!(placed(&replica, 2).1, 1);
    assert_eq!(placed(&replica, 3).1, 0);
}

#[test]
fn an_inline_script_requests_when_the_parser_reaches_it() {
    let html = format!("{SHEET}{SCRIPT}</script><p>text");
    let others = [
        ("slow.css", Kind::Stylesheet, 100),
        ("image.png", Kind::Image, 207),
    ];
    let (image, parent) = placed(&page(&html, &others), 2);
    assert_eq!(parent, 0);
    let at_byte = (SHEET.len() + SCRIPT.len()) as u64 - 1;
    assert_eq!(image.layout_at(), Some(at_byte));
    // The sheet has delayed the script until 201 ms.
    assert_eq!(image.delay, ms(6));
    assert!(image.before_load && !image.before_dom_content_loaded);
}

#[test]
fn scripts_of_old_recordings_count_as_written_by_inline_scripts() {
    let html = "<script>document.write('<script src=/old.js>')</script>";
    let mut replica = page(html, &[("old.js", Kind::Script, 110)]);
    let (inserted, _) = placed(&replica, 1);
    assert_eq!(
        (inserted.blocks_parser_at, inserted.layout_at().is_some()),
        (None, true)
    );
    replica.exchanges[1].observed.compute = None;
    let (written, _) = placed(&replica, 1);
    assert!(written.blocks_parser_at.is_some());
    assert_eq!(written.layout_at(), None);
}

#[test]
fn an_inline_module_requests_after_its_imports() {
    let module = "<script type=module>import '/lib.js'; load('/image.png')</script><p>text";
    let others = [
        ("lib.js", Kind::Script, 100),
        ("image.png", Kind::Image, 209),
    ];
    let (image, parent) = placed(&page(module, &others), 2);
    assert_eq!((parent, image.delay), (1, ms(8)));
    assert!(matches!(image.trigger, Trigger::Done { .. }));
    // Without imports it runs when the document has been parsed.
    let html = module.replace("import '/lib.js';", "");
    let (image, _) = placed(&page(&html, &[("image.png", Kind::Image, 104)]), 1);
    assert_eq!(image.layout_at(), Some(html.len() as u64));
    assert_eq!(image.delay, ms(4));
}

#[test]
fn a_request_directly_after_a_fetch_is_made_by_its_callback() {
    let html = "<script>fetch('/data.json').then(show)</script><script src=app.js></script>";
    let others = [
        ("data.json", Kind::Fetch, 100),
        ("app.js", Kind::Script, 100),
        ("shown.png", Kind::Image, 1_215),
        ("near.png", Kind::Image, 220),
    ];
    let mut replica = page(html, &others);
    replica.exchanges[1].wait = Some(ms(1_100)); // until 1,210 ms
    for image in 3..5 {
        replica.exchanges[image].initiator = Initiator::Resource {
            index: 2,
            at_byte: None,
        };
    }
    let (shown, parent) = placed(&replica, 3);
    assert_eq!((parent, shown.delay), (1, ms(5)));
    let (near, parent) = placed(&replica, 4);
    assert_eq!((parent, near.delay), (2, ms(19)));
    // Times without evaluation are not exact enough to tell.
    for exchange in &mut replica.exchanges {
        exchange.observed.compute = None;
    }
    assert_eq!(placed(&replica, 3).1, 2);
}

#[test]
fn an_import_of_an_inline_module_waits_for_the_parser_and_not_for_sheets() {
    let module = "<script type=module>import '/lib.js'";
    let html = format!("{SHEET}<script src=app.js></script>{module}</script>");
    let others = [
        ("slow.css", Kind::Stylesheet, 100),
        ("app.js", Kind::Script, 150),
        ("lib.js", Kind::Script, 255),
    ];
    let (import, parent) = placed(&page(&html, &others), 3);
    let at_byte = (html.len() - "</script>".len()) as u64;
    assert_eq!(parent, 0);
    assert_eq!(import.waits_for, Some(WaitsFor::Parser { at_byte }));
    // The script has run at 251 ms.
    assert_eq!(import.delay, ms(4));
    assert!(import.before_dom_content_loaded);
}

#[test]
fn requests_around_an_event_are_made_by_its_handlers() {
    let html = "<script src=app.js></script><script>on(() => load('/inline.png'))</script>";
    let others = [
        ("app.js", Kind::Script, 100),
        ("ready.png", Kind::Image, 1_980),
        ("inline.png", Kind::Image, 2_007),
        ("loaded.png", Kind::Image, 2_990),
        ("timer.png", Kind::Image, 2_500),
    ];
    let mut replica = page(html, &others);
    for image in [2, 4, 5] {
        replica.exchanges[image].initiator = Initiator::Resource {
            index: 1,
            at_byte: None,
        };
    }
    let waits = |exchange| {
        let (node, _) = placed(&replica, exchange);
        (node.waits_for, node.delay, node.before_load)
    };
    let ready = Some(WaitsFor::DomContentLoaded);
    assert_eq!(waits(2), (ready, ms(0), true));
    assert_eq!(waits(3), (ready, ms(7), true));
    assert_eq!(waits(4), (Some(WaitsFor::Load), ms(0), false));
    assert_eq!(waits(5), (None, ms(1_000), true));
}

#[test]
fn a_deferred_script_requests_when_it_runs_and_not_after_the_event() {
    let html = "<script defer src=app.js></script><p>text";
    let others = [
        ("app.js", Kind::Script, 100),
        ("chunk.js", Kind::Script, 1_990),
    ];
    let mut replica = page(html, &others);
    replica.exchanges[0].receive = Some(ms(1_810)); // until 1,900 ms
    replica.exchanges[2].initiator = Initiator::Resource {
        index: 1,
        at_byte: None,
    };
    let (chunk, parent) = placed(&replica, 2);
    assert_eq!((parent, chunk.waits_for), (1, None));
    assert_eq!(chunk.delay, ms(89));
}

#[test]
fn the_event_does_not_wait_for_a_frame_that_its_handler_inserts() {
    let html = "<script src=h.js></script><script type=module src=app.js></script>";
    let others = [
        ("h.js", Kind::Script, 100),
        ("app.js", Kind::Script, 100),
        ("f.html", Kind::Document, 2_000),
        ("lib.js", Kind::Script, 2_010),
    ];
    let mut replica = page(html, &others);
    replica.exchanges[2].body = "import './lib.js'".into();
    replica.exchanges[3].body = "<link rel=modulepreload href=lib.js>".into();
    replica.exchanges[3].initiator = Initiator::Resource {
        index: 1,
        at_byte: None,
    };
    let (frame, _) = placed(&replica, 3);
    assert_eq!(frame.waits_for, Some(WaitsFor::DomContentLoaded));
    let (preload, parent) = placed(&replica, 4);
    assert_eq!((parent, preload.before_dom_content_loaded), (3, false));
}

#[test]
fn an_icon_that_is_a_script_imports_nothing() {
    let html = "<link rel=icon href=i.js><link rel=modulepreload href=lib.js>";
    let others = [("i.js", Kind::Script, 100), ("lib.js", Kind::Script, 100)];
    let mut replica = page(html, &others);
    replica.load = None;
    replica.exchanges[1].body = "import './lib.js'".into();
    let (preload, _) = placed(&replica, 2);
    assert_eq!(preload.waits_for, None);
}
