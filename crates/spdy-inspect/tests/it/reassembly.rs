//! Holes in a capture, and the limits on bytes behind them.

use spdy_frame::version::Version;
use spdy_inspect::capture::Record;
use spdy_inspect::direction::Direction::{ToClient, ToServer};
use spdy_inspect::inspector::{Inspector, Options};
use spdy_inspect::limits::Limits;

use crate::support::Inspection;
use crate::support::file::pcap;
use crate::support::frames::Writer;
use crate::support::tcp::Wire;

fn read(wire: &Wire, options: Options) -> Inspection {
    Inspection::of_file(&pcap(&wire.packets, 101, false, true), options, 1 << 20)
}

#[test]
fn a_gap_inside_a_data_payload_is_reported_and_skipped() {
    let (mut client, mut server) = (Writer::new(Version::V3), Writer::new(Version::V3));
    let mut wire = Wire::new(101, false);
    wire.connect();
    wire.send(ToServer, &client.open(1, true), 1000);
    wire.send(ToClient, &server.reply(1, false), 1000);
    let data = server.data(1, 5000, true);
    wire.send(ToClient, &data[..1000], 1000);
    wire.skip(ToClient, 2000);
    wire.send(ToClient, &data[3000..], 1000);
    wire.acknowledge(ToClient, 20);
    wire.send(ToServer, &client.open(3, true), 1000);
    wire.send(ToClient, &server.reply(3, true), 1000);
    wire.close();
    let inspection = read(&wire, Options::default());
    let missing: Vec<_> = inspection
        .frames()
        .iter()
        .map(|record| record.missing_bytes)
        .collect();
    assert_eq!(missing, [0, 0, 2000, 0, 0]);
    assert_eq!(inspection.summary().segments[1].missing_bytes, 2000);
    let findings = inspection.findings();
    assert!(
        findings[0].starts_with("2000 bytes from the server"),
        "{findings:?}"
    );
    assert!(inspection.summary().streams[&3].replied.is_some());
}

#[test]
fn a_gap_in_a_head_ends_only_its_direction() {
    let (mut client, mut server) = (Writer::new(Version::V3), Writer::new(Version::V3));
    let mut wire = Wire::new(101, false);
    wire.connect();
    wire.send(ToServer, &client.open(1, true), 1000);
    let reply = server.reply(1, false);
    wire.send(ToClient, &reply, 1000);
    wire.skip(ToClient, 30);
    wire.send(ToClient, &server.data(1, 100, true), 1000);
    wire.send(ToServer, &client.open(3, true), 1000);
    let inspection = read(&wire, Options::default());
    assert_eq!(inspection.frames().len(), 3);
    let findings = inspection.findings();
    let place = format!("at byte {} of the session", reply.len());
    assert!(findings[0].contains(&place), "{findings:?}");
    assert!(
        findings[0].ends_with("the rest is not decoded"),
        "{findings:?}"
    );
}

#[test]
fn bytes_behind_a_gap_are_bounded() {
    let data = Writer::new(Version::V3).data(1, 100_000, true);
    let limits = Limits {
        held_bytes: 5000,
        ..Limits::default()
    };
    // The gap is reported one byte past the limit, and not before.
    for (bytes, is_reported_early) in [(5000, false), (5001, true)] {
        let mut wire = Wire::new(101, false);
        let mut opener = Writer::new(Version::V3);
        wire.connect();
        wire.send(ToServer, &opener.open(1, true), 1000);
        let mut writer = Writer::new(Version::V3);
        wire.send(ToClient, &writer.reply(1, false), 1000);
        wire.send(ToClient, &data[..1000], 1000);
        wire.skip(ToClient, 1000);
        wire.send(ToClient, &data[2000..2000 + bytes], 1000);
        for limits in [
            limits.clone(),
            Limits {
                total_held_bytes: 5000,
                ..Limits::default()
            },
        ] {
            let mut inspector = Inspector::new(Options {
                limits,
                ..Options::default()
            });
            for (unix_nanos, bytes) in &wire.packets {
                inspector.record(&Record::Packet {
                    unix_nanos: *unix_nanos,
                    link: 101,
                    bytes: bytes.clone().into(),
                    cut: false,
                });
            }
            let mut is_reported = false;
            while let Some(event) = inspector.poll_event() {
                is_reported |= format!("{:?}", event.what).contains("1000 bytes from the server");
            }
            assert_eq!(is_reported, is_reported_early, "{bytes} bytes held");
        }
    }
}

#[test]
fn connections_over_the_limit_evict_the_longest_idle() {
    let mut inspector = Inspector::new(Options {
        limits: Limits {
            connections: 4,
            ..Limits::default()
        },
        ..Options::default()
    });
    for number in 0..5_u8 {
        let mut wire = Wire::new(101, false);
        wire.connect();
        let (unix_nanos, mut bytes) = wire.packets.swap_remove(0);
        bytes[21] = number; // the client's port
        inspector.record(&Record::Packet {
            unix_nanos,
            link: 101,
            bytes: bytes.into(),
            cut: false,
        });
        let evicted = u64::from(number == 4);
        assert_eq!(inspector.counts().evicted, evicted, "connection {number}");
    }
    assert_eq!(inspector.counts().connections, 5);
}
