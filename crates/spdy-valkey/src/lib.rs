#![doc = include_str!("../README.md")]
//!
//! # Structure
//!
//! ```text
//!  lookup ─▶ part_health.rs: does that part of the cluster answer? ─▶ cluster_store.rs ─▶ index of the URL ─▶ one object, checked
//!  store ──▶ write_queues.rs: in order for each URL ──▶ write_task.rs ──▶ cluster_store.rs
//!  purge ──▶ purge_outbox.rs ──▶ sync_task.rs ──▶ cluster_store.rs: the log of purges
//!                          │ reads the entries of other caches ──▶ purge_log.rs ──▶ the caller's listener
//!                          └ probes every part ──▶ part_health.rs; if none answers ──▶ client_renewal.rs: another client?
//! ```
//!
//! Only `cluster_store.rs` knows the protocol and the client; `key_names.rs` defines the names of keys, `purge_entry.rs` the encoding of a purge.

mod client_renewal;
mod cluster_store;
pub mod config;
pub mod counters;
mod key_names;
mod node_check;
mod part_health;
mod pending_deletes;
mod purge_entry;
mod purge_outbox;
mod sync_task;
pub mod tier;
mod tier_state;
mod write_queues;
mod write_task;

mod purge_log;
