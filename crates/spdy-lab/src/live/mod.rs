//! Real time: the same load as in [`browser`](crate::browser), over the kernel's TCP behind a link of `spdy-tun`.
//!
//! ```text
//!   client's host                                         servers' host
//!     tab.rs ── spdy-client                                 spdy-server ── the page's site
//!                  │ sockets.rs                                 │ far_side.rs, every address of the page
//!                  ├── TCP ─────────► link of spdy-tun ◄────────┤
//!                  └── questions ───►                  ◄────────┘ names.rs
//! ```
//!
//! Three things differ from virtual time, each behind the trait that is there for it: [`clock`] is a
//! [`Runtime`](spdy::runtime::Runtime) of tokio whose timers keep their time, `sockets` a
//! [`Network`](spdy_net::network::Network), and seeds decide the link alone. What computing costs, time passes for
//! here; [`load`] says how much that was.

pub mod addresses;
pub mod browsed;
pub mod cells;
pub mod clock;
mod expected_failures;
pub mod far_side;
pub mod kept;
pub mod load;
pub mod names;
mod sockets;
pub mod stage;
pub mod visit;
