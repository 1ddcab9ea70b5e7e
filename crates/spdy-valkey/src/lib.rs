#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! ```text
//!  find ───▶ parts.rs: does that part of the cluster answer? ──▶ store.rs ──▶ index of the URL ──▶ one object, checked
//!  keep ───▶ lanes.rs: queues, in order for each URL ─────────▶ store.rs
//!  purge ──▶ outbox.rs ──▶ keeper.rs: a task ─────────────────▶ store.rs: the log of purges
//!                          │ reads what others wrote there ──▶ purge_log.rs ──▶ the caller's ear
//!                          └ asks every part if it answers ──▶ parts.rs; if none does ──▶ renewal.rs: another client?
//! ```
//!
//! Only `store.rs` knows the protocol and the client; `names.rs` defines the names of keys, `entry.rs` the encoding of a purge.

pub mod config;
pub mod counters;
pub mod tier;

mod entry;
mod forgotten;
mod inner;
mod keeper;
mod lanes;
mod names;
mod outbox;
mod parts;
mod purge_log;
mod reach;
mod renewal;
mod store;
