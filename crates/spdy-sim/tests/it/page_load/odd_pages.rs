//! Unusual recorded pages: redirects, errors, unusual ports, the same URL twice. All loads end, over every protocol.
//!
//! If `SPDY_CORPUS` is a folder with folders of recordings (.har, .warc, .json, each also .gz), all of those are raced too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::Method;
use spdy_page::head;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_sim::load::Load;
use spdy_sim::network::dns::NameLookups;
use spdy_sim::options::{Push, RaceProtocol};
use spdy_sim::race::{Race, RaceNetwork};
use url::Url;

fn network() -> RaceNetwork {
    RaceNetwork::parse("down=5mbit,up=1mbit,rtt=60ms").unwrap()
}

fn exchange(url: &str, kind: Kind, status: &str, body: impl Into<Bytes>) -> Exchange {
    let body = body.into();
    let url = Url::parse(url).unwrap();
    let initiator = Initiator::Resource {
        index: 1,
        at_byte: None,
    };
    let length = body.len().to_string();
    let response_head =
        head::synthesize(&format!("HTTP/1.1 {status}"), [("Content-Length", length)]);
    Exchange {
        response_head,
        initiator,
        ..Exchange::synthetic(url, kind, "text/plain", body)
    }
}

/// A redirect to a page with one of each unusual resource.
fn odd_page() -> Replica {
    let html =
        "<html><script src=//b.test:8080/s.js></script><img src=/twice><img src=/big></html>";
    let document = exchange("http://a.test/home", Kind::Document, "200 OK", html);
    let redirect = exchange("http://a.test/", Kind::Document, "302 Found", "");
    let location = head::with_field(&redirect.response_head, "Location", Some("/home"));
    let image = |url, status, body: &'static [u8]| exchange(url, Kind::Image, status, body);
    let method = |method, exchange| Exchange { method, ..exchange };
    let noise: Vec<u8> = (0..300_000_u32)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 11) as u8)
        .collect();
    let exchanges = vec![
        Exchange {
            response_head: location,
            initiator: Initiator::Navigation,
            ..redirect
        },
        Exchange {
            initiator: Initiator::Redirect { index: 0 },
            ..document
        },
        exchange("http://b.test:8080/s.js", Kind::Script, "200 OK", "1"),
        image("http://a.test/twice", "200 OK", b"one"),
        image("http://a.test/twice", "200 OK", b"other"),
        exchange("https://a.test/big", Kind::Image, "200 OK", noise),
        image("http://a.test/gone", "404 Not Found", b"no"),
        image("http://a.test/empty", "204 No Content", b""),
        image("http://a.test/unchanged", "304 Not Modified", b""),
        image("http://192.0.2.7/by-address", "200 OK", b"x"),
        image("http://[2001:db8::7]:81/by-address", "200 OK", b"x"),
        image("http://a.test./by-the-root", "200 OK", b"x"),
        image("http://c.test./by-the-root", "200 OK", b"x"),
        method(
            Method::POST,
            image("http://a.test/beacon", "200 OK", b"thanks"),
        ),
        method(Method::HEAD, image("http://a.test/big", "200 OK", b"")),
        image("http://a.test/%7Bodd%7D?q=|^`'\"%20&x=[1]", "200 OK", b"x"),
    ];
    Replica {
        name: "odd".to_owned(),
        source: "made by a test".to_owned(),
        start: 1,
        exchanges,
        recorded: None,
        dom_content_loaded: None,
        load: None,
        paints: spdy_page::replica::Paints::default(),
        failures: Vec::new(),
    }
}

#[test]
fn a_page_of_unusual_resources_loads_over_every_protocol() {
    let page = odd_page();
    let exchanges = page.exchanges.len();
    let with_queries = Race {
        protocols: RaceProtocol::ALL.to_vec(),
        ..Race::new(vec![page], vec![network()])
    };
    let mut with_hosts_file = with_queries.clone();
    with_hosts_file.options.name_lookups = NameLookups::HostsFile;
    for load in [with_queries, with_hosts_file]
        .iter()
        .flat_map(|race| race.run(|_| ()))
    {
        assert!(
            load.failures.is_empty(),
            "{}: {:#?}",
            load.protocol,
            load.failures
        );
        assert_eq!(
            (load.waterfall.len(), load.requests),
            (exchanges, exchanges as u64),
            "{}",
            load.protocol
        );
        let statuses: BTreeSet<u16> = load.waterfall.iter().map(|row| row.status).collect();
        assert_eq!(
            statuses.into_iter().collect::<Vec<_>>(),
            [200, 204, 302, 304, 404],
            "{}",
            load.protocol
        );
    }
}

/// A page with a video that was recorded whole, one recorded in two parts, and one that was cut off.
fn page_of_parts() -> Replica {
    let mut page = odd_page();
    let part = |url, range: &str, body: &'static str| {
        let length = body.len().to_string();
        let fields = [
            ("Content-Range", range),
            ("ETag", "\"a\""),
            ("Content-Length", &length),
        ];
        Exchange {
            response_head: head::synthesize("HTTP/1.1 206 Partial Content", fields),
            ..exchange(url, Kind::Media, "206 Partial Content", body)
        }
    };
    page.exchanges.truncate(2);
    page.exchanges.extend([
        part("http://a.test/whole", "bytes 0-9/10", "0123456789"),
        part("http://a.test/halves", "bytes 0-4/10", "01234"),
        part("http://a.test/halves", "bytes 5-9/10", "56789"),
        part("http://a.test/cut", "bytes 0-9/10", "0123"),
        part("http://a.test/middle", "bytes 3-4/10", "34"),
    ]);
    page
}

#[test]
fn a_recorded_part_is_requested_by_its_range_and_served_unchanged() {
    let page = page_of_parts();
    let sizes: Vec<usize> = page.exchanges.iter().map(|it| it.body.len()).collect();
    let race = Race {
        protocols: RaceProtocol::ALL.to_vec(),
        ..Race::new(vec![page], vec![network()])
    };
    let mut pushing = race.clone();
    pushing.options.push = Push::All;
    for load in [race, pushing].iter().flat_map(|race| race.run(|_| ())) {
        assert_eq!(load.failures, [""; 0], "{}", load.protocol);
        let rows = load.waterfall.iter();
        let seen: Vec<(u16, u64)> = rows.map(|row| (row.status, row.body_bytes)).collect();
        let expected: Vec<(u16, u64)> = [302, 200, 206, 206, 206, 206, 206]
            .into_iter()
            .zip(sizes.iter().map(|&size| size as u64))
            .collect();
        assert_eq!(seen, expected, "{}", load.protocol);
    }
}

#[test]
fn a_cancelled_transfer_delays_what_is_loaded_after_it() {
    const READ_BYTES: u64 = 100_000;
    let loads = |range_bytes: u64| {
        let mut page = page_of_parts();
        page.exchanges.truncate(2);
        let range = format!("bytes 0-{}/{range_bytes}", range_bytes - 1);
        let body = vec![b'v'; READ_BYTES as usize];
        let mut video = Exchange {
            response_head: head::synthesize(
                "HTTP/1.1 206 Partial Content",
                [("Content-Range", range)],
            ),
            ..exchange("http://a.test/video", Kind::Media, "206 Part", body)
        };
        video.observed.protocol = Some("http/1.1".to_owned());
        // Requested when the video has ended, from another host.
        let after = Exchange {
            initiator: Initiator::Resource {
                index: 2,
                at_byte: None,
            },
            ..exchange("http://b.test/after", Kind::Image, "200 OK", "image")
        };
        page.exchanges.extend([video, after]);
        let race = Race {
            protocols: RaceProtocol::ALL.to_vec(),
            ..Race::new(vec![page], vec![network()])
        };
        race.run(|_| ())
    };
    for (exact, cancelled) in loads(READ_BYTES).iter().zip(&loads(10 * READ_BYTES)) {
        let protocol = &cancelled.protocol;
        assert_eq!(cancelled.failures, [""; 0], "{protocol}");
        let rows = |load: &Load| {
            let [.., video, after] = &load.waterfall[..] else {
                panic!("{protocol}: {} rows", load.waterfall.len());
            };
            (video.body_bytes, after.done - after.needed)
        };
        let ((read_bytes, exact_time), (all_bytes, time)) = (rows(exact), rows(cancelled));
        assert_eq!(
            (read_bytes, all_bytes),
            (READ_BYTES, READ_BYTES),
            "{protocol}"
        );
        // A round trip of the link is 37,500 bytes.
        let more_bytes = cancelled.bytes_down as i64 - exact.bytes_down as i64;
        let expected = 20_000..8 * READ_BYTES as i64;
        assert!(expected.contains(&more_bytes), "{protocol}: {more_bytes}");
        assert!(time > exact_time, "{protocol}: {time:?}, {exact_time:?}");
    }
}

#[test]
fn an_invalid_request_fails_and_the_load_continues() {
    let mut page = odd_page();
    page.exchanges
        .push(exchange("ftp://a.test/x", Kind::Image, "200 OK", "x"));
    for load in Race::new(vec![page], vec![network()]).run(|_| ()) {
        let expected = "ftp://a.test/x: scheme \"ftp\" needs no request over a network";
        assert_eq!(load.failures, [expected], "{}", load.protocol);
        assert!(load.load_ms > 0.0);
    }
}

fn did_not_end(load: &Load) -> Option<&String> {
    load.failures
        .iter()
        .find(|failure| failure.starts_with("the load did not end"))
}

fn recordings(corpus: &Path) -> Vec<PathBuf> {
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let read = std::fs::read_dir(folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        read.map(|entry| entry.unwrap().path()).collect()
    };
    let folders = entries(corpus).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<_> = folders.flat_map(|folder| entries(&folder)).collect();
    files.sort();
    files
}

#[test]
fn every_recording_of_a_corpus_loads_over_every_protocol() {
    let Some(corpus) = std::env::var_os("SPDY_CORPUS") else {
        return; // not every machine has a corpus
    };
    let mut raced = 0;
    for file in recordings(Path::new(&corpus)) {
        let name = file.display().to_string();
        let Ok(opened) = spdy_page::open::open(&name) else {
            continue; // no page load in it, or no recording
        };
        raced += 1;
        for load in Race::new(vec![opened.replica], vec![network()]).run(|_| ()) {
            assert_eq!(did_not_end(&load), None, "{name} over {}", load.protocol);
            assert!(
                load.failures.is_empty(),
                "{name} over {}: {:#?}",
                load.protocol,
                load.failures
            );
        }
    }
    assert!(raced > 0, "no recording in {}", corpus.display());
}
