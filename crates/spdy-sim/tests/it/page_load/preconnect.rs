//! Connections and names that a page asks for by `<link rel=preconnect>` and `dns-prefetch`.

use spdy_page::builtin;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_sim::load::{self, Load, Page};
use spdy_sim::options::{Options, RaceProtocol, Scheduler};
use spdy_sim::race::RaceNetwork;

fn exchange(url: &str, kind: Kind, body: String) -> Exchange {
    Exchange::synthetic(url.parse().unwrap(), kind, "text/html", body)
}

/// A page whose sheet names a font of another host, with `hint` in its head.
fn page(hint: &str) -> Page {
    let html = format!("<!DOCTYPE html>{hint}<link rel=stylesheet href=/s.css><p>text");
    let mut document = exchange("http://www.page.test/", Kind::Document, html);
    document.initiator = Initiator::Navigation;
    let css = "@font-face { font-family: f; src: url(//fonts.test/f) } p { font-family: f }";
    let sheet = exchange(
        "http://www.page.test/s.css",
        Kind::Stylesheet,
        css.to_owned(),
    );
    let mut font = exchange("http://fonts.test/f", Kind::Font, "font".to_owned());
    font.initiator = Initiator::Resource {
        index: 1,
        at_byte: None,
    };
    Page::new(Replica {
        name: "page".to_owned(),
        exchanges: vec![document, sheet, font],
        start: 0,
        ..builtin::flags()
    })
}

fn load_with(hint: &str, protocol: RaceProtocol, scheduler: Scheduler) -> Load {
    load_over(60, hint, protocol, scheduler)
}

fn load_over(rtt_ms: u32, hint: &str, protocol: RaceProtocol, scheduler: Scheduler) -> Load {
    let network = RaceNetwork::parse(&format!("down=5mbit,up=1mbit,rtt={rtt_ms}ms")).unwrap();
    let options = Options {
        scheduler,
        ..Options::default()
    };
    let config = network.config(&options);
    let load = load::load(&page(hint), protocol, &network.name, &config, &options, 1);
    assert!(load.failures.is_empty(), "{protocol}: {:?}", load.failures);
    load
}

#[test]
fn a_hinted_connection_is_open_when_the_request_needs_it() {
    let anonymous = "<link rel=preconnect href=//fonts.test crossorigin>";
    for protocol in [RaceProtocol::Https, RaceProtocol::H2, RaceProtocol::H3] {
        let without = load_with("", protocol, Scheduler::Chromium);
        let with = load_with(anonymous, protocol, Scheduler::Chromium);
        let saved = without.load_ms - with.load_ms;
        // At least the sheet's round trip, in which names and handshakes were done.
        assert!(
            saved > 50.0,
            "{protocol}: {} to {}",
            without.load_ms,
            with.load_ms
        );
        assert_eq!(with.connections, without.connections, "{protocol}");
        // With credentials it is another connection, which no request uses.
        let unused = load_with(
            "<link rel=preconnect href=//fonts.test>",
            protocol,
            Scheduler::Chromium,
        );
        assert!(unused.load_ms >= with.load_ms, "{protocol}");
        assert_eq!(unused.connections, with.connections + 1, "{protocol}");
    }
}

#[test]
fn a_hinted_name_is_known_when_the_request_needs_it() {
    let hint = "<link rel=dns-prefetch href=//fonts.test>";
    for protocol in [RaceProtocol::Http, RaceProtocol::H2, RaceProtocol::H3] {
        let without = load_with("", protocol, Scheduler::Chromium);
        let with = load_with(hint, protocol, Scheduler::Chromium);
        // The lookup's round trip.
        let saved = without.load_ms - with.load_ms;
        assert!((50.0..70.0).contains(&saved), "{protocol}: {saved} ms");
        assert_eq!(with.connections, without.connections, "{protocol}");
        let ignored = load_with(hint, protocol, Scheduler::None);
        let plain = load_with("", protocol, Scheduler::None);
        // Only the bytes of the tag are more.
        let added = ignored.load_ms - plain.load_ms;
        assert!(added.abs() < 1.0, "{protocol}: {added} ms");
    }
}

#[test]
fn hints_act_only_with_a_browsers_scheduler_and_may_name_unknown_hosts() {
    let hint = "<link rel=preconnect href=//fonts.test crossorigin>";
    let load = |hint| load_with(hint, RaceProtocol::H2, Scheduler::None);
    assert_eq!(load(hint).connections, load("").connections);
    let unknown =
        "<link rel=preconnect href=//unknown.test><link rel=preconnect href='http://[::bad'>";
    load_with(unknown, RaceProtocol::H2, Scheduler::Chromium);
}

#[test]
fn another_connection_is_opened_if_the_first_one_takes_longer_than_250_ms() {
    let connections =
        |rtt_ms, protocol, scheduler| load_over(rtt_ms, "", protocol, scheduler).connections;
    for (protocol, slow) in [
        (RaceProtocol::Http, 5),
        (RaceProtocol::Https, 5),
        (RaceProtocol::H2, 5),
        (RaceProtocol::H3, 2),
    ] {
        // Two of the navigation, and one for the font. Over QUIC there is one for each host.
        let fast = if protocol == RaceProtocol::H3 { 2 } else { 3 };
        let load = |rtt_ms| connections(rtt_ms, protocol, Scheduler::Chromium);
        assert_eq!([load(60), load(300)], [fast, slow], "{protocol}");
    }
    let plain = |rtt_ms| connections(rtt_ms, RaceProtocol::Https, Scheduler::None);
    assert_eq!(plain(60), plain(300));
}
