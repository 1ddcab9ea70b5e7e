//! The tables.

use crate::store::column::COLUMNS;

/// The `application_id` of a store's SQLite file: `SPDY`. In PostgreSQL it is the lock under which tables are made.
pub(crate) const APPLICATION: i64 = 0x5350_4459;

/// The version that a store has. Any change of a table is another version, but for a column of `results` that has a default
/// where it is absent ([`Column::where_absent`]): a store that lacks such columns is read, and never written to, whatever its version.
///
/// [`Column::where_absent`]: crate::store::column::Column
pub(crate) const VERSION: i64 = 2;

/// The oldest that is read.
pub(crate) const OLDEST: i64 = 1;

/// Their names.
pub(crate) const TABLES: [&str; 3] = ["plan", "pages", "results"];

/// The statements that make them; `as_declared` gives the name of a type, of which there are `INTEGER PRIMARY KEY`, `INT`,
/// `REAL`, `FLOAT`, `TEXT` and `TEXT PRIMARY KEY`.
pub(crate) fn tables(as_declared: fn(&'static str) -> &'static str) -> String {
    let table = |name: &str, columns: &[(&str, &'static str)], rules: &str| {
        let columns = columns.iter();
        let columns: Vec<_> = columns
            .map(|(name, declared)| format!("{name} {}", as_declared(declared)))
            .collect();
        format!(
            "CREATE TABLE {name} (\n  {}{rules}\n);\n",
            columns.join(",\n  ")
        )
    };
    let plan = [
        ("hash", "TEXT PRIMARY KEY"),
        ("name", "TEXT"),
        ("program", "TEXT"),
        ("runs", "INT"),
        ("cells", "INT"),
        ("toml", "TEXT"),
        ("done", "INT"),
    ];
    let pages = [
        ("id", "INTEGER PRIMARY KEY"),
        ("name", "TEXT"),
        ("fingerprint", "TEXT"),
    ];
    let results = COLUMNS.map(|column| (column.name, column.declared));
    let [plan_name, pages_name, results_name] = TABLES;
    [
        table(plan_name, &plan, ""),
        table(pages_name, &pages, ""),
        table(results_name, &results, ",\n  UNIQUE (plan, cell, run)"),
    ]
    .concat()
}
