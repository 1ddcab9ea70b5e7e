//! Imports of WARC files.

use spdy_page::check;
use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::open::{ImportOptions, open, open_with};

use crate::support::import::{data, exchange, sound, text};

#[test]
fn errors_of_warc_writers_are_corrected() {
    let (replica, notes) = sound(open(&data("small.warc")).unwrap());
    let paths: Vec<_> = replica
        .exchanges
        .iter()
        .map(|exchange| exchange.url.path())
        .collect();
    assert_eq!(
        paths,
        ["/", "/a.css", "/b.js", "/c.gif", "/frame.html", "/d.png"]
    );
    assert!(
        replica.document().body.starts_with(b"<html>")
            && replica
                .document()
                .response_head
                .ends_with(b"chunked\r\n\r\n")
    );
    assert_eq!(exchange(&replica, "/c.gif").body.len(), 43);
    let script = exchange(&replica, "/b.js");
    assert!(
        script.body.starts_with(&[0x1f, 0x8b])
            && script.body.len() == 150
            && text(script).ends_with("decoded\n")
    );
    assert!(
        exchange(&replica, "/frame.html")
            .response_head
            .ends_with(b"Content-Length: 13\r\n\r\n")
    );
    assert!(
        !exchange(&replica, "/a.css")
            .response_head
            .windows(2)
            .any(|window| window == b"-1")
    );
    assert_eq!(
        exchange(&replica, "/").address,
        Some("192.0.2.9".parse().unwrap())
    );
    let findings = check::check(&replica);
    assert!(findings.is_empty(), "{findings:?}");
    assert_eq!(
        notes.skipped_line(),
        "2 of other pages, 1 records that are not exchanges, 1 revisits of records that are not in the file"
    );
    let graph = PageGraph::of(&replica);
    let image = graph
        .nodes
        .iter()
        .find(|node| replica.exchanges[node.exchange].url.path() == "/d.png")
        .unwrap();
    assert!(
        matches!(image.trigger, Trigger::Done { .. }),
        "the sheet names it"
    );
}

#[test]
fn a_second_page_of_a_warc_has_its_revisited_resources() {
    let options = ImportOptions {
        page: Some(2),
        ..ImportOptions::default()
    };
    let (replica, _) = sound(open_with(&data("small.warc"), &options).unwrap());
    let paths: Vec<_> = replica
        .exchanges
        .iter()
        .map(|exchange| exchange.url.path())
        .collect();
    assert_eq!(paths[..2], ["/next", "/a.css"]);
    assert!(replica.exchanges[1].body.starts_with(b"p { color"));
}
