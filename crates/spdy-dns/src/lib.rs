//! DNS on both sides of the accelerator: an authoritative server for the site's zones, and a guarded resolver for origins.
//!
//! ```text
//!  a query for the site's name                    a fetch from an origin
//!        │ UDP, TCP                                      │ host
//!      serve.rs          sockets, limits           origin_host.rs      may this name be looked up?
//!        │                                               │
//!      rate_limit.rs     responses per second      guarded_network.rs  refused if any address is denied
//!        │                                               │
//!      authoritative.rs  query in, response out    resolver/           upstream servers, a bounded cache
//!        │                                               │
//!      zones.rs          the configured records    address_rules.rs    may an origin have this address?
//!                                                    special_ranges.rs   ranges that are not public
//!                                                    own_listeners.rs    our own addresses
//!                                                  loop_guard.rs       for a site's own origin: any address but ours
//! ```
//!
//! [`address_rules`], [`origin_host`], [`own_listeners`], [`zones`], [`authoritative`] and [`rate_limit`] are pure: bytes and addresses in, a
//! decision out; time is an argument. [`resolver`], [`guarded_network`] and [`loop_guard`] get their sockets from a
//! [`Network`](spdy_net::network::Network) and their time from a [`Runtime`](spdy::runtime::Runtime), so they also run in virtual time.
#![doc = include_str!("../GUIDE.md")]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod address_rules;
pub mod authoritative;
mod datagrams;
pub mod guarded_network;
pub mod loop_guard;
pub mod origin_host;
pub mod own_listeners;
pub mod rate_limit;
pub mod resolver;
pub mod serve;
pub mod special_ranges;
pub mod zone_config;
pub mod zones;
