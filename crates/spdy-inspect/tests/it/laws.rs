//! For any capture: no panic, and the same result for any pieces.

use proptest::prelude::*;
use spdy_inspect::capture::{Reader, Record};
use spdy_inspect::direction::Direction::{ToClient, ToServer};
use spdy_inspect::inspector::{Inspector, Options};
use spdy_inspect::limits::Limits;
use spdy_testkit::live;

use crate::support::Inspection;
use crate::support::file::{pcap, pcapng};
use crate::support::tcp::Wire;

fn read(file: &[u8]) {
    let mut inspector = Inspector::new(Options::default());
    let mut reader = Reader::new(Limits::default());
    reader.push(file);
    while let Ok(Some(record)) = reader.poll() {
        inspector.record(&record);
    }
    let _ = reader.finish();
    let _ = Inspection::of(inspector);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_are_read_without_a_panic(magic in 0..5_usize, rest in proptest::collection::vec(any::<u8>(), 0..400)) {
        let magics: [&[u8]; 5] = [
            &[], &[0xd4, 0xc3, 0xb2, 0xa1], &[0xa1, 0xb2, 0x3c, 0x4d],
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a],
            &[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d],
        ];
        read(&[magics[magic], &rest].concat());
    }

    #[test]
    fn any_packets_are_read_without_a_panic(link in 0..300_u32, packet in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut inspector = Inspector::new(Options::default());
        for first in [None, Some(0x45), Some(0x60)] {
            let mut packet = packet.clone();
            if let (Some(byte), Some(first)) = (packet.first_mut(), first) {
                *byte = first;
            }
            for link in [link, 1, 0, 101, 113, 276] {
                inspector.record(&Record::Packet { unix_nanos: 0, link, bytes: packet.clone().into(), cut: false });
            }
        }
        let _ = Inspection::of(inspector);
    }

    #[test]
    fn any_streams_are_read_without_a_panic(
        client in (0..4_usize, proptest::collection::vec(any::<u8>(), 0..300)),
        server in (0..4_usize, proptest::collection::vec(any::<u8>(), 0..300)),
    ) {
        let starts: [&[u8]; 4] = [&[], &[0x80, 3, 0, 1], &[0x16, 3, 1, 0, 80, 1], b"GET / HTTP/1.1\r\nUpgrade: spdy/3.1\r\n\r\n"];
        let mut inspector = Inspector::new(Options::default());
        inspector.streams(&[starts[client.0], &client.1].concat(), &[starts[server.0], &server.1].concat());
        let _ = Inspection::of(inspector);
    }

    #[test]
    fn damage_anywhere_is_read_without_a_panic(damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8), ng in any::<bool>()) {
        let exec = live::all().swap_remove(0);
        let mut wire = Wire::new(1, false);
        wire.connect();
        wire.send(ToServer, &exec.client.bytes, 90);
        wire.send(ToClient, &exec.server.bytes, 90);
        let mut file = match ng {
            true => pcapng(&wire.packets, 1, None),
            false => pcap(&wire.packets, 1, false, true),
        };
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        read(&file);
    }

    #[test]
    fn segments_of_any_size_and_order_give_the_same_frames(mss in 1..200_usize, order in any::<u64>()) {
        let exec = live::all().swap_remove(0);
        let expected = {
            let mut wire = Wire::new(101, false);
            wire.connect();
            wire.send(ToServer, &exec.client.bytes, 10_000);
            wire.send(ToClient, &exec.server.bytes, 10_000);
            Inspection::of_file(&pcap(&wire.packets, 101, false, true), Options::default(), 1 << 20).outline()
        };
        let mut wire = Wire::new(101, false);
        wire.connect();
        wire.send(ToServer, &exec.client.bytes, mss);
        wire.send(ToClient, &exec.server.bytes, mss);
        // A shuffle within groups of eight: packets do not overtake many.
        let mut state = order;
        for group in wire.packets[3..].chunks_mut(8) {
            for at in (1..group.len()).rev() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                group.swap(at, (state >> 33) as usize % (at + 1));
            }
        }
        let inspection = Inspection::of_file(&pcap(&wire.packets, 101, false, true), Options::default(), 1 << 20);
        prop_assert_eq!(inspection.outline(), expected);
    }
}
