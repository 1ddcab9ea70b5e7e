//! A load with the accelerator on its way: `spdy-proxy` as it ships, as a node between the client and the origins.
//!
//! ```text
//!               the network under test             behind it (100 Mbit/s, no loss)
//!   client ══════════════════════════╦═ accelerator ── backhaul ── origins: the replica's hosts, HTTP/2 and HTTP/1.1
//!                                    ╚═ backhaul ═════════════════ the same origins, asked by the client itself
//! ```
//!
//! Who asks an origin itself pays the same round trip behind the access link as the accelerator does
//! ([`Options::backhaul`](crate::options::Options::backhaul)), so nothing is won by the mere place of the accelerator that a
//! cache did not win. The resolver stands at the end of the access link for both.
//!
//! - `site.rs`: its configuration for a page: the page's own name is the site; what is moved an operator wrote, else every other host
//!   is listed with all kinds.
//! - `accelerated_page.rs`: the page as a browser sees it: its text rewritten by the code that ships, resources asked for where that text
//!   has them. What a script asks for by a URL of its own making stays at its own host: scripts are never rewritten.
//! - `rewrite_context.rs`: what the accelerator makes of one resource: its rewritten text, its redirect, its lifetime in the cache.
//! - `module_imports.rs`: what ES modules import, and where the import map of the rewritten page leads that.
//! - `delivery.rs`: what thereby becomes of each resource, and why.
//! - `load.rs`: origins and accelerator in virtual time, and the load.

pub mod delivery;
pub mod site;

mod accelerated_page;
mod load;
mod module_imports;
mod rewrite_context;

pub(crate) use load::load;
