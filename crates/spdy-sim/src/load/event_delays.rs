//! How long the browser of a recording took from the moment at which it could draw to the first paint, and from the end of all that the
//! load event waits for to this event.
//!
//! A recording has the ends of all exchanges, the times of evaluation, the first paint and the event. The machine of the
//! [page load model](crate::page_load) takes the recorded ends in place of a network, and states when the paint and the event could
//! happen. They were recorded later: style, layout, painting and other work took so long on the recording's machine. No network changes
//! that.

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

/// The longest delay of a load event. What makes it longer is unknown, and need not be so long in another load.
const MAX_LOAD_DELAY: Duration = Duration::from_millis(100);

/// The delays of a recording.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct EventDelays {
    /// From the moment at which the page could be drawn to its first paint, at most [`MAX_DELAY`]; `None` if it is unknown.
    pub(crate) render: Option<Duration>,
    /// From the end of all that the load event waits for to this event, at most [`MAX_LOAD_DELAY`].
    pub(crate) load: Duration,
}

impl EventDelays {
    /// Those of `replica`, if it has times of evaluation.
    pub(crate) fn of(replica: &Replica, graph: &PageGraph, plan: &PaintPlan) -> Self {
        if !replica.has_evaluation_times() {
            return Self::default();
        }
        let mut page = PageLoad::new(graph);
        page.draw(plan.clone());
        repeat(replica, graph, &mut page);
        let delay = |recorded: Option<Duration>, possible: Option<Duration>| {
            Some(recorded?.saturating_sub(possible?))
        };
        let since_start = |event: Instant| event - Instant::ZERO;
        let painted = page.first_contentful_paint().map(since_start);
        let drawn = painted.map(|painted| painted.saturating_sub(RENDER_DELAY));
        let render = delay(replica.paints.first_contentful, drawn);
        let load = delay(replica.load, page.load().map(since_start)).unwrap_or_default();
        Self {
            render: render.map(|delay| delay.min(MAX_DELAY)),
            load: load.min(MAX_LOAD_DELAY),
        }
    }
}

/// Loads `page` with the recorded ends of all exchanges, until both events have happened, or one cannot happen: an exchange without
/// times ends it.
fn repeat(replica: &Replica, graph: &PageGraph, page: &mut PageLoad<'_>) {
    let mut now = Instant::ZERO;
    page.start(now);
    let mut arrivals: BTreeSet<Arrival> = BTreeSet::new();
    loop {
        while let Some(request) = page.poll_request() {
            let exchange = &replica.exchanges[graph.nodes[request.node].exchange];
            let Some((first, last)) = exchange.first_byte().zip(exchange.finished()) else {
                return;
            };
            let step = last.saturating_sub(first) / STEPS;
            // Only the parts of a text can name other resources.
            let is_text = matches!(exchange.kind, Kind::Document | Kind::Stylesheet);
            let numbers = (0..=STEPS).filter(|&number| is_text || number % STEPS == 0);
            for number in numbers {
                let at = Instant::ZERO + first.saturating_add(step * number);
                arrivals.insert((at.max(now), request.node, number));
            }
        }
        if page.first_contentful_paint().is_some() && page.load().is_some() {
            return;
        }
        let arrival = arrivals.first().map(|&(at, ..)| at);
        let timeout = page.poll_timeout();
        let Some(next) = arrival.into_iter().chain(timeout).min() else {
            return;
        };
        now = next.max(now);
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
        let plan = paint_plan(&replica, &graph).unwrap();
        EventDelays::of(&replica, &graph, &plan).render
    }

    #[test]
    fn the_load_event_comes_as_long_after_its_last_resource_as_recorded() {
        let delay = |load, compute| {
            let mut replica = page(None, compute);
            replica.load = load;
            let graph = PageGraph::of(&replica);
            let plan = paint_plan(&replica, &graph).unwrap();
            EventDelays::of(&replica, &graph, &plan).load
        };
        let compute = Some(ms(20));
        assert_eq!(delay(Some(ms(335)), compute), ms(15));
        assert_eq!(delay(Some(ms(310)), compute), ms(0), "an early event");
        assert_eq!(delay(Some(ms(9_000)), compute), MAX_LOAD_DELAY);
        assert_eq!(delay(None, compute), ms(0), "no event");
        assert_eq!(delay(Some(ms(335)), None), ms(0), "no times of evaluation");
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
