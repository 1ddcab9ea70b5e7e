//! The tables of a store.

use crate::store::column::COLUMNS;

/// The `application_id` of a store's SQLite file: `SPDY`. In PostgreSQL it is the lock for the creation of tables.
pub(crate) const APPLICATION: i64 = 0x5350_4459;

/// The version of a new store. Any change of a table is another version, except for a column of `results` with a default for older
/// stores ([`Column::default_sql`]): a store that lacks such columns is read, and never written, in any version.
///
/// [`Column::default_sql`]: crate::store::column::Column
pub(crate) const VERSION: i64 = 2;

/// The oldest readable version.
pub(crate) const OLDEST: i64 = 1;

/// Their names.
pub(crate) const TABLES: [&str; 3] = ["plan", "pages", "results"];

/// The statements that create them; `as_declared` maps the types `INTEGER PRIMARY KEY`, `INT`, `REAL`, `FLOAT`, `TEXT` and `TEXT
/// PRIMARY KEY` to those of the database.
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
