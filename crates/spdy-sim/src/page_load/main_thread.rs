//! Order of evaluation on the main thread: a script waits for the style sheets and scripts before it, and the parser waits for a
//! script. Then DOMContentLoaded and load.

use spdy_clock::Instant;
use spdy_page::graph::Node;
use spdy_page::replica::Kind;

use super::machine::{NodeState, PageLoad, TimerEvent};
use super::outline::is_deferred;

impl PageLoad<'_> {
    /// Queues every node that may run now for the main thread, in page order; then checks the two events.
    pub(super) fn progress(&mut self, now: Instant) {
        while let Some(node) = self
            .waiting
            .iter()
            .copied()
            .find(|&node| self.can_evaluate(node))
        {
            self.waiting.remove(&node);
            self.evaluate(now, node);
        }
        self.note_body_starts();
        self.lay_out(now);
        if self.dom_content_loaded.is_none() && self.before_dom_content_loaded == 0 {
            self.dom_content_loaded = Some(now);
        }
        if self.load.is_none() && self.dom_content_loaded.is_some() && self.before_load == 0 {
            self.load = Some(now);
            for node in std::mem::take(&mut self.awaiting_load) {
                self.request_from(now, now, node);
            }
        }
        self.note_paints(now);
    }

    fn can_evaluate(&self, node: usize) -> bool {
        let facts = &self.outline.nodes[node];
        if facts.is_redirect {
            return true;
        }
        if facts.kind == Kind::Document {
            return self.barriers[node].is_empty();
        }
        if let Some((document, at)) = self.outline.barrier(node) {
            let here = at <= self.arrived[document];
            return here
                && self.barriers[document].front() == Some(&node)
                && !self.is_any_open(self.outline.sheets_before(node));
        }
        if is_deferred(facts) {
            let parsed = self.outline.document[node]
                .is_none_or(|document| self.states[document] == NodeState::Settled);
            return parsed
                && !self.is_any_open(self.outline.deferred_before(node))
                && !self.is_any_open(self.outline.sheets_before(node));
        }
        true
    }

    fn is_any_open(&self, mut nodes: impl Iterator<Item = usize>) -> bool {
        nodes.any(|node| self.states[node].is_open())
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
        let facts = &self.outline.nodes[node];
        self.before_dom_content_loaded -= usize::from(facts.before_dom_content_loaded);
        self.before_load -= usize::from(facts.before_load);
        if let Some((document, _)) = self.outline.barrier(node) {
            self.barriers[document].retain(|&script| script != node);
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
