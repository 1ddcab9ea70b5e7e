//! What each importer makes of small recordings of every trouble it knows.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::head::Head;
use spdy_page::limits::Limits;
use spdy_page::open::{ImportOptions, OpenError, OpenedReplica, open, open_with, read};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_page::{check, coding};

use crate::support::soundness;

fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
        .to_string_lossy()
        .into_owned()
}

fn exchange<'a>(replica: &'a Replica, path: &str) -> &'a Exchange {
    let found = replica
        .exchanges
        .iter()
        .find(|exchange| exchange.url.path() == path && exchange.status() != Some(301));
    found.unwrap_or_else(|| panic!("no exchange of {path}"))
}

fn text(exchange: &Exchange) -> String {
    let codings = Head::parse(&exchange.response_head)
        .unwrap()
        .content_codings();
    String::from_utf8(
        coding::decode(&exchange.body, &codings, 1 << 20)
            .unwrap()
            .text,
    )
    .unwrap()
}

fn sound(opened: OpenedReplica) -> (Replica, spdy_page::notes::ImportNotes) {
    soundness::assert_sound(&opened.replica, "small");
    soundness::assert_lawful(&opened.replica, &PageGraph::of(&opened.replica), "small");
    (opened.replica, opened.notes)
}

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
fn a_warc_is_put_right_where_its_writer_was_wrong() {
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

#[test]
fn import_errors_are_one_sentence() {
    let why = |bytes: &'static [u8]| {
        read(Bytes::from_static(bytes), "x", &ImportOptions::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        why(b"PK\x03\x04"),
        "unknown format (starts with \"PK\\u{3}\\u{4}\"), expected a WARC, a HAR, a NetLog or a speedreport, each also gzipped"
    );
    assert_eq!(
        why(b"{}"),
        "JSON: found neither the field log of a HAR nor the field assets of a speedreport"
    );
    assert_eq!(
        why(br#"{"log":{"entries":[]}}"#),
        "no page load in the recording: the HAR has no entries"
    );
    assert_eq!(
        why(br#"{"log":{"entries":[{"request":{"url":"data:,"}}]}}"#),
        "no page load in the recording: none of 1 entries was on the wire"
    );
    assert!(why(br#"{"log":{"entries":[{]}}"#).starts_with("HAR: key must be a string"));
    assert_eq!(
        why(b"WARC/1.0\r\nA: b\r\n\r\n"),
        "WARC record 1: Content-Length is missing"
    );
    assert_eq!(
        why(b"WARC/1.0\r\nContent-Length: 9\r\n\r\nx"),
        "WARC record 1: block has 9 bytes, but only 1 bytes are left in the file"
    );
    assert_eq!(
        why(b"WARC/1.0\r\nContent-Length: 0\r\n\r\n"),
        "no page load in the recording: none of 0 responses is a document"
    );
    assert_eq!(
        open("no such thing").unwrap_err().to_string(),
        "unknown replica \"no such thing\": no such file, and the shipped replicas are flags, portal"
    );
}

/// Found by the fuzz target `har`: a recorder whose clock jumped by seven millennia gave a time that the replica's
/// file cannot keep, so that what was imported was not what was read back.
#[test]
fn a_time_beyond_what_a_file_keeps_ends_where_the_file_does() {
    let har = std::fs::read_to_string(data("small.har")).unwrap();
    let har = har.replacen("2014-05-01T10:00:00.0", "9137-05-01T10:00:00.0", 1);
    let options = ImportOptions::default();
    let replica = read(har.into(), "x", &options).unwrap().replica;
    let longest = Duration::from_nanos(u64::MAX);
    assert!(
        replica
            .exchanges
            .iter()
            .any(|exchange| exchange.started == Some(longest))
    );
    let file = spdy_page::archive::encode(&replica, false);
    assert_eq!(read(file.into(), "x", &options).unwrap().replica, replica);
}

#[test]
fn every_limit_holds_one_past_it() {
    let har = std::fs::read(data("small.har")).unwrap();
    let read = |limits: Limits| {
        read(
            har.clone().into(),
            "x",
            &ImportOptions { page: None, limits },
        )
    };
    let whole = Limits::default();
    assert!(
        read(Limits {
            file_bytes: har.len(),
            records: 11,
            body_bytes: 2_400,
            filler_bytes: 2_400 + 777,
            ..whole
        })
        .is_ok()
    );
    let limit = |limits| match read(limits) {
        Err(OpenError::Limit { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        limit(Limits {
            file_bytes: har.len() - 1,
            ..whole
        }),
        "bytes in the file"
    );
    assert_eq!(
        limit(Limits {
            records: 10,
            ..whole
        }),
        "entries"
    );
    assert_eq!(
        limit(Limits {
            body_bytes: 2_399,
            ..whole
        }),
        "bytes in a body"
    );
    assert_eq!(
        limit(Limits {
            filler_bytes: 2_400 + 776,
            ..whole
        }),
        "bytes of filler"
    );
    assert_eq!(
        limit(Limits {
            head_bytes: 60,
            ..whole
        }),
        "bytes in a literal head"
    );
}

#[test]
fn a_gzip_bomb_and_a_gzip_cut_short_are_refused() {
    let zeros = coding::encode(&vec![0; 1 << 20], "gzip", None).unwrap();
    let limits = Limits {
        inflated_bytes: (1 << 20) - 1,
        ..Limits::default()
    };
    let options = ImportOptions { page: None, limits };
    let fault = read(zeros.clone().into(), "x", &options).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "limit of 1048575 bytes of decompressed data exceeded"
    );
    let cut = Bytes::from(zeros).slice(..500);
    assert!(matches!(
        read(cut, "x", &ImportOptions::default()),
        Err(OpenError::Gzip(_))
    ));
}

#[test]
fn sizes_that_promise_the_earth_are_refused_and_not_allocated() {
    for (field, value) in [
        ("Content-Length", "18446744073709551615"),
        ("Content-Length", "999999999999"),
        ("X", "1"),
    ] {
        let har = format!(
            r#"{{"log":{{"entries":[{{"request":{{"url":"http://a.test/"}},"response":{{"status":200,"headers":[{{"name":"{field}","value":"{value}"}}],
            "content":{{"size":8999999999999999,"mimeType":"text/html"}}}}}}]}}}}"#
        );
        let fault = read(har.into(), "x", &ImportOptions::default()).unwrap_err();
        assert!(
            matches!(
                fault,
                OpenError::Limit {
                    what: "bytes in a body",
                    ..
                }
            ),
            "{fault}"
        );
    }
}

/// A page whose script, behind a redirect, once ran like a deferred one, and was not requested before its turn.
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

#[cfg(unix)]
#[test]
fn a_folder_of_links_is_read_as_what_they_lead_to() {
    let folder = tempfile::tempdir().unwrap();
    let linked = folder.path().join("mahimahi");
    std::fs::create_dir(&linked).unwrap();
    let real = std::fs::canonicalize(data("mahimahi")).unwrap();
    for entry in std::fs::read_dir(real).unwrap() {
        let entry = entry.unwrap();
        std::os::unix::fs::symlink(entry.path(), linked.join(entry.file_name())).unwrap();
    }
    let opened = open(linked.to_str().unwrap()).unwrap();
    assert_eq!(opened, open(&data("mahimahi")).unwrap());

    let nowhere = linked.join("nowhere");
    std::os::unix::fs::symlink("/no/such/file", &nowhere).unwrap();
    let message = open(linked.to_str().unwrap()).unwrap_err().to_string();
    let named = format!("cannot read {nowhere:?}: ");
    assert!(message.starts_with(&named), "{message}");
}

/// A device has no end and reports 0 bytes; opening a FIFO waits for a writer.
#[cfg(unix)]
#[test]
fn what_is_neither_file_nor_folder_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    for path in ["/dev/zero", fifo.to_str().unwrap()] {
        let message = open(path).unwrap_err().to_string();
        assert_eq!(message, format!("{path:?} is neither a file nor a folder"));
    }
    // Beside files it is passed over, as a folder is.
    for entry in std::fs::read_dir(data("mahimahi")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    let opened = open(folder.path().to_str().unwrap()).unwrap();
    let plain = open(&data("mahimahi")).unwrap();
    assert_eq!(opened.replica.exchanges, plain.replica.exchanges);
}

#[test]
fn a_folder_of_mahimahi_is_a_page_with_its_bodies_out_of_their_chunks() {
    let (replica, notes) = sound(open(&data("mahimahi")).unwrap());
    assert_eq!(replica.name, "mahimahi");
    let document = exchange(&replica, "/");
    assert_eq!(document.url.as_str(), "http://a.test:8080/");
    assert_eq!(
        &document.body[..],
        b"<!doctype html><title>t</title><img src=/b.png>"
    );
    assert_eq!(exchange(&replica, "/b.png").body.len(), 200);
    assert_eq!(
        PageGraph::of(&replica).nodes[1].trigger,
        Trigger::Bytes {
            parent: 0,
            at_byte: 47
        }
    );
    assert_eq!((notes.exchanges, notes.skipped.len()), (2, 0), "{notes}");

    let limits = |file_bytes, records| {
        let limits = Limits {
            file_bytes,
            records,
            ..Limits::default()
        };
        open_with(&data("mahimahi"), &ImportOptions { page: None, limits })
    };
    let bytes: u64 = std::fs::read_dir(data("mahimahi"))
        .unwrap()
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum();
    let bytes = usize::try_from(bytes).unwrap();
    assert!(limits(bytes, 2).is_ok());
    assert!(matches!(limits(bytes - 1, 2), Err(OpenError::Limit { .. })));
    assert!(matches!(
        limits(bytes, 1),
        Err(OpenError::Limit { limit: 1, .. })
    ));
}
