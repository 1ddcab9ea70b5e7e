//! The configuration: its schema, and what `--check` finds.

mod aliases;
mod check;
#[cfg(unix)]
mod schema;
