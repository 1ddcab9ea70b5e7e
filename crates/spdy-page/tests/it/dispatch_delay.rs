//! The time between a request by the page and the browser's network code.

use std::time::Duration;

use spdy_page::builtin;
use spdy_page::graph::PageGraph;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};

const HTML: &str =
    "<script src=a.js></script><script src=b.js></script><img src=c.png><img src=d.png>";

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A page whose document has arrived at 120 ms. `started` has the starts of the others.
fn page(protocol: &str, started: [u64; 4]) -> Replica {
    let url = |path: &str| format!("https://a.test/{path}").parse().unwrap();
    let document = Exchange::synthetic(url(""), Kind::Document, "text/html", HTML);
    let others = [
        ("a.js", Kind::Script, "text/javascript"),
        ("b.js", Kind::Script, "text/javascript"),
        ("c.png", Kind::Image, "image/png"),
        ("d.png", Kind::Image, "image/png"),
    ];
    let others = others
        .map(|(path, kind, content_type)| Exchange::synthetic(url(path), kind, content_type, "x"));
    let mut exchanges: Vec<Exchange> = [document].into_iter().chain(others).collect();
    let starts = [0].into_iter().chain(started);
    for (exchange, start) in exchanges.iter_mut().zip(starts) {
        exchange.started = Some(ms(start));
        (exchange.wait, exchange.receive) = (Some(ms(110)), Some(ms(10)));
        let observed = &mut exchange.observed;
        observed.protocol = Some(protocol.to_owned());
        let is_image = exchange.kind == Kind::Image;
        observed.priority = Some(if is_image { "Low" } else { "High" }.to_owned());
        observed.compute = (exchange.kind == Kind::Script).then_some(ms(1));
    }
    Replica {
        start: 0,
        exchanges,
        load: None,
        ..builtin::flags()
    }
}

/// States that `exchange` was queued for so long, `dns` and `connect` of it for its own connection.
fn queue(exchange: &mut Exchange, queued: u64, dns: u64, connect: u64) {
    exchange.queued = Some(ms(queued));
    exchange.observed.dns = (dns > 0).then(|| ms(dns));
    exchange.observed.connect = (connect > 0).then(|| ms(connect));
}

/// Moves the four to `host`.
fn move_to(replica: &mut Replica, host: &str) {
    replica.exchanges[0].body = HTML.replace('=', &format!("=//{host}/")).into();
    for exchange in &mut replica.exchanges[1..] {
        exchange.url.set_host(Some(host)).unwrap();
    }
}

/// The delays of the four.
fn delays_of(replica: &Replica) -> [Duration; 4] {
    let graph = PageGraph::of(replica);
    [1, 2, 3, 4].map(|index| {
        let mut nodes = graph.nodes.iter();
        let node = nodes.find(|node| node.exchange == index);
        node.unwrap().delay
    })
}

/// The delays of dispatch of the four, in milliseconds: without the gap to the document.
fn dispatch(replica: &Replica) -> [u128; 4] {
    let delays = delays_of(replica);
    [0, 1, 2, 3].map(|at| {
        let gap = replica.exchanges[at + 1].started.unwrap() - ms(120);
        (delays[at] - gap).as_millis()
    })
}

#[test]
fn a_burst_has_the_delay_of_those_that_opened_a_connection() {
    let mut replica = page("http/1.1", [130, 131, 132, 152]);
    queue(&mut replica.exchanges[1], 100, 30, 50);
    // These have waited for a connection.
    for index in 2..5 {
        queue(&mut replica.exchanges[index], 300, 0, 0);
    }
    assert_eq!(dispatch(&replica), [20, 20, 20, 0]);
    replica.exchanges[1].observed.connect = None;
    assert_eq!(
        dispatch(&replica),
        [0; 4],
        "it may have waited for a connection"
    );
}

#[test]
fn requests_are_dispatched_in_their_order() {
    let mut replica = page("http/1.1", [130, 132, 133, 128]);
    queue(&mut replica.exchanges[1], 100, 0, 40);
    queue(&mut replica.exchanges[2], 65, 0, 60);
    // 60 ms after 130 ms would be after 5 ms after 132 ms.
    assert_eq!(dispatch(&replica), [7, 5, 5, 7]);
    // An image that waited for 1 ms bounds those before it.
    queue(&mut replica.exchanges[3], 1, 0, 0);
    assert_eq!(dispatch(&replica), [4, 2, 1, 4]);
    // One that started later is not dispatched before them, even far from the known one.
    let mut replica = page("http/1.1", [130, 900, 139, 141]);
    queue(&mut replica.exchanges[1], 70, 0, 40);
    assert_eq!(dispatch(&replica), [30, 0, 30, 28]);
    let mut replica = page("http/1.1", [130, 900, 150, 165]);
    queue(&mut replica.exchanges[1], 70, 0, 40);
    assert_eq!(dispatch(&replica), [30, 0, 10, 0]);
}

#[test]
fn only_the_highest_priorities_and_plausible_waits_are_known() {
    for (priority, queued, expected) in [
        ("VeryHigh", 12, 12),
        ("Medium", 12, 0),
        ("Low", 12, 0),
        ("High", 200, 200),
        ("High", 201, 0),
    ] {
        let mut replica = page("h3", [130, 900, 132, 900]);
        let script = &mut replica.exchanges[1];
        script.url = "https://b.test/a.js".parse().unwrap();
        script.observed.priority = Some(priority.to_owned());
        queue(script, queued + 50, 0, 50);
        replica.exchanges[0].body = HTML.replace("a.js", "//b.test/a.js").into();
        // The image has no bound of its own.
        let [_, _, image, _] = delays_of(&replica);
        let bare = {
            queue(&mut replica.exchanges[1], 50, 0, 50);
            delays_of(&replica)[2]
        };
        assert_eq!((image - bare).as_millis(), expected, "{priority} {queued}");
    }
}

#[test]
fn redirects_and_preflights_are_followed_by_the_network_code_itself() {
    let changes: [&dyn Fn(&mut Exchange); 2] = [
        &|it| it.initiator = Initiator::Redirect { index: 3 },
        &|it| it.method = http::Method::OPTIONS,
    ];
    for change in changes {
        let mut replica = page("h2", [130, 131, 500, 500]);
        queue(&mut replica.exchanges[1], 40, 0, 0);
        queue(&mut replica.exchanges[2], 1, 0, 0);
        assert_eq!(dispatch(&replica)[..2], [2, 1]);
        change(&mut replica.exchanges[2]);
        assert_eq!(dispatch(&replica)[0], 40);
    }
}

#[test]
fn requests_by_cors_and_after_a_preflight_may_wait_for_something_else() {
    let known = |change: &dyn Fn(&mut Replica)| {
        let mut replica = page("h2", [130, 500, 900, 900]);
        queue(&mut replica.exchanges[2], 12, 0, 0);
        change(&mut replica);
        dispatch(&replica)[1] == 12
    };
    assert!(known(&|_| ()));
    // Only other hosts have connections of their own for requests without credentials.
    for (host, is_known) in [("a.test", true), ("b.test", false)] {
        let by_cors = known(&|replica| {
            move_to(replica, host);
            let head = "GET /b.js HTTP/1.1\r\nOrigin: https://a.test\r\n\r\n";
            replica.exchanges[2].request_head = head.into();
        });
        assert_eq!(by_cors, is_known, "{host}");
        let font = known(&|replica| {
            move_to(replica, host);
            replica.exchanges[2].kind = Kind::Font;
        });
        assert_eq!(font, is_known, "a font of {host}");
    }
    assert!(!known(&|replica| {
        let mut preflight = replica.exchanges[2].clone();
        preflight.method = http::Method::OPTIONS;
        replica.exchanges.push(preflight);
    }));
    // The number of the connection says more than the host.
    let on_connections = |numbers: [u32; 2]| {
        known(&|replica| {
            replica.exchanges[0].observed.connection = Some(numbers[0]);
            replica.exchanges[1].observed.connection = Some(numbers[0]);
            replica.exchanges[2].observed.connection = Some(numbers[1]);
        })
    };
    assert_eq!(
        [on_connections([0, 0]), on_connections([0, 1])],
        [true, false]
    );
    // A response without a number can have come on any connection of its origin, and no other response can.
    let without_number = |index: usize| {
        known(&|replica| {
            for (at, number) in [(0, 0), (1, 0), (2, 1)] {
                replica.exchanges[at].observed.connection = Some(number);
            }
            replica.exchanges[index].observed.connection = None;
        })
    };
    assert_eq!([without_number(0), without_number(2)], [true, false]);
}

/// Three requests of a burst and an image after it: a.js, b.js and c.png are dispatched at 170, 178 and 185 ms.
fn burst(protocol: &str, change: impl FnOnce(&mut Replica)) -> [u128; 4] {
    let mut replica = page(protocol, [130, 160, 171, 900]);
    for (index, queued) in [(1, 40), (2, 18), (3, 14)] {
        queue(&mut replica.exchanges[index], queued, 0, 0);
        let observed = &mut replica.exchanges[index].observed;
        observed.priority = Some("High".to_owned());
        observed.think_time = Some(ms(0));
    }
    change(&mut replica);
    dispatch(&replica)
}

#[test]
fn a_burst_on_an_open_connection_of_http_2_is_written_when_its_last_request_is_dispatched() {
    // When a.js is dispatched, b.js waits, and c.png does not.
    assert_eq!(burst("h2", |_| ()), [48, 18, 14, 0]);
    // QUIC sends each request at once: 40, 18 and 14 ms. Its tags can be read 7, 4 and 1 ms before the end of the document.
    assert_eq!(burst("h3", |_| ()), [47, 22, 15, 0]);
    // An estimated think time contains the time to the write.
    let estimated = burst("h2", |replica| {
        replica.exchanges[1].observed.think_time = None;
    });
    // Now b.js begins a burst, in which c.png waits.
    assert_eq!(estimated, [40, 25, 14, 0]);
}

#[test]
fn a_write_waits_for_no_request_that_is_dispatched_long_after_the_others() {
    let far = |queued| {
        burst("h2", |replica| {
            queue(&mut replica.exchanges[2], queued, 0, 0);
            queue(&mut replica.exchanges[3], queued, 0, 0);
        })
    };
    assert_eq!(far(20)[0], 50, "10 ms after a.js");
    assert_eq!(far(21)[0], 40, "11 ms after a.js");
}

#[test]
fn other_requests_of_a_burst_are_written_with_it() {
    let with_image = burst("h2", |replica| {
        // c.png was requested between the two scripts. Its own dispatch is unknown.
        replica.exchanges[3].started = Some(ms(135));
        replica.exchanges[3].queued = None;
        replica.exchanges[3].observed.priority = Some("Low".to_owned());
    });
    assert_eq!(with_image, [48, 18, 43, 0]);
}

#[test]
fn a_request_that_opened_a_connection_does_not_wait_for_a_write() {
    let opened = burst("h2", |replica| {
        queue(&mut replica.exchanges[1], 45, 0, 5);
    });
    assert_eq!(opened, [40, 25, 14, 0]);
}

#[test]
fn an_idle_connection_of_http_1_1_is_one_whose_last_response_has_ended() {
    for (started, connection, expected) in [
        (130, Some(0), 12),
        (119, Some(0), 0),
        // Opened ahead, together with the first.
        (130, Some(1), 12),
        (109, Some(1), 0),
        (130, None, 0),
    ] {
        let mut replica = page("http/1.1", [started, 500, 900, 900]);
        replica.exchanges[0].observed.connection = Some(0);
        replica.exchanges[1].observed.connection = connection;
        queue(&mut replica.exchanges[0], 0, 0, 0);
        queue(&mut replica.exchanges[1], 12, 0, 0);
        let gap = u128::from(u64::saturating_sub(started, 120));
        let [script, ..] = delays_of(&replica);
        let found = script.as_millis() - gap;
        assert_eq!(found, expected, "{started} on {connection:?}");
    }
}

#[test]
fn a_byte_can_be_read_at_the_end_of_its_tls_record() {
    const RECORD: usize = 1 << 14;
    // The image is at the start of a body of two and a half records, which came from 110 to 120 ms.
    let body = format!("<img src=c.png>{}", " ".repeat(RECORD * 5 / 2 - 15));
    let delay_at = |protocol: &str, scheme: &str| {
        let mut replica = page(protocol, [200, 200, 130, 200]);
        for exchange in &mut replica.exchanges {
            exchange.url.set_scheme(scheme).unwrap();
        }
        replica.exchanges[0].body = body.clone().into();
        delays_of(&replica)[2].as_micros()
    };
    assert_eq!(delay_at("h2", "https"), 16_000);
    assert_eq!(delay_at("http/1.1", "https"), 16_000);
    let first = delay_at("h3", "https");
    assert!((19_990..20_000).contains(&first), "{first}");
    assert_eq!(delay_at("http/1.1", "http"), first);
}

#[test]
fn an_urgent_request_waits_for_nothing_on_an_open_connection_that_many_share() {
    for (protocol, expected) in [("h2", 12), ("spdy/3.1", 12), ("http/1.1", 0)] {
        let mut replica = page(protocol, [130, 500, 502, 503]);
        queue(&mut replica.exchanges[1], 12, 0, 0);
        // A limit may delay images.
        queue(&mut replica.exchanges[3], 12, 0, 0);
        assert_eq!(dispatch(&replica), [expected, 0, 0, 0], "{protocol}");
    }
    // The connection was not yet open.
    let mut replica = page("h2", [130, 131, 132, 133]);
    replica.exchanges[1].url = "https://b.test/a.js".parse().unwrap();
    replica.exchanges[0].body = HTML.replace("a.js", "//b.test/a.js").into();
    queue(&mut replica.exchanges[1], 12, 0, 0);
    assert_eq!(dispatch(&replica), [0; 4]);
}

#[test]
fn the_navigation_has_the_time_before_its_lookup_and_connection() {
    let mut replica = page("http/1.1", [900, 900, 900, 900]);
    let delay = |replica: &Replica| PageGraph::of(replica).nodes[0].delay;
    for (queued, dns, connect, expected) in [
        (180, 40, 60, 80),
        (180, 0, 60, 120),
        (9_000, 0, 60, 0),
        (50, 0, 60, 0),
        (180, 40, 0, 0),
    ] {
        queue(&mut replica.exchanges[0], queued, dns, connect);
        assert_eq!(delay(&replica), ms(expected), "{queued}, {dns}, {connect}");
    }
}

#[test]
fn in_other_recordings_only_the_navigation_has_such_a_delay() {
    let mut replica = page("h2", [130, 130, 130, 130]);
    for exchange in &mut replica.exchanges {
        exchange.observed.compute = None;
        queue(exchange, 12, 0, 5);
    }
    let delays = |replica: &Replica| -> Vec<Duration> {
        let graph = PageGraph::of(replica);
        graph.nodes.iter().map(|node| node.delay).collect()
    };
    assert_eq!(delays(&replica), [7, 0, 0, 0, 0].map(ms));
    replica.exchanges[0].observed.connect = None;
    assert_eq!(
        delays(&replica),
        [0; 5].map(ms),
        "it may have waited for a connection"
    );
}
