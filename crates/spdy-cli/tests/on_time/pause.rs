//! A page whose first connection rests for several timeouts and then carries a large response.
//!
//! TCP reduces its window meanwhile. A model that reduces it too far needs one more round trip, a twentieth of the load.

use std::path::Path;

use serde_json::{Value, json};

/// Writes the page as a HAR to `folder`; returns its path.
///
/// ```text
/// a.test   page, small image        (pause)            large image
/// b.test            style sheet of 290 kB, which names the large image
/// ```
pub(crate) fn write_page(folder: &Path) -> String {
    let page = r#"<link rel="stylesheet" href="http://b.test/style.css"><img src="/small.png">"#;
    let padding = "x".repeat(290_000);
    let sheet = format!("/*{padding}*/ body{{background:url(http://a.test/large.png)}}");
    let text = |mime: &str, text: &str| json!({"mimeType": mime, "size": text.len(), "text": text});
    let image = |size: u32| json!({"mimeType": "image/png", "size": size});
    let har = json!({"log": {
        "version": "1.2",
        "creator": {"name": "test", "version": "1"},
        "pages": [{"id": "page", "title": "http://a.test/", "startedDateTime": START, "pageTimings": {}}],
        "entries": [
            entry("http://a.test/", &text("text/html", page)),
            entry("http://b.test/style.css", &text("text/css", &sheet)),
            entry("http://a.test/small.png", &image(100_000)),
            entry("http://a.test/large.png", &image(300_000)),
        ],
    }});
    let path = folder.join("pause.har");
    std::fs::write(&path, har.to_string()).expect("write the page");
    path.to_str().expect("the path is UTF-8").to_owned()
}

const START: &str = "2014-01-01T00:00:00.000Z";

fn entry(url: &str, content: &Value) -> Value {
    let type_header = json!({"name": "Content-Type", "value": content["mimeType"]});
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
            "status": 200, "statusText": "OK", "httpVersion": "HTTP/1.1", "headers": [type_header], "cookies": [],
            "content": content, "redirectURL": "", "headersSize": -1, "bodySize": content["size"],
        },
    })
}
