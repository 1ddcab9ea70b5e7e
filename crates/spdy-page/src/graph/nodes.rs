//! The nodes of a graph, from the places of its exchanges.

use std::collections::VecDeque;
use std::time::Duration;

use crate::graph::builder::{Cause, GraphBuilder, Placement};
use crate::graph::html::{Role, ScriptMode};
use crate::graph::{
    Node, PageGraph, SCRIPT_COST_PER_KB, STYLESHEET_COST_PER_KB, Trigger, WaitsFor,
};
use crate::replica::{Exchange, Kind, Replica};

/// A longer delay of what an inline script requests is that of a timer, for which the parser does not wait.
const MAX_PARSER_DELAY: Duration = Duration::from_millis(100);

impl GraphBuilder<'_> {
    /// What `index` waits for after its trigger.
    fn waits_for(
        &self,
        index: usize,
        placed: &Placement,
        causes: &[Cause],
        dom_content_loaded: Option<Duration>,
    ) -> Option<WaitsFor> {
        if placed.by_handler_of.is_some() {
            return placed.by_handler_of;
        }
        match causes[index] {
            Cause::Inline {
                at_byte,
                is_import: true,
                ..
            } => Some(WaitsFor::Parser { at_byte }),
            Cause::Inline {
                parent, at_byte, ..
            } => {
                let started = self.exchanges[index].started;
                let was_in_time =
                    matches!((started, dom_content_loaded), (Some(at), Some(end)) if at <= end);
                let is_by_parser = parent == self.start && placed.delay <= MAX_PARSER_DELAY;
                Some(match is_by_parser && was_in_time {
                    true => WaitsFor::InlineScript { at_byte },
                    false => WaitsFor::Layout { at_byte },
                })
            }
            _ => {
                let at_byte = self.layout_at(index, causes)?;
                Some(WaitsFor::Layout { at_byte })
            }
        }
    }

    /// Where the document of `index` must be laid out before it is requested; `None` if layout does not request it.
    fn layout_at(&self, index: usize, causes: &[Cause]) -> Option<u64> {
        let document = self.laid_out_in(index)?;
        if causes[index]
            .parent()
            .is_some_and(|parent| self.is_redirect(parent))
        {
            return None; // the redirect has waited
        }
        let named_at = match causes[index] {
            Cause::Bytes { parent, at_byte } if parent == document => at_byte,
            _ => 0,
        };
        Some(named_at.max(self.body_at(document).unwrap_or(0)))
    }

    /// The tree as nodes, parents first.
    pub(crate) fn into_graph(self, replica: &Replica) -> PageGraph {
        let exchanges = &self.exchanges;
        let places: Vec<Placement> = self
            .placed
            .iter()
            .enumerate()
            .map(|(index, placed)| {
                placed.unwrap_or_else(|| panic!("exchange {index} has no place"))
            })
            .collect();
        let causes = spread(&places, &self.order, exchanges);

        let mut children = vec![Vec::new(); exchanges.len()];
        let mut queue = VecDeque::new();
        for &index in &self.order {
            match causes[index] {
                Cause::Start => queue.push_back(index),
                Cause::Bytes { parent, .. }
                | Cause::Done { parent }
                | Cause::Inline { parent, .. }
                | Cause::Somewhere { parent } => children[parent].push(index),
            }
        }
        let mut node_of = vec![usize::MAX; exchanges.len()];
        let mut nodes = Vec::with_capacity(exchanges.len());
        while let Some(index) = queue.pop_front() {
            node_of[index] = nodes.len();
            let mut own = std::mem::take(&mut children[index]);
            // The sort is stable: resources discovered at the same time stay in the order of their placement.
            own.sort_by_key(|&child| match causes[child] {
                Cause::Bytes { at_byte, .. } | Cause::Inline { at_byte, .. } => {
                    (places[child].used_at.unwrap_or(at_byte), Duration::ZERO)
                }
                _ => (u64::MAX, places[child].delay),
            });
            queue.extend(own);
            nodes.push(self.node(index, &places[index], &causes, &node_of, replica));
        }
        assert_eq!(
            nodes.len(),
            exchanges.len(),
            "the start is an ancestor of every exchange"
        );
        for node in &mut nodes {
            let imports = self.imports[node.exchange].iter();
            node.imports = imports.map(|&import| node_of[import]).collect();
        }
        for number in 0..nodes.len() {
            if let Some(writer) = self.writer_of(&nodes, number, replica) {
                let before_dom_content_loaded = nodes[writer].before_dom_content_loaded;
                let node = &mut nodes[number];
                node.is_written = true;
                node.before_dom_content_loaded |= before_dom_content_loaded;
                node.before_load |= before_dom_content_loaded;
            }
        }
        PageGraph { nodes }
    }

    /// The script that wrote the script `number` into its document: its parent, if the parser stops for that. Chromium gives a written
    /// script the priority of one in the head, and any other script of a script a low one.
    fn writer_of(&self, nodes: &[Node], number: usize, replica: &Replica) -> Option<usize> {
        let node = &nodes[number];
        let Trigger::Done { parent } = node.trigger else {
            return None;
        };
        let exchange = &self.exchanges[node.exchange];
        let is_script = node.kind == Kind::Script && !node.is_redirect && node.waits_for.is_none();
        let is_urgent = exchange.observed.priority.as_deref() == Some("High");
        let was_in_time = exchange.finished()? <= replica.dom_content_loaded?;
        let is_stop = nodes[parent].blocks_parser_at.is_some() || nodes[parent].is_written;
        (is_script && is_urgent && was_in_time && is_stop && nodes[parent].kind == Kind::Script)
            .then_some(parent)
    }

    /// The offset after the tag of `index`, also if that names the first of the redirects to it.
    fn tag_of(&self, index: usize, placed: &Placement, causes: &[Cause]) -> Option<u64> {
        let mut named = index;
        while let Cause::Done { parent } = causes[named]
            && self.is_redirect(parent)
        {
            named = parent;
        }
        match causes[named] {
            Cause::Bytes { at_byte, .. } => Some(placed.used_at.unwrap_or(at_byte)),
            _ => None,
        }
    }

    fn node(
        &self,
        index: usize,
        placed: &Placement,
        causes: &[Cause],
        node_of: &[usize],
        replica: &Replica,
    ) -> Node {
        let exchange = &self.exchanges[index];
        let is_redirect = self.is_redirect(index);
        let trigger = match causes[index] {
            Cause::Start => Trigger::Start,
            Cause::Bytes { parent, at_byte }
            | Cause::Inline {
                parent, at_byte, ..
            } => Trigger::Bytes {
                parent: node_of[parent],
                at_byte,
            },
            Cause::Done { parent } | Cause::Somewhere { parent } => Trigger::Done {
                parent: node_of[parent],
            },
        };
        // The load event waits for a lazy image whose bytes had begun to arrive: one in the window. An end before it is the sign.
        // It waits for the first frame of a video, and not for its last byte. Requests by handlers of the load event begin just
        // before its recorded time, and end after it. Recordings with priorities have times that are exact enough to see that.
        let is_exact = exchange.observed.priority.is_some();
        let compared = match exchange.kind == Kind::Media || is_exact {
            true => exchange.finished(),
            false => exchange.started,
        };
        let was_in_time = match (compared, replica.load) {
            (Some(time), Some(load)) => time <= load,
            _ => placed.role != Role::Lazy,
        };
        let was_after_load = match (exchange.started, replica.load) {
            (Some(started), Some(load)) => started >= load,
            _ => true,
        };
        let blocks_parser_at = match placed.role {
            Role::Script(ScriptMode::Sync) if !is_redirect => self.tag_of(index, placed, causes),
            _ => None,
        };
        // A sheet that is a script by its kind would wait for scripts that wait for it.
        let is_sheet = is_redirect || exchange.kind != Kind::Script;
        let cost_per_kb = match exchange.kind {
            _ if is_redirect => None,
            Kind::Script => Some(SCRIPT_COST_PER_KB),
            Kind::Stylesheet => Some(STYLESHEET_COST_PER_KB),
            Kind::Document => Some(Duration::ZERO),
            _ => None,
        };
        let transferred = exchange.body.len() as u64;
        let compute = cost_per_kb.map(|cost| {
            let guessed = (cost.as_nanos() as u64).saturating_mul(transferred) / 1000;
            let guessed = Duration::from_nanos(guessed);
            exchange.observed.compute.unwrap_or(guessed)
        });
        Node {
            exchange: index,
            kind: exchange.kind,
            trigger,
            waits_for: match placed.role == Role::Icon && was_after_load {
                true => Some(WaitsFor::Load),
                false => self.waits_for(index, placed, causes, replica.dom_content_loaded),
            },
            delay: placed.delay,
            is_redirect,
            blocks_parser_at,
            is_written: false,
            blocks_scripts: placed.role == Role::Stylesheet { blocking: true } && is_sheet,
            before_dom_content_loaded: placed.before_dom_content_loaded,
            // The load event waits for everything that DOMContentLoaded waits for, but not for data that a script fetches.
            before_load: placed.before_dom_content_loaded
                || placed.in_page && was_in_time && exchange.kind != Kind::Fetch,
            compute: compute.unwrap_or_default(),
            imports: Vec::new(),
        }
    }
}

/// Causes with a byte for each [`Cause::Somewhere`]: evenly over the parent, in the order of placement.
fn spread(places: &[Placement], order: &[usize], exchanges: &[Exchange]) -> Vec<Cause> {
    let mut causes: Vec<Cause> = places.iter().map(|placed| placed.cause).collect();
    let mut total = vec![0u64; exchanges.len()];
    for cause in &causes {
        if let Cause::Somewhere { parent } = cause {
            total[*parent] += 1;
        }
    }
    let mut seen = vec![0u64; exchanges.len()];
    for &index in order {
        if let Cause::Somewhere { parent } = causes[index] {
            seen[parent] += 1;
            let length = exchanges[parent].body.len() as u64;
            let at_byte = u128::from(length) * u128::from(seen[parent]) / u128::from(total[parent]);
            causes[index] = Cause::Bytes {
                parent,
                at_byte: at_byte as u64,
            };
        }
    }
    causes
}
