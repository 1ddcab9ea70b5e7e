#![doc = include_str!("../README.md")]
#![doc = include_str!("../GUIDE.md")]
//!
//! # How a request is handled
//!
//! ```text
//!  request ──▶ key.rs ──▶ tiers/memory_store.rs: variants ──▶ rules/lookup.rs ─┬▶ Fresh ──▶ rules/response.rs ──▶ 200 206 304 416
//!                                                                             ├▶ Stale ──▶ rules/response.rs, and revalidation
//!                                                                             ├▶ Validate ──▶ origin ──▶ rules/validate.rs: merge, or may_serve_on_error
//!                                                                             ├▶ Miss ──────▶ origin ──▶ rules/storable.rs: may_store ──▶ store
//!                                                                             ├▶ Bypass ────▶ origin ──▶ rules/invalidate.rs
//!                                                                             └▶ OnlyIfCached: 504
//! ```
//!
//! All of these use `rules/cache_control.rs` (directives), `freshness.rs` (ages), `vary.rs`, `etag.rs`, `date.rs` and `policy.rs`.
//!
//! Rules are RFC 9111 for a shared cache, with the conditions and ranges of RFC 9110, targeted fields (RFC 9213), stale answers (RFC
//! 5861), `immutable` (RFC 8246), groups (RFC 9875), and reports of its actions by RFC 9211.
//!
//! Nothing here has a clock, a socket or randomness: time is an argument. The stored head ([`stored::Stored`]) is separate from bodies,
//! so that each tier stores those in its own way.

pub mod body;
pub mod cache_status;
pub mod key;
pub mod purge_tags;
mod rules;
mod tiers;

pub use rules::{
    cache_control, cache_deception, conditions, date, freshness, identity, invalidate, lookup,
    policy, redirect_limits, response, storable, stored, validate,
};
pub use tiers::{memory_store, object_file, shared_tier};
