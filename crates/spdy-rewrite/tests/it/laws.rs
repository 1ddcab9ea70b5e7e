//! Properties that hold for any URL and any page.

use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use proptest::prelude::*;
use spdy_rewrite::csp;
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::verdict::{ReferenceSource, Verdict};

use crate::support::{self, discovering, rules, url};

fn rewritten(rules: &Arc<Rules>, pieces: &[&[u8]]) -> Vec<u8> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    let page = url("https://www.site.test/dir/page.html");
    let head = PageHead::rewrite(rules, &page, StatusCode::OK, &mut headers, true);
    let mut rewriter = HtmlRewriter::new(rules, &page, head, None);
    let mut out = Vec::new();
    pieces
        .iter()
        .for_each(|piece| rewriter.write(piece, &mut out));
    rewriter.end(&mut out);
    out
}

/// Pages full of what matters here, and of what browsers put up with.
fn any_page() -> impl Strategy<Value = Vec<u8>> {
    const PIECES: [&str; 31] = [
        "<img src=https://cdn.test/a.png>",
        "<img srcset='https://cdn.test/a,b.png 1x, //cdn.test/c.png 2x'",
        "<link rel=preconnect href=https://cdn.test>",
        "<link rel=stylesheet href='https://cdn.test/a.css?x=1&amp;y=2'>",
        "<link rel=stylesheet integrity=sha256-AA href=/own.css>",
        "<",
        "img src=//cdn.test/a.png>",
        "<img src=//cdn.test/a.png a/='><i'",
        "<i data-src='//cdn.test/a.png' a/='>",
        "<script type=module src=https://cdn.test/m.js>",
        "<script type=importmap>{\"imports\":{\"a\":\"https://cdn.test/a.js\"}}",
        "</script>",
        "<style>@import 'https://cdn.test/a.css';",
        "p{background:url(//cdn.test/a.png)}",
        "</style>",
        "<p style=\"background:url('https://cdn.test/a.png')\">",
        "<base href=//cdn.test/x/>",
        "<noscript>",
        "</noscript>",
        "<svg><style>",
        "<template>",
        "<!--",
        "-->",
        "<meta charset=utf-8>",
        "<meta http-equiv=content-security-policy content='img-src https://cdn.test'>",
        "\u{e4}\u{20ac}",
        "<textarea>",
        "<img src=https://open.test/\u{e4}?",
        "&quot;&#x2f;&",
        "\"'>",
        "<table><select><math>",
    ];
    let piece = prop_oneof![
        8 => proptest::sample::select(&PIECES[..]).prop_map(|piece| piece.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..5),
    ];
    let page = proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat());
    // Long enough at times for the encoding to be settled before the end.
    (page, proptest::bool::ANY).prop_map(|(page, long)| {
        if long {
            [vec![b' '; 1100], page].concat()
        } else {
            page
        }
    })
}

fn any_url() -> impl Strategy<Value = String> {
    let host = proptest::sample::select(vec![
        "cdn.test",
        "CDN.test",
        "folder.test",
        "a.wild.test",
        "port.test:8443",
        "plain.test",
        "shared.test",
        "open.test",
        "open.test:444",
        "evil.test",
        "www.site.test",
        "img.site.test",
        "127.1",
        "[::1]",
        "localhost",
        "u:p@cdn.test",
        "b\u{fc}cher.test",
        "cdn.test.",
        "open.test:443",
    ]);
    let scheme = proptest::sample::select(vec!["https", "http"]);
    let path = "(/[a-zA-Z0-9._~%!$&'()*+,;=:@ \"<>\\\\^`{|}\u{e4}/-]{0,12}){0,3}(\\?[ -~]{0,12})?(#[a-z]{0,3})?";
    (scheme, host, path).prop_map(|(scheme, host, path)| format!("{scheme}://{host}{path}"))
}

fn any_policy() -> impl Strategy<Value = String> {
    let name = proptest::sample::select(vec![
        "img-src",
        "script-src",
        "default-src",
        "Font-Src",
        "report-uri",
    ]);
    let scheme = proptest::sample::select(vec!["", "https://", "http://", "wss://", "HTTPS://"]);
    let host = proptest::sample::select(vec![
        "cdn.test",
        "CDN.test",
        "*.wild.test",
        "a.wild.test",
        "port.test:8443",
        "port.test:*",
        "plain.test",
        "shared.test",
        "open.test",
        "open.test:443",
        "a.-src",
        "open.test:",
        "*",
        "127.1",
        "www.site.test",
        "'self'",
        "open.test\u{1}",
        "data:",
    ]);
    let source = (
        scheme,
        host,
        "(/([!-~]|%[0-9a-f]{2}|\\.\\.|\u{1}|\u{e4}){0,6}){0,3}",
    )
        .prop_map(|(scheme, host, path)| format!("{scheme}{host}{path}"));
    let directive = (name, proptest::collection::vec(source, 0..4))
        .prop_map(|(name, sources)| format!("{name} {}", sources.join(" ")));
    proptest::collection::vec(directive, 1..4).prop_map(|directives| directives.join("; "))
}

fn any_kind() -> impl Strategy<Value = Kind> {
    proptest::sample::select(&Kind::ALL[..])
}

/// `url` with an encoded `^` in its path.
fn as_browsers_send(url: &url::Url) -> url::Url {
    let mut sent = url.clone();
    sent.set_path(&url.path().replace('^', "%5E"));
    sent
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A built URL opens as the URL that it was built from, and is built from that again.
    #[test]
    fn rewritten_url_opens_as_itself(text in any_url(), kind in any_kind()) {
        let rules = discovering();
        let Ok(original) = url::Url::parse(&text) else { return Ok(()) };
        if let Verdict::Rewrite(path) = rules.verdict(&original, kind, ReferenceSource::Site) {
            let (target, fragment) = path.split_once('#').map_or((path.as_str(), None), |(path, rest)| (path, Some(rest)));
            let proxied = rules.open(target);
            prop_assert!(proxied.is_ok(), "{path}: {proxied:?}");
            let proxied = proxied.unwrap();
            prop_assert!(proxied.kinds().has(kind), "{path} as {kind}");
            let mut back = proxied.url().clone();
            back.set_fragment(fragment);
            prop_assert_eq!(back, as_browsers_send(&original));
            prop_assert_eq!(proxied.path(), target);
        }
    }

    /// A URL that opens is byte for byte the URL that would be built from the result.
    #[test]
    fn only_buildable_urls_open(
        head in proptest::sample::select(vec!["-/s", "-/p", "-/x", "ka/s", "-//s"]),
        host in proptest::sample::select(vec!["cdn.test", "port.test~8443", "plain.test", "CDN.test", "cdn.test~443", "folder.test", "a.wild.test"]),
        path in "(/(lib/)?[!-~]{0,6}){0,3}(\\?[!-~]{0,8})?",
    ) {
        let rules = rules();
        let target = format!("/.spdy/1/{head}/{host}{path}");
        if let Ok(proxied) = rules.open(&target) {
            let kind = proxied.kinds().iter().next().unwrap();
            let again = rules.verdict(proxied.url(), kind, ReferenceSource::Site);
            prop_assert_eq!(again, Verdict::Rewrite(target));
        }
    }

    /// How a page is cut does not matter.
    #[test]
    fn any_page_split_gives_same_bytes(page in any_page(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let rules = rules();
        let unsplit = rewritten(&rules, &[&page]);
        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(page.len() + 1)).collect();
        cuts.push(0);
        cuts.push(page.len());
        cuts.sort_unstable();
        let pieces: Vec<_> = cuts.windows(2).map(|cut| &page[cut[0]..cut[1]]).collect();
        prop_assert_eq!(rewritten(&rules, &pieces), unsplit.clone());
        let bytes: Vec<_> = page.chunks(1).collect();
        prop_assert_eq!(rewritten(&rules, &bytes), unsplit);
    }

    /// A page that was rewritten is not rewritten again.
    #[test]
    fn rewriting_twice_changes_nothing_more(page in any_page()) {
        let rules = discovering();
        let once = rewritten(&rules, &[&page]);
        let twice = rewritten(&rules, &[&once]);
        prop_assert_eq!(String::from_utf8_lossy(&twice), String::from_utf8_lossy(&once));
    }

    /// Nor is a policy, however odd its sources.
    #[test]
    fn policy_is_not_rewritten_twice(policy in any_policy()) {
        let rules = discovering();
        if let Some(once) = csp::rewrite(&rules, rules.site(), &policy) {
            prop_assert_eq!(csp::rewrite(&rules, rules.site(), &once), None, "{}", once);
        }
    }

    /// A page that names no other host is the same bytes.
    #[test]
    fn nothing_to_move_is_nothing_changed(page in any_page()) {
        let rules = support::compile(&spdy_rewrite::rules::config::Config::default(), support::keys());
        prop_assert_eq!(rewritten(&rules, &[&page]), page);
    }
}

fn is_send<T: Send>(_: &T) {}

#[test]
fn rewriter_is_send() {
    let rules = rules();
    let page = url("https://www.site.test/");
    let head = PageHead::rewrite(&rules, &page, StatusCode::OK, &mut HeaderMap::new(), true);
    is_send(&HtmlRewriter::new(&rules, &page, head, None));
}
