//! Waterfalls side by side as one file: of recordings, drawn like loads in virtual time, and of loads with names.

use std::collections::BTreeSet;
use std::time::Duration;

use spdy_clock::Instant;
use spdy_page::head::Head;
use spdy_page::replica::{Exchange, Replica};
use spdy_sim::load::{Load, WaterfallRow};

use crate::text::Millis;
use crate::waterfall;

/// Draws recorded loads side by side on the same time scale, as one SVG file on white paper, in the given order and with their names.
/// A recording without times is omitted; `None` if no recording has times.
///
/// Recorders use different words for initiators and priorities, so rows show none. `program` is the version that draws; it is shown
/// under the waterfalls with the recorded pages and their times.
#[must_use]
pub fn recordings(recorded: &[(String, Replica)], program: &str) -> Option<String> {
    let loads: Vec<Load> = recorded
        .iter()
        .map(|(name, page)| load(name, page))
        .collect();
    let loads: Vec<&Load> = loads.iter().collect();
    let words = ["recordings"];
    let (mut figure, drawn) = waterfall::figure(&words, "as recorded", &loads);
    if drawn.is_empty() {
        return None;
    }
    figure.title = "Waterfalls of recordings".to_owned();
    for (panel, load) in figure.panels.iter_mut().zip(drawn) {
        panel.caption = caption(&load.protocol, load);
    }
    let drawn = recorded.iter().filter(|(_, page)| is_timed(page));
    let pages: Vec<_> = drawn.map(|(name, page)| conditions(name, page)).collect();
    let program = format!("clock: real; program: spdy {program}");
    Some(figure.to_svg(&format!("{}; {program}", pages.join("; "))))
}

/// Draws loads of one page over `network` in virtual time side by side, each with its name, as one SVG file on white paper. `conditions`
/// are shown under the waterfalls.
#[must_use]
pub fn named_loads(loads: &[(&str, &Load)], network: &str, conditions: &str) -> String {
    let loads = loads.iter().filter(|(_, load)| !load.waterfall.is_empty());
    let (names, drawn): (Vec<&str>, Vec<&Load>) = loads.copied().unzip();
    let words = ["named loads"];
    let (mut figure, drawn) = waterfall::figure(&words, network, &drawn);
    for ((panel, load), name) in figure.panels.iter_mut().zip(drawn).zip(names) {
        panel.caption = caption(name, load);
    }
    figure.to_svg(conditions)
}

/// The name of a load and its size.
fn caption(name: &str, load: &Load) -> String {
    format!(
        "{name}: {} ms, {}, {}",
        Millis(load.load_ms),
        waterfall::format_count(load.requests, "request"),
        waterfall::format_count(load.connections, "connection")
    )
}

/// The recorded page and the time of its load.
fn conditions(name: &str, page: &Replica) -> String {
    let url = &page.document().url;
    match page.recorded {
        Some(at) => format!("{name}: {url}, recorded {at}"),
        None => format!("{name}: {url}"),
    }
}

fn is_timed(page: &Replica) -> bool {
    page.exchanges
        .iter()
        .any(|exchange| row(exchange).is_some())
}

/// The load to draw; its packets were not counted.
fn load(name: &str, page: &Replica) -> Load {
    let mut waterfall: Vec<WaterfallRow> = page.exchanges.iter().filter_map(row).collect();
    waterfall.sort_by_key(|row| row.needed);
    let connections: BTreeSet<_> = waterfall.iter().map(|row| row.connection).collect();
    let ms = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64() * 1e3;
    let largest = page.paints.largest_contentful.as_ref();
    Load {
        replica: page.name.clone(),
        protocol: name.to_owned(),
        dom_content_loaded_ms: ms(page.dom_content_loaded),
        load_ms: ms(page.load),
        fcp_ms: page.paints.first_contentful.map(|at| ms(Some(at))),
        lcp_ms: largest.map(|paint| ms(Some(paint.at))),
        connections: connections.len() as u64,
        requests: waterfall.len() as u64,
        waterfall,
        ..Load::default()
    }
}

/// The phases of an exchange; phases of a connection end when its request is sent. `None` if no times were recorded.
fn row(exchange: &Exchange) -> Option<WaterfallRow> {
    let observed = &exchange.observed;
    let at = |time: Duration| Instant::ZERO + time;
    let started = exchange.started?;
    let sent = started + exchange.queued.unwrap_or_default();
    let first_byte = sent + exchange.wait?;
    let connected = sent.saturating_sub(observed.connect.unwrap_or_default());
    let begun_tls = sent.saturating_sub(observed.tls.unwrap_or_default());
    let named = connected.saturating_sub(observed.dns.unwrap_or_default());
    let span = |happened: Option<Duration>, from: Duration, to: Duration| {
        happened.map(|_| (at(from), at(to)))
    };
    Some(WaterfallRow {
        url: exchange.url.to_string(),
        kind: exchange.kind,
        status: Head::parse(&exchange.response_head)
            .and_then(|head| head.status())
            .unwrap_or(0),
        connection: observed.connection.unwrap_or(0) as usize,
        priority: 0,
        body_bytes: exchange.body.len() as u64,
        needed: at(started),
        dns: span(observed.dns, named, connected),
        connect: span(observed.connect, connected, begun_tls),
        tls: span(observed.tls, begun_tls, sent),
        sent: at(sent),
        first_byte: at(first_byte),
        done: at(first_byte + exchange.receive.unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use spdy_page::builtin;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn recorded_phases_appear_with_connection_phases_first() {
        let mut exchange = builtin::portal().exchanges.remove(0);
        exchange.started = Some(10 * MS);
        exchange.queued = Some(100 * MS);
        exchange.wait = Some(50 * MS);
        exchange.receive = Some(7 * MS);
        exchange.observed.dns = Some(20 * MS);
        exchange.observed.connect = Some(60 * MS);
        exchange.observed.tls = Some(40 * MS);
        let row = row(&exchange).expect("it has times");
        let at = |ms: u32| Instant::ZERO + ms * MS;
        assert_eq!(row.dns, Some((at(30), at(50))));
        assert_eq!(row.connect, Some((at(50), at(70))));
        assert_eq!(row.tls, Some((at(70), at(110))));
        assert_eq!(
            (row.needed, row.sent, row.first_byte, row.done),
            (at(10), at(110), at(160), at(167))
        );
    }

    #[test]
    fn loads_are_drawn_under_their_names() {
        let mut page = builtin::portal();
        page.exchanges[0].started = Some(MS);
        page.exchanges[0].wait = Some(5 * MS);
        let timed = load("http", &page);
        let loads = [("direct", &timed), ("empty", &Load::default())];
        let drawn = named_loads(&loads, "dsl", "seed 1");
        assert!(
            drawn.contains("direct: 0.0 ms, 1 request, 1 connection"),
            "{drawn}"
        );
        assert!(drawn.contains("dsl") && drawn.contains("seed 1"), "{drawn}");
        assert!(!drawn.contains("empty"));
    }

    #[test]
    fn a_recording_is_drawn_under_its_name_and_one_without_times_is_not() {
        let mut timed = builtin::portal();
        timed.load = Some(234 * MS);
        for (number, exchange) in (0_u32..).zip(&mut timed.exchanges) {
            exchange.started = Some(number * MS);
            exchange.wait = Some(5 * MS);
            exchange.observed.connection = Some(number % 3);
        }
        let mut bare = builtin::portal();
        for exchange in &mut bare.exchanges {
            exchange.started = None;
        }
        let recorded = [("through".to_owned(), timed), ("untimed".to_owned(), bare)];
        let drawn = recordings(&recorded, "1.2.3").expect("one has times");
        assert!(
            drawn.contains("through: 234 ms, 44 requests, 3 connections"),
            "{drawn}"
        );
        assert!(!drawn.contains("untimed"));
        assert!(drawn.contains(">through: http"), "{drawn}");
        assert!(
            drawn.contains("clock: real; program: spdy 1.2.3<"),
            "{drawn}"
        );
        assert_eq!(recordings(&recorded[1..], "1.2.3"), None);
    }
}
