//! One page, recorded.

use spdy_page::netlog;
use spdy_page::open::Opened;
use url::Url;

use crate::browser::Browser;
use crate::error::RecordError;
use crate::load::Load;
pub use crate::load::Progress;
use crate::options::RecordOptions;

/// Loads `url` in a browser of its own, and makes a replica of what that fetched. What the load did until it was quiet is
/// in it, and what the browser told of it; `progress` is called when something moved.
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
) -> Result<Opened, RecordError> {
    let (mut browser, mut pipe) = Browser::start(options)?;
    tokio::pin!(interrupt);
    let load_and_log = async {
        let load = Load::new(&browser, &mut pipe, options, &mut progress);
        let loaded = load.run(url.as_str()).await?;
        browser.finish(&mut pipe).await;
        Ok((loaded, browser.log(options.limits.file_bytes)?))
    };
    let recorded = tokio::select! {
        recorded = load_and_log => recorded,
        () = &mut interrupt => Err(RecordError::Interrupted),
    };
    browser.end().await;
    let (loaded, log) = recorded?;
    let name = url.host_str().unwrap_or("page");
    let pinned = if options.pin {
        ", clocks and chance pinned"
    } else {
        ""
    };
    let source = format!(
        "recorded with {}{pinned}; licence not recorded",
        loaded.product
    );
    let opened = netlog::record(&log, name, &source, &loaded.observations, &options.limits)?;
    // Whoever wanted it to end while that was made wants no recording.
    tokio::select! {
        biased;
        () = &mut interrupt => Err(RecordError::Interrupted),
        () = tokio::task::yield_now() => Ok(opened),
    }
}
