//! Layout: which part of a document a browser can lay out, and the requests that wait for it.
//!
//! A document is laid out up to its first synchronous script that is left to run, and only up to a style sheet that is left to load.
//! Then fonts, images of styles, lazy images, and what inline scripts name are requested, when the main thread is free. What an inline
//! module imports is requested when the parser has passed it. The model has no boxes: a style sheet's
//! images and fonts are requested with the first layout of its document's body. What no box uses is in no recording.

use std::collections::{BTreeMap, BTreeSet};

use spdy_clock::Instant;

use super::machine::PageLoad;

impl PageLoad<'_> {
    /// True if the parser of `document` has passed the byte `at`.
    fn has_parsed(&self, document: usize, at: u64) -> bool {
        let stop = self.barriers[document].front();
        let stop = stop.and_then(|&script| self.outline.nodes[script].blocks_parser_at);
        at <= self.arrived[document] && stop.is_none_or(|stop| at < stop)
    }

    /// True if `document` can be laid out up to the byte `at`.
    pub(super) fn can_lay_out(&self, document: usize, at: u64) -> bool {
        self.has_parsed(document, at) && !self.open.has_sheet_up_to(document, at)
    }

    /// Requests what the parsers of inline modules find now.
    pub(super) fn request_parsed(&mut self, now: Instant) {
        for document in documents(&self.awaiting_parser) {
            while let Some(node) = first(&self.awaiting_parser, document, |at| {
                self.has_parsed(document, at)
            }) {
                remove(&mut self.awaiting_parser, document, node);
                self.request_from(now, now, node.1);
            }
        }
    }

    /// Requests what layout finds now.
    pub(super) fn lay_out(&mut self, now: Instant) {
        for document in documents(&self.awaiting_layout) {
            while let Some(node) = first(&self.awaiting_layout, document, |at| {
                self.can_lay_out(document, at)
            }) {
                remove(&mut self.awaiting_layout, document, node);
                self.request_from(now, self.main_thread_free.max(now), node.1);
            }
        }
    }
}

/// Nodes that wait for a place in a document, with their offsets in it.
pub(super) type AwaitingPlace = BTreeMap<usize, BTreeSet<(u64, usize)>>;

fn documents(awaiting: &AwaitingPlace) -> Vec<usize> {
    awaiting.keys().copied().collect()
}

/// The first place in `document`, if it is `reached`.
fn first(
    awaiting: &AwaitingPlace,
    document: usize,
    reached: impl Fn(u64) -> bool,
) -> Option<(u64, usize)> {
    let first = awaiting.get(&document)?.first();
    first.copied().filter(|&(at, _)| reached(at))
}

/// Removes `place`. A request of what a hint has loaded ends at once, and looks for the first place again: so this comes before it.
fn remove(awaiting: &mut AwaitingPlace, document: usize, place: (u64, usize)) {
    if let Some(places) = awaiting.get_mut(&document) {
        places.remove(&place);
        if places.is_empty() {
            awaiting.remove(&document);
        }
    }
}
