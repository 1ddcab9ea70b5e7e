//! First and largest contentful paint of a page.
//!
//! The first paint needs text or an image of the page's own document that its parser has passed: no synchronous script before it
//! is left to run, and no style sheet before it is left to load. If the document has no text, it needs DOMContentLoaded. It
//! follows when the main thread is free, after the recorded render delay, or else [`RENDER_DELAY`]. The largest paint is the first
//! one, or that of one image, or of text that one web font, fetch or script shows, if that comes later. Failures and resources that are never requested
//! are not painted. Paints delay nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use spdy_clock::Instant;
use spdy_page::replica::Kind;

use super::machine::{NodeState, PageLoad};

/// From the moment at which a browser can draw something new to the frame that shows it: style, layout, painting, and the wait
/// for the next frame. Measured as FCP after DOMContentLoaded: the median of four undisturbed loads is 33.5 ms, here rounded up.
/// `docs/measurements/visual-metrics.md` has the loads.
pub const RENDER_DELAY: Duration = Duration::from_millis(35);

/// How long text stays invisible while its web font loads (`font-display: block`, CSS Fonts Level 4 §4.9).
const FONT_BLOCK_PERIOD: Duration = Duration::from_secs(3);

/// What a browser draws of a page, by the nodes of its graph.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PaintPlan {
    /// The page's own document.
    pub document: usize,
    /// Bytes of the document, as transferred, up to its first text.
    pub text_at: Option<u64>,
    /// Images that the document names: node, and bytes of the document up to its tag.
    pub images: Vec<(usize, u64)>,
    /// The image that is the largest content of the window, or the web font, the fetch or the script of the text that is; `None` for
    /// other text.
    pub largest: Option<usize>,
    /// If `largest` is a web font: time since the start of the load at which its text is shown in another font. `None` if the text
    /// stays invisible for three seconds after the first paint.
    pub font_swap_at: Option<Duration>,
    /// From the moment at which a browser can draw to the first paint, if the recording shows it; else [`RENDER_DELAY`].
    pub render_delay: Option<Duration>,
}

/// A plan, and the paints so far.
#[derive(Clone, Debug)]
pub(super) struct Paints {
    plan: PaintPlan,
    /// Nodes of which all bytes have arrived.
    arrived: BTreeSet<usize>,
    /// By image: the smallest offset of its tags.
    image_at: BTreeMap<usize, u64>,
    /// The smallest offset of an image that has arrived.
    first_image_at: Option<u64>,
    /// The start of the load.
    began: Instant,
    first: Option<Instant>,
    largest: Option<Instant>,
}

impl PageLoad<'_> {
    /// Enables paints, if called before the load starts.
    ///
    /// # Panics
    ///
    /// If the load has started, or `plan` is not of its graph.
    pub fn draw(&mut self, plan: PaintPlan) {
        assert!(!self.has_begun, "the load has already started");
        let count = self.outline.nodes.len();
        let images = plan.images.iter().map(|image| image.0);
        assert!(
            images
                .chain(plan.largest)
                .chain([plan.document])
                .all(|node| node < count),
            "the plan belongs to another graph"
        );
        let mut image_at = BTreeMap::new();
        for &(image, at) in &plan.images {
            let first = image_at.entry(image).or_insert(at);
            *first = at.min(*first);
        }
        self.paints = Some(Paints {
            plan,
            arrived: BTreeSet::new(),
            image_at,
            first_image_at: None,
            began: Instant::ZERO,
            first: None,
            largest: None,
        });
    }

    /// Time of the first contentful paint; it can be later than now, by the time of rendering.
    #[must_use]
    pub fn first_contentful_paint(&self) -> Option<Instant> {
        self.paints.as_ref()?.first
    }

    /// Time of the largest contentful paint; it can be later than now, by the time of rendering.
    #[must_use]
    pub fn largest_contentful_paint(&self) -> Option<Instant> {
        self.paints.as_ref()?.largest
    }

    /// Notes that the load starts.
    pub(super) fn note_start(&mut self, now: Instant) {
        if let Some(paints) = &mut self.paints {
            paints.began = now;
        }
    }

    /// Notes that all bytes of `node` have arrived and that the page needs it.
    pub(super) fn note_arrival(&mut self, node: usize) {
        if let Some(paints) = &mut self.paints {
            paints.arrived.insert(node);
            let at = paints.image_at.get(&node).copied();
            paints.first_image_at = paints.first_image_at.into_iter().chain(at).min();
        }
    }

    /// Notes the paints that are possible now.
    pub(super) fn note_paints(&mut self, now: Instant) {
        // Of a page that is painted, nothing is left to note.
        let is_open = |paints: &mut Paints| paints.largest.is_none();
        let Some(mut paints) = self.paints.take_if(is_open) else {
            return;
        };
        let drawn_at = self.main_thread_free.max(now);
        if paints.first.is_none() && self.can_paint(&paints) {
            paints.first = Some(drawn_at + paints.plan.render_delay.unwrap_or(RENDER_DELAY));
        }
        let painted_at = drawn_at + RENDER_DELAY;
        if let (Some(first), None) = (paints.first, paints.largest) {
            paints.largest = match paints.plan.largest {
                Some(node) if paints.arrived.contains(&node) && self.has_run(node) => {
                    let is_font = self.outline.nodes[node].kind == Kind::Font;
                    let latest = match paints.plan.font_swap_at {
                        _ if !is_font => painted_at,
                        Some(at) => paints.began + at + RENDER_DELAY,
                        None => first + FONT_BLOCK_PERIOD,
                    };
                    Some(latest.min(painted_at).max(first))
                }
                // It can still arrive.
                Some(node) if self.states[node] != NodeState::Settled => None,
                _ => Some(first),
            };
        }
        self.paints = Some(paints);
    }

    /// True unless `node` is a script that is to run.
    fn has_run(&self, node: usize) -> bool {
        let is_script = self.outline.nodes[node].kind == Kind::Script;
        !is_script || self.states[node] == NodeState::Settled
    }

    /// True if the parser has passed content that can be drawn.
    fn can_paint(&self, paints: &Paints) -> bool {
        let plan = &paints.plan;
        let can_draw = |at: u64| self.can_lay_out(plan.document, at);
        let has_text = match plan.text_at {
            Some(at) => can_draw(at),
            // The text is not known, or scripts write it.
            None => self.dom_content_loaded.is_some(),
        };
        // If an image can be drawn, those before it can be, too.
        has_text || paints.first_image_at.is_some_and(can_draw)
    }
}
