//! Parses the messages of a browser's DevTools protocol for one page load: the initiator, times and outcome of each request.
//!
//! ```text
//! Network.requestWillBeSent ─► responseReceived ─► loadingFinished | loadingFailed     by requestId
//!     │  initiator, priority      timing              the last byte    the reason
//!     └─ again for each redirect, with the response that redirected
//! Page.domContentEventFired, loadEventFired          of the page's own frame
//! Page.screencastFrame                               the window at each change (screencast.rs)
//! Tracing.dataCollected                              evaluation times of scripts and style sheets; paints (page_trace.rs)
//! Tracing.tracingComplete                            whether the trace has all events
//! ```
//!
//! Bodies are not read here, because the protocol has them decoded; `netlog/` reads them. Times are seconds of the clock that the
//! NetLog has in milliseconds.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use serde::Deserialize;

use crate::import::assemble::seconds;
use crate::import::module_times::ModuleTimes;
use crate::import::page_trace::{PageTrace, TraceEntry, TraceEvent, Vitals};
use crate::import::screencast::{FrameEvent, Screencast, Screenshot};
use crate::limits::Limits;
use crate::replica::observation::Failure;

/// The error of a missing or incomplete response without another cause.
pub(crate) const IN_PROGRESS: &str = "in progress when the recording ended";

/// The start of the error of a response that the page may not read.
const CORS: &str = "CORS: ";

/// All messages of one load of one page.
#[derive(Clone, Debug, Default)]
pub struct Observations {
    most: usize,
    /// In the order in which they were made; a followed redirect is another request.
    pub(crate) requests: Vec<ObservedRequest>,
    /// The last request of an id.
    last_of: BTreeMap<String, usize>,
    /// Requests that have not ended.
    in_flight: BTreeSet<usize>,
    pub(crate) dom_content_loaded: Option<f64>,
    pub(crate) load: Option<f64>,
    /// Seconds of evaluation by URL, without modules.
    compute: BTreeMap<String, f64>,
    modules: ModuleTimes,
    trace: PageTrace,
    screencast: Screencast,
    /// The page's own frame: that of the first request.
    frame: String,
    /// Requests past the limit.
    pub(crate) omitted: usize,
}

/// An observed request.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObservedRequest {
    pub(crate) url: String,
    pub(crate) method: String,
    /// The browser's name of its kind: `Stylesheet`, `XHR`.
    pub(crate) kind: String,
    pub(crate) priority: String,
    /// When the browser raised the priority to `High` or more.
    pub(crate) raised_at: Option<f64>,
    pub(crate) initiator: RequestInitiator,
    /// When the page requested it, in seconds of the browser's clock.
    pub(crate) requested_at: f64,
    /// Seconds since 1970 at that moment.
    pub(crate) wall_s: f64,
    pub(crate) timing: Option<Timing>,
    pub(crate) finished: Option<f64>,
    pub(crate) error: Option<String>,
    /// The address of the server.
    pub(crate) address: Option<IpAddr>,
    /// It was served before it reached the network stack, so the NetLog does not contain it.
    pub(crate) is_inside: bool,
    /// A service worker of the page responded to it.
    pub(crate) from_service_worker: bool,
}

/// What caused the request.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) enum RequestInitiator {
    #[default]
    Unknown,
    /// A reference in the text at this URL, or a request of the script there.
    Text(String),
    /// A redirect.
    Redirect,
}

/// Times of a request: milliseconds after `request_time`, -1 if missing.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Timing {
    /// Seconds.
    pub(crate) request_time: f64,
    pub(crate) dns_start: f64,
    pub(crate) dns_end: f64,
    pub(crate) connect_start: f64,
    pub(crate) connect_end: f64,
    pub(crate) ssl_start: f64,
    pub(crate) ssl_end: f64,
    pub(crate) send_start: f64,
    pub(crate) receive_headers_start: Option<f64>,
    pub(crate) receive_headers_end: f64,
}

#[derive(Deserialize)]
struct MethodOnly<'a> {
    #[serde(borrow, default)]
    method: Cow<'a, str>,
}

#[derive(Deserialize)]
struct ParamsOnly<P> {
    params: P,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestWillBeSent {
    request_id: String,
    request: RequestFields,
    timestamp: f64,
    #[serde(default)]
    wall_time: f64,
    #[serde(default)]
    initiator: InitiatorFields,
    redirect_response: Option<ResponseFields>,
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    frame_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RequestFields {
    url: String,
    method: String,
    #[serde(default)]
    initial_priority: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PriorityChanged {
    request_id: String,
    new_priority: String,
    timestamp: f64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct InitiatorFields {
    url: Option<String>,
    stack: Option<Stack>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Stack {
    call_frames: Vec<CallFrame>,
    parent: Option<Box<Stack>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CallFrame {
    url: String,
}

impl InitiatorFields {
    /// The URL of the text with the reference: what the parser read, or the topmost script on the stack that has a URL.
    fn text(self) -> Option<String> {
        let mut stack = self.stack;
        while let Some(Stack {
            call_frames,
            parent,
        }) = stack
        {
            let mut urls = call_frames.into_iter().map(|frame| frame.url);
            if let Some(url) = urls.find(|url| url.starts_with("http")) {
                return Some(url);
            }
            stack = parent.map(|parent| *parent);
        }
        self.url
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseReceived {
    request_id: String,
    response: ResponseFields,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ResponseFields {
    from_prefetch_cache: bool,
    from_service_worker: bool,
    timing: Option<Timing>,
    #[serde(rename = "remoteIPAddress")]
    remote_ip_address: String,
}

impl ResponseFields {
    /// An IPv6 address has brackets.
    fn address(&self) -> Option<IpAddr> {
        self.remote_ip_address.trim_matches(['[', ']']).parse().ok()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoadingEnded {
    request_id: String,
    #[serde(default)]
    timestamp: f64,
    #[serde(default)]
    error_text: String,
    blocked_reason: Option<String>,
    cors_error_status: Option<CorsError>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CorsError {
    cors_error: String,
}

#[derive(Deserialize)]
struct EventFired {
    timestamp: f64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TracingComplete {
    data_loss_occurred: bool,
}

#[derive(Deserialize)]
struct TraceDataCollected {
    value: Vec<TraceEntry>,
}

impl Observations {
    /// Creates an empty one, which stores at most as many requests as `limits` has records.
    pub fn new(limits: &Limits) -> Self {
        Self {
            most: limits.records,
            ..Self::default()
        }
    }

    /// Handles a message of the browser; `is_page` if it is of the page's own frame, and not of a frame or worker in it.
    ///
    /// Other messages, and invalid ones, are ignored.
    pub fn take(&mut self, message: &str, is_page: bool) {
        let Ok(MethodOnly { method }) = serde_json::from_str(message) else {
            return;
        };
        match &method[..] {
            "Network.requestWillBeSent" => self.sent(parse(message)),
            "Network.resourceChangedPriority" => self.raised(parse(message)),
            "Network.responseReceived" => self.received(parse(message)),
            "Network.requestServedFromCache" => {
                // From the memory cache: the disk cache belongs to the network stack.
                if let Some(seen) = self.of(parse(message)) {
                    seen.is_inside = true;
                }
            }
            "Network.loadingFinished" | "Network.loadingFailed" => self.ended(parse(message)),
            "Page.domContentEventFired" if is_page => {
                let fired: Option<EventFired> = parse(message);
                self.dom_content_loaded = self.dom_content_loaded.or(fired.map(|f| f.timestamp));
            }
            "Page.loadEventFired" if is_page => {
                let fired: Option<EventFired> = parse(message);
                self.load = self.load.or(fired.map(|fired| fired.timestamp));
            }
            "Page.screencastFrame" if is_page => {
                if let Some(frame) = parse::<FrameEvent<'_>>(message) {
                    self.screencast.take(&frame);
                }
            }
            "Tracing.dataCollected" => self.collected(parse(message)),
            "Tracing.tracingComplete" => {
                let complete: Option<TracingComplete> = parse(message);
                if complete.is_some_and(|complete| complete.data_loss_occurred) {
                    self.set_trace_incomplete();
                }
            }
            _ => {}
        }
    }

    /// True after the page's load event.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.load.is_some()
    }

    /// Number of requests so far.
    #[must_use]
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Number of requests in progress.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// From the start of the load to DOMContentLoaded, if it occurred.
    #[must_use]
    pub fn dom_content_loaded_time(&self) -> Option<Duration> {
        self.since_start(self.dom_content_loaded?)
    }

    /// From the start of the load to the load event, if it occurred.
    #[must_use]
    pub fn load_time(&self) -> Option<Duration> {
        self.since_start(self.load?)
    }

    /// The requests without a response. A response that CORS hides from the page counts as a response, so its request is not listed.
    #[must_use]
    pub fn failures(&self) -> Vec<Failure> {
        let failure = |(index, seen): (usize, &ObservedRequest)| {
            let is_in_progress = self.in_flight.contains(&index);
            let in_progress = || is_in_progress.then(|| IN_PROGRESS.to_owned());
            let error = seen.error.clone().or_else(in_progress)?;
            let has_response = seen.timing.is_some() || error.starts_with(CORS);
            (!has_response && seen.url.starts_with("http")).then(|| Failure {
                method: seen.method.clone(),
                url: seen.url.clone(),
                error,
                started: self.since_start(seen.requested_at),
            })
        };
        let requests = self.requests.iter().enumerate();
        requests.filter_map(failure).collect()
    }

    /// What a user saw of the load, if the trace has it.
    #[must_use]
    pub fn vitals(&self) -> Option<Vitals> {
        self.trace.vitals(&self.frame, self.origin()?)
    }

    /// The window at each change, in order, if there is a screencast.
    #[must_use]
    pub fn screenshots(&self) -> Vec<Screenshot> {
        let first = self.requests.first();
        first.map_or_else(Vec::new, |first| self.screencast.screenshots(first.wall_s))
    }

    /// Notes that the browser did not return its whole trace.
    pub fn set_trace_incomplete(&mut self) {
        self.trace.set_incomplete();
    }

    /// What the trace and the screencast lack, one sentence each, for the notes on a recording.
    #[must_use]
    pub fn trace_remarks(&self) -> Vec<String> {
        let mut remarks = self.trace.remarks();
        remarks.extend(self.screencast.remark());
        remarks
    }

    /// Seconds of evaluation by URL.
    pub(crate) fn compute_times(&self) -> BTreeMap<&str, f64> {
        let mut times = self.modules.by_url();
        for (url, time) in &self.compute {
            *times.entry(url).or_default() += time;
        }
        times
    }

    /// When the load began, seconds of the browser's clock.
    fn origin(&self) -> Option<f64> {
        self.requests.first().map(|first| first.requested_at)
    }

    /// The time from the start of the load to `moment`; `None` without a request.
    fn since_start(&self, moment: f64) -> Option<Duration> {
        self.origin().map(|origin| seconds(moment - origin))
    }

    fn sent(&mut self, event: Option<RequestWillBeSent>) {
        let Some(event) = event else { return };
        let mut initiator = event
            .initiator
            .text()
            .map_or(RequestInitiator::Unknown, RequestInitiator::Text);
        if let (Some(redirect), Some(&last)) =
            (event.redirect_response, self.last_of.get(&event.request_id))
        {
            initiator = RequestInitiator::Redirect;
            let before = &mut self.requests[last];
            before.timing = before.timing.or(redirect.timing);
            before.address = before.address.or(redirect.address());
            self.in_flight.remove(&last);
        }
        if self.requests.len() >= self.most {
            self.omitted += 1;
            return;
        }
        let index = self.requests.len();
        if index == 0 {
            self.frame = event.frame_id;
        }
        self.last_of.insert(event.request_id, index);
        // A response from the browser's cache takes no time.
        if event.request.url.starts_with("http") {
            self.in_flight.insert(index);
        }
        self.requests.push(ObservedRequest {
            url: event.request.url,
            method: event.request.method,
            kind: event.kind,
            priority: event.request.initial_priority,
            initiator,
            requested_at: event.timestamp,
            wall_s: event.wall_time,
            ..ObservedRequest::default()
        });
    }

    fn raised(&mut self, event: Option<PriorityChanged>) {
        let Some(event) = event else { return };
        let is_urgent = |priority: &str| matches!(priority, "VeryHigh" | "High");
        if let Some(&last) = self.last_of.get(&event.request_id)
            && let seen = &mut self.requests[last]
            && is_urgent(&event.new_priority)
            && !is_urgent(&seen.priority)
        {
            seen.raised_at = seen.raised_at.or(Some(event.timestamp));
        }
    }

    fn received(&mut self, event: Option<ResponseReceived>) {
        let Some(event) = event else { return };
        let Some(&last) = self.last_of.get(&event.request_id) else {
            return;
        };
        let (seen, response) = (&mut self.requests[last], event.response);
        seen.timing = response.timing;
        seen.address = response.address();
        seen.is_inside |= response.from_prefetch_cache || response.from_service_worker;
        seen.from_service_worker |= response.from_service_worker;
    }

    fn of(&mut self, event: Option<LoadingEnded>) -> Option<&mut ObservedRequest> {
        let last = self.last_of.get(&event?.request_id)?;
        self.requests.get_mut(*last)
    }

    fn ended(&mut self, event: Option<LoadingEnded>) {
        let Some(event) = event else { return };
        let Some(&last) = self.last_of.get(&event.request_id) else {
            return;
        };
        self.in_flight.remove(&last);
        let seen = &mut self.requests[last];
        seen.finished = Some(event.timestamp);
        seen.error = match (event.blocked_reason, event.cors_error_status) {
            (Some(reason), _) => Some(format!("blocked: {reason}")),
            (None, Some(cors)) => Some(format!("{CORS}{}", cors.cors_error)),
            (None, None) => Some(event.error_text).filter(|text| !text.is_empty()),
        };
    }

    fn collected(&mut self, event: Option<TraceDataCollected>) {
        for entry in event.into_iter().flat_map(|event| event.value) {
            let TraceEntry::Event(event) = entry else {
                continue;
            };
            let TraceEvent { dur, args, .. } = &*event;
            let (thread, at, took) = ((event.pid, event.tid), event.ts / 1e6, dur / 1e6);
            let has_room = self.modules.len() < self.most;
            let url = match &event.name[..] {
                "v8.compileModule" if has_room => {
                    let url = args.file_name.clone().unwrap_or_default();
                    self.modules.compiled(thread, at, took, url);
                    continue;
                }
                "v8.evaluateModule" if has_room => {
                    self.modules.evaluated(thread, at, took);
                    continue;
                }
                "EvaluateScript" => &args.data.url,
                "ParseAuthorStyleSheet" => &args.data.style_sheet_url,
                _ => {
                    self.trace.take(*event);
                    continue;
                }
            };
            let Some(url) = url.as_ref().filter(|url| url.starts_with("http")) else {
                continue;
            };
            if took.is_finite() && self.compute.len() < self.most {
                *self.compute.entry(url.clone()).or_default() += took.max(0.0);
            }
        }
    }
}

fn parse<'a, P: Deserialize<'a>>(message: &'a str) -> Option<P> {
    let with: ParamsOnly<P> = serde_json::from_str(message).ok()?;
    Some(with.params)
}
