//! TLS: rustls against itself in memory, with SPDY inside, the records in a capture, and the secrets.

use spdy_frame::version::Version;
use spdy_inspect::direction::Direction::ToServer;
use spdy_inspect::event::{DetectionMethod, EventKind};
use spdy_inspect::inspector::Options;
use spdy_inspect::limits::Limits;
use spdy_inspect::tls::key_log::KeyLog;

use crate::support::Inspection;
use crate::support::file::{pcap, pcapng};
use crate::support::frames::Writer;
use crate::support::tcp::Wire;
use crate::support::tls::{Secrets, connect, speak, suites};

fn options(secrets: &Secrets) -> Options {
    let mut keys = KeyLog::default();
    let text = secrets.0.lock().expect("no thread panicked");
    assert!(keys.add(text.as_bytes(), 100) > 0, "{text}");
    Options {
        keys,
        ..Options::default()
    }
}

#[test]
fn spdy_in_tls_is_read_by_a_key_log_in_every_suite() {
    for (version, suite) in suites() {
        let (mut pair, secrets) = connect(version, suite, Some("spdy/3.1"));
        speak(&mut pair);
        let file = pcap(&pair.wire.packets, 1, false, true);
        let inspection = Inspection::of_file(&file, options(&secrets), 1 << 20);
        let info = &inspection.summary().info;
        assert_eq!(
            (info.found, info.tls),
            (DetectionMethod::Alpn, true),
            "{suite:?}"
        );
        assert_eq!(info.version, Some(Version::V31), "{suite:?}");
        assert_eq!(
            inspection.summary().streams[&1].bytes,
            [0, 40_000],
            "{suite:?}"
        );
        assert_eq!(inspection.findings(), Vec::<String>::new(), "{suite:?}");
    }
}

#[test]
fn secrets_in_the_pcapng_are_used() {
    let (version, suite) = suites()[0];
    let (mut pair, secrets) = connect(version, suite, Some("spdy/3.1"));
    speak(&mut pair);
    let text = secrets.0.lock().expect("no thread panicked").clone();
    let file = pcapng(&pair.wire.packets, 1, Some(text.as_bytes()));
    let inspection = Inspection::of_file(&file, Options::default(), 999);
    assert_eq!(inspection.frames().len(), 4);
}

#[test]
fn spdy_without_alpn_is_detected_inside_tls() {
    let (version, suite) = suites()[3];
    let (mut pair, secrets) = connect(version, suite, None);
    let upgrade = b"GET /exec HTTP/1.1\r\nHost: site.test\r\nUpgrade: SPDY/3.1\r\nConnection: Upgrade\r\n\r\n";
    pair.up(upgrade);
    pair.down(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: SPDY/3.1\r\n\r\n");
    speak(&mut pair);
    let file = pcap(&pair.wire.packets, 1, false, true);
    let inspection = Inspection::of_file(&file, options(&secrets), 1 << 20);
    let info = &inspection.summary().info;
    assert_eq!((info.found, info.tls), (DetectionMethod::Upgrade, true));
    assert_eq!(inspection.frames().len(), 4);
}

#[test]
fn key_updates_are_followed() {
    let (version, suite) = suites()[1];
    let (mut pair, secrets) = connect(version, suite, Some("spdy/3.1"));
    let (mut client, mut server) = (Writer::new(Version::V31), Writer::new(Version::V31));
    for id in [1, 3, 5] {
        pair.up(&client.open(id, true));
        pair.down(&server.reply(id, true));
        pair.client
            .refresh_traffic_keys()
            .expect("the handshake is done");
        pair.turn();
    }
    let file = pcap(&pair.wire.packets, 1, false, true);
    let inspection = Inspection::of_file(&file, options(&secrets), 1 << 20);
    assert_eq!(inspection.frames().len(), 6, "{:?}", inspection.findings());
}

#[test]
fn waiting_bytes_and_handshake_messages_are_bounded() {
    let reason = |limits: Limits, bytes: &[u8]| {
        let mut wire = Wire::new(1, false);
        wire.connect();
        wire.send(ToServer, bytes, 1000);
        let options = Options {
            limits,
            ..Options::default()
        };
        let inspection = Inspection::of_file(&pcap(&wire.packets, 1, false, true), options, 4096);
        inspection
            .events
            .iter()
            .map(|event| format!("{:?}", event.what))
            .collect::<String>()
    };
    // A message that is longer than its record.
    let message = |len: u16| {
        let [a, b] = len.to_be_bytes();
        [0x16, 3, 1, 0, 6, 1, 0, a, b, 0, 0]
    };
    let limits = Limits {
        handshake_message_bytes: 500,
        ..Limits::default()
    };
    assert_eq!(reason(limits.clone(), &message(500)), "");
    assert!(reason(limits, &message(501)).contains("message has 501 bytes, limit 500"));

    // Records of a client whose server sends nothing.
    let (mut pair, _) = connect(suites()[0].0, suites()[0].1, None);
    let mut hello = Vec::new();
    let (_, first) = pair.wire.packets.swap_remove(3);
    hello.extend_from_slice(&first[14 + 4 + 20 + 20..]);
    let limits = Limits {
        waiting_bytes: 105,
        ..Limits::default()
    };
    hello.extend([0x17, 3, 3, 0, 100]);
    hello.extend([0; 100]);
    assert_eq!(reason(limits.clone(), &hello), "");
    hello.push(0x17);
    assert!(reason(limits, &hello).contains("without the start"));
}

#[test]
fn tls_without_a_secret_is_reported_with_sni_and_alpn() {
    for (version, suite) in suites() {
        let (mut pair, _) = connect(version, suite, Some("spdy/3.1"));
        speak(&mut pair);
        let inspection = Inspection::of_file(
            &pcap(&pair.wire.packets, 1, false, true),
            Options::default(),
            4096,
        );
        match &inspection.events[..] {
            [event] => match &event.what {
                EventKind::EncryptedTls {
                    server_name,
                    offered,
                    reason,
                } => {
                    assert_eq!(server_name.as_deref(), Some("site.test"));
                    assert_eq!(offered, &["spdy/3.1"]);
                    assert!(reason.contains("key log"), "{reason}");
                }
                other_line => panic!("expected a sealed connection, found {other_line:?}"),
            },
            // SPDY/3.1 by the ALPN of a ServerHello of TLS 1.2, which is unencrypted.
            events => {
                let text = format!("{events:?}");
                assert!(
                    text.contains("SessionStart") && text.contains("key log"),
                    "{suite:?} {text}"
                );
            }
        }
    }
}

#[test]
fn a_segment_lost_inside_a_record_of_data_does_no_harm() {
    for (version, suite) in suites() {
        let (mut pair, secrets) = connect(version, suite, Some("spdy/3.1"));
        // In the middle of the response's second record: its head is needed, and the first record has the reply.
        pair.lose = Some(pair.sends + 20);
        speak(&mut pair);
        let file = pcap(&pair.wire.packets, 1, false, true);
        let inspection = Inspection::of_file(&file, options(&secrets), 1 << 20);
        let frames = inspection.frames();
        assert_eq!(frames.len(), 4, "{suite:?} {:?}", inspection.findings());
        let missing: usize = frames.iter().map(|record| record.missing_bytes).sum();
        assert_eq!(missing, 16_000, "{suite:?}: the whole record is missing");
    }
}

#[test]
fn key_logs_are_parsed_past_invalid_lines_up_to_the_limit() {
    let random = "ab".repeat(32);
    let secret = "cd".repeat(48);
    let line = format!("CLIENT_RANDOM {random} {secret}\n");
    let text = format!(
        "# a comment\r\nCLIENT_RANDOM zz zz\nEXPORTER_SECRET {random} {secret}\nCLIENT_RANDOM\n{line}"
    );
    let mut keys = KeyLog::default();
    assert_eq!(keys.add(text.as_bytes(), Limits::default().secrets), 1);
    let other_line = format!("CLIENT_RANDOM {} {secret}\n", "ef".repeat(32));
    assert_eq!(keys.add(other_line.as_bytes(), 1), 0, "one past the limit");
    assert_eq!(keys.len(), 1);
}
