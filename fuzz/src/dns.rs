//! The parser of `spdy-dns`: queries from untrusted clients (`authoritative.rs`).
//!
//! - No response is larger than its transport allows, and a response without records is no larger than the query.
//! - A response can be decoded, has the query's ID, and gets no response itself.
//! - Memory is bounded by the largest response, not by the counts in a query's header.

use std::sync::OnceLock;

use hickory_proto::op::Message;
use spdy_dns::authoritative::{Answer, MAX_UDP, Transport, answer, answer_truncated};
use spdy_dns::zone_config::{HttpsConfig, NameConfig, ZoneConfig};
use spdy_dns::zones::Zones;

use crate::memory;

/// Limit of all allocations for one response, in addition to a multiple of the query: a hundred records and their bytes,
/// twice.
const MAX_ALLOCATED_BYTES: usize = 512 * 1024;

fn zones() -> &'static Zones {
    static ZONES: OnceLock<Zones> = OnceLock::new();
    ZONES.get_or_init(|| {
        let crowd = (0..100).map(|last| [192, 0, 2, last].into()).collect();
        let name = |name: &str| NameConfig {
            name: name.to_owned(),
            addresses: vec![
                [192, 0, 2, 1].into(),
                [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(),
            ],
            ..NameConfig::default()
        };
        let alias = |from: &str, to: &str| NameConfig {
            name: from.to_owned(),
            alias: Some(to.to_owned()),
            ..NameConfig::default()
        };
        let https = HttpsConfig {
            alpn: vec!["h2".to_owned()],
            port: Some(8443),
        };
        let zone = ZoneConfig {
            apex: "a.test".to_owned(),
            name_servers: vec!["ns.a.test".to_owned()],
            contact: None,
            ttl: 60,
            negative_ttl: 30,
            names: vec![
                NameConfig {
                    https: Some(https),
                    texts: vec!["t".to_owned()],
                    ..name("@")
                },
                name("ns"),
                name("*.x"),
                NameConfig {
                    addresses: crowd,
                    ..name("c")
                },
                alias("i", "c"),
                alias("1", "2"),
                alias("2", "1"),
                alias("*.w", "b.test."),
            ],
        };
        Zones::new(&[zone]).unwrap_or_else(|error| panic!("invalid zone: {error}"))
    })
}

/// Responds to the input as the server does, and as its rate limiter does.
pub fn check_query(input: &[u8]) {
    let zones = zones();
    memory::at_most(MAX_ALLOCATED_BYTES + 64 * input.len(), || {
        for (transport, most) in [
            (Transport::Udp, usize::from(MAX_UDP)),
            (Transport::Tcp, usize::from(u16::MAX)),
        ] {
            if let Some(answered) = answer(zones, input, transport) {
                assert!(answered.bytes.len() <= most, "{transport:?}: {answered:?}");
                check_answer(input, &answered);
                assert_eq!(answer(zones, &answered.bytes, transport), None);
            }
        }
        if let Some(slipped) = answer_truncated(input) {
            assert!(slipped.bytes.len() <= input.len(), "{slipped:?}");
        }
    });
}

fn check_answer(input: &[u8], answered: &Answer) {
    let message = match Message::from_vec(&answered.bytes) {
        Ok(message) => message,
        Err(error) => panic!("{error}: {answered:?}"),
    };
    assert_eq!(answered.bytes[..2], input[..2], "{answered:?}");
    if message.answers.is_empty() && message.authorities.is_empty() {
        assert!(answered.bytes.len() <= input.len(), "{answered:?}");
    }
}
