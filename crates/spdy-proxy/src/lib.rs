#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! ```text
//! spdy-net's doors ──▶ serve/connection.rs (one connection) ──▶ serve/handle_request.rs, of all in proxy.rs: what becomes of a request
//!                                                      │ request/forwarded.rs  whose it is, where a trusted proxy stands between (request/forgeable_headers.rs: fields that only it may set)
//!                                                      │ request/proxy_request.rs     a request, as cache and origin see it
//!                                                      │ cache/tiers.rs      what is kept, and where: cache/memory_store.rs, cache/disk/store.rs, shared
//!                                                      │ serve/miss.rs     what is kept does not do: fetched, or shared (cache/coalescer.rs, cache/shared_response.rs)
//!                                                      │ upstream/client.rs   origins, and who rests (upstream/third_party.rs: those of others, and their limits; upstream/origin_addresses.rs: where own ones are;
//!                                                      │               upstream/uploads.rs, upstream/slow_readers.rs: who may hold their connections; upstream/response_framing.rs: where answers end; upstream/error.rs: why there is none)
//!                                                      │ fetch/origin_exchange.rs      an origin is asked; redirects of others are followed
//!                                                      │ fetch/process_response.rs    an answer: judged, rewritten, recorded (fetch/revalidate.rs: a 304)
//!                                                      │   fetch/pump.rs, rewrite/response_rewriter.rs, body/content_coding.rs, body/shared_body.rs, body/body_memory.rs, rewrite/stylesheet_index.rs, sites/page_policies.rs
//!                                                      │ websocket/connection.rs    WebSockets: request/websocket_handshake.rs, websocket/tunnel.rs
//!                                                      │   cache/negative_cache.rs     what was of no avail a moment ago
//!                                                      ▼
//!                                                    response/respond.rs        what the client gets of it
//! ```
//!
//! Time, tasks and bytes come from the [`Runtime`](spdy::runtime::Runtime) and the
//! [`Network`](spdy_net::network::Network)s it was made with: in virtual time the same code runs.

pub mod admin;
pub mod body;
pub mod cache;
pub mod config;
pub mod fetch;
pub mod origin_kind;
pub mod prefetch;
pub mod proxy;
pub mod request;
pub mod response;
pub mod rewrite;
pub mod serve;
pub mod sites;
pub mod telemetry;
pub mod token;
pub mod upstream;
mod websocket;

mod clock;
mod expiring_map;
