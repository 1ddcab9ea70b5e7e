//! Capture files: formats, links, and effects of the network on segments.

use spdy_inspect::capture::{CaptureError, Reader};
use spdy_inspect::direction::Direction::{ToClient, ToServer};
use spdy_inspect::inspector::Options;
use spdy_inspect::limits::Limits;
use spdy_testkit::live;

use crate::support::Inspection;
use crate::support::file::{block, pcap, pcapng};
use crate::support::tcp::{LINKS, Wire};

fn connection() -> live::Connection {
    live::all()
        .into_iter()
        .find(|connection| connection.id.contains("kubernetes"))
        .expect("the vector is there")
}

fn with_head(half: &live::Direction) -> Vec<u8> {
    [&half.http_head[..], &half.bytes].concat()
}

/// The recorded exec as packets, its segments of `mss` bytes.
fn wire(link: u32, v6: bool, mss: usize) -> Wire {
    let connection = connection();
    let mut wire = Wire::new(link, v6);
    wire.connect();
    wire.send(ToServer, &with_head(&connection.client), mss);
    wire.send(ToClient, &with_head(&connection.server), mss);
    wire.close();
    wire
}

fn outline() -> Vec<String> {
    let wire = wire(101, false, 1000);
    let inspection = Inspection::of_file(
        &pcap(&wire.packets, 101, false, true),
        Options::default(),
        1 << 20,
    );
    let outline = inspection.outline();
    assert_eq!(outline.len(), 15, "{outline:#?}");
    outline
}

#[test]
fn every_form_of_file_reads_the_same_in_any_pieces() {
    let expected = outline();
    let wire = wire(1, false, 100);
    for piece in [1, 7, 4096] {
        for (big_endian, nanos) in [(false, false), (false, true), (true, false), (true, true)] {
            let file = pcap(&wire.packets, 1, big_endian, nanos);
            let inspection = Inspection::of_file(&file, Options::default(), piece);
            assert_eq!(
                inspection.outline(),
                expected,
                "{big_endian} {nanos} {piece}"
            );
        }
        let inspection =
            Inspection::of_file(&pcapng(&wire.packets, 1, None), Options::default(), piece);
        assert_eq!(inspection.outline(), expected, "pcapng {piece}");
    }
}

#[test]
fn every_link_and_both_versions_of_ip_are_read() {
    let expected = outline();
    for link in LINKS {
        for v6 in [false, true] {
            if (link, v6) == (228, true) {
                continue;
            }
            let wire = wire(link, v6, 50);
            let file = pcap(&wire.packets, link, false, true);
            let inspection = Inspection::of_file(&file, Options::default(), 4096);
            assert_eq!(inspection.outline(), expected, "link {link}, v6 {v6}");
        }
    }
}

#[test]
fn segments_out_of_order_repeated_and_overlapping_read_the_same() {
    let expected = outline();
    let mut wire = wire(101, true, 40);
    // After the handshake and before the FINs: swap neighbours, and repeat every third.
    let data = 3..wire.packets.len() - 2;
    let mut packets = wire.packets[..3].to_vec();
    for pair in wire.packets[data].chunks(2) {
        packets.extend(pair.iter().rev().cloned());
        packets.push(pair[0].clone());
    }
    packets.extend(wire.packets.split_off(wire.packets.len() - 2));
    let inspection =
        Inspection::of_file(&pcap(&packets, 101, false, true), Options::default(), 4096);
    assert_eq!(inspection.outline(), expected);
    let [to_server, to_client] = inspection.summary().segments;
    assert!(
        to_server.out_of_order > 0 && to_server.retransmitted > 0,
        "{to_server:?}"
    );
    assert_eq!((to_server.missing_bytes, to_client.missing_bytes), (0, 0));
}

#[test]
fn the_client_is_found_without_a_syn() {
    let expected = outline();
    let wire = wire(101, false, 10_000);
    let inspection = Inspection::of_file(
        &pcap(&wire.packets[3..], 101, false, true),
        Options::default(),
        4096,
    );
    assert_eq!(inspection.outline(), expected);
    let client = inspection
        .summary()
        .info
        .client
        .expect("a capture has addresses");
    assert_eq!(client.port(), 40_000);
}

#[test]
fn late_retransmissions_are_ignored_and_ports_are_reusable() {
    let expected = outline();
    let mut first = wire(101, false, 10_000);
    let duplicate = first.packets[3].clone();
    first.packets.push(duplicate);
    let one_connection = Inspection::of_file(
        &pcap(&first.packets, 101, false, true),
        Options::default(),
        4096,
    );
    assert_eq!(one_connection.outline(), expected);
    assert_eq!(
        one_connection.summary().segments[0].retransmitted,
        0,
        "the connection had ended"
    );

    // The same ports, with other sequence numbers.
    let mut second = wire(101, false, 10_000);
    for (_, packet) in &mut second.packets {
        packet[24] ^= 0x40;
        packet[28] ^= 0x40;
    }
    first.packets.extend(second.packets);
    let file = pcap(&first.packets, 101, false, true);
    let two_connections = Inspection::of_file(&file, Options::default(), 4096);
    assert_eq!(two_connections.frames().len(), 2 * expected.len());
}

#[test]
fn damaged_files_report_the_offset() {
    let read_file = |file: &[u8]| {
        let mut reader = Reader::new(Limits::default());
        reader.push(file);
        loop {
            match reader.poll() {
                Ok(Some(_)) => {}
                Ok(None) => break reader.finish(),
                Err(error) => break Err(error),
            }
        }
    };
    assert_eq!(
        read_file(b"GIF89a"),
        Err(CaptureError::Magic { found: *b"GIF8" })
    );

    let valid_file = pcap(&[(0, vec![1; 30])], 1, false, true);
    assert_eq!(read_file(&valid_file), Ok(()));
    let cut = CaptureError::Truncated { at: 24, found: 45 };
    assert_eq!(read_file(&valid_file[..valid_file.len() - 1]), Err(cut));
    assert!(matches!(
        read_file(&valid_file[..3]),
        Err(CaptureError::Truncated { at: 0, found: 3 })
    ));

    let limit = Limits::default().record_bytes as u64;
    let mut long = valid_file.clone();
    long[32..36].copy_from_slice(&(limit as u32 + 1).to_le_bytes());
    let found = limit + 1;
    assert_eq!(
        read_file(&long),
        Err(CaptureError::RecordLength {
            at: 24,
            found,
            limit
        })
    );

    let section = pcapng(&[], 1, None);
    let mut stray = section.clone();
    stray.extend(block(
        6,
        &[9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ));
    let at = section.len() as u64;
    assert_eq!(
        read_file(&stray),
        Err(CaptureError::Interface {
            at,
            found: 9,
            described: 1
        })
    );
    let mut uneven = section.clone();
    uneven.extend(block(77, &[0; 8]));
    let last = uneven.len() - 1;
    uneven[last] = 1;
    assert!(
        matches!(read_file(&uneven), Err(CaptureError::Block { at: place, kind: 77, .. }) if place == at)
    );
}

#[test]
fn a_record_past_its_limit_is_refused_in_either_format() {
    let limits = Limits {
        record_bytes: 100,
        ..Limits::default()
    };
    let read_file = |file: &[u8]| {
        let mut reader = Reader::new(limits.clone());
        reader.push(file);
        loop {
            match reader.poll() {
                Ok(Some(_)) => {}
                Ok(None) => break reader.finish(),
                Err(error) => break Err(error),
            }
        }
    };
    let past = |at, found| CaptureError::RecordLength {
        at,
        found,
        limit: 100,
    };
    // pcap states the captured length of the packet, pcapng that of the block, in multiples of four.
    assert_eq!(
        read_file(&pcap(&[(0, vec![1; 100])], 1, false, true)),
        Ok(())
    );
    let file = pcap(&[(0, vec![1; 101])], 1, false, true);
    assert_eq!(read_file(&file), Err(past(24, 101)));
    let section = pcapng(&[], 1, None);
    assert_eq!(
        read_file(&[section.clone(), block(77, &[0; 88])].concat()),
        Ok(())
    );
    let at = section.len() as u64;
    let file = [section, block(77, &[0; 89])].concat();
    assert_eq!(read_file(&file), Err(past(at, 104)));
}

#[test]
fn interfaces_past_their_limit_are_refused() {
    let limits = Limits {
        interfaces: 2,
        ..Limits::default()
    };
    let mut file = pcapng(&[], 1, None);
    let interface = block(1, &[1, 0, 0, 0, 0, 0, 0, 0]);
    file.extend(&interface);
    let mut reader = Reader::new(limits.clone());
    reader.push(&file);
    assert_eq!(reader.poll(), Ok(None));
    reader.push(&interface);
    let at = file.len() as u64;
    assert_eq!(
        reader.poll(),
        Err(CaptureError::TooManyInterfaces { at, limit: 2 })
    );
}
