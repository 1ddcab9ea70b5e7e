//! Seeds of the cache targets: heads with a known meaning.

use spdy_fuzz::choices::Choices;

use crate::Seeds;

/// Name, and the fields of a request, of its answer, and of a 304.
const HEADS: [(&str, &str, &str, &str); 9] = [
    (
        "fresh",
        "accept-language: en, de;q=0.5",
        "cache-control: public, max-age=600, stale-while-revalidate=30\ndate: Sat, 21 Nov 2026 12:00:00 GMT\netag: \"a\"\nvary: accept-language",
        "etag: \"a\"\ncache-control: max-age=60",
    ),
    (
        "ranges",
        "range: bytes=0-1,4-5,-3\nif-range: \"a\"",
        "cache-control: s-maxage=600\netag: \"a\"\ncontent-type: text/plain\ncontent-length: 100",
        "etag: W/\"a\"",
    ),
    (
        "conditions",
        "if-none-match: W/\"b\", \"a\"\nif-modified-since: Wednesday, 01-Jan-20 00:00:00 GMT",
        "expires: Thu Aug  8 02:01:18 2050\nlast-modified: Wed, 01 Jan 2020 00:00:00 GMT\netag: \"a\"\nage: 10, 20",
        "last-modified: Wed, 01 Jan 2020 00:00:00 GMT\nage: 5",
    ),
    (
        "targeted",
        "cache-control: max-age=5, max-stale, min-fresh=\"3\"",
        "cdn-cache-control: max-age=9, no-cache=\"x\";a=1, foo=(a b)\ncache-control: no-store",
        "cdn-cache-control: private",
    ),
    (
        "private",
        "authorization: x\ncookie: a=b",
        "cache-control: private=\"set-cookie\", max-age=60, must-revalidate, extension=\"no-\\\"store, private\"\nset-cookie: a=b",
        "cache-control: no-store",
    ),
    (
        "vary",
        "foo: 1, 2\nfoo: \"3,4\"\naccept-encoding: gzip;q=1.0, br",
        "vary: foo, Accept-Encoding\nvary: bar\ncache-control: max-age=60\nconnection: close, baz\nbaz: 1",
        "vary: *",
    ),
    (
        "tags",
        "",
        "cache-tag: a, b\nsurrogate-key: c d\ncache-groups: \"e\", \"f\"\nlast-modified: Wed, 01 Jan 2020 00:00:00 GMT",
        "",
    ),
    (
        "post",
        "pragma: no-cache",
        "location: /b\ncontent-location: https://site.test/a?b\ncache-control: max-age=60",
        "",
    ),
    (
        "understood",
        "",
        "cache-control: no-store, must-understand, max-age=60, immutable",
        "",
    ),
];

pub(crate) fn heads(seeds: &mut Seeds) {
    for (name, request, answer, later) in HEADS {
        let wire = [request, answer, later].join("\0");
        for choices in [
            &[0u8][..],
            &[0, 2, 0, 1, 1, 1, 30],
            &[0, 0, 5, 0, 1, 2, 200],
        ] {
            seeds.push(
                "cache_headers",
                name,
                Choices::join(choices, wire.as_bytes()),
            );
        }
    }
    seeds.push(
        "cache_headers",
        "file",
        Choices::join(&[255], b"spdyobj\x01\0\0\0\x01\0\0\0\0\0\0\0\0 "),
    );
}
