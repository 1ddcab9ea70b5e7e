//! A visit: pages one after the other, each with the connections, names and cache that the earlier ones left.
//!
//! ```text
//!   home ── pause ── article ── pause ── checkout       a client for each site, and one server at each address
//!     │                 │                   │
//!   a load like      a load after        a load after
//!   any other        home                home and article
//! ```
//!
//! Each page of a visit is a [`Page`](crate::load::Page) that loads the earlier ones first, and its result is that of its own load alone.
//! So each can be repeated without the others, and a page is loaded alike in a race, an experiment, and any clock.
//!
//! - **Servers** respond with the recordings of all pages (`pages.rs`). If pages recorded different responses to one request, the first is
//!   sent.
//! - **Sites**: browsers of today keep the state of each site apart, so each site has a [client](SiteClients) and a [`VisitState`] of its
//!   own, and the frames of other sites in its pages have another client. With
//!   [`Options::site_partitions`](crate::options::Options::site_partitions) disabled, all pages and frames share one.
//! - **Cache**: what the earlier pages of the site received, at its age since then, by the rules of
//!   [`client_cache`](super::client_cache).
//! - **Connections** stay open until one side closes them as idle, also while pages of other sites load.

mod pages;
mod site_clients;
mod visit_state;

pub use pages::{EarlierPages, MAX_PAGES, MAX_PAUSE, check_page_count, visit};

pub use site_clients::SiteClients;

pub(crate) use site_clients::PageClients;
pub(crate) use visit_state::VisitState;
