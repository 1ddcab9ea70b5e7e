//! Imports a speedreport (PhantomJS, 2013) as a replica: `{"url", "assets": [{"request", "response"}]}`, without bodies.

use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use crate::error::OpenError;
use crate::import::assemble::{RecordedExchange, RecordedPage, assemble};
use crate::import::har::import::timestamp;
use crate::import::har::model::{Count, Fields, Number, Text};
use crate::import::notes::ImportNotes;
use crate::import::result::{ImportOptions, OpenedReplica};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    #[serde(default)]
    url: Text,
    #[expect(
        clippy::vec_box,
        reason = "assets are large, and a growing Vec of them would use three times the memory"
    )]
    assets: Vec<Box<Asset>>,
    /// Milliseconds since 1970: start of the request, and end of the load.
    #[serde(default)]
    request_time: Number,
    #[serde(default)]
    response_time: Number,
}

/// Number of assets of a report. Counting them stores nothing of the text.
#[derive(Debug, Deserialize)]
struct Shape {
    assets: Count,
}

#[derive(Debug, Deserialize)]
struct Asset {
    #[serde(default)]
    request: Request,
    #[serde(default)]
    response: Response,
}

#[derive(Debug, Default, Deserialize)]
struct Request {
    #[serde(default)]
    method: Text,
    #[serde(default)]
    url: Text,
    #[serde(default)]
    headers: Fields,
    #[serde(default)]
    time: Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default)]
    status: Number,
    #[serde(default)]
    status_text: Text,
    #[serde(default)]
    headers: Fields,
    #[serde(default)]
    content_type: Text,
    #[serde(default)]
    body_size: Number,
    /// The first and the last byte; some writers swap the two.
    #[serde(default)]
    received: Text,
    #[serde(default)]
    time: Text,
}

/// Imports the page in `text`.
pub(crate) fn import(
    text: &[u8],
    name: &str,
    options: &ImportOptions,
) -> Result<OpenedReplica, OpenError> {
    // Counted before any is parsed: each needs far more memory than its minimum of two characters.
    let shape: Shape = first_value(text)?;
    if shape.assets.0 > options.limits.records {
        return Err(OpenError::Limit {
            what: "assets",
            limit: options.limits.records,
        });
    }
    let report: Report = first_value(text)?;
    if let Some(page @ 2..) = options.page {
        return Err(OpenError::NoSuchPage { page, pages: 1 });
    }
    let mut notes = ImportNotes::new("speedreport");
    notes.remark("sizes are those of the decoded bodies, unless there is a Content-Length");
    let mut recorded = Vec::new();
    for asset in &report.assets {
        match parse_asset(asset) {
            Ok(exchange) => recorded.push(exchange),
            Err(reason) => notes.skip(reason),
        }
    }
    let instant =
        |number: Number| Timestamp::from_millisecond(number.count()?.try_into().ok()?).ok();
    let (started, ended) = (instant(report.request_time), instant(report.response_time));
    let page = RecordedPage {
        name: name.to_owned(),
        source: format!("speedreport, page {}; licence not recorded", report.url.0),
        url: Some(report.url.0),
        started,
        dom_content_loaded: None,
        load: started
            .zip(ended)
            .and_then(|(started, ended)| between(started, ended)),
    };
    assemble(page, recorded, notes, &options.limits)
}

/// The JSON value at the start of `text`. The file is a JavaScript statement: a semicolon may follow.
fn first_value<T: DeserializeOwned>(text: &[u8]) -> Result<T, OpenError> {
    let fault = |what: String| OpenError::Json {
        form: "speedreport",
        what,
    };
    let first = serde_json::Deserializer::from_slice(text)
        .into_iter()
        .next();
    let first = first.ok_or_else(|| fault("empty".to_owned()))?;
    first.map_err(|error| fault(error.to_string()))
}

fn between(from: Timestamp, to: Timestamp) -> Option<Duration> {
    Duration::try_from(to.duration_since(from)).ok()
}

fn parse_asset(asset: &Asset) -> Result<RecordedExchange, &'static str> {
    let (request, response) = (&asset.request, &asset.response);
    let url = Url::parse(&request.url.0).map_err(|_| "with an invalid URL")?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("URLs that are not http or https");
    }
    let status = response
        .status
        .count()
        .and_then(|status| u16::try_from(status).ok());
    let status = status
        .filter(|status| (200..=999).contains(status))
        .ok_or("without a response (blocked, failed or aborted)")?;
    let fields = |headers: &Fields| {
        let headers = headers.0.iter();
        headers
            .map(|header| (header.name.0.clone(), header.value.0.clone()))
            .collect()
    };
    let started = timestamp(&request.time.0);
    let (one, other) = (timestamp(&response.received.0), timestamp(&response.time.0));
    let (first, last) = (one.min(other).or(one).or(other), one.max(other));
    Ok(RecordedExchange {
        method: http::Method::from_bytes(request.method.0.as_bytes()).unwrap_or(http::Method::GET),
        is_http_10: false,
        status,
        reason: response.status_text.0.clone(),
        request_fields: fields(&request.headers),
        response_fields: fields(&response.headers),
        started,
        queued: None,
        wait: started
            .zip(first)
            .and_then(|(started, first)| between(started, first)),
        receive: first
            .zip(last)
            .and_then(|(first, last)| between(first, last)),
        address: None,
        transferred: response.body_size.count(),
        text: None,
        content_type: response.content_type.0.clone(),
        hint: None,
        initiator_url: None,
        url,
    })
}
