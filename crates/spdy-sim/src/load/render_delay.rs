//! The render delay of a recording: from the moment at which its browser could draw to the first paint.
//!
//! A recording has the ends of all exchanges, the times of evaluation, and the first paint. The machine of the
//! [page load model](crate::page_load) takes the recorded ends in place of a network, and states when the page could be drawn. The
//! time from then to the recorded paint is that of style, layout and painting on the recording's machine. No network changes it.

use std::collections::BTreeSet;
use std::time::Duration;

use spdy_clock::Instant;
use spdy_page::graph::{MAX_DELAY, PageGraph};
use spdy_page::replica::{Kind, Replica};

use crate::page_load::{PageLoad, PaintPlan, RENDER_DELAY};

/// Steps in which the body of an exchange arrives between its recorded first and last byte.
const STEPS: u32 = 16;

/// An arrival of the recording: of so many sixteenths of the body of a node.
type Arrival = (Instant, usize, u32);

/// The render delay of `replica`, at most [`MAX_DELAY`]; `None` if it has no first paint, or no times of evaluation.
pub(crate) fn recorded_render_delay(
    replica: &Replica,
    graph: &PageGraph,
    plan: &PaintPlan,
) -> Option<Duration> {
    let painted = Instant::ZERO + replica.paints.first_contentful?;
    let drawn = replica
        .has_evaluation_times()
        .then(|| first_paint(replica, graph, plan))
        .flatten()?;
    let ready = (drawn - Instant::ZERO).saturating_sub(RENDER_DELAY);
    let delay = painted - Instant::ZERO;
    Some(delay.saturating_sub(ready).min(MAX_DELAY))
}

/// The first paint of a load in which each exchange ends as recorded, or when it is requested.
fn first_paint(replica: &Replica, graph: &PageGraph, plan: &PaintPlan) -> Option<Instant> {
    let mut page = PageLoad::new(graph);
    page.draw(plan.clone());
    let mut now = Instant::ZERO;
    page.start(now);
    let mut arrivals: BTreeSet<Arrival> = BTreeSet::new();
    loop {
        while let Some(request) = page.poll_request() {
            let exchange = &replica.exchanges[graph.nodes[request.node].exchange];
            let (first, last) = exchange.first_byte().zip(exchange.finished())?;
            let step = last.saturating_sub(first) / STEPS;
            // Only the parts of a text can name other resources.
            let is_text = matches!(exchange.kind, Kind::Document | Kind::Stylesheet);
            let numbers = (0..=STEPS).filter(|&number| is_text || number % STEPS == 0);
            for number in numbers {
                let at = Instant::ZERO + first.saturating_add(step * number);
                arrivals.insert((at.max(now), request.node, number));
            }
        }
        if let Some(painted) = page.first_contentful_paint() {
            return Some(painted);
        }
        let arrival = arrivals.first().map(|&(at, ..)| at);
        let timeout = page.poll_timeout();
        now = arrival.into_iter().chain(timeout).min()?.max(now);
        if timeout.is_some_and(|timeout| timeout <= now) {
            page.handle_timeout(now);
        } else if let Some((_, node, number)) = arrivals.pop_first() {
            let exchange = &replica.exchanges[graph.nodes[node].exchange];
            let bytes = exchange.body.len() as u64 * u64::from(number) / u64::from(STEPS);
            match number {
                0 => page.handle_head(now, node),
                STEPS => {
                    page.handle_bytes(now, node, bytes);
                    page.handle_done(now, node);
                }
                _ => page.handle_bytes(now, node, bytes),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use spdy_page::replica::{Exchange, Initiator, Paints};

    use super::*;
    use crate::load::paint_plan::paint_plan;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A page with a style sheet that ends at 300 ms and is evaluated for 20 ms, first painted at `painted`.
    fn page(painted: Option<Duration>, compute: Option<Duration>) -> Replica {
        let exchange = |path: &str, kind, media, body: &str, times: [u64; 3]| {
            let url = format!("http://a.test/{path}").parse().unwrap();
            Exchange {
                started: Some(ms(times[0])),
                wait: Some(ms(times[1])),
                receive: Some(ms(times[2])),
                ..Exchange::synthetic(url, kind, media, body.to_owned())
            }
        };
        let html = "<link rel=stylesheet href=s.css><body><p>text";
        let mut document = exchange("", Kind::Document, "text/html", html, [0, 100, 0]);
        document.initiator = Initiator::Navigation;
        let mut sheet = exchange(
            "s.css",
            Kind::Stylesheet,
            "text/css",
            "p {}",
            [110, 150, 40],
        );
        sheet.observed.compute = compute;
        Replica {
            start: 0,
            exchanges: vec![document, sheet],
            paints: Paints {
                first_contentful: painted,
                ..Paints::default()
            },
            ..spdy_page::builtin::flags()
        }
    }

    fn delay(painted: Option<Duration>, compute: Option<Duration>) -> Option<Duration> {
        let replica = page(painted, compute);
        let graph = PageGraph::of(&replica);
        paint_plan(&replica, &graph).unwrap().render_delay
    }

    #[test]
    fn it_is_the_time_from_the_evaluation_of_the_last_sheet_to_the_paint() {
        assert_eq!(delay(Some(ms(470)), Some(ms(20))), Some(ms(150)));
        assert_eq!(
            delay(Some(ms(300)), Some(ms(20))),
            Some(ms(0)),
            "an early paint"
        );
        assert_eq!(delay(Some(ms(9_000)), Some(ms(20))), Some(MAX_DELAY));
    }

    #[test]
    fn without_a_paint_or_times_of_evaluation_it_is_unknown() {
        assert_eq!(delay(None, Some(ms(20))), None);
        assert_eq!(delay(Some(ms(470)), None), None);
    }
}
