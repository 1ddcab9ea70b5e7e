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
        let stop = stop.and_then(|&script| self.outline.barrier(script));
        at <= self.arrived[document] && stop.is_none_or(|stop| at < stop.at)
    }

    /// True if `document` can be laid out up to the byte `at`.
    pub(super) fn can_lay_out(&self, document: usize, at: u64) -> bool {
        self.has_parsed(document, at) && !self.open.has_sheet_up_to(document, at)
    }

    /// Requests what the parsers of inline modules find now.
    pub(super) fn request_parsed(&mut self, now: Instant) {
        for document in documents(&self.awaiting_parser) {
            let is_reached = |at: u64| self.has_parsed(document, at);
            let reached = reached(&self.awaiting_parser, document, is_reached);
            for node in take(&mut self.awaiting_parser, document, reached) {
                self.request_from(now, now, node);
            }
        }
    }

    /// Requests what layout finds now.
    pub(super) fn lay_out(&mut self, now: Instant) {
        for document in documents(&self.awaiting_layout) {
            let is_reached = |at: u64| self.can_lay_out(document, at);
            let reached = reached(&self.awaiting_layout, document, is_reached);
            for node in take(&mut self.awaiting_layout, document, reached) {
                self.request_from(now, self.main_thread_free.max(now), node);
            }
        }
    }
}

/// Nodes that wait for a place in a document, with their offsets in it.
pub(super) type AwaitingPlace = BTreeMap<usize, BTreeSet<(u64, usize)>>;

fn documents(awaiting: &AwaitingPlace) -> Vec<usize> {
    awaiting.keys().copied().collect()
}

/// How many of the places in `document` are reached.
fn reached(awaiting: &AwaitingPlace, document: usize, is_reached: impl Fn(u64) -> bool) -> usize {
    let places = awaiting.get(&document).into_iter().flatten();
    places.take_while(|&&(at, _)| is_reached(at)).count()
}

/// Removes the first `count` places in `document`, and returns their nodes. A request of what a hint has loaded ends at once and comes
/// back to this file, so all of them are removed before the first request.
fn take(awaiting: &mut AwaitingPlace, document: usize, count: usize) -> Vec<usize> {
    let Some(places) = awaiting.get_mut(&document) else {
        return Vec::new();
    };
    let nodes = (0..count).map_while(|_| places.pop_first());
    let nodes = nodes.map(|(_, node)| node).collect();
    if places.is_empty() {
        awaiting.remove(&document);
    }
    nodes
}
