//! Which resources clients request after a page, counted from `Referer`: an order and a selection for hints and pushes.
//!
//! ```text
//! GET /page          200 text/html   the client's network begins a vote for /page
//! GET /a.css         Referer: /page  its vote names /a.css, if that is within `window`
//! (pushed or hinted)                 its vote says nothing about /a.css: the network had no free choice
//!
//! needed, if   at least `min_networks` votes are free, and `share_percent` of those name it
//! kind, mode   those that `share_percent` of the free votes that name it state
//! full         a resource that at least half of the free votes name stays; of the others, see `Page::weakest` (page.rs)
//! ```
//!
//! A client is not trusted: all that it can do is to cast the one vote of its network ([`network_of`](spdy_net::admission::network_of)), however many
//! connections and views it makes. The caller decides what may be learned at all and what of it is ever sent: only what the
//! page names, or what anyone may have. A page keeps the votes of the last `networks_per_page` networks, so that what
//! changes is learned again. Of every eight views one gets no learned hints or pushes; these give free votes, and what a
//! few clients made up falls out again.
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
