//! The store: a SQLite file or a PostgreSQL database with every load of an experiment.
//!
//! ```text
//! plan      one row            the description of the results: hash, name, program, the plan's text
//! pages     one for each page  its fingerprint
//! results   one for each load  Lulic's columns by their names in the paper, and ours (column.rs)
//! ```
//!
//! A cell is written in one transaction as soon as it is done, and a row's id is its position in the plan: even after being killed
//! and resumed, the same plan results in the same rows. `docs/reference/result-stores.md` lists every column.
//!
//! ```text
//! open.rs     created or opened ─┐
//! insert.rs   written ───────────┼─ in the SQL of both ─► database.rs ─┬─► sqlite.rs              one machine, one file
//! query.rs    read in order ─────┘                                     └─► postgres/database.rs   many machines, one server
//! ```

pub mod column;
pub mod compare;
pub mod csv;
pub mod database;
pub mod error;
pub mod import;
pub mod insert;
pub mod location;
pub mod manifest;
pub mod merge;
pub mod open;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod postgres;
pub mod row;
pub mod summary;
pub mod value;

#[cfg(feature = "schema")]
mod json_schema;
mod query;
mod schema;
mod sqlite;
