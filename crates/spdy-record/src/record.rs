//! One page, recorded.

use spdy_page::netlog;
use spdy_page::open::OpenedReplica;
use url::Url;

use crate::browser::Browser;
use crate::error::RecordError;
use crate::load::Load;
pub use crate::load::Progress;
use crate::options::RecordOptions;

/// How a browser ends whose page was loaded.
#[derive(Clone, Copy)]
enum BrowserEnd {
    /// As it was asked to, in its own time.
    Graceful,
    /// At once: its log is as long as it may be.
    Killed,
}

/// What a recording came to.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The replica, and notes on it.
    pub page: OpenedReplica,
    /// The window when the page was quiet, as PNG, if it was [asked for](RecordOptions::screenshot) and the browser drew one.
    pub screenshot: Option<Vec<u8>>,
    /// Secrets of TLS and QUIC as `SSLKEYLOGFILE` has them, if they were [asked for](RecordOptions::key_log); empty if nothing was secret.
    pub key_log: Vec<u8>,
}

/// Loads `url` in a browser of its own, and makes a replica of what that fetched. What the load did until it was quiet is
/// in it, and what the browser told of it; `progress` is called when something moved.
///
/// A log that gets longer than its limit ends the recording: what came until then is kept, with a note.
///
/// When `interrupt` is done before, the browser ends, and nothing is kept. Whatever happens, browser and profile are
/// gone in the end, unless this future is dropped half way: then the browser is, and its profile may stay.
///
/// # Errors
///
/// [`RecordError`]: no browser, no page, or a log that makes no replica.
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
    // However much it has left to say.
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
    if is_cut {
        opened.notes.remarks.push(format!(
            "the browser's log reached its limit of {limit} bytes: the recording has nothing after that"
        ));
    }
    let recorded = Recording {
        page: opened,
        screenshot: loaded.screenshot,
        key_log,
    };
    // An interrupt that came while the recording was made discards it.
    tokio::select! {
        biased;
        () = &mut interrupt => Err(RecordError::Interrupted),
        () = tokio::task::yield_now() => Ok(recorded),
    }
}
