//! The doctor's results, where they can be calculated by hand: on links so fast that only round trips count.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use spdy_lab::doctor::examination::{Examination, ExaminationCase, RemedyResult};
use spdy_lab::doctor::remedy::{Degradation, Remedy};
use spdy_page::builtin;
use spdy_page::head;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;
use url::Url;

/// Round-trip time of the link, ms.
const RTT: f64 = 100.0;
/// A round trip with the latency of both programs, ms.
const ROUND_TRIP: f64 = RTT + 0.6;
/// Everything except round trips: serialisation at 1 Gbit/s, evaluation of a few bytes.
const SLACK: f64 = 2.0;

const CSS: &str = "@font-face { font-family: x; src: url(/x.woff) }";

/// Document, a sheet on its own host that names a font there, an image on another host, and one on a third.
fn page() -> Replica {
    let html = "<html><head><link rel=stylesheet href=/s.css></head><body>\
                <img src=//img.test/i.png><img src=//ads.test/a.png></body></html>";
    let exchange = |url, kind, media, body: &str| {
        Exchange::synthetic(Url::parse(url).unwrap(), kind, media, body.to_owned())
    };
    let document = exchange("http://www.test/", Kind::Document, "text/html", html);
    Replica {
        name: "small".to_owned(),
        source: "made by a test".to_owned(),
        start: 0,
        exchanges: vec![
            Exchange {
                initiator: Initiator::Navigation,
                ..document
            },
            exchange("http://www.test/s.css", Kind::Stylesheet, "text/css", CSS),
            exchange("http://www.test/x.woff", Kind::Font, "font/woff", "font"),
            exchange("http://img.test/i.png", Kind::Image, "image/png", "i"),
            exchange("http://ads.test/a.png", Kind::Image, "image/png", "a"),
        ],
        recorded: None,
        dom_content_loaded: None,
        load: None,
        paints: spdy_page::replica::Paints::default(),
        failures: Vec::new(),
    }
}

fn case(replica: Replica, protocol: RaceProtocol) -> ExaminationCase {
    ExaminationCase {
        replica,
        network: RaceNetwork::parse("down=1gbit,up=1gbit,rtt=100ms").unwrap(),
        protocol,
        options: Options::default(),
        runs: 1,
        seed: 1,
    }
}

fn examine(case: &ExaminationCase) -> Examination {
    case.examine(None, |_, _| ControlFlow::Continue(()))
        .unwrap()
}

/// The one finding whose remedy satisfies `is_it`.
fn find(examination: &Examination, is_it: impl Fn(&Remedy) -> bool) -> &RemedyResult {
    let found: Vec<_> = examination
        .findings
        .iter()
        .filter(|it| is_it(&it.remedy))
        .collect();
    assert_eq!(found.len(), 1, "{:#?}", examination.findings);
    found[0]
}

fn saves_round_trips(finding: &RemedyResult, round_trips: f64) {
    saves_ms(finding, round_trips * ROUND_TRIP);
}

fn saves_ms(finding: &RemedyResult, ms: f64) {
    assert!(finding.is_whole, "{finding:?}");
    assert!(
        (finding.load.median_ms - ms).abs() < SLACK,
        "{ms} ms: {finding:#?}"
    );
}

#[test]
fn each_remedy_saves_its_expected_round_trips() {
    let examination = examine(&case(page(), RaceProtocol::Spdy));
    assert!(
        examination.failures.is_empty(),
        "{:?}",
        examination.failures
    );
    assert_eq!(examination.host, "www.test");
    // Name, TCP, TLS and the document are four round trips. Images of other hosts then take four more, and the font takes two, after
    // its style sheet.
    let now = examination.now.load_ms / ROUND_TRIP;
    assert!((now - 8.0).abs() < SLACK / ROUND_TRIP, "{examination:#?}");
    let fold = |fold_hosts: &[&str]| {
        let fold_hosts = fold_hosts.to_vec();
        find(
            &examination,
            move |remedy| matches!(remedy, Remedy::Fold { hosts, .. } if *hosts == fold_hosts),
        )
    };
    // With one host folded, the other takes as long as before. With both, the font is last, at six.
    saves_round_trips(fold(&["img.test"]), 0.0);
    saves_round_trips(fold(&["ads.test"]), 0.0);
    let all = find(
        &examination,
        |remedy| matches!(remedy, Remedy::Fold { hosts, .. } if hosts.len() == 2),
    );
    saves_round_trips(all, 2.0);
    assert!((all.then.connections - 1.0).abs() < 0.1, "{all:?}");
}

#[test]
fn a_hint_for_a_style_sheets_resource_saves_a_round_trip() {
    let mut replica = page();
    replica.exchanges.truncate(3);
    let examination = examine(&case(replica, RaceProtocol::Spdy));
    let hint = find(&examination, |remedy| matches!(remedy, Remedy::Hint { .. }));
    saves_round_trips(hint, 1.0);
    let Remedy::Hint { urls, .. } = &hint.remedy else {
        unreachable!()
    };
    assert_eq!(*urls, ["http://www.test/x.woff"]);
    // A push saves both.
    saves_round_trips(find(&examination, |remedy| *remedy == Remedy::Push), 2.0);
}

#[test]
fn a_removed_host_delays_nothing() {
    let mut replica = page();
    replica.exchanges.truncate(4);
    let examination = examine(&case(replica, RaceProtocol::Spdy));
    let without = find(&examination, |remedy| {
        matches!(remedy, Remedy::Without { .. })
    });
    saves_round_trips(without, 2.0);
}

#[test]
fn a_redirect_to_the_page_is_never_removed() {
    let mut replica = page();
    replica.exchanges.truncate(1);
    let redirect = replica.exchanges[0].clone();
    let location = head::with_field(
        &redirect.response_head,
        "Location",
        Some("http://www.test/"),
    );
    let url = Url::parse("http://test/").unwrap();
    let status = b"HTTP/1.1 301 Moved Permanently".as_slice();
    let rest = &location[location.iter().position(|byte| *byte == b'\r').unwrap()..];
    replica.exchanges.insert(
        0,
        Exchange {
            response_head: [status, rest].concat().into(),
            url,
            ..redirect
        },
    );
    replica.exchanges[1].initiator = Initiator::Redirect { index: 0 };
    replica.start = 1;
    let examination = examine(&case(replica, RaceProtocol::Spdy));
    let without = |finding: &RemedyResult| matches!(finding.remedy, Remedy::Without { .. });
    assert!(
        !examination.findings.iter().any(without),
        "{examination:#?}"
    );
    let fold = find(&examination, |remedy| matches!(remedy, Remedy::Fold { .. }));
    saves_round_trips(fold, 3.0);
}

#[test]
fn an_async_script_does_not_block_the_parser() {
    let mut replica = page();
    let html = "<html><script src=//ads.test/s.js></script></html>";
    let script = Url::parse("http://ads.test/s.js").unwrap();
    replica.exchanges.truncate(1);
    replica.exchanges[0] = Exchange {
        initiator: Initiator::Navigation,
        ..Exchange::synthetic(
            replica.exchanges[0].url.clone(),
            Kind::Document,
            "text/html",
            html,
        )
    };
    replica.exchanges.push(Exchange::synthetic(
        script,
        Kind::Script,
        "text/javascript",
        "1",
    ));
    let examination = examine(&case(replica, RaceProtocol::Spdy));
    let later = find(&examination, |remedy| {
        matches!(remedy, Remedy::Later { .. })
    });
    saves_round_trips(later, 0.0);
    let saved = later.dom_content_loaded.median_ms / ROUND_TRIP;
    assert!((saved - 4.0).abs() < SLACK / ROUND_TRIP, "{later:#?}");
}

#[test]
fn twice_the_round_trip_time_takes_twice_as_long() {
    let examination = examine(&case(page(), RaceProtocol::Spdy));
    let worse = find(&examination, |remedy| {
        matches!(
            remedy,
            Remedy::Network {
                change: Degradation::DoubleRtt
            }
        )
    });
    saves_ms(worse, -8.0 * RTT); // programs are not slower
}

#[test]
fn loads_by_http3_are_repeated_even_without_loss() {
    for (protocol, runs) in [(RaceProtocol::Spdy, 1), (RaceProtocol::H3, 3)] {
        let case = ExaminationCase {
            runs: 3,
            ..case(page(), protocol)
        };
        assert_eq!(examine(&case).runs, runs, "{protocol}");
    }
}

#[test]
fn a_network_with_more_loss_keeps_its_loss() {
    let losing = |loss: &str| {
        let spec = format!("down=1gbit,up=1gbit,rtt=100ms,loss={loss}");
        let case = ExaminationCase {
            network: RaceNetwork::parse(&spec).unwrap(),
            ..case(page(), RaceProtocol::Spdy)
        };
        let findings = examine(&case).findings;
        let is_loss = |finding: &RemedyResult| {
            matches!(
                finding.remedy,
                Remedy::Network {
                    change: Degradation::Loss
                }
            )
        };
        findings.iter().any(is_loss)
    };
    assert!(losing("0") && losing("0.1%"));
    assert!(!losing("1%") && !losing("5%"));
}

#[test]
fn an_examination_is_deterministic_on_any_number_of_threads() {
    let replica = builtin::NAMES.map(|name| {
        spdy_page::open::open_with(name, &Default::default())
            .unwrap()
            .replica
    });
    for replica in replica {
        let case = ExaminationCase {
            network: RaceNetwork::parse("down=2mbit,up=384kbit,rtt=80ms,loss=0.01").unwrap(),
            runs: 2,
            ..case(replica, RaceProtocol::Spdy)
        };
        let alone = case.examine(NonZeroUsize::new(1), |_, _| ControlFlow::Continue(()));
        assert_eq!(alone, Some(examine(&case)));
    }
}

#[test]
fn a_cancelled_examination_has_no_result() {
    let case = case(page(), RaceProtocol::H2);
    let result = case.examine(None, |done, total| {
        assert!(done <= 3 && total > 3, "{done} of {total}");
        if done < 3 {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    assert_eq!(result, None);
}

/// A page of `http://www.a.test/` with one image on each of `others`.
fn page_with_hosts(others: &[&str]) -> Replica {
    let images = others
        .iter()
        .map(|host| format!("<img src=http://{host}/i.png>"));
    let html = format!("<html>{}</html>", images.collect::<String>());
    let exchange = |url: &str, kind, media, body: &str| {
        Exchange::synthetic(Url::parse(url).unwrap(), kind, media, body.to_owned())
    };
    let mut replica = page();
    replica.exchanges = vec![exchange(
        "http://www.a.test/",
        Kind::Document,
        "text/html",
        &html,
    )];
    replica.exchanges.extend(others.iter().map(|host| {
        exchange(
            &format!("http://{host}/i.png"),
            Kind::Image,
            "image/png",
            "i",
        )
    }));
    replica
}

#[test]
fn hosts_of_the_pages_own_site_are_never_removed() {
    let hosts = [
        "www.a.test:8080",
        "static.a.test",
        "a.test",
        "b.test",
        "cdn.b.test",
    ];
    let examination = examine(&case(page_with_hosts(&hosts), RaceProtocol::H2));
    let left_out: Vec<&str> = examination
        .findings
        .iter()
        .filter_map(|finding| match &finding.remedy {
            Remedy::Without { host, .. } => Some(&host[..]),
            _ => None,
        })
        .collect();
    assert_eq!(left_out, ["b.test", "cdn.b.test"]);
}

#[test]
fn differences_within_chance_are_not_reported() {
    let of_loss = |runs| {
        let case = ExaminationCase {
            runs,
            network: RaceNetwork::parse("down=5mbit,up=1mbit,rtt=40ms").unwrap(),
            ..case(page(), RaceProtocol::H2)
        };
        let examination = examine(&case);
        assert_eq!(
            examination.runs, 1,
            "there is no chance in the page as it is"
        );
        let is_loss = |it: &Remedy| {
            *it == Remedy::Network {
                change: Degradation::Loss,
            }
        };
        find(&examination, is_loss).clone()
    };
    let single = of_loss(1);
    assert!(!single.load.is_certain, "one seed: {single:?}");
    let few = of_loss(2);
    assert!(!few.load.is_certain, "two seeds: {few:?}");
    // A page of five small files seldom has a packet lost at 1 % loss: most runs are equal.
    let several = of_loss(9);
    assert_eq!(several.runs, 9);
    assert!(several.load.low_ms <= several.load.median_ms, "{several:?}");
    assert!(
        several.load.high_ms >= several.load.median_ms,
        "{several:?}"
    );
    assert!(
        !several.load.is_certain && several.load.low_ms <= 0.0,
        "{several:?}"
    );
}

#[test]
fn a_change_that_saves_by_chance_alone_is_not_advised() {
    let lossy = ExaminationCase {
        runs: 9,
        network: RaceNetwork::parse("down=5mbit,up=1mbit,rtt=40ms,loss=0.05").unwrap(),
        ..case(page(), RaceProtocol::H2)
    };
    let examination = examine(&lossy);
    assert_eq!(examination.runs, 9);
    for finding in examination.helpful() {
        let saved = [finding.load, finding.dom_content_loaded];
        assert!(saved.iter().any(|saved| saved.low_ms > 0.0), "{finding:?}");
    }
    let once = examine(&ExaminationCase { runs: 1, ..lossy });
    assert!(
        once.helpful().is_empty(),
        "one run of chance: {:?}",
        once.helpful()
    );
}
