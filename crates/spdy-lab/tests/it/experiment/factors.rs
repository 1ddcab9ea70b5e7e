//! Factors of an experiment: each has its intended effect, and not only on times.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use spdy_lab::experiment::plan::Plan;
use spdy_lab::experiment::runner::Runner;
use spdy_page::builtin;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_sim::load::Load;
use spdy_sim::load::{self, Page};
use spdy_sim::options::Deployment;
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;
use url::Url;

/// Runs an experiment over `replica` by `protocol`: the load of each cell.
fn run(replica: &Replica, protocol: RaceProtocol, factors: &str) -> Vec<Load> {
    let text = format!(
        "name = 'factors'\npages = ['page']\nprotocols = ['{protocol}']\n[factors]\nnetwork = 'cable'\n{factors}\n"
    );
    let plan = Plan::parse(&text).unwrap_or_else(|error| panic!("{factors}: {error}"));
    let runner = Runner::new(plan, vec![replica.clone()]);
    let cells = runner.plan().cells();
    let loads = cells.map(|cell| {
        let key = cell.key();
        let mut loads = runner.load(cell, || false).unwrap().unwrap().loads;
        assert_eq!(loads.len(), 1, "{key}");
        let load = loads.remove(0);
        assert!(load.failures.is_empty(), "{key}: {:?}", load.failures);
        load
    });
    loads.collect()
}

/// One load with its waterfall.
fn load(replica: &Replica, protocol: RaceProtocol, options: &Options) -> Load {
    let network = RaceNetwork::parse("cable").unwrap();
    let (page, config) = (Page::new(replica.clone()), network.config(options));
    let load = load::load(&page, protocol, &network.name, &config, options, 1);
    assert!(load.failures.is_empty(), "{protocol}: {:?}", load.failures);
    load
}

/// Number of connections of each host.
fn connections(load: &Load) -> BTreeMap<String, usize> {
    let mut by_host = BTreeMap::<_, BTreeSet<_>>::new();
    for row in &load.waterfall {
        let host = Url::parse(&row.url).unwrap().host_str().unwrap().to_owned();
        by_host.entry(host).or_default().insert(row.connection);
    }
    by_host
        .into_iter()
        .map(|(host, connections)| (host, connections.len()))
        .collect()
}

/// An exchange of `www.page.test`.
fn own(path: &str, kind: Kind, media: &str, body: impl Into<Bytes>) -> Exchange {
    let url = Url::parse(&format!("http://www.page.test/{path}")).unwrap();
    Exchange::synthetic(url, kind, media, body)
}

/// A page of `html` and its resources.
fn page(html: &str, named: Vec<Exchange>) -> Replica {
    let document = Exchange {
        initiator: Initiator::Navigation,
        ..own("", Kind::Document, "text/html", html.to_owned())
    };
    Replica {
        name: "small".to_owned(),
        source: "made by a test".to_owned(),
        start: 0,
        exchanges: [document].into_iter().chain(named).collect(),
        recorded: None,
        dom_content_loaded: None,
        load: None,
        paints: spdy_page::replica::Paints::default(),
        failures: Vec::new(),
    }
}

/// The error of a plan with `factors`.
fn plan_error(factors: &str) -> String {
    let text = format!("name = 'a'\npages = ['page']\n[factors]\nnetwork = 'cable'\n{factors}\n");
    Plan::parse(&text).expect_err(factors).to_string()
}

#[test]
fn with_first_party_deployment_other_hosts_use_http1() {
    let portal = builtin::portal();
    let own = ["www.portal.test", "img.portal.test", "thumbs.portal.test"];
    let options = |deployment| Options {
        deployment,
        ..Options::default()
    };
    for (protocol, base) in [
        (RaceProtocol::Spdy, RaceProtocol::Https),
        (RaceProtocol::H2, RaceProtocol::Https),
        (RaceProtocol::SpdyPlain, RaceProtocol::Http),
    ] {
        let without = connections(&load(&portal, base, &options(Deployment::All)));
        let all = connections(&load(&portal, protocol, &options(Deployment::All)));
        let some = load(&portal, protocol, &options(Deployment::FirstParty));
        assert_eq!(all.len(), 7);
        assert!(all.values().all(|&count| count == 1), "{all:?}");
        for (host, count) in connections(&some) {
            let expected = if own.contains(&&host[..]) {
                1
            } else {
                without[&host]
            };
            assert_eq!(count, expected, "{protocol} to {host}");
        }
        // The protocol there does not compress headers.
        assert!(some.request_header_bytes_wire < some.request_header_bytes);
        let levels = run(&portal, protocol, "deploy = ['all', 'first-party']");
        assert!(levels[0].connections < levels[1].connections, "{protocol}");
        assert!(levels[0].request_header_bytes_wire < levels[1].request_header_bytes_wire);
    }
    let https = run(
        &portal,
        RaceProtocol::Https,
        "deploy = ['all', 'first-party']",
    );
    assert_eq!(https[0].load_ms, https[1].load_ms, "nothing to deploy");
    assert!(plan_error("deploy = 'some'").contains("expected all or first-party"));
}

#[test]
fn hosts_at_one_address_keep_their_own_protocols() {
    let mut portal = builtin::portal();
    let own = portal.document().address;
    for exchange in &mut portal.exchanges {
        exchange.address = own;
    }
    for ip_pooling in [false, true] {
        let options = Options {
            ip_pooling,
            deployment: Deployment::FirstParty,
            ..Options::default()
        };
        let load = load(&portal, RaceProtocol::Spdy, &options);
        let connections = connections(&load);
        assert_eq!(connections["img.portal.test"], 1);
        assert_eq!(connections["pixel.counter.test"], 6);
        let own = if ip_pooling { 1 } else { 3 };
        assert_eq!(load.connections, own + 4 * 6);
    }
}

#[test]
fn each_spdy_version_loads_the_page_with_its_own_dictionary() {
    let portal = builtin::portal();
    let of = |protocol| load(&portal, protocol, &Options::default());
    let versions = [RaceProtocol::Spdy, RaceProtocol::Spdy3, RaceProtocol::Spdy2].map(of);
    let [latest, third, second] = &versions;
    for load in &versions {
        assert_eq!(load.requests, 44, "{}", load.protocol);
        assert_eq!(load.connections, 7, "{}", load.protocol);
        assert!(load.request_header_bytes_wire * 2 < load.request_header_bytes);
    }
    // SPDY/3.1 is SPDY/3 with session windows, and encodes the same header blocks.
    assert_eq!(
        latest.request_header_bytes_wire,
        third.request_header_bytes_wire
    );
    assert_ne!(
        latest.request_header_bytes_wire,
        second.request_header_bytes_wire
    );
    assert_eq!(latest.protocol, "spdy");
    assert_eq!(third.protocol, "spdy3");
    assert_eq!(second.protocol, "spdy2");
}

/// The client's window for a stream is 1 MiB, so a stream gets no more than that in a round trip if there are windows.
#[test]
fn spdy2_has_no_window_that_limits_a_long_fat_link() {
    let image = own("0.png", Kind::Image, "image/png", vec![0; 12_000_000]);
    let page = page("<img src=/0.png>", vec![image]);
    let far = |protocol| {
        let network = RaceNetwork::parse("rate=1gbit,rtt=300ms,queue=20000p").unwrap();
        let (page, options) = (Page::new(page.clone()), Options::default());
        let config = network.config(&options);
        let load = load::load(&page, protocol, "", &config, &options, 1);
        assert!(load.failures.is_empty(), "{:?}", load.failures);
        load.load_ms / 300.0
    };
    let [latest, third, second] =
        [RaceProtocol::Spdy, RaceProtocol::Spdy3, RaceProtocol::Spdy2].map(far);
    assert_eq!(latest.round(), third.round());
    assert!(second + 2.0 < third, "{second} {third} round trips");
}

#[test]
fn without_priorities_a_script_shares_bandwidth_with_images() {
    let image = |at| {
        own(
            &format!("{at}.png"),
            Kind::Image,
            "image/png",
            vec![0; 100_000],
        )
    };
    let script = own("s.js", Kind::Script, "text/javascript", vec![b' '; 20_000]);
    let tags: String = (0..10).map(|at| format!("<img src=/{at}.png>")).collect();
    let html = format!("<html><body>{tags}<script src=/s.js></script></body></html>");
    let page = page(&html, (0..10).map(image).chain([script]).collect());
    for protocol in [
        RaceProtocol::Spdy,
        RaceProtocol::Spdy3,
        RaceProtocol::Spdy2,
        RaceProtocol::H2,
    ] {
        let loads = run(&page, protocol, "priorities = [true, false]");
        let [with, without] = [0, 1].map(|at: usize| loads[at].dom_content_loaded_ms);
        // A megabyte of images is 1,600 ms of the link, the script 32.
        assert!(with + 200.0 < without, "{protocol}: {with} {without}");
        let [with, without] = [0, 1].map(|at: usize| loads[at].load_ms);
        assert!(
            (with - without).abs() < 30.0,
            "{protocol}: {with} {without}"
        );
    }
    let options = Options {
        priorities: false,
        ..Options::default()
    };
    let same = load(&page, RaceProtocol::Spdy, &options);
    assert!(same.waterfall.iter().all(|row| row.priority == 7));
    assert!(plan_error("priorities = 'some'").contains("expected yes or no"));
}

#[test]
fn hints_save_the_round_trip_of_a_font_in_a_style_sheet() {
    let css = "@font-face { font-family: x; src: url(/x.woff) }";
    let named = vec![
        own("s.css", Kind::Stylesheet, "text/css", css),
        own("x.woff", Kind::Font, "font/woff", "font"),
        own("i.png", Kind::Image, "image/png", "i"),
    ];
    let html =
        "<html><head><link rel=stylesheet href=/s.css></head><body><img src=/i.png></body></html>";
    let page = page(html, named);
    // Over HTTP/1.1 the round trip is saved on another connection.
    let multiplexed = RaceProtocol::ALL.into_iter();
    for protocol in multiplexed.filter(|it| it.wire_protocol().is_multiplexed()) {
        let loads = run(&page, protocol, "hints = ['no', 'yes']");
        let saved = loads[0].load_ms - loads[1].load_ms;
        // 28 ms round trip. Resources that the text names are requested when it is read, as before.
        assert!((25.0..40.0).contains(&saved), "{protocol}: {saved} ms");
        assert_eq!(loads[0].requests, loads[1].requests, "{protocol}");
    }
    assert!(plan_error("hints = 'some'").contains("expected yes or no"));
}

#[test]
fn shards_multiply_http1_connections_and_sessions() {
    let flags = builtin::flags();
    let over = |protocol| {
        run(
            &flags,
            protocol,
            "rtt = '100ms'\nrate = '100mbit'\nshard = [1, 2, 4]",
        )
    };
    let counts = |loads: &[Load]| -> Vec<u64> {
        let counts = loads.iter().map(|load| load.connections);
        counts.collect()
    };
    let http = over(RaceProtocol::Http);
    assert_eq!(counts(&http), [6, 12, 24]);
    // 33 rounds of six become 17 of twelve, and 9 of 24.
    assert!(
        http[1].load_ms < 0.65 * http[0].load_ms,
        "{}",
        http[1].load_ms
    );
    assert!(
        http[2].load_ms < 0.7 * http[1].load_ms,
        "{}",
        http[2].load_ms
    );
    let spdy = over(RaceProtocol::Spdy);
    assert_eq!(counts(&spdy), [1, 2, 4]);
    assert!(spdy[0].load_ms < spdy[2].load_ms, "{}", spdy[2].load_ms);
    // They are names of one server.
    let pooled = "shard = 4\nip_pooling = true";
    for protocol in [RaceProtocol::Spdy, RaceProtocol::H2, RaceProtocol::H3] {
        assert_eq!(counts(&run(&flags, protocol, pooled)), [1], "{protocol}");
    }
    // They are of one site.
    let deployed = "shard = 4\ndeploy = 'first-party'";
    assert_eq!(counts(&run(&flags, RaceProtocol::Spdy, deployed)), [4]);
    // Pushed resources are those on the page's own host.
    let pushed = run(&flags, RaceProtocol::Spdy, "push = true\nshard = [1, 4]");
    let [all, quarter] = [&pushed[0], &pushed[1]].map(|load| 197 - load.requests);
    assert!(quarter > 0 && quarter <= all, "{quarter} of {all} pushes");
}

/// An address and `localhost` have no subdomains that are one site by the public suffix list.
#[test]
fn the_shards_of_a_page_at_an_address_are_its_own_too() {
    for authority in ["127.0.0.1", "[::1]", "localhost", "www.page.test"] {
        let images = (0..40).map(|at| {
            let path = format!("{at}.png");
            own(&path, Kind::Image, "image/png", vec![0; 10_000])
        });
        let tags: String = (0..40).map(|at| format!("<img src=/{at}.png>")).collect();
        let mut page = page(&tags, images.collect());
        for exchange in &mut page.exchanges {
            exchange.url.set_host(Some(authority)).unwrap();
            let head = String::from_utf8(exchange.request_head.to_vec()).unwrap();
            exchange.request_head = head.replace("www.page.test", authority).into();
        }
        let deployed = "shard = 4\ndeploy = ['all', 'first-party']";
        let loads = run(&page, RaceProtocol::Spdy, deployed);
        let counts = loads.iter().map(|load| load.connections);
        assert_eq!(counts.collect::<Vec<_>>(), [4, 4], "{authority}");
        assert_eq!(loads[0].load_ms, loads[1].load_ms, "{authority}");
        let pooled = "shard = 4\ndeploy = 'first-party'\nip_pooling = true";
        let pooled = run(&page, RaceProtocol::Spdy, pooled);
        assert_eq!(pooled[0].connections, 1, "{authority}");
    }
}

#[test]
fn a_page_that_is_folded_is_not_sharded() {
    assert!(plan_error("shard = 0").contains("expected a number of hosts from 1 to 100"));
    assert!(plan_error("shard = 101").contains("expected a number of hosts from 1 to 100"));
    let both = plan_error("fold = [true, false]\nshard = [1, 4]");
    assert!(both.starts_with("cell page=page,protocol=http,network=cable,fold=yes,shard=4: "));
    assert!(both.contains("give one of them"), "{both}");
    let portal = builtin::portal();
    let folded = run(&portal, RaceProtocol::Spdy, "fold = true\nshard = 1");
    assert_eq!(folded[0].connections, 1);
}

#[test]
fn the_pages_of_a_visit_share_their_connections() {
    let text = "name = 'v'\npages = ['a', 'b']\nprotocols = ['h2']\n[factors]\nnetwork = 'cable'\nvisit = ['no', '500ms', '2s']\n";
    let plan = Plan::parse(text).unwrap();
    let runner = Runner::new(plan, vec![builtin::portal(), builtin::flags()]);
    let connections = runner.plan().cells().map(|cell| {
        let loads = runner.load(cell, || false).unwrap().unwrap().loads;
        assert!(loads[0].failures.is_empty(), "{:?}", loads[0].failures);
        (loads[0].replica.clone(), loads[0].connections)
    });
    let connections: Vec<_> = connections.collect();
    let of = |page: &str| {
        let loads = connections.iter().filter(|(name, _)| name == page);
        loads.map(|(_, count)| *count).collect::<Vec<_>>()
    };
    assert_eq!(of("a"), [7, 7, 7], "the first page loads as alone");
    assert_eq!(of("b"), [1, 1, 1], "another site");
    let twice = text.replace("'b'", "'portal again'");
    let runner = Runner::new(
        Plan::parse(&twice).unwrap(),
        vec![builtin::portal(), builtin::portal()],
    );
    let again = runner.plan().cells().skip(3).map(|cell| {
        let loads = runner.load(cell, || false).unwrap().unwrap().loads;
        loads[0].connections
    });
    assert_eq!(again.collect::<Vec<_>>(), [7, 0, 0]);
}

#[test]
fn a_visit_that_cannot_be_is_refused() {
    for (factors, expected) in [
        ("visit = '1s'", "a visit has 2 to 10 pages, found 1"),
        (
            "visit = 'yes'",
            "expected no, or a pause with its unit of at most 600s",
        ),
        (
            "visit = '601s'",
            "expected no, or a pause with its unit of at most 600s",
        ),
        (
            "visit = '1s'\naccelerator = 'warm'",
            "a visit has no accelerator",
        ),
    ] {
        let message = plan_error(factors);
        assert!(message.contains(expected), "{message}");
    }
}

/// `exchange` with these header fields in its response.
fn with_response_fields(fields: &str, exchange: Exchange) -> Exchange {
    let mut head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n".to_vec();
    head.extend_from_slice(fields.as_bytes());
    head.extend_from_slice(b"\r\n\r\n");
    Exchange {
        response_head: head.into(),
        ..exchange
    }
}

#[test]
fn a_repeat_view_revalidates_stale_and_fetches_the_rest() {
    let image = |path, fields| {
        let image = own(path, Kind::Image, "image/png", vec![0; 50_000]);
        with_response_fields(fields, image)
    };
    let page = page(
        "<img src=/a><img src=/b><img src=/c><img src=/d>",
        vec![
            image("a", "Cache-Control: max-age=7200\r\nETag: \"a\""),
            image(
                "b",
                "Cache-Control: max-age=60\r\nLast-Modified: Mon, 03 Jun 2013 10:00:00 GMT",
            ),
            image("c", "Cache-Control: max-age=60"),
            image("d", "Cache-Control: no-store, max-age=60\r\nETag: \"d\""),
        ],
    );
    // The document has no caching fields, so it is requested each time.
    let levels: [(&str, &[(&str, u16)]); 4] = [
        (
            "cold",
            &[
                ("/", 200),
                ("/a", 200),
                ("/b", 200),
                ("/c", 200),
                ("/d", 200),
            ],
        ),
        ("warm", &[("/", 200), ("/d", 200)]),
        (
            "warm:1h",
            &[("/", 200), ("/b", 304), ("/c", 200), ("/d", 200)],
        ),
        (
            "warm:1d",
            &[
                ("/", 200),
                ("/a", 304),
                ("/b", 304),
                ("/c", 200),
                ("/d", 200),
            ],
        ),
    ];
    for protocol in RaceProtocol::ALL {
        for (level, expected) in levels {
            let options = Options {
                cache: level.parse().unwrap(),
                ..Options::default()
            };
            let load = load(&page, protocol, &options);
            let found: Vec<_> = load
                .waterfall
                .iter()
                .map(|row| (Url::parse(&row.url).unwrap().path().to_owned(), row.status))
                .collect();
            let found: Vec<_> = found
                .iter()
                .map(|(path, status)| (&path[..], *status))
                .collect();
            assert_eq!(found, expected, "{protocol} {level}");
            assert_eq!(load.requests, expected.len() as u64, "{protocol} {level}");
        }
        let loads = run(
            &page,
            protocol,
            "cache = ['cold', 'warm', 'warm:1h', 'warm:1d']",
        );
        let bytes: Vec<_> = loads.iter().map(|load| load.bytes_down / 50_000).collect();
        assert_eq!(bytes, [4, 1, 2, 2], "{protocol}");
        assert!(loads[1].load_ms < loads[0].load_ms, "{protocol}");
    }
    assert!(plan_error("cache = 'hot'").contains("expected cold, warm"));
}

#[test]
fn an_entirely_fresh_page_needs_no_network() {
    let fresh = |exchange| with_response_fields("Cache-Control: max-age=60", exchange);
    let mut page = page(
        "<img src=/a>",
        vec![own("a", Kind::Image, "image/png", "a")],
    );
    page.exchanges = page.exchanges.into_iter().map(fresh).collect();
    for protocol in RaceProtocol::ALL {
        let load = run(&page, protocol, "cache = 'warm'").remove(0);
        assert_eq!(
            (load.requests, load.connections, load.packets_up),
            (0, 0, 0)
        );
        assert_eq!((load.load_ms, load.time_on_wire_ms), (0.0, 0.0));
    }
}

#[test]
fn small_frames_add_overhead_and_large_ones_delay_urgent_data() {
    let image = own("i.png", Kind::Image, "image/png", vec![0; 1_000_000]);
    let sheet = own(
        "a.css",
        Kind::Stylesheet,
        "text/css",
        "@import url(/b.css);",
    );
    let imported = own("b.css", Kind::Stylesheet, "text/css", "p { color: red }");
    let script = own("s.js", Kind::Script, "text/javascript", " ");
    // The script waits for a style sheet that is requested while the image is in transit.
    let html = "<html><body><img src=/i.png><link rel=stylesheet href=/a.css><script src=/s.js></script></body></html>";
    let page = page(html, vec![image, sheet, imported, script]);
    for (protocol, head) in [
        (RaceProtocol::Spdy, 8.0),
        (RaceProtocol::Spdy2, 8.0),
        (RaceProtocol::H2, 9.0),
    ] {
        let loads = run(
            &page,
            protocol,
            "rate = '100mbit'\nframe = [256, 16384, 1048576]",
        );
        let [small, usual, large] = &loads[..] else {
            panic!("three levels");
        };
        // A million bytes are 3,907 frames, or 62: the rest of the difference is packet headers.
        let heads = head * (1_000_000.0 / 256.0 - 1_000_000.0 / 16_384.0);
        let more = small.bytes_down as f64 - usual.bytes_down as f64;
        assert!(
            more > 0.95 * heads && more < 1.3 * heads,
            "{protocol}: {more} bytes, {heads} of heads"
        );
        assert!(large.bytes_down < usual.bytes_down, "{protocol}");
        let [small, usual, large] = [small, usual, large].map(|load| load.dom_content_loaded_ms);
        assert!(small <= usual, "{protocol}: {small} {usual}");
        assert!(usual + 50.0 < large, "{protocol}: {usual} {large}");
    }
    assert!(plan_error("frame = 63").contains("expected a number of bytes from 64 to 1048576"));
    assert!(
        plan_error("frame = 1048577").contains("expected a number of bytes from 64 to 1048576")
    );
}

#[test]
fn pushes_stop_at_the_budget_unless_push_is_all() {
    let flags = builtin::flags();
    let requests = |page: &Replica, protocol| -> Vec<u64> {
        let loads = run(page, protocol, "push = ['no', 'yes', 'all']");
        loads.iter().map(|load| load.requests).collect()
    };
    for protocol in [RaceProtocol::Spdy, RaceProtocol::Spdy3, RaceProtocol::Spdy2] {
        assert_eq!(requests(&flags, protocol), [197, 197 - 32, 1], "{protocol}");
    }
    // Its client accepts none.
    assert_eq!(requests(&flags, RaceProtocol::H2), [197; 3]);

    // Over the budget of bytes, of a kind that is not pushed by the graph, and of another host.
    let mut far = own("far", Kind::Image, "image/png", "far");
    far.url.set_host(Some("img.page.test")).unwrap();
    let page = page(
        "<img src=/large><video src=/video></video><img src=http://img.page.test/far><img src=/small>",
        vec![
            own("large", Kind::Image, "image/png", vec![0; 600_000]),
            own("video", Kind::Media, "video/webm", "video"),
            far,
            own("small", Kind::Image, "image/png", "small"),
        ],
    );
    assert_eq!(requests(&page, RaceProtocol::Spdy), [5, 4, 2]);
    assert!(plan_error("push = 'some'").contains("expected no, yes or all"));
}

#[test]
fn a_client_with_a_cache_of_its_own_is_refused_before_an_accelerator() {
    let text = "name = 'a'\npages = ['mineki']\n[factors]\nnetwork = 'cable'\naccelerator = 'warm'\ncache = 'warm'\n";
    let message = Plan::parse(text).unwrap_err().to_string();
    assert!(message.contains("accelerator and cache"), "{message}");
}
