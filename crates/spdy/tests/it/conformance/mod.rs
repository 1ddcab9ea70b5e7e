//! Every input of the conformance vectors, run against a server or a client of this library over a wire
//! in virtual time. Each must end in an outcome that its `expect` names.
//!
//! ```text
//! run.rs          plays an input            crates/spdy-net/tests/it/conformance.rs does so over sockets, and has the
//! application.rs  the server's responses    rest from here
//! run_result.rs   the frames that came back
//! outcome.rs      the outcomes of a run
//! judge.rs        compares them with those expected
//! ```

use spdy_testkit::conformance;

mod application;
mod judge;
mod outcome;
mod run;
mod run_result;

#[test]
fn every_input_has_a_permitted_outcome() {
    let cases = conformance::all();
    let runs = cases.into_iter().map(|case| {
        let run = run::run(&case);
        (case, run)
    });
    judge::judge(&runs.collect::<Vec<_>>());
}

/// The inputs one behind the other, cut, repeated and with bits flipped: no panic, and an end.
#[test]
fn mixed_and_modified_inputs_do_not_panic() {
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
