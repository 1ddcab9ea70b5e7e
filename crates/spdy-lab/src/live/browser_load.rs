//! A load by a foreign browser: Chromium behind a link, and the page on a `Replay`.
//!
//! Each load is a recording (`spdy-record`) of all fetched bytes, with the time and the initiator of each request. Recording costs
//! the browser a little time, because it writes its log meanwhile. Our own client can load the recording afterwards, with the order
//! and the computation of the browser.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use spdy_page::notes::{FROM_SERVICE_WORKER, WEBSOCKETS};
use spdy_page::observation::Failure;
use spdy_page::replica::Replica;
use spdy_record::error::RecordError;
use spdy_record::options::RecordOptions;
use spdy_record::record::record;
use spdy_tun::error::RealTimeError;
use spdy_tun::limits::{Fault, ValidityLimits};
use spdy_tun::network::RealNetwork;
use spdy_tun::stats::LinkStats;

use crate::live::clock::block_on;
use crate::live::filmstrip::Filmstrip;
use crate::live::replay::Replay;
use crate::live::run_files::{CAPTURE_BYTES, RunFiles};
use crate::live::visual_metrics::VisualMetrics;

/// Time without packets after which a load is over.
pub(crate) const QUIET_FOR: Duration = Duration::from_millis(20);
/// Timeout for that.
pub(crate) const QUIET_TIMEOUT: Duration = Duration::from_secs(30);

/// Failures that the browser itself causes: a lookup of its cache only, or a cancelled request.
const BROWSER_INTERNAL_ERRORS: [&str; 2] = ["net::ERR_CACHE_MISS", "net::ERR_ABORTED"];

/// Limits of the link for a load of this duration. A browser uses the cores that the link's thread needs, and its own loads differ by
/// a percent or two. So a packet may be late by 2 % of the load time, one in a hundred by 0.5 % and the mean by 0.1 %, and in any
/// case by 20, 10 and 0.5 ms.
#[must_use]
pub fn limits(load: Duration) -> ValidityLimits {
    let load_ms = load.as_secs_f64() * 1e3;
    ValidityLimits {
        late_max_ms: (load_ms * 0.02).clamp(20.0, 50.0),
        late_p99_ms: (load_ms * 0.005).clamp(10.0, 20.0),
        late_mean_ms: (load_ms * 0.001).clamp(0.5, 2.0),
        ..ValidityLimits::default()
    }
}

/// Options of loads.
#[derive(Clone, Debug)]
pub struct BrowserLoader {
    /// The browser; `None` searches PATH for Chromium or Chrome.
    pub browser: Option<PathBuf>,
    /// Timeout of a load until the page is quiet.
    pub timeout: Duration,
    /// Keep [files](RunFiles) of each load.
    pub keep_files: bool,
}

/// One load.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BrowserLoad {
    /// From the start of the load to DOMContentLoaded, if it occurred.
    pub dom_content_loaded_ms: Option<f64>,
    /// From the start of the load to the load event, if it occurred.
    pub load_ms: Option<f64>,
    /// What a user sees.
    #[serde(flatten)]
    pub metrics: VisualMetrics,
    /// Exchanges, including redirects.
    pub exchanges: usize,
    /// Connections of TCP and QUIC that servers accepted, including speculative ones of the browser.
    pub connections: u64,
    /// Fingerprint of method, URL, status and body of all fetched resources. Bodies of partial media (206) do not count.
    pub fingerprint: String,
    /// The page's requests for resources that were not recorded, and requests without a response, except for the failures in the
    /// replica.
    pub failed_requests: Vec<String>,
    /// The page's requests that got the response of a recorded request with another query.
    pub similar_requests: Vec<String>,
    /// The page's requests that a replay does not have: counts of WebSockets and of responses of its service worker.
    pub omitted: BTreeMap<String, usize>,
    /// Names that are unknown here, including those of the browser's own requests.
    pub unknown_names: Vec<String>,
    /// Faults of the link, by [`limits`].
    pub faults: Vec<Fault>,
    /// Measurements of the link, from the start of the browser until the page was quiet.
    pub link: LinkStats,
    /// The recording, until [our own client](crate::live::browser_cell::BrowserCell::new) has loaded it too. It states the think times
    /// that the servers had: its waits also have what the link added.
    #[serde(skip)]
    pub recording: Option<Replica>,
    /// Its files, if they were requested.
    #[serde(skip)]
    pub run_files: Option<RunFiles>,
}

impl BrowserLoad {
    /// Why it is not averaged with others; `None` if it may be.
    #[must_use]
    pub fn exclusion_reason(&self) -> Option<String> {
        if let Some(fault) = self.faults.first() {
            return Some(fault.to_string());
        }
        if self.load_ms.is_none() {
            return Some("the load event did not occur".to_owned());
        }
        not_recorded(&self.failed_requests)
    }
}

/// `time` in milliseconds.
pub(super) fn ms(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64() * 1e3)
}

/// The reason to exclude a load with these failed requests, if there are any.
pub(super) fn not_recorded(failed_requests: &[String]) -> Option<String> {
    let first = failed_requests.first()?;
    let more = match failed_requests.len() {
        1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    };
    Some(format!("not recorded: {first}{more}"))
}

/// Descriptions of those of `failures` that are neither expected on `stage` nor caused by the browser.
pub(super) fn unexpected<'a>(
    failures: impl IntoIterator<Item = &'a Failure>,
    stage: &Replay,
) -> impl Iterator<Item = String> {
    let failures = failures.into_iter();
    failures
        .filter(|failure| !BROWSER_INTERNAL_ERRORS.contains(&failure.error.as_str()))
        .filter(|failure| !stage.is_expected_failure(failure))
        .map(|failure| format!("{} {} ({})", failure.method, failure.url, failure.error))
}

/// Why there is no load.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserLoadError {
    /// The link or a host failed.
    #[error("cannot set up a network in real time")]
    RealTime(#[from] RealTimeError),
    /// The browser failed.
    #[error("the browser did not load the page")]
    Browser(#[from] RecordError),
}

impl BrowserLoader {
    /// Loads the page on `stage` over `network`, whose link the caller has [begun](RealNetwork::begin).
    ///
    /// # Errors
    ///
    /// The link or the browser failed.
    pub fn load(
        &self,
        network: &mut RealNetwork,
        stage: &Replay,
    ) -> Result<BrowserLoad, BrowserLoadError> {
        let start = |what| move |source| RealTimeError::Start { what, source };
        let serving = stage.serve(&network.server).map_err(start("the servers"))?;
        let options = self.options(stage);
        if self.keep_files {
            network.start_capture(CAPTURE_BYTES)?;
        }
        let url = stage.start().clone();
        let work = move || {
            let recorded =
                async { Ok(record(&url, &options, |_| {}, std::future::pending()).await) };
            block_on(recorded)
        };
        let recorded = network.client.run(work).map_err(start("the client"))?;
        network.wait_until_quiet(QUIET_FOR, QUIET_TIMEOUT)?;
        let link = network.measure()?;
        let servers = serving.stop().map_err(start("the servers"))?;
        let recorded = recorded?;
        let vitals = recorded.vitals;
        let filmstrip = Filmstrip {
            screenshots: recorded.screenshots,
        };
        let speed_index_ms = filmstrip.speed_index_ms();
        let run_files = match self.keep_files {
            true => {
                let (capture, origin) = network.end_capture()?;
                Some(RunFiles {
                    capture,
                    origin,
                    key_log: recorded.key_log,
                    png: recorded.screenshot,
                    filmstrip,
                })
            }
            false => None,
        };
        let mut omitted = recorded.page.notes.skipped;
        omitted.retain(|reason, _| [WEBSOCKETS, FROM_SERVICE_WORKER].contains(&&reason[..]));
        let mut recording = recorded.page.replica;
        stage.state_think_times(&mut recording);
        let failed = unexpected(&recording.failures, stage);
        let unrecorded = stage.unrecorded_requests();
        let failed_requests = unrecorded.unknown.into_iter().chain(failed).collect();
        let largest = recording.paints.largest_contentful.as_ref();
        Ok(BrowserLoad {
            dom_content_loaded_ms: ms(recording.dom_content_loaded),
            load_ms: ms(recording.load),
            metrics: VisualMetrics {
                fcp_ms: ms(recording.paints.first_contentful),
                lcp_ms: ms(largest.map(|largest| largest.at)),
                lcp_url: largest.and_then(|largest| largest.url.clone()),
                cls: vitals.as_ref().map(|vitals| vitals.cumulative_layout_shift),
                tbt_ms: ms(vitals.map(|vitals| vitals.total_blocking_time)),
                speed_index_ms,
            },
            exchanges: recording.exchanges.len(),
            connections: servers.connections,
            fingerprint: stage.fingerprint(&recording),
            failed_requests,
            omitted,
            similar_requests: unrecorded.similar.into_iter().collect(),
            unknown_names: stage.unknown_names(),
            faults: limits(recording.load.unwrap_or_default()).faults(&link),
            link,
            recording: Some(recording),
            run_files,
        })
    }

    /// The options of the browser.
    pub(super) fn options(&self, stage: &Replay) -> RecordOptions {
        let pin = stage.pin().to_string();
        let believed = pin.trim_start_matches("sha256//");
        RecordOptions {
            browser: self.browser.clone(),
            browser_arguments: vec![format!("--ignore-certificate-errors-spki-list={believed}")],
            timeout: self.timeout,
            force_quic: stage.quic_origins().to_vec(),
            screenshot: self.keep_files,
            screenshots: self.keep_files,
            key_log: self.keep_files,
            ..RecordOptions::default()
        }
    }
}
