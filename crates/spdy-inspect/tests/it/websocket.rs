//! SPDY inside WebSocket, as `kubectl port-forward` uses it, and WebSockets without SPDY.

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

fn troubles(inspection: &Inspection) -> Vec<&str> {
    let reasons = inspection
        .events
        .iter()
        .filter_map(|event| match &event.what {
            EventKind::Unreadable(reason) => Some(reason.as_str()),
            _ => None,
        });
    reasons.collect()
}

#[test]
fn a_client_go_port_forward_is_read_through_its_websocket() {
    let (client, server) = recorded("ws_portforward");
    let inspection = streams(&client, &server);
    let summary = inspection.summary();
    assert_eq!(summary.info.found, DetectionMethod::WebSocket);
    assert_eq!(summary.info.version, Some(Version::V31));
    assert_eq!(summary.data_bytes, [2000, 2000], "an echo");
    assert_eq!(troubles(&inspection), [""; 0]);
    let expected = inspection.outline();
    let text = expected.join("\n");
    for word in ["SYN_STREAM", "streamtype", "requestid", "error", "data"] {
        assert!(text.contains(word), "expected {word:?} in {text}");
    }
    for mss in [1, 3, 1000] {
        let mut wire = Wire::new(101, false);
        wire.connect();
        wire.send(ToServer, &client, mss);
        wire.send(ToClient, &server, mss);
        wire.close();
        let file = pcap(&wire.packets, 101, false, true);
        let inspection = Inspection::of_file(&file, Options::default(), 4096);
        assert_eq!(inspection.outline(), expected, "segments of {mss}");
    }
}

#[test]
fn an_exec_by_a_plain_websocket_is_named() {
    let (client, server) = recorded("ws_exec");
    let inspection = streams(&client, &server);
    match &inspection.events[..] {
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

const UPGRADE_REQUEST: &str = "GET /pf HTTP/1.1\r\nUpgrade: websocket\r\n\
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
fn messages_may_be_cut_anywhere_with_pings_between() {
    let mut writer = Writer::new(Version::V31);
    let spdy = [writer.open(1, false), writer.data(1, 300, true)].concat();
    let mask = Some([1, 2, 3, 4]);
    let (head, rest) = spdy.split_at(5);
    let (middle, last) = rest.split_at(rest.len() - 200);
    let client = [
        UPGRADE_REQUEST.as_bytes().to_vec(),
        frame(0x02, mask, head),
        frame(0x89, mask, b"are you there?"),
        frame(0x00, mask, middle),
        frame(0x80, mask, &[]),
        frame(0x82, mask, last),
        frame(0x88, mask, &[3, 232]),
        b"unread data here!".to_vec(),
    ]
    .concat();
    let inspection = streams(&client, SWITCH.as_bytes());
    assert_eq!(troubles(&inspection), [""; 0]);
    assert_eq!(inspection.frames().len(), 2);
    assert_eq!(inspection.summary().data_bytes, [300, 0]);
}

#[test]
fn missing_bytes_within_a_message_are_counted_and_reading_continues() {
    let mut writer = Writer::new(Version::V31);
    let open = writer.open(1, false);
    let data = writer.data(1, 3000, false);
    let second = writer.data(1, 10, true);
    let mask = Some([9, 8, 7, 6]);
    let client = [
        UPGRADE_REQUEST.as_bytes().to_vec(),
        frame(0x82, mask, &open),
        frame(0x82, mask, &[data, second].concat()),
    ]
    .concat();
    // Within the payload of DATA; the length changes the position in the mask.
    let (before_gap, rest) = client.split_at(client.len() - 1500);
    let (lost, after_gap) = rest.split_at(501);
    let mut wire = Wire::new(101, false);
    wire.connect();
    wire.send(ToServer, UPGRADE_REQUEST.as_bytes(), 1000);
    wire.send(ToClient, SWITCH.as_bytes(), 1000);
    wire.send(ToServer, &before_gap[UPGRADE_REQUEST.len()..], 1000);
    wire.skip(ToServer, lost.len());
    wire.send(ToServer, after_gap, 1000);
    wire.close();
    let file = pcap(&wire.packets, 101, false, true);
    let inspection = Inspection::of_file(&file, Options::default(), 4096);
    let frames = inspection.frames();
    let missing: Vec<_> = frames.iter().map(|record| record.missing_bytes).collect();
    assert_eq!(missing, [0, 501, 0], "{:?}", troubles(&inspection));
}

#[test]
fn an_invalid_tunnel_is_reported() {
    let cases = [
        (frame(0x81, None, b"text"), "text message, expected binary"),
        (frame(0xc2, None, b"zip"), "WebSocket with an extension"),
        (vec![0x83, 0], "opcode"),
    ];
    for (bytes, expected) in cases {
        let server = [SWITCH.as_bytes(), &bytes].concat();
        let inspection = streams(UPGRADE_REQUEST.as_bytes(), &server);
        let troubles = troubles(&inspection);
        let is_reported = troubles.iter().any(|reason| {
            let reason = reason.to_lowercase();
            reason.contains(&expected.to_lowercase()) && reason.contains("client")
        });
        assert!(is_reported, "{expected}: {troubles:?}");
    }
}

#[test]
fn only_refused_websockets_of_kubernetes_are_reported() {
    let refusal = b"HTTP/1.1 403 Forbidden\r\n\r\n";
    let inspection = streams(UPGRADE_REQUEST.as_bytes(), refusal);
    assert_eq!(
        troubles(&inspection),
        [
            "GET /pf requested a WebSocket of SPDY/3.1+portforward.k8s.io, response: \
             HTTP/1.1 403 Forbidden"
        ]
    );
    let chat = UPGRADE_REQUEST.replace("SPDY/3.1+portforward.k8s.io", "chat");
    let inspection = streams(chat.as_bytes(), refusal);
    assert!(inspection.events.is_empty(), "{:?}", inspection.events);
    let response = SWITCH.replace("SPDY/3.1+portforward.k8s.io", "chat");
    let inspection = streams(chat.as_bytes(), response.as_bytes());
    assert!(inspection.events.is_empty(), "{:?}", inspection.events);
}
