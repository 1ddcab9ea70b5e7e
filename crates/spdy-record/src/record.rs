//! Records one page.

use spdy_page::netlog;
use spdy_page::open::OpenedReplica;
use spdy_page::page_trace::Vitals;
use spdy_page::screencast::Screenshot;
use url::Url;

use crate::browser::Browser;
use crate::error::RecordError;
use crate::load::Load;
pub use crate::load::Progress;
use crate::options::RecordOptions;

/// How the browser ends after the load.
#[derive(Clone, Copy)]
enum BrowserEnd {
    /// After a request to exit, with a timeout.
    Graceful,
    /// At once: its log has reached the limit.
    Killed,
}

/// The result of a recording.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The replica, and notes on it.
    pub page: OpenedReplica,
    /// A screenshot of the quiet page as PNG, if it was [requested](RecordOptions::screenshot) and the browser rendered one.
    pub screenshot: Option<Vec<u8>>,
    /// What a user saw of the load, if the page has painted text or an image.
    pub vitals: Option<Vitals>,
    /// The window at each change, if [requested](RecordOptions::screenshots).
    pub screenshots: Vec<Screenshot>,
    /// Secrets of TLS and QUIC in the format of `SSLKEYLOGFILE`, if they were [requested](RecordOptions::key_log); empty without
    /// encryption.
    pub key_log: Vec<u8>,
}

/// Loads `url` in a separate browser, and imports the load as a replica. It contains everything until the page was quiet, and the
/// browser's observations; `progress` is called on changes.
///
/// A log that exceeds its limit ends the recording: data until then is imported, with a note.
///
/// If `interrupt` completes first, the browser ends, and nothing is recorded. Browser and profile are removed in every case, unless
/// this future is dropped before its end: then the browser ends, and its profile may stay.
///
/// # Errors
///
/// [`RecordError`]: no browser, no page, or a log that cannot be imported.
pub async fn record(
    url: &Url,
    options: &RecordOptions,
    mut progress: impl FnMut(Progress),
    interrupt: impl Future<Output = ()>,
) -> Result<Recording, RecordError> {
    let (mut browser, mut pipe) = Browser::start(options)?;
    tokio::pin!(interrupt);
    let limit = options.limits.file_bytes;
    let is_full = browser.log_exceeds(limit);
    tokio::pin!(is_full);
    let mut load = Load::new(&browser, &mut pipe, options, &mut progress);
    let mut end = tokio::select! {
        ended = load.run(url.as_str()) => ended.map(|()| BrowserEnd::Graceful),
        () = &mut is_full => Ok(BrowserEnd::Killed),
        () = &mut interrupt => Err(RecordError::Interrupted),
    };
    let loaded = load.into_result();
    if let Ok(BrowserEnd::Graceful) = end {
        end = tokio::select! {
            () = browser.finish(&mut pipe) => end,
            () = &mut is_full => Ok(BrowserEnd::Killed),
            () = &mut interrupt => Err(RecordError::Interrupted),
        };
    }
    // Even if it has more to write.
    browser.kill();
    let log = end.and_then(|_| browser.log(limit));
    let key_log = match options.key_log {
        true => browser.key_log(options.key_log_bytes),
        false => Vec::new(),
    };
    browser.end().await;
    let (log, is_cut) = log?;
    let name = url.host_str().unwrap_or("page");
    let pinned = if options.pin {
        ", clocks and random numbers pinned"
    } else {
        ""
    };
    let source = format!(
        "recorded with {}{pinned}; licence not recorded",
        loaded.product
    );
    let mut opened = netlog::record(&log, name, &source, &loaded.observations, &options.limits)?;
    let trace_remarks = loaded.observations.trace_remarks();
    opened.notes.remarks.extend(trace_remarks);
    if is_cut {
        opened.notes.remarks.push(format!(
            "the browser's log reached its limit of {limit} bytes: the recording has nothing after that"
        ));
    }
    let recorded = Recording {
        page: opened,
        screenshot: loaded.screenshot,
        vitals: loaded.observations.vitals(),
        screenshots: loaded.observations.screenshots(),
        key_log,
    };
    // An interrupt during the import discards the recording.
    tokio::select! {
        biased;
        () = &mut interrupt => Err(RecordError::Interrupted),
        () = tokio::task::yield_now() => Ok(recorded),
    }
}
