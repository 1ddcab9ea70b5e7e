//! A load through the accelerator: `spdy-proxy` as released, as a node between the client and the origins.
//!
//! ```text
//!               the network under test             behind it (100 Mbit/s, no loss)
//!   client ══════════════════════════╦═ accelerator ── backhaul ── origins: the replica's hosts, HTTP/2 and HTTP/1.1
//!                                    ╚═ backhaul ═════════════════ the same origins, requested by the client itself
//! ```
//!
//! A request to an origin has the same round trip behind the access link, whether the client or the accelerator sends it
//! ([`Options::backhaul`](crate::options::Options::backhaul)). The accelerator therefore saves time by its cache and its connections,
//! and not by its position. The resolver is at the end of the access link for both.
//!
//! - `site.rs`: its configuration for a page. The page's own name is the site. An operator's configuration lists the hosts that are
//!   proxied; without one, every other host is listed with all kinds.
//! - `accelerated_page.rs`: the page as a browser sees it. The released code rewrites its text, and resources are requested by the
//!   URLs of that text. Scripts are never rewritten, so a resource that a script requests by a URL in full stays at its host.
//! - `rewrite_context.rs`: the rewritten text, the redirect and the lifetime in the cache of one resource.
//! - `page_facts.rs`: what the rewriter asks the accelerator about a page's resources.
//! - `known_stylesheets.rs`: hashes of style sheets that an accelerator with a warm cache has stored.
//! - `body_decoder.rs`: what undoes the codings that the accelerator chose.
//! - `module_imports.rs`: imports of ES modules, and their URLs by the import map of the rewritten page.
//! - `script_urls.rs`: whether a script derives a URL from its own, which then is a proxied one.
//! - `delivery.rs`: how each resource is delivered, and the reason.
//! - `load.rs`: origins and accelerator in virtual time, and the load.

pub mod delivery;
pub mod site;

mod accelerated_page;
mod body_decoder;
mod known_stylesheets;
mod load;
mod module_imports;
mod page_facts;
mod rewrite_context;
mod script_urls;

pub use accelerated_page::{AcceleratedPage, Rewriting};

pub(crate) use accelerated_page::PageAccelerators;
pub(crate) use load::load;
