//! Delays that a load repeats from its recording.

use std::time::Duration;

use spdy_page::builtin;
use spdy_page::replica::{Exchange, Kind, Replica};
use spdy_sim::load::Page;
use spdy_sim::options::{Options, RaceProtocol, Scheduler};

use crate::support::whole_load::whole;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn exchange(url: &str, kind: Kind, body: &str, started: u64) -> Exchange {
    Exchange {
        started: Some(ms(started)),
        wait: Some(ms(100)),
        receive: Some(ms(0)),
        ..Exchange::synthetic(url.parse().unwrap(), kind, "text/html", body.to_owned())
    }
}

#[test]
fn the_load_event_is_as_late_as_in_the_recording() {
    // The script ends at 200 ms and runs for 20 ms.
    let load_ms = |recorded| {
        let document = "<script src=s.js></script>";
        let document = exchange("http://a.test/", Kind::Document, document, 0);
        let mut script = exchange("http://a.test/s.js", Kind::Script, "x", 100);
        script.observed.compute = Some(ms(20));
        let page = Page::new(Replica {
            start: 0,
            exchanges: vec![document, script],
            load: Some(recorded),
            ..builtin::flags()
        });
        whole(&page, RaceProtocol::H2, &Options::default()).load_ms
    };
    let at_once = load_ms(ms(220));
    let later = load_ms(ms(245));
    assert!((later - at_once - 25.0).abs() < 1e-6, "{at_once}, {later}");
}

/// When the name of the last of twelve images is looked up, in milliseconds after the first. Each is at its own host, and the last
/// is raised so long after its request.
fn last_lookup_ms(kind: Kind, raised_after: Option<Duration>, scheduler: Scheduler) -> f64 {
    let urls: Vec<String> = (10..22)
        .map(|host| format!("http://{host}.test/x"))
        .collect();
    let tags: String = urls.iter().map(|url| format!("<img src={url}>")).collect();
    let document = exchange(
        "http://a.test/",
        Kind::Document,
        &format!("<body>{tags}"),
        0,
    );
    let mut exchanges = vec![document];
    for url in &urls {
        let mut image = exchange(url, Kind::Image, "an image", 100);
        image.observed.priority = Some("Low".to_owned());
        exchanges.push(image);
    }
    let last = exchanges.last_mut().unwrap();
    last.kind = kind;
    last.observed.raised_after = raised_after;
    let page = Page::new(Replica {
        start: 0,
        exchanges,
        ..builtin::flags()
    });
    let options = Options {
        scheduler,
        ..Options::default()
    };
    let load = whole(&page, RaceProtocol::H2, &options);
    let lookup = |url: &String| {
        let row = load.waterfall.iter().find(|row| row.url == *url).unwrap();
        row.dns.expect("its own host").0
    };
    (lookup(&urls[11]) - lookup(&urls[0])).as_secs_f64() * 1e3
}

#[test]
fn an_image_that_the_browser_raised_does_not_wait_for_ten_others() {
    let chromium = |kind, raised_after| last_lookup_ms(kind, raised_after, Scheduler::Chromium);
    // Another image has come after a lookup, three round trips of handshakes and one of its own.
    let held = chromium(Kind::Image, None);
    assert!(held > 200.0, "{held} ms");
    let raised = chromium(Kind::Image, Some(ms(5)));
    assert!((4.0..15.0).contains(&raised), "{raised} ms");
    assert_eq!(
        chromium(Kind::Media, Some(ms(5))),
        chromium(Kind::Media, None)
    );
    let old = |raised_after| last_lookup_ms(Kind::Image, raised_after, Scheduler::Chromium49);
    assert_eq!(old(Some(ms(5))), old(None), "it has no such rule");
}
