//! The table of second choices, and the judgement of all runs.

use spdy_testkit::conformance::Case;

use super::outcome;
use super::run_result::Run;

/// Where our outcome is right, but not the one that the vectors like best: the input, what becomes of it,
/// and why.
const NOT_THE_FIRST_CHOICE: [(&str, &str, &str); 16] = [
    (
        "flags_rst_v2",
        "ignore_flags",
        "undefined flags are ignored; most peers ignore them",
    ),
    ("flags_rst_v3", "ignore_flags", "the same"),
    ("flags_rst_v31", "ignore_flags", "the same"),
    ("flags_ping_v2", "ignore_flags", "the same"),
    ("flags_ping_v3", "ignore_flags", "the same"),
    ("flags_ping_v31", "ignore_flags", "the same"),
    (
        "hb_bomb_16m_v3",
        "session:PROTOCOL_ERROR",
        "keeping the context would mean inflating 16 MiB without use; this implementation stops at 1 MiB",
    ),
    ("hb_bomb_16m_v31", "session:PROTOCOL_ERROR", "as above"),
    (
        "hb_empty_block_v2",
        "rst:1:PROTOCOL_ERROR",
        "Netty writes an empty set of headers as no bytes, so this is not a compression error",
    ),
    ("hb_empty_block_v3", "rst:1:PROTOCOL_ERROR", "as above"),
    ("hb_empty_block_v31", "rst:1:PROTOCOL_ERROR", "as above"),
    (
        "hb_many_headers_5000_v3",
        "rst:1:FRAME_TOO_LARGE",
        "with the length fields they are 70 kB, which is reported before they are counted",
    ),
    (
        "hb_many_headers_5000_v31",
        "rst:1:FRAME_TOO_LARGE",
        "as above",
    ),
    (
        "http_missing_host_v2",
        "http:400:1",
        "a server with several hosts cannot choose one; an absolute URL may replace both",
    ),
    (
        "http_missing_scheme_v2",
        "http:400:1",
        "a guess could confuse http and https; an absolute URL may replace both",
    ),
    (
        "syn_after_goaway_v31",
        "ignore",
        "with no stream left the session has ended, and the GOAWAY names stream 0",
    ),
];

/// The expected outcome of `case`.
pub(crate) fn expected_outcome(case: &Case) -> &str {
    let listed = NOT_THE_FIRST_CHOICE.iter().find(|(id, ..)| case.id == *id);
    listed.map_or(case.expect[0].as_str(), |(_, outcome, _)| outcome)
}

/// Panics unless each case ended in the first outcome of its `expect`, or in the one in the table.
pub(crate) fn judge(runs: &[(Case, Run)]) {
    assert_eq!(runs.len(), 406);
    let mut failures = Vec::new();
    for (case, run) in runs {
        let mut outcomes = case.expect.iter();
        let came_to = outcomes.find(|outcome| outcome::is(outcome, case, run));
        if came_to.is_none_or(|outcome| outcome != expected_outcome(case)) {
            let (id, title, expected) = (&case.id, &case.title, expected_outcome(case));
            failures.push(format!(
                "{id} ({title}): expected {expected}, found {came_to:?}: {run:?}"
            ));
        }
    }
    for (id, outcome, _) in NOT_THE_FIRST_CHOICE {
        let (case, _) = (runs.iter().find(|(case, _)| case.id == id)).expect("a case of the table");
        assert_ne!(
            case.expect[0], outcome,
            "the table entry of {id} is not needed"
        );
    }
    assert!(
        failures.is_empty(),
        "{} wrong:\n{}",
        failures.len(),
        failures.join("\n")
    );
}
