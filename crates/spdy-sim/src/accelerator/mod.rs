//! A load through the accelerator: `spdy-proxy` as it ships, as a node between the client and the origins.
//!
//! ```text
//!               the network under test             behind it (100 Mbit/s, no loss)
//!   client ══════════════════════════╦═ accelerator ── backhaul ── origins: the replica's hosts, HTTP/2 and HTTP/1.1
//!                                    ╚═ backhaul ═════════════════ the same origins, requested by the client itself
//! ```
//!
//! A request to an origin has the same round trip behind the access link, whether the client or the accelerator sends it
//! ([`Options::backhaul`](crate::options::Options::backhaul)). The accelerator therefore saves time by its cache and its connections,
//! and not by its place. The resolver is at the end of the access link for both.
//!
//! - `site.rs`: its configuration for a page. The page's own name is the site. An operator's configuration lists the hosts that are
//!   proxied; without one, every other host is listed with all kinds.
//! - `accelerated_page.rs`: the page as a browser sees it: its text is rewritten by the code that ships, and resources are requested by
//!   the URLs of that text. Scripts are never rewritten, so a resource that a script requests by a URL that it builds stays at its host.
//! - `rewrite_context.rs`: what the accelerator makes of one resource: its rewritten text, its redirect, its lifetime in the cache.
//! - `module_imports.rs`: what ES modules import, and the URLs to which the import map of the rewritten page resolves it.
//! - `delivery.rs`: how each resource is delivered, and why.
//! - `load.rs`: origins and accelerator in virtual time, and the load.

pub mod delivery;
pub mod site;

mod accelerated_page;
mod load;
mod module_imports;
mod rewrite_context;

pub(crate) use load::load;
