//! Records a page from a live browser, byte for byte.
//!
//! ```text
//!            ┌─ fresh profile, removed in the end
//!  browser.rs│ chromium --headless --log-net-log=… --remote-debugging-pipe
//!            │      │ 3, 4: devtools_pipe.rs         │
//!            └──────┼─────────────────────────────────┼──────
//!  load.rs     navigate, watch until it is quiet   NetLog, whole once the browser has ended
//!                   ▼                                 ▼
//!              Observations ──────► spdy_page::netlog::record ──► Replica
//!              who asked, when          bytes
//! ```
//!
//! The one crate that starts a browser. What its logs mean, `spdy-page` knows, which does no I/O.
//! `docs/reference/recorded-data.md` lists what is stored and what is not.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod error;
pub mod fingerprint;
pub mod options;
pub mod record;

mod browser;
mod devtools_pipe;
mod load;
