//! The resolver against upstream servers: ours on loopback, and some that misbehave.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, ResponseCode};
use hickory_proto::rr::rdata::{A, CNAME};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_dns::serve::{DnsServer, ServeLimits, StatsReader};
use spdy_dns::zone_config::{NameConfig, ZoneConfig};
use spdy_dns::zones::{SharedZones, Zones};
use spdy_net::latch::Latch;
use spdy_net::network::{BoxIo, Network, SystemNetwork};
use spdy_resolver::address_rules::AddressRules;
use spdy_resolver::config::{ResolverConfig, servers_of};
use spdy_resolver::guarded_network::GuardedNetwork;
use spdy_resolver::own_names::OwnNames;
use spdy_resolver::resolver::Resolver;
use spdy_resolver::spoof_budget::{Mismatch, MismatchedReplies};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

/// A server of these zones, until the test ends.
fn upstream(configs: &[ZoneConfig]) -> (SocketAddr, StatsReader) {
    let zones = SharedZones::new(Zones::new(configs).unwrap());
    let addresses = ["127.0.0.1:0".parse().unwrap()];
    let server = DnsServer::bind(
        &addresses,
        zones,
        ServeLimits::default(),
        SharedRuntime::tokio(),
    );
    let server = server.unwrap();
    let (address, stats) = (server.addresses()[0], server.stats());
    tokio::spawn(server.run(Latch::new()));
    (address, stats)
}

fn zone(apex: &str, names: Vec<NameConfig>) -> ZoneConfig {
    ZoneConfig {
        apex: apex.to_owned(),
        name_servers: vec!["ns.nowhere.test".to_owned()],
        contact: None,
        ttl: 60,
        negative_ttl: 30,
        names,
    }
}

fn name(name: &str, addresses: &[&str]) -> NameConfig {
    let addresses = addresses.iter().map(|address| address.parse::<IpAddr>());
    NameConfig {
        name: name.to_owned(),
        addresses: addresses.collect::<Result<_, _>>().unwrap(),
        ..NameConfig::default()
    }
}

fn alias(from: &str, to: &str) -> NameConfig {
    NameConfig {
        alias: Some(to.to_owned()),
        ..name(from, &[])
    }
}

/// The names of a name server for `site.test`.
fn own_names() -> OwnNames {
    let zones = Zones::new(&[zone("site.test", Vec::new())]).unwrap();
    OwnNames::new(move |name| zones.owns(name))
}

/// An upstream that replies to each query with the messages of `respond`.
async fn fake(
    respond: impl Fn(Message) -> Vec<Message> + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let query_count = Arc::new(AtomicUsize::new(0));
    let counter = query_count.clone();
    tokio::spawn(async move {
        let mut request = [0; 4096];
        while let Ok((len, from)) = socket.recv_from(&mut request).await {
            counter.fetch_add(1, Ordering::SeqCst);
            let request = Message::from_vec(&request[..len]).unwrap();
            for reply in respond(request) {
                socket
                    .send_to(&reply.to_vec().unwrap(), from)
                    .await
                    .unwrap();
            }
        }
    });
    (address, query_count)
}

/// An answer with one address for the name of the query, if the query is for IPv4.
fn address(request: &Message, address: [u8; 4], ttl: u32) -> Message {
    let mut answer = Message::response(request.metadata.id, request.metadata.op_code);
    answer.add_queries(request.queries.clone());
    if request.queries[0].query_type() == RecordType::A {
        let data = RData::A(A(address.into()));
        answer.add_answer(Record::from_rdata(
            request.queries[0].name().clone(),
            ttl,
            data,
        ));
    }
    answer
}

fn resolver(config: ResolverConfig) -> Resolver {
    let (network, seed) = (Arc::new(SystemNetwork), [7; 32]);
    Resolver::new(network, SharedRuntime::tokio(), config, own_names(), seed)
}

fn of(servers: &[SocketAddr]) -> ResolverConfig {
    ResolverConfig {
        servers: servers.to_vec(),
        ..ResolverConfig::default()
    }
}

async fn look_up(resolver: &Resolver, host: &str) -> Result<Vec<String>, String> {
    let addresses = resolver
        .resolve(host)
        .await
        .map_err(|error| error.to_string())?;
    Ok(addresses.iter().map(ToString::to_string).collect())
}

#[tokio::test]
async fn addresses_of_both_kinds_alternate_and_are_queried_once() {
    let names = vec![
        name("both", &["192.0.2.1", "192.0.2.2", "2001:db8::1"]),
        name("six", &["2001:db8::2"]),
        alias("alias", "both"),
    ];
    let (server, stats) = upstream(&[zone("origin.test", names)]);
    let resolver = resolver(of(&[server]));
    for _ in 0..2 {
        for (host, expected) in [
            (
                "both.origin.test",
                &["2001:db8::1", "192.0.2.1", "192.0.2.2"][..],
            ),
            (
                "BOTH.origin.test",
                &["2001:db8::1", "192.0.2.1", "192.0.2.2"],
            ),
            ("six.origin.test", &["2001:db8::2"]),
            (
                "alias.origin.test",
                &["2001:db8::1", "192.0.2.1", "192.0.2.2"],
            ),
        ] {
            assert_eq!(look_up(&resolver, host).await.unwrap(), expected, "{host}");
        }
        for (host, expected) in [
            (
                "nobody.origin.test",
                "unknown host nobody.origin.test (`upstream.resolve` gives a name an address)",
            ),
            (
                "origin.test",
                "no address for origin.test (`upstream.resolve` gives a name an address)",
            ),
        ] {
            assert_eq!(look_up(&resolver, host).await.unwrap_err(), expected);
        }
    }
    let stats = stats.stats();
    assert_eq!((stats.answered, stats.no_such_name), (8, 2)); // two questions a host
}

#[tokio::test]
async fn a_truncated_reply_is_queried_over_tcp() {
    let expected: Vec<String> = (0..200).map(|last| format!("192.0.2.{last}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    let (server, stats) = upstream(&[zone("origin.test", vec![name("crowd", &expected)])]);
    let addresses = look_up(&resolver(of(&[server])), "crowd.origin.test")
        .await
        .unwrap();
    assert_eq!(addresses.len(), 64); // no more than that are taken
    assert_eq!(stats.stats().truncated, 1);
}

#[tokio::test]
async fn own_names_are_refused_unless_overridden() {
    let stray = zone(
        "origin.test",
        vec![
            alias("stray", "www.site.test."),
            alias("far", "a.elsewhere.test."),
        ],
    );
    let (server, stats) = upstream(&[stray, zone("site.test", vec![name("www", &["192.0.2.66"])])]);
    let (other_server, _) = upstream(&[zone("elsewhere.test", vec![alias("a", "b.x.site.test.")])]);
    let explicit = BTreeMap::from([(
        "www.site.test".to_owned(),
        vec![IpAddr::from([10, 0, 0, 5])],
    )]);
    let resolver = resolver(ResolverConfig {
        explicit,
        ..of(&[server, other_server])
    });
    assert_eq!(
        look_up(&resolver, "WWW.site.test").await.unwrap(),
        ["10.0.0.5"]
    );
    for host in ["site.test", "a.x.site.test", "nobody.site.test"] {
        let error = look_up(&resolver, host).await.unwrap_err();
        assert!(error.contains("would loop"), "{error}");
    }
    assert_eq!(stats.stats().answered, 0); // no server was queried so far
    for host in ["stray.origin.test", "far.origin.test"] {
        let error = look_up(&resolver, host).await.unwrap_err();
        assert!(
            error.contains("is an alias of") && error.contains("would loop"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn an_alias_to_an_own_name_is_refused_whatever_bytes_it_has() {
    let (server, _) = fake(|request| {
        let query_name = request.queries[0].name().clone();
        let labels = [&b"a\0 \xff"[..], b"site", b"test"];
        let target = CNAME(Name::from_labels(labels).unwrap());
        let mut answer = address(&request, [192, 0, 2, 7], 60);
        answer.answers.clear();
        answer.add_answer(Record::from_rdata(query_name, 60, RData::CNAME(target)));
        vec![answer]
    })
    .await;
    let error = look_up(&resolver(of(&[server])), "a.origin.test").await;
    let error = error.unwrap_err();
    assert!(error.contains("would loop"), "{error}");
}

#[tokio::test]
async fn aliases_lead_from_server_to_server_and_circles_end() {
    let near = vec![
        alias("cdn", "edge.elsewhere.test."),
        alias("one", "two"),
        alias("two", "one"),
    ];
    let (near, _) = upstream(&[zone("origin.test", near)]);
    let (far, _) = upstream(&[zone("elsewhere.test", vec![name("edge", &["192.0.2.9"])])]);
    let long = fake(|request| {
        // Each name is an alias to a longer one.
        let query_name = request.queries[0].name().clone();
        let mut answer = address(&request, [0; 4], 60);
        answer.answers.clear();
        let target = CNAME(query_name.prepend_label("a").unwrap());
        answer.add_answer(Record::from_rdata(query_name, 60, RData::CNAME(target)));
        vec![answer]
    });
    let (long, query_count) = long.await;
    let both = resolver(of(&[near, far]));
    assert_eq!(
        look_up(&both, "cdn.origin.test").await.unwrap(),
        ["192.0.2.9"]
    );
    assert!(look_up(&both, "one.origin.test").await.is_err());
    let error = look_up(&resolver(of(&[long])), "origin.test")
        .await
        .unwrap_err();
    assert!(error.contains("more than 8 aliases"), "{error}");
    assert_eq!(query_count.load(Ordering::SeqCst), 2 * 9);
}

#[tokio::test]
async fn a_failed_or_silent_server_is_skipped() {
    let (silent_server, _) = fake(|_| Vec::new()).await;
    let (failing, _) = fake(|request| {
        let mut answer = address(&request, [0; 4], 60);
        answer.metadata.response_code = ResponseCode::ServFail;
        vec![answer]
    })
    .await;
    let (working_server, _) = fake(|request| vec![address(&request, [192, 0, 2, 7], 60)]).await;
    let config = ResolverConfig {
        timeout: Duration::from_millis(500),
        ..of(&[silent_server, failing, working_server])
    };
    assert_eq!(
        look_up(&resolver(config), "a.origin.test").await.unwrap(),
        ["192.0.2.7"]
    );
    let config = ResolverConfig {
        timeout: Duration::from_millis(10),
        ..of(&[failing, silent_server])
    };
    let error = resolver(config).resolve("a.origin.test").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert!(
        error.to_string().contains(&silent_server.to_string()),
        "{error}"
    );
}

#[tokio::test]
async fn mismatched_replies_are_ignored() {
    let (server, _) = fake(|request| {
        let evil = address(&request, [192, 0, 2, 66], 60);
        let mut other_id = evil.clone();
        other_id.metadata.id ^= 1;
        let mut no_reply = evil.clone();
        no_reply.metadata.message_type = MessageType::Query;
        let mut other_name = evil.clone();
        other_name.queries[0].name = Name::from_ascii("b.origin.test.").unwrap();
        let mut other_kind = evil.clone();
        other_kind.queries[0].query_type = RecordType::TXT;
        let mut no_question = evil.clone();
        no_question.queries.clear();
        // A record of another name than the queried one, in a valid reply.
        let mut valid_reply = address(&request, [192, 0, 2, 7], 60);
        let stray = Name::from_ascii("c.origin.test.").unwrap();
        let data = RData::A(A([192, 0, 2, 66].into()));
        valid_reply
            .answers
            .insert(0, Record::from_rdata(stray, 60, data));
        vec![
            other_id,
            no_reply,
            other_name,
            other_kind,
            no_question,
            valid_reply,
        ]
    })
    .await;
    let addresses = look_up(&resolver(of(&[server])), "a.origin.test").await;
    assert_eq!(addresses.unwrap(), ["192.0.2.7"]);
}

#[tokio::test]
async fn a_reply_from_another_address_or_port_is_ignored() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let address_of_server = server.local_addr().unwrap();
    let port = address_of_server.port();
    let other_port = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let other_address = UdpSocket::bind(("127.0.0.3", port)).await.unwrap();
    tokio::spawn(async move {
        let mut request = [0; 4096];
        while let Ok((len, from)) = server.recv_from(&mut request).await {
            let request = Message::from_vec(&request[..len]).unwrap();
            let evil = address(&request, [192, 0, 2, 66], 60).to_vec().unwrap();
            other_port.send_to(&evil, from).await.unwrap();
            other_address.send_to(&evil, from).await.unwrap();
            let valid_reply = address(&request, [192, 0, 2, 7], 60).to_vec().unwrap();
            server.send_to(&valid_reply, from).await.unwrap();
        }
    });
    let addresses = look_up(&resolver(of(&[address_of_server])), "a.origin.test").await;
    assert_eq!(addresses.unwrap(), ["192.0.2.7"]);
}

/// A server whose replies over UDP are those of `over_udp`; over TCP it gives `address` of 192.0.2.7. Also returns the names that were
/// queried over UDP, and the number of queries over TCP.
async fn with_tcp(
    over_udp: impl Fn(Message) -> Vec<Message> + Send + 'static,
) -> (SocketAddr, Arc<Mutex<Vec<String>>>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let socket = UdpSocket::bind(at).await.unwrap();
    let (names, over_tcp) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(AtomicUsize::new(0)),
    );
    let (name_log, counter) = (names.clone(), over_tcp.clone());
    tokio::spawn(async move {
        let mut request = [0; 4096];
        while let Ok((len, from)) = socket.recv_from(&mut request).await {
            let request = Message::from_vec(&request[..len]).unwrap();
            let name = request.queries[0].name().to_ascii();
            name_log.lock().unwrap().push(name);
            for reply in over_udp(request) {
                let reply = reply.to_vec().unwrap();
                socket.send_to(&reply, from).await.unwrap();
            }
        }
    });
    tokio::spawn(async move {
        while let Ok((mut io, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let mut request = vec![0; io.read_u16().await.unwrap().into()];
            io.read_exact(&mut request).await.unwrap();
            let request = Message::from_vec(&request).unwrap();
            let reply = address(&request, [192, 0, 2, 7], 60).to_vec().unwrap();
            io.write_u16(reply.len().try_into().unwrap()).await.unwrap();
            io.write_all(&reply).await.unwrap();
        }
    });
    (at, names, over_tcp)
}

/// `count` replies with an address of the forger's and another ID.
fn forged(request: &Message, count: u32) -> Vec<Message> {
    let ids = (1..=count).map(|guess| request.metadata.id.wrapping_add(guess as u16));
    let reply = |id| {
        let mut reply = address(request, [192, 0, 2, 66], 60);
        reply.metadata.id = id;
        reply
    };
    ids.map(reply).collect()
}

#[tokio::test]
async fn the_case_of_a_name_is_random_and_must_be_repeated() {
    let (server, names, over_tcp) = with_tcp(|request| {
        let evil = address(&request, [192, 0, 2, 66], 60);
        let mut lower = evil.clone();
        lower.queries[0].name = lower.queries[0].name.to_lowercase();
        vec![lower, evil]
    })
    .await;
    let mismatches = MismatchedReplies::default();
    let resolver = resolver(of(&[server])).with_counts(mismatches.clone());
    let host = "abcdefghijklmnopqrstuvwxyz.origin.test";
    let addresses = look_up(&resolver, host).await;
    assert_eq!(addresses.unwrap(), ["192.0.2.7"], "as TCP has it");
    assert_eq!(over_tcp.load(Ordering::SeqCst), 2, "A and AAAA");
    assert_eq!(
        (mismatches.of(Mismatch::Case), mismatches.switched_to_tcp()),
        (2, 0)
    );
    let names = names.lock().unwrap();
    assert!(names.len() == 2 && names[0] != names[1], "{names:?}");
    for name in names.iter() {
        assert_ne!(name.to_ascii_lowercase(), *name, "{name}");
        assert_eq!(name.to_ascii_lowercase(), format!("{host}."));
    }
}

#[tokio::test]
async fn forged_replies_past_the_limit_send_the_look_up_to_tcp() {
    let limit = ResolverConfig::default().max_mismatched_replies;
    // The replies to AAAA and A count together.
    for (of_each, min_over_tcp) in [(limit / 2, 0), (limit / 2 + 1, 1), (limit + 1, 2)] {
        let (server, _, over_tcp) = with_tcp(move |request| {
            let valid_reply = address(&request, [192, 0, 2, 8], 60);
            let mut replies = forged(&request, of_each);
            replies.push(valid_reply);
            replies
        })
        .await;
        let mismatches = MismatchedReplies::default();
        let resolver = resolver(of(&[server])).with_counts(mismatches.clone());
        let addresses = look_up(&resolver, "a.origin.test").await.unwrap();
        assert!(
            !addresses.contains(&"192.0.2.66".to_owned()),
            "{addresses:?}"
        );
        let over_tcp = over_tcp.load(Ordering::SeqCst);
        assert!(over_tcp >= min_over_tcp, "{of_each}: {over_tcp}");
        assert_eq!(over_tcp > 0, min_over_tcp > 0, "{of_each}");
        assert_eq!(
            mismatches.switched_to_tcp(),
            u64::from(min_over_tcp > 0),
            "{of_each}"
        );
        assert!(mismatches.of(Mismatch::Header) >= u64::from(of_each.min(limit)));
    }
}

/// Any host can send packets to the port of a question. If they counted towards the limit, a few of them would push every look-up to
/// TCP, which fails if the server has none.
#[tokio::test]
async fn replies_from_another_address_do_not_send_a_look_up_to_tcp() {
    let of_each = ResolverConfig::default().max_mismatched_replies + 1;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let server = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let other_socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut request = [0; 4096];
        while let Ok((len, from)) = socket.recv_from(&mut request).await {
            let request = Message::from_vec(&request[..len]).unwrap();
            // The right ID and name: the source alone is wrong.
            let evil = address(&request, [192, 0, 2, 66], 60).to_vec().unwrap();
            for _ in 0..of_each {
                other_socket.send_to(&evil, from).await.unwrap();
            }
            let valid_reply = address(&request, [192, 0, 2, 8], 60).to_vec().unwrap();
            socket.send_to(&valid_reply, from).await.unwrap();
        }
    });
    let mismatches = MismatchedReplies::default();
    let resolver = resolver(of(&[server])).with_counts(mismatches.clone());
    let addresses = look_up(&resolver, "a.origin.test").await;
    assert_eq!(addresses.unwrap(), ["192.0.2.8"]);
    assert_eq!(mismatches.switched_to_tcp(), 0);
    let ignored = mismatches.of(Mismatch::Source);
    assert_eq!(ignored, u64::from(2 * of_each), "for A and AAAA");
}

#[tokio::test]
async fn ttls_are_followed_within_bounds() {
    for (ttl, min, max, questions) in [
        (0, 0, 3600, 4),           // never
        (0, 60, 3600, 2),          // at least a minute
        (60, 0, 3600, 2),          // the TTL itself
        (60, 0, 0, 4),             // at most not at all
        (0x8000_0000, 0, 3600, 4), // RFC 2181 §8: as 0
    ] {
        let (server, query_count) =
            fake(move |request| vec![address(&request, [192, 0, 2, 7], ttl)]).await;
        let resolver = resolver(ResolverConfig {
            min_ttl: Duration::from_secs(min),
            max_ttl: Duration::from_secs(max),
            ..of(&[server])
        });
        for _ in 0..2 {
            look_up(&resolver, "a.origin.test").await.unwrap();
        }
        assert_eq!(
            query_count.load(Ordering::SeqCst),
            questions,
            "TTL {ttl}, {min} to {max}"
        );
    }
}

#[tokio::test]
async fn one_look_up_too_many_at_once_fails() {
    let (silent_server, _) = fake(|_| Vec::new()).await;
    let resolver = resolver(ResolverConfig {
        max_lookups: 1,
        timeout: Duration::from_millis(20),
        rounds: 1,
        ..of(&[silent_server])
    });
    let (first, second) = tokio::join!(
        resolver.resolve("a.origin.test"),
        resolver.resolve("b.origin.test")
    );
    assert_eq!(first.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(second.unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
    let later = resolver.resolve("b.origin.test").await; // the place is free again
    assert_eq!(later.unwrap_err().kind(), io::ErrorKind::TimedOut);
}

/// A network whose own resolver counts.
struct Counting(Arc<AtomicUsize>);

impl Network for Counting {
    fn resolve(&self, _: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready(Ok(vec![[192, 0, 2, 1].into()])))
    }

    fn connect(&self, _: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        unreachable!("no connection is made")
    }
}

#[tokio::test]
async fn without_servers_the_network_resolver_is_used() {
    let query_count = Arc::new(AtomicUsize::new(0));
    let network = Arc::new(Counting(query_count.clone()));
    let config = ResolverConfig::default();
    let runtime = SharedRuntime::tokio();
    let resolver = Resolver::new(network, runtime, config, own_names(), [7; 32]);
    for _ in 0..3 {
        assert_eq!(
            look_up(&resolver, "a.origin.test").await.unwrap(),
            ["192.0.2.1"]
        );
    }
    assert!(
        look_up(&resolver, "site.test")
            .await
            .unwrap_err()
            .contains("would loop")
    );
    assert_eq!(query_count.load(Ordering::SeqCst), 1);
    // Under the guard, which also checks cached addresses.
    let guarded = GuardedNetwork::new(Arc::new(resolver), AddressRules::default());
    let error = guarded.resolve("a.origin.test").await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
}

#[test]
fn servers_are_read_out_of_a_resolv_conf() {
    let text = "# nameserver 192.0.2.9\nsearch a.test\n nameserver 192.0.2.1 # first\nnameserver 2001:db8::1\n\
                nameserver fe80::1%eth0\nnameserver\nnameserver x\nnameservers 192.0.2.8\noptions edns0";
    let expected: Vec<SocketAddr> = ["192.0.2.1:53", "[2001:db8::1]:53"]
        .map(|at| at.parse().unwrap())
        .into();
    assert_eq!(servers_of(text), expected);
}
