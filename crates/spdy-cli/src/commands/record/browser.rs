//! The browser that records a page: its options, and one recording. `spdy accelerate audit` uses both.

use std::path::PathBuf;

use indicatif::ProgressBar;
use spdy_page::open::OpenedReplica;
use spdy_record::error::RecordError;
use spdy_record::options::{RecordOptions, Resolve};
use spdy_record::record::record;
use spdy_service::signals::StopSignals;
use url::Url;

/// The browser and its options.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Browser")]
pub(crate) struct BrowserArgs {
    /// Path of Chromium or Chrome [default: the first one in PATH]
    #[arg(long, value_name = "PATH")]
    browser: Option<PathBuf>,

    /// An argument for the browser, added after the built-in ones; may be repeated
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    browser_arg: Vec<String>,

    /// Connect to ADDRESS for requests to HOST:PORT; HOST may be a pattern with *; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDRESS")]
    resolve: Vec<Resolve>,

    /// Accept any certificate
    #[arg(short = 'k', long)]
    insecure: bool,
}

impl BrowserArgs {
    /// The options of a recording.
    pub(crate) fn options(&self) -> RecordOptions {
        RecordOptions {
            browser: self.browser.clone(),
            browser_arguments: self.browser_arg.clone(),
            resolve: self.resolve.clone(),
            insecure: self.insecure,
            ..RecordOptions::default()
        }
    }

    /// Whether any certificate is accepted.
    pub(crate) fn insecure(&self) -> bool {
        self.insecure
    }

    /// The addresses for names.
    pub(crate) fn resolve(&self) -> &[Resolve] {
        &self.resolve
    }
}

/// Records the page at `url`. A stop signal ends the recording.
pub(crate) async fn record_once(
    url: &Url,
    options: &RecordOptions,
    bar: &ProgressBar,
    signals: &mut StopSignals,
) -> Result<OpenedReplica, RecordError> {
    let progress = |now: spdy_record::record::Progress| {
        bar.set_length(now.requests as u64);
        bar.set_position((now.requests - now.in_flight) as u64);
    };
    let interrupt = async {
        // Without signals nothing interrupts.
        if signals.any().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let recorded = record(url, options, progress, interrupt).await?;
    Ok(recorded.page)
}
