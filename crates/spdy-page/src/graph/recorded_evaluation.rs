//! When the browser of a recording can have evaluated each script, at the earliest.
//!
//! A synchronous script waits for the scripts and style sheets before it, a deferred one for its whole document and the deferred ones
//! before it, and a module for all that it imports statically. What a script requests is delayed from that time on. The wait before it
//! depends on the network, so a load has its own.

use std::collections::HashMap;
use std::time::Duration;

use crate::graph::builder::{Cause, GraphBuilder};
use crate::graph::html::{Role, ScriptMode};
use crate::replica::{Exchange, Kind};

/// See the [module](self). All times are those of the recording.
pub(crate) struct RecordedEvaluation {
    /// By exchange: when it can have been evaluated.
    evaluated: Vec<Option<Duration>>,
    /// In the order of documents and of their texts.
    stops: Vec<Stop>,
}

/// A synchronous script or style sheet of a document.
struct Stop {
    document: usize,
    at_byte: u64,
    /// When it and all before it had been evaluated.
    passed: Duration,
    /// The same of the last script up to it.
    passed_script: Option<Duration>,
}

/// A script or sheet in a text: document, offset and exchange.
type Tag = (usize, u64, usize);

impl RecordedEvaluation {
    /// All exchanges of `plan` are placed.
    pub(crate) fn of(plan: &GraphBuilder<'_>) -> Self {
        let exchanges = plan.exchanges;
        let mut tag_of: Vec<Option<(usize, u64)>> = vec![None; exchanges.len()];
        let (mut blocking, mut deferred, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for &index in &plan.order {
            let Some(placed) = plan.placed[index] else {
                continue;
            };
            tag_of[index] = match placed.cause {
                Cause::Done { parent } if plan.is_redirect(parent) => tag_of[parent],
                Cause::Bytes { parent, at_byte }
                | Cause::Inline {
                    parent,
                    at_byte,
                    is_import: true,
                } if exchanges[parent].kind == Kind::Document => {
                    Some((parent, placed.used_at.unwrap_or(at_byte)))
                }
                _ => None,
            };
            let tag = tag_of[index].map(|(document, at_byte)| (document, at_byte, index));
            match (placed.role, tag) {
                (
                    Role::Script(ScriptMode::Sync) | Role::Stylesheet { blocking: true },
                    Some(tag),
                ) => {
                    blocking.push(tag);
                }
                (Role::Script(ScriptMode::Defer), Some(tag)) => deferred.push(tag),
                _ => others.push(index),
            }
        }
        blocking.sort_unstable();
        deferred.sort_unstable();
        let mut evaluation = Self {
            evaluated: vec![None; exchanges.len()],
            stops: Vec::new(),
        };
        evaluation.pass_blocking(exchanges, &blocking);
        let mut modules = Modules::of(plan, &mut evaluation.evaluated);
        let mut last: HashMap<usize, Duration> = HashMap::new();
        for (document, _, index) in deferred {
            let parsed = up_to(&evaluation.stops, document, u64::MAX).map(|last| last.passed);
            let parsed = parsed.max(exchanges[document].finished());
            let before = parsed.max(last.get(&document).copied()).unwrap_or_default();
            last.insert(document, modules.run(index, before));
        }
        for index in others {
            modules.run(index, Duration::ZERO);
        }
        evaluation
    }

    /// Lets the parsers of documents pass `blocking`, which is in the order of their texts.
    fn pass_blocking(&mut self, exchanges: &[Exchange], blocking: &[Tag]) {
        for &(document, at_byte, index) in blocking {
            let exchange = &exchanges[index];
            let last = up_to(&self.stops, document, at_byte);
            let before = last.map_or(Duration::ZERO, |last| last.passed);
            let script_before = last.and_then(|last| last.passed_script);
            let end = exchange.finished().unwrap_or_default();
            let after = end.max(before).saturating_add(compute(exchange));
            let is_script = exchange.kind == Kind::Script;
            self.stops.push(Stop {
                document,
                at_byte,
                passed: after,
                passed_script: if is_script {
                    Some(after)
                } else {
                    script_before
                },
            });
            // A sheet itself waits for nothing.
            let own = end.saturating_add(compute(exchange));
            self.evaluated[index] = Some(if is_script { after } else { own });
        }
    }

    /// When `index`, a script or style sheet, can have been evaluated, at the earliest.
    pub(crate) fn evaluated(&self, index: usize) -> Option<Duration> {
        self.evaluated[index]
    }

    /// When an inline script at the byte `at` of `document` could run: after the scripts and sheets before it. `None` without any.
    pub(crate) fn passed(&self, document: usize, at: u64) -> Option<Duration> {
        up_to(&self.stops, document, at).map(|last| last.passed)
    }

    /// When the parser of `document` had passed the scripts up to the byte `at`; `None` without any.
    pub(crate) fn passed_script(&self, document: usize, at: u64) -> Option<Duration> {
        up_to(&self.stops, document, at)?.passed_script
    }
}

/// The last script or sheet of `document` up to the byte `at`.
fn up_to(stops: &[Stop], document: usize, at: u64) -> Option<&Stop> {
    let is_up_to = |stop: &Stop| (stop.document, stop.at_byte) <= (document, at);
    let until = stops.partition_point(is_up_to);
    let last = stops[..until].last()?;
    (last.document == document).then_some(last)
}

fn compute(exchange: &Exchange) -> Duration {
    exchange.observed.compute.unwrap_or_default()
}

/// Evaluates modules, with what they import before them.
struct Modules<'a> {
    exchanges: &'a [Exchange],
    imports: &'a [Vec<usize>],
    complete: Vec<Duration>,
    is_seen: Vec<bool>,
    evaluated: &'a mut [Option<Duration>],
}

impl<'a> Modules<'a> {
    fn of(plan: &'a GraphBuilder<'_>, evaluated: &'a mut [Option<Duration>]) -> Self {
        Self {
            exchanges: plan.exchanges,
            imports: &plan.imports,
            complete: complete(plan.exchanges, &plan.imports),
            is_seen: evaluated.iter().map(Option::is_some).collect(),
            evaluated,
        }
    }

    /// Evaluates what `entry` imports and has not been evaluated, then `entry`, not before the time `from`. Returns the end.
    fn run(&mut self, entry: usize, from: Duration) -> Duration {
        let mut now = from.max(self.complete[entry]);
        for index in imports_first(self.imports, &mut self.is_seen, entry) {
            now = now.saturating_add(compute(&self.exchanges[index]));
            self.evaluated[index] = self.exchanges[index].finished().map(|_| now);
        }
        now
    }
}

/// For each exchange, the last end of it and of all `imports`, direct and indirect. A cycle is cut where it closes.
fn complete(exchanges: &[Exchange], imports: &[Vec<usize>]) -> Vec<Duration> {
    let end = |exchange: &Exchange| exchange.finished().unwrap_or_default();
    let mut complete: Vec<Duration> = exchanges.iter().map(end).collect();
    let mut is_seen = vec![false; exchanges.len()];
    for first in 0..exchanges.len() {
        for index in imports_first(imports, &mut is_seen, first) {
            let of_imports = imports[index].iter().map(|&import| complete[import]);
            complete[index] = of_imports.fold(complete[index], Duration::max);
        }
    }
    complete
}

/// `entry` and what it imports, directly or by others, without those that are seen; each after its imports. Marks them as seen.
fn imports_first(imports: &[Vec<usize>], is_seen: &mut [bool], entry: usize) -> Vec<usize> {
    let mut in_order = Vec::new();
    let mut stack = Vec::new();
    if !std::mem::replace(&mut is_seen[entry], true) {
        stack.push((entry, 0));
    }
    while let Some((index, next)) = stack.pop() {
        let Some(&import) = imports[index].get(next) else {
            in_order.push(index);
            continue;
        };
        stack.push((index, next + 1));
        if !std::mem::replace(&mut is_seen[import], true) {
            stack.push((import, 0));
        }
    }
    in_order
}
