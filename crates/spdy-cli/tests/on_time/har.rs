//! Pages as HAR files.

use serde_json::{Value, json};

/// When every page was recorded.
const START: &str = "2014-01-01T00:00:00.000Z";

/// A HAR with one page of `entries`.
pub(crate) fn page(entries: &[Value]) -> String {
    let har = json!({"log": {
        "version": "1.2",
        "creator": {"name": "test", "version": "1"},
        "pages": [{"id": "page", "title": "page", "startedDateTime": START, "pageTimings": {}}],
        "entries": entries,
    }});
    har.to_string()
}

/// A GET request, and its response with `status`, `headers` and `content`.
pub(crate) fn entry(url: &str, status: u16, headers: &[(&str, &str)], content: &Value) -> Value {
    let headers = headers.iter();
    let headers: Vec<_> = headers
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    json!({
        "pageref": "page",
        "startedDateTime": START,
        "time": 1,
        "timings": {"send": 0, "wait": 1, "receive": 0},
        "cache": {},
        "request": {
            "method": "GET", "url": url, "httpVersion": "HTTP/1.1", "headers": [], "queryString": [], "cookies": [],
            "headersSize": -1, "bodySize": 0,
        },
        "response": {
            "status": status, "statusText": "OK", "httpVersion": "HTTP/1.1", "headers": headers, "cookies": [],
            "content": content, "redirectURL": "", "headersSize": -1, "bodySize": content["size"],
        },
    })
}

/// The content of a text.
pub(crate) fn text(mime: &str, text: &str) -> Value {
    json!({"mimeType": mime, "size": text.len(), "text": text})
}

/// The content of a PNG image of `size` bytes, without the bytes.
pub(crate) fn image(size: u32) -> Value {
    json!({"mimeType": "image/png", "size": size})
}
