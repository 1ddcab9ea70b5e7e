//! `clock = "real"`: experiments whose loads go through the kernel.
//!
//! A machine that gives no namespaces fails these tests, and says so; `SPDY_SKIP_NAMESPACES=1` leaves them out.

use std::collections::BTreeMap;
use std::time::Duration;

use rusqlite::Connection;
use serde_json::Value;

use crate::support::lab::experiment_folder::{Lab, text};
use crate::support::program::{output_within, run_expecting};

/// What four runs may take on a machine that is late all the time: each is tried up to eleven times.
const LONGEST: Duration = Duration::from_secs(600);

const BOTH_CLOCKS: &str = "name = 'clocks'\nruns = 2\npages = ['lulic-bing']\nprotocols = ['http', 'spdy']\n[factors]\nnetwork = 'lte'\nclock = ['virtual', 'real']\n";

/// The loads of a store by their keys and runs, each by its columns.
fn rows(
    lab: &Lab,
    store: &str,
) -> BTreeMap<(String, i64), BTreeMap<String, rusqlite::types::Value>> {
    let store = Connection::open(lab.path(store)).expect("a store");
    let mut query = store.prepare("SELECT * FROM results").expect("a table");
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let mut found = query.query([]).expect("rows");
    let mut rows = BTreeMap::new();
    while let Some(row) = found.next().expect("a row") {
        let values = names
            .iter()
            .map(|name| (name.clone(), row.get(&name[..]).expect("a value")));
        let values: BTreeMap<_, _> = values.collect();
        let key = (
            row.get("cell").expect("a key"),
            row.get("run").expect("a number"),
        );
        rows.insert(key, values);
    }
    rows
}

fn number(value: &rusqlite::types::Value) -> f64 {
    match value {
        rusqlite::types::Value::Integer(number) => *number as f64,
        rusqlite::types::Value::Real(number) => *number,
        other => panic!("{other:?}, want a number"),
    }
}

#[test]
fn real_time_runs_store_link_stats_and_average_valid_runs_only() {
    if std::env::var_os("SPDY_SKIP_NAMESPACES").is_some() {
        return;
    }
    use rusqlite::types::Value::{Null, Text};
    let lab = Lab::new(BOTH_CLOCKS);
    let run = ["run", "small.toml", "--store", "a.db"];
    let first = output_within(LONGEST, &mut lab.command(&run));
    let said = text(&first.stderr);
    let before = rows(&lab, "a.db");
    assert_eq!(before.len(), 8, "{said}");
    let mut counting = true;
    for ((key, run), row) in &before {
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
        // The same chance as in virtual time.
        let other = key.replace("clock=real", "clock=virtual");
        let other = &before[&(other, *run)];
        assert_eq!(row["seed"], other["seed"], "{key}");
        if row["invalid"] == Null {
            assert_eq!(row["failures"], Null, "{key}");
        }
        let [mean, p99, most] =
            ["late_mean_ms", "late_p99_ms", "late_max_ms"].map(|name| number(&row[name]));
        assert!(
            0.0 < mean && mean <= most && p99 <= most,
            "{key}: {mean} {p99} {most}"
        );
        let (load, on_wire) = (number(&row["load_ms"]), number(&row["time_on_wire_ms"]));
        assert!(on_wire > 0.9 * load, "{key}: {on_wire} of {load}");
        // 70 ms there and back, and the lateness of one way.
        let delay = number(&row["achieved_delay_down_ms"]);
        assert!(
            (delay - number(&row["rtt_ms"]) / 2.0 - mean).abs() < mean + 0.001,
            "{key}: {delay}"
        );
        counting &= row["invalid"] == Null;
        match &row["rejected"] {
            Null => assert_eq!(number(&row["attempts"]), 1.0, "{key}"),
            Text(why) => assert_eq!(
                number(&row["attempts"]),
                1.0 + why.lines().count() as f64,
                "{key}: {why}"
            ),
            other => panic!("{key}: {other:?}"),
        }
        if row["invalid"] == Null {
            let virtual_ms = number(&other["load_ms"]);
            assert!(
                load > 0.97 * virtual_ms,
                "{key}: {load} and {virtual_ms} ms"
            );
        }
    }
    let code = if counting { 0 } else { 1 };
    assert_eq!(first.status.code(), Some(code), "{said}");

    // A cell that is lost is loaded again, and nothing else changes.
    let lost = "page=lulic-bing,protocol=spdy,network=lte,clock=real";
    let store = Connection::open(lab.path("a.db")).expect("a store");
    store
        .execute_batch(&format!(
            "DELETE FROM results WHERE cell = '{lost}'; UPDATE plan SET done = 0;"
        ))
        .expect("a table");
    drop(store);
    let second = output_within(LONGEST, &mut lab.command(&run));
    assert!(
        text(&second.stderr).contains("3 of 4 cells are there already"),
        "{}",
        text(&second.stderr)
    );
    let after = rows(&lab, "a.db");
    assert_eq!(after.len(), 8);
    for (key, row) in &before {
        assert!(key.0 == lost || after[key] == *row, "{key:?}");
    }
    // Another store has other loads of the same cell; a merge does not replace those in the target.
    output_within(
        LONGEST,
        &mut lab.command(&["cell", "small.toml", lost, "--store", "b.db"]),
    );
    run_expecting(0, &mut lab.command(&["merge", "b.db", "--store", "a.db"]));
    assert_eq!(rows(&lab, "a.db"), after);

    // What does not count is in no median.
    let store = Connection::open(lab.path("a.db")).expect("a store");
    store
        .execute_batch(&format!(
            "UPDATE results SET invalid = NULL; \
             UPDATE results SET invalid = 'it was late', load_ms = 1e9 WHERE cell = '{lost}' AND run = 1;"
        ))
        .expect("a table");
    drop(store);
    let shown = run_expecting(1, &mut lab.command(&["show", "a.db", "--json"]));
    assert!(
        text(&shown.stderr).contains("1 of 8 runs do not count"),
        "{}",
        text(&shown.stderr)
    );
    let shown = text(&shown.stdout);
    let cells = shown
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let cell = cells
        .into_iter()
        .find(|cell| cell["cell"] == lost)
        .expect("it is there");
    assert_eq!((&cell["runs"], &cell["invalid"]), (&2.into(), &1.into()));
    let counted = number(&after[&(lost.to_owned(), 2)]["load_ms"]);
    assert_eq!(cell["load_ms"].as_f64(), Some(counted));
    run_expecting(0, &mut lab.command(&["report", "a.db"]));
    let page = String::from_utf8(lab.bytes("a.html")).expect("text");
    for told in [
        "<h2>Runs in real time</h2>",
        "3 of 4 runs count",
        "no: it was late",
        "not had again from its seed",
    ] {
        assert!(page.contains(told), "{told}");
    }
    let compared = text(
        &lab.command(&["compare", "a.db", "a.db", "--json"])
            .output()
            .expect("it ends")
            .stdout,
    );
    assert!(compared.contains("\"runs\":[1,1]"), "{compared}");

    // Nor is a cell of which nothing counts passed over in silence.
    let store = Connection::open(lab.path("a.db")).expect("a store");
    store
        .execute_batch(&format!(
            "UPDATE results SET invalid = 'it was late' WHERE cell = '{lost}';"
        ))
        .expect("a table");
    drop(store);
    run_expecting(0, &mut lab.command(&["report", "a.db"]));
    let page = String::from_utf8(lab.bytes("a.html")).expect("text");
    assert!(page.contains("In no figure, since no run of it counts: "));
    assert!(!page.contains("None: every load"));
}

#[test]
fn virtual_time_factors_are_refused_in_real_time() {
    let lab = Lab::new(BOTH_CLOCKS);
    for (factor, told) in [
        ("tcp = '2009'", "TCP is the kernel's, and not that of 2009"),
        ("preset = 'lulic'", "want tcp=today"),
        ("accelerator = 'warm'", "belong to virtual time"),
        ("backhaul = '20ms'", "belong to virtual time"),
    ] {
        std::fs::write(lab.path("small.toml"), format!("{BOTH_CLOCKS}{factor}\n"))
            .expect("a folder");
        let said = text(&run_expecting(1, &mut lab.command(&["run", "small.toml"])).stderr);
        assert!(
            said.contains("clock=real") && said.contains(told),
            "{factor}: {said}"
        );
    }
    std::fs::write(
        lab.path("small.toml"),
        BOTH_CLOCKS.replace("'real'", "'wall'"),
    )
    .expect("a folder");
    let said = text(&run_expecting(1, &mut lab.command(&["run", "small.toml"])).stderr);
    assert!(
        said.contains("line 7") && said.contains("want virtual or real"),
        "{said}"
    );
}
