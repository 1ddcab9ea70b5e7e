#![doc = include_str!("../README.md")]
#![doc = include_str!("../GUIDE.md")]
//!
//! # The road of a request
//!
//! ```text
//!  request ──▶ key.rs ──▶ store.rs: variants ──▶ lookup.rs ──▶ Fresh ─────────────▶ answer.rs ──▶ 200 206 304 416
//!                                                   │        Stale ─────────────▶ answer.rs, and behind it:
//!                                                   ├──────▶ Validate ──▶ origin ──▶ validate.rs: merge, or on_error
//!                                                   ├──────▶ Miss ──────▶ origin ──▶ storable.rs: may_store ──▶ store.rs
//!                                                   ├──────▶ Bypass ────▶ origin ──▶ invalidate.rs
//!                                                   └──────▶ OnlyIfCached: 504
//!  what all of it is decided by: control.rs (directives), freshness.rs (ages), vary.rs, etag.rs, date.rs, policy.rs
//! ```
//!
//! Rules are RFC 9111 for a shared cache, with the conditions and ranges of RFC 9110, targeted fields (RFC 9213), stale answers (RFC
//! 5861), `immutable` (RFC 8246), groups (RFC 9875), and reports of its actions by RFC 9211.
//!
//! Nothing here has a clock, a socket or randomness: time is an argument. The stored head ([`stored::Stored`]) is separate from bodies,
//! so that each tier stores those in its own way.

pub mod answer;
pub mod body;
pub mod cache_status;
pub mod conditions;
pub mod control;
pub mod date;
pub mod deception;
pub mod freshness;
pub mod invalidate;
pub mod key;
pub mod lookup;
pub mod object_file;
pub mod policy;
pub mod redirected;
pub mod shared;
pub mod storable;
pub mod store;
pub mod stored;
pub mod tags;
pub mod tally;
pub mod validate;

mod etag;
mod range;
mod shelf;
mod vary;
