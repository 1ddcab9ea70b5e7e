//! Modules and what they import statically. A module runs when everything that it imports, directly or by others, has arrived, and
//! after its imports (ECMA-262, `InnerModuleEvaluation`).

use spdy_page::graph::{Node, Trigger, WaitsFor};
use spdy_page::replica::Kind;

use super::outline::parent_of;

/// The modules of a page and their order. A load does not change it. Empty if nothing is imported.
#[derive(Debug, Default)]
pub(super) struct ModuleOrder {
    /// By node: what it imports, and what imports it; without imports that would close a cycle.
    imports: Vec<Vec<usize>>,
    importers: Vec<Vec<usize>>,
    /// By node: the first one in page order that leads to it by imports; itself if none does.
    leader: Vec<usize>,
    /// By node: its position in the order of evaluation.
    position: Vec<usize>,
    /// By node: true if something else than the text of an importer requests it.
    is_entry: Vec<bool>,
}

impl ModuleOrder {
    /// `in_page_order` has the reached nodes of the page. Only imports within one of the `documents` count, and no import that might be
    /// requested only when its importer has run.
    pub(super) fn of(nodes: &[Node], in_page_order: &[usize], documents: &[Option<usize>]) -> Self {
        if nodes.iter().all(|node| node.imports.is_empty()) {
            return Self::default();
        }
        let mut is_reached = vec![false; nodes.len()];
        for &node in in_page_order {
            is_reached[node] = true;
        }
        // The parser waits for a classic script, so that it waits for no module.
        let is_module = |node: usize| {
            let facts = &nodes[node];
            let is_classic =
                facts.blocks_parser_at.is_some() || facts.is_written || facts.is_redirect;
            facts.kind == Kind::Script && !is_classic && is_reached[node]
        };
        let mut order = Self {
            imports: vec![Vec::new(); nodes.len()],
            importers: vec![Vec::new(); nodes.len()],
            leader: (0..nodes.len()).collect(),
            position: vec![usize::MAX; nodes.len()],
            is_entry: Vec::new(),
        };
        let mut reached = in_page_order.to_vec();
        reached.sort_unstable();
        let requesters = requesters(nodes, &reached);
        let mut is_named = vec![false; nodes.len()];
        let mut done = 0;
        for &leader in in_page_order {
            let mut stack = Vec::new();
            if !std::mem::replace(&mut is_named[leader], true) {
                stack.push((leader, 0));
            }
            while let Some((node, next)) = stack.pop() {
                let listed = nodes[node].imports.get(next).copied();
                let Some(import) = listed.filter(|_| is_module(node)) else {
                    order.position[node] = done;
                    done += 1;
                    continue;
                };
                stack.push((node, next + 1));
                let source = |node: usize| requesters[node].source;
                let arrives = || [source(node), None].contains(&source(import));
                let is_in_document = || documents[import] == documents[node];
                if import >= nodes.len() || !is_module(import) || !is_in_document() || !arrives() {
                    continue;
                }
                let is_new = !std::mem::replace(&mut is_named[import], true);
                if is_new {
                    order.leader[import] = leader;
                    stack.push((import, 0));
                }
                // One that is named and has no position is below on the stack: a cycle.
                if is_new || order.position[import] != usize::MAX {
                    order.imports[node].push(import);
                    order.importers[import].push(node);
                }
            }
        }
        let is_entry = |(requester, importers): (&Requester, &Vec<usize>)| {
            requester.by.is_none_or(|by| !importers.contains(&by))
        };
        order.is_entry = requesters
            .iter()
            .zip(&order.importers)
            .map(is_entry)
            .collect();
        order
    }

    /// The node whose turn in its document decides when `node` runs: the first that leads to it by imports, or itself.
    pub(super) fn leader(&self, node: usize) -> usize {
        self.leader.get(node).copied().unwrap_or(node)
    }

    /// The position of `node` in the order of evaluation of a page with modules.
    pub(super) fn position(&self, node: usize) -> Option<usize> {
        self.position.get(node).copied()
    }
}

/// What requests a node.
#[derive(Clone, Copy, Debug)]
struct Requester {
    /// The node that names it, perhaps by redirects.
    by: Option<usize>,
    /// The last node above it, or itself, that is requested by what runs, or after an event. `None` if it is requested when texts arrive
    /// and parsers pass them, whatever else runs.
    source: Option<usize>,
}

/// The requester of each node. `reached` is in ascending order, and so has parents before their children.
fn requesters(nodes: &[Node], reached: &[usize]) -> Vec<Requester> {
    // Nothing is known of others: what they request might wait for anything.
    let unknown = |node| Requester {
        by: None,
        source: Some(node),
    };
    let mut requesters: Vec<Requester> = (0..nodes.len()).map(unknown).collect();
    for &index in reached {
        let node = &nodes[index];
        let waits_for_event = matches!(
            node.waits_for,
            Some(WaitsFor::DomContentLoaded | WaitsFor::Load)
        );
        let parent = parent_of(node);
        let redirect = parent.filter(|&parent| nodes[parent].is_redirect);
        let runs = matches!(node.trigger, Trigger::Done { .. }) && redirect.is_none();
        requesters[index] = Requester {
            by: redirect.map_or(parent, |redirect| requesters[redirect].by),
            source: match waits_for_event || runs {
                true => Some(index),
                false => parent.and_then(|parent| requesters[parent].source),
            },
        };
    }
    requesters
}

/// What the modules of a load still wait for, by node.
#[derive(Debug, Default)]
pub(super) struct OpenModules {
    states: Vec<ModuleState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ModuleState {
    is_entry: bool,
    has_arrived: bool,
    /// An entry that leads to it has all that it needs.
    is_released: bool,
    /// It has run or has failed.
    is_settled: bool,
    /// Imports for which something has not arrived.
    imports_to_arrive: usize,
    /// Imports that have not run.
    imports_to_run: usize,
}

impl ModuleState {
    fn can_run(self) -> bool {
        self.has_arrived && self.is_released && self.imports_to_run == 0 && !self.is_settled
    }

    fn is_complete(self) -> bool {
        self.has_arrived && self.imports_to_arrive == 0
    }
}

impl OpenModules {
    pub(super) fn of(order: &ModuleOrder) -> Self {
        let state = |(node, imports): (usize, &Vec<usize>)| ModuleState {
            is_entry: order.is_entry[node],
            imports_to_arrive: imports.len(),
            imports_to_run: imports.len(),
            ..ModuleState::default()
        };
        let states = order.imports.iter().enumerate().map(state).collect();
        Self { states }
    }

    /// Handles the arrival of `node`. Returns the nodes that may run now: only `node` if it
    /// imports nothing and nothing imports it.
    pub(super) fn handle_arrival(&mut self, order: &ModuleOrder, node: usize) -> Vec<usize> {
        if self.states.is_empty() {
            return vec![node];
        }
        let mut ready = Vec::new();
        self.states[node].has_arrived = true;
        if self.states[node].can_run() {
            ready.push(node);
        }
        let is_complete = self.states[node].is_complete();
        let mut complete: Vec<usize> = is_complete.then_some(node).into_iter().collect();
        while let Some(node) = complete.pop() {
            if self.states[node].is_entry {
                self.release(order, node, &mut ready);
            }
            for &importer in &order.importers[node] {
                let state = &mut self.states[importer];
                state.imports_to_arrive -= 1;
                if state.is_complete() {
                    complete.push(importer);
                }
            }
        }
        ready
    }

    /// Notes that `node` has run or has failed. Returns the modules that may run now.
    pub(super) fn settle(&mut self, order: &ModuleOrder, node: usize) -> Vec<usize> {
        if self.states.is_empty() {
            return Vec::new();
        }
        let mut ready = Vec::new();
        self.states[node].is_settled = true;
        if !self.states[node].has_arrived {
            ready = self.handle_arrival(order, node);
            self.release(order, node, &mut ready);
        }
        for &importer in &order.importers[node] {
            let state = &mut self.states[importer];
            state.imports_to_run -= 1;
            if state.can_run() {
                ready.push(importer);
            }
        }
        ready
    }

    /// Lets `node` and what it imports run, and adds those that can to `ready`.
    fn release(&mut self, order: &ModuleOrder, node: usize, ready: &mut Vec<usize>) {
        let mut stack = vec![node];
        while let Some(node) = stack.pop() {
            let state = &mut self.states[node];
            if std::mem::replace(&mut state.is_released, true) {
                continue;
            }
            if state.can_run() {
                ready.push(node);
            }
            stack.extend(&order.imports[node]);
        }
    }
}
