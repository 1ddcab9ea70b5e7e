//! Places resources that no text names: by the recorded initiator, else by the recorded times.
//!
//! For each exchange in the order of its request, the first of these that applies:
//!
//! 1. the recorded initiator, or the redirect that leads to it (`builder.rs`). What a module imports statically is known with the text of the
//!    module (`module_imports.rs`);
//! 2. its Referer, if that is a style sheet or a script;
//! 3. a real script, or the script in a real document, that mentions its path. An inline script runs when the parser has passed what it waits
//!    for, and an inline module after its imports;
//! 4. its time: while the document of its Referer (or the page) arrived, the share of that document that had arrived;
//!    after that, the last script (for images and fonts also the last style sheet) that had ended;
//!    an image requested long after any such end waited for a connection, and is discovered with the document;
//! 5. without times of a resolution below a second: evenly over the document; if that is real and does not
//!    name it, the last script of the document.
//!
//! In recordings by this project, what a script requests long after it has run, and around the end of a fetch or an event of the page, is
//! requested by their callbacks and handlers. A range of a video that starts when another one ends is requested by the player, which has
//! read or cancelled that one.

use std::collections::HashMap;
use std::time::Duration;

use crate::graph::builder::{Cause, GraphBuilder, Placement};
use crate::graph::html::{Role, ScriptMode};
use crate::graph::module_imports::ModuleImports;
use crate::graph::recorded_delay::{self, NEAR};
use crate::graph::{MAX_DELAY, WaitsFor};
use crate::head::{self, Head};
use crate::replica::{Exchange, Initiator, Kind, Replica, without_fragment};

/// A request that starts this soon after the end of a document was in its last bytes.
const SLACK: Duration = Duration::from_millis(10);

/// A request of a script that starts this soon after the end of a fetch, or around an event of the page, and not so soon after the
/// script, was made by the callback or by the handler.
const CALLBACK: Duration = Duration::from_millis(50);

/// A player requests another range so soon before or after the end of the one before.
const PLAYER: Duration = Duration::from_millis(20);

/// Maximum number of ranges that are compared for one.
const MAX_COMPARED_RANGES: usize = 64;

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
        is_exact: replica.has_evaluation_times(),
        fetches: ends_of(replica, Kind::Fetch),
        ranges: ends_of(replica, Kind::Media),
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
    plan.imports = guess.imports.of_all(plan, &guess.by_url);
    plan.use_preloaded_modules();
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

/// The recorded ends of exchanges of `kind`, in their order.
fn ends_of(replica: &Replica, kind: Kind) -> Vec<(Duration, usize)> {
    let exchanges = replica.exchanges.iter().enumerate();
    let of_kind = exchanges.filter(|(_, exchange)| exchange.kind == kind);
    let ends = of_kind.filter_map(|(index, exchange)| Some((exchange.finished()?, index)));
    let mut ends: Vec<_> = ends.collect();
    ends.sort_unstable();
    ends
}

struct Inference<'a> {
    replica: &'a Replica,
    has_times: bool,
    /// The first exchange of a URL. For lookups only, never for iteration.
    by_url: HashMap<&'a str, usize>,
    /// The recorded times are exact.
    is_exact: bool,
    /// The ends of fetches, in their order.
    fetches: Vec<(Duration, usize)>,
    /// The ends of videos and sounds, and of their ranges.
    ranges: Vec<(Duration, usize)>,
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
        if let Some((cause, delay)) = self.after_range(plan, index) {
            return self.placement(plan, index, cause, delay);
        }
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
            _ => {
                let parent = self.callback(plan, index, parent).unwrap_or(parent);
                (Cause::Done { parent }, Duration::ZERO)
            }
        };
        self.placement(plan, index, cause, delay)
    }

    /// The end of an earlier range of the same video or sound, if the player requested `index` then, and the time from one to the other.
    fn after_range(&self, plan: &GraphBuilder<'a>, index: usize) -> Option<(Cause, Duration)> {
        let exchanges = &self.replica.exchanges;
        let exchange = &exchanges[index];
        let started = exchange
            .started
            .filter(|_| self.is_exact && exchange.kind == Kind::Media)?;
        let until = started.saturating_add(PLAYER);
        let ended = self.ranges.partition_point(|&(end, _)| end <= until);
        let near = self.ranges[..ended].iter().rev();
        let mut near = near.take_while(|(end, _)| started.saturating_sub(*end) <= PLAYER);
        let near = near.by_ref().take(MAX_COMPARED_RANGES);
        let mut ranges = near.filter(|&&(_, range)| {
            range != index
                && exchanges[range].started < Some(started)
                && exchanges[range].key() == exchange.key()
                && plan.placed[range].is_some()
        });
        let &(end, parent) = ranges.next()?;
        let range = &exchanges[parent];
        // The browser stopped reading, but the recording also has the bytes that arrived afterwards.
        let is_cancelled = range.observed.refused.is_some() && has_unread_bytes(range);
        Some(match is_cancelled {
            true => (Cause::Bytes { parent, at_byte: 1 }, Duration::ZERO),
            false => (Cause::Done { parent }, started.saturating_sub(end)),
        })
    }

    /// The event whose handler requests `index`, if a script does and does not do so when it runs.
    fn by_handler_of(
        &self,
        plan: &GraphBuilder<'a>,
        cause: Cause,
        index: usize,
    ) -> Option<WaitsFor> {
        let exchanges = &self.replica.exchanges;
        let text = match cause {
            Cause::Done { parent } if exchanges[parent].kind == Kind::Script => parent,
            Cause::Inline {
                parent,
                is_import: false,
                ..
            } => parent,
            _ => return None,
        };
        let exchange = &exchanges[index];
        let started = exchange.started.filter(|_| self.is_exact)?;
        let is_near = |event: Option<Duration>| {
            let is_late = started > self.evaluated(plan, text)?.saturating_add(CALLBACK);
            Some(is_late && started.abs_diff(event?) <= CALLBACK)
        };
        let (dom_content_loaded, load) = (self.replica.dom_content_loaded, self.replica.load);
        let is_before_load = exchange.finished() <= load;
        match (is_near(dom_content_loaded), is_near(load)) {
            (_, Some(true)) if !is_before_load => Some(WaitsFor::Load),
            (Some(true), _) if !plan.is_deferred(text) => Some(WaitsFor::DomContentLoaded),
            _ => None,
        }
    }

    /// When `text` can have been evaluated if it waited for nothing but the page's document.
    fn evaluated(&self, plan: &GraphBuilder<'a>, text: usize) -> Option<Duration> {
        let exchanges = &self.replica.exchanges;
        let document = match plan.is_deferred(text) {
            true => exchanges[plan.start].finished(),
            false => None,
        };
        let loaded = exchanges[text]
            .finished()?
            .max(document.unwrap_or_default());
        let compute = exchanges[text].observed.compute.unwrap_or_default();
        Some(loaded.saturating_add(compute))
    }

    /// The fetch whose end made a script request `index`, if it was not `text`, which has the script, itself.
    fn callback(&self, plan: &GraphBuilder<'a>, index: usize, text: usize) -> Option<usize> {
        let exchanges = &self.replica.exchanges;
        let (started, evaluated) = (exchanges[index].started?, self.evaluated(plan, text)?);
        let ended = self.fetches.partition_point(|&(end, _)| end <= started);
        let &(end, fetch) = self.fetches[..ended].last()?;
        let is_callback = started - end <= CALLBACK && end > evaluated.saturating_add(CALLBACK);
        let is_placed = plan.placed[fetch].is_some() && !plan.is_redirect(fetch);
        (self.is_exact && is_callback && fetch != index && is_placed).then_some(fetch)
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
                let cause = match self.imports.has(plan, parent, exchange) {
                    true => whole_of(parent),
                    false => Cause::Done { parent },
                };
                return (cause, Duration::ZERO);
            }
            Some(Cause::Inline {
                parent, at_byte, ..
            }) => {
                let cause = self.of_inline_script(plan, index, parent, at_byte);
                return (cause, Duration::ZERO);
            }
            Some(cause) => return (cause, Duration::ZERO),
            // By a relative URL, or by one of an import map.
            None if self.imports.has(plan, document, exchange) => {
                let length = self.replica.exchanges[document].body.len() as u64;
                let cause = self.of_inline_script(plan, index, document, length);
                return (cause, Duration::ZERO);
            }
            None => {}
        }
        if is_icon(exchange) {
            return (whole, Duration::ZERO); // by no script
        }
        if let Some(parent) = self.callback(plan, index, document) {
            return (Cause::Done { parent }, Duration::ZERO);
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
                (Cause::Done { parent }, Duration::ZERO)
            }
            _ if shown => (whole, Duration::ZERO),
            _ => (whole, started.saturating_sub(page_end).min(MAX_DELAY)),
        }
    }

    /// The cause of `index` if an inline script of `document` has its path, up to the byte `at_byte`.
    fn of_inline_script(
        &mut self,
        plan: &GraphBuilder<'a>,
        index: usize,
        document: usize,
        at_byte: u64,
    ) -> Cause {
        let exchange = &self.replica.exchanges[index];
        let parent = document;
        // Old pages write scripts of other hosts into the document, and their parser waits for these scripts.
        let is_written = exchange.kind == Kind::Script && !self.is_exact;
        if document == plan.start && self.imports.has(plan, document, exchange) {
            let end = self.imports.inline_end(plan, exchange);
            return Cause::Inline {
                parent,
                at_byte: end.unwrap_or(at_byte),
                is_import: true,
            };
        }
        if is_written {
            return Cause::Bytes { parent, at_byte };
        }
        if let Some(parent) = self.callback(plan, index, document) {
            return Cause::Done { parent };
        }
        let path = head::target(&exchange.url);
        let length = plan.text(document).len();
        let left = self.search_bytes_left.checked_sub(length);
        self.search_bytes_left = left.unwrap_or_default();
        let of_module = match document == plan.start && left.is_some() {
            true => self.imports.of_inline_module(plan, &path, &self.by_url),
            false => None,
        };
        match of_module {
            Some(Some(parent)) => Cause::Done { parent },
            Some(None) => {
                let at_byte = self.replica.exchanges[document].body.len() as u64;
                Cause::Inline {
                    parent,
                    at_byte,
                    is_import: false,
                }
            }
            None => Cause::Inline {
                parent,
                at_byte,
                is_import: false,
            },
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
                let at_byte = text.decoded.transferred_at(at + needle.len());
                let is_inline = text
                    .inline_scripts
                    .iter()
                    .any(|script| script.contains(&at));
                return Some(match self.replica.exchanges[parent].kind {
                    Kind::Script => Cause::Done { parent },
                    _ if is_inline => Cause::Inline {
                        parent,
                        at_byte,
                        is_import: false,
                    },
                    _ => Cause::Bytes { parent, at_byte },
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
            Cause::Done { parent } | Cause::Inline { parent, .. } => (parent, false),
            Cause::Start => unreachable!("the start of the load has its place"),
        };
        let own = plan.placed[parent]
            .unwrap_or_else(|| panic!("parent {parent} of exchange {index} has no place"));
        let in_time = match (exchange.finished(), self.replica.dom_content_loaded) {
            (Some(end), Some(limit)) => end <= limit,
            _ => true,
        };
        let is_import = match cause {
            Cause::Inline { is_import, .. } => is_import,
            _ => by_parser && self.imports.has(plan, parent, exchange),
        };
        // A script that the parser found and that ended in time counts as synchronous, as most were.
        let role = match exchange.kind {
            Kind::Script if is_import => Role::Script(ScriptMode::Defer),
            Kind::Script if by_parser && in_time => Role::Script(ScriptMode::Sync),
            Kind::Script => Role::Script(ScriptMode::Async),
            Kind::Stylesheet => Role::Stylesheet {
                blocking: by_parser,
            },
            Kind::Document => Role::Frame,
            _ if is_icon(exchange) => Role::Icon,
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
        let by_handler_of = self.by_handler_of(plan, cause, index);
        Placement {
            cause,
            delay,
            role,
            used_at: None,
            by_handler_of,
            // The load event cannot wait for a resource that waits for the load event.
            in_page: own.in_page && role != Role::Icon && by_handler_of != Some(WaitsFor::Load),
            before_dom_content_loaded: before_dom_content_loaded && in_time,
        }
    }
}

/// True if a recording of `exchange` has all bytes that arrived, whether the browser read them or not.
fn has_unread_bytes(exchange: &Exchange) -> bool {
    let protocol = exchange.observed.protocol.as_deref();
    protocol.is_some_and(|name| name == "h2" || name.starts_with("spdy"))
}

/// True for an icon that a browser requests without a reference to it.
fn is_icon(exchange: &Exchange) -> bool {
    exchange.kind == Kind::Image && exchange.url.path().ends_with("/favicon.ico")
}
