//! The released accelerator as a node in virtual time: its effect on a load, its cost, and determinism.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use spdy_page::builtin;
use spdy_page::head;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_rewrite::rules::config::{Config as Rewrite, HostConfig, Scheme};
use spdy_sim::accelerator::site::OperatorConfig;
use spdy_sim::load::Load;
use spdy_sim::load::{self, Page};
use spdy_sim::options::Accelerator;
use spdy_sim::options::{Options, Push, RaceProtocol};
use spdy_sim::race::RaceNetwork;
use url::Url;

const BACKHAUL: Duration = Duration::from_millis(20);

fn through(accelerator: Accelerator) -> Options {
    Options {
        accelerator,
        backhaul: BACKHAUL,
        ..Options::default()
    }
}

/// One load over `cable`, or over `network`; the test fails if it is incomplete.
fn load_over(network: &str, page: &Page, protocol: RaceProtocol, options: &Options) -> Load {
    let network = RaceNetwork::parse(network).unwrap();
    let config = network.config(options);
    let load = load::load(page, protocol, &network.name, &config, options, 1);
    assert!(load.failures.is_empty(), "{protocol}: {:?}", load.failures);
    load
}

fn load(page: &Page, protocol: RaceProtocol, options: &Options) -> Load {
    load_over("cable", page, protocol, options)
}

fn hosts(load: &Load) -> BTreeSet<String> {
    let urls = load
        .waterfall
        .iter()
        .map(|row| Url::parse(&row.url).unwrap());
    urls.map(|url| url.host_str().unwrap().to_owned()).collect()
}

fn exchange(url: &str, kind: Kind, media: &str, body: impl Into<Bytes>) -> Exchange {
    let url = Url::parse(url).unwrap();
    let host = head::authority(&url);
    let accept = if kind == Kind::Document {
        "text/html"
    } else {
        "*/*"
    };
    let fields = [
        ("Host", host.as_str()),
        ("Accept", accept),
        ("Accept-Encoding", "gzip"),
    ];
    Exchange {
        request_head: head::synthesize(&format!("GET {} HTTP/1.1", head::target(&url)), fields),
        ..Exchange::synthetic(url, kind, media, body)
    }
}

/// A page of `http://www.page.test/` with `html` and other exchanges.
fn page(html: &str, others: Vec<Exchange>) -> Replica {
    let document = exchange(
        "http://www.page.test/",
        Kind::Document,
        "text/html",
        html.to_owned(),
    );
    Replica {
        name: "page".to_owned(),
        exchanges: std::iter::once(document).chain(others).collect(),
        ..builtin::flags()
    }
}

fn image(url: &str) -> Exchange {
    exchange(url, Kind::Image, "image/png", vec![7; 4_000])
}

#[test]
fn the_same_seed_gives_the_same_load_to_the_nanosecond() {
    let page = Page::new(builtin::portal());
    let network = "down=1mbit,up=1mbit,rtt=150ms,loss=2%";
    for protocol in [
        RaceProtocol::Https,
        RaceProtocol::Spdy,
        RaceProtocol::H2,
        RaceProtocol::H3,
    ] {
        for accelerator in [Accelerator::Cold, Accelerator::Warm, Accelerator::Known] {
            let options = Options {
                push: Push::ByGraph,
                hints: true,
                ..through(accelerator)
            };
            let once = || load_over(network, &page, protocol, &options);
            assert_eq!(once(), once(), "{protocol} {accelerator}");
        }
    }
}

/// `exchange` with `control` as its Cache-Control.
fn with_cache_control(mut exchange: Exchange, control: &str) -> Exchange {
    exchange.response_head =
        head::with_field(&exchange.response_head, "cache-control", Some(control));
    exchange
}

/// Milliseconds that a page with one image takes longer if the origins are 100 ms farther away.
fn added_ms(image: Exchange, accelerator: Accelerator) -> f64 {
    let html = format!("<!DOCTYPE html><img src={}>", image.url);
    let mut replica = page(&html, vec![image]);
    replica.exchanges[0] = with_cache_control(replica.exchanges[0].clone(), "max-age=60");
    let page = Page::new(replica);
    let [near, far] = [20, 120].map(|ms| {
        let options = Options {
            backhaul: Duration::from_millis(ms),
            ..through(accelerator)
        };
        load(&page, RaceProtocol::Http, &options).load_ms
    });
    far - near
}

#[test]
fn an_origin_fetch_costs_the_backhaul_and_a_cache_hit_does_not() {
    let own = || with_cache_control(image("http://www.page.test/a.png"), "max-age=60");
    let other = |control| with_cache_control(image("http://cdn.other.test/a.png"), control);
    let is = |found: f64, expected: f64, what| {
        assert!((found - expected).abs() < 2.0, "{what}: {found} ms");
    };
    // TCP and two requests. The lookup ends at the end of the link.
    is(added_ms(own(), Accelerator::Off), 300.0, "direct");
    is(added_ms(own(), Accelerator::Warm), 0.0, "cached");
    is(
        added_ms(other("max-age=60"), Accelerator::Warm),
        0.0,
        "another host's, cached",
    );
    // Its connection to that host is still open.
    is(
        added_ms(other("no-store"), Accelerator::Warm),
        100.0,
        "not cached",
    );
    // Three round trips for the page, and as many for the image, minus the time that passes meanwhile on the client's link.
    let cold = added_ms(other("max-age=60"), Accelerator::Cold);
    assert!((500.0..=600.0).contains(&cold), "cold: {cold} ms");
}

#[test]
fn requests_by_scripts_stay_at_their_own_host() {
    let mut by_script = image("http://api.other.test/by-script.png");
    by_script.initiator = Initiator::Resource {
        index: 1,
        at_byte: None,
    };
    let script = exchange(
        "http://cdn.other.test/s.js",
        Kind::Script,
        "application/javascript",
        "fetch('//api.' + 'other.test/' + name)",
    );
    let html = "<!DOCTYPE html><script src=http://cdn.other.test/s.js></script>";
    let page = Page::new(page(html, vec![script, by_script]));
    let load = load(&page, RaceProtocol::Spdy, &through(Accelerator::Cold));
    let urls: Vec<_> = load.waterfall.iter().map(|row| row.url.as_str()).collect();
    assert_eq!(
        urls,
        [
            "http://www.page.test/",
            "http://www.page.test/.spdy/1/-/p/cdn.other.test/s.js",
            "http://api.other.test/by-script.png"
        ]
    );
}

#[test]
fn images_of_a_foreign_style_sheet_are_proxied() {
    let sheet = exchange(
        "http://cdn.other.test/css/a.css",
        Kind::Stylesheet,
        "text/css",
        "p { background: url(../i/b.png) } q { background: url(http://img.third.test/c.png) }",
    );
    let html = "<!DOCTYPE html><link rel=stylesheet href=http://cdn.other.test/css/a.css><p>";
    let images = [
        "http://cdn.other.test/i/b.png",
        "http://img.third.test/c.png",
    ]
    .map(image);
    let others = std::iter::once(sheet).chain(images).collect();
    let load = load(
        &Page::new(page(html, others)),
        RaceProtocol::H2,
        &through(Accelerator::Cold),
    );
    assert_eq!(
        (hosts(&load).len(), load.connections, load.requests),
        (1, 1, 4)
    );
}

/// A page of four hosts, three of which have aliases at the accelerator. One of them has the document of a frame.
fn page_with_aliases() -> Page {
    let sheet = exchange(
        "http://cdn.other.test/css/a.css",
        Kind::Stylesheet,
        "text/css",
        "p { background: url(../i/b.png) }",
    );
    let frame = exchange(
        "http://frames.fourth.test/f.html",
        Kind::Document,
        "text/html",
        "<!DOCTYPE html>a frame",
    );
    let images = [
        "http://cdn.other.test/i/b.png",
        "http://img.third.test/c.png",
    ]
    .map(image);
    let html = "<!DOCTYPE html><link rel=stylesheet href=//cdn.other.test/css/a.css><p>\
                <img src=//img.third.test/c.png><iframe src=//frames.fourth.test/f.html></iframe>";
    let others = [sheet, frame].into_iter().chain(images).collect();
    let hosts = ["cdn.other.test", "img.third.test", "frames.fourth.test"];
    let named = hosts.into_iter().flat_map(|host| {
        [Scheme::Http, Scheme::Https].map(|scheme| HostConfig {
            scheme,
            ..HostConfig::named(host)
        })
    });
    Page::new(page(html, others)).with_operator_config(OperatorConfig {
        rewrite: Rewrite {
            names_under: Some("x.names.test".to_owned()),
            hosts: named.collect(),
            ..Rewrite::default()
        },
        ..OperatorConfig::default()
    })
}

/// A load with one wrong byte has a failure.
#[test]
fn aliased_hosts_share_the_sites_connection_where_clients_pool() {
    let page = page_with_aliases();
    for protocol in [RaceProtocol::H2, RaceProtocol::Spdy] {
        for accelerator in [Accelerator::Cold, Accelerator::Warm] {
            let pooling = Options {
                ip_pooling: true,
                ..through(accelerator)
            };
            let pooled = load(&page, protocol, &pooling);
            let names = hosts(&pooled);
            assert_eq!(names.len(), 4, "{names:?}");
            let named = names.iter().filter(|name| name.ends_with(".x.names.test"));
            assert_eq!(named.count(), 3, "{names:?}");
            // The frame is of another site than the page, so nothing is shared with it.
            assert_eq!((pooled.requests, pooled.connections), (5, 2), "{protocol}");
            let apart = load(&page, protocol, &through(accelerator));
            assert_eq!((apart.requests, apart.connections), (5, 4), "{protocol}");
        }
    }
}

/// A page with `old` of another host, which redirects to `to`; a script has the request headers of current browsers.
fn redirecting(tag: &str, old: &str, kind: Kind, media: &str, to: &str) -> Page {
    let mut redirect = exchange(old, kind, "text/html", "");
    redirect.response_head = head::synthesize(
        "HTTP/1.1 302 Found",
        [("Location", to), ("Content-Length", "0")],
    );
    let mut found = exchange(to, kind, media, vec![b' '; 4_000]);
    found.initiator = Initiator::Redirect { index: 1 };
    if kind == Kind::Script {
        let fetch_metadata = [
            ("dest", "script"),
            ("mode", "no-cors"),
            ("site", "same-origin"),
        ];
        for (name, value) in fetch_metadata {
            let name = format!("sec-fetch-{name}");
            redirect.request_head = head::with_field(&redirect.request_head, &name, Some(value));
        }
    }
    Page::new(page(
        &format!("<!DOCTYPE html>{tag}"),
        vec![redirect, found],
    ))
}

#[test]
fn foreign_redirects_are_followed_as_the_accelerator_does() {
    let counts = |page: &Page, accelerator| {
        let load = load(page, RaceProtocol::Spdy, &through(accelerator));
        (load.requests, load.connections)
    };
    let (old, new) = ("http://cdn.other.test/i/old", "http://img.third.test/new");
    let image = redirecting(
        &format!("<img src={old}>"),
        old,
        Kind::Image,
        "image/png",
        new,
    );
    assert_eq!(counts(&image, Accelerator::Off), (3, 3));
    assert_eq!(counts(&image, Accelerator::Cold), (2, 1), "followed");
    // A relative URL of the script would have another base.
    let tag = format!("<script src={old}></script>");
    let script = redirecting(&tag, old, Kind::Script, "text/javascript", new);
    assert_eq!(counts(&script, Accelerator::Off), (3, 3));
    assert_eq!(
        counts(&script, Accelerator::Cold),
        (3, 2),
        "the client is sent there"
    );
}

#[test]
fn a_page_at_an_ip_address_is_rejected() {
    let mut replica = page("<!DOCTYPE html>", Vec::new());
    replica.exchanges[0].url = Url::parse("http://192.0.2.1/").unwrap();
    let options = through(Accelerator::Cold);
    let network = RaceNetwork::parse("cable").unwrap();
    let page = Page::new(replica);
    let load = load::load(
        &page,
        RaceProtocol::Spdy,
        "",
        &network.config(&options),
        &options,
        1,
    );
    assert!(
        load.failures[0].contains("found 192.0.2.1"),
        "{:?}",
        load.failures
    );
}

/// The meaning of `//host/` depends on the scheme of the page: over TLS the host is contacted in TLS, even if it was recorded
/// without.
#[test]
fn scheme_relative_urls_are_proxied_over_both_schemes() {
    let html = "<!DOCTYPE html><img src=//cdn.other.test/a.png>";
    let page = Page::new(page(html, vec![image("http://cdn.other.test/a.png")]));
    for (protocol, letter) in [(RaceProtocol::Http, 'p'), (RaceProtocol::Spdy, 's')] {
        let load = load(&page, protocol, &through(Accelerator::Cold));
        let moved = format!("http://www.page.test/.spdy/1/-/{letter}/cdn.other.test/a.png");
        assert_eq!(load.waterfall[1].url, moved);
    }
}

/// As Chromium records it: the second request of a page for the same image revalidates the first response.
#[test]
fn a_repeated_request_accepts_either_recorded_response() {
    let (image, mut again) = (
        image("http://img.test/a.png"),
        image("http://img.test/a.png"),
    );
    again.response_head = Bytes::from_static(b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n");
    again.body = Bytes::new();
    let html = "<img src=//img.test/a.png>";
    let page = Page::new(page(html, vec![image, again]));
    for accelerator in [Accelerator::Cold, Accelerator::Warm] {
        load(&page, RaceProtocol::Spdy, &through(accelerator));
    }
}

/// A browser states in each request whether it goes to another site. A proxied request does not.
#[test]
fn proxied_requests_are_marked_same_origin() {
    let of_browser = |mut exchange: Exchange, fields: &[(&str, &str)]| {
        for (name, value) in fields {
            exchange.request_head = head::with_field(&exchange.request_head, name, Some(value));
        }
        exchange
    };
    let fields = [
        ("Sec-Fetch-Dest", "image"),
        ("Sec-Fetch-Mode", "no-cors"),
        ("Sec-Fetch-Site", "cross-site"),
    ];
    let image = of_browser(image("http://img.test/a.png"), &fields);
    let page = Page::new(page("<img src=//img.test/a.png>", vec![image]));
    for accelerator in [Accelerator::Cold, Accelerator::Warm] {
        let load = load(&page, RaceProtocol::Spdy, &through(accelerator));
        assert_eq!((hosts(&load).len(), load.connections), (1, 1));
    }
}

/// The second view of a page that is as old as its lifetime when it comes from its origin, so the accelerator revalidates it with the
/// origin, 200 ms away. Its style sheet is cached.
fn revalidated_load(protocol: RaceProtocol, push: Push, hints: bool) -> Load {
    let sheet = exchange(
        "http://www.page.test/a.css",
        Kind::Stylesheet,
        "text/css",
        "p { color: red }",
    );
    let html = "<!DOCTYPE html><link rel=stylesheet href=/a.css><p>";
    let mut replica = page(html, vec![with_cache_control(sheet, "max-age=60")]);
    let mut document = with_cache_control(replica.exchanges[0].clone(), "max-age=60");
    for (name, value) in [("age", "60"), ("etag", "\"1\"")] {
        document.response_head = head::with_field(&document.response_head, name, Some(value));
    }
    replica.exchanges[0] = document;
    let options = Options {
        push,
        hints,
        backhaul: Duration::from_millis(200),
        ..through(Accelerator::Warm)
    };
    load(&Page::new(replica), protocol, &options)
}

#[test]
fn early_hints_are_requested_while_the_origin_revalidates() {
    for protocol in [RaceProtocol::H2, RaceProtocol::H3] {
        let [plain, hinted] = [false, true].map(|hints| {
            let load = revalidated_load(protocol, Push::No, hints);
            let [page, sheet] = &load.waterfall[..] else {
                panic!("expected a page and a sheet: {:?}", load.waterfall);
            };
            (page.first_byte, sheet.sent, sheet.done, load.load_ms)
        });
        assert!(plain.1 >= plain.0, "{protocol}: {plain:?}");
        assert!(
            hinted.1 < hinted.0 && hinted.2 < hinted.0,
            "{protocol}: {hinted:?}"
        );
        // It saves the round trip to the accelerator.
        assert!(
            hinted.3 < plain.3 - 20.0,
            "{protocol}: {hinted:?}, {plain:?}"
        );
    }
}

#[test]
fn pushed_resources_are_not_requested() {
    let [plain, pushed] =
        [Push::No, Push::ByGraph].map(|push| revalidated_load(RaceProtocol::Spdy, push, false));
    assert_eq!((plain.requests, pushed.requests), (2, 1));
    let saved = plain.load_ms - pushed.load_ms;
    assert!(saved > 20.0, "{saved} ms");
}

/// The accelerator requests the whole resource from the origin if a client's range begins at the first byte.
#[test]
fn completely_recorded_media_loads_through_the_accelerator() {
    let film = |host: &str| {
        let film = exchange(host, Kind::Media, "video/mp4", vec![7; 40_000]);
        let fields = [
            ("Content-Type", "video/mp4"),
            ("Content-Range", "bytes 0-39999/40000"),
            ("Cache-Control", "public, max-age=600"),
            ("Content-Length", "40000"),
        ];
        Exchange {
            response_head: head::synthesize("HTTP/1.1 206 Partial Content", fields),
            ..film
        }
    };
    let html = r#"<video src="/film"></video>"#;
    let page = Page::new(page(html, vec![film("http://www.page.test/film")]));
    for accelerator in [Accelerator::Off, Accelerator::Cold, Accelerator::Warm] {
        let load = load(&page, RaceProtocol::H2, &through(accelerator));
        assert_eq!(load.failures, [""; 0], "{accelerator:?}");
        assert_eq!(load.waterfall[1].status, 206, "{accelerator:?}");
    }
}

/// A module that imports another, which imports a third: each is found when the one before it has arrived. A client before has taught the
/// accelerator that they are needed, and it names them with the page, although the origin decides about the page each time.
#[test]
fn modules_that_modules_import_are_hinted() {
    let module = |name: &str, text: &str, importer: Option<usize>| {
        let url = format!("https://cdn.other.test/js/{name}");
        let mut module = exchange(&url, Kind::Script, "text/javascript", text.to_owned());
        let referer = match importer {
            None => "https://www.page.test/",
            Some(_) => "https://cdn.other.test/",
        };
        for (field, value) in [
            ("referer", referer),
            ("sec-fetch-dest", "script"),
            ("sec-fetch-mode", "cors"),
            ("sec-fetch-site", "cross-site"),
        ] {
            module.request_head = head::with_field(&module.request_head, field, Some(value));
        }
        if let Some(index) = importer {
            let at_byte = None;
            module.initiator = Initiator::Resource { index, at_byte };
        }
        let readable = head::with_field(
            &module.response_head,
            "access-control-allow-origin",
            Some("*"),
        );
        module.response_head = readable;
        with_cache_control(module, "public, max-age=600")
    };
    let html = "<!DOCTYPE html><script type=module src=https://cdn.other.test/js/a.js></script>";
    let mut replica = page(
        html,
        vec![
            module("a.js", "import './b.js'", None),
            module("b.js", "import './c.js'", Some(1)),
            module("c.js", "document.title = 'c'", Some(2)),
        ],
    );
    replica.exchanges[0].url = Url::parse("https://www.page.test/").unwrap();
    replica.exchanges[0] = with_cache_control(replica.exchanges[0].clone(), "no-cache");
    let page = Page::new(replica);
    let network = "down=8mbit,up=1mbit,rtt=150ms";
    for protocol in [RaceProtocol::H2, RaceProtocol::H3] {
        let [plain, hinted] = [false, true].map(|hints| {
            let options = Options {
                hints,
                ..through(Accelerator::Warm)
            };
            load_over(network, &page, protocol, &options).load_ms
        });
        let saved = plain - hinted;
        assert!((250.0..350.0).contains(&saved), "{protocol}: {saved} ms");
    }
}

/// 150 kB over a path of 100 packets: four round trips from ten packets, fewer from what the path has taken before.
#[test]
fn a_known_network_saves_round_trips_of_slow_start() {
    let mut image = image("https://www.page.test/a.png");
    image.body = vec![7; 150_000].into();
    let mut replica = page("<!DOCTYPE html><img src=a.png>", vec![image]);
    replica.exchanges[0].url = Url::parse("https://www.page.test/").unwrap();
    for exchange in &mut replica.exchanges {
        *exchange = with_cache_control(exchange.clone(), "max-age=60");
    }
    let page = Page::new(replica);
    let network = "down=8mbit,up=1mbit,rtt=150ms";
    for protocol in [
        RaceProtocol::Https,
        RaceProtocol::Spdy,
        RaceProtocol::H2,
        RaceProtocol::H3,
    ] {
        let [warm, known] = [Accelerator::Warm, Accelerator::Known]
            .map(|accelerator| load_over(network, &page, protocol, &through(accelerator)).load_ms);
        let saved = warm - known;
        assert!(
            (130.0..350.0).contains(&saved),
            "{protocol}: {warm} ms, {known} ms"
        );
    }
}
