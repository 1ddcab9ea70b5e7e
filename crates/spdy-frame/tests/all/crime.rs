//! The attacker of CVE-2012-4929: he chooses a header, sees lengths, and wants the cookie.
//!
//! Two attacks, against every secret name. In the first his guess stands behind the same words that
//! stand before the secret, which a match could run over; in the second anywhere.

use bytes::BytesMut;
use spdy_frame::compress::{Compression, Deflater};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;

const SECRETS: [&str; 4] = [
    "cookie",
    "set-cookie",
    "authorization",
    "proxy-authorization",
];
const SECRET: &str = "sid=4f1c2ab98e77d03356";
const OTHER_SECRET: &str = "sid=0123456789abcdef01";
const RIGHT: &str = "sid=4f1c2ab98e77d03356";
const WRONG: &str = "sid=qZwXyKvJuHtGsFrEpD";

/// Lengths of the blocks of one stream.
fn lengths(compression: Compression, blocks: &[HeaderBlock]) -> Vec<usize> {
    let mut deflater = Deflater::new(Version::V31, compression);
    let length = |block| {
        let mut wire = BytesMut::new();
        deflater.deflate(block, &mut wire);
        wire.len()
    };
    blocks.iter().map(length).collect()
}

/// What the attacker sees for a guess: requests with the secret, his guess among them.
fn seen(compression: Compression, name: &str, secret: &str, guess: &str) -> Vec<usize> {
    let request = |path: &str| -> HeaderBlock {
        [
            (":method", "GET"),
            (":path", path),
            (name, secret),
            ("user-agent", "x"),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
    };
    let elsewhere = |guess: &str| request(&format!("/search?q={guess}"));
    // A value that begins with the bytes before the secret in the plain block: length and name.
    let length = char::from(secret.len() as u8);
    let after_prefix = |guess: &str| -> HeaderBlock {
        [("x-chosen", format!("{name}\0\0\0{length}{guess}"))]
            .into_iter()
            .collect()
    };
    let mut own = request("/");
    own.push("x-chosen", guess);
    let blocks = [
        request("/"),
        elsewhere(guess),
        after_prefix(guess),
        request("/again"),
        own,
        request("/"),
    ];
    lengths(compression, &blocks)
}

#[test]
fn a_right_guess_costs_as_much_as_a_wrong_one() {
    for name in SECRETS {
        let right = seen(Compression::Masked, name, SECRET, RIGHT);
        assert_eq!(
            right,
            seen(Compression::Masked, name, SECRET, WRONG),
            "{name}"
        );
    }
}

#[test]
fn byte_by_byte_nothing_is_learned() {
    for name in SECRETS {
        for known in 4..SECRET.len() {
            // A guess compresses by its own repetitions, so lengths may tell of it. Of the secret they
            // must not: the same guess against another secret looks the same.
            for next in (b'0'..=b'9').chain(b'a'..=b'f') {
                let guess = format!("{}{}", &SECRET[..known], char::from(next));
                let here = seen(Compression::Masked, name, SECRET, &guess);
                let other = seen(Compression::Masked, name, OTHER_SECRET, &guess);
                assert_eq!(here, other, "{name}, guess {guess}");
            }
        }
    }
}

#[test]
fn without_protection_the_same_attack_succeeds() {
    for name in SECRETS {
        for level in [1, 6, 9] {
            let right = seen(Compression::Zlib(level), name, SECRET, RIGHT);
            let wrong = seen(Compression::Zlib(level), name, SECRET, WRONG);
            let gain: usize = wrong.iter().sum::<usize>() - right.iter().sum::<usize>();
            assert!(
                gain >= 8,
                "{name}, level {level}: {right:?} against {wrong:?}"
            );
        }
    }
}

#[test]
fn stored_blocks_tell_nothing_either() {
    for name in SECRETS {
        let right = seen(Compression::Zlib(0), name, SECRET, RIGHT);
        assert_eq!(
            right,
            seen(Compression::Zlib(0), name, SECRET, WRONG),
            "{name}"
        );
    }
}

#[test]
fn secrets_are_known_by_name_in_any_case() {
    // Names are lower case on the wire, but a caller's slip must not give a secret away.
    let right = seen(Compression::Masked, "Cookie", SECRET, RIGHT);
    assert_eq!(right, seen(Compression::Masked, "Cookie", SECRET, WRONG));
    let right = seen(Compression::Masked, "x-cookie", SECRET, RIGHT);
    assert_ne!(
        right,
        seen(Compression::Masked, "x-cookie", SECRET, WRONG),
        "not a secret's name"
    );
}
