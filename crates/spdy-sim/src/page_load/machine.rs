//! The public methods of the machine, and the state of a load.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_page::graph::{PageGraph, Trigger, WaitsFor};

use super::cache_locks::CacheLocks;
use super::layout::AwaitingPlace;
use super::modules::OpenModules;
use super::open_nodes::OpenNodes;
use super::outline::{Outline, reveal_at};
use super::paint::Paints;
use crate::page_load::Urgency;
use crate::page_load::throttle::Throttle;

/// State of a node, in the order of its life.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) enum NodeState {
    /// No resource has named it yet.
    Undiscovered,
    /// Named; requested, or soon requested.
    Discovered,
    /// Its last byte has arrived.
    Loaded,
    /// The main thread has it in its queue.
    Evaluating,
    /// Evaluated, failed, or unreachable.
    Settled,
}

/// State of a hinted node until the page needs it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HintState {
    /// No hint names it.
    Unhinted,
    /// The head of the page's document will have a hint for it.
    Hinted,
    /// Requested.
    Requested,
    /// Its last byte has arrived.
    Loaded,
}

/// The next resource to request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// Index into the graph's nodes.
    pub node: usize,
    /// The priority that Chromium gives to its kind.
    pub priority: Priority,
    /// Its urgency in the plan of a [scheduler](PageLoad::schedule).
    pub urgency: Option<Urgency>,
    /// When the page needed it.
    pub needed: Instant,
}

/// The event of a timer of the page.
#[derive(Clone, Copy, Debug)]
pub(super) enum TimerEvent {
    Request(usize),
    Evaluated(usize),
    Raise(usize),
    Load,
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
    pub(super) documents_with_scripts: Vec<usize>,
    /// Named nodes that scripts and layout wait for.
    pub(super) open: OpenNodes,
    /// Modules that wait for their imports.
    pub(super) open_modules: OpenModules,
    /// By document: nodes that its layout requests, with their offsets in it.
    pub(super) awaiting_layout: AwaitingPlace,
    /// Nodes that an inline module imports.
    pub(super) awaiting_parser: AwaitingPlace,
    /// Discovered nodes that are requested after the events.
    pub(super) awaiting_dom_content_loaded: Vec<usize>,
    pub(super) awaiting_load: Vec<usize>,
    /// Loaded nodes that cannot be evaluated yet, without scripts that run in order.
    pub(super) waiting: BTreeSet<usize>,
    /// Loaded synchronous and deferred scripts that cannot be evaluated yet.
    pub(super) waiting_scripts: BTreeSet<usize>,
    due: BTreeMap<(Instant, u64), TimerEvent>,
    sequence: u64,
    pub(super) requests: VecDeque<Request>,
    /// The scheduler, with the requests that it delays.
    pub(super) throttle: Option<Throttle>,
    pub(super) held: BTreeMap<usize, Request>,
    /// Requests that wait for another one for their URL.
    pub(super) cache_locks: CacheLocks,
    pub(super) has_begun: bool,
    pub(super) main_thread_free: Instant,
    /// Number of nodes that each event still waits for.
    pub(super) before_dom_content_loaded: usize,
    pub(super) before_load: usize,
    /// Number of requests that inline scripts are about to make: DOMContentLoaded waits for them too.
    pub(super) open_inline_scripts: usize,
    pub(super) dom_content_loaded: Option<Instant>,
    pub(super) load: Option<Instant>,
    /// How long the load event comes after all that it waits for.
    load_delay: Duration,
    /// All that it waits for has ended.
    pub(super) is_load_due: bool,
    /// First and largest paint, if they are [enabled](PageLoad::draw).
    pub(super) paints: Option<Paints>,
}

impl<'a> PageLoad<'a> {
    /// Creates a load that has not started. Nodes that no chain of triggers leads to are omitted.
    #[must_use]
    pub fn new(graph: &'a PageGraph) -> Self {
        let count = graph.nodes.len();
        let outline = Outline::of(&graph.nodes);
        let mut page = Self {
            open_modules: OpenModules::of(&outline.modules),
            outline,
            states: vec![NodeState::Settled; count],
            early: vec![HintState::Unhinted; count],
            arrived: vec![0; count],
            by_bytes: vec![VecDeque::new(); count],
            by_done: vec![Vec::new(); count],
            barriers: vec![VecDeque::new(); count],
            documents_with_scripts: Vec::new(),
            open: OpenNodes::default(),
            awaiting_layout: BTreeMap::new(),
            awaiting_parser: BTreeMap::new(),
            awaiting_dom_content_loaded: Vec::new(),
            awaiting_load: Vec::new(),
            waiting: BTreeSet::new(),
            waiting_scripts: BTreeSet::new(),
            due: BTreeMap::new(),
            sequence: 0,
            requests: VecDeque::new(),
            throttle: None,
            held: BTreeMap::new(),
            cache_locks: CacheLocks::default(),
            has_begun: false,
            main_thread_free: Instant::ZERO,
            before_dom_content_loaded: 0,
            before_load: 0,
            open_inline_scripts: 0,
            dom_content_loaded: None,
            load: None,
            load_delay: Duration::ZERO,
            is_load_due: false,
            paints: None,
        };
        page.link();
        page
    }

    /// Registers each reachable node with its trigger, its parser and its events; all other nodes are settled.
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
            if let Some(barrier) = self.outline.barrier(child) {
                self.barriers[barrier.document].push_back(child);
            }
        }
        for children in &mut self.by_bytes {
            let children = children.make_contiguous();
            children.sort_by_key(|&child| reveal_at(&nodes[child]));
        }
        for (document, scripts) in self.barriers.iter_mut().enumerate() {
            let scripts = scripts.make_contiguous();
            scripts.sort_by_key(|&child| self.outline.barrier(child));
            if !scripts.is_empty() {
                self.documents_with_scripts.push(document);
            }
        }
    }

    /// Sets how long the load event comes after all that it waits for, if called before the load starts. The default is zero.
    pub fn delay_load(&mut self, delay: Duration) {
        self.load_delay = delay;
    }

    /// Starts the load with the navigation.
    ///
    /// # Panics
    ///
    /// If it has started before.
    pub fn start(&mut self, now: Instant) {
        assert!(!self.has_begun, "the load has already started");
        self.has_begun = true;
        self.note_start(now);
        for child in 0..self.outline.nodes.len() {
            if self.outline.nodes[child].trigger == Trigger::Start
                && self.states[child] == NodeState::Undiscovered
            {
                self.discover(now, child);
            }
        }
        self.progress(now);
    }

    /// Handles the first `total` bytes of the body of `node`, as transferred.
    pub fn handle_bytes(&mut self, now: Instant, node: usize, total: u64) {
        self.arrived[node] = self.arrived[node].max(total);
        if self.early[node] != HintState::Unhinted {
            return; // the page reads their references when it needs the node
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

    /// Handles the last byte of `node`.
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
        self.note_arrival(node);
        let order = &self.outline.modules;
        for ready in self.open_modules.handle_arrival(order, node) {
            self.wait_for_evaluation(ready);
        }
        // A graph may have an offset past the end (if a wrong length was recorded): the child is discovered here at the latest.
        self.handle_bytes(now, node, u64::MAX);
    }

    /// Handles the failure of `node`: it no longer blocks anything, and nodes that only its later bytes name stay undiscovered.
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

    /// Handles all timers that are due at `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.due.first_entry() {
            if entry.key().0 > now {
                break;
            }
            match entry.remove() {
                TimerEvent::Request(node) => {
                    self.open_inline_scripts -= usize::from(self.is_by_inline_script(node));
                    self.require(now, node);
                }
                TimerEvent::Evaluated(node) => self.handle_evaluated(now, node),
                TimerEvent::Raise(node) => self.raise(node),
                TimerEvent::Load => self.fire_load(now),
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

    /// True if [`poll_request`](Self::poll_request) has a request.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Time of DOMContentLoaded.
    #[must_use]
    pub fn dom_content_loaded(&self) -> Option<Instant> {
        self.dom_content_loaded
    }

    /// Time of the load event.
    #[must_use]
    pub fn load(&self) -> Option<Instant> {
        self.load
    }

    /// True if no node is left to request or to evaluate, including those after the load event.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.load.is_some() && self.states.iter().all(|&stage| stage == NodeState::Settled)
    }

    /// Nodes that are not settled, for the error of a load that cannot end.
    #[must_use]
    pub fn unsettled(&self) -> Vec<usize> {
        (0..self.outline.nodes.len())
            .filter(|&node| self.states[node] != NodeState::Settled)
            .collect()
    }

    /// Everything that the load event waits for has ended.
    pub(super) fn end_load(&mut self, now: Instant) {
        self.is_load_due = true;
        match self.load_delay.is_zero() {
            true => self.fire_load(now),
            false => self.at(now + self.load_delay, TimerEvent::Load),
        }
    }

    fn fire_load(&mut self, now: Instant) {
        self.load = Some(now);
        for node in std::mem::take(&mut self.awaiting_load) {
            self.request_from(now, now, node);
        }
    }

    pub(super) fn at(&mut self, when: Instant, due: TimerEvent) {
        self.sequence += 1;
        self.due.insert((when, self.sequence), due);
    }

    /// Handles the first reference to `node`.
    pub(super) fn discover(&mut self, now: Instant, node: usize) {
        assert_eq!(
            self.states[node],
            NodeState::Undiscovered,
            "node {node} is named twice"
        );
        self.states[node] = NodeState::Discovered;
        self.open.insert(&self.outline, node);
        let facts = &self.outline.nodes[node];
        let awaiting = match (facts.waits_for, self.outline.document[node]) {
            (Some(WaitsFor::Parser { at_byte }), Some(document)) => {
                Some((&mut self.awaiting_parser, document, at_byte))
            }
            (
                Some(WaitsFor::Layout { at_byte } | WaitsFor::InlineScript { at_byte }),
                Some(document),
            ) => Some((&mut self.awaiting_layout, document, at_byte)),
            (Some(WaitsFor::DomContentLoaded), _) if self.dom_content_loaded.is_none() => {
                return self.awaiting_dom_content_loaded.push(node);
            }
            (Some(WaitsFor::Load), _) if self.load.is_none() => {
                return self.awaiting_load.push(node);
            }
            _ => None,
        };
        match awaiting {
            Some((awaiting, document, at_byte)) => {
                awaiting
                    .entry(document)
                    .or_default()
                    .insert((at_byte, node));
            }
            None => self.request_from(now, now, node),
        }
    }

    /// Requests `node` after its delay, which begins at `from`.
    pub(super) fn request_from(&mut self, now: Instant, from: Instant, node: usize) {
        match from + self.outline.nodes[node].delay {
            at if at <= now => self.require(now, node),
            at => {
                self.open_inline_scripts += usize::from(self.is_by_inline_script(node));
                self.at(at, TimerEvent::Request(node));
            }
        }
    }

    fn is_by_inline_script(&self, node: usize) -> bool {
        let waits_for = self.outline.nodes[node].waits_for;
        matches!(waits_for, Some(WaitsFor::InlineScript { .. }))
    }
}
