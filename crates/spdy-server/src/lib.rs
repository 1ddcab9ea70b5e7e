//! A site in memory, and its responses over any protocol of spdy-net.
//!
//! ```text
//! connection --spdy-net--> Request --respond.rs--> Site::find (site.rs) --> StoredResponse (stored_response.rs) --> Response
//!                                      |                  ^
//!                      HEAD, conditions (conditions.rs),  `-- a replica, or a folder (directory.rs)
//!                      ranges (ranges.rs), 4xx         similar_query.rs: a recording whose query differs
//!
//! a page, 200 --site_pusher.rs--> plan (push_plan.rs) --> pushes, and hints in its headers
//!                  ^ Link (link_header.rs), X-Associated-Content (associated_content.rs),
//!                  | the site's own text or recording (page_resources.rs),
//!                  | what clients requested after the page (learned_resources/)
//!                  ` what the session has had (session_history.rs)
//! ```
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod alt_svc;
pub mod associated_content;
mod conditions;
pub mod directory;
pub mod learned_resources;
pub mod link_header;
pub mod media_types;
pub mod page_resources;
pub mod push_plan;
mod ranges;
pub mod respond;
pub mod serve;
pub mod session_history;
mod similar_query;
pub mod site;
pub mod site_pusher;
pub mod stored_response;
