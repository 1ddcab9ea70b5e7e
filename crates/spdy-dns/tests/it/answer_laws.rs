//! Laws of responses to any bytes.

use hickory_proto::op::{Message, OpCode};
use hickory_proto::rr::RecordType;
use proptest::prelude::*;
use spdy_dns::authoritative::{DEFAULT_UDP, MAX_UDP, Transport, answer, answer_truncated};

use crate::support::{question, zones};

/// Bytes that are sometimes nearly a question.
fn requests() -> impl Strategy<Value = Vec<u8>> {
    let hosts = [
        "site.test",
        "www.site.test",
        "crowd.site.test",
        "a.x.site.test",
        "one.site.test",
        "other.test",
        "nobody.site.test",
    ];
    let near = (
        prop::sample::select(hosts.to_vec()),
        any::<u16>(),
        prop::option::of(any::<u16>()),
        prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    );
    let near = near.prop_map(|(host, kind, payload, changes)| {
        let mut bytes = question(host, RecordType::from(kind), payload);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    });
    prop_oneof![prop::collection::vec(any::<u8>(), 0..300), near]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_break_it_and_no_answer_is_larger_than_allowed(request in requests()) {
        let zones = zones();
        for (transport, limit) in [(Transport::Udp, usize::from(MAX_UDP)), (Transport::Tcp, usize::from(u16::MAX))] {
            let Some(answer) = answer(&zones, &request, transport) else { continue };
            prop_assert!(answer.bytes.len() <= limit);
            let message = Message::from_vec(&answer.bytes);
            prop_assert!(message.is_ok(), "{:?}: {:?}", message, answer.bytes);
            let message = message.unwrap();
            if message.edns.is_none() && transport == Transport::Udp {
                prop_assert!(answer.bytes.len() <= usize::from(DEFAULT_UDP));
            }
            prop_assert_eq!(&answer.bytes[..2], &request[..2]);
            let substance = !message.answers.is_empty() || !message.authorities.is_empty();
            if !substance {
                prop_assert!(answer.bytes.len() <= request.len(), "{:?} to {:?}", answer, request);
            }
            prop_assert_eq!(message.metadata.op_code, OpCode::from_u8((request[2] >> 3) & 0xf));
        }
        if let Some(slipped) = answer_truncated(&request) {
            prop_assert!(slipped.bytes.len() <= request.len());
        }
    }
}
