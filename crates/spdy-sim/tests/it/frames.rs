//! Frames of other sites, which share no name and no connection with their page.

use spdy_page::builtin;
use spdy_page::head;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_sim::load::{Load, Page, WaterfallRow, visit};
use spdy_sim::options::{Options, RaceProtocol, Scheduler};

use crate::support::whole_load::whole;

const PAGE: &str = "http://www.page.test/";
const ADS: &str = "http://ads.test";
const OWN: &str = "http://frames.page.test";
const PROTOCOLS: [RaceProtocol; 4] = [
    RaceProtocol::Http,
    RaceProtocol::Spdy,
    RaceProtocol::H2,
    RaceProtocol::H3,
];

fn exchange(url: &str, kind: Kind, body: &str) -> Exchange {
    Exchange::synthetic(url.parse().unwrap(), kind, "text/html", body.to_owned())
}

/// A page with an image and a frame of `host`, and an image of the same host in the frame.
fn page(host: &str) -> Page {
    let html = format!("<!DOCTYPE html><img src={host}/1><iframe src={host}/frame></iframe>");
    let mut document = exchange(PAGE, Kind::Document, &html);
    document.initiator = Initiator::Navigation;
    let frame = format!("<!DOCTYPE html><img src={host}/2>");
    Page::new(Replica {
        name: "frames".to_owned(),
        exchanges: vec![
            document,
            exchange(&format!("{host}/1"), Kind::Image, "an image"),
            exchange(&format!("{host}/frame"), Kind::Document, &frame),
            exchange(&format!("{host}/2"), Kind::Image, "another image"),
        ],
        start: 0,
        ..builtin::flags()
    })
}

/// The rows of the image of the page, the frame and its image.
fn rows<'a>(load: &'a Load, host: &str) -> [&'a WaterfallRow; 3] {
    ["1", "frame", "2"].map(|path| {
        let url = format!("{host}/{path}");
        let row = load.waterfall.iter().find(|row| row.url == url);
        row.unwrap_or_else(|| panic!("{url} was not requested"))
    })
}

#[test]
fn a_frame_of_another_site_has_names_and_connections_of_its_own() {
    for protocol in PROTOCOLS {
        let load = whole(&page(ADS), protocol, &Options::default());
        let [image, frame, inner] = rows(&load, ADS);
        assert!(image.dns.is_some() && frame.dns.is_some(), "{protocol}");
        assert!(frame.connect.is_some(), "{protocol}: on a new connection");
        assert!(inner.connect.is_none(), "{protocol}: on that of the frame");
        assert_eq!(load.requests, 4, "{protocol}");
        if protocol != RaceProtocol::Http {
            assert_eq!(load.connections, 3, "{protocol}");
            // The document has the first connection.
            let numbers = [image, frame, inner].map(|row| row.connection);
            assert_eq!(numbers, [1, 2, 2], "{protocol}");
        }
    }
}

#[test]
fn a_frame_of_the_same_site_shares_those_of_its_page() {
    for protocol in [RaceProtocol::Spdy, RaceProtocol::H2, RaceProtocol::H3] {
        let load = whole(&page(OWN), protocol, &Options::default());
        let [image, frame, _] = rows(&load, OWN);
        assert_eq!(image.connection, frame.connection, "{protocol}");
        assert_eq!(load.connections, 2, "{protocol}");
        let before_2020 = Options {
            site_partitions: false,
            ..Options::default()
        };
        for options in [before_2020, Options::chromium_49()] {
            let load = whole(&page(ADS), protocol, &options);
            let [image, frame, _] = rows(&load, ADS);
            let numbers = (image.connection, frame.connection);
            assert_eq!(numbers.0, numbers.1, "{protocol}: nothing is separate");
        }
    }
}

#[test]
fn the_next_page_of_the_site_finds_the_connections_of_frames() {
    for protocol in PROTOCOLS {
        for scheduler in [Scheduler::None, Scheduler::Chromium] {
            let options = Options {
                scheduler,
                ..Options::default()
            };
            let pages = visit(vec![page(ADS), page(ADS)], std::time::Duration::ZERO);
            let second = whole(&pages[1], protocol, &options);
            let counts = (second.requests, second.connections);
            assert_eq!(counts, (4, 0), "{protocol}, {scheduler}");
        }
    }
}

#[test]
fn a_request_that_names_the_page_as_its_referer_is_of_the_page() {
    let mut replica = page(ADS).replica().clone();
    let inner = &mut replica.exchanges[3];
    inner.request_head = head::with_field(&inner.request_head, "Referer", Some(PAGE));
    let load = whole(&Page::new(replica), RaceProtocol::H2, &Options::default());
    let [image, frame, inner] = rows(&load, ADS);
    assert_eq!(image.connection, inner.connection);
    assert_ne!(image.connection, frame.connection);
}
