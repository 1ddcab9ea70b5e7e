//! Requests of a page and their times: by hints before the page needs a resource, or later by a scheduler.

use std::time::Duration;

use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_page::replica::Kind;

use super::cache_locks::CacheLocks;
use super::machine::{HintState, NodeState, PageLoad, Request, TimerEvent};
use super::outline::parent_of;
use crate::options::Scheduler;
use crate::page_load::UrgencyPlan;
use crate::page_load::throttle::Throttle;

/// The priority that Chromium gave to a resource of `kind` in 2014: document 0, style sheet 1, script,
/// font and fetch 2, media 3, images and the rest 4.
#[must_use]
pub fn priority_of(kind: Kind) -> Priority {
    let level = match kind {
        Kind::Document => 0,
        Kind::Stylesheet => 1,
        Kind::Script | Kind::Font | Kind::Fetch => 2,
        Kind::Media => 3,
        Kind::Image | Kind::Other => 4,
    };
    Priority::new(level)
}

impl PageLoad<'_> {
    /// Adds hints at `nodes` to the head of the page's document, if called before that head [arrives](Self::handle_head). Documents
    /// and redirects are omitted: their effects depend on more than their bytes.
    ///
    /// # Panics
    ///
    /// If a node does not exist.
    pub fn hint(&mut self, nodes: impl IntoIterator<Item = usize>) {
        for node in nodes {
            let facts = &self.outline.nodes[node];
            let is_open = self.states[node] == NodeState::Undiscovered
                && self.early[node] == HintState::Unhinted;
            if is_open && facts.kind != Kind::Document && !facts.is_redirect {
                self.early[node] = HintState::Hinted;
            }
        }
    }

    /// Handles early hints (103) at `nodes`, before the head of the response for `node`. They are requested at once.
    ///
    /// # Panics
    ///
    /// If a node does not exist.
    pub fn handle_early_hints(
        &mut self,
        now: Instant,
        node: usize,
        nodes: impl IntoIterator<Item = usize>,
    ) {
        self.hint(nodes);
        self.handle_head(now, node);
    }

    /// Handles the head of the response for `node`.
    pub fn handle_head(&mut self, now: Instant, node: usize) {
        if let Some(throttle) = &mut self.throttle {
            throttle.handle_head(node);
            self.unlock(node);
            self.release();
        }
        let facts = &self.outline.nodes[node];
        // The first document that is not a redirect is the page's own.
        let is_page = self.outline.document[node].is_none() && facts.kind == Kind::Document;
        if !is_page || facts.is_redirect {
            return;
        }
        for hinted in 0..self.outline.nodes.len() {
            if self.early[hinted] == HintState::Hinted
                && self.states[hinted] == NodeState::Undiscovered
            {
                self.early[hinted] = HintState::Requested;
                self.queue_request(now, hinted);
            }
        }
    }

    /// Enables a browser's scheduler, if called before the load starts. It delays requests of the page.
    ///
    /// # Panics
    ///
    /// If the load has started, or `plan` is not of its graph.
    pub fn schedule(&mut self, scheduler: Scheduler, plan: UrgencyPlan) {
        assert!(!self.has_begun, "the load has already started");
        let of = [
            plan.urgency.len(),
            plan.host.len(),
            plan.partition.len(),
            plan.is_multiplexed.len(),
            plan.is_measured.len(),
        ];
        assert_eq!(
            of,
            [self.outline.nodes.len(); 5],
            "the plan belongs to another graph"
        );
        self.cache_locks = match scheduler {
            Scheduler::None => CacheLocks::default(),
            Scheduler::Chromium | Scheduler::Chromium49 => CacheLocks::new(plan.same_url.clone()),
        };
        self.throttle = match scheduler {
            Scheduler::None => None,
            Scheduler::Chromium | Scheduler::Chromium49 => Some(Throttle::new(scheduler, plan)),
        };
    }

    /// Reports the duration of a TCP handshake for `node`, or of its response from request to first byte: a
    /// [scheduler](Self::schedule) estimates the network by it.
    pub fn handle_round_trip(&mut self, node: usize, time: Duration) {
        if let Some(throttle) = &mut self.throttle
            && throttle.plan().is_measured[node]
        {
            throttle.handle_round_trip(time);
            self.release();
        }
    }

    /// Handles the page's need for `node`: requests it, or continues with the bytes that a hint has loaded.
    pub(super) fn require(&mut self, now: Instant, node: usize) {
        let plan = self.throttle.as_ref().map(Throttle::plan);
        if let Some(&after) = plan.and_then(|plan| plan.raised_after.get(&node)) {
            self.at(now + after, TimerEvent::Raise(node));
        }
        match std::mem::replace(&mut self.early[node], HintState::Unhinted) {
            HintState::Unhinted | HintState::Hinted => self.queue_request(now, node),
            HintState::Requested => self.handle_bytes(now, node, self.arrived[node]),
            HintState::Loaded => self.handle_done(now, node),
        }
    }

    fn queue_request(&mut self, now: Instant, node: usize) {
        let facts = &self.outline.nodes[node];
        let request = Request {
            node,
            priority: priority_of(facts.kind),
            urgency: self.throttle.as_ref().map(|it| it.plan().urgency[node]),
            needed: now,
        };
        let goes_on = parent_of(facts).is_some_and(|parent| self.outline.nodes[parent].is_redirect);
        // A page cannot delay its navigation.
        match (&mut self.throttle, self.outline.document[node]) {
            (Some(throttle), Some(document)) if facts.kind != Kind::Document => {
                self.held.insert(node, request);
                throttle.enqueue(node, document, goes_on);
                self.release();
            }
            _ => self.requests.push_back(request),
        }
    }

    /// Layout has found `node` in the window.
    pub(super) fn raise(&mut self, node: usize) {
        if let Some(throttle) = &mut self.throttle {
            throttle.raise(node);
            self.release();
        }
    }

    /// The exchange of `node` has ended, even if the page does not need it yet.
    pub(super) fn ended(&mut self, node: usize) {
        if let Some(throttle) = &mut self.throttle {
            throttle.done(node);
            self.unlock(node);
            self.release();
        }
    }

    /// Queues the requests that the scheduler releases, unless the cache makes them wait.
    fn release(&mut self) {
        while let Some(node) = self.throttle.as_mut().and_then(Throttle::poll) {
            if self.cache_locks.acquire(node) {
                self.requests.extend(self.held.remove(&node));
            }
        }
    }

    /// Queues the request that waited for the one for `node`.
    fn unlock(&mut self, node: usize) {
        if let Some(next) = self.cache_locks.release(node) {
            self.requests.extend(self.held.remove(&next));
        }
    }

    /// Reports to the scheduler each document whose parser has reached the body.
    pub(super) fn note_body_starts(&mut self) {
        let Some(throttle) = &self.throttle else {
            return;
        };
        let mut tight = throttle.tight_documents();
        tight.retain(|&document| self.has_met_body(throttle, document));
        for document in tight {
            if let Some(throttle) = &mut self.throttle {
                throttle.handle_body_start(document);
            }
        }
        self.release();
    }

    fn has_met_body(&self, throttle: &Throttle, document: usize) -> bool {
        let plan = throttle.plan();
        let at = plan.body_at[&document];
        let stop = self.barriers[document].front();
        let stop = stop.and_then(|&script| self.outline.barrier(script));
        self.arrived[document] >= at && stop.is_none_or(|stop| at < stop.at)
    }
}
