//! Every input of the conformance vectors, run against a server or a client of this library over a wire
//! in virtual time. Each must end in an outcome that its `expect` names.

use std::collections::BTreeMap;

use spdy_testkit::conformance;

mod outcome;
mod run;
#[path = "../support/virtual_world.rs"]
mod virtual_world;

/// Where our outcome is right, but not the one that the vectors like best: the input, what becomes of it,
/// and why.
const NOT_THE_FIRST_CHOICE: [(&str, &str, &str); 10] = [
    (
        "hb_bomb_16m_v3",
        "session:PROTOCOL_ERROR",
        "to save the context 16 MiB would be inflated for nobody; we stop at 1 MiB",
    ),
    ("hb_bomb_16m_v31", "session:PROTOCOL_ERROR", "likewise"),
    (
        "hb_empty_block_v2",
        "rst:1:PROTOCOL_ERROR",
        "Netty writes an empty set of headers as no bytes, so they are no fault of the compression",
    ),
    ("hb_empty_block_v3", "rst:1:PROTOCOL_ERROR", "likewise"),
    ("hb_empty_block_v31", "rst:1:PROTOCOL_ERROR", "likewise"),
    (
        "hb_many_headers_5000_v3",
        "rst:1:FRAME_TOO_LARGE",
        "with their lengths they are 70 kB, which is told before they are counted",
    ),
    (
        "hb_many_headers_5000_v31",
        "rst:1:FRAME_TOO_LARGE",
        "likewise",
    ),
    (
        "http_missing_host_v2",
        "http:400:1",
        "who serves several hosts cannot tell which was meant; an absolute url may stand for both",
    ),
    (
        "http_missing_scheme_v2",
        "http:400:1",
        "a guess could take http for https; an absolute url may stand for both",
    ),
    (
        "syn_after_goaway_v31",
        "ignore",
        "with no stream left the session has ended, and our GOAWAY says that nothing was looked at",
    ),
];

#[test]
fn every_input_ends_in_an_outcome_that_is_right_for_it() {
    let cases = conformance::all();
    assert_eq!(cases.len(), 406);
    let mut wrong = Vec::new();
    let mut second = BTreeMap::new();
    for case in &cases {
        let run = run::run(case);
        match case
            .expect
            .iter()
            .position(|outcome| outcome::is(outcome, case, &run))
        {
            Some(0) => {}
            Some(at) => _ = second.insert(case.id.as_str(), case.expect[at].as_str()),
            None => wrong.push(format!(
                "{} ({}): want {:?}, got {run:?}",
                case.id, case.title, case.expect
            )),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    let listed = NOT_THE_FIRST_CHOICE.map(|(id, outcome, _)| (id, outcome));
    assert_eq!(
        second,
        BTreeMap::from(listed),
        "second choices and their table"
    );
}

/// The inputs one behind the other, cut, repeated and with bits flipped: no panic, and an end.
#[test]
fn mixtures_of_the_inputs_are_survived() {
    let cases = conformance::all();
    let short: Vec<_> = cases
        .iter()
        .filter(|case| case.input.0.len() < 4096)
        .collect();
    for seed in 0..3000_u64 {
        let mut state = seed;
        let mut below = |limit: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % limit
        };
        let mut mixed = short[below(short.len())].clone();
        let mut peers: Vec<_> = short
            .iter()
            .filter(|case| case.version == mixed.version && case.receiver == mixed.receiver)
            .collect();
        let from = below(peers.len());
        peers.rotate_left(from);
        for part in peers.iter().take(below(6)) {
            let bytes = &part.input.0;
            mixed
                .input
                .0
                .extend_from_slice(&bytes[..below(bytes.len() + 1)]);
            mixed.input.0.extend_from_slice(&part.setup.0);
        }
        for _ in 0..below(8) {
            let at = below(mixed.input.0.len() + 1);
            if let Some(byte) = mixed.input.0.get_mut(at) {
                *byte ^= 1 << below(8);
            }
        }
        mixed.id = format!("{} and more, seed {seed}", mixed.id);
        let run = std::panic::catch_unwind(|| run::run(&mixed));
        assert!(run.is_ok(), "{}", mixed.id);
    }
}
