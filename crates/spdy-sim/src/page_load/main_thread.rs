//! Order of evaluation on the main thread: a script waits for the style sheets and scripts before it, and the parser waits for a
//! script. Then DOMContentLoaded and load.

use spdy_clock::Instant;
use spdy_page::graph::Node;
use spdy_page::replica::Kind;

use super::machine::{NodeState, PageLoad, TimerEvent};

impl PageLoad<'_> {
    /// Queues every node that may run now for the main thread, in page order; then checks the two events.
    pub(super) fn progress(&mut self, now: Instant) {
        while let Some(node) = self.next_to_evaluate() {
            self.waiting.remove(&node);
            self.waiting_scripts.remove(&node);
            self.evaluate(now, node);
        }
        self.note_body_starts();
        self.request_parsed(now);
        self.lay_out(now);
        if self.dom_content_loaded.is_none()
            && self.before_dom_content_loaded == 0
            && self.open_inline_scripts == 0
        {
            self.dom_content_loaded = Some(now);
            for node in std::mem::take(&mut self.awaiting_dom_content_loaded) {
                self.request_from(now, now, node);
            }
        }
        if !self.is_load_due && self.dom_content_loaded.is_some() && self.before_load == 0 {
            self.end_load(now);
        }
        self.note_paints(now);
    }

    /// The first loaded node in page order that may run now.
    fn next_to_evaluate(&self) -> Option<usize> {
        let mut others = self.waiting.iter().copied();
        let other = others.find(|&node| self.can_evaluate(node));
        if self.waiting_scripts.is_empty() {
            return other;
        }
        // Of the scripts of a document, only the first can be next.
        let documents = self.documents_with_scripts.iter();
        let synchronous = documents.filter_map(|&document| self.barriers[document].front());
        let scripts = synchronous.copied().chain(self.open.first_deferred());
        let scripts =
            scripts.filter(|&node| self.waiting_scripts.contains(&node) && self.can_evaluate(node));
        scripts.chain(other).min()
    }

    /// Adds `node`, which is loaded with all that it imports, to those that are evaluated when they can be.
    pub(super) fn wait_for_evaluation(&mut self, node: usize) {
        let facts = &self.outline.nodes[node];
        let is_ordered = self.outline.barrier(node).is_some() || self.outline.is_deferred(node);
        match is_ordered && !facts.is_redirect && facts.kind != Kind::Document {
            true => self.waiting_scripts.insert(node),
            false => self.waiting.insert(node),
        };
    }

    fn can_evaluate(&self, node: usize) -> bool {
        let facts = &self.outline.nodes[node];
        if facts.is_redirect {
            return true;
        }
        if facts.kind == Kind::Document {
            return self.barriers[node].is_empty();
        }
        if let Some(barrier) = self.outline.barrier(node) {
            let here = barrier.at <= self.arrived[barrier.document];
            return here
                && self.barriers[barrier.document].front() == Some(&node)
                && !self.open.has_sheet_before(&self.outline, node);
        }
        if self.outline.is_deferred(node) {
            let parsed = self.outline.document[node]
                .is_none_or(|document| self.states[document] == NodeState::Settled);
            return parsed
                && !self.open.has_deferred_before(&self.outline, node)
                && !self
                    .open
                    .has_sheet_before(&self.outline, self.outline.modules.leader(node));
        }
        true
    }

    fn evaluate(&mut self, now: Instant, node: usize) {
        self.states[node] = NodeState::Evaluating;
        let Node {
            compute,
            is_redirect,
            ..
        } = self.outline.nodes[node];
        if is_redirect || compute.is_zero() && self.main_thread_free <= now {
            return self.handle_evaluated(now, node);
        }
        self.main_thread_free = self.main_thread_free.max(now) + compute;
        self.at(self.main_thread_free, TimerEvent::Evaluated(node));
    }

    pub(super) fn handle_evaluated(&mut self, now: Instant, node: usize) {
        self.settle(node);
        for child in std::mem::take(&mut self.by_done[node]) {
            self.discover(now, child);
        }
    }

    /// Settles `node`: it no longer blocks anything.
    fn settle(&mut self, node: usize) {
        self.states[node] = NodeState::Settled;
        self.open.remove(&self.outline, node);
        for ready in self.open_modules.settle(&self.outline.modules, node) {
            self.wait_for_evaluation(ready);
        }
        let facts = &self.outline.nodes[node];
        self.before_dom_content_loaded -= usize::from(facts.before_dom_content_loaded);
        self.before_load -= usize::from(facts.before_load);
        if let Some(barrier) = self.outline.barrier(node) {
            let scripts = &mut self.barriers[barrier.document];
            match scripts.front() == Some(&node) {
                true => {
                    scripts.pop_front();
                }
                false => scripts.retain(|&script| script != node),
            }
        }
    }

    /// Settles `node` and all nodes that only it would have named, recursively.
    pub(super) fn abandon(&mut self, node: usize) {
        let mut lost = vec![node];
        while let Some(node) = lost.pop() {
            self.settle(node);
            self.arrived[node] = u64::MAX; // its parser makes no further progress
            lost.extend(std::mem::take(&mut self.by_bytes[node]));
            lost.append(&mut self.by_done[node]);
        }
    }
}
