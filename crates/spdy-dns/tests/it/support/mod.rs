//! The zones of these tests, and questions to them.

use std::net::IpAddr;

use hickory_proto::op::{Edns, Message, Query};
use hickory_proto::rr::{Name, Record, RecordType};
use spdy_dns::authoritative::{Transport, answer};
use spdy_dns::zone_config::{HttpsConfig, NameConfig, ZoneConfig};
use spdy_dns::zones::Zones;

pub(crate) fn name(name: &str, addresses: &[&str]) -> NameConfig {
    let addresses = addresses.iter().map(|address| address.parse::<IpAddr>());
    NameConfig {
        name: name.to_owned(),
        addresses: addresses.collect::<Result<_, _>>().expect("addresses"),
        ..NameConfig::default()
    }
}

pub(crate) fn alias(from: &str, to: &str) -> NameConfig {
    NameConfig {
        alias: Some(to.to_owned()),
        ..name(from, &[])
    }
}

/// `site.test` as configured by an accelerator, and unusual records.
pub(crate) fn site() -> ZoneConfig {
    let https = Some(HttpsConfig {
        alpn: vec!["h3".to_owned(), "h2".to_owned()],
        port: Some(8443),
    });
    let crowd_addresses: Vec<String> = (0..100).map(|last| format!("192.0.2.{last}")).collect();
    let crowd_addresses: Vec<&str> = crowd_addresses.iter().map(String::as_str).collect();
    ZoneConfig {
        apex: "site.test".to_owned(),
        name_servers: vec!["ns1.site.test".to_owned(), "ns2.other.test".to_owned()],
        contact: Some("dns.admin@site.test".to_owned()),
        ttl: 60,
        negative_ttl: 30,
        names: vec![
            NameConfig {
                https: https.clone(),
                ttl: Some(120),
                texts: vec!["v=spf1 -all".to_owned()],
                ..name("@", &["192.0.2.1", "2001:db8::1"])
            },
            NameConfig {
                https,
                ..name("www", &["192.0.2.1", "2001:db8::1"])
            },
            name("ns1", &["192.0.2.53"]),
            name("*.x", &["192.0.2.1", "2001:db8::1"]),
            name("deep.under.site.test.", &["192.0.2.2"]),
            name("crowd", &crowd_addresses),
            alias("img", "www"),
            alias("cdn", "edge.other.test."),
            alias("gone", "nothing"),
            alias("one", "two"),
            alias("two", "one"),
            alias("*.alias", "www"),
        ],
    }
}

pub(crate) fn zones() -> Zones {
    Zones::new(&[site()]).expect("zones")
}

pub(crate) fn question(host: &str, kind: RecordType, payload: Option<u16>) -> Vec<u8> {
    let mut message = Message::query();
    let mut name = Name::from_ascii(host).expect("a name");
    name.set_fqdn(true);
    message.add_query(Query::query(name, kind));
    if let Some(payload) = payload {
        let mut edns = Edns::new();
        edns.set_max_payload(payload);
        message.set_edns(edns);
    }
    message.to_vec().expect("a question")
}

pub(crate) fn response_over(zones: &Zones, request: &[u8], transport: Transport) -> Message {
    let answer = answer(zones, request, transport).expect("a question is answered");
    let message = Message::from_vec(&answer.bytes).expect("a readable response");
    assert_eq!(
        u16::from(message.metadata.response_code),
        u16::from(answer.code)
    ); // 16 has two names
    assert_eq!(message.metadata.truncation, answer.truncated);
    message
}

pub(crate) fn lines(records: &[Record]) -> Vec<String> {
    records.iter().map(ToString::to_string).collect()
}
