//! Responses of the authoritative server to queries, without sockets.

use hickory_proto::op::{Edns, Message, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use proptest::prelude::*;
use spdy_dns::authoritative::{
    DEFAULT_UDP, MAX_ALIASES, MAX_REQUEST, MAX_UDP, Transport, answer, answer_truncated,
};
use spdy_dns::zone_config::{MAX_TEXT, ZoneConfig, ZoneError};
use spdy_dns::zones::{MAX_TEXTS, SharedZones, TextError, Zones};

use crate::support::{alias, name, question, site, zones};

fn response_over(zones: &Zones, request: &[u8], transport: Transport) -> Message {
    let answer = answer(zones, request, transport).expect("a question is answered");
    let message = Message::from_vec(&answer.bytes).expect("a readable response");
    assert_eq!(
        u16::from(message.metadata.response_code),
        u16::from(answer.code)
    ); // 16 has two names
    assert_eq!(message.metadata.truncation, answer.truncated);
    message
}

fn response_for(host: &str, kind: RecordType) -> Message {
    response_over(&zones(), &question(host, kind, Some(4096)), Transport::Udp)
}

fn lines(records: &[Record]) -> Vec<String> {
    records.iter().map(ToString::to_string).collect()
}

#[test]
fn names_have_the_records_that_were_configured() {
    for (host, kind, expected) in [
        (
            "site.test",
            RecordType::A,
            &["site.test. 120 IN A 192.0.2.1"][..],
        ),
        (
            "site.test",
            RecordType::AAAA,
            &["site.test. 120 IN AAAA 2001:db8::1"],
        ),
        (
            "site.test",
            RecordType::TXT,
            &["site.test. 120 IN TXT v=spf1 -all"],
        ),
        (
            "site.test",
            RecordType::NS,
            &[
                "site.test. 60 IN NS ns1.site.test.",
                "site.test. 60 IN NS ns2.other.test.",
            ],
        ),
        (
            "site.test",
            RecordType::SOA,
            &["site.test. 60 IN SOA ns1.site.test. dns\\.admin.site.test. 1 7200 900 1209600 30"],
        ),
        (
            "www.site.test",
            RecordType::HTTPS,
            &[
                "www.site.test. 60 IN HTTPS 1 . alpn=h3,h2 port=8443 ipv4hint=192.0.2.1 ipv6hint=2001:db8::1",
            ],
        ),
        (
            "a.x.site.test",
            RecordType::A,
            &["a.x.site.test. 60 IN A 192.0.2.1"],
        ),
        (
            "a.b.x.site.test",
            RecordType::A,
            &["a.b.x.site.test. 60 IN A 192.0.2.1"],
        ),
        (
            "*.x.site.test",
            RecordType::A,
            &["*.x.site.test. 60 IN A 192.0.2.1"],
        ),
        (
            "img.site.test",
            RecordType::A,
            &[
                "img.site.test. 60 IN CNAME www.site.test.",
                "www.site.test. 60 IN A 192.0.2.1",
            ],
        ),
        (
            "img.site.test",
            RecordType::CNAME,
            &["img.site.test. 60 IN CNAME www.site.test."],
        ),
        (
            "cdn.site.test",
            RecordType::A,
            &["cdn.site.test. 60 IN CNAME edge.other.test."],
        ),
        (
            "b.alias.site.test",
            RecordType::A,
            &[
                "b.alias.site.test. 60 IN CNAME www.site.test.",
                "www.site.test. 60 IN A 192.0.2.1",
            ],
        ),
    ] {
        let message = response_for(host, kind);
        let records: Vec<String> = lines(&message.answers)
            .iter()
            .map(|line| {
                line.replace(['"', '\t'], " ")
                    .replace(", ", " ")
                    .trim_end_matches(',')
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        assert_eq!(records, expected, "{host} {kind}");
        assert!(message.metadata.authoritative, "{host}");
        assert!(!message.metadata.recursion_available, "{host}");
        assert_eq!(
            message.metadata.response_code,
            ResponseCode::NoError,
            "{host}"
        );
    }
    let servers = response_for("site.test", RecordType::NS);
    assert_eq!(
        lines(&servers.additionals),
        ["ns1.site.test. 60 IN A 192.0.2.53"]
    );
}

#[test]
fn negative_answers_have_the_soa_and_foreign_names_are_refused() {
    use ResponseCode::{NXDomain, NoError, Refused, ServFail};
    for (host, kind, code, answers, soa) in [
        ("www.site.test", RecordType::MX, NoError, 0, true),
        ("ns1.site.test", RecordType::AAAA, NoError, 0, true),
        ("a.x.site.test", RecordType::MX, NoError, 0, true),
        ("img.site.test", RecordType::MX, NoError, 1, true),
        ("under.site.test", RecordType::A, NoError, 0, true), // only names under it
        ("x.site.test", RecordType::A, NoError, 0, true),
        ("nobody.site.test", RecordType::A, NXDomain, 0, true),
        ("b.www.site.test", RecordType::A, NXDomain, 0, true),
        ("b.under.site.test", RecordType::A, NXDomain, 0, true),
        ("gone.site.test", RecordType::A, NXDomain, 1, true), // RFC 6604
        ("one.site.test", RecordType::A, ServFail, 0, false),
        ("other.test", RecordType::A, Refused, 0, false),
        ("test", RecordType::SOA, Refused, 0, false),
        (".", RecordType::NS, Refused, 0, false),
        ("notsite.test", RecordType::A, Refused, 0, false),
        ("site.test", RecordType::AXFR, Refused, 0, false),
        ("site.test", RecordType::IXFR, Refused, 0, false),
    ] {
        let message = response_for(host, kind);
        assert_eq!(message.metadata.response_code, code, "{host} {kind}");
        assert_eq!(message.answers.len(), answers, "{host} {kind}");
        let authorities = lines(&message.authorities);
        let has_soa = authorities
            .iter()
            .any(|line| line.starts_with("site.test. 30 IN SOA"));
        assert_eq!(has_soa, soa, "{host} {kind}: {authorities:?}");
        assert_eq!(
            message.metadata.authoritative,
            code != Refused,
            "{host} {kind}"
        );
    }
}

#[test]
fn a_question_comes_back_in_its_own_capitals_and_so_do_records() {
    let message = response_for("wWw.SiTe.TeSt", RecordType::A);
    assert_eq!(message.queries[0].name().to_ascii(), "wWw.SiTe.TeSt.");
    assert_eq!(message.answers[0].name.to_ascii(), "wWw.SiTe.TeSt.");
}

#[test]
fn any_is_answered_with_as_little_as_there_can_be() {
    let message = response_for("site.test", RecordType::ANY);
    assert_eq!(message.answers.len(), 1);
    let RData::HINFO(hinfo) = &message.answers[0].data else {
        panic!("{message:?}")
    };
    assert_eq!((&*hinfo.cpu, &*hinfo.os), (&b"RFC8482"[..], &b""[..]));
    assert_eq!(
        response_for("nobody.site.test", RecordType::ANY)
            .metadata
            .response_code,
        ResponseCode::NXDomain
    );
}

#[test]
fn oversized_answers_are_truncated_and_complete_over_tcp() {
    let zones = zones();
    for (payload, fits) in [
        (None, false),
        (Some(100), false), // counts as 512
        (Some(1232), false),
        (Some(65535), false), // we send no more than 1232
    ] {
        let request = question("crowd.site.test", RecordType::A, payload);
        let cut = response_over(&zones, &request, Transport::Udp);
        assert_eq!(
            (cut.metadata.truncation, cut.answers.len()),
            (!fits, 0),
            "{payload:?}"
        );
        assert_eq!(cut.queries.len(), 1);
        let tcp_message = response_over(&zones, &request, Transport::Tcp);
        assert_eq!(
            (tcp_message.metadata.truncation, tcp_message.answers.len()),
            (false, 100)
        );
    }
    // One address more than fits, and one less, by each limit: 12 + 20 + 16 each, and 11 for EDNS.
    for (payload, max_answers) in [(None, 30), (Some(1232), 74)] {
        for (count, cut) in [(max_answers, false), (max_answers + 1, true)] {
            let addresses: Vec<String> = (0..count).map(|last| format!("192.0.2.{last}")).collect();
            let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
            let mut config = site();
            config.names.push(name("some", &addresses));
            let zones = Zones::new(&[config]).unwrap();
            let request = question("some.site.test", RecordType::A, payload);
            let message = response_over(&zones, &request, Transport::Udp);
            assert_eq!(message.metadata.truncation, cut, "{count} to {payload:?}");
        }
    }
}

#[test]
fn edns_is_answered_in_kind_and_another_version_is_refused() {
    let plain = response_over(
        &zones(),
        &question("www.site.test", RecordType::A, None),
        Transport::Udp,
    );
    assert_eq!(plain.edns, None);
    let message = response_for("www.site.test", RecordType::A);
    assert_eq!(message.edns.map(|edns| edns.max_payload()), Some(MAX_UDP));
    let mut request = Message::from_vec(&question("www.site.test", RecordType::A, None)).unwrap();
    let mut edns = Edns::new();
    edns.set_version(1);
    request.set_edns(edns);
    let message = response_over(&zones(), &request.to_vec().unwrap(), Transport::Udp);
    assert_eq!(u16::from(message.metadata.response_code), 16);
    assert_eq!(message.edns.map(|edns| edns.version()), Some(0));
    assert!(message.answers.is_empty());
}

#[test]
fn invalid_questions_get_a_short_error() {
    let valid = question("www.site.test", RecordType::A, None);
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = valid.clone();
        change(&mut bytes);
        bytes
    };
    let class = |class: DNSClass| {
        let mut message = Message::from_vec(&valid).unwrap();
        message.queries[0].set_query_class(class);
        message.to_vec().unwrap()
    };
    let two_edns = {
        let mut bytes = question("www.site.test", RecordType::A, Some(1232));
        let edns = bytes[bytes.len() - 11..].to_vec();
        bytes.extend(edns);
        bytes[11] = 2;
        bytes
    };
    let two_questions = {
        let mut message = Message::from_vec(&valid).unwrap();
        let name = Name::from_ascii("site.test.").unwrap();
        message.add_query(Query::query(name, RecordType::A));
        message.to_vec().unwrap()
    };
    use ResponseCode::{FormErr, NotImp, Refused};
    for (what, request, expected) in [
        ("another class", class(DNSClass::CH), Refused),
        ("any class", class(DNSClass::ANY), Refused),
        ("an update", with(&|bytes| bytes[2] = 5 << 3), NotImp),
        ("a notification", with(&|bytes| bytes[2] = 4 << 3), NotImp),
        (
            "no such operation",
            with(&|bytes| bytes[2] = 15 << 3),
            NotImp,
        ),
        ("a head alone", valid[..12].to_vec(), FormErr),
        ("a name that is cut", valid[..20].to_vec(), FormErr),
        ("no question", with(&|bytes| bytes[5] = 0), FormErr),
        ("two questions", two_questions, FormErr),
        (
            "65535 questions",
            with(&|bytes| bytes[4..6].fill(0xff)),
            FormErr,
        ),
        (
            "answers in a question",
            with(&|bytes| bytes[7] = 1),
            FormErr,
        ),
        (
            "a record that is not there",
            with(&|bytes| bytes[11] = 1),
            FormErr,
        ),
        ("bytes behind", with(&|bytes| bytes.push(0)), FormErr),
        (
            "too many bytes behind",
            with(&|bytes| bytes.resize(MAX_REQUEST + 1, 0)),
            FormErr,
        ),
        ("two times EDNS", two_edns, FormErr),
        (
            "a pointer to itself",
            with(&|bytes| bytes[12..14].copy_from_slice(&[0xc0, 12])),
            FormErr,
        ),
        (
            "a pointer into the head",
            [&valid[..12], &[0xc0, 4, 0, 1, 0, 1]].concat(),
            FormErr,
        ),
        ("a label of 64", with(&|bytes| bytes[12] = 64), FormErr),
    ] {
        let answer = answer(&zones(), &request, Transport::Udp).expect(what);
        assert_eq!(answer.code, expected, "{what}");
        assert!(answer.bytes.len() <= request.len(), "{what}");
        assert_eq!(answer.bytes[..2], request[..2], "{what}: the id");
    }
    for (what, request) in [
        ("nothing", vec![]),
        ("less than a head", valid[..11].to_vec()),
        ("an answer", with(&|bytes| bytes[2] |= 0x80)),
    ] {
        assert_eq!(answer(&zones(), &request, Transport::Udp), None, "{what}");
        assert_eq!(answer_truncated(&request), None, "{what}");
    }
}

#[test]
fn two_records_may_stand_beside_a_question_and_no_more() {
    for (records, expected) in [(2, ResponseCode::NoError), (3, ResponseCode::FormErr)] {
        let mut message =
            Message::from_vec(&question("www.site.test", RecordType::A, None)).unwrap();
        for _ in 0..records {
            let data = RData::A(A([192, 0, 2, 1].into()));
            message.add_additional(Record::from_rdata(Name::root(), 0, data));
        }
        let answer = answer(&zones(), &message.to_vec().unwrap(), Transport::Udp).unwrap();
        assert_eq!(answer.code, expected, "{records} records");
    }
}

#[test]
fn a_truncated_answer_is_no_longer_than_the_question() {
    for payload in [None, Some(1232)] {
        let request = question("www.site.test", RecordType::A, payload);
        let answer = answer_truncated(&request).unwrap();
        assert!(answer.truncated);
        assert!(answer.bytes.len() <= request.len());
        assert!(Message::from_vec(&answer.bytes).unwrap().answers.is_empty());
    }
}

#[test]
fn aliases_are_followed_so_far_and_no_further() {
    for (aliases, code) in [
        (MAX_ALIASES, ResponseCode::NoError),
        (MAX_ALIASES + 1, ResponseCode::ServFail),
    ] {
        let mut config = site();
        for at in 0..aliases {
            let to = if at + 1 == aliases {
                "www".to_owned()
            } else {
                format!("a{}", at + 1)
            };
            config.names.push(alias(&format!("a{at}"), &to));
        }
        let zones = Zones::new(&[config]).unwrap();
        let message = response_over(
            &zones,
            &question("a0.site.test", RecordType::A, Some(4096)),
            Transport::Udp,
        );
        assert_eq!(message.metadata.response_code, code, "{aliases} aliases");
    }
}

#[test]
fn texts_come_and_go_while_zones_are_exchanged() {
    let shared = SharedZones::new(zones());
    let texts = |host: &str| {
        let request = question(host, RecordType::TXT, Some(4096));
        response_over(&shared.now(), &request, Transport::Udp)
            .answers
            .len()
    };
    let challenge = "_acme-challenge.site.test";
    shared
        .change(|zones| {
            zones
                .add_text(challenge, "one")
                .and_then(|()| zones.add_text(challenge, "two"))
        })
        .unwrap();
    shared
        .change(|zones| zones.add_text("site.test", "beside"))
        .unwrap();
    assert_eq!((texts(challenge), texts("site.test")), (2, 2));
    shared.replace(zones());
    assert_eq!((texts(challenge), texts("site.test")), (2, 2));
    assert!(shared.change(|zones| zones.remove_text(challenge, "one")));
    assert!(!shared.change(|zones| zones.remove_text(challenge, "one")));
    assert!(shared.change(|zones| zones.remove_text("Site.Test.", "beside")));
    assert_eq!((texts(challenge), texts("site.test")), (1, 1));
    assert!(shared.change(|zones| zones.remove_text(challenge, "two")));
    let request = question(challenge, RecordType::TXT, None);
    let after_removal = response_over(&shared.now(), &request, Transport::Udp);
    assert_eq!(after_removal.metadata.response_code, ResponseCode::NXDomain);
    // Of a zone that goes, the texts go too.
    shared
        .change(|zones| zones.add_text(challenge, "one"))
        .unwrap();
    shared.replace(Zones::default());
    shared.replace(zones());
    assert_eq!(texts(challenge), 0);
}

#[test]
fn an_added_text_keeps_the_wildcard_of_other_names() {
    let mut zones = zones();
    let records_of = |zones: &Zones, host: &str, kind| {
        let message = response_over(zones, &question(host, kind, None), Transport::Udp);
        (message.metadata.response_code, lines(&message.answers))
    };
    let hosts = [
        "www.x.site.test",
        "b.x.site.test",
        "c.b.x.site.test",
        "n.site.test",
    ];
    let all = |zones: &Zones| hosts.map(|host| records_of(zones, host, RecordType::A));
    let before_change = all(&zones);
    assert!(
        before_change[..3]
            .iter()
            .all(|(_, records)| records.len() == 1)
    );
    assert_eq!(before_change[3], (ResponseCode::NXDomain, vec![]));
    for challenge in [
        "_acme-challenge.www.x.site.test",
        "_acme-challenge.a.b.x.site.test",
    ] {
        assert_eq!(zones.add_text(challenge, "one"), Ok(()));
        let (_, texts) = records_of(&zones, challenge, RecordType::TXT);
        assert_eq!(texts, [format!("{challenge}. 1 IN TXT one")]);
    }
    assert_eq!(all(&zones), before_change);
    // What is above one and else not there has nothing (RFC 8020).
    assert_eq!(zones.add_text("_acme-challenge.n.site.test", "one"), Ok(()));
    let above = records_of(&zones, "n.site.test", RecordType::A);
    assert_eq!(above, (ResponseCode::NoError, vec![]));
}

#[test]
fn texts_have_their_limits() {
    let mut zones = zones();
    for (host, text, expected) in [
        (
            "other.test",
            "x".to_owned(),
            TextError::Outside("other.test".to_owned()),
        ),
        (
            "img.site.test",
            "x".to_owned(),
            TextError::Alias("img.site.test".to_owned()),
        ),
        (
            "t.site.test",
            "x".repeat(MAX_TEXT + 1),
            TextError::Long(MAX_TEXT + 1),
        ),
    ] {
        assert_eq!(zones.add_text(host, &text), Err(expected), "{host}");
    }
    for at in 0..MAX_TEXTS {
        assert_eq!(
            zones.add_text("t.site.test", &format!("{at:0>255}")),
            Ok(())
        );
    }
    assert_eq!(zones.add_text("t.site.test", "x"), Err(TextError::Full));
    let request = question("t.site.test", RecordType::TXT, None);
    assert!(
        response_over(&zones, &request, Transport::Udp)
            .metadata
            .truncation
    );
    // 512 times 267 bytes are more than TCP can carry, too.
    assert!(
        response_over(&zones, &request, Transport::Tcp)
            .metadata
            .truncation
    );
}

#[test]
fn a_configuration_that_is_no_zone_is_refused_with_the_reason() {
    let changed = |change: &dyn Fn(&mut ZoneConfig)| {
        let mut config = site();
        change(&mut config);
        Zones::new(&[config]).map_or_else(|error| error.to_string(), |_| "all is well".to_owned())
    };
    for (change, expected) in [
        (
            &(|zone: &mut ZoneConfig| zone.name_servers.clear()) as &dyn Fn(&mut ZoneConfig),
            "has no name server",
        ),
        (
            &|zone| zone.names.retain(|name| name.name != "ns1"),
            "name server ns1.site.test is in the zone but has no address",
        ),
        (
            &|zone| zone.names[0] = alias("@", "www"),
            "an apex cannot be an alias",
        ),
        (
            &|zone| zone.names[1].alias = Some("img".into()),
            "www.site.test is an alias and cannot have other records",
        ),
        (
            &|zone| zone.names.push(alias("shop", "shop.other.test")),
            "shop is an alias of shop.other.test.site.test, which does not exist",
        ),
        (
            &|zone| zone.names.push(alias("shop", "shop.other.test.")),
            "all is well",
        ),
        (
            &|zone| zone.names.push(name("www", &[])),
            "www.site.test is configured twice",
        ),
        (
            &|zone| zone.names.push(name("WWW.Site.Test.", &[])),
            "is configured twice",
        ),
        (
            &|zone| zone.names.push(name("a.other.test.", &[])),
            "a.other.test is not in the zone",
        ),
        (
            &|zone| zone.names.push(name("a.*.x", &[])),
            "has a * that is not its first label",
        ),
        (&|zone| zone.names.push(name("a..b", &[])), "invalid name"),
        (
            &|zone| zone.names.push(name(&"a".repeat(64), &[])),
            "invalid name",
        ),
        (&|zone| zone.ttl = 0x8000_0000, "TTL is 2147483648 s"),
        (
            &|zone| zone.names[1].texts.push("x".repeat(256)),
            "TXT record has 256 bytes",
        ),
        (
            &|zone| {
                zone.names[1].https.as_mut().unwrap().alpn = vec![String::new()];
            },
            "invalid ALPN identifier",
        ),
        (&|zone| zone.contact = Some("a@".into()), "zone site.test"),
    ] {
        let message = changed(change);
        assert!(
            message.contains(expected),
            "expected {expected:?}, found {message:?}"
        );
    }
    assert_eq!(
        Zones::new(&[site(), site()]).unwrap_err(),
        ZoneError::DuplicateZone("site.test".into())
    );
    let child = ZoneConfig {
        apex: "under.site.test".into(),
        names: Vec::new(),
        ..site()
    };
    let child = ZoneConfig {
        name_servers: vec!["ns2.other.test".into()],
        ..child
    };
    let message = Zones::new(&[site(), child]).unwrap_err().to_string();
    assert_eq!(
        message,
        "zone site.test: deep.under.site.test is not in the zone"
    );
}

#[test]
fn the_zone_of_the_readme_is_one() {
    let readme = include_str!("../../README.md");
    let toml = readme
        .split("```toml\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let config: ZoneConfig = toml::from_str(toml.expect("a zone in TOML")).unwrap();
    let zones = Zones::new(&[config]).unwrap();
    let request = question("a.x.site.test", RecordType::AAAA, None);
    assert_eq!(
        response_over(&zones, &request, Transport::Udp)
            .answers
            .len(),
        1
    );
    let unknown = toml::from_str::<ZoneConfig>("apex = 'a.test'\nname_servers = []\nttls = 1");
    assert!(unknown.unwrap_err().to_string().contains("ttls"));
}

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
