//! Stores of `spdy lab`: they are never mixed with others or overwritten.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use spdy_sim::model::MODEL_VERSION;

use crate::support::lab::experiment_folder::{Lab, SMALL, text};
use crate::support::program::{output, run_expecting};

/// Changes the store to version 1 of its tables, which lacks the later options.
fn downgrade(store: &Path) {
    let connection = Connection::open(store).expect("a store");
    let names = "SELECT name FROM pragma_table_info('results') ORDER BY cid";
    let names: Vec<String> = {
        let mut query = connection.prepare(names).expect("a table");
        let names = query.query_map([], |row| row.get(0)).expect("rows");
        names.collect::<Result<_, _>>().expect("text")
    };
    let position = |column: &str| names.iter().position(|name| name == column).expect(column);
    let later = &names[position("fold") + 1..position("dom_content_loaded_ms")];
    assert!(!later.is_empty());
    for name in later {
        alter(store, &format!("DROP COLUMN {name}"));
    }
    let version = connection.pragma_update(None, "user_version", 1);
    version.expect("a number");
}

/// Executes `ALTER TABLE results` with `clause`.
fn alter(store: &Path, clause: &str) {
    let connection = Connection::open(store).expect("a store");
    let altered = connection.execute_batch(&format!("ALTER TABLE results {clause}"));
    altered.unwrap_or_else(|error| panic!("{clause}: {error}"));
}

#[test]
fn a_store_of_an_earlier_version_is_read_and_not_added_to() {
    // Loads of earlier versions had no think times.
    let lab = Lab::new(&format!("{SMALL}think = 0\n"));
    lab.run("a.db", &[]);
    let original = lab.csv("a.db");
    downgrade(&lab.path("a.db"));
    assert_eq!(lab.csv("a.db"), original);
    let bytes_before = lab.bytes("a.db");
    let run = ["run", "small.toml", "--store", "a.db"];
    let stderr = text(&run_expecting(1, &mut lab.command(&run)).stderr);
    assert!(stderr.contains("version 1, expected 2"), "{stderr}");
    assert!(lab.bytes("a.db") == bytes_before, "the store was changed");
}

/// Version 2 got further columns without a new version number: a store of version 2 may lack some.
#[test]
fn a_store_that_lacks_some_of_the_later_columns_is_read_and_not_added_to() {
    let lab = Lab::new(&SMALL.replace("runs = 2", "runs = 1"));
    lab.run("a.db", &[]);
    let original = lab.csv("a.db");
    alter(&lab.path("a.db"), "DROP COLUMN cache");
    alter(&lab.path("a.db"), "DROP COLUMN frame");
    assert_eq!(lab.csv("a.db"), original);
    let bytes_before = lab.bytes("a.db");
    let run = ["run", "small.toml", "--store", "a.db"];
    let stderr = text(&run_expecting(1, &mut lab.command(&run)).stderr);
    assert!(
        stderr.contains("without the columns cache, frame;"),
        "{stderr}"
    );
    assert!(lab.bytes("a.db") == bytes_before, "the store was changed");
    run_expecting(
        0,
        &mut lab.command(&["merge", "a.db", "--store", "complete.db", "--json"]),
    );
    assert_eq!(lab.csv("complete.db"), original);
}

/// Regression: a store had loads of builds before and after a change of the model, without a mark.
#[test]
fn loads_of_different_models_are_never_mixed() {
    let lab = Lab::new(&SMALL.replace("runs = 2", "runs = 1"));
    for number in 1..=2 {
        let (part, store) = (format!("{number}/2"), format!("part-{number}.db"));
        let cells = ["cell", "small.toml", "--part", &part, "--store", &store];
        run_expecting(0, &mut lab.command(&cells));
    }
    let stderr_of =
        |code, arguments: &[&str]| text(&run_expecting(code, &mut lab.command(arguments)).stderr);
    assert_eq!(stderr_of(0, &["show", "part-1.db"]), "");
    alter(&lab.path("part-1.db"), "DROP COLUMN model");
    stderr_of(0, &["merge", "part-1.db", "--store", "all.db"]);
    let stderr = stderr_of(1, &["merge", "part-2.db", "--store", "all.db"]);
    let old = "0 (any unnumbered earlier model)";
    let expected = format!("all.db has results of the model {old}, expected {MODEL_VERSION}");
    assert!(stderr.contains(&expected), "{stderr}");
    let stderr = stderr_of(1, &["run", "small.toml", "--store", "all.db"]);
    assert!(stderr.contains(&expected), "{stderr}");
    assert_eq!(lab.cells_in("all.db"), 6, "expected only the first part");
    let stderr = stderr_of(0, &["show", "all.db"]);
    let expected = format!("the model of its loads is {old}, but this program has {MODEL_VERSION}");
    assert!(stderr.contains(&expected), "{stderr}");

    let connection = Connection::open(lab.path("part-2.db")).expect("a store");
    connection
        .execute(
            &format!("UPDATE results SET model = {}", MODEL_VERSION + 1),
            [],
        )
        .expect("a column");
    drop(connection);
    stderr_of(0, &["run", "small.toml", "--store", "complete.db"]);
    let compared = stderr_of(0, &["compare", "complete.db", "part-2.db"]);
    let expected = format!(
        "the model is {MODEL_VERSION} before and {} after",
        MODEL_VERSION + 1
    );
    assert!(compared.contains(&expected), "{compared}");
}

#[test]
fn a_store_of_columns_that_this_build_does_not_have_is_not_read() {
    let lab = Lab::new(&SMALL.replace("runs = 2", "runs = 1").replace("[2, 6]", "6"));
    lab.run("a.db", &[]);
    let assert_refused = |expected: &str| {
        let stderr =
            text(&run_expecting(1, &mut lab.command(&["export", "a.db", "--csv", "-"])).stderr);
        assert!(stderr.contains(expected), "{stderr}");
    };
    alter(&lab.path("a.db"), "ADD COLUMN colour TEXT");
    assert_refused(
        "a.db, table results: unknown column colour: use the build that created the store",
    );
    alter(&lab.path("a.db"), "DROP COLUMN load_ms");
    assert_refused("a.db, table results: column load_ms is missing");
}

#[test]
fn a_foreign_file_is_never_modified() {
    let lab = Lab::new(&SMALL.replace("runs = 2", "runs = 1").replace("[2, 6]", "6"));
    lab.run("a.db", &[]);
    let bytes_before = lab.bytes("a.db");
    let assert_refused = |store: &str, words: &[&str]| {
        let run = ["run", "small.toml", "--store", store];
        let stderr = text(&run_expecting(1, &mut lab.command(&run)).stderr);
        for word in words {
            assert!(stderr.contains(word), "no {word} in {stderr}");
        }
    };
    // Another plan.
    fs::write(lab.path("small.toml"), SMALL).expect("write the file");
    assert_refused("a.db", &["a.db", "the plan small (", "expected small ("]);
    assert!(
        lab.bytes("a.db") == bytes_before,
        "the store was written to"
    );
    // Text, another program's database, another version of ours.
    fs::write(lab.path("text.db"), "these are no results\n".repeat(100)).expect("write the file");
    assert_refused("text.db", &["not an SQLite file"]);
    let create_database = |name: &str, sql: &str| {
        let connection = Connection::open(lab.path(name)).expect("create the file");
        connection.execute_batch(sql).expect("valid SQL");
    };
    create_database("other.db", "CREATE TABLE bookmarks (url TEXT)");
    assert_refused("other.db", &["not an experiment store"]);
    fs::copy(lab.path("a.db"), lab.path("newer.db")).expect("copy the file");
    create_database("newer.db", "PRAGMA user_version = 99");
    assert_refused("newer.db", &["version 99, expected 2"]);
    let missing = run_expecting(2, &mut lab.command(&["show", "missing.db"]));
    assert!(text(&missing.stderr).contains("store missing.db does not exist"));
    assert!(!lab.path("missing.db").exists(), "`show` created a file");
}

#[test]
fn a_changed_page_is_another_experiment() {
    let lab = Lab::new(
        &SMALL
            .replace("\"portal\"", "\"page.warc\"")
            .replace("runs = 2", "runs = 1")
            .replace("[2, 6]", "6"),
    );
    let replicas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spdy-page/replicas");
    let replace_page =
        |name: &str| fs::copy(replicas.join(name), lab.path("page.warc")).expect("copy the file");
    replace_page("portal.warc.gz");
    lab.run("a.db", &[]);
    replace_page("flags.warc.gz");
    let stderr = text(
        &run_expecting(
            1,
            &mut lab.command(&["run", "small.toml", "--store", "a.db"]),
        )
        .stderr,
    );
    assert!(stderr.contains("the page page.warc ("), "{stderr}");
}

#[test]
fn lulics_table_is_imported_shown_and_exported() {
    let lab = Lab::new(SMALL);
    let connection = Connection::open(lab.path("results.db")).expect("create the file");
    connection.execute_batch(
        "CREATE TABLE results (id INTEGER PRIMARY KEY, bw text, delay text, method text, site text,
                               onContentLoad INT, onLoad INT, tow FLOAT, run INT);
         INSERT INTO results VALUES
           (1, '100', '10', 'http', 'www.flags.test', 300, 30000, 31.5, 0),
           (2, '100', '10', 'spdy', 'www.flags.test', 400, 10000, 11.5, 0),
           (3, '100', '10', 'http', 'www.flags.test', 310, 32000, 33.5, 1),
           (4, '256', '10', 'http', 'www.flags.test', 200, 12000, 13.5, 0);",
    )
    .expect("valid SQL");
    let import = ["import", "results.db", "--store", "lulic.db"];
    run_expecting(0, &mut lab.command(&import));
    let stdout = text(&run_expecting(0, &mut lab.command(&["show", "lulic.db"])).stdout);
    let lines: Vec<_> = stdout.lines().collect();
    assert!(
        lines[0].starts_with("results: 3 of 3 cells") && lines[0].contains("imported"),
        "{stdout}"
    );
    assert_eq!(lines[1], "all cells page=www.flags.test delay=10");
    assert_eq!(
        lines[2..],
        [
            "bw    http   spdy  ratio",
            "100  31000  10000   0.32",
            "256  12000      –      –"
        ]
    );
    let csv = lab.csv("lulic.db");
    let starts: Vec<_> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(",\"page=").next().expect("a part"))
        .collect();
    assert_eq!(
        starts,
        [
            "1,100,10,http,www.flags.test,300,30000,31.5,1",
            "2,100,10,http,www.flags.test,310,32000,33.5,2",
            "3,100,10,spdy,www.flags.test,400,10000,11.5,1",
            "4,256,10,http,www.flags.test,200,12000,13.5,1",
        ]
    );
    // The store is not overwritten, and no other plan may add to its rows.
    let output = run_expecting(1, &mut lab.command(&import));
    assert!(
        text(&output.stderr).contains("already exists"),
        "{}",
        text(&output.stderr)
    );
    let run = ["run", "small.toml", "--store", "lulic.db"];
    let stderr = text(&run_expecting(1, &mut lab.command(&run)).stderr);
    assert!(stderr.contains("the plan results ("), "{stderr}");

    // A store has the columns of Lulic's database too, but further columns distinguish its cells.
    let output = run_expecting(
        1,
        &mut lab.command(&["import", "lulic.db", "--store", "twice.db"]),
    );
    assert!(
        text(&output.stderr).contains("lulic.db is an experiment store of spdy"),
        "{}",
        text(&output.stderr)
    );
    assert!(!lab.path("twice.db").exists(), "an empty store was created");

    connection
        .execute_batch("ALTER TABLE results DROP COLUMN tow")
        .expect("valid SQL");
    let output = run_expecting(
        1,
        &mut lab.command(&["import", "results.db", "--store", "wrong.db"]),
    );
    assert!(
        text(&output.stderr).contains("expected the columns id, bw, delay"),
        "{}",
        text(&output.stderr)
    );
    assert!(!lab.path("wrong.db").exists(), "an empty store was created");
}

#[test]
fn input_over_the_limits_is_refused() {
    let experiment_of = |bytes: usize| SMALL.to_owned() + &"#".repeat(bytes - SMALL.len());
    let lab = Lab::new(&experiment_of(1 << 20));
    run_expecting(0, &mut lab.command(&["cells", "small.toml"]));
    let lab = Lab::new(&experiment_of((1 << 20) + 1));
    let listing = run_expecting(1, &mut lab.command(&["cells", "small.toml"]));
    assert!(
        text(&listing.stderr).contains("longer than 1048576 bytes"),
        "{}",
        text(&listing.stderr)
    );

    let connection = Connection::open(lab.path("results.db")).expect("create the file");
    connection.execute_batch(
        "CREATE TABLE results (id INTEGER PRIMARY KEY, bw, delay, method, site, onContentLoad, onLoad, tow, run);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 100000)
         INSERT INTO results SELECT i, '100', '10', 'http', 'a', 1, 2, 0.5, i FROM n;",
    )
    .expect("valid SQL");
    let import = |store: &str| {
        let mut command = lab.command(&["import", "results.db", "--store", store]);
        output(&mut command)
    };
    let stderr = text(&import("a.db").stderr);
    assert!(
        stderr.contains("more than 100000 rows") && !lab.path("a.db").exists(),
        "{stderr}"
    );
    connection
        .execute_batch("DELETE FROM results WHERE id = 7")
        .expect("valid SQL");
    assert_eq!(text(&import("a.db").stdout), "a.db: 100000 loads\n");
}
