//! A page whose first connection rests for several timeouts and then carries a large response.
//!
//! TCP reduces its window meanwhile. A model that reduces it too far needs one more round trip, a twentieth of the load.

use std::path::Path;

use serde_json::Value;

use super::har;

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
    let entry = |url: &str, content: &Value| {
        let mime = content["mimeType"].as_str().unwrap_or_default();
        har::entry(url, 200, &[("Content-Type", mime)], content)
    };
    let har = har::page(&[
        entry("http://a.test/", &har::text("text/html", page)),
        entry("http://b.test/style.css", &har::text("text/css", &sheet)),
        entry("http://a.test/small.png", &har::image(100_000)),
        entry("http://a.test/large.png", &har::image(300_000)),
    ]);
    let path = folder.join("pause.har");
    std::fs::write(&path, har).expect("write the page");
    path.to_str().expect("the path is UTF-8").to_owned()
}
