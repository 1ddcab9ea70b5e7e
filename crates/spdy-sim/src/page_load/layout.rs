//! Layout: which part of a document a browser can lay out, and the requests that wait for it.
//!
//! A document is laid out up to its first synchronous script that is left to run, and only up to a style sheet that is left to load.
//! Then fonts, images of styles, and lazy images are requested, when the main thread is free. The model has no boxes: a style sheet's
//! images and fonts are requested with the first layout of its document's body. What no box uses is in no recording.

use spdy_clock::Instant;

use super::machine::PageLoad;

impl PageLoad<'_> {
    /// True if `document` can be laid out up to the byte `at`.
    pub(super) fn can_lay_out(&self, document: usize, at: u64) -> bool {
        let stop = self.barriers[document].front();
        let stop = stop.and_then(|&script| self.outline.nodes[script].blocks_parser_at);
        at <= self.arrived[document]
            && stop.is_none_or(|stop| at < stop)
            && !self.open.has_sheet_up_to(document, at)
    }

    /// Requests what layout finds now.
    pub(super) fn lay_out(&mut self, now: Instant) {
        if self.awaiting_layout.is_empty() {
            return;
        }
        let documents: Vec<usize> = self.awaiting_layout.keys().copied().collect();
        for document in documents {
            // A request of what a hint has loaded ends at once, and comes back to this place.
            while let Some(waiting) = self.awaiting_layout.get(&document)
                && let Some(&(at, node)) = waiting.first()
                && self.can_lay_out(document, at)
            {
                if let Some(waiting) = self.awaiting_layout.get_mut(&document) {
                    waiting.pop_first();
                }
                self.request_from(now, self.main_thread_free.max(now), node);
            }
        }
        self.awaiting_layout
            .retain(|_, waiting| !waiting.is_empty());
    }
}
