//! Seeds of the rewriting targets.

use spdy_fuzz::choices::Choices;
use spdy_fuzz::rewrite::rules;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::rules::verdict::{ReferenceSource, Verdict};
use url::Url;

use crate::Seeds;

/// URLs from the abuse tests, and generated ones, including capabilities.
pub(crate) fn proxied_urls(seeds: &mut Seeds) {
    for line in include_str!("../../vectors/moved-urls/abuse.txt").lines() {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        if let [name, _, _, target, ..] = words[..]
            && !line.starts_with('#')
        {
            seeds.push("moved_url", name, target);
        }
    }
    let urls = [
        "https://a.test/x.png?y=z#w",
        "https://b.test/lib/x.css",
        "https://one.c.test/%2f",
        "https://d.test:8443/x",
        "http://e.test/x.png",
        "https://f.test/x.js",
        "https://g.test/x?y#z",
        "https://found.test/x.png",
    ];
    for text in urls {
        seeds.push("moved_url", text, text);
        let url = Url::parse(text).expect("a URL");
        for kind in Kind::ALL {
            if let Verdict::Rewrite(path) = rules().verdict(&url, kind, ReferenceSource::Site) {
                seeds.push("moved_url", format!("{text} as {kind}"), path);
            }
        }
    }
}

pub(crate) fn pages(seeds: &mut Seeds) {
    let texts = [
        "<iframe src=//g.test/x></iframe><script src=https://g.test/y.js></script><object data='https://g.test/z'></object>",
        "<base href=//a.test/x/><img src=y.png srcset='//a.test/z.png 2x, w.png'><p style=\"background:url('https://a.test/a b')\" background=//e.test/q>",
        "<style>@import '//b.test/lib/a.css';@font-face{src:url(https://d.test:8443/f)}p{--x:url(//a.test/y);filter:url(//a.test/z#w)}</style><noscript><img src=//a.test/n></noscript>",
        "<script type=importmap>{\"imports\":{\"x\":\"https://a.test/x.js\"},\"scopes\":{\"https://a.test/\":{}}}</script><script type=module nonce=n src=https://a.test/m.js></script>",
        "<script type=module></script><link rel=preconnect href=//a.test><link rel=preload as=image imagesrcset='//one.c.test/x 1x'><link rel=stylesheet integrity=sha256-AA href=//a.test/x>",
        "<meta charset=utf-8><meta http-equiv=content-security-policy content=\"img-src a.test found.test; script-src 'nonce-n'\"><img src=//found.test/\u{e4}><svg><image xlink:href=//a.test/x /><style>&amp;",
        "<img data-src='https:&#47;/a.test/x?a&amp;b&copy' data-srcset='//a.test/,x 2x'><!-- <img src=//a.test/x> --><template><input type=image src=//a.test/y>",
    ];
    for (number, text) in (0..).zip(texts) {
        seeds.push(
            "rewrite_html",
            &text[..12],
            Choices::join(&[number, number * 7, 3], text.as_bytes()),
        );
    }
}
