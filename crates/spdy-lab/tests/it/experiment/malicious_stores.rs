//! Malicious stores: schemas that are programs, and larger contents than their plan allows.

use std::path::Path;

use rusqlite::Connection;
use spdy_lab::experiment::plan::MAX_LOADS;
use spdy_lab::store::error::StoreError;
use spdy_lab::store::import::import;
use spdy_lab::store::location::Location;
use spdy_lab::store::manifest::Manifest;
use spdy_lab::store::open::Store;

/// Three cells of two loads, with two pages.
fn contents() -> Manifest {
    Manifest {
        name: "made".to_owned(),
        hash: "h".to_owned(),
        program: "p".to_owned(),
        model: None,
        runs: 2,
        cells: 3,
        plan: String::new(),
        pages: ["a", "b"]
            .map(|page| (page.to_owned(), "f".to_owned()))
            .into(),
    }
}

const LOADS: &str = "INSERT INTO results (id, plan, cell, run) VALUES
                       (1, 'h', 'x', 1), (2, 'h', 'x', 2), (3, 'h', 'y', 1), (4, 'h', 'y', 2), (5, 'h', 'z', 1), (6, 'h', 'z', 2)";

/// Creates a complete store at `path`, and then executes `sql` in it.
fn made(path: &Path, sql: &str) -> Location {
    let location = Location::File(path.to_owned());
    Store::open_or_create(&location, &contents()).expect("the folder can be written to");
    let connection = Connection::open(path).expect("a store");
    connection.execute_batch(LOADS).expect("its columns");
    connection
        .execute_batch(sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"));
    location
}

/// A view with the columns of `table` that never ends.
fn endless(table: &str) -> String {
    format!(
        "ALTER TABLE {table} RENAME TO original;
         CREATE VIEW {table} AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n)
                                SELECT original.* FROM n, original"
    )
}

#[test]
fn a_store_with_views_or_triggers_as_tables_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let disguised = format!(
        "{}; PRAGMA writable_schema = ON;
         UPDATE sqlite_schema SET type = 'table' WHERE name = 'results'",
        endless("results")
    );
    let cases = [
        (endless("plan"), "its plan is a view"),
        (endless("pages"), "its pages is a view"),
        (endless("results"), "its results is a view"),
        (disguised, "malformed database schema"), // SQLite itself detects that
        (
            "DROP TABLE pages; CREATE VIRTUAL TABLE pages USING fts5(id, name, fingerprint)"
                .to_owned(),
            "its pages is a virtual",
        ),
        (
            "ALTER TABLE results DROP COLUMN failures;
             ALTER TABLE results ADD COLUMN failures AS (hex(zeroblob(100000000)))"
                .to_owned(),
            "1 generated columns",
        ),
        (
            "CREATE TRIGGER more AFTER INSERT ON results BEGIN UPDATE results SET load_ms = 1; END"
                .to_owned(),
            "it has 1 triggers",
        ),
    ];
    for (number, (sql, expected)) in cases.iter().enumerate() {
        let location = made(&folder.path().join(format!("{number}.db")), sql);
        for opened in [
            Store::open(&location),
            Store::open_or_create(&location, &contents()),
        ] {
            let message = opened.err().map(|error| error.to_string());
            let message = message.unwrap_or_else(|| panic!("it is open: {sql}"));
            assert!(message.contains(expected), "{sql}: {message}");
        }
    }
}

#[test]
fn a_table_replaced_after_opening_is_not_executed() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("a.db");
    let mut store = Store::open(&made(&path, "")).expect("a store");
    let rows = store.rows().expect("rows");
    let connection = Connection::open(&path).expect("a store");
    let trigger = "DELETE FROM results WHERE cell = 'z';
                   CREATE TRIGGER less AFTER INSERT ON results BEGIN DELETE FROM results; END";
    connection.execute_batch(trigger).expect("it is SQL");
    store.add(&rows[4..]).expect("a cell that is not there");
    assert_eq!(store.rows().expect("rows"), rows);
    let view = "DROP TRIGGER less; ALTER TABLE results RENAME TO original;
                CREATE VIEW results AS SELECT * FROM original";
    connection.execute_batch(view).expect("it is SQL");
    let message = store.rows().expect_err("views are not read").to_string();
    assert!(message.contains("prohibited"), "{message}");
}

#[test]
fn extra_schema_objects_are_ignored() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let sql = "CREATE TABLE notes (text TEXT); CREATE INDEX by_method ON results (method);
               CREATE VIEW medians AS SELECT avg(load_ms) FROM results; ANALYZE";
    let location = made(&folder.path().join("a.db"), sql);
    let mut store = Store::open_or_create(&location, &contents()).expect("a store");
    assert_eq!(store.contents().expect("a plan"), contents());
    assert_eq!(store.keys().expect("keys"), ["x", "y", "z"]);
    assert_eq!(store.rows().expect("rows").len(), 6);
    assert!(store.finish().expect("it can be laid out again"));
}

/// The error of a store that has too much of something.
fn foreign<T>(read: Result<T, StoreError>) -> String {
    match read {
        Err(StoreError::Foreign { what, .. }) => what,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was read"),
    }
}

#[test]
fn a_store_with_extra_rows_is_refused() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let open = |name: &str, sql: &str| {
        let location = made(&folder.path().join(name), sql);
        Store::open(&location).expect("a store")
    };
    let mut store = open(
        "loads.db",
        "INSERT INTO results (id, plan, cell, run) VALUES (7, 'h', 'w', 1)",
    );
    let mut given = 0;
    let message = foreign(store.each_row(|_| given += 1));
    assert!(message.contains("more than 6 loads"), "{message}");
    assert_eq!(given, 6);

    // Partial reads: all rows of one cell, and first runs alone.
    let mut store = open("cell.db", "UPDATE plan SET cells = 1, runs = 1");
    assert!(foreign(store.rows_of("x")).contains("more than 1 loads"));
    assert!(foreign(store.keys()).contains("more than 1 loads"));

    let more = "WITH RECURSIVE n(i) AS (VALUES (3) UNION ALL SELECT i + 1 FROM n WHERE i < 4)
                INSERT INTO pages SELECT i, i, 'f' FROM n";
    let message = foreign(open("pages.db", more).contents());
    assert!(message.contains("more than 3 pages"), "{message}");

    let more = "INSERT INTO plan SELECT 'other', name, program, runs, cells, toml, done FROM plan";
    let message = foreign(open("plans.db", more).contents());
    assert!(message.contains("more than one plan"), "{message}");
}

#[test]
fn a_store_never_exceeds_the_maximum_number_of_loads() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let sql = format!(
        "UPDATE plan SET cells = 9223372036854775807, runs = 9223372036854775807;
         WITH RECURSIVE n(i) AS (VALUES (7) UNION ALL SELECT i + 1 FROM n WHERE i < {MAX_LOADS} + 3)
         INSERT INTO results (id, run) SELECT i, 1 FROM n"
    );
    let location = made(&folder.path().join("a.db"), &sql);
    let mut store = Store::open(&location).expect("a store");
    // With the three first runs of the first six, exactly the maximum.
    let keys = store.keys().expect("keys").len() as u64;
    assert_eq!(keys, MAX_LOADS);
    let connection = Connection::open(folder.path().join("a.db")).expect("a store");
    let more = "UPDATE results SET run = 1, plan = NULL WHERE id = 2";
    connection.execute_batch(more).expect("its columns");
    let message = foreign(store.keys());
    assert!(message.contains("more than 1000000 loads"), "{message}");
}

#[test]
fn a_table_of_lulics_that_is_a_view_is_not_imported() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (from, into) = (
        folder.path().join("lulic.db"),
        folder.path().join("into.db"),
    );
    let database = Connection::open(&from).expect("a file can be made");
    database.execute_batch(
        "CREATE VIEW results AS WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n)
         SELECT i AS id, '1' AS bw, '1' AS delay, 'http' AS method, 'a' AS site,
                1 AS onContentLoad, 1 AS onLoad, 1 AS tow, i AS run FROM n",
    )
    .expect("it is SQL");
    let message = import(&from, &Location::File(into.clone()));
    let message = message.expect_err("it is refused").to_string();
    assert!(message.contains("its results is a view"), "{message}");
    assert!(!into.exists(), "a store of nothing");
}
