//! Seeds of the doors of recorded pages.

use bytes::Bytes;
use spdy_fuzz::choices::Choices;
use spdy_page::archive;
use spdy_page::coding::gzip_member;
use spdy_page::open::{ImportOptions, read};

use crate::Seeds;

const HAR: &[u8] = include_bytes!("../../crates/spdy-page/tests/data/small.har");
const WARC: &[u8] = include_bytes!("../../crates/spdy-page/tests/data/small.warc");

const SPEEDREPORT: &str = r#"{"url":"http://a.test/","requestTime":1380000000000,"responseTime":1380000001500,"assets":[
{"request":{"method":"GET","url":"http://a.test/","headers":[{"name":"Host","value":"a.test"}],"time":"2013-09-24T05:20:00.000Z"},
"response":{"status":200,"statusText":"OK","headers":[{"name":"Content-Length","value":"90"}],"contentType":"text/html",
"bodySize":90,"received":"2013-09-24T05:20:00.300Z","time":"2013-09-24T05:20:00.400Z"}},
{"request":{"method":"GET","url":"http://a.test/b.png","time":"2013-09-24T05:20:00.500Z"},
"response":{"status":301,"headers":[{"name":"Location","value":"/c.png"}],"bodySize":"7"}}]};"#;

pub(crate) fn recordings(seeds: &mut Seeds) {
    seeds.push("har", "small", HAR);
    seeds.push("warc", "small", WARC);
    seeds.push("speedreport", "two assets", SPEEDREPORT);
    for (door, file) in [
        ("har", HAR),
        ("warc", WARC),
        ("speedreport", SPEEDREPORT.as_bytes()),
    ] {
        let mut gzipped = Vec::new();
        gzip_member(file, &mut gzipped);
        seeds.push(door, "gzipped", gzipped);
        let opened = read(Bytes::from_static(file), door, &ImportOptions::default());
        let mut replica = opened.expect("a seed that is read").replica;
        // One of few exchanges leaves room for mutations.
        replica.exchanges.truncate(replica.start + 2);
        seeds.push(
            "replica",
            format!("{door}-gzipped"),
            archive::encode(&replica, true),
        );
        seeds.push("replica", door, archive::encode(&replica, false));
    }
}

pub(crate) fn texts(seeds: &mut Seeds) {
    let texts = [
        (
            0,
            "<!doctype html><base href=/x/><title>t</title><link rel=stylesheet href=/a.css><link rel=preload as=font href='d?e'><script src=/b.js async></script><img src=\"/c.png\" srcset='/d?e 2x'><style>@import '/a.css'; p{background:url(/c.png)}</style><noscript><img src=x></noscript><script>'<img src=y>'</script><iframe srcdoc='<img src=z>'></iframe><meta http-equiv=refresh content='0; url=/d?e'><!-- <img src=w> -->",
        ),
        (
            1,
            "@charset \"utf-8\"; @import url( '/a.css' ) screen; @font-face{font-family:f;src:url(/d?e) format('woff')} a::after{content:\"url(x)\";background:u\\72l(/c.png)} /* url(y) */",
        ),
        (
            0,
            "<svg><image href=/c.png /><use xlink:href=#a></svg><video src=/d?e poster=/c.png><body background=/c.png><input type=image src=/c.png><object data=/d?e></object>",
        ),
    ];
    for (kind, text) in texts {
        seeds.push(
            "markup",
            &text[..12],
            Choices::join(&[kind, kind * 2], text.as_bytes()),
        );
    }
}
