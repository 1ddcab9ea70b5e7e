//! Seeds of QPACK: the examples of RFC 9204 (Appendix B), acknowledgments, and fields.

use spdy_fuzz::choices::Choices;
use spdy_fuzz::qpack::{INSTRUCTIONS, PeerBytes, SECTION};

use crate::Seeds;

fn record(kind: u8, bytes: &[u8]) -> Vec<u8> {
    [&[kind, bytes.len() as u8], bytes].concat()
}

pub(crate) fn machines(seeds: &mut Seeds) {
    let mut push = |kind: PeerBytes, name: &str, wire: &[u8]| {
        let at = PeerBytes::ALL.iter().position(|it| *it == kind);
        let at = at.expect("a kind of bytes") as u8;
        // kind, capacity, then lengths and decisions
        for (capacity, rest) in [(0, [1, 0, 200, 3]), (1, [0, 1, 2, 99])] {
            let bytes = Choices::join(&[&[at, capacity][..], &rest].concat(), wire);
            seeds.push("qpack", format!("{name}-{capacity}"), bytes);
        }
    };
    let inserts = record(
        INSTRUCTIONS,
        b"\x3f\x45\xc0\x0fwww.example.com\xc1\x0c/sample/path",
    );
    let section = record(SECTION, b"\x03\x81\x10\x11");
    let literal = record(INSTRUCTIONS, b"\x4acustom-key\x0ccustom-value");
    let duplicate = record(INSTRUCTIONS, b"\x02");
    let second = record(SECTION, b"\x05\x00\x80\xc1\x81");
    let named = record(INSTRUCTIONS, b"\x81\x0dcustom-value2");
    push(
        PeerBytes::Encoder,
        "section-first",
        &[&section[..], &inserts, &section].concat(),
    );
    let all = [inserts, section, literal, duplicate, second, named].concat();
    push(PeerBytes::Encoder, "rfc-9204", &all);
    push(
        PeerBytes::Encoder,
        "too-large",
        &record(INSTRUCTIONS, b"\x3f\xe2\x1f"),
    );
    push(
        PeerBytes::Encoder,
        "long-name",
        &record(INSTRUCTIONS, b"\x3f\x45\x5f\xa2\x20"),
    );
    for (name, wire) in [
        ("acknowledged", &b"\x80\x84\x88"[..]),
        ("cancelled", b"\x40\x44\x7f\x00"),
        ("increment", b"\x01\x02"),
        ("increment-of-nothing", b"\x00"),
        ("endless", b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"),
    ] {
        push(PeerBytes::Decoder, name, wire);
    }
    let fields = b"a.test.Mozilla0123456789abcdef0123456789abcdef".repeat(9);
    push(PeerBytes::Fields, "fields", &fields);
}
