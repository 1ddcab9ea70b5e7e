//! Claims: two runs give the same results, and the documented page has every claim of this list.

use std::cell::Cell;

use spdy_lab::claims::{self, Claim, ClaimResult, ClaimRunner, LoadMemo, Verdict};

fn claim(paper: &str, name: &str) -> &'static Claim {
    let found = claims::all().find(|it| it.paper.name() == paper && it.name == name);
    found.unwrap_or_else(|| panic!("no claim {paper}/{name}"))
}

fn bench(threads: usize) -> ClaimRunner<'static> {
    ClaimRunner {
        runs: 1,
        threads: std::num::NonZeroUsize::new(threads),
        corpus: None,
        quick: true,
        on_loads: &|_| (),
        memo: LoadMemo::default(),
    }
}

#[test]
fn a_claim_gives_the_same_result_on_any_number_of_threads() {
    let quick = [
        claim("mineki", "every-rate"),
        claim("nsdi14", "many-small"),
        claim("nsdi14", "large-lossy"),
        claim("belshe", "framing"),
    ];
    let json = |threads| {
        let findings = quick.map(|claim| ClaimResult::of(claim, &bench(threads)));
        serde_json::to_string(&findings).expect("it is JSON")
    };
    assert_eq!(json(1), json(3));
}

#[test]
fn claims_share_their_loads_and_have_the_results_that_each_has_alone() {
    let (calls, loads) = (Cell::new(0), Cell::new(0));
    let count = |done: u64| {
        calls.set(calls.get() + 1);
        loads.set(loads.get() + done);
    };
    let shared = ClaimRunner {
        on_loads: &count,
        ..bench(1)
    };
    let json = |claim, bench: &ClaimRunner<'_>| {
        serde_json::to_string(&ClaimResult::of(claim, bench)).expect("it is JSON")
    };
    for name in ["bing-bandwidth", "bing-https-delay", "bing-wins"] {
        let claim = claim("lulic", name);
        assert_eq!(json(claim, &shared), json(claim, &bench(1)), "{name}");
    }
    // All loads of a repeated claim are done at once.
    let claim = claim("lulic", "bing-bandwidth");
    let (calls_before, loads_before) = (calls.get(), loads.get());
    let _ = json(claim, &shared);
    assert_eq!(calls.get() - calls_before, 1);
    assert!(loads.get() - loads_before > 1);
}

#[test]
fn claims_that_need_a_corpus_fail_without_one() {
    for claim in claims::all().filter(|claim| !claim.needs_no_corpus()) {
        let finding = ClaimResult::of(claim, &bench(1));
        assert_eq!(finding.verdict, Verdict::CannotBeRun, "{claim:?}");
        assert_eq!(
            finding.reason.as_deref(),
            Some("no corpus: use --corpus"),
            "{claim:?}"
        );
    }
}

/// Claims whose rows take longest to compute, two thirds of the total time: the page is large, or has 197 resources in 42 cells. Each
/// of these pages has another row that is computed here.
const SLOW: [&str; 13] = [
    "flags-https",
    "flags-wins",
    "flags-tls",
    "flags-https-wins",
    "flags-bandwidth",
    "flags-delay",
    "amazon",
    "amazon-https",
    "amazon-tls",
    "amazon-wins",
    "amazon-https-wins",
    "amazon-bandwidth",
    "amazon-https-delay",
];

/// Virtual time does not depend on the machine: the same build has the same rows, figures, intervals and verdicts.
#[test]
fn claims_without_a_corpus_reproduce_the_documented_rows() {
    let page = include_str!("../../../../../docs/measurements/claims.md");
    let bench = ClaimRunner {
        runs: ClaimRunner::RUNS,
        ..bench(2)
    };
    for name in SLOW {
        assert!(claims::all().any(|claim| claim.name == name), "{name}");
    }
    let quick = claims::all()
        .filter(|claim| claim.needs_no_corpus())
        .filter(|claim| !SLOW.contains(&claim.name));
    let rows = quick.map(|claim| claims::markdown_row(&ClaimResult::of(claim, &bench)));
    let missing: Vec<_> = rows
        .filter(|row| page.lines().all(|line| line != row))
        .collect();
    assert!(
        missing.is_empty(),
        "not in docs/measurements/claims.md:\n{}",
        missing.join("\n")
    );
}

#[test]
fn claim_names_are_unique_and_the_page_has_every_claim() {
    let page = include_str!("../../../../../docs/measurements/claims.md");
    let mut section = "";
    let mut rows = std::collections::BTreeMap::new();
    for line in page.lines() {
        if let Some(paper) = line.strip_prefix("### ") {
            section = paper;
        } else if let Some(row) = line.strip_prefix("| **") {
            let (name, row) = row.split_once("**: ").expect("a name and a sentence");
            let before = rows.insert((section, name), row);
            assert_eq!(before, None, "{section}/{name} stands there twice");
        }
    }
    for claim in claims::all() {
        let row = rows.remove(&(claim.paper.name(), claim.name));
        let row = row.unwrap_or_else(|| {
            panic!("{claim:?} is not in docs/measurements/claims.md, or twice in the list")
        });
        let claimed = claim.expected.describe(claim.unit);
        let start = format!("{} | {} | {claimed} | ", claim.what, claim.conditions);
        assert!(row.starts_with(&start), "{claim:?}: {row}");
    }
    assert!(rows.is_empty(), "no claims any more: {:?}", rows.keys());
}
