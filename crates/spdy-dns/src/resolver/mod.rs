//! Addresses of origins, from upstream servers: never from ourselves.
//!
//! ```text
//!  host ──▶ config.rs    an address of its own? a name that we serve ourselves ("the request would loop")?
//!       ──▶ cache.rs     known, and since when; that there is nothing, too
//!       ──▶ exchange.rs  A and AAAA beside each other: UDP, then TCP; the next server when one fails
//!       ──▶ reply.rs     along the aliases to addresses, and for how long they are believed
//!       ──▶ resolver/spoof_budget.rs  replies that do not match: counted, and after too many of them TCP alone
//! ```
//!
//! The accelerator's names lead to the accelerator, in the world's DNS and in our own. A resolver that followed them would
//! have it fetch from itself; so names that [`zones`](crate::zones) answer for are refused as origins, unless the
//! operator wrote down where the origin stands.
//!
//! A [`Resolver`] is a [`Network`](spdy_net::network::Network): it resolves, and hands connecting to the network that it asks
//! over. Without servers it asks that network's own resolver, which in the lab is virtual time's, and adds the rest.

pub mod config;
mod lookup;
mod spoof_budget;

mod cache;
mod exchange;
mod reply;

pub use lookup::Resolver;
pub use spoof_budget::{Mismatch, MismatchedReplies};
