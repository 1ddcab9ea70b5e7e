//! What the messages of DevTools add to a log.

use std::time::Duration;

use spdy_page::devtools::Observations;
use spdy_page::graph::PageGraph;
use spdy_page::limits::Limits;
use spdy_page::netlog;
use spdy_page::open::OpenedReplica;
use spdy_page::replica::{Initiator, Kind};

use crate::support::netlog_writer::NetLog;
use crate::support::soundness;

use super::samples::{DEVTOOLS, HTML, LOG, observations, one, page, text};

#[test]
fn devtools_events_add_initiators_priorities_and_exact_times() {
    let observations = observations();
    let recorded = netlog::record(
        LOG.as_bytes(),
        "four",
        "a test",
        &observations,
        &Limits::default(),
    );
    let replica = recorded.unwrap().replica;
    soundness::assert_sound(&replica, "recorded");
    let at = |path: &str| {
        let mut all = replica.exchanges.iter();
        all.position(|exchange| exchange.url.path() == path)
            .expect("it is there")
    };
    let by = |index| Initiator::Resource {
        index,
        at_byte: None,
    };
    assert_eq!(one(&replica, "/", 200).initiator, Initiator::Navigation);
    assert_eq!(one(&replica, "/s.js", 200).initiator, by(at("/")));
    assert_eq!(one(&replica, "/post", 200).initiator, by(at("/s.js")));
    assert_eq!(
        one(&replica, "/real.png", 200).initiator,
        Initiator::Redirect {
            index: at("/r.png")
        }
    );
    assert_eq!(one(&replica, "/big", 206).kind, Kind::Fetch);
    let script = &one(&replica, "/s.js", 200);
    assert_eq!(script.observed.priority.as_deref(), Some("High"));
    assert_eq!(script.observed.compute, Some(Duration::from_micros(1495)));
    assert_eq!(script.started, Some(Duration::from_nanos(20_680_000)));
    assert_eq!(replica.load, Some(Duration::from_nanos(60_437_000)));
    assert_eq!(
        replica.recorded.unwrap().to_string(),
        "2026-11-21T10:00:59.167152Z"
    );
    let graph = PageGraph::of(&replica);
    let node = graph
        .nodes
        .iter()
        .find(|node| node.exchange == at("/s.js"))
        .unwrap();
    assert_eq!(node.compute, Duration::from_micros(1495));
    assert_eq!((observations.requests(), observations.in_flight()), (11, 0));
}

#[test]
fn a_module_has_the_times_of_its_compilation_and_of_the_evaluation_after_it() {
    let mut observations = observations();
    let event = |name: &str, at: u32, dur: u32, args: &str| {
        format!(r#"{{"name":"{name}","ts":{at},"dur":{dur},"pid":1,"tid":1,"args":{args}}}"#)
    };
    let file = r#"{"fileName":"http://c.test:32799/s.js"}"#;
    let events = [
        event("v8.compileModule", 100, 30, file),
        event("v8.evaluateModule", 200, 4000, "{}"),
        event("v8.evaluateModule", 9000, 1, "{}"),
    ];
    let message = format!(
        r#"{{"method":"Tracing.dataCollected","params":{{"value":[{}]}}}}"#,
        events.join(",")
    );
    observations.take(&message, true);
    let recorded = netlog::record(LOG.as_bytes(), "x", "x", &observations, &Limits::default());
    let replica = recorded.unwrap().replica;
    // 1,495 µs are of its evaluation as a classic script.
    let compute = one(&replica, "/s.js", 200).observed.compute;
    assert_eq!(compute, Some(Duration::from_micros(1495 + 4030)));
}

#[test]
fn observed_requests_are_limited_to_a_recordings_maximum() {
    let limits = Limits {
        records: 10,
        ..Limits::default()
    };
    let mut observations = Observations::new(&limits);
    DEVTOOLS
        .lines()
        .for_each(|message| observations.take(message, true));
    assert_eq!(observations.requests(), 10);
    let recorded = netlog::record(LOG.as_bytes(), "x", "x", &observations, &Limits::default());
    let notes = recorded.unwrap().notes.to_string();
    assert!(
        notes.contains("more requests were made than a recording can store"),
        "{notes}"
    );
}

/// The DevTools messages for a request, served from the memory cache or not.
fn devtools_request(number: usize, url: &str, priority: &str, from_memory: bool) -> String {
    let kind = if number == 1 { "Document" } else { "Image" };
    let params = format!(
        r#"{{"requestId":"{number}","request":{{"url":"{url}","method":"GET","initialPriority":"{priority}"}},"timestamp":{number},"type":"{kind}"}}"#
    );
    let sent = format!(r#"{{"method":"Network.requestWillBeSent","params":{params}}}"#);
    let served = format!(
        r#"{{"method":"Network.requestServedFromCache","params":{{"requestId":"{number}"}}}}"#
    );
    if from_memory {
        format!("{sent}\n{served}")
    } else {
        sent
    }
}

#[test]
fn times_and_failures_of_a_load_need_no_log() {
    let mut observations = Observations::new(&Limits::default());
    assert_eq!(observations.load_time(), None);
    for number in 1..=5 {
        let url = format!("http://a.test/{number}");
        observations.take(&devtools_request(number, &url, "Low", false), true);
    }
    let messages = [
        r#"{"method":"Page.domContentEventFired","params":{"timestamp":6.25}}"#,
        r#"{"method":"Page.loadEventFired","params":{"timestamp":6.5}}"#,
        // Complete; without a response; of another origin without CORS; cut off.
        r#"{"method":"Network.loadingFinished","params":{"requestId":"1"}}"#,
        r#"{"method":"Network.loadingFailed","params":{"requestId":"2","errorText":"net::ERR_EMPTY_RESPONSE"}}"#,
        r#"{"method":"Network.loadingFailed","params":{"requestId":"3","corsErrorStatus":{"corsError":"MissingAllowOriginHeader"}}}"#,
        r#"{"method":"Network.responseReceived","params":{"requestId":"4","response":{"timing":{"requestTime":4}}}}"#,
        r#"{"method":"Network.loadingFailed","params":{"requestId":"4","errorText":"net::ERR_ABORTED"}}"#,
    ];
    messages
        .iter()
        .for_each(|message| observations.take(message, true));
    let times = (
        observations.dom_content_loaded_time(),
        observations.load_time(),
    );
    let ms = |ms| Some(Duration::from_millis(ms));
    assert_eq!(times, (ms(5_250), ms(5_500)));
    let failures = observations.failures();
    let failures: Vec<_> = failures
        .iter()
        .map(|it| (&it.url[..], &it.error[..]))
        .collect();
    let expected = [
        ("http://a.test/2", "net::ERR_EMPTY_RESPONSE"),
        ("http://a.test/5", "in progress when the recording ended"),
    ];
    assert_eq!(failures, expected);
}

/// As with QUIC: no event has the address of its sockets.
#[test]
fn addresses_missing_in_the_log_come_from_devtools() {
    let mut log = NetLog::default();
    log.exchange("https://a.test/", true, 4_242, HTML, "hi");
    let received = r#"{"method":"Network.responseReceived","params":{"requestId":"1","response":{"remoteIPAddress":"[2001:db8::7]"}}}"#;
    let mut observations = Observations::new(&Limits::default());
    observations.take(
        &devtools_request(1, "https://a.test/", "VeryHigh", false),
        true,
    );
    observations.take(received, true);
    let limits = Limits::default();
    let recorded = netlog::record(log.text().as_bytes(), "x", "x", &observations, &limits);
    let address = recorded.unwrap().replica.document().address;
    assert_eq!(address, Some("2001:db8::7".parse().unwrap()));
}

#[test]
fn responses_of_a_service_worker_are_counted() {
    let (log, _) = page(HTML, "hi");
    let received = r#"{"method":"Network.responseReceived","params":{"requestId":"2","response":{"fromServiceWorker":true}}}"#;
    let mut observations = Observations::new(&Limits::default());
    for message in [
        &devtools_request(1, "http://a.test/", "VeryHigh", false),
        &devtools_request(2, "http://a.test/x.png", "Low", false),
        received,
    ] {
        observations.take(message, true);
    }
    let limits = Limits::default();
    let recorded = netlog::record(log.text().as_bytes(), "x", "x", &observations, &limits);
    let OpenedReplica { replica, notes } = recorded.unwrap();
    assert_eq!(replica.exchanges.len(), 1);
    assert_eq!(notes.skipped["from a service worker"], 1);
}

#[test]
fn repeated_requests_match_their_own_observation() {
    let (mut log, socket) = page(HTML, "hi");
    let url = "http://a.test/x.png";
    log.exchange(url, false, socket, HTML, "1!");
    let cached = log.start("GET", url, false);
    log.end(cached, 0);
    log.exchange(url, false, socket, HTML, "2!");
    let mut observations = Observations::new(&Limits::default());
    let messages = [
        devtools_request(1, "http://a.test/", "VeryHigh", false),
        devtools_request(2, url, "Low", false),
        devtools_request(3, url, "memory", true),
        devtools_request(4, url, "disk", false),
        devtools_request(5, url, "High", false),
    ];
    messages
        .iter()
        .flat_map(|message| message.lines())
        .for_each(|message| observations.take(message, true));
    let recorded = netlog::record(
        log.text().as_bytes(),
        "x",
        "x",
        &observations,
        &Limits::default(),
    );
    let OpenedReplica { replica, notes } = recorded.unwrap();
    let seen: Vec<_> = replica
        .exchanges
        .iter()
        .map(|exchange| {
            (
                text(&exchange.body),
                exchange.observed.priority.as_deref().unwrap_or_default(),
            )
        })
        .collect();
    assert_eq!(seen, [("hi", "VeryHigh"), ("1!", "Low"), ("2!", "High")]);
    assert_eq!(notes.skipped["from the browser's cache"], 1);
}

/// Chromium looks for a font in its cache before it requests it; DevTools shows one request.
#[test]
fn a_cache_lookup_is_no_failure_of_the_later_request() {
    let (mut log, socket) = page(HTML, "hi");
    let (font, absent) = ("http://a.test/font.woff2", "http://a.test/absent.woff2");
    for url in [font, absent] {
        let look = log.start("GET", url, false);
        log.end(look, -400);
    }
    log.exchange(font, false, socket, HTML, "1!");
    let mut observations = Observations::new(&Limits::default());
    observations.take(
        &devtools_request(1, "http://a.test/", "VeryHigh", false),
        true,
    );
    observations.take(&devtools_request(2, font, "Low", false), true);
    observations.take(&devtools_request(3, absent, "Low", false), true);
    let failed = r#"{"method":"Network.loadingFailed","params":{"requestId":"3","timestamp":4,"errorText":"net::ERR_CACHE_MISS"}}"#;
    observations.take(failed, true);
    let limits = Limits::default();
    let recorded = netlog::record(log.text().as_bytes(), "x", "x", &observations, &limits);
    let OpenedReplica { replica, notes } = recorded.unwrap();
    let failures = replica.failures.iter();
    let failures: Vec<_> = failures.map(|it| (&it.url[..], &it.error[..])).collect();
    assert_eq!(failures, [(absent, "net::ERR_CACHE_MISS")]);
    assert!(notes.skipped.is_empty(), "{notes}");
    let priority = replica.exchanges[1].observed.priority.as_deref();
    assert_eq!(priority, Some("Low"), "the observation is of the request");
}

#[test]
fn invalid_messages_are_ignored() {
    let mut observations = observations();
    let before = format!("{observations:?}");
    for message in [
        "",
        "{",
        "[]",
        "{\"method\":7}",
        "{\"method\":\"Network.requestWillBeSent\"}",
        "{\"method\":\"Network.loadingFinished\",\"params\":{\"requestId\":\"unknown\"}}",
    ] {
        observations.take(message, true);
    }
    assert_eq!(format!("{observations:?}"), before);
}

/// Chromium raises images that layout finds in the window.
#[test]
fn the_time_at_which_a_request_is_raised_is_recorded() {
    let raised = |first, changes: &[(&str, f64)]| {
        let image = "http://a.test/x.png";
        let (mut log, socket) = page(HTML, "hi");
        log.exchange(image, false, socket, HTML, "1!");
        let mut observations = Observations::new(&Limits::default());
        let document = devtools_request(1, "http://a.test/", "VeryHigh", false);
        observations.take(&document, true);
        observations.take(&devtools_request(2, image, first, false), true);
        for (priority, timestamp) in changes {
            let change = format!(
                r#"{{"method":"Network.resourceChangedPriority","params":{{"requestId":"2","newPriority":"{priority}","timestamp":{timestamp}}}}}"#
            );
            observations.take(&change, true);
        }
        let limits = Limits::default();
        let recorded = netlog::record(log.text().as_bytes(), "x", "x", &observations, &limits);
        let image = &recorded.unwrap().replica.exchanges[1].observed;
        assert_eq!(image.priority.as_deref(), Some(first), "as at first");
        image.raised_after
    };
    let ms = |ms| Some(Duration::from_millis(ms));
    // The request is at 2 s.
    assert_eq!(
        raised("Low", &[("High", 2.25), ("Low", 2.5), ("High", 3.0)]),
        ms(250)
    );
    assert_eq!(
        raised("Low", &[("Medium", 2.25), ("VeryHigh", 2.5)]),
        ms(500)
    );
    assert_eq!(raised("Low", &[("Medium", 2.25)]), None);
    assert_eq!(
        raised("High", &[("VeryHigh", 2.25)]),
        None,
        "no limit delays it"
    );
}
