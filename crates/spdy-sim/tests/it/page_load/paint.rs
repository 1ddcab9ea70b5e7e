//! First and largest contentful paint.

use std::time::Duration;

use spdy_clock::Instant;
use spdy_page::graph::{Node, PageGraph, Trigger, WaitsFor};
use spdy_page::replica::Kind;
use spdy_sim::page_load::{PageLoad, PaintPlan, RENDER_DELAY};

use crate::support::timeline::{
    at, compute, deferred_script, document, image, node, style, sync_script,
};

/// The text is at byte 500 of the document, and no image is large.
fn text() -> PaintPlan {
    PaintPlan {
        text_at: Some(500),
        ..PaintPlan::default()
    }
}

/// A load of `nodes`, whose document arrives at 100 ms. `arrivals` has the other nodes with the times of their last bytes. Returns
/// first and largest paint in milliseconds without the time of rendering.
fn paints(nodes: Vec<Node>, plan: PaintPlan, arrivals: &[(u64, usize)]) -> [Option<u64>; 2] {
    let graph = PageGraph { nodes };
    let mut page = PageLoad::new(&graph);
    page.draw(plan);
    page.start(Instant::ZERO);
    let arrivals = [(100, 0)].into_iter().chain(arrivals.iter().copied());
    for (ms, node) in arrivals {
        let now = Instant::from_millis(ms);
        while let Some(due) = page.poll_timeout().filter(|&due| due <= now) {
            page.handle_timeout(due);
        }
        while page.poll_request().is_some() {}
        page.handle_done(now, node);
    }
    while let Some(due) = page.poll_timeout() {
        page.handle_timeout(due);
    }
    let ms = |paint: Instant| {
        let drawn = paint - Instant::ZERO - RENDER_DELAY;
        u64::try_from(drawn.as_millis()).expect("it is short")
    };
    [
        page.first_contentful_paint().map(ms),
        page.largest_contentful_paint().map(ms),
    ]
}

#[test]
fn a_page_without_resources_is_painted_when_its_text_has_arrived() {
    let graph = PageGraph {
        nodes: vec![document()],
    };
    let mut page = PageLoad::new(&graph);
    page.draw(text());
    page.start(Instant::ZERO);
    page.handle_bytes(Instant::from_millis(50), 0, 499);
    assert_eq!(page.first_contentful_paint(), None);
    page.handle_bytes(Instant::from_millis(60), 0, 500);
    let painted = Instant::from_millis(60) + RENDER_DELAY;
    assert_eq!(page.first_contentful_paint(), Some(painted));
    assert_eq!(page.largest_contentful_paint(), Some(painted));
}

#[test]
fn style_sheets_and_scripts_before_the_text_delay_the_first_paint() {
    let sheet = |place| vec![document(), style(at(place))];
    assert_eq!(paints(sheet(300), text(), &[(400, 1)]), [Some(400); 2]);
    // One behind the text does not.
    assert_eq!(paints(sheet(600), text(), &[(400, 1)]), [Some(100); 2]);
    let other_medium = vec![document(), node(Kind::Stylesheet, at(300))];
    assert_eq!(paints(other_medium, text(), &[(400, 1)]), [Some(100); 2]);
    // A script runs for 70 ms.
    let script = |place| vec![document(), compute(70, sync_script(place))];
    assert_eq!(paints(script(300), text(), &[(400, 1)]), [Some(470); 2]);
    assert_eq!(paints(script(600), text(), &[(400, 1)]), [Some(100); 2]);
}

#[test]
fn a_late_large_image_decides_the_largest_paint() {
    let nodes = || vec![document(), style(at(300)), image(at(700))];
    let plan = |largest| PaintPlan {
        images: vec![(2, 700)],
        largest,
        ..text()
    };
    let late = [(400, 1), (900, 2)];
    assert_eq!(
        paints(nodes(), plan(Some(2)), &late),
        [Some(400), Some(900)]
    );
    assert_eq!(paints(nodes(), plan(None), &late), [Some(400), Some(400)]);
    // It is not drawn before the style sheet.
    let early = [(200, 2), (400, 1)];
    assert_eq!(paints(nodes(), plan(Some(2)), &early), [Some(400); 2]);
}

#[test]
fn large_text_waits_at_most_three_seconds_for_its_font() {
    let font = Node {
        waits_for: Some(WaitsFor::Layout { at_byte: 500 }),
        ..node(Kind::Font, Trigger::Done { parent: 1 })
    };
    let nodes = || vec![document(), style(at(300)), font.clone()];
    let plan = PaintPlan {
        largest: Some(2),
        ..text()
    };
    let at = |arrival| paints(nodes(), plan.clone(), &[(400, 1), (arrival, 2)]);
    assert_eq!(at(900), [Some(400), Some(900)]);
    assert_eq!(at(9_000), [Some(400), Some(3_400)]);
    // Or until another font shows it, which is no later than the first paint.
    let swaps = PaintPlan {
        font_swap_at: Some(Duration::from_secs(2)),
        ..plan
    };
    let at = |sheet, arrival| paints(nodes(), swaps.clone(), &[(sheet, 1), (arrival, 2)]);
    assert_eq!(at(400, 1_900), [Some(400), Some(1_900)]);
    assert_eq!(at(400, 9_000), [Some(400), Some(2_000)]);
    assert_eq!(at(2_500, 9_000), [Some(2_500); 2]);
}

#[test]
fn a_page_without_text_is_painted_with_its_first_image_or_at_dom_content_loaded() {
    let images = PaintPlan {
        images: vec![(1, 200)],
        ..PaintPlan::default()
    };
    let deferred = Node {
        before_dom_content_loaded: true,
        ..node(Kind::Script, at(300))
    };
    let nodes = || vec![document(), image(at(200)), deferred.clone()];
    let by_image = paints(nodes(), images.clone(), &[(300, 1), (500, 2)]);
    assert_eq!(by_image, [Some(300); 2]);
    let by_script = paints(nodes(), images, &[(500, 2), (800, 1)]);
    assert_eq!(by_script, [Some(500); 2]);
}

#[test]
fn an_image_that_never_arrives_is_not_painted() {
    // The image triggers itself, so no chain of triggers leads to it.
    let unreachable = || image(Trigger::Done { parent: 1 });
    let deferred = || deferred_script(at(300));
    let plan = |largest| PaintPlan {
        images: vec![(1, 200)],
        largest,
        ..PaintPlan::default()
    };
    // DOMContentLoaded decides.
    let nodes = vec![document(), unreachable(), deferred()];
    assert_eq!(paints(nodes, plan(Some(1)), &[(800, 2)]), [Some(800); 2]);
    // As the largest content of a page with text: LCP is FCP.
    let nodes = vec![document(), unreachable()];
    let with_text = PaintPlan {
        text_at: Some(500),
        ..plan(Some(1))
    };
    assert_eq!(paints(nodes, with_text.clone(), &[]), [Some(100); 2]);
    // An image that fails after the first paint.
    let graph = PageGraph {
        nodes: vec![document(), image(at(200)), deferred()],
    };
    for (plan, expected_ms) in [(with_text, 100), (plan(Some(1)), 800)] {
        let mut page = PageLoad::new(&graph);
        page.draw(plan);
        page.start(Instant::ZERO);
        page.handle_done(Instant::from_millis(100), 0);
        assert_eq!(page.largest_contentful_paint(), None);
        page.handle_failed(Instant::from_millis(400), 1);
        page.handle_done(Instant::from_millis(800), 2);
        let expected = Some(Instant::from_millis(expected_ms) + RENDER_DELAY);
        assert_eq!(page.first_contentful_paint(), expected);
        assert_eq!(page.largest_contentful_paint(), expected);
    }
}
