//! The generated pages of the book: the command line, the accelerator's configuration, and the JSON Schemas of `--json`.
//!
//! ```text
//! cli::Cli (clap)                        -> command_line::pages   -> docs/reference/cli/
//! spdy_proxy::config::Config (schemars)  -> configuration::pages  -> docs/reference/configuration/, with the JSON Schema
//! types of the results (schemars)       -> json_output::pages     -> docs/reference/json/
//! ```
//!
//! A test compares the pages in `docs/` with those made from the code. `UPDATE_DOCS=1` makes the same test write them.

mod command_line;
mod configuration;
mod json_output;
mod markdown;
mod pages;
