//! Responses of the authoritative server to queries, without sockets.

use hickory_proto::op::{Edns, Message, Query, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};
use spdy_dns::authoritative::{
    MAX_ALIASES, MAX_REQUEST, MAX_UDP, Transport, answer, answer_truncated,
};
use spdy_dns::zones::Zones;

use crate::support::{alias, lines, name, question, response_over, site, zones};

fn response_for(host: &str, kind: RecordType) -> Message {
    response_over(&zones(), &question(host, kind, Some(4096)), Transport::Udp)
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
