//! The page of an audit: a replica, or a live page as a browser records it, or as it can be fetched without one.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Serialize;
use spdy_client::config::Config;
use spdy_net::protocol::Protocol;
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_page::open::{ImportOptions, OpenedReplica};
use spdy_page::replica::Replica;
use spdy_record::error::RecordError;
use spdy_record::options::Resolve;
use spdy_service::signals::StopSignals;
use url::Url;

use super::crawl::{CrawlResult, crawl};
use super::crawl_budget::Budget;
use crate::args::open_replica;
use crate::commands::record::{BrowserArgs, record_once};
use crate::outcome::Usage;
use crate::output::{DIM, Printer, WARN, format_count};

/// How many resources that could not be fetched are printed one by one on stderr; `--json` has all.
const MAX_PRINTED_REMARKS: usize = 3;

/// How a live page is loaded.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Live page")]
pub(crate) struct LiveArgs {
    /// Fetch the page, the resources that its text names, and the imports of scripts, without a browser.
    ///
    /// Other requests of scripts and frames are then missing. At most 500 resources, 256 MiB and 120 s. Resources are
    /// fetched from public addresses at ports 80, 443 and the page's own port; from other addresses only if the page's
    /// own host has one, or --resolve names them.
    #[arg(long, conflicts_with_all = ["browser", "browser_arg"])]
    no_browser: bool,

    #[command(flatten)]
    browser: BrowserArgs,
}

impl LiveArgs {
    /// Addresses that the command line gives names, without patterns.
    pub(crate) fn addresses(&self) -> BTreeMap<String, IpAddr> {
        let all = self.browser.resolve().iter().map(Resolve::parts);
        let names = all.filter(|(host, ..)| !host.contains('*'));
        names
            .map(|(host, _, address)| (host.to_ascii_lowercase(), address))
            .collect()
    }
}

/// How a page was loaded.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum PageSource {
    /// A replica, or a recording in another format.
    Replica,
    /// Loaded by a browser now.
    Browser,
    /// The text and the resources that it names, fetched now.
    Fetched,
}

/// A page to audit.
pub(crate) struct AuditPage {
    pub(crate) replica: Replica,
    pub(crate) source: PageSource,
    /// Deviations from the original page, one sentence each.
    pub(crate) remarks: Vec<String>,
}

/// Loads the page that `target` names.
pub(crate) fn page(target: &str, live: &LiveArgs, printer: &Printer) -> anyhow::Result<AuditPage> {
    let url = Url::parse(target).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https"));
    let Some(url) = url else {
        let opened = open_replica(target, &ImportOptions::default())?;
        return Ok(from_recording(opened, PageSource::Replica, target, printer));
    };
    if url.domain().is_none() {
        let host = url.host_str().unwrap_or_default();
        let reason = format!("expected a URL with a hostname, found the address {host}");
        return Err(Usage(reason).into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        if !live.no_browser {
            let options = live.browser.options();
            let bar = printer.progress(1, "recording");
            let mut signals = StopSignals::listen()?;
            let opened = record_once(&url, &options, &bar, &mut signals).await;
            bar.finish_and_clear();
            match opened {
                Ok(opened) => return Ok(from_recording(opened, PageSource::Browser, target, printer)),
                Err(RecordError::NoBrowser { tried }) => printer.note(format_args!(
                    "{WARN}no browser{WARN:#}: none of {} is in PATH, so frames and the requests of scripts (except imports) are missing",
                    tried.join(", ")
                )),
                Err(error) => {
                    let error = anyhow::Error::new(error);
                    return Err(error.context(format!("cannot record {url}")));
                }
            }
        }
        let bar = printer.progress(1, "fetching");
        let crawled = crawl(&url, client(live)?, Budget::default(), |done, total| {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        });
        let crawled = crawled.await;
        bar.finish_and_clear();
        let CrawlResult { replica, remarks } = crawled?;
        for remark in remarks.iter().take(MAX_PRINTED_REMARKS) {
            printer.note(format_args!("{WARN}{url}{WARN:#}: {remark}"));
        }
        if let more @ 1.. = remarks.len().saturating_sub(MAX_PRINTED_REMARKS) {
            printer.note(format_args!("{WARN}{url}{WARN:#}: and {more} more"));
        }
        Ok(AuditPage {
            replica,
            source: PageSource::Fetched,
            remarks,
        })
    })
}

fn from_recording(
    opened: OpenedReplica,
    source: PageSource,
    target: &str,
    printer: &Printer,
) -> AuditPage {
    let OpenedReplica { replica, notes } = opened;
    if !notes.skipped.is_empty() {
        printer.note(format_args!("{WARN}{target}{WARN:#}: {notes}"));
    }
    if !replica.document().body_is_real {
        printer.note(format_args!(
            "{WARN}{target}{WARN:#}: the text of its document was not recorded, so the resources in it cannot be audited"
        ));
    } else if notes.filler_bodies > 0 {
        printer.note(format_args!(
            "{DIM}{target}: {} bodies are filler, so the resources in them are not audited{DIM:#}",
            notes.filler_bodies
        ));
    }
    let mut remarks = notes.remarks;
    if !replica.failures.is_empty() {
        let failed = format_count(replica.failures.len() as u64, "request");
        let remark = format!("{failed} got no response and are not audited");
        printer.note(format_args!("{WARN}{target}{WARN:#}: {remark}"));
        remarks.push(remark);
    }
    AuditPage {
        replica,
        source,
        remarks,
    }
}

/// The client that fetches in place of a browser.
fn client(live: &LiveArgs) -> anyhow::Result<Config> {
    let trust = Trust {
        insecure: live.browser.insecure(),
        ..Trust::default()
    };
    let mut resolve = Vec::new();
    for entry in live.browser.resolve() {
        let (host, port, address) = entry.parts();
        if host.contains('*') {
            let reason =
                format!("--resolve {host}: expected a hostname; only browsers support patterns");
            return Err(Usage(reason).into());
        }
        resolve.push((host.to_owned(), Some(port), address));
    }
    let mut config = Config::default();
    config.protocols = vec![Protocol::Http2, Protocol::Http1];
    config.tls = Some(ClientTls::new(&trust, &TlsOptions::default())?);
    config.resolve = resolve;
    Ok(config)
}
