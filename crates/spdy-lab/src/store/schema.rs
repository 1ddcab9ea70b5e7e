//! The tables, and how a file says that it has them.

use rusqlite::Connection;

use crate::store::column::COLUMNS;

/// What SQLite's `application_id` says of a store: `SPDY`.
pub(crate) const APPLICATION: i64 = 0x5350_4459;

/// What SQLite's `user_version` says of a store. Any change of a table is another version.
pub(crate) const VERSION: i64 = 1;

/// Makes the tables in an empty file.
pub(crate) fn create(connection: &Connection) -> rusqlite::Result<()> {
    let columns: Vec<_> = COLUMNS
        .iter()
        .map(|column| format!("{} {}", column.name, column.declared))
        .collect();
    connection.execute_batch(&format!(
        "PRAGMA application_id = {APPLICATION};
         PRAGMA user_version = {VERSION};
         CREATE TABLE plan (hash TEXT PRIMARY KEY, name TEXT, program TEXT, runs INT, cells INT, toml TEXT, done INT) WITHOUT ROWID;
         CREATE TABLE pages (id INTEGER PRIMARY KEY, name TEXT, fingerprint TEXT);
         CREATE TABLE results (
           {columns},
           UNIQUE (plan, cell, run)
         );",
        columns = columns.join(",\n           ")
    ))
}

/// Whether nothing was ever made in the file.
pub(crate) fn is_blank(connection: &Connection) -> rusqlite::Result<bool> {
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(tables == 0)
}

/// One of the numbers in the file's head.
pub(crate) fn head(connection: &Connection, pragma: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0))
}
