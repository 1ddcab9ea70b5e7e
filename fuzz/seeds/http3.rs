//! Seeds of HTTP/3: exchanges, control streams and header blocks, with a few violations of each rule.

use bytes::Bytes;
use spdy_fuzz::choices::Choices;
use spdy_fuzz::http3::StreamKind;
use spdy_h3::fuzz_api::{encode, frame};

use crate::Seeds;

// Frame types (RFC 9114 §7.2, RFC 9218 §7.2), and an unknown one.
const DATA: u64 = 0x0;
const HEADERS: u64 = 0x1;
const CANCEL_PUSH: u64 = 0x3;
const SETTINGS: u64 = 0x4;
const GOAWAY: u64 = 0x7;
const MAX_PUSH_ID: u64 = 0xd;
const PRIORITY_UPDATE: u64 = 0xf_0700;
const GREASE: u64 = 0x21;

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "site.test"),
    (":path", "/a?b"),
];

/// Heads of messages, valid and invalid.
fn heads() -> Vec<(&'static str, Vec<(&'static str, &'static str)>)> {
    let get = |more: &[(&'static str, &'static str)]| [&GET[..], more].concat();
    vec![
        ("get", get(&[])),
        (
            "cookies",
            get(&[("cookie", "a=b"), ("x", "y"), ("cookie", "c=d")]),
        ),
        ("host", get(&[("host", "site.test")])),
        (
            "two-hosts",
            get(&[("host", "site.test"), ("host", "other.test")]),
        ),
        (
            "userinfo",
            [&GET[..2], &[(":authority", "me@site.test"), GET[3]]].concat(),
        ),
        (
            "by-host",
            vec![GET[0], GET[1], GET[3], ("host", "site.test:8443")],
        ),
        (
            "connect",
            vec![(":method", "CONNECT"), (":authority", "site.test:443")],
        ),
        (
            "asterisk",
            vec![(":method", "OPTIONS"), GET[1], GET[2], (":path", "*")],
        ),
        (
            "post",
            get(&[
                ("content-length", "5"),
                ("priority", "u=1, i"),
                ("te", "trailers"),
            ]),
        ),
        (
            "ok",
            vec![
                (":status", "200"),
                ("content-type", "text/html; charset=utf-8"),
            ],
        ),
        (
            "early",
            vec![(":status", "103"), ("link", "</a.css>; rel=preload")],
        ),
        ("trailers", vec![("grpc-status", "0")]),
        ("capital", get(&[("Capital", "x")])),
        ("of-http1", get(&[("connection", "close")])),
    ]
}

pub(crate) fn streams(seeds: &mut Seeds) {
    let mut push = |way: StreamKind, name: &str, wire: &[u8]| {
        let at = StreamKind::ALL.iter().position(|it| *it == way);
        let way = at.expect("a kind of stream") as u8;
        // stream kind, limit, lengths of pieces
        for (limit, lengths) in [(0, 1), (1, 3)] {
            let bytes = Choices::join(&[way, limit, lengths, 200, 2], wire);
            seeds.push("http3", format!("{name}-{limit}"), bytes);
        }
    };
    let trailers = frame(HEADERS, &encode(&[("a".into(), "b".into())]));
    for (name, fields) in heads() {
        let fields = fields.iter().map(|(name, value)| {
            let bytes = |text: &'static str| Bytes::from_static(text.as_bytes());
            (bytes(name), bytes(value))
        });
        let block = encode(&fields.collect::<Vec<_>>());
        push(StreamKind::Block, name, &block);
        let stream = [
            &frame(HEADERS, &block)[..],
            &frame(DATA, b"hello"),
            &trailers,
        ]
        .concat();
        push(StreamKind::Exchange, name, &stream);
    }
    for (name, block) in [
        ("dynamic", &b"\x01\x00"[..]),
        ("dynamic-name", b"\x00\x00\x40\x00"),
        ("long-integer", b"\x00\x00\xff\xff\xff\xff\x7f"),
        (
            "huffman",
            b"\x00\x00\x50\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
        ),
        ("no-more-table", b"\x00\x00\xff\x24"),
    ] {
        push(StreamKind::Block, name, block);
    }
    let settings = frame(SETTINGS, &[0x01, 0x00, 0x06, 0x44, 0x00, 0x07, 0x00]);
    let behind = |frames: &[Bytes]| [&settings[..], &frames.concat()].concat();
    let update = |field: &[u8]| frame(PRIORITY_UPDATE, &[&[0x04], field].concat());
    for (name, stream) in [
        ("settings", behind(&[])),
        ("settings-twice", settings.repeat(2)),
        ("settings-of-http2", frame(SETTINGS, &[0x02, 0x00]).to_vec()),
        (
            "same-setting",
            frame(SETTINGS, &[0x06, 0x00, 0x06, 0x00]).to_vec(),
        ),
        ("no-settings", frame(GOAWAY, &[0x00]).to_vec()),
        (
            "goaways",
            behind(&[frame(GOAWAY, &[0x08]), frame(GOAWAY, &[0x04])]),
        ),
        (
            "goaway-rises",
            behind(&[frame(GOAWAY, &[0x04]), frame(GOAWAY, &[0x08])]),
        ),
        ("goaway-of-no-request", behind(&[frame(GOAWAY, &[0x03])])),
        ("goaway-too-long", behind(&[frame(GOAWAY, &[0x00, 0x00])])),
        (
            "priorities",
            behind(&[update(b"u=1, i"), update(b"u=9"), update(b"\xff")]),
        ),
        (
            "pushes",
            behind(&[frame(MAX_PUSH_ID, &[0x00]), frame(CANCEL_PUSH, &[0x00])]),
        ),
        (
            "grease",
            behind(&[frame(GREASE, b"abc"), frame(GREASE, b"")]),
        ),
        ("data", behind(&[frame(DATA, b"x")])),
    ] {
        push(StreamKind::ToServer, name, &stream);
        push(StreamKind::ToClient, name, &stream);
        push(StreamKind::Exchange, name, &stream);
    }
}
