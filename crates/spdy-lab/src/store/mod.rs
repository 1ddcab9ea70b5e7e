//! The store: a SQLite file, or a PostgreSQL database, that keeps every load of an experiment.
//!
//! ```text
//! plan      one row      whose results these are: hash, name, program, the plan's text
//! pages     one a page   its fingerprint
//! results   one a load   Lulic's columns by their names in the paper, ours beside them (column.rs)
//! ```
//!
//! A cell is written in one transaction as soon as it is done, and a row's id is its place in the plan: whatever was
//! killed and resumed, the same plan ends as the same rows. `docs/reference/result-stores.md` lists every column.
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

mod query;
mod schema;
mod sqlite;
