//! An authoritative DNS server for configured zones: what answers queries for the accelerator's own names.
//!
//! ```text
//!  a query for the site's name
//!        │ UDP, TCP
//!      serve.rs          sockets, limits
//!        │
//!      rate_limit.rs     responses per second
//!        │
//!      authoritative.rs  query in, response out
//!        │
//!      zones.rs          the records, compiled from zone_config.rs
//! ```
//!
//! [`zones`], [`authoritative`] and [`rate_limit`] are pure: bytes in, bytes out; time is an argument. [`serve`] gets its time and
//! tasks from a [`Runtime`](spdy::runtime::Runtime), so it also runs in virtual time.
#![doc = include_str!("../GUIDE.md")]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod authoritative;
pub mod rate_limit;
pub mod serve;
pub mod zone_config;
pub mod zones;
