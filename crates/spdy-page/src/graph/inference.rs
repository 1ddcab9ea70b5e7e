//! Places resources that no text names: by the recorded initiator, else by the recorded times.
//!
//! For each exchange in the order of its request, the first of these that applies:
//!
//! 1. the recorded initiator, or the redirect that leads to it (`builder.rs`). What a module imports statically is known with the text of the
//!    module (`module_imports.rs`);
//! 2. its Referer, if that is a style sheet or a script;
//! 3. a real script, or the script in a real document, that mentions its path;
//! 4. its time: while the document of its Referer (or the page) arrived, the share of that document that had arrived;
//!    after that, the last script (for images and fonts also the last style sheet) that had ended;
//!    an image requested long after any such end waited for a connection, and is discovered with the document;
//! 5. without times of a resolution below a second: evenly over the document; if that is real and does not
//!    name it, the last script of the document.

use std::collections::HashMap;
use std::time::Duration;

use crate::graph::MAX_DELAY;
use crate::graph::builder::{Cause, GraphBuilder, Placement};
use crate::graph::html::{Role, ScriptMode};
use crate::graph::module_imports::ModuleImports;
use crate::graph::recorded_delay::{self, NEAR};
use crate::head::{self, Head};
use crate::replica::{Initiator, Kind, Replica, without_fragment};

/// A request that starts this soon after the end of a document was in its last bytes.
const SLACK: Duration = Duration::from_millis(10);

/// Minimum length of a path for a search in scripts.
const NEEDLE_LEN: usize = 6;

/// Cost of starting a search, in bytes.
const SEARCH_START: usize = 64;

/// Limit on the bytes that all searches together may read; after that nothing is found.
const SEARCH_BYTES: usize = 256 << 20;

/// Places every exchange that is not placed yet.
pub(crate) fn place_rest(plan: &mut GraphBuilder<'_>, replica: &Replica) {
    let exchanges = &replica.exchanges;
    let mut guess = Inference {
        replica,
        has_times: !clock_is_coarse(replica),
        by_url: HashMap::with_capacity(exchanges.len()),
        search_bytes_left: SEARCH_BYTES,
        imports: ModuleImports::new(),
    };
    for (index, exchange) in exchanges.iter().enumerate() {
        guess.by_url.entry(exchange.key()).or_insert(index);
    }
    let mut order: Vec<usize> = (0..exchanges.len()).collect();
    if guess.has_times {
        order.sort_by_key(|&index| exchanges[index].started.unwrap_or(Duration::MAX));
    }
    let mut sheets = Vec::new();
    let mut on_stack = vec![false; exchanges.len()];
    for first in order {
        if plan.placed[first].is_some() {
            continue;
        }
        // Its ancestors come first; a cycle is cut where it closes.
        let mut stack = vec![first];
        on_stack[first] = true;
        while let Some(parent) = stack.last().and_then(|&top| guess.recorded_parent(top))
            && plan.placed[parent].is_none()
            && !on_stack[parent]
        {
            on_stack[parent] = true;
            stack.push(parent);
        }
        while let Some(index) = stack.pop() {
            on_stack[index] = false;
            if plan.placed[index].is_none() {
                let placed = guess.place_for(plan, index);
                if matches!(placed.role, Role::Stylesheet { .. }) {
                    sheets.push(index);
                }
                plan.place(index, placed);
                plan.scan_placed();
            }
        }
    }
    if guess.has_times {
        recorded_delay::set_delays(plan, replica);
    }
    // DOMContentLoaded waits for sheets on behalf of scripts only.
    let is_waited_for = |placed: &Option<Placement>| {
        placed.is_some_and(|placed| {
            matches!(placed.role, Role::Script(_)) && placed.before_dom_content_loaded
        })
    };
    if !plan.placed.iter().any(is_waited_for) {
        for index in sheets {
            if let Some(placed) = &mut plan.placed[index] {
                placed.before_dom_content_loaded = false;
            }
        }
    }
}

/// True if recorded starts are missing or whole seconds, which are too coarse for a page load.
fn clock_is_coarse(replica: &Replica) -> bool {
    let mut starts = replica
        .exchanges
        .iter()
        .filter_map(|exchange| exchange.started)
        .filter(|start| !start.is_zero());
    starts.all(|start| start.subsec_nanos() == 0)
}

struct Inference<'a> {
    replica: &'a Replica,
    has_times: bool,
    /// The first exchange of a URL. For lookups only, never for iteration.
    by_url: HashMap<&'a str, usize>,
    search_bytes_left: usize,
    imports: ModuleImports<'a>,
}

impl<'a> Inference<'a> {
    /// The recorded parent of `index`, if there is one.
    fn recorded_parent(&self, index: usize) -> Option<usize> {
        let exchange = &self.replica.exchanges[index];
        let wish = match exchange.initiator {
            Initiator::Resource { index, .. } | Initiator::Redirect { index } => index,
            Initiator::Navigation | Initiator::Unknown => {
                let referer = Head::parse(&exchange.request_head)?.value("referer")?;
                *self.by_url.get(without_fragment(referer))?
            }
        };
        (wish != index && wish < self.replica.exchanges.len()).then_some(wish)
    }

    fn place_for(&mut self, plan: &GraphBuilder<'a>, index: usize) -> Placement {
        let exchange = &self.replica.exchanges[index];
        let parent = self
            .recorded_parent(index)
            .filter(|&parent| plan.placed[parent].is_some());
        let parent = parent.unwrap_or(self.replica.start);
        let parent_len = self.replica.exchanges[parent].body.len() as u64;
        let (cause, delay) = match (exchange.initiator, self.replica.exchanges[parent].kind) {
            (Initiator::Redirect { index }, _) if index == parent => {
                (Cause::Done { parent }, Duration::ZERO)
            }
            (
                Initiator::Resource {
                    index,
                    at_byte: Some(at_byte),
                },
                Kind::Document,
            ) if index == parent => (
                Cause::Bytes {
                    parent,
                    at_byte: at_byte.min(parent_len),
                },
                Duration::ZERO,
            ),
            (_, Kind::Document) => self.under_document(plan, index, parent),
            _ if self.imports.has(plan, parent, exchange) => (
                Cause::Bytes {
                    parent,
                    at_byte: parent_len,
                },
                Duration::ZERO,
            ),
            _ => (Cause::Done { parent }, self.gap(index, parent)),
        };
        self.placement(plan, index, cause, delay)
    }

    /// The time between the end of `parent` and the request of `index`, within limits; minus the recorded time to evaluate `parent`,
    /// which the graph has there.
    fn gap(&self, index: usize, parent: usize) -> Duration {
        let [child, parent] = [index, parent].map(|index| &self.replica.exchanges[index]);
        match (child.started, parent.finished()) {
            (Some(started), Some(end)) if self.has_times => {
                let evaluated = parent.observed.compute.unwrap_or_default();
                started
                    .saturating_sub(end)
                    .saturating_sub(evaluated)
                    .min(MAX_DELAY)
            }
            _ => Duration::ZERO,
        }
    }

    fn under_document(
        &mut self,
        plan: &GraphBuilder<'a>,
        index: usize,
        document: usize,
    ) -> (Cause, Duration) {
        let exchange = &self.replica.exchanges[index];
        let whole_of = |parent: usize| Cause::Bytes {
            parent,
            at_byte: self.replica.exchanges[parent].body.len() as u64,
        };
        let whole = whole_of(document);
        match self.find_mention(plan, index) {
            Some(Cause::Done { parent }) => {
                return match self.imports.has(plan, parent, exchange) {
                    true => (whole_of(parent), Duration::ZERO),
                    false => (Cause::Done { parent }, self.gap(index, parent)),
                };
            }
            Some(cause) => return (cause, Duration::ZERO),
            // By a relative URL, or by one of an import map.
            None if self.imports.has(plan, document, exchange) => return (whole, Duration::ZERO),
            None => {}
        }
        let page = &self.replica.exchanges[document];
        let length = page.body.len() as u64;
        let (Some(started), Some(page_end), true) =
            (exchange.started, page.finished(), self.has_times)
        else {
            return match plan.last_script {
                Some(parent) if page.body_is_real => (Cause::Done { parent }, Duration::ZERO),
                None if page.body_is_real => (whole, Duration::ZERO),
                _ => (Cause::Somewhere { parent: document }, Duration::ZERO),
            };
        };
        if started <= page_end.saturating_add(SLACK) && !page.body_is_real {
            let first_byte = page.first_byte().unwrap_or(page_end);
            let share = started.saturating_sub(first_byte).as_secs_f64()
                / page_end.saturating_sub(first_byte).as_secs_f64().max(1e-9);
            let at_byte = (share.clamp(0.0, 1.0) * length as f64) as u64;
            return (
                Cause::Bytes {
                    parent: document,
                    at_byte: at_byte.clamp(length.min(1), length),
                },
                Duration::ZERO,
            );
        }
        let shown = matches!(exchange.kind, Kind::Image | Kind::Font);
        let mut ends = plan.ends.range(..=(started, usize::MAX)).rev();
        let asker =
            ends.find(|&&(_, asker)| shown || self.replica.exchanges[asker].kind == Kind::Script);
        match asker {
            Some(&(end, parent)) if started - end <= NEAR || !shown => {
                (Cause::Done { parent }, (started - end).min(MAX_DELAY))
            }
            _ if shown => (whole, Duration::ZERO),
            _ => (whole, started.saturating_sub(page_end).min(MAX_DELAY)),
        }
    }

    /// The first text that contains the path of `index`.
    fn find_mention(&mut self, plan: &GraphBuilder<'_>, index: usize) -> Option<Cause> {
        let needle = head::target(&self.replica.exchanges[index].url);
        if needle.len() < NEEDLE_LEN {
            return None;
        }
        for text in &plan.texts {
            self.search_bytes_left = self
                .search_bytes_left
                .checked_sub(text.text.len() + SEARCH_START)?;
            if let Some(at) = text.text.find(&needle) {
                let parent = text.exchange;
                return Some(match self.replica.exchanges[parent].kind {
                    Kind::Script => Cause::Done { parent },
                    _ => Cause::Bytes {
                        parent,
                        at_byte: text.decoded.transferred_at(at + needle.len()),
                    },
                });
            }
        }
        None
    }

    fn placement(
        &mut self,
        plan: &GraphBuilder<'a>,
        index: usize,
        cause: Cause,
        delay: Duration,
    ) -> Placement {
        let exchange = &self.replica.exchanges[index];
        let (parent, by_parser) = match cause {
            Cause::Bytes { parent, .. } | Cause::Somewhere { parent } => (parent, true),
            Cause::Done { parent } => (parent, false),
            Cause::Start => unreachable!("the start of the load has its place"),
        };
        let own = plan.placed[parent]
            .unwrap_or_else(|| panic!("parent {parent} of exchange {index} has no place"));
        let in_time = match (exchange.finished(), self.replica.dom_content_loaded) {
            (Some(end), Some(limit)) => end <= limit,
            _ => true,
        };
        let is_import = by_parser && self.imports.has(plan, parent, exchange);
        // A script that the parser found and that ended in time counts as synchronous, as most were.
        let role = match exchange.kind {
            Kind::Script if is_import => Role::Script(ScriptMode::Defer),
            Kind::Script if by_parser && in_time => Role::Script(ScriptMode::Sync),
            Kind::Script => Role::Script(ScriptMode::Async),
            Kind::Stylesheet => Role::Stylesheet {
                blocking: by_parser,
            },
            Kind::Document => Role::Frame,
            Kind::Image if exchange.url.path().ends_with("/favicon.ico") => Role::Icon,
            Kind::Image | Kind::Font if self.replica.exchanges[parent].kind == Kind::Stylesheet => {
                Role::Styled
            }
            _ => Role::Embedded,
        };
        let blocks = matches!(
            role,
            Role::Script(ScriptMode::Sync) | Role::Stylesheet { blocking: true }
        );
        let is_of_page = parent == self.replica.start;
        let before_dom_content_loaded = match is_import {
            // Inline modules of the page are before it, and other modules pass on what they have.
            true => is_of_page || own.before_dom_content_loaded,
            false => blocks && is_of_page,
        };
        Placement {
            cause,
            delay,
            role,
            in_page: own.in_page && role != Role::Icon,
            before_dom_content_loaded: before_dom_content_loaded && in_time,
        }
    }
}
