//! Delays of a recording: the time that its browser took between what triggers a request and the request itself.
//!
//! A recording by this project has the time at which the page made each request, and the times of evaluation. So what remains is the
//! browser's own computation: it starts the navigation, parses the document, applies the style sheets, and lays out. In other
//! recordings, a short delay is as likely an error of a clock. There the delay of what a script requests counts, and layout that is
//! more than [`NEAR`] late: a script has made its boxes. Layout counts only if the ends of all style sheets are known, because it waits
//! for them; a page cannot see those of other hosts (Resource Timing).

use std::time::Duration;

use crate::graph::builder::{Cause, GraphBuilder};
use crate::graph::dispatch_delay::{dispatch_delays, navigation_delay};
use crate::graph::html::Role;
use crate::graph::recorded_evaluation::RecordedEvaluation;
use crate::graph::{MAX_DELAY, WaitsFor};
use crate::replica::{Exchange, Kind, Replica};

/// A request that starts this soon after the end of a script or style sheet was caused by it, for every kind.
pub(crate) const NEAR: Duration = Duration::from_millis(100);

/// The longest TLS record (RFC 8446 §5.1). Its first byte can be read when its last one has arrived.
const RECORD_BYTES: u64 = 1 << 14;

/// No recorded transfer is longer.
const MAX_TRANSFER: Duration = Duration::from_secs(24 * 3600);

/// Sets the delays of all resources that a parser, layout or a script has found. Then adds dispatch to all, the navigation included.
/// Without times of evaluation only the navigation's dispatch can be known.
pub(crate) fn set_delays(plan: &mut GraphBuilder<'_>, replica: &Replica) {
    let is_exact = replica.has_evaluation_times();
    let mut sheets = exchanges_of(replica, Kind::Stylesheet);
    let has_ends = sheets.all(|sheet| sheet.wait.is_some());
    let dispatch = is_exact.then(|| dispatch_delays(plan.exchanges, plan.start));
    let evaluation = RecordedEvaluation::of(plan);
    for index in 0..plan.exchanges.len() {
        let Some(cause) = plan.placed[index].map(|placed| placed.cause) else {
            continue;
        };
        let exchange = |index: usize| &plan.exchanges[index];
        let is_script =
            |index: usize| exchange(index).kind == Kind::Script && !plan.is_redirect(index);
        let is_real = |index: usize| exchange(index).body_is_real;
        let is_sheet = |index: usize| exchange(index).kind == Kind::Stylesheet;
        let role = plan.placed[index].map(|placed| placed.role);
        let handler_of = plan.placed[index].and_then(|placed| placed.by_handler_of);
        let mut is_certain = is_exact;
        let ready = match (plan.laid_out_in(index), cause) {
            _ if role == Some(Role::Icon) => Some(replica.load),
            _ if handler_of == Some(WaitsFor::Load) => Some(replica.load),
            _ if handler_of == Some(WaitsFor::DomContentLoaded) => Some(replica.dom_content_loaded),
            (
                _,
                Cause::Inline {
                    parent,
                    at_byte,
                    is_import,
                },
            ) => {
                let arrived = arrived_at(exchange(parent), at_byte);
                let passed = match is_import {
                    true => evaluation.passed_script(parent, at_byte),
                    false => evaluation.passed(parent, at_byte),
                };
                Some(arrived.max(passed))
            }
            (Some(document), _) => Some(laid_out_at(plan, index, document, is_exact)),
            (None, Cause::Bytes { parent, at_byte }) if is_exact => {
                Some(arrived_at(exchange(parent), at_byte))
            }
            (None, Cause::Done { parent })
                if is_script(parent) || is_sheet(parent) && (is_exact || !is_real(parent)) =>
            {
                is_certain = true;
                Some(evaluation.evaluated(parent))
            }
            (None, Cause::Done { parent }) if exchange(parent).kind == Kind::Fetch => {
                is_certain = true;
                Some(exchange(parent).finished())
            }
            _ => None,
        };
        let gap = ready.map(|ready| {
            let gap = ready.zip(exchange(index).started);
            let gap = gap.and_then(|(ready, started)| started.checked_sub(ready));
            let gap = gap.filter(|&gap| is_certain || has_ends && gap > NEAR);
            gap.unwrap_or_default()
        });
        if let Some(placed) = &mut plan.placed[index] {
            let dispatch = match &dispatch {
                Some(delays) => delays[index],
                None if index == plan.start => navigation_delay(&plan.exchanges[index]),
                None => Duration::ZERO,
            };
            let delay = gap.unwrap_or(placed.delay).saturating_add(dispatch);
            placed.delay = delay.min(MAX_DELAY);
        }
    }
}

fn exchanges_of(replica: &Replica, kind: Kind) -> impl Iterator<Item = &Exchange> {
    let exchanges = replica.exchanges.iter();
    exchanges.filter(move |exchange| exchange.kind == kind)
}

/// When `index` could be laid out: the last end of `document`, a style sheet, or a script before its request. If `is_exact`, only
/// scripts in the head of `document` count.
fn laid_out_at(
    plan: &GraphBuilder<'_>,
    index: usize,
    document: usize,
    is_exact: bool,
) -> Option<Duration> {
    let started = plan.exchanges[index].started?;
    let delays_layout = |ended: usize| {
        let cause = plan.placed[ended].map(|placed| placed.cause);
        let is_in_head = matches!(cause, Some(Cause::Bytes { parent, at_byte })
            if parent == document && Some(at_byte) <= plan.body_at(document));
        !is_exact || is_in_head || plan.exchanges[ended].kind == Kind::Stylesheet
    };
    let mut ends = plan.ends.range(..=(started, usize::MAX)).rev();
    let last = ends.find(|&&(_, ended)| delays_layout(ended));
    let last = last.and_then(|&(_, last)| evaluated_at(&plan.exchanges[last]));
    let document = plan.exchanges[document].finished()?;
    Some(document.max(last.unwrap_or_default()))
}

fn evaluated_at(exchange: &Exchange) -> Option<Duration> {
    let compute = exchange.observed.compute.unwrap_or_default();
    Some(exchange.finished()?.saturating_add(compute))
}

/// When the first `at_byte` bytes of the body could be read, if it came evenly, and in the longest TLS records.
fn arrived_at(exchange: &Exchange, at_byte: u64) -> Option<Duration> {
    let (first, last) = (exchange.first_byte()?, exchange.finished()?);
    let at_byte = match over_tls_records(exchange) {
        true => at_byte.div_ceil(RECORD_BYTES).saturating_mul(RECORD_BYTES),
        false => at_byte,
    };
    let share = at_byte as f64 / (exchange.body.len() as f64).max(1.0);
    let transfer = last.saturating_sub(first).min(MAX_TRANSFER);
    Some(first.saturating_add(transfer.mul_f64(share.min(1.0))))
}

/// True if its bytes came in TLS records: over `https`, and not over QUIC.
fn over_tls_records(exchange: &Exchange) -> bool {
    let protocol = exchange.observed.protocol.as_deref();
    exchange.url.scheme() == "https" && !protocol.is_some_and(|name| name.starts_with("h3"))
}
