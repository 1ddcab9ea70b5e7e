//! A site in memory and its answers, over whatever connection they are asked.
//!
//! ```text
//! connection --spdy-net--> Request --respond.rs--> Site::find (site.rs) --> Answer (answer.rs) --> Response
//!                                      |                  ^
//!                      HEAD, conditions (conditions.rs),  `-- a replica, or a folder (directory.rs)
//!                      ranges (ranges.rs), 4xx
//!
//! a page, 200 --pushing.rs--> plan (push_plan.rs) --> pushes, and hints in its headers
//!                  ^ Link (link_header.rs), X-Associated-Content (associated_content.rs),
//!                    the site's own text or recording (needs.rs), what others asked for (learned.rs)
//! ```
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod alt_svc;
pub mod answer;
pub mod associated_content;
mod conditions;
pub mod directory;
pub mod learned;
pub mod link_header;
mod media_types;
pub mod needs;
pub mod push_plan;
pub mod pushing;
mod ranges;
pub mod respond;
pub mod serve;
pub mod site;
pub mod visit;
