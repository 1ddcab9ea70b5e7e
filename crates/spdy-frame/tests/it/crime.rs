//! The attacker of CVE-2012-4929: it chooses a header, observes lengths, and tries to find a private value.
//!
//! It writes any header but the private one, as often as it likes: its guess stands anywhere, or behind the same words
//! that stand before the private value, which a match could run over. Then it may write into the private header too, as
//! one that can plant a cookie does, or for a host of its own.

use bytes::BytesMut;
use spdy_frame::compress::{Compression, DeflateOptions, Deflater};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::secrets::Secrets;
use spdy_frame::version::Version;

/// Headers whose values may repeat as a whole, headers of tokens, URLs, and a name that no list has.
const PRIVATE: [&str; 14] = [
    "cookie",
    "set-cookie",
    "authorization",
    "proxy-authorization",
    "referer",
    ":path",
    "location",
    "x-csrf-token",
    "x-api-key",
    "etag",
    "if-none-match",
    "content-security-policy",
    "unheard-of",
    // Names are lower case on the wire, but a caller's slip must not give a secret away.
    "Cookie",
];
const SECRET: &str = "sid=4f1c2ab98e77d03356";
const OTHER_SECRET: &str = "sid=0123456789abcdef01";
const RIGHT: &str = "sid=4f1c2ab98e77d03356";
const WRONG: &str = "sid=qZwXyKvJuHtGsFrEpD";

fn block<const N: usize>(pairs: [(&str, &str); N]) -> HeaderBlock {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Lengths of the blocks of one stream.
fn lengths(options: impl Into<DeflateOptions>, blocks: &[HeaderBlock]) -> Vec<usize> {
    let mut deflater = Deflater::new(Version::V31, options);
    let length = |block| {
        let mut wire = BytesMut::new();
        deflater.deflate(block, &mut wire);
        wire.len()
    };
    blocks.iter().map(length).collect()
}

/// The lengths that the attacker sees for a guess: requests that contain the secret and the guess.
fn seen(options: impl Into<DeflateOptions>, name: &str, secret: &str, guess: &str) -> Vec<usize> {
    // A script chooses `accept`, which is matched with all that may be matched.
    let request = |accept: &str| -> HeaderBlock {
        let mut block = block([
            (":method", "GET"),
            (":path", "/"),
            ("accept", accept),
            ("user-agent", "x"),
        ]);
        let others = block.iter().filter(|(other, _)| *other != name.as_bytes());
        block = others.collect();
        block.push(name, secret);
        block
    };
    let elsewhere = |guess: &str| request(&format!("text/{guess}"));
    // A value that begins with the bytes before the secret in the plain block: length and name.
    let length = char::from(secret.len() as u8);
    let after_prefix = |guess: &str| -> HeaderBlock {
        [("accept", format!("{name}\0\0\0{length}{guess}"))]
            .into_iter()
            .collect()
    };
    let mut own = request("*/*");
    own.push("accept-language", guess);
    own.push("x-chosen", guess);
    let blocks = [
        request("*/*"),
        elsewhere(guess),
        after_prefix(guess),
        request("again"),
        own,
        request("*/*"),
    ];
    lengths(options, &blocks)
}

#[test]
fn a_right_guess_costs_as_much_as_a_wrong_one() {
    for name in PRIVATE {
        let right = seen(Compression::CrimeSafe, name, SECRET, RIGHT);
        assert_eq!(
            right,
            seen(Compression::CrimeSafe, name, SECRET, WRONG),
            "{name}"
        );
    }
}

#[test]
fn guessing_byte_by_byte_reveals_nothing() {
    for name in PRIVATE {
        for known in 4..SECRET.len() {
            // A guess compresses by its own repetitions, so lengths may reveal it. They must not reveal the secret:
            // the same guess against another secret looks the same.
            for next in (b'0'..=b'9').chain(b'a'..=b'f') {
                let guess = format!("{}{}", &SECRET[..known], char::from(next));
                let here = seen(Compression::CrimeSafe, name, SECRET, &guess);
                let other = seen(Compression::CrimeSafe, name, OTHER_SECRET, &guess);
                assert_eq!(here, other, "{name}, guess {guess}");
            }
        }
    }
}

#[test]
fn without_protection_the_same_attack_succeeds() {
    for name in PRIVATE {
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
fn stored_blocks_reveal_nothing() {
    for name in PRIVATE {
        let right = seen(Compression::Zlib(0), name, SECRET, RIGHT);
        assert_eq!(
            right,
            seen(Compression::Zlib(0), name, SECRET, WRONG),
            "{name}"
        );
    }
}

#[test]
fn a_marked_value_is_private_under_any_name() {
    let marked = |guess: &str, mark: bool| {
        let mut block = block([("user-agent", SECRET), ("accept", guess)]);
        if mark {
            block.mark_secret("user-agent");
        }
        lengths(Compression::CrimeSafe, &[block.clone(), block])
    };
    assert_eq!(marked(RIGHT, true), marked(WRONG, true));
    assert!(marked(RIGHT, false) < marked(WRONG, false), "not marked");
}

#[test]
fn a_guess_in_another_private_header_reveals_nothing() {
    // No attacker text is public here: path against path, and every other pair of private headers.
    for name in PRIVATE {
        for chosen in [":path", "referer", "x-csrf-token", "location", "unheard-of"] {
            if chosen == name {
                continue;
            }
            let after = |guess: &str| {
                let blocks = [block([(name, SECRET)]), block([(chosen, guess)])];
                lengths(Compression::CrimeSafe, &blocks)
            };
            assert_eq!(after(RIGHT), after(WRONG), "{chosen} after {name}");
        }
    }
}

#[test]
fn literal_only_values_never_repeat() {
    // All of it right, in the same header for the same host: the path of a page can be guessed.
    let names = PRIVATE.into_iter().filter(|name| {
        !name.ends_with("authorization") && !name.ends_with("cookie") && *name != "referer"
    });
    for name in names {
        let after = |guess: &str| {
            let blocks = [SECRET, guess].map(|value| block([(":host", "a.test"), (name, value)]));
            lengths(Compression::CrimeSafe, &blocks)
        };
        assert_eq!(after(RIGHT), after(WRONG), "{name}");
    }
}

#[test]
fn a_guessed_referer_is_compared_only_with_the_last_one() {
    let page = "https://victim.example/accounts/4711471147114711";
    let guesses = ["https://victim.example/accounts/0815081508150815", page];
    let request = |referer: &str| block([(":host", "victim.example"), ("referer", referer)]);
    let last = |referers: &[&str]| {
        let blocks: Vec<_> = referers.iter().map(|referer| request(referer)).collect();
        lengths(Compression::CrimeSafe, &blocks).pop()
    };
    let [wrong, right] = guesses.map(|guess| last(&[page, guess]));
    assert!(right < wrong, "resources that the page names");
    // One wrong guess between them, and the right one is not found: each wants a request of the victim.
    let [wrong, right] = guesses.map(|guess| {
        last(&[
            page,
            "https://victim.example/accounts/1234123412341234",
            guess,
        ])
    });
    assert_eq!(right, wrong);
    // A beginning that is right is nothing.
    let begun = "https://victim.example/accounts/471147114711471x";
    assert_eq!(last(&[page, begun]), last(&[page, guesses[0]]));
}

#[test]
fn a_page_with_a_short_path_cannot_be_found_by_trying_every_referer() {
    let page = "https://victim.example/inbox/4711";
    let request = |referer: &str| block([(":host", "victim.example"), ("referer", referer)]);
    // The attacker frames each page in turn; the victim sends its own referer before every guess.
    let lengths_of_guesses: std::collections::BTreeSet<_> = (4700..4720)
        .map(|number| {
            let guess = format!("https://victim.example/inbox/{number}");
            lengths(Compression::CrimeSafe, &[request(page), request(&guess)])
        })
        .collect();
    assert_eq!(lengths_of_guesses.len(), 1, "{lengths_of_guesses:?}");
}

/// A session that an attacker makes send requests, `cookie` with each. It sees their lengths.
struct Victim {
    deflater: Deflater,
    requests: usize,
}

impl Victim {
    fn new(options: impl Into<DeflateOptions>) -> Self {
        Self {
            deflater: Deflater::new(Version::V31, options),
            requests: 0,
        }
    }

    /// Length of a request to `host` with `cookie`, and `accept` as a script chose it.
    fn request(&mut self, host: &str, accept: &str, cookie: &str) -> usize {
        self.requests += 1;
        let block = block([
            (":host", host),
            (":path", "/"),
            ("accept", accept),
            ("cookie", cookie),
            ("user-agent", "x"),
        ]);
        let mut wire = BytesMut::new();
        self.deflater.deflate(&block, &mut wire);
        wire.len()
    }
}

/// The attack of CRIME: of all next letters the one whose requests are shortest, tried in one session, in
/// several surroundings so that the ends of bytes do not hide a few bits. An earlier guess would
/// be found as well as the secret, so a long text pushes it out of the window. Returns what the attacker
/// believes.
fn adaptive_attack(compression: Compression) -> (String, usize) {
    let mut options = DeflateOptions::from(compression);
    options.window_bits = 11;
    let mut victim = Victim::new(options);
    let mut state = 1_u64;
    let mut letter = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(b'!' + (state >> 58) as u8)
    };
    // Its end is no letter of the alphabet: what follows it would be found together with it.
    let long: String = (0..2100).map(|_| letter()).chain(['~']).collect();
    let mut known = "; sid=".to_owned();
    let cookie = format!("lang=en; {SECRET}");
    while known.len() < "; ".len() + SECRET.len() {
        let mut cost = |letter: char| -> usize {
            (0..8)
                .map(|filler: usize| {
                    let filler = &"QZWXKVJY"[..filler];
                    victim.request("victim.example", &long, &cookie);
                    let accept = format!("/{filler}{known}{letter}");
                    victim.request("victim.example", &accept, &cookie)
                })
                .sum()
        };
        let costs: Vec<(usize, char)> = "0123456789abcdef"
            .chars()
            .map(|letter| (cost(letter), letter))
            .collect();
        known.extend(costs.iter().min().map(|(_, letter)| letter));
    }
    (known, victim.requests)
}

#[test]
fn an_adaptive_attack_works_only_without_protection() {
    let found = |guess: &str| {
        let right = guess.chars().skip(2).zip(SECRET.chars()).skip(4);
        right.filter(|(guess, secret)| guess == secret).count()
    };
    let letters = SECRET.len() - "sid=".len();
    let (plain, requests) = adaptive_attack(Compression::Zlib(9));
    assert!(requests > 2000, "{requests}");
    assert!(found(&plain) * 2 > letters, "{plain} of {SECRET}");
    // One letter in sixteen is right by chance; each is the same as for any other secret.
    let (masked, _) = adaptive_attack(Compression::CrimeSafe);
    assert!(found(&masked) <= 4, "{masked} of {SECRET}");
}

#[test]
fn a_guess_in_the_same_header_reveals_only_a_complete_match() {
    // A planted cookie, sent beside the secret by a browser, or alone by a gateway for another user.
    let planted = |options: DeflateOptions, guess: &str, host: &str| {
        let mut victim = Victim::new(options);
        victim.request("victim.example", "/", SECRET);
        victim.request(host, "/", guess)
    };
    let whole = || DeflateOptions::default();
    let strict = || {
        let mut options = DeflateOptions::default();
        options.secrets = Secrets::default().whole_matches(false);
        options
    };
    let wrong = planted(whole(), WRONG, "victim.example");
    for right_letters in 4..SECRET.len() {
        let guess = format!("{}{}", &RIGHT[..right_letters], &WRONG[right_letters..]);
        assert_eq!(planted(whole(), &guess, "victim.example"), wrong, "{guess}");
        // Right, but not all of it; and all of it, but more.
        let cut = planted(whole(), &RIGHT[..right_letters], "victim.example");
        let other = planted(whole(), &WRONG[..right_letters], "victim.example");
        assert_eq!(cut, other, "{right_letters} letters");
        let more = |guess: &str| planted(whole(), &format!("{guess}!"), "victim.example");
        assert_eq!(more(RIGHT), more(WRONG));
    }
    // This information may leak, and only to these parties.
    assert!(planted(whole(), RIGHT, "victim.example") < wrong - 10);
    assert_eq!(
        planted(whole(), RIGHT, "attack.example"),
        planted(whole(), WRONG, "attack.example"),
        "for a host of the attacker"
    );
    assert_eq!(
        planted(strict(), RIGHT, "victim.example"),
        planted(strict(), WRONG, "victim.example"),
        "no repetition is allowed"
    );
}

#[test]
fn a_secret_short_enough_to_guess_is_never_a_repetition() {
    let request = |crumb: &str, guess: &str| {
        let mut victim = Victim::new(Compression::CrimeSafe);
        victim.request("victim.example", "/", crumb);
        victim.request("victim.example", "/", guess)
    };
    // A byte under the least length, however long the name; then as long as it takes.
    let least = Secrets::MIN_WHOLE_BYTES;
    let crumb = |letter: &str, len: usize| format!("a-name-of-some-length={}", letter.repeat(len));
    assert_eq!(
        request(&crumb("7", least - 1), &crumb("7", least - 1)),
        request(&crumb("7", least - 1), &crumb("8", least - 1))
    );
    assert!(
        request(&crumb("7", least), &crumb("7", least))
            < request(&crumb("7", least), &crumb("8", least))
    );
}

#[test]
fn secrets_of_different_names_never_match() {
    let after = |name: &'static str, value: &'static str| {
        let blocks = [("authorization", SECRET), (name, value)].map(|pair| block([pair]));
        lengths(Compression::CrimeSafe, &blocks)
    };
    for name in ["cookie", "set-cookie", "proxy-authorization"] {
        assert_eq!(after(name, RIGHT), after(name, WRONG), "{name}");
    }
}
