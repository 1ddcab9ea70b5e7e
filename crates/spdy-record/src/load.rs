//! A tab over the DevTools protocol, and the page that it loads: attach, navigate, wait until the page is quiet.

use std::time::Duration;

use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::{Value, json};
use spdy_page::devtools::Observations;
use tokio::time::{Instant, timeout_at};

use crate::browser::Browser;
use crate::devtools_pipe::{Message, Pipe};
use crate::error::RecordError;
use crate::options::RecordOptions;

/// Runs before any script of a page with pinned clocks and randomness. It requests nothing, and defines no global name.
const PIN_SCRIPT: &str = include_str!("pin.js");

/// Timeout of operations without work: to start, to open a page, to return a trace.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(30);

/// Time for the browser to start its processes before the load, so that they do not delay it.
const START_UP: Duration = Duration::from_millis(1500);

/// What a trace contains: evaluation and paints, layout shifts, and tasks of at least 4 ms.
const TRACE_CATEGORIES: [&str; 3] = ["devtools.timeline", "loading", "scheduler.long_tasks"];

/// The most that the browser stores of a trace; later events are missing, and the recording has a remark.
const TRACE_BYTES: usize = 128 << 20;

/// Largest width and height of a screenshot during the load, pixels.
const SCREENSHOT_SIDE: u32 = 500;

/// Progress of a load.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Progress {
    /// Number of requests so far.
    pub requests: usize,
    /// Number of requests in progress.
    pub in_flight: usize,
    /// True after the load event.
    pub is_loaded: bool,
}

/// Results of a load.
#[derive(Debug)]
pub(crate) struct LoadResult {
    pub(crate) observations: Observations,
    /// Name and version of the browser.
    pub(crate) product: String,
    /// The window when the page was quiet, as PNG.
    pub(crate) screenshot: Option<Vec<u8>>,
}

/// The browser and its data so far.
pub(crate) struct Load<'a> {
    pub(crate) browser: &'a Browser,
    pub(crate) pipe: &'a mut Pipe,
    pub(crate) options: &'a RecordOptions,
    pub(crate) progress: &'a mut dyn FnMut(Progress),
    loaded: LoadResult,
    /// The session of the page's own frame, once it exists.
    page: Option<String>,
    /// The trace was received.
    is_traced: bool,
}

/// The number of a frame of a screencast.
#[derive(Default, Deserialize)]
struct FrameNumber {
    params: FrameParams,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameParams {
    session_id: i64,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    result: Value,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

impl<'a> Load<'a> {
    pub(crate) fn new(
        browser: &'a Browser,
        pipe: &'a mut Pipe,
        options: &'a RecordOptions,
        progress: &'a mut dyn FnMut(Progress),
    ) -> Self {
        Self {
            browser,
            pipe,
            options,
            progress,
            loaded: LoadResult {
                observations: Observations::new(&options.limits),
                product: String::new(),
                screenshot: None,
            },
            page: None,
            is_traced: false,
        }
    }

    /// Loads `url` and records it. May be dropped: data that was recorded until then stays.
    ///
    /// # Errors
    ///
    /// The browser failed, or the page was not loaded. A page that does not settle in time is not an error.
    pub(crate) async fn run(&mut self, url: &str) -> Result<(), RecordError> {
        self.open_tab().await?;
        self.start_trace().await?;
        let page = self.page.clone();
        if self.options.screenshots {
            let form = json!({
                "format": "jpeg",
                "quality": 60,
                "maxWidth": SCREENSHOT_SIDE,
                "maxHeight": SCREENSHOT_SIDE,
            });
            self.call(page.as_deref(), "Page.startScreencast", form)
                .await?;
        }
        self.load(url).await?;
        if self.options.screenshots {
            let stop = self.call(page.as_deref(), "Page.stopScreencast", json!({}));
            stop.await?;
        }
        self.end_trace().await?;
        if self.options.screenshot {
            self.take_screenshot().await?;
        }
        Ok(())
    }

    /// Opens an empty tab, and waits until the browser has started all its processes.
    pub(crate) async fn open_tab(&mut self) -> Result<(), RecordError> {
        let version = self.call(None, "Browser.getVersion", json!({})).await?;
        self.loaded.product = version["product"].as_str().unwrap_or_default().to_owned();
        // A page may start downloads without a click.
        let deny = json!({"behavior": "deny"});
        self.call(None, "Browser.setDownloadBehavior", deny).await?;
        let target = self
            .call(None, "Target.createTarget", json!({"url": "about:blank"}))
            .await?;
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = self.call(None, "Target.attachToTarget", attach).await?;
        let session = attached["sessionId"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        self.page = Some(session.clone());
        self.prepare(&session, "page").await;
        self.hold_until(Instant::now() + START_UP, "its start")
            .await
    }

    /// Starts the trace of a load.
    pub(crate) async fn start_trace(&mut self) -> Result<(), RecordError> {
        // Of the whole browser: a trace of the page's session sometimes does not end.
        let config = json!({
            "includedCategories": TRACE_CATEGORIES,
            "recordMode": "recordUntilFull",
            "traceBufferSizeInKb": TRACE_BYTES >> 10,
        });
        let trace = json!({"transferMode": "ReportEvents", "traceConfig": config});
        self.is_traced = false;
        self.call(None, "Tracing.start", trace).await?;
        Ok(())
    }

    /// Ends the trace, and receives its events.
    pub(crate) async fn end_trace(&mut self) -> Result<(), RecordError> {
        self.call(None, "Tracing.end", json!({})).await?;
        let trace_deadline = Instant::now() + COMMAND_TIMEOUT;
        while !self.is_traced
            && self
                .event(trace_deadline, "the transfer of its trace")
                .await?
                .is_some()
        {}
        if !self.is_traced {
            self.loaded.observations.set_trace_incomplete();
        }
        Ok(())
    }

    /// Loads `url` in the tab. Returns when the last activity of the page was.
    ///
    /// # Errors
    ///
    /// Like [`run`](Self::run).
    pub(crate) async fn load(&mut self, url: &str) -> Result<Instant, RecordError> {
        let page = self.page.clone();
        let deadline = Instant::now() + self.options.timeout;
        let navigated = self.call_until(
            page.as_deref(),
            "Page.navigate",
            json!({"url": url}),
            deadline,
        );
        let fault = |reason: &str| RecordError::Navigation {
            url: url.to_owned(),
            reason: reason.to_owned(),
        };
        let navigated = match navigated.await {
            Err(RecordError::Timeout { .. }) => {
                return Err(fault("no response before the timeout"));
            }
            navigated => navigated?,
        };
        if let Some(reason) = navigated["errorText"].as_str() {
            return Err(fault(reason));
        }
        self.watch(deadline).await
    }

    /// Drops the observations so far, before another page is loaded.
    pub(crate) fn clear_observations(&mut self) {
        self.loaded.observations = Observations::new(&self.options.limits);
    }

    /// The observations so far.
    pub(crate) fn observations(&self) -> &Observations {
        &self.loaded.observations
    }

    /// A browser that renders nothing does not invalidate a recording.
    async fn take_screenshot(&mut self) -> Result<(), RecordError> {
        let page = self.page.clone();
        let form = json!({"format": "png"});
        let screenshot = self.call(page.as_deref(), "Page.captureScreenshot", form);
        match screenshot.await {
            Ok(screenshot) => {
                let text = screenshot["data"].as_str().unwrap_or_default();
                self.loaded.screenshot = BASE64
                    .decode(text.as_bytes())
                    .ok()
                    .filter(|png| !png.is_empty());
            }
            Err(fault @ (RecordError::Refused { .. } | RecordError::Timeout { .. })) => {
                tracing::warn!(%fault, "cannot take a screenshot");
            }
            Err(fault) => return Err(fault),
        }
        Ok(())
    }

    /// Returns the results.
    pub(crate) fn into_result(self) -> LoadResult {
        self.loaded
    }

    /// Handles messages until `until`.
    pub(crate) async fn hold_until(
        &mut self,
        until: Instant,
        during: &'static str,
    ) -> Result<(), RecordError> {
        while self.event(until, during).await?.is_some() {}
        Ok(())
    }

    /// Waits until the page has settled, or until `deadline`. Returns when the last change was.
    async fn watch(&mut self, deadline: Instant) -> Result<Instant, RecordError> {
        let mut changed_at = Instant::now();
        let mut last_progress = Progress::default();
        loop {
            let now = Progress {
                requests: self.loaded.observations.requests(),
                in_flight: self.loaded.observations.in_flight(),
                is_loaded: self.loaded.observations.is_loaded(),
            };
            if now != last_progress {
                (last_progress, changed_at) = (now, Instant::now());
                (self.progress)(now);
            }
            let is_settling = now.is_loaded && now.in_flight == 0;
            let until = if is_settling {
                deadline.min(changed_at + self.options.settle)
            } else {
                deadline
            };
            if self.event(until, "the page load").await?.is_none() {
                return Ok(changed_at);
            }
        }
    }

    /// Sends the commands that a page, a frame of another site, or a worker needs before it runs. Does not wait for responses.
    async fn prepare(&mut self, session: &str, kind: &str) {
        let session = Some(session);
        // Bodies come from the NetLog: the browser need not store them.
        let network = json!({"maxTotalBufferSize": 0, "maxResourceBufferSize": 0});
        self.pipe.send(session, "Network.enable", &network).await;
        let attach = json!({"autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true});
        self.pipe
            .send(session, "Target.setAutoAttach", &attach)
            .await;
        let is_document = matches!(kind, "page" | "iframe");
        if is_document {
            self.pipe.send(session, "Page.enable", &json!({})).await;
        }
        if self.options.pin {
            let (method, params) = match is_document {
                true => (
                    "Page.addScriptToEvaluateOnNewDocument",
                    json!({"source": PIN_SCRIPT}),
                ),
                // A worker has no documents, and waits before its first line.
                false => ("Runtime.evaluate", json!({"expression": PIN_SCRIPT})),
            };
            self.pipe.send(session, method, &params).await;
        }
        let go = "Runtime.runIfWaitingForDebugger";
        self.pipe.send(session, go, &json!({})).await;
    }

    async fn call(
        &mut self,
        session: Option<&str>,
        method: &'static str,
        params: Value,
    ) -> Result<Value, RecordError> {
        let deadline = Instant::now() + COMMAND_TIMEOUT;
        self.call_until(session, method, params, deadline).await
    }

    /// The reply to a command; other messages before it are handled.
    async fn call_until(
        &mut self,
        session: Option<&str>,
        method: &'static str,
        params: Value,
        deadline: Instant,
    ) -> Result<Value, RecordError> {
        let Some(id) = self.pipe.send(session, method, &params).await else {
            return Err(self.exit_error(method));
        };
        loop {
            let Some(message) = self.event(deadline, method).await? else {
                return Err(RecordError::Timeout {
                    during: method,
                    seconds: COMMAND_TIMEOUT.as_secs(),
                });
            };
            if message.head.id != Some(id) {
                continue;
            }
            let refused = |reason: String| RecordError::Refused {
                method: method.to_owned(),
                reason,
            };
            let answer: Answer =
                serde_json::from_str(&message.text).map_err(|fault| refused(fault.to_string()))?;
            return match answer.error {
                Some(refusal) => Err(refused(refusal.message)),
                None => Ok(answer.result),
            };
        }
    }

    /// Handles the next message; `None` if none arrives before `deadline`.
    async fn event(
        &mut self,
        deadline: Instant,
        during: &'static str,
    ) -> Result<Option<Message>, RecordError> {
        let message = match timeout_at(deadline, self.pipe.next()).await {
            Err(_) => return Ok(None),
            Ok(message) => message?.ok_or_else(|| self.exit_error(during))?,
        };
        self.take(&message, during).await?;
        Ok(Some(message))
    }

    async fn take(&mut self, message: &Message, during: &'static str) -> Result<(), RecordError> {
        let is_page = self.page.is_some() && message.head.session_id == self.page;
        self.loaded.observations.take(&message.text, is_page);
        let session = message.head.session_id.as_deref();
        match message.head.method.as_deref() {
            Some("Target.attachedToTarget") => {
                let event: Value = serde_json::from_str(&message.text).unwrap_or_default();
                let params = &event["params"];
                let kind = params["targetInfo"]["type"].as_str().unwrap_or_default();
                // The session of the page itself arrives as the reply to a command.
                if let (Some(child), Some(_)) = (params["sessionId"].as_str(), session) {
                    self.prepare(child, kind).await;
                }
            }
            Some("Page.javascriptDialogOpening") => {
                // A page with an open dialog does not continue.
                let refuse = json!({"accept": false});
                self.pipe
                    .send(session, "Page.handleJavaScriptDialog", &refuse)
                    .await;
            }
            Some("Page.screencastFrame") => {
                let event: FrameNumber = serde_json::from_str(&message.text).unwrap_or_default();
                // Without it, the browser sends only a few frames.
                let frame = json!({"sessionId": event.params.session_id});
                self.pipe
                    .send(session, "Page.screencastFrameAck", &frame)
                    .await;
            }
            Some("Tracing.tracingComplete") => self.is_traced = true,
            Some("Inspector.targetCrashed") if is_page => return Err(self.exit_error(during)),
            _ => {}
        }
        Ok(())
    }

    fn exit_error(&self, during: &'static str) -> RecordError {
        RecordError::BrowserExited {
            during,
            last_stderr_line: self.browser.last_stderr_line(),
        }
    }
}
