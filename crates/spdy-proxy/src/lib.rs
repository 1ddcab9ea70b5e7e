#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! ```text
//! spdy-net's doors ──▶ visit.rs (one connection) ──▶ road.rs, of all in proxy.rs: what becomes of a request
//!                                                      │ forwarded.rs  whose it is, where a trusted proxy stands between (claims.rs: fields that only it may set)
//!                                                      │ wanted.rs     a request, as cache and origin see it
//!                                                      │ tiers.rs      what is kept, and where: memory.rs, disk.rs, shared
//!                                                      │ misses.rs     what is kept does not do: fetched, or shared (flight.rs, landing.rs)
//!                                                      │ upstream.rs   origins, and who rests (upstream_moved.rs: those of others, and their limits; placed.rs: where own ones are;
//!                                                      │               uploads.rs, slow_readers.rs: who may hold their connections; framing.rs: where answers end; upstream_error.rs: why there is none)
//!                                                      │ fetch.rs      an origin is asked; redirects of others are followed
//!                                                      │ fetched.rs    an answer: judged, rewritten, recorded (freshened.rs: a 304)
//!                                                      │   pump.rs, transform.rs, coding.rs, recording.rs, in_flight.rs, sheets.rs, page_policies.rs
//!                                                      │ sockets.rs    WebSockets: websocket.rs, tunnel.rs
//!                                                      │   dead.rs     what was of no avail a moment ago
//!                                                      ▼
//!                                                    respond.rs        what the client gets of it
//! ```
//!
//! Time, tasks and bytes come from the [`Runtime`](spdy::runtime::Runtime) and the
//! [`Network`](spdy_net::network::Network)s it was made with: in virtual time the same code runs.

pub mod admin;
pub mod answer_log;
pub mod coding;
pub mod companions;
pub mod config;
pub mod config_acme;
pub mod config_cache;
pub mod config_env;
pub mod config_lab;
pub mod config_learn;
pub mod config_limits;
pub mod config_listen;
pub mod config_shared;
pub mod config_site;
pub mod config_telemetry;
pub mod config_upstream;
pub mod config_websocket;
pub mod counters;
pub mod disk;
pub mod disk_counters;
pub mod encoded_body;
pub mod encodings;
pub mod flight;
pub mod in_flight;
pub mod lent_body;
pub mod memory;
pub mod named_records;
pub mod origin_latency;
pub mod page_policies;
pub mod proxy;
pub mod purge;
pub mod recording;
pub mod reports;
pub mod sites;
pub mod span_attributes;
pub mod spans;
pub mod timing;
pub mod token;
pub mod trace_context;
pub mod transform;
pub mod upstream;
pub mod upstream_error;
pub mod visit;
pub mod wanted;

mod accepts;
mod ahead;
mod ahead_budget;
mod bounded_body;
mod claims;
mod client_body;
mod client_conditions;
mod config_check;
mod dead;
mod disk_file;
mod disk_folder;
mod disk_index;
mod disk_lock;
mod disk_removal;
mod disk_writer;
mod fetch;
mod fetch_spans;
mod fetched;
mod fields;
mod followed;
mod forwarded;
mod framing;
mod freshened;
mod futile;
mod gunzip;
mod held_body;
mod here;
mod landing;
mod made_by;
mod miss_rate;
mod misses;
mod named;
mod page_text;
mod part_body;
mod placed;
mod public;
mod pump;
mod purge_jobs;
mod range_fills;
mod remembered;
mod respond;
mod road;
mod seats;
mod secrets;
mod sheet_text;
mod sheets;
mod slow_readers;
mod sockets;
mod status;
#[cfg(test)]
mod test_key;
mod tiers;
mod tunnel;
mod uploads;
mod upstream_moved;
mod websocket;
mod websocket_frames;
mod wholes;
