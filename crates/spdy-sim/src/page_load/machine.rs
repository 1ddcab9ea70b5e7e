//! The doors of the machine, and what it keeps of a load.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_page::graph::{PageGraph, Trigger};

use super::outline::{Outline, reveal_at};
use crate::page_load::throttle::Throttle;

/// Where a node stands. The order is the order of its life.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum NodeState {
    /// Nothing has named it yet.
    Undiscovered,
    /// Named; requested, or about to be.
    Discovered,
    /// Its last byte is here.
    Loaded,
    /// Its turn has come, and the main thread has it in its queue.
    Evaluating,
    /// Evaluated, failed, or unreachable.
    Settled,
}

impl NodeState {
    /// Whether it is discovered and not settled yet.
    pub(super) fn is_open(self) -> bool {
        (Self::Discovered..Self::Settled).contains(&self)
    }
}

/// The state of a node that was hinted at, until the page needs it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HintState {
    /// No hint names it.
    Unhinted,
    /// The head of the page's document will.
    Hinted,
    /// Requested.
    Requested,
    /// Its last byte is here.
    Loaded,
}

/// The next resource to request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// Index into the graph's nodes.
    pub node: usize,
    /// By kind, as Chromium gave it.
    pub priority: Priority,
    /// When the page needed it.
    pub needed: Instant,
}

/// What happens when a timer of the page fires.
#[derive(Clone, Copy, Debug)]
pub(super) enum TimerEvent {
    Request(usize),
    Evaluated(usize),
}

/// One load of one page. See the [module](super) for its rules.
#[derive(Debug)]
pub struct PageLoad<'a> {
    pub(super) outline: Outline<'a>,
    pub(super) states: Vec<NodeState>,
    pub(super) early: Vec<HintState>,
    pub(super) arrived: Vec<u64>,
    /// Children by parent: revealed by bytes, in the order of their offsets, and by evaluation.
    pub(super) by_bytes: Vec<VecDeque<usize>>,
    pub(super) by_done: Vec<Vec<usize>>,
    /// By document: the synchronous scripts that its parser has not passed, in the order of their offsets.
    pub(super) barriers: Vec<VecDeque<usize>>,
    /// Loaded, and waiting for their turn.
    pub(super) waiting: BTreeSet<usize>,
    due: BTreeMap<(Instant, u64), TimerEvent>,
    sequence: u64,
    pub(super) requests: VecDeque<Request>,
    /// What holds requests back, and those that it holds.
    pub(super) throttle: Option<Throttle>,
    pub(super) held: BTreeMap<usize, Request>,
    pub(super) has_begun: bool,
    pub(super) main_thread_free: Instant,
    /// Nodes that each event still waits for.
    pub(super) before_dom_content_loaded: usize,
    pub(super) before_load: usize,
    pub(super) dom_content_loaded: Option<Instant>,
    pub(super) load: Option<Instant>,
}

impl<'a> PageLoad<'a> {
    /// A load that has not begun. Nodes that no chain of triggers leads to are left out.
    #[must_use]
    pub fn new(graph: &'a PageGraph) -> Self {
        let count = graph.nodes.len();
        let mut page = Self {
            outline: Outline::of(&graph.nodes),
            states: vec![NodeState::Settled; count],
            early: vec![HintState::Unhinted; count],
            arrived: vec![0; count],
            by_bytes: vec![VecDeque::new(); count],
            by_done: vec![Vec::new(); count],
            barriers: vec![VecDeque::new(); count],
            waiting: BTreeSet::new(),
            due: BTreeMap::new(),
            sequence: 0,
            requests: VecDeque::new(),
            throttle: None,
            held: BTreeMap::new(),
            has_begun: false,
            main_thread_free: Instant::ZERO,
            before_dom_content_loaded: 0,
            before_load: 0,
            dom_content_loaded: None,
            load: None,
        };
        page.link();
        page
    }

    /// Puts what can be reached where it waits to be named, to be passed, or to be evaluated; all else is settled.
    fn link(&mut self) {
        let nodes = self.outline.nodes;
        for &child in &self.outline.reached {
            let node = &nodes[child];
            self.states[child] = NodeState::Undiscovered;
            self.before_dom_content_loaded += usize::from(node.before_dom_content_loaded);
            self.before_load += usize::from(node.before_load);
            match node.trigger {
                Trigger::Start => {}
                Trigger::Done { parent } => self.by_done[parent].push(child),
                Trigger::Bytes { parent, .. } => self.by_bytes[parent].push_back(child),
            }
            if let Some((document, _)) = self.outline.barrier(child) {
                self.barriers[document].push_back(child);
            }
        }
        for children in &mut self.by_bytes {
            let children = children.make_contiguous();
            children.sort_by_key(|&child| reveal_at(&nodes[child]));
        }
        for scripts in &mut self.barriers {
            let scripts = scripts.make_contiguous();
            scripts.sort_by_key(|&child| nodes[child].blocks_parser_at);
        }
    }

    /// Begins the load: the navigation.
    ///
    /// # Panics
    ///
    /// If it began before.
    pub fn start(&mut self, now: Instant) {
        assert!(!self.has_begun, "the load has already started");
        self.has_begun = true;
        for child in 0..self.outline.nodes.len() {
            if self.outline.nodes[child].trigger == Trigger::Start
                && self.states[child] == NodeState::Undiscovered
            {
                self.discover(now, child);
            }
        }
        self.progress(now);
    }

    /// The first `total` bytes of the body of `node`, as transferred, have arrived.
    pub fn handle_bytes(&mut self, now: Instant, node: usize, total: u64) {
        self.arrived[node] = self.arrived[node].max(total);
        if self.early[node] != HintState::Unhinted {
            return; // the page reads what they name when it needs the node
        }
        while let Some(&child) = self.by_bytes[node].front() {
            if reveal_at(&self.outline.nodes[child]) > total {
                break;
            }
            self.by_bytes[node].pop_front();
            self.discover(now, child);
        }
        self.progress(now);
    }

    /// The last byte of `node` is here.
    ///
    /// # Panics
    ///
    /// If `node` was not requested, or was done before.
    pub fn handle_done(&mut self, now: Instant, node: usize) {
        self.ended(node);
        if self.early[node] == HintState::Requested {
            self.early[node] = HintState::Loaded;
            return;
        }
        assert_eq!(
            self.states[node],
            NodeState::Discovered,
            "node {node} is done, but was not requested"
        );
        self.states[node] = NodeState::Loaded;
        self.waiting.insert(node);
        // A graph may name an offset past the end (a length recorded wrongly): the node is discovered here at the latest.
        self.handle_bytes(now, node, u64::MAX);
    }

    /// `node` could not be loaded: it blocks nothing any more, and what it would still have named stays unknown.
    ///
    /// # Panics
    ///
    /// If `node` was not requested, or was done before.
    pub fn handle_failed(&mut self, now: Instant, node: usize) {
        self.ended(node);
        if self.early[node] == HintState::Requested {
            self.early[node] = HintState::Unhinted; // requested again when the page needs it
            return;
        }
        assert_eq!(
            self.states[node],
            NodeState::Discovered,
            "node {node} failed, but was not requested"
        );
        self.abandon(node);
        self.progress(now);
    }

    /// Does what was due by `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.due.first_entry() {
            if entry.key().0 > now {
                break;
            }
            match entry.remove() {
                TimerEvent::Request(node) => self.require(now, node),
                TimerEvent::Evaluated(node) => self.handle_evaluated(now, node),
            }
        }
        self.progress(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.first_key_value().map(|(key, _)| key.0)
    }

    /// The next request, in the order in which the page needs them; `None` when there is none yet.
    pub fn poll_request(&mut self) -> Option<Request> {
        self.requests.pop_front()
    }

    /// Whether [`poll_request`](Self::poll_request) has something to give.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// When DOMContentLoaded was reached.
    #[must_use]
    pub fn dom_content_loaded(&self) -> Option<Instant> {
        self.dom_content_loaded
    }

    /// When load was reached.
    #[must_use]
    pub fn load(&self) -> Option<Instant> {
        self.load
    }

    /// Whether nothing is left to request or to evaluate, also of what comes after load.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.load.is_some() && self.states.iter().all(|&stage| stage == NodeState::Settled)
    }

    /// Nodes that are not settled, for a report of a load that cannot end.
    #[must_use]
    pub fn unsettled(&self) -> Vec<usize> {
        (0..self.outline.nodes.len())
            .filter(|&node| self.states[node] != NodeState::Settled)
            .collect()
    }

    pub(super) fn at(&mut self, when: Instant, due: TimerEvent) {
        self.sequence += 1;
        self.due.insert((when, self.sequence), due);
    }

    /// Something named `node`.
    pub(super) fn discover(&mut self, now: Instant, node: usize) {
        assert_eq!(
            self.states[node],
            NodeState::Undiscovered,
            "node {node} is named twice"
        );
        self.states[node] = NodeState::Discovered;
        match self.outline.nodes[node].delay {
            delay if delay.is_zero() => self.require(now, node),
            delay => self.at(now + delay, TimerEvent::Request(node)),
        }
    }
}
