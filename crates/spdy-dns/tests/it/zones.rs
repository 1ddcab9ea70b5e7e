//! Zones: their configuration, and the TXT records that are added and removed while the server runs.

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;
use spdy_dns::authoritative::Transport;
use spdy_dns::zone_config::{MAX_TEXT, ZoneConfig, ZoneError};
use spdy_dns::zones::{MAX_TEXTS, SharedZones, TextError, Zones};

use crate::support::{alias, lines, name, question, response_over, site, zones};

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
    // The TXT records of a removed zone are removed too.
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
