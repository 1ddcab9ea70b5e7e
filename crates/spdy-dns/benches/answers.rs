//! Answers of the name server, without its sockets.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hickory_proto::op::{Edns, Message, Query};
use hickory_proto::rr::{Name, RecordType};
use spdy_clock::Instant;
use spdy_dns::authoritative::{Transport, answer};
use spdy_dns::rate_limit::{RateLimiter, RateLimits};
use spdy_dns::zone_config::{HttpsConfig, NameConfig, ZoneConfig};
use spdy_dns::zones::Zones;

fn zones() -> Zones {
    let name = |name: &str| NameConfig {
        name: name.to_owned(),
        addresses: vec![
            [192, 0, 2, 1].into(),
            [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(),
        ],
        https: Some(HttpsConfig {
            alpn: vec!["h3".to_owned(), "h2".to_owned()],
            port: None,
        }),
        ..NameConfig::default()
    };
    let zone = ZoneConfig {
        apex: "site.test".to_owned(),
        name_servers: vec!["ns.other.test".to_owned()],
        contact: None,
        ttl: 60,
        negative_ttl: 30,
        names: vec![name("@"), name("www"), name("*.x")],
    };
    Zones::new(&[zone]).expect("a zone")
}

fn question(host: &str, kind: RecordType) -> Vec<u8> {
    let mut message = Message::query();
    message.add_query(Query::query(Name::from_ascii(host).expect("a name"), kind));
    let mut edns = Edns::new();
    edns.set_max_payload(1232);
    message.set_edns(edns);
    message.to_vec().expect("a question")
}

fn answers(c: &mut Criterion) {
    let zones = zones();
    let mut group = c.benchmark_group("dns/answer");
    group.throughput(Throughput::Elements(1));
    for (what, host, kind) in [
        ("A", "www.site.test.", RecordType::A),
        ("HTTPS", "www.site.test.", RecordType::HTTPS),
        ("A by a wildcard", "abcdef.x.site.test.", RecordType::A),
        ("no such name", "nobody.site.test.", RecordType::A),
        ("refused", "www.other.test.", RecordType::A),
    ] {
        let request = question(host, kind);
        group.bench_function(what, |b| {
            b.iter(|| answer(&zones, black_box(&request), Transport::Udp));
        });
    }
    group.finish();
}

fn rate(c: &mut Criterion) {
    let mut group = c.benchmark_group("dns/rate limit");
    group.throughput(Throughput::Elements(1));
    group.bench_function("a full table of networks", |b| {
        let mut limiter = RateLimiter::new(RateLimits::default());
        let (mut network, mut now) = (0_u32, Instant::ZERO);
        b.iter(|| {
            network = network.wrapping_add(0x9e37_79b9); // another one each time, so that one is forgotten
            now += Duration::from_micros(10);
            limiter.check(now, std::net::Ipv4Addr::from(network).into())
        });
    });
    group.finish();
}

criterion_group!(benches, answers, rate);
criterion_main!(benches);
