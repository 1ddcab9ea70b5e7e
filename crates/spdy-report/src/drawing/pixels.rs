//! Renders a figure as pixels, with a bundled font: the picture is the same on every machine.

use std::sync::Arc;

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{FontResolver, Options, Tree, fontdb};

/// DejaVu Sans Condensed: Latin, Greek, Cyrillic, punctuation (`fonts/README.md`).
const FONT: &[u8] = include_bytes!("../../fonts/DejaVuSansCondensed.ttf");

/// Dots per unit of the drawing. A panel is about 1,000 dots wide: 300 dpi in a column of a paper.
const SCALE: f32 = 3.0;
/// Maximum number of dots of a picture: 160 MB while it is rendered. A larger picture has fewer dots per unit.
const MAX_DOTS: f32 = 40e6;

/// An SVG file of [`figures`](crate::experiment::figures) as a PNG file; the same bytes on every machine.
///
/// # Panics
///
/// If `svg` is not an SVG file of this crate.
#[must_use]
pub fn png(svg: &str) -> Vec<u8> {
    let mut fonts = fontdb::Database::new();
    let source = fontdb::Source::Binary(Arc::new(FONT));
    let font = fonts.load_font_source(source)[0];
    let options = Options {
        fontdb: Arc::new(fonts),
        font_resolver: FontResolver {
            select_font: Box::new(move |_, _| Some(font)),
            select_fallback: Box::new(|_, _, _| None),
        },
        ..Options::default()
    };
    let tree = Tree::from_str(svg, &options).expect("what we draw is SVG");
    let size = tree.size();
    let scale = SCALE.min((MAX_DOTS / (size.width() * size.height())).sqrt());
    let (width, height) = (size.width() * scale, size.height() * scale);
    let mut pixels =
        Pixmap::new(width.ceil() as u32, height.ceil() as u32).expect("a figure is of some size");
    resvg::render(
        &tree,
        Transform::from_scale(scale, scale),
        &mut pixels.as_mut(),
    );
    pixels.encode_png().expect("memory takes every write")
}
