//! The text of a page: which pages are parsed at all, in which encoding, and that every byte that is not rewritten is unchanged.

use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::reference::page_report::PageSkipReason;

use crate::support::page::{becomes, html, rewrite_with, stays};
use crate::support::{rules, url};

#[test]
fn character_references_round_trip() {
    becomes(
        "<img src='https:&#47;/cdn.test/a.png?x=1&amp;y=2&lt=3'>",
        "<img src=\"{cdn}/a.png?x=1&amp;y=2&amp;lt=3\">",
    );
    stays("<img src='https:&sol;&sol;cdn.test/a.png'>");
}

#[test]
fn first_duplicate_attribute_wins() {
    becomes(
        "<img src=https://cdn.test/a.png src=https://cdn.test/b.png>",
        "<img src=\"{cdn}/a.png\" src=https://cdn.test/b.png>",
    );
}

#[test]
fn skipped_pages_pass_through() {
    let page = b"<img src=https://cdn.test/a.png>";
    let mut cases = vec![
        (html("application/xhtml+xml"), "not-html"),
        (html("text/html; charset=utf-16"), "encoding"),
        (html("text/html; charset=iso-2022-jp"), "encoding"),
    ];
    let mut no_transform = html("text/html");
    no_transform.insert(
        "cache-control",
        HeaderValue::from_static("public, No-Transform"),
    );
    let mut coded = html("text/html");
    coded.insert("content-encoding", HeaderValue::from_static("gzip"));
    let mut sandboxed = html("text/html");
    let policy = HeaderValue::from_static("img-src *, Sandbox allow-scripts");
    sandboxed.insert(CONTENT_SECURITY_POLICY, policy);
    cases.extend([
        (no_transform, "no-transform"),
        (coded, "content-coding"),
        (sandboxed, "sandboxed"),
    ]);
    for (mut headers, reason) in cases {
        let (out, report) = rewrite_with(&rules(), &mut headers, page);
        assert_eq!(out, page, "{reason}");
        assert_eq!(report.skip_reason.map(PageSkipReason::name), Some(reason));
    }
    let (rules, admin) = (rules(), url("https://www.site.test/admin/x"));
    let head = PageHead::rewrite(&rules, &admin, StatusCode::OK, &mut html("text/html"), true);
    assert_eq!(head.left.map(PageSkipReason::name), Some("opt-out"));
}

#[test]
fn ascii_superset_bytes_round_trip() {
    let bytes: Vec<u8> = (1..=255)
        .filter(|byte| !b"<>\"'&=".contains(byte))
        .collect();
    for label in [
        "utf-8",
        "windows-1252",
        "koi8-r",
        "shift_jis",
        "gb18030",
        "x-user-defined",
    ] {
        let page = [
            b"<p title='",
            &bytes[..],
            b"'>",
            &bytes,
            b"<img alt='",
            &bytes,
            b"' src=https://cdn.test/a.png>",
        ]
        .concat();
        let expected = [
            b"<p title='",
            &bytes[..],
            b"'>",
            &bytes,
            b"<img alt='",
            &bytes,
            b"' src=\"/.spdy/1/-/s/cdn.test/a.png\">",
        ]
        .concat();
        let (out, _) = rewrite_with(
            &rules(),
            &mut html(&format!("text/html; charset={label}")),
            &page,
        );
        assert_eq!(out, expected, "{label}");
    }
}

#[test]
fn non_ascii_url_is_rewritten_only_in_utf8() {
    let page = "<img src=https://cdn.test/\u{e4}.png>";
    becomes(page, "<img src=\"{cdn}/%C3%A4.png\">");
    let (out, report) = rewrite_with(
        &rules(),
        &mut html("text/html; charset=windows-1252"),
        page.as_bytes(),
    );
    assert_eq!(out, page.as_bytes());
    assert_eq!(report.skipped_by_reason.get("unknown-encoding"), Some(&1));
}

#[test]
fn charset_is_found_in_bom_and_meta() {
    let utf_16: Vec<u8> = "\u{feff}<img src=https://cdn.test/a.png>"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let (out, report) = rewrite_with(&rules(), &mut html("text/html"), &utf_16);
    assert_eq!(
        (out, report.skip_reason.map(PageSkipReason::name)),
        (utf_16, Some("encoding"))
    );
    let meta = b"<meta http-equiv=content-type content='text/html; charset=iso-2022-jp'><img src=https://cdn.test/a.png>";
    let (out, _) = rewrite_with(&rules(), &mut html("text/html"), meta);
    assert_eq!(out, meta);
    let utf_8 = "<meta charset=utf-8><img src=https://cdn.test/\u{e4}.png>";
    let (out, _) = rewrite_with(&rules(), &mut html("text/html"), utf_8.as_bytes());
    assert!(String::from_utf8(out).unwrap().contains("%C3%A4"));
}

#[test]
fn malformed_tag_is_unchanged() {
    // Browsers see one tag, with an attribute named `=`; with a blank for the slash the value would be markup.
    stays("<img src=https://cdn.test/a.png alt/=='><script src=//cdn.test/evil.js></script>'>");
    stays("<link rel=preconnect href=https://cdn.test x/=y><p style='' x/=y>");
    stays("<style x/=y>@import 'https://cdn.test/a.css';</style>");
    stays(
        "<meta http-equiv=content-security-policy content='img-src https://cdn.test' x/=y><img src=https://cdn.test/a.png>",
    );
    becomes(
        "<img src=https://cdn.test/a.png alt= =y>",
        "<img src=\"{cdn}/a.png\" alt= =y>",
    );
}
