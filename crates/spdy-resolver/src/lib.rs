//! A resolver for origins, and a guard that connects only to addresses that origins may have.
//!
//! ```text
//!  a fetch from a host that a third party named       a fetch from a site's own origin
//!        │ host                                             │
//!      origin_host.rs       may this name be looked up?     │
//!        │                                                  │
//!      guarded_network.rs   refused if any address          loop_guard.rs   any address but our own
//!        │                  is denied                       │
//!        ├─ resolver.rs     upstream servers, own_names.rs  │
//!        │    exchange.rs   one query: UDP, TCP             │
//!        │    reply.rs      parses a reply                  │
//!        │    spoof_budget.rs  replies that do not match    │
//!        │    cache.rs, config.rs                           │
//!        │                                                  │
//!        └─ address_rules.rs   may an origin have this      │
//!             special_ranges.rs  address? public ones       │
//!             own_listeners.rs   our own addresses ─────────┘
//! ```
//!
//! [`address_rules`], [`origin_host`], [`own_listeners`], [`own_names`] and [`special_ranges`] are pure: names and addresses
//! in, a decision out. [`resolver`], [`guarded_network`] and [`loop_guard`] get their sockets from a
//! [`Network`](spdy_net::network::Network), and the resolver its time from a [`Runtime`](spdy::runtime::Runtime), so they also run
//! in virtual time.
#![doc = include_str!("../GUIDE.md")]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod address_rules;
mod cache;
pub mod config;
mod exchange;
pub mod guarded_network;
pub mod loop_guard;
pub mod origin_host;
pub mod own_listeners;
pub mod own_names;
mod reply;
pub mod resolver;
pub mod special_ranges;
pub mod spoof_budget;
