//! A recorded page: its exchanges, their dependencies, and its file.
//!
//! ```text
//!  a file, a folder or a shipped name            messages of a live browser
//!        │ open.rs (detects the format)                  │
//!        ▼                                               ▼
//!  import/   warc.rs  har/  netlog/ ◄──────────── devtools.rs    bytes -> Replica, and notes on losses
//!            mahimahi.rs (a folder)  speedreport.rs
//!        │
//!        ▼
//!  replica/  model.rs          the recorded exchanges of a page
//!            archive.rs        the file that stores them (warc_record.rs)
//!            freshness.rs      shifted dates, for caches
//!        │
//!        ├──────► graph/       dependencies of discovery between resources, for a page load
//!        │         page_graph.rs ◄ from_replica.rs ◄ builder.rs (html.rs, css.rs), inference.rs
//!        ├──────► check.rs     properties that make a replica fail when it is served or loaded
//!        ├──────► summary.rs   its numbers, for `replica show`
//!        └──────► import/har/export.rs   the same as a HAR, for other tools
//! ```
//!
//! Nothing here touches a socket or a clock. The one function that reads a file is
//! [`open::open`]. `docs/reference/replica-format.md` defines the format.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod builtin;
pub mod check;
pub mod coding;
pub mod error;
pub mod graph;
pub mod head;
pub mod import;
pub mod limits;
pub mod open;
pub mod replica;
pub mod summary;

pub use error::OpenError;
pub use graph::{
    Node, PageGraph, Trigger, body_start, es_modules, first_text, font_display, preconnects,
    references,
};
pub use import::har::export as har_export;
pub use import::result::{ImportOptions, OpenedReplica};
pub use import::{devtools, netlog, notes, page_trace, screencast, warc};
pub use replica::{
    Exchange, Initiator, Kind, Replica, archive, freshness, observation, partial_content,
};
