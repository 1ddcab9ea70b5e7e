//! Imports of HAR files: exchanges, pages and what causes which request.

use std::time::Duration;

use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::open::{ImportOptions, OpenError, open, open_with, read};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};

use crate::support::import::{data, exchange, sound, text};
use crate::support::soundness;

#[test]
fn a_har_keeps_headers_bodies_times_and_initiators() {
    let (replica, notes) = sound(open(&data("small.har")).unwrap());
    assert_eq!(
        (
            replica.name.as_str(),
            replica.exchanges.len(),
            replica.start
        ),
        ("small", 6, 1)
    );
    assert_eq!(
        (replica.dom_content_loaded, replica.load),
        (
            Some(Duration::from_millis(320)),
            Some(Duration::from_micros(640_500))
        )
    );
    assert_eq!(
        replica.recorded.unwrap().to_string(),
        "2014-05-01T10:00:00Z"
    );
    let page = replica.document();
    assert_eq!(page.url.as_str(), "https://site.test/");
    assert_eq!(page.initiator, Initiator::Redirect { index: 0 });
    assert_eq!(page.address, Some("2001:db8::7".parse().unwrap()));
    assert_eq!(page.started, Some(Duration::from_millis(50)));
    assert_eq!(
        (page.queued, page.wait),
        (
            Some(Duration::from_millis(71)),
            Some(Duration::from_millis(41))
        )
    );
    assert_eq!(
        page.request_head,
        "GET / HTTP/1.1\r\nHost: site.test\r\naccept: text/html,*/*;q=0.8\r\n\r\n"
    );
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\ncontent-encoding: gzip\r\nset-cookie: a=1\r\nset-cookie: \
                b=2\r\n\r\n";
    assert_eq!(page.response_head, head);
    assert!(page.body_is_real && text(page).contains("Grüße"));
    assert_eq!(page.body.len(), 260, "coded again to the recorded size");
    let [css, js, png, json] =
        ["/a.css", "/b.js", "/c.png", "/f.json"].map(|path| exchange(&replica, path));
    assert!(css.body_is_real && css.body.starts_with(b"body { background"));
    assert_eq!(
        (js.body.len(), js.body_is_real, js.kind),
        (2400, false, Kind::Script)
    );
    assert_eq!(
        (png.body.len(), png.body_is_real, png.kind),
        (777, false, Kind::Image)
    );
    assert_eq!(
        (json.kind, json.initiator),
        (
            Kind::Fetch,
            Initiator::Resource {
                index: 3,
                at_byte: None
            }
        )
    );
    let skipped = "1 WebSockets, 1 data: URLs, 1 from the browser's cache, 1 without a response (blocked, failed or aborted)";
    assert_eq!(notes.skipped_line(), skipped);
    assert_eq!(
        (notes.exchanges, notes.real_bodies, notes.filler_bodies),
        (6, 4, 2)
    );
}

#[test]
fn its_graph_follows_the_text_and_the_recorded_initiator() {
    let replica = open(&data("small.har")).unwrap().replica;
    let graph = PageGraph::of(&replica);
    let node = |path: &str| {
        let is_it =
            |node: &&spdy_page::graph::Node| replica.exchanges[node.exchange].url.path() == path;
        graph.nodes.iter().rfind(is_it).unwrap()
    };
    assert_eq!(node("/").trigger, Trigger::Done { parent: 0 });
    let (css, js, png, json) = (
        node("/a.css"),
        node("/b.js"),
        node("/c.png"),
        node("/f.json"),
    );
    assert!(
        matches!(css.trigger, Trigger::Bytes { parent: 1, .. })
            && css.blocks_scripts
            && css.before_dom_content_loaded
    );
    assert!(
        matches!(js.trigger, Trigger::Bytes { parent: 1, at_byte } if js.blocks_parser_at == Some(at_byte))
    );
    assert!(
        matches!(png.trigger, Trigger::Bytes { parent: 1, .. })
            && png.before_load
            && !png.before_dom_content_loaded
    );
    let script = graph
        .nodes
        .iter()
        .position(|node| std::ptr::eq(node, js))
        .unwrap();
    assert_eq!(
        (json.trigger, json.delay),
        (Trigger::Done { parent: script }, Duration::from_millis(55))
    );
    assert!(
        !json.before_load,
        "load does not wait for what a script fetches"
    );
}

#[test]
fn a_page_is_picked_by_its_number() {
    let page = |page| {
        open_with(
            &data("small.har"),
            &ImportOptions {
                page: Some(page),
                ..ImportOptions::default()
            },
        )
    };
    let second = page(2).unwrap();
    assert_eq!(
        (
            second.replica.name.as_str(),
            second.replica.document().body.len()
        ),
        ("small-2", 30)
    );
    assert!(
        second
            .notes
            .remarks
            .contains(&"page 2 of 2 imported".to_owned())
    );
    for page_number in [0, 3] {
        let fault = page(page_number).unwrap_err();
        assert!(
            matches!(fault, OpenError::NoSuchPage { pages: 2, .. }),
            "{fault}"
        );
    }
}

#[test]
fn a_har_without_page_marks_is_cut_at_navigations() {
    let entry = |url: &str, at: &str, referer: &str, kind: &str| {
        let accept = if kind == "text/html" {
            "text/html,*/*"
        } else {
            "*/*"
        };
        format!(
            r#"{{"startedDateTime":"2013-01-01T10:00:{at}Z","request":{{"method":"GET","url":"{url}","headers":[{{"name":"Referer","value":"{referer}"}},
            {{"name":"Accept","value":"{accept}"}}]}},"response":{{"status":200,"httpVersion":"HTTP/1.1","headers":[{{"name":"Content-Type","value":"{kind}"}}],
            "content":{{"size":100,"mimeType":"{kind}"}},"bodySize":100}},"timings":{{"wait":5}}}}"#
        )
    };
    let mut entries = Vec::new();
    for (page, at) in [("one", 10), ("two", 20)] {
        let url = format!("http://a.test/{page}");
        entries.push(entry(
            &url,
            &at.to_string(),
            if page == "one" {
                ""
            } else {
                "http://a.test/one"
            },
            "text/html",
        ));
        entries.push(entry(
            &format!("{url}/frame"),
            &(at + 3).to_string(),
            &url,
            "text/html",
        ));
        entries.extend((0..6).map(|n| {
            entry(
                &format!("{url}/{n}.png"),
                &(at + 1).to_string(),
                &url,
                "image/png",
            )
        }));
    }
    let har = format!(r#"{{"log":{{"entries":[{}]}}}}"#, entries.join(","));
    for (page, name) in [(1, "one"), (2, "two")] {
        let options = ImportOptions {
            page: Some(page),
            ..ImportOptions::default()
        };
        let (replica, notes) = sound(read(har.clone().into(), "x.har", &options).unwrap());
        assert_eq!(
            (replica.exchanges.len(), replica.document().url.path()),
            (8, format!("/{name}").as_str())
        );
        assert!(
            notes
                .remarks
                .iter()
                .any(|remark| remark.contains("split at navigations into 2")),
            "{notes}"
        );
    }
}

/// Regression: a script behind a redirect ran like a deferred one, and was requested only at its turn.
#[test]
fn a_synchronous_script_behind_redirects_blocks_the_parser_at_its_tag() {
    let page = |path: &str, kind, body: &'static str| {
        let url = url::Url::parse("http://a.test/").unwrap().join(path);
        Exchange::synthetic(url.unwrap(), kind, "text/javascript", body)
    };
    let redirect = |path: &str, to: &str| Exchange {
        response_head: format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
            .into(),
        ..page(path, Kind::Script, "")
    };
    let html = "<p>text</p><script src=/a.js></script><p>more</p>";
    let mut document = page("/", Kind::Document, html);
    document.response_head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n".into();
    let replica = Replica {
        name: String::new(),
        source: String::new(),
        start: 0,
        exchanges: vec![
            document,
            redirect("/a.js", "/b.js"),
            redirect("/b.js", "/c.js"),
            page("/c.js", Kind::Script, "go()"),
        ],
        recorded: None,
        dom_content_loaded: None,
        load: None,
        paints: spdy_page::replica::Paints::default(),
        failures: Vec::new(),
    };
    let graph = PageGraph::of(&replica);
    soundness::assert_lawful(&replica, &graph, "redirected script");
    let tag_ends = html.find("</script>").unwrap() as u64;
    let found: Vec<_> = graph
        .nodes
        .iter()
        .map(|node| {
            (
                node.is_redirect,
                node.blocks_parser_at,
                node.compute.is_zero(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (false, None, true),
            (true, None, true),
            (true, None, true),
            (false, Some(tag_ends), false),
        ]
    );
}
