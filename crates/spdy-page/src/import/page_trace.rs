//! What a user sees of a page load, from a browser's trace: first and largest contentful paint, layout shifts and long tasks.
//!
//! ```text
//! firstContentfulPaint                    of the page's own frame; its thread is the page's main thread
//! largestContentfulPaint::Candidate       the last one counts
//! LargestImagePaint::Candidate            the URL of an image
//! LayoutShift                             of the page's own frame, unless the user has just made an input
//! LongTaskTracker                         begin and end of a task of at least 4 ms
//! ```
//!
//! The definitions are those of web.dev. Times of a trace are microseconds of the browser's clock.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::import::assemble::seconds;
use crate::import::module_times::Thread;
use crate::replica::{LargestPaint, Paints};

/// Maximum number of events of a trace that count, for each kind of paint and for layout shifts; later ones are ignored.
const MAX_PAINTS: usize = 10_000;
/// Maximum number of begins and ends of tasks in all processes of a trace.
const MAX_TASK_EVENTS: usize = 100_000;

/// Limits of what is stored of a trace.
#[derive(Clone, Copy, Debug)]
struct TraceLimits {
    paints: usize,
    task_events: usize,
}

impl Default for TraceLimits {
    fn default() -> Self {
        Self {
            paints: MAX_PAINTS,
            task_events: MAX_TASK_EVENTS,
        }
    }
}

/// A task that is longer delays input.
const LONG_TASK: f64 = 0.050;
/// Layout shifts are in one window if none is later than this after the one before.
const SHIFT_GAP: f64 = 1.0;
/// The longest window of layout shifts.
const SHIFT_WINDOW: f64 = 5.0;

/// What a user sees of one load. Times count from the start of the load.
#[derive(Clone, Debug, PartialEq)]
pub struct Vitals {
    /// The first and the largest contentful paint.
    pub paints: Paints,
    /// The largest sum of layout shift scores in one window: at most 1 s between two shifts, and at most 5 s in total.
    pub cumulative_layout_shift: f64,
    /// The time of main-thread tasks beyond their first 50 ms, from the first contentful paint to the end of the trace. If the
    /// frame navigates to another page, only to that page's first contentful paint.
    pub total_blocking_time: Duration,
}

/// One entry of a trace. Events that are not used here may have any fields: one of them must not make the others unreadable.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum TraceEntry {
    Event(Box<TraceEvent>),
    Other(IgnoredAny),
}

/// One event of the trace. Fields that an event does not have are zero.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct TraceEvent {
    pub(crate) name: String,
    /// Microseconds.
    pub(crate) ts: f64,
    /// Microseconds.
    pub(crate) dur: f64,
    /// `b` for a begin, `e` for an end.
    ph: String,
    pub(crate) pid: i64,
    pub(crate) tid: i64,
    pub(crate) args: TraceArgs,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct TraceArgs {
    pub(crate) data: TraceData,
    pub(crate) file_name: Option<String>,
    frame: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct TraceData {
    pub(crate) url: Option<String>,
    pub(crate) style_sheet_url: Option<String>,
    node_id: i64,
    #[serde(rename = "DOMNodeId")]
    dom_node_id: i64,
    image_url: Option<String>,
    /// `image` or `text`.
    #[serde(rename = "type")]
    kind: Option<String>,
    score: f64,
    #[serde(rename = "had_recent_input")]
    had_recent_input: bool,
}

/// An image that was the largest so far.
#[derive(Clone, Debug)]
struct PaintedImage {
    frame: String,
    at: f64,
    /// Unique only in the process of its frame.
    node: i64,
    /// `None` for a `data:` URL.
    url: Option<String>,
}

/// The events of one trace that show what a user sees. Times are seconds of the browser's clock.
#[derive(Clone, Debug, Default)]
pub(crate) struct PageTrace {
    /// First contentful paints by frame.
    first: Vec<(String, f64, Thread)>,
    /// Candidates for the largest contentful paint: frame, time, DOM node of an image.
    largest: Vec<(String, f64, Option<i64>)>,
    images: Vec<PaintedImage>,
    /// Frame, time and score.
    shifts: Vec<(String, f64, f64)>,
    /// Begins (true) and ends of tasks.
    tasks: Vec<(Thread, f64, bool)>,
    limits: TraceLimits,
    /// Names of events of which some were past a limit.
    omitted: BTreeSet<String>,
    /// The browser did not return all events.
    is_incomplete: bool,
}

impl PageTrace {
    /// Notes that the browser did not return all events.
    pub(crate) fn set_incomplete(&mut self) {
        self.is_incomplete = true;
    }

    /// What is missing, one sentence each.
    pub(crate) fn remarks(&self) -> Vec<String> {
        let incomplete = "the browser's trace is incomplete: evaluation times, paints, layout shifts and tasks can be missing";
        let incomplete = self.is_incomplete.then(|| incomplete.to_owned());
        let omitted = self.omitted.iter().map(|name| {
            format!("the trace has more {name} events than a recording can store: the later ones do not count")
        });
        incomplete.into_iter().chain(omitted).collect()
    }

    /// Stores the event if it is used here, up to the limits.
    pub(crate) fn take(&mut self, event: TraceEvent) {
        let at = event.ts / 1e6;
        let TraceArgs { data, frame, .. } = event.args;
        let (frame, thread) = (frame.unwrap_or_default(), (event.pid, event.tid));
        let limits = self.limits;
        let is_stored = match &event.name[..] {
            "firstContentfulPaint" => bounded(&mut self.first, limits.paints, (frame, at, thread)),
            "largestContentfulPaint::Candidate" => {
                let is_text = data.kind.as_deref() == Some("text");
                let node = (!is_text).then_some(data.node_id);
                bounded(&mut self.largest, limits.paints, (frame, at, node))
            }
            "LargestImagePaint::Candidate" => {
                let image = PaintedImage {
                    frame,
                    at,
                    node: data.dom_node_id,
                    url: data.image_url.filter(|url| url.starts_with("http")),
                };
                bounded(&mut self.images, limits.paints, image)
            }
            "LayoutShift" if !data.had_recent_input && data.score.is_finite() => {
                let shift = (frame, at, data.score.max(0.0));
                bounded(&mut self.shifts, limits.paints, shift)
            }
            "LongTaskTracker" => {
                let edge = (thread, at, event.ph == "b");
                bounded(&mut self.tasks, limits.task_events, edge)
            }
            _ => true,
        };
        if !is_stored {
            self.omitted.insert(event.name);
        }
    }

    /// The measures of the page in `frame`, from `origin`; `None` if it has painted no content.
    pub(crate) fn vitals(&self, frame: &str, origin: f64) -> Option<Vitals> {
        let of_page = |found: &&(String, f64, Thread)| found.0 == frame;
        let mut first: Vec<_> = self.first.iter().filter(of_page).collect();
        first.sort_by(|one, other| one.1.total_cmp(&other.1));
        let (_, painted_at, main_thread) = **first.first()?;
        // After another first paint, the frame has navigated.
        let until = first.get(1).map_or(f64::INFINITY, |next| next.1);
        let counts = |of: &str, at: f64| of == frame && at < until;
        let candidates = self.largest.iter();
        let largest = candidates
            .filter(|(of, at, _)| counts(of, *at))
            .max_by(|one, other| one.1.total_cmp(&other.1));
        let largest = largest.map(|&(_, at, node)| LargestPaint {
            at: seconds(at - origin),
            url: node.and_then(|node| self.image_url(frame, node, at)),
        });
        let mut shifts: Vec<(f64, f64)> = self
            .shifts
            .iter()
            .filter(|(of, at, _)| counts(of, *at))
            .map(|&(_, at, score)| (at, score))
            .collect();
        shifts.sort_by(|one, other| one.0.total_cmp(&other.0));
        let tasks = self.tasks_of(main_thread).into_iter();
        let tasks = tasks.map(|(from, to)| (from, to.min(until)));
        Some(Vitals {
            paints: Paints {
                first_contentful: Some(seconds(painted_at - origin)),
                largest_contentful: largest,
            },
            cumulative_layout_shift: cumulative_layout_shift(&shifts),
            total_blocking_time: seconds(total_blocking_time(painted_at, tasks)),
        })
    }

    /// The URL that the image in `node` of `frame` had at the time `at`.
    fn image_url(&self, frame: &str, node: i64, at: f64) -> Option<String> {
        self.images
            .iter()
            .filter(|image| image.frame == frame && image.node == node && image.at <= at)
            .max_by(|one, other| one.at.total_cmp(&other.at))?
            .url
            .clone()
    }

    /// The tasks of one thread: from, to.
    fn tasks_of(&self, thread: Thread) -> Vec<(f64, f64)> {
        let mut events: Vec<_> = self
            .tasks
            .iter()
            .filter(|event| event.0 == thread)
            .collect();
        events.sort_by(|one, other| one.1.total_cmp(&other.1));
        let mut tasks = Vec::new();
        let mut begun = None;
        for &&(_, at, is_begin) in &events {
            match is_begin {
                true => begun = Some(at),
                false => tasks.extend(begun.take().map(|from| (from, at))),
            }
        }
        tasks
    }
}

/// Adds the item unless the list has `most` items. Returns true if it was added.
fn bounded<T>(list: &mut Vec<T>, most: usize, item: T) -> bool {
    let fits = list.len() < most;
    if fits {
        list.push(item);
    }
    fits
}

/// The largest sum of scores in one window of `shifts`, which are in the order of their times.
fn cumulative_layout_shift(shifts: &[(f64, f64)]) -> f64 {
    let mut largest: f64 = 0.0;
    let mut sum = 0.0;
    let (mut first, mut last) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for &(at, score) in shifts {
        if at - last >= SHIFT_GAP || at - first >= SHIFT_WINDOW {
            (first, sum) = (at, 0.0);
        }
        last = at;
        sum += score;
        largest = largest.max(sum);
    }
    largest
}

/// The sum of what each task takes after `from` beyond [`LONG_TASK`], seconds.
fn total_blocking_time(from: f64, tasks: impl Iterator<Item = (f64, f64)>) -> f64 {
    tasks
        .map(|(start, end)| (end - start.max(from) - LONG_TASK).max(0.0))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::devtools::Observations;
    use crate::limits::Limits;

    fn trace(events: &str) -> PageTrace {
        let entries: Vec<TraceEntry> = serde_json::from_str(events).expect("the JSON is valid");
        let mut trace = PageTrace::default();
        for entry in entries {
            if let TraceEntry::Event(event) = entry {
                trace.take(*event);
            }
        }
        trace
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A load that begins at 10 s, with another page in the same browser.
    const TRACE: &str = r#"[
        {"name": "LongTaskTracker", "ph": "b", "pid": 7, "tid": 7, "ts": 10350000, "args": {}},
        {"name": "LongTaskTracker", "ph": "e", "pid": 7, "tid": 7, "ts": 10450000, "args": {}},
        {"name": "FrameLoader:state_snapshot", "ts": 1, "args": {"snapshot": {"frame": 1}}},
        {"name": "firstContentfulPaint", "pid": 8, "tid": 8, "ts": 10100000, "args": {"frame": "other", "data": {}}},
        {"name": "firstContentfulPaint", "pid": 7, "tid": 7, "ts": 10400000, "args": {"frame": "page", "data": {}}},
        {"name": "largestContentfulPaint::Candidate", "ts": 10900000, "pid": 7,
         "args": {"frame": "page", "data": {"nodeId": 4, "size": 240000, "type": "image"}}},
        {"name": "largestContentfulPaint::Candidate", "ts": 10400000, "pid": 7,
         "args": {"frame": "page", "data": {"nodeId": 3, "size": 3382, "type": "text"}}},
        {"name": "LargestImagePaint::Candidate", "ts": 10900000,
         "args": {"frame": "page", "data": {"DOMNodeId": 4, "imageUrl": "https://a.test/b.png"}}},
        {"name": "LayoutShift", "ts": 10500000, "args": {"frame": "page", "data": {"score": 0.1, "had_recent_input": false}}},
        {"name": "LayoutShift", "ts": 10600000, "args": {"frame": "page", "data": {"score": 0.8, "had_recent_input": true}}},
        {"name": "LayoutShift", "ts": 10600000, "args": {"frame": "other", "data": {"score": 0.7}}},
        {"name": "LongTaskTracker", "ph": "e", "pid": 7, "tid": 7, "ts": 11130000, "args": {}},
        {"name": "LongTaskTracker", "ph": "b", "pid": 7, "tid": 7, "ts": 11000000, "args": {}},
        {"name": "LongTaskTracker", "ph": "b", "pid": 7, "tid": 7, "ts": 11200000, "args": {}},
        {"name": "LongTaskTracker", "ph": "e", "pid": 7, "tid": 7, "ts": 11250000, "args": {}},
        {"name": "LongTaskTracker", "ph": "b", "pid": 8, "tid": 8, "ts": 11100000, "args": {}},
        {"name": "LongTaskTracker", "ph": "e", "pid": 8, "tid": 8, "ts": 12300000, "args": {}}
    ]"#;

    #[test]
    fn measures_are_of_the_pages_own_frame_and_main_thread() {
        let vitals = trace(TRACE).vitals("page", 10.0).expect("it has painted");
        assert_eq!(vitals.paints.first_contentful, Some(ms(400)));
        let largest = vitals.paints.largest_contentful.expect("it has one");
        assert_eq!(largest.at, ms(900));
        assert_eq!(largest.url.as_deref(), Some("https://a.test/b.png"));
        assert_eq!(vitals.cumulative_layout_shift, 0.1);
        // 130 - 50; of the task that ends at 450, only the last 50 ms are after the first paint.
        let blocking = vitals.total_blocking_time.as_secs_f64() * 1e3;
        assert!((blocking - 80.0).abs() < 0.01, "{blocking}");
        assert_eq!(trace(TRACE).vitals("none", 10.0), None);
    }

    #[test]
    fn shifts_are_summed_in_windows_of_five_seconds_without_a_gap_of_one() {
        let near = |shifts: &[(f64, f64)], expected: f64| {
            let found = cumulative_layout_shift(shifts);
            assert!((found - expected).abs() < 1e-9, "{shifts:?}: {found}");
        };
        near(&[], 0.0);
        near(&[(1.0, 0.1), (1.9, 0.2), (2.8, 0.1)], 0.4);
        // The gap of a second begins another window.
        near(&[(1.0, 0.1), (2.0, 0.2), (2.5, 0.1)], 0.3);
        // The seventh shift is 5.4 s after the first.
        let shifts: Vec<_> = (0..7).map(|n| (f64::from(n) * 0.9, 0.1)).collect();
        near(&shifts, 0.6);
    }

    #[test]
    fn the_url_of_the_largest_image_is_the_one_it_had_in_its_own_frame() {
        let found = |largest: &str| {
            let events = format!(
                r#"[
                {{"name": "firstContentfulPaint", "ts": 1000000, "args": {{"frame": "page"}}}},
                {{"name": "LargestImagePaint::Candidate", "ts": 1900000,
                 "args": {{"frame": "other", "data": {{"DOMNodeId": 4, "imageUrl": "https://a.test/other.png"}}}}}},
                {{"name": "LargestImagePaint::Candidate", "ts": 2500000,
                 "args": {{"frame": "page", "data": {{"DOMNodeId": 4, "imageUrl": "https://a.test/later.png"}}}}}},
                {{"name": "LargestImagePaint::Candidate", "ts": 1500000,
                 "args": {{"frame": "page", "data": {{"DOMNodeId": 4, "imageUrl": "https://a.test/old.png"}}}}}},
                {{"name": "LargestImagePaint::Candidate", "ts": 2000000,
                 "args": {{"frame": "page", "data": {{"DOMNodeId": 4, "imageUrl": "https://a.test/new.png"}}}}}},
                {{"name": "largestContentfulPaint::Candidate", "ts": 1200000,
                 "args": {{"frame": "page", "data": {{"nodeId": 4, "type": "image"}}}}}},
                {{"name": "largestContentfulPaint::Candidate", "ts": 2000000, "args": {{"frame": "page", "data": {largest}}}}}
                ]"#
            );
            let vitals = trace(&events).vitals("page", 0.0).expect("it has painted");
            vitals.paints.largest_contentful.expect("it has one").url
        };
        let image = found(r#"{"nodeId": 4, "type": "image"}"#);
        assert_eq!(image.as_deref(), Some("https://a.test/new.png"));
        assert_eq!(found(r#"{"nodeId": 4, "type": "text"}"#), None);
        assert_eq!(found(r#"{"nodeId": 5, "type": "image"}"#), None);
    }

    #[test]
    fn events_after_a_second_navigation_do_not_count() {
        let events = r#"[
            {"name": "firstContentfulPaint", "pid": 7, "tid": 7, "ts": 3000000, "args": {"frame": "page"}},
            {"name": "firstContentfulPaint", "pid": 7, "tid": 7, "ts": 1000000, "args": {"frame": "page"}},
            {"name": "largestContentfulPaint::Candidate", "ts": 1000000, "args": {"frame": "page", "data": {"type": "text"}}},
            {"name": "largestContentfulPaint::Candidate", "ts": 3000000, "args": {"frame": "page", "data": {"type": "text"}}},
            {"name": "LayoutShift", "ts": 2000000, "args": {"frame": "page", "data": {"score": 0.1}}},
            {"name": "LayoutShift", "ts": 3000000, "args": {"frame": "page", "data": {"score": 0.5}}},
            {"name": "LongTaskTracker", "ph": "b", "pid": 7, "tid": 7, "ts": 2900000, "args": {}},
            {"name": "LongTaskTracker", "ph": "e", "pid": 7, "tid": 7, "ts": 3500000, "args": {}},
            {"name": "LongTaskTracker", "ph": "b", "pid": 7, "tid": 7, "ts": 4000000, "args": {}},
            {"name": "LongTaskTracker", "ph": "e", "pid": 7, "tid": 7, "ts": 4900000, "args": {}}
        ]"#;
        let vitals = trace(events).vitals("page", 0.0).expect("it has painted");
        assert_eq!(vitals.paints.first_contentful, Some(ms(1_000)));
        let largest = vitals.paints.largest_contentful.expect("it has one");
        assert_eq!(largest.at, ms(1_000));
        assert_eq!(vitals.cumulative_layout_shift, 0.1);
        // Of the task that ends at 3.5 s, 100 ms are before the second page's first paint.
        let blocking = vitals.total_blocking_time.as_secs_f64() * 1e3;
        assert!((blocking - 50.0).abs() < 0.01, "{blocking}");
    }

    #[test]
    fn each_list_ends_at_its_limit_with_a_remark() {
        let names = [
            "LargestImagePaint::Candidate",
            "LayoutShift",
            "LongTaskTracker",
            "firstContentfulPaint",
            "largestContentfulPaint::Candidate",
        ];
        let mut trace = PageTrace {
            limits: TraceLimits {
                paints: 2,
                task_events: 3,
            },
            ..PageTrace::default()
        };
        let mut take = |name: &str, count: usize| {
            for _ in 0..count {
                let event = format!(r#"{{"name": "{name}"}}"#);
                trace.take(serde_json::from_str(&event).expect("the event is valid"));
            }
            let lengths = [
                trace.images.len(),
                trace.shifts.len(),
                trace.tasks.len(),
                trace.first.len(),
                trace.largest.len(),
            ];
            (lengths, trace.remarks())
        };
        let limits = [2, 2, 3, 2, 2];
        for (name, limit) in names.into_iter().zip(limits) {
            assert!(take(name, limit).1.is_empty(), "{name}");
        }
        for name in names {
            take(name, 1);
        }
        let (lengths, remarks) = take("another", 1);
        assert_eq!(lengths, limits);
        let remark = |name: &str| {
            format!(
                "the trace has more {name} events than a recording can store: the later ones do not count"
            )
        };
        assert_eq!(remarks, names.map(remark));
    }

    #[test]
    fn a_trace_with_lost_data_has_a_remark() {
        let remarks = |end: &str| {
            let mut observations = Observations::new(&Limits::default());
            let message = format!(r#"{{"method": "Tracing.tracingComplete", "params": {end}}}"#);
            observations.take(&message, true);
            observations.trace_remarks()
        };
        assert!(remarks("{}").is_empty());
        assert!(remarks(r#"{"dataLossOccurred": false}"#).is_empty());
        let lost = remarks(r#"{"dataLossOccurred": true}"#);
        assert!(
            matches!(&lost[..], [remark] if remark.contains("trace is incomplete")),
            "{lost:?}"
        );
    }
}
