//! Resources that layout requests.

use std::time::Duration;

use spdy_page::builtin;
use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};

use crate::support::soundness::assert_lawful;

const HTML: &str = "<link rel=stylesheet href=a.css><style>p { background: url(inline.png) }</style>\
    <link rel=preload as=font href=early.woff><body><img src=eager.png><img loading=lazy src=lazy.png>\
    <p style='background: url(attribute.png)'>text";
const CSS: &str =
    "@font-face { src: url(text.woff) } p { background: url(sheet.png); mask: url(old.png) }";

/// A page with a sheet, a font that is preloaded, and images.
fn page() -> Replica {
    let exchange = |path: &str, kind, content_type, body: &str| {
        let url = format!("http://a.test/{path}").parse().unwrap();
        let body = body.as_bytes().to_vec();
        Exchange::synthetic(url, kind, content_type, body)
    };
    let names = [
        "inline.png",
        "early.woff",
        "eager.png",
        "lazy.png",
        "attribute.png",
        "text.woff",
        "sheet.png",
        "old.png",
    ];
    let others = names.map(|name| match name.ends_with("woff") {
        true => exchange(name, Kind::Font, "font/woff", "x"),
        false => exchange(name, Kind::Image, "image/png", "x"),
    });
    let own = [
        exchange("", Kind::Document, "text/html", HTML),
        exchange("a.css", Kind::Stylesheet, "text/css", CSS),
    ];
    Replica {
        start: 0,
        exchanges: own.into_iter().chain(others).collect(),
        ..builtin::flags()
    }
}

/// The page with recorded times: its document arrives from 110 to 120 ms, and all else until 220 ms.
fn timed_page() -> Replica {
    let mut replica = page();
    let ms = Duration::from_millis;
    for (at, exchange) in replica.exchanges.iter_mut().enumerate() {
        exchange.started = Some(ms(if at == 0 { 20 } else { 120 }));
        (exchange.wait, exchange.receive) = (Some(ms(90)), Some(ms(10)));
    }
    replica
}

/// The text of the document before each layout, its delay, and whether the load event waits for the resource.
fn layout_of(replica: &Replica, path: &str) -> Option<(&'static str, Duration, bool)> {
    let graph = PageGraph::of(replica);
    assert_lawful(replica, &graph, "page");
    let has_path = |exchange: usize| replica.exchanges[exchange].url.path() == path;
    let mut nodes = graph.nodes.iter();
    let node = nodes.find(|node| has_path(node.exchange)).unwrap();
    let at = node.layout_at()?;
    Some((&HTML[..at as usize], node.delay, node.before_load))
}

#[test]
fn fonts_images_of_styles_and_lazy_images_wait_for_layout() {
    let replica = page();
    let place = |path| layout_of(&replica, path);
    for path in ["/text.woff", "/sheet.png", "/inline.png"] {
        let (before, delay, before_load) = place(path).unwrap();
        assert!(before.ends_with("<body>"), "{path}: {before}");
        assert_eq!((delay, before_load), (Duration::ZERO, true), "{path}");
    }
    let (before, _, before_load) = place("/lazy.png").unwrap();
    assert!(before.ends_with("src=lazy.png>") && !before_load);
    let (before, _, before_load) = place("/attribute.png").unwrap();
    assert!(before.ends_with("attribute.png)'>") && before_load);
    for path in ["/", "/a.css", "/early.woff", "/eager.png"] {
        assert_eq!(place(path), None, "{path}");
    }
}

#[test]
fn a_recorded_delay_after_the_last_sheet_and_document_is_kept() {
    let mut replica = timed_page();
    let ms = Duration::from_millis;
    let start = |replica: &mut Replica, path: &str, at: u64| {
        let mut exchanges = replica.exchanges.iter_mut();
        let exchange = exchanges.find(|exchange| exchange.url.path() == path);
        exchange.unwrap().started = Some(ms(at));
    };
    start(&mut replica, "/text.woff", 240);
    start(&mut replica, "/sheet.png", 520);
    start(&mut replica, "/old.png", 9_000);
    let delay = |path| layout_of(&replica, path).unwrap().1;
    assert_eq!(delay("/text.woff"), Duration::ZERO);
    assert_eq!(delay("/sheet.png"), ms(300));
    assert_eq!(delay("/old.png"), ms(1_000));
    // Without the end of a style sheet, it may have delayed layout.
    let mut sheets = replica.exchanges.iter_mut();
    let sheet = sheets.find(|exchange| exchange.kind == Kind::Stylesheet);
    sheet.unwrap().wait = None;
    assert_eq!(layout_of(&replica, "/old.png").unwrap().1, ms(0));
}

#[test]
fn absurd_times_of_a_recording_are_no_error() {
    let mut replica = page();
    for exchange in &mut replica.exchanges {
        exchange.started = Some(Duration::MAX / 2);
        (exchange.wait, exchange.receive) = (Some(Duration::ZERO), Some(Duration::MAX));
        exchange.observed.compute = Some(Duration::MAX);
    }
    replica.exchanges[0].started = Some(Duration::ZERO);
    assert!(layout_of(&replica, "/sheet.png").is_some());
}

#[test]
fn a_recorded_initiator_without_text_waits_for_layout_too() {
    let mut replica = page();
    replica.exchanges[1].body_is_real = false;
    let font = 7;
    assert_eq!(replica.exchanges[font].url.path(), "/text.woff");
    replica.exchanges[font].initiator = Initiator::Resource {
        index: 1,
        at_byte: None,
    };
    let (before, ..) = layout_of(&replica, "/text.woff").unwrap();
    assert!(before.ends_with("<body>"), "{before}");
    let graph = PageGraph::of(&replica);
    let mut nodes = graph.nodes.iter();
    let sheet = nodes.position(|node| node.exchange == 1).unwrap();
    let mut nodes = graph.nodes.iter();
    let node = nodes.find(|node| node.exchange == font).unwrap();
    assert_eq!(node.trigger, Trigger::Done { parent: sheet });
}

#[test]
fn a_recording_with_times_of_evaluation_has_the_delays_of_its_browser() {
    let mut replica = timed_page();
    let ms = Duration::from_millis;
    let number = |path: &str| {
        let mut exchanges = replica.exchanges.iter();
        exchanges
            .position(|exchange| exchange.url.path() == path)
            .unwrap()
    };
    let [sheet, font, image] = ["/a.css", "/text.woff", "/eager.png"].map(number);
    replica.exchanges[sheet].observed.compute = Some(ms(15));
    replica.exchanges[font].started = Some(ms(240));
    replica.exchanges[image].started = Some(ms(150));
    let graph = PageGraph::of(&replica);
    let delay = |exchange: usize| {
        let mut nodes = graph.nodes.iter();
        nodes.find(|node| node.exchange == exchange).unwrap().delay
    };
    // The sheet is evaluated at 235 ms.
    assert_eq!(delay(font), ms(5));
    // Its tag is in the last half of the document, from 115 ms on.
    assert!((ms(30)..=ms(35)).contains(&delay(image)));
}
