//! Seeds of the targets for recorded pages.

use bytes::Bytes;
use spdy_fuzz::choices::Choices;
use spdy_page::archive;
use spdy_page::coding::gzip_member;
use spdy_page::open::{ImportOptions, read};

use crate::Seeds;
use crate::support::netlog::NetLog;

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
    for (target, file) in [
        ("har", HAR),
        ("warc", WARC),
        ("speedreport", SPEEDREPORT.as_bytes()),
    ] {
        let mut gzipped = Vec::new();
        gzip_member(file, &mut gzipped);
        seeds.push(target, "gzipped", gzipped);
        let opened = read(Bytes::from_static(file), target, &ImportOptions::default());
        let mut replica = opened.expect("the seed is a valid recording").replica;
        // A recording of few exchanges leaves room for mutations.
        replica.exchanges.truncate(replica.start + 2);
        seeds.push(
            "replica",
            format!("{target}-gzipped"),
            archive::encode(&replica, true),
        );
        seeds.push("replica", target, archive::encode(&replica, false));
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

pub(crate) fn logs(seeds: &mut Seeds) {
    let html = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 18\r\n\r\n";
    let chunked = "HTTP/1.1 404 x\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut log = NetLog::default();
    let socket = log.socket("192.0.2.7:80");
    log.exchange("http://a.test/", true, socket, html, "<script src=/b.js>");
    let body = "2;x=1\r\nhi\r\n0\r\nT: x\r\n\r\n";
    log.exchange("http://a.test/b.js", false, socket, chunked, body);
    let failed = log.start("GET", "http://a.test/c", false);
    log.end(failed, -3);
    let text = log.text();
    seeds.push("netlog", "http/1.1", &text[..]);
    seeds.push("netlog", "cut", &text[..text.len() - 40]);

    // The bytes sent differ from the request: a connection to a proxy.
    let mut log = NetLog::default();
    let socket = log.socket("192.0.2.7:80");
    log.bytes(
        "SOCKET_BYTES_SENT",
        socket,
        b"CONNECT a.test:80 HTTP/1.1\r\n\r\n",
    );
    log.exchange("http://a.test/", true, socket, html, "<script src=/b.js>");
    seeds.push("netlog", "proxy", log.text());

    let mut log = NetLog::default();
    let frames = [
        &[0, 0, 0, 4, 0, 0, 0, 0, 0][..],
        &[0, 0, 4, 0, 0x9, 0, 0, 0, 1, 1, b'h', b'i', 0],
    ];
    let answers: [&[&str]; 2] = [&[":status: 200", "content-type: text/html"], &["t: x"]];
    log.http2(
        "https://a.test/",
        true,
        &answers,
        frames[0],
        &frames.concat(),
    );
    seeds.push("netlog", "http/2", log.text());

    let devtools = [
        r#"{"method":"Network.requestWillBeSent","params":{"requestId":"1","request":{"url":"http://a.test/","method":"GET","initialPriority":"VeryHigh"},"timestamp":1.0,"wallTime":1370340000,"type":"Document"}}"#,
        r#"{"method":"Network.responseReceived","params":{"requestId":"1","response":{"timing":{"requestTime":1.001,"dnsStart":0,"dnsEnd":1,"connectStart":1,"connectEnd":3,"sslStart":-1,"sslEnd":-1,"sendStart":3,"receiveHeadersEnd":9}}}}"#,
        r#"{"method":"Network.requestWillBeSent","params":{"requestId":"2","request":{"url":"http://a.test/b.js","method":"GET"},"timestamp":1.01,"initiator":{"stack":{"callFrames":[{"url":"http://a.test/"}]}},"type":"Script"}}"#,
        r#"{"method":"Network.loadingFailed","params":{"requestId":"2","timestamp":1.02,"errorText":"net::ERR_ABORTED","blockedReason":"csp"}}"#,
        r#"{"method":"Page.loadEventFired","params":{"timestamp":1.1}}"#,
        r#"{"method":"Tracing.dataCollected","params":{"value":[{"name":"EvaluateScript","dur":7,"args":{"data":{"url":"http://a.test/b.js"}}}]}}"#,
    ];
    let watched = std::iter::once(&text[..])
        .chain(devtools)
        .collect::<Vec<_>>()
        .join("\0");
    seeds.push("netlog", "watched", watched);
}

pub(crate) fn folders(seeds: &mut Seeds) {
    let field = |number: u8, bytes: &[u8]| {
        let len = u8::try_from(bytes.len()).expect("a short field");
        assert!(len < 0x80, "a length of one byte");
        [&[number << 3 | 2, len], bytes].concat()
    };
    let message = |line: &str, name: &str, value: &str, body: &[u8]| {
        let header = [field(1, name.as_bytes()), field(2, value.as_bytes())].concat();
        [field(1, line.as_bytes()), field(2, &header), field(3, body)].concat()
    };
    let exchange = |line: &str, kind: &str, body: &[u8]| {
        let request = field(4, &message(line, "Host", "a.test", b""));
        let response = field(5, &message("HTTP/1.1 200 OK", "Content-Type", kind, body));
        let file = [
            &field(1, b"192.0.2.7")[..],
            &[0x10, 80, 0x18, 1],
            &request,
            &response,
        ]
        .concat();
        let len = u16::try_from(file.len()).expect("a short file");
        [&len.to_be_bytes()[..], &file].concat()
    };
    let page = exchange("GET / HTTP/1.1", "text/html", b"<img src=/b.png>");
    let image = exchange("GET /b.png HTTP/1.1", "image/png", b"b");
    seeds.push(
        "mahimahi",
        "two files",
        [page.clone(), image.clone()].concat(),
    );
    seeds.push("mahimahi", "twice", [image, page.clone(), page].concat());
}
