//! Names, in front of the accelerator and behind it.
//!
//! ```text
//!  who asks for the site's name                    who is to be fetched from
//!        │ UDP, TCP                                      │ host
//!      serve.rs     sockets, limits                origin_host.rs       a name that may be looked up?
//!        │                                               │
//!      rate_limit.rs   so many answers a second    guarded_network.rs   refused if any address is denied
//!        │                                               │
//!      answers.rs   question in, answer out        resolver/            upstream servers, a bounded cache
//!        │                                               │
//!      zones.rs     what is configured             guard.rs, ranges.rs  whose address is this?
//!                                                 own_listeners.rs     ours?
//! ```
//!
//! [`guard`], [`origin_host`], [`own_listeners`], [`zones`], [`answers`] and [`rate_limit`] are pure: bytes and addresses in, a decision
//! out, and time is an argument. [`resolver`], [`guarded_network`] and [`outward_network`], by which a site's own origin is asked, have their sockets of a
//! [`Network`](spdy_net::network::Network) and their time of a [`Runtime`](spdy::runtime::Runtime), so that they run in
//! virtual time too.
#![doc = include_str!("../GUIDE.md")]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod answers;
mod datagrams;
pub mod guard;
pub mod guarded_network;
pub mod origin_host;
pub mod outward_network;
pub mod own_listeners;
pub mod ranges;
pub mod rate_limit;
pub mod resolver;
pub mod serve;
pub mod zone_config;
pub mod zones;
