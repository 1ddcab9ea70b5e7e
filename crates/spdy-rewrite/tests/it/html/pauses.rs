//! A page whose origin pauses before its encoding is determined: the output at the pause, and how the rest is rewritten.

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use proptest::prelude::*;
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::reference::page_report::{PageReport, PageSkipReason};

use crate::support::{rules, url};

/// A page in pieces, after each of which its origin pauses: what had gone out by then, all of it, and the report.
fn paused(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>, PageReport) {
    paused_as("text/html", pieces)
}

fn paused_as(kind: &'static str, pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>, PageReport) {
    let (rules, mut headers) = (rules(), HeaderMap::new());
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    let page = url("https://www.site.test/dir/page.html");
    let head = PageHead::rewrite(&rules, &page, StatusCode::OK, &mut headers, true);
    let mut rewriter = HtmlRewriter::new(&rules, &page, head, None);
    let (mut out, mut outputs) = (Vec::new(), Vec::new());
    for piece in pieces {
        rewriter.write(piece, &mut out);
        rewriter.flush(&mut out);
        assert!(!rewriter.is_waiting() || out.is_empty());
        outputs.push(out.clone());
    }
    let report = rewriter.end(&mut out);
    (outputs, out, report)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn pause_sends_all_but_a_partial_tag() {
    let (outputs, all, report) = paused(&[
        b"<p>Hello <img src=https://cdn.test/a.png> and <img src=https://cdn.te",
        b"st/b.png>",
    ]);
    assert_eq!(
        text(&outputs[0]),
        "<p>Hello <img src=\"/.spdy/1/-/s/cdn.test/a.png\"> and "
    );
    assert!(text(&all).ends_with("<img src=\"/.spdy/1/-/s/cdn.test/b.png\">"));
    assert_eq!((report.proxied, report.skip_reason), (2, None));
}

/// Before the encoding is determined, only ASCII can be read for certain.
#[test]
fn charset_found_after_pause_applies_from_there() {
    let image = "<img src=https://cdn.test/\u{e4}.png>";
    let rewritten = "<img src=\"/.spdy/1/-/s/cdn.test/%C3%A4.png\">";
    let (outputs, all, _) = paused(&[
        image.as_bytes(),
        b"<meta charset=ut",
        b"f-8>",
        image.as_bytes(),
    ]);
    assert_eq!(text(&outputs[0]), image, "it stays");
    assert_eq!(
        text(&all),
        [image, "<meta charset=utf-8>", rewritten].concat()
    );
    let (_, all, _) = paused(&[b"<meta charset=utf-8>", image.as_bytes()]);
    assert_eq!(text(&all), ["<meta charset=utf-8>", rewritten].concat());
    // The end of a page is the end of the search, too; and so is the end of the first KiB.
    let filling = "x".repeat(1024);
    let (_, all, _) = paused(&[
        b"<p>",
        filling.as_bytes(),
        b"<meta charset=utf-8>",
        image.as_bytes(),
    ]);
    assert!(text(&all).ends_with(image), "no browser reads that");
}

#[test]
fn header_charset_applies_after_short_pause() {
    let image = "<img src=https://cdn.test/\u{e4}.png>";
    let kind = "text/html; charset=utf-8";
    let (outputs, all, _) = paused_as(kind, &[b"\n", image.as_bytes()]);
    assert_eq!(text(&outputs[0]), "\n");
    assert_eq!(
        text(&all),
        "\n<img src=\"/.spdy/1/-/s/cdn.test/%C3%A4.png\">"
    );
}

#[test]
fn charset_label_split_by_pause_is_read() {
    let (_, all, _) = paused(&[
        b"<meta charset=utf-1",
        b"6><img src='https://cdn.test/\xc3\xa4.png'>",
    ]);
    let expected = "<meta charset=utf-16><img src=\"/.spdy/1/-/s/cdn.test/%C3%A4.png\">";
    assert_eq!(text(&all), expected);
}

#[test]
fn non_ascii_superset_sends_nothing_or_passes_through() {
    let image = b"<img src=https://cdn.test/a.png>";
    // A byte order mark may be on its way.
    for start in [&b"\xef\xbb"[..], b"\xff", b"\xfe"] {
        let (outputs, ..) = paused(&[start]);
        assert_eq!(text(&outputs[0]), "");
    }
    let escaped = [b"\x1b$B<3\x1b(B", &image[..]].concat();
    let (outputs, all, report) = paused(&[&escaped, b"<meta charset=iso-2022-jp>"]);
    assert_eq!(text(&outputs[0]), "");
    assert!(all.starts_with(&escaped), "it passes");
    assert_eq!(report.skip_reason, Some(PageSkipReason::Encoding));
    // What was ASCII by all encodings is moved, and the rest passes.
    let (_, all, report) = paused(&[
        image,
        b"<meta charset=iso-2022-jp>",
        image,
        b"<img src=https://cdn.te",
    ]);
    let expected = [
        &b"<img src=\"/.spdy/1/-/s/cdn.test/a.png\"><meta charset=iso-2022-jp>"[..],
        image,
        b"<img src=https://cdn.te",
    ];
    assert_eq!(text(&all), text(&expected.concat()));
    assert_eq!(report.skip_reason, Some(PageSkipReason::Encoding));
    let (_, all, report) = paused(&[b"<p>", &escaped, image]);
    assert_eq!(text(&all), text(&[b"<p>", &escaped[..], image].concat()));
    assert_eq!(report.skip_reason, Some(PageSkipReason::Encoding));
}

proptest! {
    #[test]
    fn pauses_do_not_change_ascii_pages(
        pieces in proptest::collection::vec(
            prop::sample::select(vec![
                "<img src=https://cdn.test/a.png>",
                "<img srcset='https://cdn.test/a,b.png 1x, //cdn.test/c.png 2x'>",
                "<style>@import 'https://cdn.test/a.css';",
                "</style>",
                "<script>",
                "</script>",
                "<!--",
                "-->",
                "<",
                "<meta charset=",
                "utf-8>",
                "<meta charset='shift_jis'>",
                "<base href=//cdn.test/x/>",
                "text",
                "<link rel=preconnect href=https://cdn.test>",
            ]),
            0..30,
        ),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let page = pieces.concat().into_bytes();
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(page.len() + 1)).collect();
        cuts.extend([0, page.len()]);
        cuts.sort_unstable();
        let cut: Vec<&[u8]> = cuts.windows(2).map(|at| &page[at[0]..at[1]]).collect();
        let (_, in_pauses, report) = paused(&cut);
        let (rules, mut headers) = (rules(), HeaderMap::new());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
        let place = url("https://www.site.test/dir/page.html");
        let head = PageHead::rewrite(&rules, &place, StatusCode::OK, &mut headers, true);
        let mut rewriter = HtmlRewriter::new(&rules, &place, head, None);
        let mut at_once = Vec::new();
        rewriter.write(&page, &mut at_once);
        let same = rewriter.end(&mut at_once);
        prop_assert_eq!(text(&in_pauses), text(&at_once));
        prop_assert_eq!((report.proxied, report.skip_reason), (same.proxied, same.skip_reason));
    }
}
