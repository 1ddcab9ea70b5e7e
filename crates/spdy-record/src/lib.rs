//! Records a page from a live browser, byte for byte.
//!
//! ```text
//!            ┌─ fresh profile, removed at the end
//!  browser.rs│ chromium --headless --log-net-log=… --remote-debugging-pipe
//!            │      │ 3, 4: devtools_pipe.rs         │
//!            └──────┼─────────────────────────────────┼──────
//!  load.rs     navigate, wait until it is quiet    NetLog, complete once the browser has exited
//!                   ▼                                 ▼
//!              Observations ──────► spdy_page::netlog::record ──► Replica
//!              initiators, times        bytes
//! ```
//!
//! `visit.rs` loads several pages in one tab, and reports only their times.
//!
//! This is the only crate that starts a browser. `spdy-page`, which does no I/O, parses its logs. `docs/reference/recorded-data.md`
//! lists stored and omitted data.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod chromium49;
pub mod error;
pub mod fingerprint;
pub mod options;
pub mod record;
pub mod visit;

mod browser;
mod devtools_pipe;
mod load;
