//! What a browser draws of a page: the first text, and the largest image.
//!
//! A recording of Chromium has its largest contentful paint. For any other page the layout is not known. Then the image with the most
//! pixels that the document names counts as the largest content, unless all are small.

use spdy_page::first_text::first_text;
use spdy_page::graph::{Node, PageGraph, Trigger};
use spdy_page::head;
use spdy_page::replica::{Exchange, Kind, Replica};
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

/// The plan of `replica`; `None` if its document has no node.
pub(crate) fn paint_plan(replica: &Replica, graph: &PageGraph) -> Option<PaintPlan> {
    let document = graph.document(replica)?;
    let images: Vec<(usize, u64)> = images_of(&graph.nodes, document).collect();
    let exchange = |node: usize| &replica.exchanges[graph.nodes[node].exchange];
    let largest = match &replica.paints.largest_contentful {
        Some(recorded) => recorded.url.as_deref().and_then(|url| {
            let url: Url = url.parse().ok()?;
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
    Some(PaintPlan {
        document,
        text_at: first_text(&replica.exchanges[replica.start]),
        images,
        largest,
    })
}

/// The images that the text of `document` names, each with the offset of its tag.
fn images_of(nodes: &[Node], document: usize) -> impl Iterator<Item = (usize, u64)> {
    let nodes = nodes.iter().enumerate();
    nodes.filter_map(move |(number, node)| match node.trigger {
        Trigger::Bytes { parent, at_byte } if parent == document && node.kind == Kind::Image => {
            Some((number, at_byte))
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
