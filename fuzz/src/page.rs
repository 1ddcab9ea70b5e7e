//! Properties of recorded pages (`spdy-page`): replicas, HARs, other WARCs, speedreports, NetLogs with the
//! browser's report, and the text of pages.
//!
//! - An accepted recording is valid: heads are complete, indices are in range, limits are met.
//! - Its graph is a tree of all its exchanges, and deterministic.
//! - It encodes to a replica that decodes to the same recording, and encodes the same again.

use bytes::Bytes;
use spdy_page::archive;
use spdy_page::check::check as findings;
use spdy_page::devtools::Observations;
use spdy_page::es_modules::{self, ImportMap};
use spdy_page::graph::{MAX_DELAY, PageGraph, Trigger};
use spdy_page::head::head_len;
use spdy_page::limits::Limits;
use spdy_page::netlog;
use spdy_page::open::{ImportOptions, read, read_folder};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_page::summary::Summary;

use crate::choices::Choices;
use crate::memory;

/// Small limits, so that every one is reached: a fuzzer makes only small files.
const LIMITS: Limits = Limits {
    file_bytes: 64 << 10,
    inflated_bytes: 256 << 10,
    records: 100,
    head_bytes: 4 << 10,
    body_bytes: 64 << 10,
    filler_bytes: 256 << 10,
};

/// Bytes of heap for a file of any length within the limits: the file, inflated, its bodies, decoded, and encoded
/// again, twice; and the tables of one brotli encoder, whose size at some levels does not depend on the text.
const MAX_HEAP_BYTES: usize = (24 << 20) + CODER;
const CODER: usize = 33 << 20;

/// Opens the input as a file of any format.
pub fn check_file(input: &[u8]) {
    memory::at_most(MAX_HEAP_BYTES, || {
        let page = input
            .first()
            .map(|byte| usize::from(*byte) % 3)
            .filter(|page| *page > 0);
        // The first byte determines the format, so it cannot be a choice: most files are opened unchanged, and
        // twice.
        for page in [None, page] {
            let options = ImportOptions {
                page,
                limits: LIMITS,
            };
            if let Ok(opened) = read(Bytes::copy_from_slice(input), "a/page.har.gz", &options) {
                check_replica(&opened.replica);
            }
        }
    });
}

/// Uses the input as a NetLog and, each after a NUL, messages of the browser that wrote it.
pub fn check_netlog(input: &[u8]) {
    let mut parts = input.split(|&byte| byte == 0);
    let log = parts.next().unwrap_or_default();
    check_file(log);
    memory::at_most(MAX_HEAP_BYTES, || {
        let mut observations = Observations::new(&LIMITS);
        for (number, message) in parts.enumerate() {
            // Every second one belongs to a frame of the page.
            observations.take(&String::from_utf8_lossy(message), number % 2 == 0);
            assert!(observations.in_flight() <= observations.requests());
            assert!(observations.requests() <= LIMITS.records);
        }
        if let Ok(recorded) = netlog::record(log, "log", "a fuzzer", &observations, &LIMITS) {
            check_replica(&recorded.replica);
        }
    });
}

/// Uses the input as files of a folder, each after two bytes of length.
pub fn check_folder(input: &[u8]) {
    memory::at_most(MAX_HEAP_BYTES, || {
        let (mut files, mut rest) = (Vec::new(), input);
        while let Some((length, after)) = rest.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
            let (file, left) = after.split_at(length);
            files.push((files.len().to_string(), Bytes::copy_from_slice(file)));
            rest = left;
        }
        let options = ImportOptions {
            page: None,
            limits: LIMITS,
        };
        let backwards = files.iter().rev().zip(0..);
        let backwards: Vec<(String, Bytes)> = backwards
            .map(|((_, file), number)| (format!("{number}"), file.clone()))
            .collect();
        if let Ok(opened) = read_folder(files, "a/folder/", &options) {
            check_replica(&opened.replica);
            match read_folder(backwards, "a/folder/", &options) {
                Ok(again) => assert_eq!(
                    again.replica, opened.replica,
                    "the result depends on file names"
                ),
                Err(error) => panic!("the folder is rejected with other file names: {error}"),
            }
        }
    });
}

/// Uses the input as the text of a page, a frame and a style sheet.
pub fn check_markup(input: &[u8]) {
    let (mut choices, text) = Choices::split(input);
    let kind = choices.pick(&[Kind::Document, Kind::Stylesheet, Kind::Script]);
    let kinds = [
        "text/html; charset=utf-8",
        "text/html",
        "text/css",
        "image/svg+xml",
        "",
    ];
    let content_type = choices.pick(&kinds);
    // The names that the text may use, so that parents are found.
    let named = ["/", "/a.css", "/b.js", "/c.png", "/d?e"];
    memory::at_most(MAX_HEAP_BYTES, || {
        let mut exchanges = Vec::new();
        for path in named {
            let url = format!("http://a.test{path}").parse().expect("a URL");
            let text = Bytes::copy_from_slice(if path == "/" {
                text
            } else {
                &text[..text.len() / 2]
            });
            exchanges.push(match path {
                "/" => Exchange::synthetic(url, kind, content_type, text),
                "/a.css" => Exchange::synthetic(url, Kind::Stylesheet, "text/css", text),
                _ => Exchange::synthetic(url, Kind::Other, "", ""),
            });
        }
        let replica = Replica {
            name: String::new(),
            source: String::new(),
            start: 0,
            exchanges,
            recorded: None,
            dom_content_loaded: None,
            load: None,
            paints: spdy_page::replica::Paints::default(),
            failures: Vec::new(),
        };
        check_graph(&replica);
        check_modules(&String::from_utf8_lossy(text));
        findings(&replica);
    });
}

fn check_replica(replica: &Replica) {
    check_sound(replica);
    check_graph(replica);
    for finding in findings(replica) {
        assert!(!finding.to_string().is_empty());
    }
    let _ = Summary::of(replica);
    for gzip in [false, true] {
        let file = archive::encode(replica, gzip);
        let back = match read(file.clone().into(), "x", &ImportOptions::default()) {
            Ok(back) => back.replica,
            Err(error) => panic!("the encoded replica is rejected: {error}\n{replica:?}"),
        };
        assert_eq!(&back, replica);
        assert!(
            archive::encode(&back, gzip) == file,
            "the replica encodes differently: {replica:?}"
        );
    }
}

/// Heads are complete, indices are in range, and no limit is exceeded.
fn check_sound(replica: &Replica) {
    let count = replica.exchanges.len();
    assert!(
        replica.start < count && count <= LIMITS.records,
        "{} of {count}",
        replica.start
    );
    for (index, exchange) in replica.exchanges.iter().enumerate() {
        for head in [&exchange.request_head, &exchange.response_head] {
            assert_eq!(
                head_len(head),
                Some(head.len()),
                "exchange {index}: {head:?}"
            );
        }
        assert!(
            exchange.body.len() <= LIMITS.inflated_bytes,
            "exchange {index}"
        );
        if let Initiator::Resource { index: from, .. } | Initiator::Redirect { index: from } =
            exchange.initiator
        {
            assert!(
                from < count,
                "exchange {index} of {count} has initiator {from}"
            );
        }
    }
}

/// One node per exchange, one start, parents before children, at offsets within the body.
fn check_graph(replica: &Replica) {
    let graph = PageGraph::of(replica);
    let mut seen = vec![false; replica.exchanges.len()];
    for (place, node) in graph.nodes.iter().enumerate() {
        assert!(
            !std::mem::replace(&mut seen[node.exchange], true),
            "node {place} repeats an exchange"
        );
        assert_eq!(node.trigger == Trigger::Start, place == 0, "node {place}");
        assert!(
            node.parent().is_none_or(|parent| parent < place),
            "node {place}"
        );
        if let Trigger::Bytes { parent, at_byte } = node.trigger {
            let body = &replica.exchanges[graph.nodes[parent].exchange].body;
            assert!(
                at_byte <= body.len() as u64,
                "node {place} at byte {at_byte}"
            );
        }
        assert!(
            node.before_load || !node.before_dom_content_loaded,
            "node {place}"
        );
        assert!(node.delay <= MAX_DELAY, "node {place}");
    }
    assert!(seen.iter().all(|seen| *seen), "an exchange has no node");
    assert_eq!(
        PageGraph::of(replica),
        graph,
        "the graph differs when it is built again"
    );
}

/// Imports of a script, and their targets by an import map: both are the text.
fn check_modules(text: &str) {
    let base = "http://a.test/b/".parse().expect("a URL");
    let map = ImportMap::of(&[text.to_owned()], &base);
    for specifier in es_modules::specifiers(text).into_iter().take(64) {
        let _ = map.resolve(specifier, &base);
    }
}
