//! A recorded page: what was exchanged, what needs what, and the file that keeps it.
//!
//! ```text
//!  .har .warc .json, each also .gz; or a shipped name       messages of a live browser
//!        │ open.rs (sniffs)                                        ▼
//!        ▼                                                     devtools.rs
//!  archive.rs  warc.rs  har.rs  speedreport.rs  netlog/ ◄──────────┘     bytes -> Replica, and notes on what was lost
//!  mahimahi.rs (a folder)
//!        │
//!        ▼
//!  replica.rs ──► graph.rs (html.rs, css.rs, infer.rs)    what needs what, for a page load
//!        │
//!        ├──────► check.rs     what a player would trip over
//!        ├──────► summary.rs   what a person wants to know first
//!        ├──────► freshness.rs as if it had been recorded another day, for caches
//!        └──────► har_export.rs   a view of it for other tools
//! ```
//!
//! Nothing here touches a socket or a clock; the one function that reads a file is
//! [`open::open`]. `docs/reference/replica-format.md` defines the format.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod archive;
pub mod body_start;
pub mod builtin;
pub mod check;
pub mod coding;
pub mod devtools;
pub mod freshness;
pub mod graph;
pub mod har_export;
pub mod head;
pub mod kind;
pub mod limits;
pub mod modules;
pub mod named;
pub mod netlog;
pub mod notes;
pub mod observed;
pub mod open;
pub mod parts;
pub mod replica;
pub mod summary;
pub mod warc;

mod assemble;
mod css;
mod filler;
mod har;
mod har_cookies;
mod har_model;
mod html;
mod infer;
mod mahimahi;
mod record;
mod speedreport;
