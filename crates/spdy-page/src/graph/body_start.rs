//! The end of a document's head.
//!
//! Before the first paint, a browser requests resources that the paint needs first. That phase ends when its parser reaches the body:
//! the `body` tag, or the first element that a head cannot contain.

use crate::graph::builder::text_of;
use crate::graph::html;
use crate::replica::{Exchange, Kind};

/// Transferred bytes of the body of `exchange` up to the end of the first tag of the document's body; `None` if the document is not
/// real or has no body.
#[must_use]
pub fn body_start(exchange: &Exchange) -> Option<u64> {
    if exchange.kind != Kind::Document {
        return None;
    }
    let decoded = text_of(exchange)?;
    let scan = html::scan(&decoded.text);
    scan.body.map(|at| decoded.transferred_at(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_ends_at_the_body_tag_or_the_first_body_element() {
        let start = |text: &'static str| {
            let url = "http://a.test/".parse().unwrap();
            let exchange = Exchange::synthetic(url, Kind::Document, "text/html", text);
            body_start(&exchange).map(|at| &text[..at as usize])
        };
        let head = "<html><head><title><p></title><noscript><img></noscript><script>'<p>'</script>";
        assert_eq!(start(head), None);
        for (text, expected) in [
            (
                "<title>x</title><meta><body class=a><p>",
                "<title>x</title><meta><body class=a>",
            ),
            (
                "<!-- <p> --><link rel=icon></head>\n<div>",
                "<!-- <p> --><link rel=icon></head>\n<div>",
            ),
        ] {
            assert_eq!(start(text), Some(expected));
        }
    }
}
