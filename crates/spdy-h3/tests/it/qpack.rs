//! QPACK's machines without QUIC: the examples of RFC 9204, both ends against each other in any order, limits, and what lengths reveal.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use proptest::prelude::*;
use spdy_h3::fuzz_api::{Field, TableDecoder, TableEncoder};

const LIMIT: usize = 64 * 1024;

fn field(name: &str, value: &str) -> Field {
    let bytes = |text: &str| Bytes::copy_from_slice(text.as_bytes());
    (bytes(name), bytes(value))
}

fn fields(pairs: &[(&str, &str)]) -> Vec<Field> {
    pairs
        .iter()
        .map(|(name, value)| field(name, value))
        .collect()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[test]
fn the_examples_of_rfc_9204_decode() {
    let mut decoder = TableDecoder::default();
    let section = |decoder: &mut TableDecoder, stream, bytes: &str| {
        decoder.section(stream, &hex(bytes), LIMIT)
    };
    // Appendix B.1.
    let first = section(&mut decoder, 0, "0000 510b 2f69 6e64 6578 2e68 746d 6c");
    assert_eq!(first, Ok(Some(fields(&[(":path", "/index.html")]))));
    assert_eq!(decoder.output(), "");
    // B.2: the section arrives before the insertions that it needs.
    assert_eq!(section(&mut decoder, 4, "0381 1011"), Ok(None));
    let inserts =
        "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468";
    assert_eq!(decoder.instructions(&hex(inserts)), Ok(3));
    let example = (":authority", "www.example.com");
    let expected = fields(&[example, (":path", "/sample/path")]);
    assert_eq!(section(&mut decoder, 4, "0381 1011"), Ok(Some(expected)));
    assert_eq!(decoder.output(), &hex("84")[..]);
    // B.3.
    let insert = "4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565";
    assert_eq!(decoder.instructions(&hex(insert)), Ok(1));
    // B.4: a duplicate. There the stream is cancelled; here it is also read.
    assert_eq!(decoder.instructions(&hex("02")), Ok(1));
    let expected = fields(&[example, (":path", "/"), ("custom-key", "custom-value")]);
    assert_eq!(section(&mut decoder, 8, "0500 80c1 81"), Ok(Some(expected)));
    assert_eq!(decoder.output(), &hex("88")[..]);
    decoder.cancel(8);
    assert_eq!(decoder.output(), &hex("48")[..]);
    // B.5: the table has room for 220 bytes, so the first entry is evicted.
    let insert = "810d 6375 7374 6f6d 2d76 616c 7565 32";
    assert_eq!(decoder.instructions(&hex(insert)), Ok(1));
    let newest = section(&mut decoder, 12, "0600 80 83");
    assert_eq!(
        newest,
        Ok(Some(fields(&[
            ("custom-key", "custom-value2"),
            (":path", "/sample/path"),
        ])))
    );
    let evicted = section(&mut decoder, 16, "0600 84");
    assert!(evicted.unwrap_err().contains("entry 0"));
}

#[test]
fn a_section_may_not_refer_to_more_than_its_required_insert_count() {
    let mut decoder = TableDecoder::default();
    decoder.instructions(&hex("3fbd01 c00161 c00162")).unwrap();
    // Required Insert Count 1, base 1: entry 0 by 0x80, entry 1 by post-base index 0.
    let entry = fields(&[(":authority", "a")]);
    assert_eq!(decoder.section(0, &hex("0200 80"), LIMIT), Ok(Some(entry)));
    for section in [
        "0200 10",
        "0200 0000",
        "0000 80",
        "0000 4000",
        "0000 10",
        "0200 81",
    ] {
        assert!(
            decoder.section(0, &hex(section), LIMIT).is_err(),
            "{section}"
        );
    }
}

#[test]
fn instructions_that_the_table_does_not_allow_are_errors() {
    for (instructions, reason) in [
        ("3fe21f", "dynamic table of 4097 bytes, limit 4096"),
        ("c00161", "insertion of more than 0 bytes"),
        ("3f02 c00161", "insertion of more than 33 bytes"), // 1 + 10 + 32 bytes of :authority
        ("3fbd01 00", "does not exist"),
        ("3fbd01 800161", "does not exist"),
        ("3fbd01 ff24 0161", "does not exist"), // static index 99
        ("3fbd01 5f a220", "insertion of more than 4096 bytes"), // a name of 4,129 bytes, which is not waited for
        ("3fff ffff ffff ffff ffff 7f", "invalid integer or string"),
    ] {
        let instructions = hex(instructions);
        let error = TableDecoder::default().instructions(&instructions);
        let error = error.expect_err(reason);
        assert!(error.contains(reason), "{instructions:x?}: {error}");
        let mut decoder = TableDecoder::default();
        let mut bytes = instructions.chunks(1);
        let split = bytes.find_map(|byte| decoder.instructions(byte).err());
        assert_eq!(split, Some(error), "{instructions:x?}");
    }
}

#[test]
fn only_a_hundred_streams_wait_for_the_table() {
    let mut decoder = TableDecoder::default();
    for stream in 0..100 {
        assert_eq!(
            decoder.section(4 * stream, &hex("0200 80"), LIMIT),
            Ok(None)
        );
    }
    // The same stream again is one of them.
    assert_eq!(decoder.section(0, &hex("0200 80"), LIMIT), Ok(None));
    let error = decoder.section(400, &hex("0200 80"), LIMIT).unwrap_err();
    assert_eq!(error, "more than 100 streams wait for the dynamic table");
    decoder.cancel(0);
    assert_eq!(decoder.section(400, &hex("0200 80"), LIMIT), Ok(None));
}

#[test]
fn sections_that_wait_for_the_table_share_a_limit_of_bytes() {
    let mut decoder = TableDecoder::default();
    let section = |len: usize| [hex("0200"), vec![0x80; len - 2]].concat();
    for stream in 0..4 {
        let large = section(64 * 1024);
        assert_eq!(decoder.section(4 * stream, &large, LIMIT), Ok(None));
    }
    assert!(decoder.section(16, &section(2), LIMIT).is_err());
}

#[test]
fn acknowledgments_of_nothing_are_errors() {
    for instruction in ["80", "00", "01"] {
        let mut encoder = TableEncoder::new(4096, 100);
        assert!(
            encoder.acknowledgments(&hex(instruction)).is_err(),
            "{instruction}"
        );
    }
    let mut encoder = TableEncoder::new(4096, 100);
    encoder.section(0, &fields(&[("user-agent", "x"), ("accept", "y")]), true);
    assert_eq!(encoder.acknowledgments(&hex("02")), Ok(1));
    assert_eq!(encoder.acknowledgments(&hex("80")), Ok(1));
    assert_eq!(encoder.acknowledgments(&hex("7f 00 44")), Ok(2)); // cancellations of any stream are valid
    assert!(encoder.acknowledgments(&hex("80")).is_err());
    let mut encoder = TableEncoder::new(4096, 100);
    encoder.section(0, &fields(&[("user-agent", "x"), ("accept", "y")]), true);
    assert!(encoder.acknowledgments(&hex("03")).is_err());
}

const REQUEST: [(&str, &str); 6] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "site.test"),
    (":path", "/a"),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) Chrome/120.0.0.0",
    ),
    ("cookie", "lang=en; sid=9f86d081884c7d659a2feaa0c55ad015"),
];

#[test]
fn a_repeated_request_takes_a_byte_for_each_field() {
    let mut encoder = TableEncoder::new(4096, 100);
    let request = fields(&REQUEST);
    let (instructions, first) = encoder.section(0, &request, true);
    // The capacity, the host, the program's name, and the long crumb of the cookie.
    assert!(
        instructions.starts_with(&hex("3fe11f")),
        "{instructions:x?}"
    );
    let (none, second) = encoder.section(4, &request, true);
    assert_eq!(none, "");
    assert_eq!(second, first);
    // Prefix, three static lines with one value, three dynamic ones, and `lang=en`.
    assert!(second.len() < 2 + 2 + 1 + 4 + 2 + 8, "{second:x?}");
    // A peer that allows no waiting gets literals, and no insertions.
    let mut encoder = TableEncoder::new(4096, 0);
    let (none, literal) = encoder.section(0, &request, true);
    assert_eq!(none, "");
    assert!(literal.len() > 80);
}

#[test]
fn a_section_refers_only_to_insertions_that_quic_has_accepted() {
    let mut encoder = TableEncoder::new(4096, 100);
    let request = fields(&REQUEST);
    let (instructions, section) = encoder.section(0, &request, false);
    assert!(!instructions.is_empty());
    assert!(section.starts_with(&[0, 0]), "{section:x?}");
    // Nothing else is inserted in the meantime.
    let other = fields(&[("user-agent", "another")]);
    assert_eq!(encoder.section(4, &other, true).0, "");
    encoder.all_sent();
    assert!(encoder.section(8, &request, true).1.len() < 20);
}

#[test]
fn entries_that_are_referred_to_or_not_acknowledged_stay() {
    // Room for two entries.
    let mut encoder = TableEncoder::new(2 * (32 + 10 + 5), 100);
    let agent = |value| fields(&[("user-agent", value)]);
    assert!(!encoder.section(0, &agent("aaaaa"), true).0.is_empty());
    assert!(!encoder.section(4, &agent("bbbbb"), true).0.is_empty());
    let (refused, section) = encoder.section(8, &agent("ccccc"), true);
    assert_eq!(refused, "");
    assert!(section.starts_with(&[0, 0]));
    // Both are received, and the first is not referred to any more.
    encoder.acknowledgments(&hex("02 80")).unwrap();
    assert!(!encoder.section(12, &agent("ccccc"), true).0.is_empty());
    assert_eq!(encoder.section(16, &agent("ddddd"), true).0, ""); // stream 4 refers to the second
    encoder.acknowledgments(&hex("44")).unwrap();
    assert!(!encoder.section(16, &agent("ddddd"), true).0.is_empty());
}

#[test]
fn at_most_as_many_streams_wait_as_the_peer_allows() {
    let mut encoder = TableEncoder::new(4096, 1);
    let agent = |value| fields(&[("user-agent", value)]);
    let first = encoder.section(0, &agent("aaaaaaaa"), true).1;
    let literal = encoder.section(4, &agent("aaaaaaaa"), true).1;
    assert!(literal.len() > first.len());
    // Stream 0 waits already, and when its entry has arrived, no stream waits.
    assert_eq!(encoder.section(0, &agent("aaaaaaaa"), true).1, first);
    encoder.acknowledgments(&hex("01")).unwrap();
    assert_eq!(encoder.section(4, &agent("aaaaaaaa"), true).1, first);
}

#[test]
fn a_peer_that_acknowledges_no_section_gets_no_more_references() {
    let mut encoder = TableEncoder::new(4096, 100);
    let agent = fields(&[("user-agent", "aaaaaaaa")]);
    let referring = encoder.section(0, &agent, true).1;
    encoder.acknowledgments(&hex("01")).unwrap();
    for nth in 1..1024 {
        assert_eq!(encoder.section(4 * nth, &agent, true).1, referring);
    }
    assert!(encoder.section(4096, &agent, true).1.starts_with(&[0, 0]));
}

/// What an eavesdropper sees of a request, in bytes: the instructions and the section.
fn lengths(encoder: &mut TableEncoder, stream: u64, request: &[(&str, &str)]) -> (usize, usize) {
    let (instructions, section) = encoder.section(stream, &fields(request), true);
    (instructions.len(), section.len())
}

/// An attacker puts guesses into every header that it can choose. Only the same header of the same host may match, and only if the
/// secret is too long to try all values.
#[test]
fn lengths_do_not_reveal_whether_a_guess_is_right() {
    let host = (":authority", "site.test");
    for (name, secret, wrong) in [
        (
            ":path",
            "/account/0123456789abcdef",
            "/account/fedcba9876543210",
        ),
        ("x-csrf-token", "0123456789abcdef", "fedcba9876543210"),
        ("if-none-match", "0123456789abcdef", "fedcba9876543210"),
        ("cookie", "pin=01234567", "pin=76543210"),
        ("authorization", "Basic 01234567", "Basic 76543210"),
        (
            "referer",
            "https://site.test/inbox/4711",
            "https://site.test/inbox/1174",
        ),
    ] {
        let after = |guess| {
            let mut encoder = TableEncoder::new(4096, 100);
            lengths(&mut encoder, 0, &[host, (name, secret)]);
            lengths(&mut encoder, 4, &[host, (name, guess)])
        };
        assert_eq!(after(secret), after(wrong), "{name}");
    }
}

#[test]
fn a_long_secret_matches_only_in_its_header_and_for_its_host() {
    let secret = "Bearer 0123456789abcdef";
    let wrong = "Bearer fedcba9876543210";
    let host = (":authority", "site.test");
    let after = |host, name, guess| {
        let mut encoder = TableEncoder::new(4096, 100);
        lengths(
            &mut encoder,
            0,
            &[(":authority", "site.test"), ("authorization", secret)],
        );
        lengths(&mut encoder, 4, &[host, (name, guess)])
    };
    assert_ne!(
        after(host, "authorization", secret),
        after(host, "authorization", wrong)
    );
    assert_eq!(after(host, "cookie", secret), after(host, "cookie", wrong));
    let other = (":authority", "evil.test");
    assert_eq!(
        after(other, "authorization", secret),
        after(other, "authorization", wrong)
    );
}

#[test]
fn only_the_last_referer_matches() {
    let host = (":authority", "site.test");
    let (page, guess) = (
        "https://site.test/0123456789abcdef",
        "https://site.test/fedcba9876543210",
    );
    let after = |referers: &[&str]| {
        let mut encoder = TableEncoder::new(4096, 100);
        let mut stream = 0;
        let mut last = (0, 0);
        for referer in referers {
            last = lengths(&mut encoder, stream, &[host, ("referer", referer)]);
            stream += 4;
        }
        last
    };
    assert_ne!(after(&[page, page]), after(&[page, guess]));
    assert_eq!(
        after(&[page, guess, page]),
        after(&[guess, page, "https://site.test/89abcdef01234567"])
    );
}

/// What happens next between two ends.
#[derive(Clone, Debug)]
enum Step {
    /// A request with these fields; QUIC accepts the instructions at once or not.
    Send(Vec<Field>, bool),
    /// The next instructions arrive, in pieces of this many bytes.
    Instructions(usize),
    /// A section arrives: which of those on the way.
    Section(prop::sample::Index),
    /// The receiver gives up a stream that waits.
    Cancel(prop::sample::Index),
    /// The acknowledgments arrive.
    Acknowledgments,
}

fn any_field() -> impl Strategy<Value = Field> {
    let name = prop::sample::select(vec![
        ":authority",
        ":path",
        "user-agent",
        "accept",
        "date",
        "authorization",
        "referer",
        "x-token",
        "x-other",
    ]);
    let value = prop_oneof![
        "[a-c]{1,3}",
        Just("https://a.test/0123456789abcdef".to_owned()),
        "[a-b]{300}",
    ];
    (name, value).prop_map(|(name, value)| field(name, &value))
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (prop::collection::vec(any_field(), 0..6), any::<bool>())
            .prop_map(|(fields, accepted)| Step::Send(fields, accepted)),
        2 => (1_usize..20).prop_map(Step::Instructions),
        3 => any::<prop::sample::Index>().prop_map(Step::Section),
        1 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        1 => Just(Step::Acknowledgments),
    ]
}

/// Two ends and what is on the way between them.
struct Pair {
    encoder: TableEncoder,
    decoder: TableDecoder,
    instructions: VecDeque<Bytes>,
    /// The fields and the section of each stream.
    sections: BTreeMap<u64, (Vec<Field>, Bytes)>,
    acknowledgments: Vec<u8>,
    next_stream: u64,
    blocked: u64,
}

impl Pair {
    fn new(capacity: u64, blocked: u64) -> Self {
        Self {
            encoder: TableEncoder::new(capacity, blocked),
            decoder: TableDecoder::new(capacity),
            instructions: VecDeque::new(),
            sections: BTreeMap::new(),
            acknowledgments: Vec::new(),
            next_stream: 0,
            blocked,
        }
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Send(fields, accepted) => {
                let (instructions, section) =
                    self.encoder.section(self.next_stream, &fields, accepted);
                self.instructions.push_back(instructions);
                self.sections.insert(self.next_stream, (fields, section));
                self.next_stream += 4;
            }
            Step::Instructions(step) => {
                if let Some(instructions) = self.instructions.pop_front() {
                    for piece in instructions.chunks(step) {
                        self.decoder.instructions(piece).unwrap();
                    }
                }
            }
            Step::Section(which) => {
                if let Some(stream) = self.pick(which) {
                    self.read(stream);
                }
            }
            Step::Cancel(which) => {
                if let Some(stream) = self.pick(which) {
                    self.sections.remove(&stream);
                    self.decoder.cancel(stream);
                }
            }
            Step::Acknowledgments => {
                self.acknowledgments.extend(self.decoder.output());
                let acknowledgments = std::mem::take(&mut self.acknowledgments);
                self.encoder.acknowledgments(&acknowledgments).unwrap();
                self.encoder.all_sent();
            }
        }
    }

    fn pick(&self, which: prop::sample::Index) -> Option<u64> {
        let streams: Vec<u64> = self.sections.keys().copied().collect();
        (!streams.is_empty()).then(|| *which.get(&streams))
    }

    fn read(&mut self, stream: u64) {
        let (expected, section) = &self.sections[&stream];
        match self.decoder.section(stream, section, LIMIT).unwrap() {
            Some(fields) => {
                assert_eq!(&fields, expected);
                self.sections.remove(&stream);
            }
            None => assert!(self.blocked > 0, "a stream waits, but none may"),
        }
    }
}

proptest! {
    #[test]
    fn both_ends_agree_whatever_the_order(
        steps in prop::collection::vec(any_step(), 0..120),
        capacity in prop::sample::select(vec![0_u64, 31, 100, 200, 1000, 4096]),
        blocked in prop::sample::select(vec![0_u64, 1, 3, 100]),
    ) {
        let mut pair = Pair::new(capacity, blocked);
        for step in steps {
            pair.run(step);
        }
        // In the end everything arrives, and everything can be read.
        while !pair.instructions.is_empty() {
            pair.run(Step::Instructions(7));
        }
        for stream in pair.sections.keys().copied().collect::<Vec<_>>() {
            pair.read(stream);
        }
        prop_assert!(pair.sections.is_empty());
        pair.run(Step::Acknowledgments);
    }

    #[test]
    fn no_bytes_make_a_machine_panic(instructions: Vec<u8>, section: Vec<u8>, acknowledgments: Vec<u8>) {
        let mut decoder = TableDecoder::default();
        let _ = decoder.instructions(&instructions);
        let _ = decoder.section(0, &section, 1000);
        let _ = TableEncoder::new(4096, 1).acknowledgments(&acknowledgments);
    }
}
