//! Heads of exchanges from HARs, as HTTP/1.1 text and as header blocks.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, Uri};
use serde_json::Value;
use spdy_frame::header_block::HeaderBlock;
use spdy_http::{http1_text, request, response};
use spdy_page::coding::gunzip;

use crate::VERSION;

/// Maximum size of an inflated recording; a larger file is skipped.
const LARGEST: usize = 256 * 1024 * 1024;

/// All exchanges of a folder, in the order of its files.
#[derive(Default)]
pub(crate) struct Corpus {
    pub(crate) recordings: usize,
    pub(crate) exchanges: Vec<Exchange>,
    /// Entries without a usable exchange, counted by reason.
    pub(crate) left_out: BTreeMap<&'static str, usize>,
}

/// One request and its response.
pub(crate) struct Exchange {
    /// Number of its recording.
    pub(crate) recording: usize,
    pub(crate) host: String,
    pub(crate) head: http::request::Parts,
    pub(crate) request: HeaderBlock,
    pub(crate) response: HeaderBlock,
    /// Bytes as HTTP/1.1 text.
    pub(crate) request_text: usize,
    pub(crate) response_text: usize,
}

impl Corpus {
    pub(crate) fn read(folder: &Path) -> io::Result<Self> {
        let files = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
        let mut files: Vec<_> = files.collect::<io::Result<_>>()?;
        files.sort();
        let mut corpus = Self::default();
        for file in files {
            let name = file.to_string_lossy();
            if !name.ends_with(".har") && !name.ends_with(".har.gz") {
                continue;
            }
            let mut text = std::fs::read(&file)?;
            if name.ends_with(".gz") {
                text = gunzip(&text, LARGEST).map_err(io::Error::other)?;
            }
            let text = String::from_utf8_lossy(&text);
            let text = text.trim_start_matches('\u{feff}');
            // Some writers append data to the JSON.
            let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
            let har = values.next().unwrap_or(Ok(Value::Null))?;
            let Some(entries) = har["log"]["entries"].as_array() else {
                return Err(io::Error::other(format!("{name} is no HAR")));
            };
            for entry in entries {
                match exchange(corpus.recordings, entry) {
                    Ok(exchange) => corpus.exchanges.push(exchange),
                    Err(reason) => *corpus.left_out.entry(reason).or_default() += 1,
                }
            }
            corpus.recordings += 1;
        }
        if corpus.exchanges.is_empty() {
            return Err(io::Error::other("no recording with exchanges"));
        }
        Ok(corpus)
    }
}

/// The exchange of a HAR's entry, or the reason why it is skipped.
fn exchange(recording: usize, entry: &Value) -> Result<Exchange, &'static str> {
    let (request, response) = (&entry["request"], &entry["response"]);
    let url = request["url"].as_str().unwrap_or_default();
    let url = url::Url::parse(url).map_err(|_| "with a url that cannot be read")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("not of HTTP");
    }
    let uri: Uri = url[..url::Position::AfterQuery]
        .parse()
        .map_err(|_| "with a url that cannot be read")?;
    let host = uri.authority().ok_or("without a host")?.to_string();
    let status = response["status"].as_u64().unwrap_or_default();
    if status < 100 {
        return Err("without an answer");
    }
    let (mut head, ()) = Request::new(()).into_parts();
    head.method = request["method"]
        .as_str()
        .unwrap_or_default()
        .parse()
        .map_err(|_| "with a method that is none")?;
    head.uri = uri;
    head.headers = headers(&request["headers"])?;
    let (mut answer, ()) = Response::new(()).into_parts();
    answer.status = u16::try_from(status)
        .ok()
        .and_then(|status| status.try_into().ok())
        .ok_or("with a status that is none")?;
    answer.headers = headers(&response["headers"])?;
    Ok(Exchange {
        recording,
        host,
        request: request::encode(VERSION, &head).map_err(|_| "without a host")?,
        response: response::encode(VERSION, &answer),
        request_text: http1_text::request_head_bytes(&head),
        response_text: http1_text::response_head_bytes(&answer),
        head,
    })
}

/// The headers of a message. The pseudo-headers in a HAR of HTTP/2 or SPDY are omitted: the first line has their values.
fn headers(list: &Value) -> Result<HeaderMap, &'static str> {
    let mut headers = HeaderMap::new();
    for pair in list.as_array().into_iter().flatten() {
        let (name, value) = (&pair["name"], &pair["value"]);
        let (name, value) = (
            name.as_str().unwrap_or_default(),
            value.as_str().unwrap_or_default(),
        );
        if name.starts_with(':') {
            continue;
        }
        let name: HeaderName = name.parse().map_err(|_| "with a header that is none")?;
        // A HAR joins repeated headers with line ends.
        for value in value.split('\n') {
            let value = HeaderValue::from_bytes(value.trim().as_bytes())
                .map_err(|_| "with a header that is none")?;
            if name == header::HOST && headers.contains_key(header::HOST) {
                continue;
            }
            headers.append(&name, value);
        }
    }
    Ok(headers)
}
