//! SPDY inside WebSocket, as `kubectl port-forward` speaks it, and WebSockets without SPDY.

use spdy_frame::version::Version;
use spdy_inspect::direction::Direction::{ToClient, ToServer};
use spdy_inspect::event::{DetectionMethod, EventKind};
use spdy_inspect::inspector::{Inspector, Options};
use spdy_testkit::vectors;

use crate::support::Inspection;
use crate::support::file::pcap;
use crate::support::frames::Writer;
use crate::support::tcp::Wire;

fn recorded(name: &str) -> (Vec<u8>, Vec<u8>) {
    let side = |side| vectors::bytes(&format!("kubernetes/{name}.{side}.bin"));
    (side("c2s"), side("s2c"))
}

fn streams(client: &[u8], server: &[u8]) -> Inspection {
    let mut inspector = Inspector::new(Options::default());
    inspector.streams(client, server);
    Inspection::of(inspector)
}

fn troubles(told: &Inspection) -> Vec<&str> {
    let trouble = told.events.iter().filter_map(|event| match &event.what {
        EventKind::Unreadable(why) => Some(why.as_str()),
        _ => None,
    });
    trouble.collect()
}

#[test]
fn a_port_forward_of_client_go_is_read_through_its_websocket_in_any_pieces() {
    let (client, server) = recorded("ws_portforward");
    let told = streams(&client, &server);
    let summary = told.summary();
    assert_eq!(summary.info.found, DetectionMethod::WebSocket);
    assert_eq!(summary.info.version, Some(Version::V31));
    assert_eq!(summary.data_bytes, [2000, 2000], "an echo");
    assert_eq!(troubles(&told), [""; 0]);
    let want = told.outline();
    let text = want.join("\n");
    for wanted in ["SYN_STREAM", "streamtype", "requestid", "error", "data"] {
        assert!(text.contains(wanted), "expected {wanted:?} in {text}");
    }
    for mss in [1, 3, 1000] {
        let mut wire = Wire::new(101, false);
        wire.connect();
        wire.send(ToServer, &client, mss);
        wire.send(ToClient, &server, mss);
        wire.close();
        let file = pcap(&wire.packets, 101, false, true);
        let told = Inspection::of_file(&file, Options::default(), 4096);
        assert_eq!(told.outline(), want, "segments of {mss}");
    }
}

#[test]
fn an_exec_by_a_plain_websocket_is_named() {
    let (client, server) = recorded("ws_exec");
    let told = streams(&client, &server);
    match &told.events[..] {
        [event] => match &event.what {
            EventKind::Channels { target, protocol } => {
                assert_eq!(target.as_deref(), Some("GET /ws/exec?cmd=cat"));
                assert_eq!(protocol, "v5.channel.k8s.io");
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

const ASK: &str = "GET /pf HTTP/1.1\r\nUpgrade: websocket\r\n\
                   Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n\r\n";
const SWITCH: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
                      Sec-WebSocket-Protocol: SPDY/3.1+portforward.k8s.io\r\n\r\n";

/// A frame: its first byte, a mask if it is a client's, and the payload.
fn frame(first: u8, mask: Option<[u8; 4]>, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    let marked = if mask.is_some() { 0x80 } else { 0 };
    match payload.len() {
        len @ ..=125 => out.push(marked | len as u8),
        len => {
            out.push(marked | 126);
            out.extend((len as u16).to_be_bytes());
        }
    }
    out.extend(mask.into_iter().flatten());
    let mask = mask.unwrap_or_default();
    out.extend(payload.iter().zip(mask.iter().cycle()).map(|(a, b)| a ^ b));
    out
}

#[test]
fn messages_may_be_cut_anywhere_and_pings_stand_between() {
    let mut writer = Writer::new(Version::V31);
    let spdy = [writer.open(1, false), writer.data(1, 300, true)].concat();
    let mask = Some([1, 2, 3, 4]);
    let (head, rest) = spdy.split_at(5);
    let (middle, last) = rest.split_at(rest.len() - 200);
    let client = [
        ASK.as_bytes().to_vec(),
        frame(0x02, mask, head),
        frame(0x89, mask, b"are you there?"),
        frame(0x00, mask, middle),
        frame(0x80, mask, &[]),
        frame(0x82, mask, last),
        frame(0x88, mask, &[3, 232]),
        b"nobody reads this".to_vec(),
    ]
    .concat();
    let told = streams(&client, SWITCH.as_bytes());
    assert_eq!(troubles(&told), [""; 0]);
    assert_eq!(told.frames().len(), 2);
    assert_eq!(told.summary().data_bytes, [300, 0]);
}

#[test]
fn bytes_that_are_missing_within_a_message_are_counted_and_reading_goes_on() {
    let mut writer = Writer::new(Version::V31);
    let open = writer.open(1, false);
    let data = writer.data(1, 3000, false);
    let more = writer.data(1, 10, true);
    let mask = Some([9, 8, 7, 6]);
    let client = [
        ASK.as_bytes().to_vec(),
        frame(0x82, mask, &open),
        frame(0x82, mask, &[data, more].concat()),
    ]
    .concat();
    // Within the payload of DATA; a number that leaves the mask at another of its bytes.
    let (before, rest) = client.split_at(client.len() - 1500);
    let (lost, after) = rest.split_at(501);
    let mut wire = Wire::new(101, false);
    wire.connect();
    wire.send(ToServer, ASK.as_bytes(), 1000);
    wire.send(ToClient, SWITCH.as_bytes(), 1000);
    wire.send(ToServer, &before[ASK.len()..], 1000);
    wire.skip(ToServer, lost.len());
    wire.send(ToServer, after, 1000);
    wire.close();
    let file = pcap(&wire.packets, 101, false, true);
    let told = Inspection::of_file(&file, Options::default(), 4096);
    let frames = told.frames();
    let missing: Vec<_> = frames.iter().map(|seen| seen.missing_bytes).collect();
    assert_eq!(missing, [0, 501, 0], "{:?}", troubles(&told));
}

#[test]
fn an_invalid_tunnel_is_reported() {
    let cases = [
        (frame(0x81, None, b"text"), "text message, expected binary"),
        (frame(0xc2, None, b"zip"), "WebSocket with an extension"),
        (vec![0x83, 0], "opcode"),
    ];
    for (bytes, want) in cases {
        let server = [SWITCH.as_bytes(), &bytes].concat();
        let told = streams(ASK.as_bytes(), &server);
        let troubles = troubles(&told);
        let found = troubles.iter().any(|why| {
            let why = why.to_lowercase();
            why.contains(&want.to_lowercase()) && why.contains("client")
        });
        assert!(found, "{want}: {troubles:?}");
    }
}

#[test]
fn only_refused_websockets_of_kubernetes_are_reported() {
    let refusal = b"HTTP/1.1 403 Forbidden\r\n\r\n";
    let told = streams(ASK.as_bytes(), refusal);
    assert_eq!(
        troubles(&told),
        [
            "GET /pf requested a WebSocket of SPDY/3.1+portforward.k8s.io, response: \
             HTTP/1.1 403 Forbidden"
        ]
    );
    let chat = ASK.replace("SPDY/3.1+portforward.k8s.io", "chat");
    let told = streams(chat.as_bytes(), refusal);
    assert!(told.events.is_empty(), "{:?}", told.events);
    let answer = SWITCH.replace("SPDY/3.1+portforward.k8s.io", "chat");
    let told = streams(chat.as_bytes(), answer.as_bytes());
    assert!(told.events.is_empty(), "{:?}", told.events);
}
