//! Seeds of the targets with textual input.

use spdy_cri::ChannelProtocol;
use spdy_fuzz::choices::Choices;
use spdy_netem::profile;
use spdy_testkit::{conformance, vectors};

use crate::Seeds;

/// Header blocks as lines: version, name, block.
const BLOCKS: [(u8, &str, &str); 9] = [
    (
        0,
        "request",
        ":method: GET\n:path: /a?b\n:version: HTTP/1.1\n:host: a.test:8080\n:scheme: https\ncookie: a=b\ncookie: c=d\naccept: */*",
    ),
    (
        0,
        "connect",
        ":method: CONNECT\n:path: a.test:443\n:version: HTTP/1.1\n:host: a.test:443",
    ),
    (
        1,
        "absolute",
        ":method: POST\n:path: http://a.test/\n:version: HTTP/1.0\n:host: a.test\n:scheme: http\ncontent-length: 3\nhost: a.test:80",
    ),
    (
        2,
        "request-2",
        "method: OPTIONS\nurl: *\nversion: HTTP/1.1\nhost: [::1]:80\nscheme: http\nconnection: close",
    ),
    (
        0,
        "response",
        ":status: 200 OK\n:version: HTTP/1.1\nset-cookie: a=b\nset-cookie: c=d\ncontent-type: text/html",
    ),
    (
        2,
        "response-2",
        "status: 404\nversion: HTTP/1.1\nte: trailers",
    ),
    (
        0,
        "push",
        ":path: /a.css\n:host: a.test\n:scheme: https\n:status: 200\n:version: HTTP/1.1",
    ),
    (
        2,
        "push-2",
        "url: https://a.test/a.css\nstatus: 200\nversion: HTTP/1.1",
    ),
    (0, "trailers", "x-checksum: 12\nx-more:"),
];

/// URLs of exec, attach and port-forward.
const POD_URLS: [&str; 6] = [
    "/api/v1/namespaces/a/pods/b/exec?command=ls&command=%2F&container=c&stdin=true&stdout=1&stderr",
    "/api/v1/namespaces/a/pods/b/attach?stdout=true&tty=false",
    "https://a:6443/api/v1/namespaces/a/pods/b/portforward?ports=80&ports=443",
    "/exec/a/b/c?command=sh&command=-c&command=echo+%24A&input=1&output=1&tty=1",
    "/attach/a/b/uid/c?output=1&error=1",
    "/portForward/a/b?port=80%2C443",
];

pub(crate) fn pod_urls(seeds: &mut Seeds) {
    for url in POD_URLS {
        seeds.push("pod_url", url, url);
    }
}

pub(crate) fn http(seeds: &mut Seeds) {
    for (version, name, lines) in BLOCKS {
        seeds.push("http", name, Choices::join(&[version], lines.as_bytes()));
    }
}

const REQUESTS: [&str; 4] = [
    "POST /exec/1 HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\nX-Stream-Protocol-Version: channel.k8s.io\r\n\r\n\u{80}",
    "GET / HTTP/1.1\nconnection: keep-alive, upgrade\nupgrade: h2c, spdy/3.1\nx-stream-protocol-version: a, channel.k8s.io\n\n",
    "GET / HTTP/1.0\r\n\r\n",
    "POST / HTTP/1.1\r\nContent-Length: 4\r\nUpgrade: SPDY/3.1\r\nConnection: upgrade\r\n\r\nabcd",
];

const ANSWERS: [&str; 5] = [
    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n\u{80}",
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\nforbidden",
    "HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;x=y\r\n you\r\n0\r\n\r\n",
    "HTTP/1.0 404 Not Found\r\n\r\nuntil the end",
    "HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
];

pub(crate) fn upgrades(seeds: &mut Seeds) {
    for (client, heads) in [(0, &REQUESTS[..]), (1, &ANSWERS[..])] {
        for (number, head) in heads.iter().enumerate() {
            for small in [0, 1] {
                let choices = [client, small, small, small, 5, 0, 1];
                let name = format!("{client}-{number}-{small}");
                seeds.push("upgrade", name, Choices::join(&choices, head.as_bytes()));
            }
        }
    }
}

/// The output of a client over a WebSocket, in frames.
fn behind_the_head(recorded: &[u8]) -> &[u8] {
    let head = recorded.windows(4).position(|four| four == b"\r\n\r\n");
    &recorded[head.map_or(0, |at| at + 4)..]
}

/// A frame of a client, masked with zeros: its first byte and its payload.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let len = u8::try_from(payload.len()).expect("a short frame");
    assert!(len < 126, "a frame of {len} bytes has its length elsewhere");
    [&[first, 0x80 | len, 0, 0, 0, 0], payload].concat()
}

/// Frames of a complete connection: for exec, typed text and then a terminal size.
pub(crate) fn channels(seeds: &mut Seeds) {
    const TEXT: u8 = 0x81;
    const BINARY: u8 = 0x82;
    let mut push = |name: &str, choices: &[u8], wire: &[u8]| {
        seeds.push("websocket_channels", name, Choices::join(choices, wire));
    };
    let recorded = vectors::bytes("kubernetes/ws_exec.c2s.bin");
    push("recorded", &[0, 0, 0, 9, 200], behind_the_head(&recorded));
    let close = frame(0x88, b"\x03\xe8");
    let size = br#"{"Width":80,"Height":24}"#;
    for version in 0..ChannelProtocol::ALL.len() as u8 {
        let protocol = ChannelProtocol::ALL[usize::from(version)];
        let frames = if protocol.is_base64() {
            [
                frame(TEXT, b"0Zm9vCg=="),
                frame(TEXT, b"4eyJXaWR0aCI6ODAsIkhlaWdodCI6MjR9"),
                frame(0x89, b"p"),
                frame(TEXT, b"0Zm9vCg="),
            ]
        } else {
            [
                frame(BINARY, b"\0foo\n"),
                frame(BINARY, &[b"\x04", &size[..]].concat()),
                frame(BINARY, b"\xff\0"),
                frame(BINARY, b"\x02nobody"),
            ]
        };
        let wire = [&frames.concat()[..], &close].concat();
        for (forwards, small) in [(0, 0), (1, 0), (0, 1)] {
            let name = format!("{}-{forwards}-{small}", protocol.name());
            push(&name, &[version, forwards, small, 3, 1, 40], &wire);
        }
    }
    let long = [&[BINARY, 0xff][..], &[0, 0, 0, 0, 0, 0, 0xff, 0xff]].concat();
    push("claim", &[0, 0, 0], &long);
    push("too long", &[0, 0, 1], &long);
}

pub(crate) fn tunnels(seeds: &mut Seeds) {
    let recorded = vectors::bytes("kubernetes/ws_portforward.c2s.bin");
    let messages = behind_the_head(&recorded);
    seeds.push(
        "websocket_tunnel",
        "port-forward",
        Choices::join(&[0, 7, 90], messages),
    );
    // masked with zeros: two pieces of a message with a ping between them, a close, a text
    let frames: [&[u8]; 5] = [
        b"\x02\x83\0\0\0\0abc",
        b"\x89\x81\0\0\0\0p",
        b"\x80\x82\0\0\0\0de",
        b"\x88\x82\0\0\0\0\x03\xe8",
        b"\x81\x81\0\0\0\0t",
    ];
    seeds.push(
        "websocket_tunnel",
        "frames",
        Choices::join(&[0, 1, 2], &frames.concat()),
    );
    // the head of a message of 640 KiB, without its payload
    seeds.push(
        "websocket_tunnel",
        "claim",
        Choices::join(&[0, 0], b"\x82\xff\0\0\0\0\0\x0a\0\0\0\0\0\0"),
    );
    seeds.push(
        "websocket_tunnel",
        "carried",
        Choices::join(&[1, 4, 200], messages),
    );
    let case = conformance::all().swap_remove(0);
    seeds.push(
        "websocket_tunnel",
        "carried-2",
        Choices::join(&[1, 0, 3], &case.input.0),
    );
}

pub(crate) fn profiles(seeds: &mut Seeds) {
    let by_hand = [
        "down=5Mbit,up=1Mbit,rtt=28ms,jitter=2ms,reorder=yes,loss=0.5%,queue=100ms,tcp=2013,iw=10",
        "rate=4Mbit,pipe=shared,passes=2,rtt=40ms,loss_up=1%,loss_down=2%,burst=4,queue=30pkt",
        "down=trace:a,up=trace:a,rtt=40ms,queue=fq_codel\n0\n5\n5\n9",
        "rate=trace:a,rtt=40ms,queue=codel\n7\n6",
    ];
    for text in profile::names().iter().copied().chain(by_hand) {
        seeds.push("profile", text, text);
    }
}
