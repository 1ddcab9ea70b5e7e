//! Queries to the name server, byte by byte: valid and almost valid ones.

use crate::Seeds;

/// A query: `flags` of the header, the name's labels, type, class, and additional records with their count.
fn question(flags: [u8; 2], labels: &[&str], kind: u16, class: u16, extra: &[u8]) -> Vec<u8> {
    let additionals = u8::from(!extra.is_empty());
    let mut bytes = vec![
        0x12,
        0x34,
        flags[0],
        flags[1],
        0,
        1,
        0,
        0,
        0,
        0,
        0,
        additionals,
    ];
    for label in labels {
        bytes.push(u8::try_from(label.len()).expect("a label is short"));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(class.to_be_bytes());
    bytes.extend(extra);
    bytes
}

pub(crate) fn queries(seeds: &mut Seeds) {
    let edns: &[u8] = &[0, 0, 41, 0x04, 0xd0, 0, 0, 0, 0, 0, 0];
    let cookie: &[u8] = &[
        0, 0, 41, 0x10, 0, 0, 0, 0x80, 0, 0, 12, 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8,
    ];
    let newer: &[u8] = &[0, 0, 41, 0x04, 0xd0, 0, 1, 0, 0, 0, 0];
    let (plain, recursive) = ([0, 0], [1, 0]);
    for (name, bytes) in [
        ("A", question(recursive, &["a", "test"], 1, 1, &[])),
        (
            "AAAA by a wildcard",
            question(plain, &["q", "x", "a", "test"], 28, 1, edns),
        ),
        (
            "HTTPS, capitals",
            question(plain, &["A", "tEsT"], 65, 1, cookie),
        ),
        ("TXT", question(plain, &["a", "test"], 16, 1, edns)),
        ("SOA", question(plain, &["a", "test"], 6, 1, edns)),
        ("NS", question(plain, &["a", "test"], 2, 1, &[])),
        ("ANY", question(plain, &["a", "test"], 255, 1, edns)),
        ("AXFR", question(plain, &["a", "test"], 252, 1, &[])),
        (
            "what does not fit",
            question(plain, &["i", "a", "test"], 1, 1, &[]),
        ),
        ("a circle", question(plain, &["1", "a", "test"], 1, 1, edns)),
        (
            "an alias to elsewhere",
            question(plain, &["q", "w", "a", "test"], 1, 1, edns),
        ),
        ("nobody", question(plain, &["q", "a", "test"], 1, 1, edns)),
        ("not ours", question(plain, &["b", "test"], 1, 1, edns)),
        ("the root", question(plain, &[], 2, 1, edns)),
        (
            "another class",
            question(plain, &["version", "bind"], 16, 3, &[]),
        ),
        ("another EDNS", question(plain, &["a", "test"], 1, 1, newer)),
        ("an update", question([0x28, 0], &["a", "test"], 6, 1, &[])),
        ("a response", question([0x80, 0], &["a", "test"], 1, 1, &[])),
        ("a head", question(plain, &[], 1, 1, &[])[..12].to_vec()),
    ] {
        seeds.push("dns_query", name, bytes);
    }
}
