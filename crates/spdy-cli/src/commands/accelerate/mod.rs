//! `spdy accelerate`: a caching reverse proxy in front of a site. The accelerator itself is crate `spdy-accelerator`; this folder has its
//! command line and prints what it reports.
//!
//! ```text
//! command.rs      the options; runs the accelerator
//! ready.rs        prints the listening addresses
//! check.rs        prints the result of --check
//! try_it.rs       prints how to request the site
//! local_authority.rs  where the local authority's certificate is kept by default
//! access_log.rs   prints a line for each response
//! page_notes.rs   prints a line for each page, with --origin
//! schema.rs       `accelerate schema`: the JSON Schema of the configuration
//! audit/          `accelerate audit`: what an accelerator would do for a page
//! ```

pub(crate) mod access_log;
#[cfg(unix)]
pub(crate) mod audit;
pub(crate) mod check;
mod command;
mod local_authority;
mod page_notes;
pub(crate) mod ready;
mod schema;
mod try_it;

pub(crate) use command::{Args, EXAMPLES, run};
