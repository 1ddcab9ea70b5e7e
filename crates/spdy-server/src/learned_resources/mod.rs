//! Learns which resources clients request after a page, from `Referer`: the selection and order of hints and pushes.
//!
//! ```text
//! GET /page          200 text/html   the client's network begins a vote for /page
//! GET /a.css         Referer: /page  its vote names /a.css, if that is within `window`
//! (pushed or hinted)                 its vote does not count for /a.css: the client had no free choice
//!
//! needed, if   at least `min_networks` votes are free, and `share_percent` of those name it
//! kind, mode   those that `share_percent` of the free votes that name it state
//! full         a resource that at least half of the free votes name stays; of the others, see `Page::weakest` (page.rs)
//! ```
//!
//! Clients are not trusted: a client can only cast the one vote of its network ([`network_of`](spdy_net::admission::network_of)),
//! however many connections and views it makes. The caller decides what may be learned and what is sent: only resources that the
//! page names, or that are public. A page stores the votes of the last `networks_per_page` networks, so that changes are learned.
//! One of every eight views gets no learned hints or pushes. These views give free votes, so that resources invented by a few
//! clients are removed again.
//!
//! No clock and no randomness: time is an argument, and equal histories give equal results.

mod limits;
mod page;
mod resource_load;
mod store;
#[cfg(test)]
mod tests;
mod votes;

pub use limits::LearningLimits;
pub use resource_load::ResourceLoad;
pub use store::LearnedResources;
