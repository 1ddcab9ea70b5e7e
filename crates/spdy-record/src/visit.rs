//! Loads several pages one after the other in one tab of one browser, whose cache, cookies, names and connections stay.
//!
//! ```text
//!  load ── quiet ── trace ends, the next begins ── load ── quiet ── …
//!             └──────────── pause ────────────────┘
//! ```
//!
//! The browser is the same as for a recording, with NetLog and trace, so that both load alike. The log is not read.

use std::time::Duration;

use spdy_page::observation::{Failure, Paints};
use tokio::time::Instant;
use url::Url;

use crate::browser::Browser;
use crate::error::RecordError;
use crate::load::{Load, Progress};
use crate::options::RecordOptions;

/// One load of a visit. Its times count from its own navigation.
#[derive(Clone, Debug)]
pub struct PageTimes {
    /// Time of DOMContentLoaded, if it occurred.
    pub dom_content_loaded: Option<Duration>,
    /// Time of the load event, if it occurred.
    pub load: Option<Duration>,
    /// First and largest contentful paint.
    pub paints: Paints,
    /// Requests without a response.
    pub failures: Vec<Failure>,
    /// From the last activity of the page before it to its navigation; `None` for the first page.
    pub pause: Option<Duration>,
}

/// Loads `urls` in their order, with `pause` from the last activity of each page to the next navigation. `before_page` is called
/// before each navigation.
///
/// A page is quiet after its load event, once it has had no activity for [`settle`](RecordOptions::settle), or for `pause` if that is
/// shorter. A pause is at least as long as the end of a trace takes.
///
/// Browser and profile are removed in every case, unless this future is dropped before its end: then the browser ends, and its
/// profile may stay.
///
/// # Errors
///
/// [`RecordError`]: no browser, a page that cannot be loaded, or a log past its limit.
pub async fn visit(
    urls: &[Url],
    pause: Duration,
    options: &RecordOptions,
    before_page: impl FnMut(),
) -> Result<Vec<PageTimes>, RecordError> {
    let options = RecordOptions {
        settle: options.settle.min(pause),
        ..options.clone()
    };
    let (mut browser, mut pipe) = Browser::start(&options)?;
    let limit = options.limits.file_bytes;
    let is_full = browser.log_exceeds(limit);
    let mut progress = |_: Progress| {};
    let load = Load::new(&browser, &mut pipe, &options, &mut progress);
    let visited = tokio::select! {
        visited = visit_in(load, urls, pause, before_page) => visited,
        () = is_full => Err(RecordError::LogLimit { limit }),
    };
    browser.end().await;
    visited
}

async fn visit_in(
    mut tab: Load<'_>,
    urls: &[Url],
    pause: Duration,
    mut before_page: impl FnMut(),
) -> Result<Vec<PageTimes>, RecordError> {
    tab.open_tab().await?;
    let mut visited = Vec::with_capacity(urls.len());
    let mut quiet_since: Option<Instant> = None;
    for url in urls {
        tab.start_trace().await?;
        if let Some(quiet_since) = quiet_since {
            tab.hold_until(quiet_since + pause, "a pause").await?;
        }
        // Requests of the page before it that are made from now on are not distinguished.
        tab.clear_observations();
        before_page();
        let real_pause = quiet_since.map(|quiet_since| quiet_since.elapsed());
        quiet_since = Some(tab.load(url.as_str()).await?);
        tab.end_trace().await?;
        let observations = tab.observations();
        let vitals = observations.vitals();
        visited.push(PageTimes {
            dom_content_loaded: observations.dom_content_loaded_time(),
            load: observations.load_time(),
            paints: vitals.map(|vitals| vitals.paints).unwrap_or_default(),
            failures: observations.failures(),
            pause: real_pause,
        });
    }
    Ok(visited)
}
