//! Which addresses and hosts an origin may have: a corpus of those that it may not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use proptest::prelude::*;
use spdy_resolver::address_rules::{AddressRules, OriginDenial};
use spdy_resolver::own_listeners::OwnListeners;
use spdy_resolver::special_ranges::RANGES;

fn ip(text: &str) -> IpAddr {
    text.parse()
        .unwrap_or_else(|_| panic!("no address: {text}"))
}

/// An address, and the reason for metrics.
const DENIED: &[(&str, &str)] = &[
    ("0.0.0.0", "this_network"),
    ("0.255.255.255", "this_network"),
    ("10.0.0.0", "private"),
    ("10.255.255.255", "private"),
    ("100.64.0.1", "carrier_grade_nat"),
    ("100.127.255.255", "carrier_grade_nat"),
    ("100.100.100.200", "metadata"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("168.63.129.16", "metadata"),
    ("169.254.0.1", "link_local"),
    ("169.254.169.254", "metadata"),
    ("172.16.0.1", "private"),
    ("172.31.255.255", "private"),
    ("192.0.0.1", "ietf_protocol_assignments"),
    ("192.0.0.192", "metadata"),
    ("192.0.2.1", "documentation"),
    ("192.88.99.1", "6to4_relay"),
    ("192.168.1.1", "private"),
    ("198.18.0.1", "benchmarking"),
    ("198.19.255.255", "benchmarking"),
    ("198.51.100.7", "documentation"),
    ("203.0.113.7", "documentation"),
    ("224.0.0.1", "multicast"),
    ("239.255.255.250", "multicast"),
    ("240.0.0.1", "reserved"),
    ("255.255.255.255", "broadcast"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("::2", "ipv4_compatible"),
    ("::127.0.0.1", "loopback"),
    ("::8.8.8.8", "ipv4_compatible"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:169.254.169.254", "metadata"),
    ("::ffff:0:10.0.0.1", "private"),
    ("::ffff:0:8.8.8.8", "ipv4_translated"),
    ("64:ff9b::10.0.0.1", "private"),
    ("64:ff9b::169.254.169.254", "metadata"),
    ("64:ff9b:1::8.8.8.8", "nat64_local_use"),
    ("100::1", "discard_only"),
    ("2001::1", "reserved"), // Teredo, whose bits are turned: 255.255.255.254 inside
    ("2001:0:4136:e378:8000:63bf:f7f7:f7f7", "teredo"), // 8.8.8.8 inside
    ("2001:0:4136:e378:8000:63bf:80ff:fffe", "loopback"), // 127.0.0.1 inside
    ("2001:db8::1", "documentation"),
    ("2001:2::1", "benchmarking"),
    ("2001:10::1", "orchid"),
    ("2001:20::1", "orchid"),
    ("2001:1::1", "ietf_protocol_assignments"),
    ("2002:7f00:1::", "loopback"),
    ("2002:c0a8:101::1", "private"),
    ("2002:808:808::1", "6to4"),
    ("2a00:1450::5efe:127.0.0.1", "loopback"), // ISATAP
    ("2a00:1450::200:5efe:10.0.0.1", "private"),
    ("3ffe::1", "6bone"),
    ("3fff:fff::1", "documentation"),
    ("4000::1", "not_global_unicast"),
    ("5f00::1", "segment_routing"),
    ("fc00::1", "private"),
    ("fd00:ec2::254", "metadata"),
    ("fdff::1", "private"),
    ("fe80::1", "link_local"),
    ("fec0::1", "site_local"),
    ("ff02::1", "multicast"),
];

#[test]
fn special_addresses_are_denied_with_their_reason() {
    let rules = AddressRules::default();
    for &(address, expected) in DENIED {
        let denied = rules.check(ip(address)).expect_err(address);
        assert_eq!(denied.reason(), expected, "{denied}");
        assert!(
            denied.to_string().contains(&ip(address).to_string()),
            "{denied}"
        );
    }
}

#[test]
fn a_denial_states_the_range_and_its_purpose_in_plain_words() {
    let rules = AddressRules::default();
    for (address, expected) in [
        (
            "100.64.0.1",
            "address 100.64.0.1 is denied: carrier-grade NAT, 100.64.0.0/10 (RFC 6598)",
        ),
        (
            "64:ff9b::a00:1",
            "address 64:ff9b::a00:1 is denied because it contains 10.0.0.1: private network, 10.0.0.0/8 (RFC 1918)",
        ),
        (
            "4000::1",
            "address 4000::1 is denied: not global unicast, 4000::/2 (RFC 4291 §2.4)",
        ),
    ] {
        let denied = rules.check(ip(address)).unwrap_err();
        assert_eq!(denied.to_string(), expected);
    }
}

#[test]
fn public_addresses_are_allowed() {
    let rules = AddressRules::default();
    for address in [
        "1.1.1.1",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.0",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.0",
        "191.255.255.255",
        "192.0.1.0",
        "192.167.255.255",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.255",
        "2001:4860:4860::8888",
        "2606:4700::1111",
        "2a00:1450:4001::200e",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
    ] {
        assert_eq!(rules.check(ip(address)), Ok(()), "{address}");
    }
}

#[test]
fn the_edges_of_every_range_are_denied() {
    let rules = AddressRules::default();
    for range in RANGES {
        for address in [range.net.network(), range.net.broadcast()] {
            // public addresses in wrappings that lead to them
            let passes = ["nat64", "ipv4_mapped"].contains(&range.purpose.name);
            assert!(
                rules.check(address).is_err() || passes,
                "{address} of {range:?}"
            );
        }
    }
}

proptest! {
    /// An address that embeds a denied one is denied, also by rules that allow the embedding range.
    #[test]
    fn no_wrapping_frees_what_is_in_it(number in 0..RANGES.len(), random_bits: u32, wide: bool) {
        let ipnet::IpNet::V4(net) = RANGES[number].net else { return Ok(()) };
        let inner = u32::from(net.network()) | (random_bits & u32::from(net.hostmask()));
        let (a, b) = ((inner >> 16) as u16, inner as u16);
        let (na, nb) = ((!inner >> 16) as u16, !inner as u16);
        let rules = AddressRules {
            allow: if wide { vec!["::/0".parse().unwrap()] } else { Vec::new() },
            ..AddressRules::default()
        };
        for wrapped in [
            [0, 0, 0, 0, 0, 0xffff, a, b],
            [0, 0, 0, 0, 0xffff, 0, a, b],
            [0x64, 0xff9b, 0, 0, 0, 0, a, b],
            [0x64, 0xff9b, 1, 0, 0, 0, a, b],
            [0x2002, a, b, 0, 0, 0, 0, 1],
            [0x2001, 0, 1, 1, 0, 0, na, nb],
            [0x2a00, 1, 0, 0, 0, 0x5efe, a, b],
        ] {
            let wrapped = IpAddr::V6(Ipv6Addr::from(wrapped));
            let inner = Ipv4Addr::from(inner);
            let denied = rules.check(wrapped);
            prop_assert!(denied.is_err(), "{} in {}", inner, wrapped);
            prop_assert_eq!(denied.unwrap_err().embedded_ipv4, Some(inner), "{}", wrapped);
        }
    }

    /// A v4-mapped address is that address.
    #[test]
    fn a_mapped_address_is_judged_as_itself(address: u32) {
        let address = Ipv4Addr::from(address);
        let rules = AddressRules::default();
        let plain = rules.check(IpAddr::V4(address)).map_err(|denied| denied.by);
        let mapped = rules.check(IpAddr::V6(address.to_ipv6_mapped()));
        prop_assert_eq!(mapped.map_err(|denied| denied.by), plain);
    }

    #[test]
    fn no_text_makes_the_host_check_panic(host in "\\PC{0,40}|[0-9a-fx.]{0,20}") {
        let _ = AddressRules::default().check_host(&host);
    }
}

#[test]
fn lists_of_the_operator_free_a_range_and_deny_another_and_denying_is_stronger() {
    let rules = AddressRules {
        allow: vec!["127.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()],
        deny: vec![
            "127.0.0.9/32".parse().unwrap(),
            "8.8.8.0/24".parse().unwrap(),
        ],
        ..AddressRules::default()
    };
    for (address, expected) in [
        ("127.0.0.1", Ok(())),
        ("::ffff:127.0.0.1", Ok(())),
        ("64:ff9b::127.0.0.1", Ok(())),
        ("fd00::1", Ok(())),
        ("127.0.0.9", Err("deny_list")),
        ("8.8.8.8", Err("deny_list")),
        ("64:ff9b::8.8.8.8", Err("deny_list")),
        ("10.0.0.1", Err("private")),
        ("::1", Err("loopback")),
        ("2002:7f00:1::", Err("6to4")), // what is in it is free, the wrapping is not
    ] {
        let checked = rules.check(ip(address)).map_err(|denied| denied.reason());
        assert_eq!(checked, expected, "{address}");
    }
}

#[test]
fn a_nat64_prefix_of_ones_own_is_looked_through_at_every_length() {
    // The examples of RFC 6052 §2.4, for 192.0.2.33.
    for (prefix, address) in [
        ("2a01:db8::/32", "2a01:db8:c000:221::"),
        ("2a01:db8:100::/40", "2a01:db8:1c0:2:21::"),
        ("2a01:db8:122::/48", "2a01:db8:122:c000:2:2100::"),
        ("2a01:db8:122:300::/56", "2a01:db8:122:3c0:0:221::"),
        ("2a01:db8:122:344::/64", "2a01:db8:122:344:c0:2:2100::"),
        ("2a01:db8:122:344::/96", "2a01:db8:122:344::192.0.2.33"),
    ] {
        let rules = AddressRules {
            nat64: vec![prefix.parse().unwrap()],
            ..AddressRules::default()
        };
        let denied = rules.check(ip(address)).expect_err(address);
        assert_eq!(denied.reason(), "documentation", "{denied}");
        assert_eq!(
            denied.embedded_ipv4,
            Some([192, 0, 2, 33].into()),
            "{denied}"
        );
        assert!(AddressRules::default().check(ip(address)).is_ok());
    }
}

#[test]
fn only_listed_ports_are_connected_to_and_never_ourselves() {
    let parse = |text: &str| text.parse::<SocketAddr>().unwrap();
    let rules = AddressRules {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        ports: [443, 80, 8443].into(),
        own: OwnListeners::new(
            vec![parse("8.8.8.8:443"), parse("0.0.0.0:8443")],
            Vec::new(),
        ),
        ..AddressRules::default()
    };
    for (to, expected) in [
        ("1.1.1.1:443", Ok(())),
        ("1.1.1.1:80", Ok(())),
        ("1.1.1.1:22", Err("port")),
        ("8.8.8.8:443", Err("own_listener")),
        ("[::ffff:8.8.8.8]:443", Err("own_listener")),
        ("8.8.8.8:80", Ok(())),
        ("127.0.0.1:8443", Err("own_listener")),
        ("127.0.0.1:80", Ok(())),
        ("[::1]:80", Err("loopback")),
    ] {
        let checked = rules.check_target(to.parse().unwrap());
        assert_eq!(checked.map_err(|denied| denied.reason()), expected, "{to}");
    }
}

/// A host, and the reason in one word.
const REFUSED_HOSTS: &[(&str, &str)] = &[
    ("", "host_empty"),
    (".", "host_trailing_dot"),
    ("127.0.0.1", "host_literal"),
    ("8.8.8.8", "host_literal"),
    ("8.8.8.8.", "host_literal"),
    ("[::1]", "host_literal"),
    ("::1", "host_literal"),
    ("2606:4700::1111", "host_literal"),
    ("fe80::1%eth0", "host_literal"),
    ("%31%32%37.0.0.1", "host_literal"),
    ("0x7f.1", "host_number"),
    ("0x7f000001", "host_number"),
    ("0X7F.0.0.1", "host_number"),
    ("0x", "host_number"),
    ("017700000001", "host_number"),
    ("0177.0.0.01", "host_number"),
    ("2130706433", "host_number"),
    ("127.1", "host_number"),
    ("127.0.1", "host_number"),
    ("a.b.1", "host_number"),
    ("256.256.256.256", "host_number"),
    ("1.2.3.4.5", "host_number"),
    ("user@a.test", "host_userinfo"),
    ("a.test:80@b.test", "host_userinfo"),
    ("a.test.", "host_trailing_dot"),
    ("localhost.", "host_trailing_dot"),
    ("a..test", "host_label"),
    (".a.test", "host_label"),
    ("a.test:80", "host_character"),
    ("a.test/", "host_character"),
    ("a.test\\b", "host_character"),
    ("a.te st", "host_character"),
    ("a.test\0", "host_character"),
    ("a.test\r\nx: y", "host_character"),
    ("a?b.test", "host_character"),
    ("a#b.test", "host_character"),
    ("bücher.test", "host_character"),
    ("１２７.0.0.1", "host_character"),
    ("127。0。0。1", "host_character"),
    ("localhost", "host_special"),
    ("LocalHost", "host_special"),
    ("a.localhost", "host_special"),
    ("metadata.google.internal", "host_special"),
    ("printer.local", "host_special"),
    ("router.home.arpa", "host_special"),
    ("a.onion", "host_special"),
    ("a.invalid", "host_special"),
    ("intranet", "host_no_dot"),
    ("com", "host_no_dot"),
];

#[test]
fn hosts_that_are_no_public_names_are_refused_each_with_its_reason() {
    let rules = AddressRules::default();
    for &(host, expected) in REFUSED_HOSTS {
        let error = rules.check_host(host).expect_err(host);
        assert_eq!(error.reason(), expected, "{host:?}: {error}");
    }
    let long = format!("{}.test", "a.".repeat(125));
    assert_eq!(
        rules.check_host(&long).unwrap_err().reason(),
        "host_too_long"
    );
    let label = format!("{}.test", "a".repeat(64));
    assert_eq!(rules.check_host(&label).unwrap_err().reason(), "host_label");
}

#[test]
fn names_are_not_refused() {
    let rules = AddressRules::default();
    let longest = format!("{}a.tes", "a.".repeat(124));
    assert_eq!(longest.len(), 253);
    let label = format!("{}.test", "a".repeat(63));
    for host in [
        "a.test",
        "A.Test",
        "xn--bcher-kva.test",
        "r3---sn.video.test",
        "_dmarc.a.test",
        "1.2.3.test",
        "0x7f.test",
        "localhost.test",
        "notlocalhost.test",
        "mylocal.test",
        &longest,
        &label,
    ] {
        assert_eq!(rules.check_host(host), Ok(()), "{host}");
    }
}

#[test]
fn a_host_that_the_operator_lists_may_be_a_single_label_but_no_address() {
    let rules = AddressRules {
        hosts: ["backend", "cache.internal", "127.0.0.1", "0x7f.1"]
            .map(str::to_owned)
            .into(),
        ..AddressRules::default()
    };
    assert_eq!(rules.check_host("backend"), Ok(()));
    assert_eq!(rules.check_host("Cache.Internal"), Ok(()));
    assert!(rules.check_host("frontend").is_err());
    assert!(rules.check_host("127.0.0.1").is_err());
    assert!(rules.check_host("0x7f.1").is_err());
    let denied = OriginDenial::from(rules.check_host("frontend").unwrap_err());
    assert_eq!(denied.reason(), "host_no_dot");
}
