//! A browser's order of requests, as a machine without I/O.
//!
//! What a page needs, and what needs what, stands in its [`PageGraph`]; this machine follows the graph as
//! bytes arrive and says what to ask for next, and when DOMContentLoaded and load are reached.
//!
//! ```text
//!            known ──delay──► wanted ──► requested ──► loaded ──► evaluated
//!              ▲                            │ bytes      │ script: not before its turn
//!   trigger ───┘                            ▼            ▼
//!              Start            reveal what the bytes name     main thread, one at a time
//!              Bytes{parent}    (preload scanner: also while
//!              Done{parent}      the parser stands still)
//! ```
//!
//! The rules, as browsers have them:
//!
//! - The parser of a document goes as far as its bytes have arrived, and stops where a synchronous script
//!   stands until that script has been evaluated. The preload scanner does not stop.
//! - A script that the parser meets (synchronous or deferred) waits for the style sheets that its document
//!   named before it, and for what those import. An asynchronous one does not.
//! - Deferred scripts run in order once the parser is through; then DOMContentLoaded, when everything else
//!   that it waits for is evaluated too.
//! - A redirect is followed as soon as it is there: it waits for no turn and for no thread.
//! - Load comes when everything that it waits for is evaluated, not before DOMContentLoaded.
//! - Evaluating takes `compute` on the one main thread; what is ready first goes first.
//! - What the head of the page's document [hints](PageLoad::hint) at is asked for when that head is there, by its own
//!   priority; the page takes it up when it comes to want it.
//!
//! - With a [scheduler](PageLoad::schedule) what the page wants is asked for when that lets it go.
//!
//! Sending requests, connections and bytes are the driver's business (`browser.rs`).
//!
//! A page of a document and an image, by hand:
//!
//! ```
//! # use std::time::Duration;
//! # use spdy_clock::Instant;
//! # use spdy_lab::page_load::PageLoad;
//! # use spdy_page::graph::{Node, PageGraph, Trigger};
//! # use spdy_page::replica::Kind;
//! # let node = |exchange, kind, trigger| Node { exchange, kind, trigger, delay: Duration::ZERO,
//! #     is_redirect: false, blocks_parser_at: None, blocks_scripts: false, before_dom_content_loaded: exchange == 0,
//! #     before_load: true, compute: Duration::ZERO };
//! # let graph = PageGraph { nodes: vec![node(0, Kind::Document, Trigger::Start),
//! #     node(1, Kind::Image, Trigger::Bytes { parent: 0, at_byte: 500 })] };
//! let ms = Instant::from_millis;
//! let mut page = PageLoad::new(&graph);
//! page.start(ms(0));
//! assert_eq!(page.poll_request().unwrap().node, 0);
//! page.handle_bytes(ms(100), 0, 700); // the image stands at byte 500
//! assert_eq!(page.poll_request().unwrap().node, 1);
//! page.handle_done(ms(110), 0);
//! assert_eq!(page.dom_content_loaded(), Some(ms(110)));
//! page.handle_done(ms(200), 1);
//! assert_eq!(page.load(), Some(ms(200)));
//! ```

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_page::graph::{Node, PageGraph, Trigger};
use spdy_page::replica::Kind;

use crate::scheduler::plan::{Plan, Urgency};
use crate::scheduler::throttle::Throttle;

/// What to ask for next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Request {
    /// Index into the graph's nodes.
    pub node: usize,
    /// By kind, as Chromium gave it.
    pub priority: Priority,
    /// When the page wanted it.
    pub wanted: Instant,
}

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

/// Where a node stands. The order is the order of its life.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Stage {
    /// Nothing has named it yet.
    Unknown,
    /// Named; asked for, or about to be.
    Known,
    /// Its last byte is here.
    Loaded,
    /// Its turn has come, and the main thread has it in its queue.
    Evaluating,
    /// Evaluated, failed, or never to be known.
    Settled,
}

/// What the page asked to be called for.
#[derive(Clone, Copy, Debug)]
enum Due {
    Request(usize),
    Evaluated(usize),
}

/// Where a node stands that was hinted at, until the page wants it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Early {
    /// Nobody hints at it.
    Not,
    /// The head of the page's document will.
    Hinted,
    /// Asked for.
    Asked,
    /// Its last byte is here.
    Here,
}

/// Nodes by the document that they belong to.
type ByDocument = BTreeMap<Option<usize>, Vec<usize>>;

/// One load of one page. See the [module](self) for its rules.
#[derive(Debug)]
pub struct PageLoad<'a> {
    nodes: &'a [Node],
    stages: Vec<Stage>,
    early: Vec<Early>,
    arrived: Vec<u64>,
    /// Children by parent: revealed by bytes, in the order of their offsets, and by evaluation.
    by_bytes: Vec<VecDeque<usize>>,
    by_done: Vec<Vec<usize>>,
    /// By document: the synchronous scripts that its parser has not passed, in the order of their offsets.
    barriers: Vec<VecDeque<usize>>,
    /// The document that named each node, directly or by what it named.
    document: Vec<Option<usize>>,
    /// What stands for each node in that document's text: itself, or what named it from there.
    anchor: Vec<usize>,
    /// Whether that text names it, or a redirect of what it names.
    in_text: Vec<bool>,
    /// Sheets that scripts wait for, and deferred scripts.
    sheets: ByDocument,
    deferred: ByDocument,
    /// Loaded, and waiting for their turn.
    waiting: BTreeSet<usize>,
    due: BTreeMap<(Instant, u64), Due>,
    sequence: u64,
    requests: VecDeque<Request>,
    /// What holds requests back, and those that it holds.
    throttle: Option<Throttle>,
    held: BTreeMap<usize, Request>,
    has_begun: bool,
    main_thread_free: Instant,
    /// Nodes that each event still waits for.
    before_dom_content_loaded: usize,
    before_load: usize,
    dom_content_loaded: Option<Instant>,
    load: Option<Instant>,
}

impl<'a> PageLoad<'a> {
    /// A load that has not begun. Nodes that no chain of triggers leads to are left out.
    #[must_use]
    pub fn new(graph: &'a PageGraph) -> Self {
        let nodes = &graph.nodes[..];
        let mut page = Self {
            nodes,
            stages: vec![Stage::Unknown; nodes.len()],
            early: vec![Early::Not; nodes.len()],
            arrived: vec![0; nodes.len()],
            by_bytes: vec![VecDeque::new(); nodes.len()],
            by_done: vec![Vec::new(); nodes.len()],
            barriers: vec![VecDeque::new(); nodes.len()],
            document: vec![None; nodes.len()],
            anchor: (0..nodes.len()).collect(),
            in_text: vec![false; nodes.len()],
            sheets: ByDocument::new(),
            deferred: ByDocument::new(),
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

    /// Wires parents to children, and settles what can never be reached.
    fn link(&mut self) {
        let nodes = self.nodes;
        self.stages.fill(Stage::Settled);
        for child in reached(nodes) {
            self.stages[child] = Stage::Unknown;
            self.stand(child);
        }
        for (child, node) in nodes.iter().enumerate() {
            if self.stages[child] == Stage::Settled {
                continue;
            }
            self.before_dom_content_loaded += usize::from(node.before_dom_content_loaded);
            self.before_load += usize::from(node.before_load);
            match node.trigger {
                Trigger::Start => {}
                Trigger::Done { parent } => self.by_done[parent].push(child),
                Trigger::Bytes { parent, .. } => self.by_bytes[parent].push_back(child),
            }
            let document = self.document[child];
            if node.blocks_scripts {
                self.sheets.entry(document).or_default().push(child);
            }
            if let Some((document, _)) = self.barrier(child) {
                self.barriers[document].push_back(child);
            } else if is_deferred(node) {
                self.deferred.entry(document).or_default().push(child);
            }
        }
        for children in &mut self.by_bytes {
            children
                .make_contiguous()
                .sort_by_key(|&child| reveal_at(&nodes[child]));
        }
        for scripts in &mut self.barriers {
            scripts
                .make_contiguous()
                .sort_by_key(|&child| nodes[child].blocks_parser_at);
        }
    }

    /// Finds whose page `node` is part of, and where it stands there. Its parent was asked before.
    fn stand(&mut self, node: usize) {
        let Some(parent) = parent_of(&self.nodes[node]) else {
            return;
        };
        let above = &self.nodes[parent];
        if above.kind == Kind::Document && !above.is_redirect {
            self.document[node] = Some(parent);
            self.in_text[node] = matches!(self.nodes[node].trigger, Trigger::Bytes { .. });
        } else {
            self.document[node] = self.document[parent];
            self.anchor[node] = self.anchor[parent];
            self.in_text[node] = above.is_redirect && self.in_text[parent];
        }
    }

    /// Begins the load: the navigation.
    ///
    /// # Panics
    ///
    /// If it began before.
    pub fn start(&mut self, now: Instant) {
        assert!(!self.has_begun, "this load has begun already");
        self.has_begun = true;
        for child in 0..self.nodes.len() {
            if self.nodes[child].trigger == Trigger::Start && self.stages[child] == Stage::Unknown {
                self.reveal(now, child);
            }
        }
        self.progress(now);
    }

    /// Lets the head of the page's document hint at `nodes`, if said before that head is [here](Self::handle_head). Documents and redirects are left out: what is made of them
    /// hangs on more than their bytes.
    ///
    /// # Panics
    ///
    /// If there is no such node.
    pub fn hint(&mut self, nodes: impl IntoIterator<Item = usize>) {
        for node in nodes {
            let facts = &self.nodes[node];
            let is_open = self.stages[node] == Stage::Unknown && self.early[node] == Early::Not;
            if is_open && facts.kind != Kind::Document && !facts.is_redirect {
                self.early[node] = Early::Hinted;
            }
        }
    }

    /// Lets a browser's scheduler hold back what the page wants, if said before the load begins.
    ///
    /// # Panics
    ///
    /// If the load has begun, or `plan` is not of its graph.
    pub fn schedule(&mut self, plan: Plan) {
        assert!(!self.has_begun, "this load has begun already");
        let of = [
            plan.urgency.len(),
            plan.is_multiplexed.len(),
            plan.is_measured.len(),
        ];
        assert_eq!(of, [self.nodes.len(); 3], "the plan of another graph");
        self.throttle = Some(Throttle::new(plan));
    }

    /// A handshake of TCP took so long that was made for `node`, or its answer from request to first byte: a
    /// [scheduler](Self::schedule) makes its own of it.
    pub fn handle_round_trip(&mut self, node: usize, time: Duration) {
        if let Some(throttle) = &mut self.throttle
            && throttle.plan().is_measured[node]
        {
            throttle.note_round_trip(time);
            self.release();
        }
    }

    /// The head of the response for `node` has arrived.
    pub fn handle_head(&mut self, now: Instant, node: usize) {
        let facts = &self.nodes[node];
        // The first document that is no redirect is the page's own.
        let is_page = self.document[node].is_none() && facts.kind == Kind::Document;
        if !is_page || facts.is_redirect {
            return;
        }
        for hinted in 0..self.nodes.len() {
            if self.early[hinted] == Early::Hinted && self.stages[hinted] == Stage::Unknown {
                self.early[hinted] = Early::Asked;
                self.ask(now, hinted);
            }
        }
    }

    /// The first `total` bytes of the body of `node`, as transferred, have arrived.
    pub fn handle_bytes(&mut self, now: Instant, node: usize, total: u64) {
        self.arrived[node] = self.arrived[node].max(total);
        if self.early[node] != Early::Not {
            return; // what they name is looked at when the page wants it
        }
        while let Some(&child) = self.by_bytes[node].front() {
            if reveal_at(&self.nodes[child]) > total {
                break;
            }
            self.by_bytes[node].pop_front();
            self.reveal(now, child);
        }
        self.progress(now);
    }

    /// The last byte of `node` is here.
    ///
    /// # Panics
    ///
    /// If `node` was not asked for, or was done before.
    pub fn handle_done(&mut self, now: Instant, node: usize) {
        self.ended(node);
        if self.early[node] == Early::Asked {
            self.early[node] = Early::Here;
            return;
        }
        assert_eq!(
            self.stages[node],
            Stage::Known,
            "node {node} is done, but was not awaited"
        );
        self.stages[node] = Stage::Loaded;
        self.waiting.insert(node);
        // A graph may name an offset past the end (a length recorded wrongly): known by now at the latest.
        self.handle_bytes(now, node, u64::MAX);
    }

    /// `node` could not be loaded: it blocks nothing any more, and what it would still have named stays unknown.
    ///
    /// # Panics
    ///
    /// If `node` was not asked for, or was done before.
    pub fn handle_failed(&mut self, now: Instant, node: usize) {
        self.ended(node);
        if self.early[node] == Early::Asked {
            self.early[node] = Early::Not; // asked for again when the page wants it
            return;
        }
        assert_eq!(
            self.stages[node],
            Stage::Known,
            "node {node} failed, but was not awaited"
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
                Due::Request(node) => self.want(now, node),
                Due::Evaluated(node) => self.evaluated(now, node),
            }
        }
        self.progress(now);
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) at the latest.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.first_key_value().map(|(key, _)| key.0)
    }

    /// The next request, in the order in which the page wants them; `None` when there is none yet.
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

    /// Whether nothing is left to ask for or to evaluate, also of what comes after load.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.load.is_some() && self.stages.iter().all(|&stage| stage == Stage::Settled)
    }

    /// Nodes that are not settled, for a report of a load that cannot end.
    #[must_use]
    pub fn unsettled(&self) -> Vec<usize> {
        (0..self.nodes.len())
            .filter(|&node| self.stages[node] != Stage::Settled)
            .collect()
    }

    fn at(&mut self, when: Instant, due: Due) {
        self.sequence += 1;
        self.due.insert((when, self.sequence), due);
    }

    /// Something named `node`.
    fn reveal(&mut self, now: Instant, node: usize) {
        assert_eq!(
            self.stages[node],
            Stage::Unknown,
            "node {node} is named twice"
        );
        self.stages[node] = Stage::Known;
        match self.nodes[node].delay {
            delay if delay.is_zero() => self.want(now, node),
            delay => self.at(now + delay, Due::Request(node)),
        }
    }

    fn want(&mut self, now: Instant, node: usize) {
        match std::mem::replace(&mut self.early[node], Early::Not) {
            Early::Not | Early::Hinted => self.ask(now, node),
            Early::Asked => self.handle_bytes(now, node, self.arrived[node]),
            Early::Here => self.handle_done(now, node),
        }
    }

    fn ask(&mut self, now: Instant, node: usize) {
        let facts = &self.nodes[node];
        let request = Request {
            node,
            priority: priority_of(facts.kind),
            wanted: now,
        };
        let goes_on = parent_of(facts).is_some_and(|parent| self.nodes[parent].is_redirect);
        // A navigation is nothing that a page could hold back.
        match (&mut self.throttle, self.document[node]) {
            (Some(throttle), Some(document)) if facts.kind != Kind::Document => {
                self.held.insert(node, request);
                throttle.want(node, document, goes_on);
                self.release();
            }
            _ => self.requests.push_back(request),
        }
    }

    /// The request for `node` is over, whether or not the page knows what to do with it yet.
    fn ended(&mut self, node: usize) {
        if let Some(throttle) = &mut self.throttle {
            throttle.done(node);
            self.release();
        }
    }

    /// Asks for what is held back no more.
    fn release(&mut self) {
        while let Some(node) = self.throttle.as_mut().and_then(Throttle::poll) {
            let held = self.held.remove(&node);
            self.requests.extend(held);
        }
    }

    /// Tells the scheduler of documents whose parser has met the body.
    fn look_for_bodies(&mut self) {
        let Some(throttle) = &self.throttle else {
            return;
        };
        let mut tight = throttle.tight();
        tight.retain(|&document| self.has_met_body(throttle, document));
        for document in tight {
            if let Some(throttle) = &mut self.throttle {
                throttle.meet_body(document);
            }
        }
        self.release();
    }

    fn has_met_body(&self, throttle: &Throttle, document: usize) -> bool {
        let plan = throttle.plan();
        let at = plan.body_at[&document];
        let stops = |script: usize| {
            self.nodes[script]
                .blocks_parser_at
                .is_some_and(|stop| stop <= at)
        };
        // The parser also waits for a script that one in the head writes: one as urgent as if it stood there itself.
        let is_written = |node: usize| {
            let facts = &self.nodes[node];
            let is_open = (Stage::Known..Stage::Settled).contains(&self.stages[node]);
            is_open
                && facts.kind == Kind::Script
                && plan.urgency[node] == Urgency::High
                && matches!(facts.trigger, Trigger::Done { parent } if stops(parent))
        };
        let of_document = |&node: &usize| self.document[node] == Some(document);
        self.arrived[document] >= at
            && !self.barriers[document].front().copied().is_some_and(stops)
            && !(0..self.nodes.len()).filter(of_document).any(is_written)
    }

    /// Gives the main thread whatever may run now, the first in page order first; then looks at the two events.
    fn progress(&mut self, now: Instant) {
        while let Some(node) = self
            .waiting
            .iter()
            .copied()
            .find(|&node| self.is_its_turn(node))
        {
            self.waiting.remove(&node);
            self.evaluate(now, node);
        }
        self.look_for_bodies();
        if self.dom_content_loaded.is_none() && self.before_dom_content_loaded == 0 {
            self.dom_content_loaded = Some(now);
        }
        if self.load.is_none() && self.dom_content_loaded.is_some() && self.before_load == 0 {
            self.load = Some(now);
        }
    }

    fn is_its_turn(&self, node: usize) -> bool {
        let facts = &self.nodes[node];
        if facts.is_redirect {
            return true;
        }
        if facts.kind == Kind::Document {
            return self.barriers[node].is_empty();
        }
        if let Some((document, at)) = self.barrier(node) {
            let here = at <= self.arrived[document];
            return here
                && self.barriers[document].front() == Some(&node)
                && !self.waits_for(&self.sheets, node);
        }
        if is_deferred(facts) {
            let parsed =
                self.document[node].is_none_or(|document| self.stages[document] == Stage::Settled);
            return parsed
                && !self.waits_for(&self.deferred, node)
                && !self.waits_for(&self.sheets, node);
        }
        true
    }

    /// The document whose parser stops for `node`, and where.
    fn barrier(&self, node: usize) -> Option<(usize, u64)> {
        let at = self.nodes[node].blocks_parser_at?;
        Some((self.document[node].filter(|_| self.in_text[node])?, at))
    }

    /// Whether one of `others` that stands before `script` in the same document is known and not in effect yet. What
    /// a sheet imports stands where that sheet does, and the target of a redirect where the redirect was named.
    fn waits_for(&self, others: &ByDocument, script: usize) -> bool {
        let place = |node: usize| (self.anchor[node], node);
        let others = others.get(&self.document[script]);
        others.into_iter().flatten().any(|&other| {
            let is_open = (Stage::Known..Stage::Settled).contains(&self.stages[other]);
            is_open && place(other) < place(script)
        })
    }

    fn evaluate(&mut self, now: Instant, node: usize) {
        self.stages[node] = Stage::Evaluating;
        let Node {
            compute,
            is_redirect,
            ..
        } = self.nodes[node];
        if is_redirect || compute.is_zero() && self.main_thread_free <= now {
            return self.evaluated(now, node);
        }
        self.main_thread_free = self.main_thread_free.max(now) + compute;
        self.at(self.main_thread_free, Due::Evaluated(node));
    }

    fn evaluated(&mut self, now: Instant, node: usize) {
        self.settle(node);
        for child in std::mem::take(&mut self.by_done[node]) {
            self.reveal(now, child);
        }
    }

    /// `node` holds up nothing any more.
    fn settle(&mut self, node: usize) {
        self.stages[node] = Stage::Settled;
        let facts = &self.nodes[node];
        self.before_dom_content_loaded -= usize::from(facts.before_dom_content_loaded);
        self.before_load -= usize::from(facts.before_load);
        if let Some((document, _)) = self.barrier(node) {
            self.barriers[document].retain(|&script| script != node);
        }
    }

    /// Settles `node` and everything that only it would have named, however long the chain.
    fn abandon(&mut self, node: usize) {
        let mut lost = vec![node];
        while let Some(node) = lost.pop() {
            self.settle(node);
            self.arrived[node] = u64::MAX; // its parser is as far as it will ever come
            lost.extend(std::mem::take(&mut self.by_bytes[node]));
            lost.append(&mut self.by_done[node]);
        }
    }
}

/// A script that runs when the parser is through: DOMContentLoaded waits for it, the parser does not.
fn is_deferred(node: &Node) -> bool {
    node.kind == Kind::Script && node.before_dom_content_loaded && node.blocks_parser_at.is_none()
}

fn parent_of(node: &Node) -> Option<usize> {
    match node.trigger {
        Trigger::Start => None,
        Trigger::Bytes { parent, .. } | Trigger::Done { parent } => Some(parent),
    }
}

fn reveal_at(node: &Node) -> u64 {
    match node.trigger {
        Trigger::Bytes { at_byte, .. } => at_byte,
        Trigger::Start | Trigger::Done { .. } => 0,
    }
}

/// The nodes that a chain of triggers leads to from the start, parents before their children.
fn reached(nodes: &[Node]) -> Vec<usize> {
    let mut children = vec![Vec::new(); nodes.len()];
    let mut frontier = Vec::new();
    for (child, node) in nodes.iter().enumerate() {
        match parent_of(node) {
            None => frontier.push(child),
            Some(parent) if parent < nodes.len() => children[parent].push(child),
            Some(_) => {}
        }
    }
    let mut reached = Vec::with_capacity(nodes.len());
    while let Some(node) = frontier.pop() {
        reached.push(node);
        frontier.append(&mut children[node]);
    }
    reached
}
