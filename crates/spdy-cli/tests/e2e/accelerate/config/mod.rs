//! The configuration: its schema, and the errors that `--check` finds.

mod aliases;
mod check;
#[cfg(unix)]
mod includes;
#[cfg(unix)]
mod schema;
