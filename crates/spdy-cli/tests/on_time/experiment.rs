//! `clock = "real"`: experiments whose loads go through the kernel.

use rusqlite::Connection;
use serde_json::Value;
use spdy_page::archive;
use spdy_page::builtin;
use spdy_page::head;

use super::lab::{Lab, number, rows, text};
use super::turn;

const BOTH_CLOCKS: &str = "name = 'clocks'\nruns = 2\npages = ['lulic-bing']\nprotocols = ['http', 'spdy']\n[factors]\nnetwork = \
                           'lte'\nclock = ['virtual', 'real']\n";

#[test]
fn real_time_runs_store_link_stats_and_average_valid_runs_only() {
    let Some(_turn) = turn() else { return };
    use rusqlite::types::Value::{Null, Text};
    let lab = Lab::new(BOTH_CLOCKS);
    let run = ["run", "small.toml", "--store", "a.db"];
    let first = lab.run(&run);
    let stderr = text(&first.stderr);
    let rows_before = rows(&lab, "a.db");
    assert_eq!(rows_before.len(), 8, "{stderr}");
    let mut all_valid = true;
    for ((key, run), row) in &rows_before {
        if row["clock"] == Text("virtual".to_owned()) {
            for name in [
                "attempts",
                "invalid",
                "congestion",
                "late_max_ms",
                "lost_down",
            ] {
                assert_eq!(row[name], Null, "{key} {name}");
            }
            continue;
        }
        assert_eq!(row["congestion"], Text("cubic".to_owned()), "{key}");
        assert_eq!(
            (&row["tcp"], &row["initial_window"]),
            (&Null, &Null),
            "{key}"
        );
        // The same seed as in virtual time.
        let virtual_key = key.replace("clock=real", "clock=virtual");
        let virtual_row = &rows_before[&(virtual_key, *run)];
        assert_eq!(row["seed"], virtual_row["seed"], "{key}");
        if row["invalid"] == Null {
            assert_eq!(row["failures"], Null, "{key}");
        }
        let [mean, p99, max] =
            ["late_mean_ms", "late_p99_ms", "late_max_ms"].map(|name| number(&row[name]));
        assert!(
            0.0 < mean && mean <= max && p99 <= max,
            "{key}: {mean} {p99} {max}"
        );
        let (load, on_wire) = (number(&row["load_ms"]), number(&row["time_on_wire_ms"]));
        assert!(on_wire > 0.9 * load, "{key}: {on_wire} of {load}");
        // Half of the 70 ms round trip, plus the lateness in one direction.
        let delay = number(&row["achieved_delay_down_ms"]);
        assert!(
            (delay - number(&row["rtt_ms"]) / 2.0 - mean).abs() < mean + 0.001,
            "{key}: {delay}"
        );
        all_valid &= row["invalid"] == Null;
        match &row["rejected"] {
            Null => assert_eq!(number(&row["attempts"]), 1.0, "{key}"),
            Text(reason) => assert_eq!(
                number(&row["attempts"]),
                1.0 + reason.lines().count() as f64,
                "{key}: {reason}"
            ),
            other => panic!("{key}: {other:?}"),
        }
        if row["invalid"] == Null {
            let virtual_ms = number(&virtual_row["load_ms"]);
            assert!(
                load > 0.97 * virtual_ms,
                "{key}: {load} and {virtual_ms} ms"
            );
        }
    }
    let code = if all_valid { 0 } else { 1 };
    assert_eq!(first.status.code(), Some(code), "{stderr}");

    // A missing cell is loaded again, and nothing else changes.
    let lost = "page=lulic-bing,protocol=spdy,network=lte,clock=real";
    let store = Connection::open(lab.path("a.db")).expect("a store");
    store
        .execute_batch(&format!(
            "DELETE FROM results WHERE cell = '{lost}'; UPDATE plan SET done = 0;"
        ))
        .expect("a table");
    drop(store);
    let second = lab.run(&run);
    assert!(
        text(&second.stderr).contains("3 of 4 cells are already present"),
        "{}",
        text(&second.stderr)
    );
    let rows_after = rows(&lab, "a.db");
    assert_eq!(rows_after.len(), 8);
    for (key, row) in &rows_before {
        assert!(key.0 == lost || rows_after[key] == *row, "{key:?}");
    }
    // Another store has other loads of the same cell; a merge does not replace those in the target.
    lab.run(&["cell", "small.toml", lost, "--store", "b.db"]);
    lab.run_expecting(0, &["merge", "b.db", "--store", "a.db"]);
    assert_eq!(rows(&lab, "a.db"), rows_after);

    // Invalid runs are not in the median.
    let store = Connection::open(lab.path("a.db")).expect("a store");
    store
        .execute_batch(&format!(
            "UPDATE results SET invalid = NULL; \
             UPDATE results SET invalid = 'it was late', load_ms = 1e9 WHERE cell = '{lost}' AND run = 1;"
        ))
        .expect("a table");
    drop(store);
    let output = lab.run_expecting(1, &["show", "a.db", "--json"]);
    assert!(
        text(&output.stderr).contains("1 of 8 runs are invalid"),
        "{}",
        text(&output.stderr)
    );
    let stdout = text(&output.stdout);
    let cells = stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let cell = cells
        .into_iter()
        .find(|cell| cell["cell"] == lost)
        .expect("read the file");
    assert_eq!((&cell["runs"], &cell["invalid"]), (&2.into(), &1.into()));
    let valid_load_ms = number(&rows_after[&(lost.to_owned(), 2)]["load_ms"]);
    assert_eq!(cell["load_ms"].as_f64(), Some(valid_load_ms));
    lab.run_expecting(0, &["report", "a.db"]);
    let page = std::fs::read_to_string(lab.path("a.html")).expect("text");
    for expected in [
        "<h2>Runs in real time</h2>",
        "3 of 4 runs are valid",
        "no: it was late",
        "cannot be repeated from its seed",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    let compared = text(&lab.run(&["compare", "a.db", "a.db", "--json"]).stdout);
    assert!(compared.contains("\"runs\":[1,1]"), "{compared}");

    // A cell without valid runs is reported.
    let store = Connection::open(lab.path("a.db")).expect("a store");
    store
        .execute_batch(&format!(
            "UPDATE results SET invalid = 'it was late' WHERE cell = '{lost}';"
        ))
        .expect("a table");
    drop(store);
    lab.run_expecting(0, &["report", "a.db"]);
    let page = std::fs::read_to_string(lab.path("a.html")).expect("text");
    assert!(page.contains("Excluded from all figures, because no run is valid: "));
    assert!(!page.contains("None: every load"));
}

/// The second page is the first one again, of which nothing may be stored.
#[test]
fn a_visit_carries_its_connections_in_both_clocks() {
    let Some(_turn) = turn() else { return };
    use rusqlite::types::Value::Null;
    let lab = Lab::new(
        "name = 'visit'\npages = ['first.warc', 'again.warc']\nprotocols = ['spdy']\n[factors]\nnetwork = '3g'\n\
         visit = '200ms'\nclock = ['virtual', 'real']\n",
    );
    let mut page = builtin::portal();
    for exchange in &mut page.exchanges {
        let control = Some("no-store");
        exchange.response_head =
            head::with_field(&exchange.response_head, "Cache-Control", control);
    }
    for name in ["first.warc", "again.warc"] {
        let file = archive::encode(&page, false);
        std::fs::write(lab.path(name), file).expect("write the file");
    }
    let run = lab.run(&["run", "small.toml", "--store", "a.db"]);
    let rows = rows(&lab, "a.db");
    assert_eq!(rows.len(), 4, "{}", text(&run.stderr));
    for ((key, run), row) in &rows {
        let is_again = key.contains("page=again.warc");
        let has_connections = number(&row["connections"]) > 0.0;
        assert_eq!(has_connections, !is_again, "{key}");
        assert_eq!(row["failures"], Null, "{key}");
        if !key.contains("clock=real") {
            continue;
        }
        let virtual_row = &rows[&(key.replace("clock=real", "clock=virtual"), *run)];
        for name in ["load_ms", "bytes_down"] {
            let ratio = number(&row[name]) / number(&virtual_row[name]);
            // A run that is not valid may be late.
            let is_near = (0.9..1.1).contains(&ratio) || row["invalid"] != Null;
            assert!(is_near, "{key}: {name} {ratio}");
        }
    }
}
