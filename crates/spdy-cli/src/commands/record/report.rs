//! Prints what was recorded, as text or JSON.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use spdy_page::notes::ImportNotes;
use spdy_page::open::OpenedReplica;
use spdy_page::replica::Exchange;
use spdy_record::fingerprint::{FetchedResource, Fingerprint};
use url::Url;

use crate::output::{BAD, DIM, GOOD, Printer, WARN};

/// A recorded page.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct RecordReport {
    /// The URL of the page.
    url: String,
    /// The file with the replica.
    output: String,
    /// Size of that file.
    bytes: usize,
    /// Its origin and licence.
    source: String,
    /// Number of recorded exchanges.
    exchanges: usize,
    /// Number of hosts.
    hosts: usize,
    /// Bytes of all bodies, as transferred.
    body_bytes: usize,
    /// Time of DOMContentLoaded; `null` if it did not occur.
    dom_content_loaded_ms: Option<f64>,
    /// Time of the load event; `null` if it did not occur.
    load_ms: Option<f64>,
    /// First contentful paint; `null` if nothing was painted.
    fcp_ms: Option<f64>,
    /// Largest contentful paint; `null` if nothing was painted.
    lcp_ms: Option<f64>,
    /// Responses with status 400 or above; the replica contains them.
    errors: Vec<HttpError>,
    /// Responses that the page did not get, or only in part; the replica contains them.
    refused: Vec<RefusedResponse>,
    /// Requests without a response.
    failures: Vec<FailedRequest>,
    /// Number of exchanges that were left out, by reason.
    skipped: std::collections::BTreeMap<String, usize>,
    /// Deviations from the original page, one sentence each.
    remarks: Vec<String>,
    /// Each run of the page; the first that succeeded is stored.
    runs: Vec<Run>,
}

/// A response with status 400 or above.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct HttpError {
    /// The status.
    status: u16,
    /// The method of the request.
    method: String,
    /// The URL of the request.
    url: String,
}

/// A response that the page did not get.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct RefusedResponse {
    /// Why the page did not get it.
    reason: String,
    /// The method of the request.
    method: String,
    /// The URL of the request.
    url: String,
}

/// A request without a response.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct FailedRequest {
    /// The error.
    error: String,
    /// The method of the request.
    method: String,
    /// The URL of the request.
    url: String,
}

/// The fingerprint of one run, and its differences from the stored run.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Run {
    /// SHA-256 of the fetched resources, in hexadecimal; `null` for a failed run.
    fingerprint: Option<String>,
    /// The error of a failed run; `null` for others.
    error: Option<String>,
    /// Fetched in this run, but not in the stored one.
    added: Vec<String>,
    /// Fetched in the stored run, but not in this one.
    missing: Vec<String>,
}

impl RecordReport {
    pub(crate) fn of(
        url: &Url,
        output: &Path,
        bytes: usize,
        opened: &OpenedReplica,
        runs: &[Result<Fingerprint, String>],
    ) -> Self {
        let OpenedReplica { replica, notes } = opened;
        let ImportNotes {
            skipped, remarks, ..
        } = notes;
        let in_ms = |time: Duration| time.as_secs_f64() * 1e3;
        let exchanges = &replica.exchanges;
        let mut remarks = remarks.clone();
        if replica.load.is_none() {
            remarks.push("no load event before the timeout".to_owned());
        }
        let of_error = |exchange: &Exchange| {
            let status = exchange.status().filter(|&status| status >= 400)?;
            Some(HttpError {
                status,
                method: exchange.method.to_string(),
                url: exchange.url.to_string(),
            })
        };
        let of_refused = |exchange: &Exchange| {
            Some(RefusedResponse {
                reason: exchange.observed.refused.clone()?,
                method: exchange.method.to_string(),
                url: exchange.url.to_string(),
            })
        };
        let failures = replica.failures.iter().map(|failure| FailedRequest {
            error: failure.error.clone(),
            method: failure.method.clone(),
            url: failure.url.clone(),
        });
        let first_fingerprint = runs.iter().flatten().next();
        let text = |fetched: Vec<&FetchedResource>| {
            fetched
                .into_iter()
                .map(FetchedResource::to_string)
                .collect()
        };
        let of_run = |run: &Result<Fingerprint, String>| match run {
            Ok(fingerprint) => {
                let (added, missing) =
                    fingerprint.difference(first_fingerprint.unwrap_or(fingerprint));
                Run {
                    fingerprint: Some(fingerprint.sha256()),
                    added: text(added),
                    missing: text(missing),
                    ..Run::default()
                }
            }
            Err(fault) => Run {
                error: Some(fault.clone()),
                ..Run::default()
            },
        };
        Self {
            url: url.to_string(),
            output: output.display().to_string(),
            bytes,
            source: replica.source.clone(),
            exchanges: exchanges.len(),
            hosts: replica.hosts().len(),
            body_bytes: exchanges.iter().map(|exchange| exchange.body.len()).sum(),
            dom_content_loaded_ms: replica.dom_content_loaded.map(in_ms),
            load_ms: replica.load.map(in_ms),
            fcp_ms: replica.paints.first_contentful.map(in_ms),
            lcp_ms: replica
                .paints
                .largest_contentful
                .as_ref()
                .map(|paint| in_ms(paint.at)),
            errors: exchanges.iter().filter_map(of_error).collect(),
            refused: exchanges.iter().filter_map(of_refused).collect(),
            failures: failures.collect(),
            skipped: skipped.clone(),
            remarks,
            runs: runs.iter().map(of_run).collect(),
        }
    }

    pub(crate) fn print(&self, printer: &Printer) -> anyhow::Result<()> {
        let load = self
            .load_ms
            .map_or_else(String::new, |ms| format!(", load {ms:.0} ms"));
        printer.line(format_args!(
            "{}: {} exchanges with {} hosts, {} bytes of bodies{load}",
            self.output, self.exchanges, self.hosts, self.body_bytes
        ))?;
        for FailedRequest { error, method, url } in &self.failures {
            printer.line(format_args!(
                "{BAD}no response{BAD:#}: {method} {url}: {error}"
            ))?;
        }
        for HttpError {
            status,
            method,
            url,
        } in &self.errors
        {
            printer.line(format_args!("{WARN}{status}{WARN:#}: {method} {url}"))?;
        }
        for RefusedResponse {
            reason,
            method,
            url,
        } in &self.refused
        {
            printer.line(format_args!(
                "{WARN}refused by the browser{WARN:#}: {method} {url}: {reason}"
            ))?;
        }
        if self.runs.len() > 1 {
            self.print_runs(printer)?;
        }
        for (reason, count) in &self.skipped {
            printer.note(format_args!("{WARN}skipped{WARN:#}: {count} {reason}"));
        }
        for remark in &self.remarks {
            printer.note(format_args!("{WARN}note{WARN:#}: {remark}"));
        }
        Ok(())
    }

    fn print_runs(&self, printer: &Printer) -> anyhow::Result<()> {
        let mut is_written = true;
        for (number, run) in (1..).zip(&self.runs) {
            let Some(fingerprint) = &run.fingerprint else {
                let fault = run.error.as_deref().unwrap_or_default();
                printer.line(format_args!("run {number}  {BAD}failed{BAD:#}: {fault}"))?;
                continue;
            };
            let same = run.added.is_empty() && run.missing.is_empty();
            let verdict = match (std::mem::take(&mut is_written), same) {
                (true, _) => format!("{DIM}written{DIM:#}"),
                (_, true) => format!("{GOOD}identical{GOOD:#}"),
                (_, false) => format!("{WARN}different{WARN:#}"),
            };
            printer.line(format_args!("run {number}  {fingerprint}  {verdict}"))?;
            for fetched in &run.added {
                printer.line(format_args!("  + {fetched}"))?;
            }
            for fetched in &run.missing {
                printer.line(format_args!("  - {fetched}"))?;
            }
        }
        Ok(())
    }
}
