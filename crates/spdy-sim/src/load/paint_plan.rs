//! What a browser draws of a page: the first text, and the largest content.
//!
//! A recording of Chromium has its largest contentful paint. If that is text, and later than the first paint, it waited for the last
//! web font before it, or for the last fetch or script. Chromium waits for a font with `font-display: auto` until [`FONT_SWAP_AT`].
//!
//! For any other page the layout is not known. Then the image with the most pixels that the document names counts as the largest
//! content, unless all are small.

use std::time::Duration;

use spdy_page::body_start::body_start;
use spdy_page::first_text::first_text;
use spdy_page::font_display::{FontDisplay, font_display};
use spdy_page::graph::{Node, PageGraph, Trigger};
use spdy_page::head;
use spdy_page::replica::{Exchange, Kind, LargestPaint, Replica};
use url::Url;

use crate::page_load::PaintPlan;

/// Pixels of the window of `spdy record` and `spdy lab browse`: a larger image is not seen as a whole.
const WINDOW: u64 = 1366 * 768;
/// An image with fewer pixels is smaller than a paragraph of text.
const SMALL: u64 = 200 * 200;
/// Pixels of an image for each byte, if only its length is known (2 bits a pixel, as in a JPEG of medium quality).
const PIXELS_PER_BYTE: u64 = 4;
/// An image with less data is a placeholder to Chromium: 0.05 bits a pixel.
const PLACEHOLDER_PIXELS_PER_BIT: u64 = 20;

/// Time since the navigation at which Chromium shows text with `font-display: auto` in another font (its feature
/// `AlignFontDisplayAutoTimeoutWithLCPGoal`).
const FONT_SWAP_AT: Duration = Duration::from_secs(2);
/// From then to the paint of the text, at most: the longest of nine was 58 ms.
const MAX_SWAP_DELAY: Duration = Duration::from_millis(100);
/// Maximum number of fonts whose rules are looked up in all style sheets.
const MAX_COMPARED_FONTS: usize = 4;

/// The plan of `replica`, without its render delay; `None` if its document has no node.
pub(crate) fn paint_plan(replica: &Replica, graph: &PageGraph) -> Option<PaintPlan> {
    let document = graph.document(replica)?;
    let body_at = body_start(&replica.exchanges[replica.start]).unwrap_or(0);
    let images = images_of(&graph.nodes, document).filter(|&(_, at)| at >= body_at);
    let images: Vec<(usize, u64)> = images.collect();
    let exchange = |node: usize| &replica.exchanges[graph.nodes[node].exchange];
    let largest = match &replica.paints.largest_contentful {
        Some(LargestPaint { at, url: None }) => cause_of_text(replica, graph, *at),
        Some(LargestPaint { url: Some(url), .. }) => url.parse().ok().and_then(|url: Url| {
            let images =
                || (0..graph.nodes.len()).filter(|&node| graph.nodes[node].kind == Kind::Image);
            images()
                .find(|&node| exchange(node).url == url)
                // Loads with other host names keep paths.
                .or_else(|| {
                    images().find(|&node| head::target(&exchange(node).url) == head::target(&url))
                })
        }),
        None => {
            let sizes = images
                .iter()
                .map(|&(node, _)| (pixels(exchange(node)), node));
            // Of several, the first in the document.
            let largest = sizes.rev().max_by_key(|&(pixels, _)| pixels);
            largest
                .filter(|&(pixels, _)| pixels >= SMALL)
                .map(|(_, node)| node)
        }
    };
    let waits_for_font = |node: &usize| {
        let font = exchange(*node);
        font.kind == Kind::Font && font_display(replica, &font.url) == FontDisplay::Auto
    };
    Some(PaintPlan {
        document,
        text_at: first_text(&replica.exchanges[replica.start]),
        images,
        largest,
        font_swap_at: largest.filter(waits_for_font).map(|_| FONT_SWAP_AT),
        render_delay: None,
    })
}

/// What showed the text that was painted at `at`: the web font that it no longer waited for, or the last one that arrived after the first
/// paint. Without one, the last fetch that ended then, or script that was evaluated: it wrote the text.
fn cause_of_text(replica: &Replica, graph: &PageGraph, at: Duration) -> Option<usize> {
    let first = replica.paints.first_contentful?;
    if first < FONT_SWAP_AT && (FONT_SWAP_AT..=FONT_SWAP_AT + MAX_SWAP_DELAY).contains(&at) {
        let late = late_font(replica, graph, at);
        if late.is_some() {
            return late;
        }
    }
    let ended = |node: &Node| {
        let exchange = &replica.exchanges[node.exchange];
        let compute = exchange.observed.compute.unwrap_or_default();
        let ended = exchange.finished()?.saturating_add(compute);
        (first < ended && ended <= at).then_some(ended)
    };
    let last_of = |kinds: &[Kind]| {
        let nodes = graph.nodes.iter().enumerate();
        let nodes = nodes.filter(|(_, node)| kinds.contains(&node.kind) && !node.is_redirect);
        let ends = nodes.filter_map(|(number, node)| Some((ended(node)?, number)));
        ends.max().map(|(_, number)| number)
    };
    let writers: &[Kind] = match replica.has_evaluation_times() {
        true => &[Kind::Fetch, Kind::Script],
        false => &[],
    };
    last_of(&[Kind::Font]).or_else(|| last_of(writers))
}

/// The font that arrives last, of those that are on their way at [`FONT_SWAP_AT`] and still at `at`, and whose text Chromium shows from
/// then on.
fn late_font(replica: &Replica, graph: &PageGraph, at: Duration) -> Option<usize> {
    let nodes = graph.nodes.iter().enumerate();
    let late = nodes.filter_map(|(number, node)| {
        let font = &replica.exchanges[node.exchange];
        let is_late = font.started? < FONT_SWAP_AT && at < font.finished()?;
        (node.kind == Kind::Font && is_late).then_some((font.finished()?, number))
    });
    let mut late: Vec<(Duration, usize)> = late.collect();
    late.sort_unstable();
    let mut last = late.iter().rev().take(MAX_COMPARED_FONTS);
    let is_auto = |number: usize| {
        let font = &replica.exchanges[graph.nodes[number].exchange];
        font_display(replica, &font.url) == FontDisplay::Auto
    };
    last.find(|&&(_, number)| is_auto(number))
        .map(|&(_, number)| number)
}

/// The images that the text of `document` names, each with the offset of its tag; no icons.
fn images_of(nodes: &[Node], document: usize) -> impl Iterator<Item = (usize, u64)> {
    let nodes = nodes.iter().enumerate();
    nodes.filter_map(move |(number, node)| match node.trigger {
        Trigger::Bytes { parent, at_byte } if parent == document => {
            let is_content = node.before_load || node.layout_at().is_some();
            (node.kind == Kind::Image && is_content).then_some((number, at_byte))
        }
        _ => None,
    })
}

/// The visible pixels of an image; zero for a placeholder.
fn pixels(image: &Exchange) -> u64 {
    let bytes = image.body.len() as u64;
    let pixels = match imagesize::blob_size(&image.body) {
        Ok(size) if image.body_is_real => (size.width as u64).saturating_mul(size.height as u64),
        _ => bytes.saturating_mul(PIXELS_PER_BYTE),
    };
    match pixels > bytes.saturating_mul(8 * PLACEHOLDER_PIXELS_PER_BIT) {
        true => 0,
        false => pixels.min(WINDOW),
    }
}

#[cfg(test)]
mod tests {
    use spdy_page::builtin;
    use spdy_page::replica::Paints;

    use super::*;

    /// A page with an icon, a preloaded image, and the images `x`, `y` and `z`; the lengths of the last three are `bytes`.
    fn page(bytes: [usize; 3], paints: Paints) -> Replica {
        let exchange = |path: &str, kind, content_type, body: Vec<u8>| {
            let url = format!("http://a.test/{path}").parse().expect("a URL");
            Exchange::synthetic(url, kind, content_type, body)
        };
        let image = |(path, length): (&str, usize)| Exchange {
            body_is_real: false,
            ..exchange(path, Kind::Image, "image/jpeg", vec![0; length])
        };
        let html = "<link rel=icon href=icon><link rel=preload as=image href=early>\
                    <body><img src=x><p>text<img src=y><img src=z>";
        let document = exchange("", Kind::Document, "text/html", html.into());
        let names = ["icon", "early", "x", "y", "z"];
        let lengths = [90_000, 90_000, bytes[0], bytes[1], bytes[2]];
        let images = names.into_iter().zip(lengths).map(image);
        Replica {
            start: 0,
            exchanges: [document].into_iter().chain(images).collect(),
            paints,
            ..builtin::flags()
        }
    }

    /// The path of the largest image, and the paths of all.
    fn plan(replica: &Replica) -> (Option<&str>, Vec<&str>) {
        let graph = PageGraph::of(replica);
        let plan = paint_plan(replica, &graph).expect("it has a document");
        let path = |node: usize| replica.exchanges[graph.nodes[node].exchange].url.path();
        let images = plan.images.iter().map(|image| path(image.0));
        assert!(plan.text_at.is_some());
        (plan.largest.map(path), images.collect())
    }

    #[test]
    fn the_largest_image_of_the_body_is_the_largest_content() {
        let largest = |bytes| {
            let replica = page(bytes, Paints::default());
            let (largest, images) = plan(&replica);
            assert_eq!(images, ["/x", "/y", "/z"]);
            largest.map(str::to_owned)
        };
        assert_eq!(largest([20_000, 50_000, 50_000]).as_deref(), Some("/y"));
        assert_eq!(largest([9_999, 9_000, 10_000]).as_deref(), Some("/z"));
        // All are smaller than a paragraph.
        assert_eq!(largest([9_999, 9_000, 10]), None);
    }

    #[test]
    fn text_that_is_painted_late_without_a_font_waits_for_the_last_fetch_or_script() {
        let ms = Duration::from_millis;
        let largest = |kind, compute, font_end: u64| {
            let paints = Paints {
                first_contentful: Some(ms(100)),
                largest_contentful: Some(LargestPaint {
                    at: ms(300),
                    url: None,
                }),
            };
            let mut replica = page([50_000; 3], paints);
            let mut ends = |index: usize, kind, end| {
                let exchange = &mut replica.exchanges[index];
                exchange.kind = kind;
                (exchange.started, exchange.wait) = (Some(ms(end)), Some(ms(0)));
                exchange.receive = Some(ms(0));
            };
            ends(2, kind, 200);
            ends(3, Kind::Font, font_end);
            replica.exchanges[2].observed.compute = compute;
            plan(&replica).0.map(str::to_owned)
        };
        let time = Some(ms(50));
        assert_eq!(largest(Kind::Fetch, time, 400).as_deref(), Some("/early"));
        assert_eq!(largest(Kind::Script, time, 400).as_deref(), Some("/early"));
        assert_eq!(largest(Kind::Script, time, 150).as_deref(), Some("/x"));
        assert_eq!(largest(Kind::Script, Some(ms(101)), 400), None);
        assert_eq!(largest(Kind::Script, None, 400), None, "an unknown time");
        assert_eq!(largest(Kind::Stylesheet, time, 400), None);
    }

    #[test]
    fn text_that_is_painted_late_waits_for_the_last_font_before_it() {
        let ms = Duration::from_millis;
        let largest = |first, at, font_end| {
            let paints = Paints {
                first_contentful: Some(ms(first)),
                largest_contentful: Some(LargestPaint {
                    at: ms(at),
                    url: None,
                }),
            };
            let mut replica = page([50_000; 3], paints);
            let font = &mut replica.exchanges[2];
            font.kind = Kind::Font;
            (font.started, font.wait) = (Some(ms(font_end)), Some(ms(0)));
            font.receive = Some(ms(0));
            plan(&replica).0.map(str::to_owned)
        };
        assert_eq!(largest(400, 900, 850).as_deref(), Some("/early"));
        assert_eq!(largest(400, 900, 950), None);
        assert_eq!(largest(400, 900, 300), None);
    }

    #[test]
    fn text_that_is_painted_after_two_seconds_no_longer_waits_for_its_font() {
        let ms = Duration::from_millis;
        let plan_at = |at, font_end: u64, display: &str| {
            let largest_contentful = Some(LargestPaint {
                at: ms(at),
                url: None,
            });
            let mut replica = page(
                [50_000; 3],
                Paints {
                    first_contentful: Some(ms(1_500)),
                    largest_contentful,
                },
            );
            let font = &mut replica.exchanges[2];
            font.kind = Kind::Font;
            (font.started, font.wait) = (Some(ms(1_550)), Some(ms(font_end - 1_550)));
            font.receive = Some(ms(0));
            let sheet = &mut replica.exchanges[1];
            (sheet.kind, sheet.body_is_real) = (Kind::Stylesheet, true);
            sheet.body =
                format!("@font-face {{ src: url(early); font-display: {display} }}").into();
            let graph = PageGraph::of(&replica);
            let plan = paint_plan(&replica, &graph).expect("it has a document");
            let largest = plan.largest.map(|node| graph.nodes[node].exchange);
            (largest, plan.font_swap_at)
        };
        let by_limit = (Some(2), Some(FONT_SWAP_AT));
        assert_eq!(plan_at(2_030, 2_400, "auto"), by_limit);
        assert_eq!(plan_at(2_101, 2_400, "auto"), (None, None));
        assert_eq!(plan_at(1_999, 2_400, "auto"), (None, None));
        assert_eq!(plan_at(2_030, 2_400, "swap"), (None, None));
        // It arrived before the text was painted: another network may still delay it.
        assert_eq!(plan_at(1_900, 1_880, "auto"), by_limit);
        assert_eq!(plan_at(1_900, 1_880, "block"), (Some(2), None));
    }

    #[test]
    fn a_recorded_largest_paint_replaces_the_guess() {
        let recorded = |url: Option<&str>| {
            let largest_contentful = Some(LargestPaint {
                at: Duration::from_secs(1),
                url: url.map(str::to_owned),
            });
            let paints = Paints {
                largest_contentful,
                ..Paints::default()
            };
            let replica = page([50_000; 3], paints);
            plan(&replica).0.map(str::to_owned)
        };
        assert_eq!(recorded(None), None);
        assert_eq!(recorded(Some("http://a.test/z")).as_deref(), Some("/z"));
        // A load with another host or scheme.
        assert_eq!(recorded(Some("https://b.test/x")).as_deref(), Some("/x"));
        assert_eq!(recorded(Some("https://b.test/none")), None);
    }
}
