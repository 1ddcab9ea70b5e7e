//! The generated pages of the book: the command line and the accelerator's configuration.
//!
//! ```text
//! cli::Cli (clap)                        -> command_line::pages   -> docs/reference/cli/
//! spdy_proxy::config::Config (schemars)  -> configuration::pages  -> docs/reference/configuration/
//! ```
//!
//! A test compares the pages in `docs/` with those made from the code. `UPDATE_DOCS=1` makes the same test write them.

mod command_line;
mod configuration;
mod markdown;
mod pages;
