//! Real time: the same load as in [`load`](spdy_sim::load), over the kernel's TCP behind a link of `spdy-tun`.
//!
//! ```text
//!   client's host                                         servers' host
//!     spdy-sim's LoadDriver ── spdy-client                  spdy-server ── the page's site
//!                  │ network.rs                                 │ server_side.rs, every address of the page
//!                  ├── TCP ─────────► link of spdy-tun ◄────────┤
//!                  └── queries ─────►                  ◄────────┘ resolver.rs
//! ```
//!
//! Three things differ from virtual time, each behind its trait: [`clock`] is a [`Runtime`](spdy::runtime::Runtime) of tokio with
//! exact timers, `network` a [`Network`](spdy_net::network::Network), and seeds only affect the link. Computing takes time here;
//! [`load`] reports how much. [`gateway`] puts another server before the page's site.

pub mod addresses;
pub mod browser_cell;
pub mod browser_load;
pub mod browser_visit;
pub mod chromium49_load;
pub mod clock;
mod expected_failures;
pub mod filmstrip;
pub mod gateway;
pub mod load;
mod network;
pub mod replay;
pub mod resolver;
pub mod run_files;
pub mod runner;
pub mod served_requests;
pub mod server_side;
pub mod visit_cell;
pub mod visual_metrics;
