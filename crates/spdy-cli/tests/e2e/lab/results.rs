//! What is computed from results: comparisons with budgets, reports, and verdicts on claims.

use std::fs;

use rusqlite::Connection;
use serde_json::Value;

use crate::support::lab::experiment_folder::{Lab, SMALL, text};
use crate::support::program::{output, run_expecting, spdy};

#[test]
fn two_stores_are_compared_cell_by_cell_and_a_budget_is_checked() {
    let lab = Lab::new(SMALL);
    lab.run("before.db", &[]);
    let same = text(
        &run_expecting(
            0,
            &mut lab.command(&["compare", "before.db", "before.db", "--budget", "0%"]),
        )
        .stdout,
    );
    assert!(
        same.contains("load of 12 cells: 0 slower, 0 faster, 12 the same within 1 %, 0 undecided"),
        "{same}"
    );
    assert!(
        same.contains("overall ratio after/before 1.000 (1.000 to 1.000)"),
        "{same}"
    );

    // Changed times and sizes in the same cells, like those of a slower site or program.
    let worse = "UPDATE results SET load_ms = load_ms * 1.05, bytes_down = bytes_down / 2 WHERE method = 'spdy'";
    fs::copy(lab.path("before.db"), lab.path("after.db")).expect("copy the file");
    let connection = Connection::open(lab.path("after.db")).expect("a store");
    assert_eq!(connection.execute(worse, []).expect("rows"), 12);
    drop(connection);
    let compare = |code, options: &[&str]| {
        let mut command = lab.command(&["compare", "before.db", "after.db"]);
        run_expecting(code, command.args(options))
    };
    let stdout = text(&compare(0, &[]).stdout);
    assert!(
        stdout.contains("2 slower, 0 faster, 6 the same within 1 %, 4 undecided"),
        "{stdout}"
    );
    assert!(stdout.contains("1.050-1.050"), "{stdout}");
    let bytes = text(&compare(0, &["--measure", "bytes"]).stdout);
    assert!(bytes.contains("0 more, 2 less, 6 the same"), "{bytes}");
    compare(0, &["--budget", "6%"]);
    let over = text(&compare(1, &["--budget", "4.9%"]).stderr);
    assert!(
        over.contains("2 cells take more than 4.9")
            && over.contains("5.0 % more")
            && over.contains("4 cells are over the budget and undecided"),
        "{over}"
    );
    let json: Value = serde_json::from_slice(&compare(0, &["--json"]).stdout).expect("JSON");
    assert_eq!(json["cells"].as_array().expect("cells").len(), 12);
    assert_eq!(json["cells"][0]["paired"], true);

    // A missing cell fails the budget.
    let connection = Connection::open(lab.path("after.db")).expect("a store");
    connection
        .execute(
            "UPDATE results SET load_ms = load_ms / 1.05 WHERE method = 'spdy'",
            [],
        )
        .expect("rows");
    connection
        .execute("DELETE FROM results WHERE id <= 2", [])
        .expect("rows");
    drop(connection);
    compare(0, &[]);
    let stderr = text(&compare(1, &["--budget", "2%"]).stderr);
    assert!(
        stderr.contains("cannot compare 1 cells of before"),
        "{stderr}"
    );
    run_expecting(
        2,
        &mut lab.command(&["compare", "before.db", "after.db", "--budget", "much"]),
    );
    run_expecting(
        2,
        &mut lab.command(&["compare", "before.db", "after.db", "--measure", "joy"]),
    );
    run_expecting(2, &mut lab.command(&["compare", "before.db", "nowhere.db"]));
}

#[test]
fn a_report_needs_no_network_and_escapes_names() {
    let lab = Lab::new(SMALL);
    lab.run("small.db", &[]);
    run_expecting(0, &mut lab.command(&["report", "small.db"]));
    let html = fs::read_to_string(lab.path("small.html")).expect("a report");
    for heading in [
        "Experiment: small",
        "Pairwise comparison",
        "Main effects",
        "Interactions: load time over loss",
        "Interactions: load time over connections",
        "DOMContentLoaded, load and time on wire",
        "Interactions: ratios over loss and connections",
        "Distribution",
        "Waterfalls",
        "On the wire",
        "Cells to look at",
    ] {
        assert!(html.contains(heading), "no {heading}");
    }
    // 12 cells of two protocols: 6 dots for ratios. Each cell has one dot for each of two factors, and three for its three times. The main
    // effects of each protocol have a dot for each of 3 and 2 levels.
    assert_eq!(html.matches("class=\"dot faint ").count(), 6);
    assert_eq!(html.matches("class=\"dot p-").count(), 24 + 36 + 10);
    assert_eq!(html.matches("class=\"chart waterfall named\"").count(), 2);
    assert!(html.contains("those of the store, to the nanosecond"));
    for outside in ["<script", " src=", " href=", "<link", "url("] {
        assert!(!html.contains(outside), "found {outside}");
    }
    let stdout = text(
        &run_expecting(
            0,
            &mut lab.command(&["report", "small.db", "--output", "-"]),
        )
        .stdout,
    );
    assert_eq!(stdout, html);

    let connection = Connection::open(lab.path("small.db")).expect("a store");
    let hostile = "UPDATE results SET failures = '<script>alert(1)</script>', cell = replace(cell, 'portal', '<b onload=x>')";
    connection.execute(hostile, []).expect("rows");
    drop(connection);
    let html = text(
        &run_expecting(
            0,
            &mut lab.command(&["report", "small.db", "--output", "-"]),
        )
        .stdout,
    );
    assert!(html.contains("&lt;script&gt;alert(1)") && html.contains("&lt;b onload=x&gt;"));
    assert!(!html.contains("<script") && !html.contains("<b "));
    run_expecting(2, &mut lab.command(&["report", "nowhere.db"]));
    let hostile = "UPDATE results SET cell = replace(cell, 'page=', 'page=../../x/')";
    let connection = Connection::open(lab.path("small.db")).expect("a store");
    connection.execute(hostile, []).expect("rows");
    drop(connection);
    run_expecting(
        0,
        &mut lab.command(&["report", "small.db", "--svg", "figures"]),
    );
    let figures = fs::read_dir(lab.path("figures")).expect("read the folder");
    let mut count = 0;
    for figure in figures {
        let svg = fs::read_to_string(figure.expect("a file").path()).expect("text");
        assert!(!svg.contains("<b ") && !svg.contains("onload=x>"), "{svg}");
        count += 1;
    }
    assert_eq!(count, 10);

    // A report or a table cannot overwrite its store.
    let bytes_before = lab.bytes("small.db");
    run_expecting(
        2,
        &mut lab.command(&["report", "small.db", "--output", "small.db"]),
    );
    run_expecting(
        2,
        &mut lab.command(&["export", "small.db", "--csv", "./small.db"]),
    );
    assert!(
        lab.bytes("small.db") == bytes_before,
        "the store was overwritten"
    );

    // An infinite time has no place in a chart, and names cannot send control characters to a terminal.
    let connection = Connection::open(lab.path("small.db")).expect("a store");
    let endless = "UPDATE results SET load_ms = 9e999, cell = replace(cell, '<b', char(27) || ']0;x') WHERE id = 1";
    connection.execute(endless, []).expect("rows");
    drop(connection);
    run_expecting(
        0,
        &mut lab.command(&["report", "small.db", "--output", "-"]),
    );
    lab.run("other.db", &[]);
    let output = run_expecting(
        1,
        &mut lab.command(&["compare", "small.db", "other.db", "--budget", "1%"]),
    );
    assert!(!output.stderr.contains(&27), "{}", text(&output.stderr));
}

#[test]
fn claims_print_deterministically_as_text_json_and_markdown() {
    let reproduce = |options: &[&str]| {
        let arguments = ["lab", "reproduce", "mineki", "--quick"];
        text(&run_expecting(0, spdy(&arguments).args(options)).stdout)
    };
    let single_job = reproduce(&["--jobs", "1"]);
    assert_eq!(single_job, reproduce(&["--jobs", "3"]));
    for word in ["mineki", "accelerator", "33.3 % ± 6.0 %", "7 claims: "] {
        assert!(single_job.contains(word), "no {word:?} in {single_job}");
    }
    let findings: Vec<Value> = reproduce(&["--json"])
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(findings.len(), 7);
    let claim = findings.iter().find(|claim| claim["name"] == "accelerator");
    let accelerator = claim.expect("a claim of that name");
    assert_eq!(accelerator["expected"]["number"]["value"], 33.3);
    assert!(accelerator["measured"]["points"][0]["estimate"]["low"].is_number());
    let markdown = reproduce(&["--markdown"]);
    assert!(
        markdown.starts_with("### mineki\n\n| claim | "),
        "{markdown}"
    );

    // Claims that need recordings report it; a folder without recordings is an error.
    let belshe = output(&mut spdy(&["lab", "reproduce", "belshe", "--quick"]));
    let belshe = text(&belshe.stdout);
    assert!(belshe.contains("no corpus: use --corpus"), "{belshe}");
    let empty = tempfile::tempdir().expect("create a folder");
    let folder = empty.path().to_str().expect("a UTF-8 name");
    let output = run_expecting(
        1,
        &mut spdy(&["lab", "reproduce", "all", "--corpus", folder]),
    );
    assert!(
        text(&output.stderr).contains("has no page"),
        "{}",
        text(&output.stderr)
    );
    run_expecting(2, &mut spdy(&["lab", "reproduce", "unknown"]));
}
