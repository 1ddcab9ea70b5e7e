//! Names of origins, and which addresses they may have.
//!
//! ```text
//!  host ──▶ origin_host.rs       a name that may be looked up?
//!       ──▶ guarded_network.rs   refused if any of its addresses is denied; connects to what was checked
//!       ──▶ guard.rs, ranges.rs  whose address is this?
//! ```
//!
//! [`guard`] and [`origin_host`] are pure: addresses and names in, a decision out. [`guarded_network`] stands before any
//! [`Network`](spdy_net::network::Network), also the one of virtual time.

pub mod guard;
pub mod guarded_network;
pub mod origin_host;
pub mod ranges;
